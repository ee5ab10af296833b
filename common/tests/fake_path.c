#include "common/tests/fake_path.h"

#include <assert.h>
#include <string.h>

#include "common/base/str.h"
#include "common/kube/path.h"

#define MAX_SEGMENTS 8
#define MAX_PATH 4096

static int hex_digit(char c)
{
    static const char DIGITS[] = "0123456789ABCDEF";
    const char *found = c ? strchr(DIGITS, c) : NULL;

    return found ? (int)(found - DIGITS) : -1;
}

static const char *decode(struct arena *arena, const char *text, size_t len)
{
    char *decoded = arena_strndup(arena, text, len), *to = decoded;

    for (const char *from = decoded; *from; from++) {
        int high = *from == '%' ? hex_digit(from[1]) : -1;
        int low = high >= 0 ? hex_digit(from[2]) : -1;
        *to = *from;
        if (low >= 0) {
            *to = (char)(high * 16 + low);
            from += 2;
        }
        to++;
    }
    *to = '\0';
    return decoded;
}

/* The decoded segments of a path; 0: more than fit. */
static size_t split(struct arena *arena, const char *path, const char *ret[static MAX_SEGMENTS])
{
    size_t count = 0;
    const char *end = path + strcspn(path, "?");

    while (path < end && *path == '/') {
        size_t len = strcspn(path + 1, "/?");
        if (count == MAX_SEGMENTS)
            return 0;
        ret[count++] = decode(arena, path + 1, len);
        path += len + 1;
    }
    return count;
}

bool fake_path_parse(struct arena *arena, const char *path, struct fake_path *ret)
{
    const char *segments[MAX_SEGMENTS] = { NULL };
    size_t count = split(arena, path, segments), at = 0;
    const char *query = strchr(path, '?'), *prefix;

    if (count >= 3 && str_equal(segments[0], "api")) {
        prefix = arena_printf(arena, "/api/%s", segments[1]);
        at = 2;
    } else if (count >= 4 && str_equal(segments[0], "apis")) {
        prefix = arena_printf(arena, "/apis/%s/%s", segments[1], segments[2]);
        at = 3;
    } else {
        return false;
    }

    *ret = (struct fake_path){ .ns = "", .name = "", .query = query ? query + 1 : "" };
    if (count - at >= 3 && str_equal(segments[at], "namespaces")) {
        ret->ns = segments[at + 1];
        at += 2;
    }
    ret->plural = segments[at++];
    ret->scope = arena_printf(arena, "%s/%s|", prefix, ret->plural);
    if (at < count)
        ret->name = segments[at++];
    if (at < count)
        ret->is_status = str_equal(segments[at++], "status");
    return at == count;
}

const char *fake_path_key(struct arena *arena, const struct fake_path *path)
{
    const char *separator = *path->ns || *path->name ? "/" : "";

    return arena_printf(arena, "%s%s%s%s", path->scope, path->ns, separator, path->name);
}

const char *fake_path_query(struct arena *arena, const struct fake_path *path, const char *key)
{
    size_t key_len = strlen(key);

    for (const char *pair = path->query; *pair;) {
        size_t len = strcspn(pair, "&");
        if (len > key_len && strncmp(pair, key, key_len) == 0 && pair[key_len] == '=')
            return decode(arena, pair + key_len + 1, len - key_len - 1);
        pair += len + (pair[len] == '&');
    }
    return "";
}

bool fake_path_selects(struct arena *arena, const char *selector, const cJSON *object)
{
    const cJSON *labels = json_path(object, "metadata", "labels", NULL);

    while (*selector) {
        size_t len = strcspn(selector, ",");
        const char *term = arena_strndup(arena, selector, len);
        size_t key_len = strcspn(term, "=");
        const char *value =
            json_string(json_get(labels, arena_strndup(arena, term, key_len)), NULL);
        const char *wanted = term + key_len + strspn(term + key_len, "=");

        if (!value || (term[key_len] && !str_equal(value, wanted)))
            return false;
        selector += len + (selector[len] == ',');
    }
    return true;
}

const char *fake_path_of(struct arena *arena, const struct kube_kind *kind,
                         const struct kube_name *name)
{
    struct buf path = BUF_INIT(MAX_PATH);
    bool fits = kube_path_object(&path, kind, name);
    assert(fits);
    (void)fits;

    const char *copy = arena_strdup(arena, buf_string(&path));
    buf_release(&path);
    return copy;
}

const char *fake_path_object_key(struct arena *arena, const struct kube_kind *kind,
                                 const struct kube_name *name)
{
    struct fake_path path;
    bool parsed = fake_path_parse(arena, fake_path_of(arena, kind, name), &path);

    assert(parsed);
    (void)parsed;
    return fake_path_key(arena, &path);
}
