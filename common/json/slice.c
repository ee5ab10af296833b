#include "common/json/slice.h"

#include <assert.h>

#include "common/json/node.h"
#include "common/json/scan.h"

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && json_is_blank(*at))
        at++;
    return at;
}

static struct json_slice without_blanks(const char *text, size_t len)
{
    const char *end = text + len;
    const char *begin = skip_blanks(text, end);

    while (end > begin && json_is_blank(end[-1]))
        end--;
    return (struct json_slice){ begin, (size_t)(end - begin) };
}

int json_slice_check(const char *text, size_t len, struct json_slice *ret, struct error *err)
{
    int r = json_scan(text, len, err);

    if (r == 0)
        *ret = without_blanks(text, len);
    return r;
}

int json_slice_check_legal(const char *text, size_t len, struct json_slice *ret,
                           const char **ret_beyond, struct error *err)
{
    int r = json_scan_legal(text, len, ret_beyond, err);

    if (r == 0)
        *ret = without_blanks(text, len);
    return r;
}

char json_slice_kind(struct json_slice value)
{
    char c = value.len ? value.text[0] : 'n';

    return c == '-' || (c >= '0' && c <= '9') ? '0' : c;
}

/* Behind the string that begins here. */
static const char *skip_string(const char *at, const char *end)
{
    assert(*at == '"');
    at = json_end_of_string(at + 1, end);
    return at < end ? at + 1 : end;
}

struct json_slice_iter json_slice_items(struct json_slice container)
{
    char kind = json_slice_kind(container);
    bool any = kind == '{' || kind == '[';

    return (struct json_slice_iter){
        .at = any ? container.text + 1 : container.text,
        .end = any ? container.text + container.len - 1 : container.text,
        .in_object = kind == '{',
    };
}

bool json_slice_next(struct json_slice_iter *iter)
{
    const char *at = skip_blanks(iter->at, iter->end);

    if (at < iter->end && *at == ',')
        at = skip_blanks(at + 1, iter->end);
    if (at >= iter->end)
        return false;

    iter->key = (struct json_slice){ .text = at };
    if (iter->in_object) {
        const char *end = skip_string(at, iter->end);
        iter->key.len = (size_t)(end - at);
        at = skip_blanks(end, iter->end);
        at = skip_blanks(at + 1, iter->end); /* the colon */
    }
    iter->at = json_end_of_value(at, iter->end);
    iter->value = (struct json_slice){ at, (size_t)(iter->at - at) };
    return true;
}

size_t json_slice_levels(struct json_slice value)
{
    const char *at = value.text, *end = value.text + value.len;
    size_t depth = 0, most = 0;

    while (at < end) {
        if (*at == '"') {
            at = skip_string(at, end);
            continue;
        }
        depth += *at == '[' || *at == '{';
        depth -= *at == ']' || *at == '}';
        most = depth > most ? depth : most;
        at++;
    }
    return most;
}

bool json_slice_is_key(struct json_slice key, const char *name)
{
    size_t len = strlen(name);

    return key.len == len + 2 && memcmp(key.text + 1, name, len) == 0;
}

int json_slice_value(struct arena *arena, struct json_slice value, const cJSON **ret,
                     struct error *err)
{
    char kind = json_slice_kind(value);

    if (kind != '{' && kind != '[')
        return json_parse(arena, value.text, value.len, ret, err);
    int r = json_scan(value.text, value.len, err);
    if (r == 0)
        *ret = arena_own(arena, json_node_of_text(value.text, value.len, false, 0), json_free);
    return r;
}

const char *json_slice_string(struct arena *arena, struct json_slice value, size_t *ret_len)
{
    const cJSON *json = NULL;

    assert(json_slice_kind(value) == '"');
    if (!memchr(value.text, '\\', value.len)) {
        if (ret_len)
            *ret_len = value.len - 2;
        return arena_strndup(arena, value.text + 1, value.len - 2);
    }

    int r = json_parse(arena, value.text, value.len, &json, NULL);
    assert(r == 0); /* it is a part of what json_slice_check accepted */
    (void)r;

    const char *text = json_string(json, "");
    if (ret_len)
        *ret_len = strlen(text);
    return text;
}
