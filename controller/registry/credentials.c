#include "controller/registry/credentials.h"

#include <string.h>
#include <strings.h>

#include "common/base/digest.h"
#include "common/base/str.h"

/* Values of one config; a Secret has at most 1 MiB. */
#define MAX_VALUES 20000

/* Returns the length of the path of a key, from 1, that holds this repository; 0: the key is of another one. */
static size_t exactness(const char *key, const char *host, const char *path)
{
    const char *scheme = strstr(key, "://");
    const char *at = scheme ? scheme + 3 : key;
    size_t host_len = strcspn(at, "/");

    if (host_len != strlen(host) || strncasecmp(at, host, host_len) != 0)
        return 0;
    at += host_len + (at[host_len] == '/');

    size_t len = strlen(at);

    while (len && at[len - 1] == '/')
        len--;
    if (len == 2 && (strncmp(at, "v1", len) == 0 || strncmp(at, "v2", len) == 0))
        len = 0; /* the address of the API, not a repository */
    if (len && (strncmp(path, at, len) != 0 || (path[len] && path[len] != '/')))
        return 0;
    return len + 1;
}

/* NULL: the entry lacks a user or a password. */
static const char *login_of(struct arena *arena, const cJSON *entry)
{
    const char *auth = json_get_string(entry, "auth");
    const char *user = json_get_string(entry, "username");
    const char *password = json_get_string(entry, "password");
    const char *text = NULL;
    size_t len = 0;

    if (*auth) {
        text = base64_decode(arena, auth, strlen(auth), &len);
    } else if (*user && *password && !strchr(user, ':')) {
        text = arena_printf(arena, "%s:%s", user, password);
        len = strlen(text);
    }

    const char *colon = text ? memchr(text, ':', len) : NULL;

    if (!colon || colon == text || colon + 1 == text + len)
        return NULL;
    return base64_encode(arena, text, len);
}

/* Sorted by exactness, so that equal ones keep the order of the file. */
struct ranked {
    const char *login;
    size_t rank;
};

static size_t insert(struct ranked *list, size_t len, struct ranked added)
{
    size_t at = len;

    while (at && list[at - 1].rank < added.rank)
        at--;
    if (at == REGISTRY_MAX_LOGINS)
        return len;
    if (len < REGISTRY_MAX_LOGINS)
        len++;
    memmove(&list[at + 1], &list[at], (len - at - 1) * sizeof(*list));
    list[at] = added;
    return len;
}

int registry_logins_add(struct arena *arena, const char *text, size_t len, bool is_legacy,
                        const char *host, const char *path, struct registry_logins *logins,
                        struct error *err)
{
    static const struct json_reading READING = { .max_values = MAX_VALUES };
    struct ranked found[REGISTRY_MAX_LOGINS];
    size_t count = 0;
    const cJSON *config = NULL;

    if (json_parse_with(arena, text, len, &READING, &config, NULL) < 0)
        return error_set(err, ERROR_INVALID, "is not JSON");

    const cJSON *entries = is_legacy ? config : json_get(config, "auths");

    if (!cJSON_IsObject(config) || (entries && !cJSON_IsObject(entries)))
        return error_set(err, ERROR_INVALID, "is not an object with 'auths'");
    json_for_each (entry, entries) {
        size_t rank = exactness(entry->string, host, path);
        const char *login = rank ? login_of(arena, entry) : NULL;

        if (login)
            count = insert(found, count, (struct ranked){ login, rank });
    }
    for (size_t i = 0; i < count && logins->len < REGISTRY_MAX_LOGINS; i++)
        logins->items[logins->len++] = found[i].login;
    return 0;
}

int registry_logins_add_secret(struct arena *arena, const cJSON *secret, const char *host,
                               const char *path, struct registry_logins *logins, struct error *err)
{
    static const struct {
        const char *type, *key;
        bool is_legacy;
    } TYPES[] = {
        { "kubernetes.io/dockerconfigjson", ".dockerconfigjson", false },
        { "kubernetes.io/dockercfg", ".dockercfg", true },
    };

    for (size_t i = 0; i < ARRAY_LEN(TYPES); i++) {
        if (!str_equal(json_get_string(secret, "type"), TYPES[i].type))
            continue;

        const char *value = json_get_string(json_get(secret, "data"), TYPES[i].key);
        size_t len = 0;
        const char *text = base64_decode(arena, value, strlen(value), &len);
        int r = text ? registry_logins_add(arena, text, len, TYPES[i].is_legacy, host, path, logins,
                                           err)
                     : error_set(err, ERROR_INVALID, "is not base64");

        return r < 0 ? error_wrap(err, "value '%s'", TYPES[i].key) : 0;
    }
    return error_set(err, ERROR_INVALID, "is not of type kubernetes.io/dockerconfigjson");
}
