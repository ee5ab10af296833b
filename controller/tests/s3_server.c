#include "controller/tests/s3_server.h"

#include <check.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/tests/raw_server.h"

#define MAX_OBJECTS 64
#define PAGE 2 /* keys in a page of a list */
#define MAX_PARTS 16
#define KEY_LEN 32

/* ---- the signature ---- */

struct hmac {
    unsigned char bytes[KEY_LEN];
};

static struct hmac sign(const void *key, size_t key_len, const char *text)
{
    struct hmac ret;
    unsigned len = KEY_LEN;

    HMAC(EVP_sha256(), key, (int)key_len, (const unsigned char *)text, strlen(text), ret.bytes,
         &len);
    return ret;
}

static const char *hex_of(struct arena *arena, const struct hmac *hmac)
{
    char *text = arena_alloc(arena, 2 * KEY_LEN + 1, 1);

    for (size_t i = 0; i < KEY_LEN; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", hmac->bytes[i]);
    return text;
}

static const char *decoded(struct arena *arena, const char *text)
{
    char *ret = arena_strdup(arena, text), *to = ret;

    for (const char *from = ret; *from; from++) {
        if (*from == '%' && from[1] && from[2]) {
            const char digits[] = { from[1], from[2], '\0' };
            *to++ = (char)strtol(digits, NULL, 16);
            from += 2;
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
    return ret;
}

/* UriEncode of the documentation. */
static const char *encoded(struct arena *arena, const char *text, const char *also)
{
    const char *ret = "";

    for (; *text; text++) {
        bool plain = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') ||
                     (*text >= '0' && *text <= '9') || strchr("-._~", *text) || strchr(also, *text);
        ret = plain ? arena_printf(arena, "%s%c", ret, *text)
                    : arena_printf(arena, "%s%%%02X", ret, (unsigned char)*text);
    }
    return ret;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Splits in place; returns how many. */
static size_t split(char *text, char separator, char **ret)
{
    size_t count = 0;

    while (*text && count < MAX_PARTS) {
        char *end = strchr(text, separator);
        ret[count++] = text;
        if (!end)
            break;
        *end = '\0';
        text = end + 1;
    }
    return count;
}

static const char *canonical_query(struct arena *arena, const char *query)
{
    char *parts[MAX_PARTS];
    size_t count = split(arena_strdup(arena, query), '&', parts);
    const char *ret = "";

    for (size_t i = 0; i < count; i++) {
        char *equals = strchr(parts[i], '=');
        if (equals)
            *equals = '\0';
        const char *name = encoded(arena, decoded(arena, parts[i]), "");
        const char *value = encoded(arena, decoded(arena, equals ? equals + 1 : ""), "");
        parts[i] = arena_printf(arena, "%s=%s", name, value);
    }
    qsort(parts, count, sizeof(*parts), by_text);
    for (size_t i = 0; i < count; i++)
        ret = arena_printf(arena, "%s%s%s", ret, i ? "&" : "", parts[i]);
    return ret;
}

/* "": there is none. */
static const char *header(struct arena *arena, const char *request, const char *name)
{
    const char *line = strcasestr(request, arena_printf(arena, "\r\n%s:", name));
    const char *end = strstr(request, "\r\n\r\n");

    if (!line || line > end)
        return "";
    line += strlen(name) + 3;
    line += strspn(line, " ");
    return arena_strndup(arena, line, strcspn(line, "\r"));
}

/* The value behind "Credential=" and the like. */
static const char *part_of(struct arena *arena, const char *authorization, const char *name)
{
    const char *at = strstr(authorization, name);

    return at ? arena_strndup(arena, at + strlen(name), strcspn(at + strlen(name), ", ")) : "";
}

static const char *canonical_request(struct arena *arena, const char *request,
                                     const char *signed_headers)
{
    size_t method = strcspn(request, " ");
    const char *target = request + method + 1;
    size_t path = strcspn(target, "? ");
    size_t query = target[path] == '?' ? strcspn(target + path + 1, " ") : 0;
    char *names[MAX_PARTS];
    size_t count = split(arena_strdup(arena, signed_headers), ';', names);
    const char *headers = "";

    for (size_t i = 0; i < count; i++)
        headers =
            arena_printf(arena, "%s%s:%s\n", headers, names[i], header(arena, request, names[i]));
    return arena_printf(arena, "%.*s\n%s\n%s\n%s\n%s\n%s", (int)method, request,
                        encoded(arena, decoded(arena, arena_strndup(arena, target, path)), "/"),
                        canonical_query(arena, arena_strndup(arena, target + path + 1, query)),
                        headers, signed_headers, header(arena, request, "x-amz-content-sha256"));
}

static const char *signature_of(struct arena *arena, const char *request, const char *scope,
                                const char *signed_headers, const char *secret)
{
    char *parts[MAX_PARTS];
    char hex[SHA256_HEX_LEN];
    const char *canonical = canonical_request(arena, request, signed_headers);
    const char *text =
        arena_printf(arena, "AWS4-HMAC-SHA256\n%s\n%s\n%s", header(arena, request, "x-amz-date"),
                     scope, sha256_hex(canonical, strlen(canonical), hex));
    const char *first = arena_printf(arena, "AWS4%s", secret);
    size_t count = split(arena_strdup(arena, scope), '/', parts);
    struct hmac key = { { 0 } };

    for (size_t i = 0; i < count; i++)
        key = i ? sign(key.bytes, KEY_LEN, parts[i]) : sign(first, strlen(first), parts[i]);
    key = sign(key.bytes, KEY_LEN, text);
    return hex_of(arena, &key);
}

/* What is signed must have been sent. */
static bool has_all(struct arena *arena, const char *request, const char *signed_headers)
{
    char *names[MAX_PARTS];
    size_t count = split(arena_strdup(arena, signed_headers), ';', names);

    for (size_t i = 0; i < count; i++) {
        if (!*header(arena, request, names[i]))
            return false;
    }
    return true;
}

const char *s3_signature_problem(struct arena *arena, const char *request, const char *region,
                                 const char *access_key, const char *secret_key)
{
    const char *authorization = header(arena, request, "Authorization");
    const char *credential = part_of(arena, authorization, "Credential=");
    const char *signed_headers = part_of(arena, authorization, "SignedHeaders=");
    const char *body = strstr(request, "\r\n\r\n") + 4;
    const char *scope = strchr(credential, '/');
    char hex[SHA256_HEX_LEN];

    if (!str_has_prefix(authorization, "AWS4-HMAC-SHA256 ") || !scope)
        return "no signature";
    if (!str_equal(arena_strndup(arena, credential, (size_t)(scope - credential)), access_key))
        return "unknown access key";
    if (!str_has_suffix(scope, "/s3/aws4_request") ||
        (region && !strstr(scope, arena_printf(arena, "/%s/", region))))
        return "another region or service";
    if (!strstr(signed_headers, "host") || !strstr(signed_headers, "x-amz-content-sha256"))
        return "host and x-amz-content-sha256 must be signed";
    if (!has_all(arena, request, signed_headers))
        return "a signed header is missing";
    if (!str_equal(header(arena, request, "x-amz-content-sha256"),
                   sha256_hex(body, strlen(body), hex)))
        return "XAmzContentSHA256Mismatch";
    if (!str_equal(part_of(arena, authorization, "Signature="),
                   signature_of(arena, request, scope + 1, signed_headers, secret_key)))
        return "SignatureDoesNotMatch";
    return NULL;
}

/* ---- the store ---- */

struct object {
    char *key;
    char *text;
};

struct s3_server {
    struct raw_server *raw;
    pthread_mutex_t lock;
    struct object objects[MAX_OBJECTS]; /* in the order of their keys */
    size_t len;
    char *reply; /* of the request under way */
    int fail_status;
    const char *fail_code;
};

static const char *answer(struct s3_server *server, int status, const char *body)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    free(server->reply);
    server->reply = xstrdup(arena_printf(arena, "HTTP/1.1 %d Any\r\nContent-Length: %zu\r\n\r\n%s",
                                         status, strlen(body), body));
    return server->reply;
}

static const char *refuse(struct s3_server *server, struct arena *arena, int status,
                          const char *code)
{
    return answer(server, status, arena_printf(arena, "<Error><Code>%s</Code></Error>", code));
}

/* Where the key is, or belongs. */
static size_t place_of(const struct s3_server *server, const char *key)
{
    size_t at = 0;

    while (at < server->len && strcmp(server->objects[at].key, key) < 0)
        at++;
    return at;
}

static bool is_at(const struct s3_server *server, size_t at, const char *key)
{
    return at < server->len && str_equal(server->objects[at].key, key);
}

static const char *put_object(struct s3_server *server, const char *key, const char *body)
{
    size_t at = place_of(server, key);

    if (!is_at(server, at, key)) {
        ck_assert_uint_lt(server->len, MAX_OBJECTS);
        memmove(server->objects + at + 1, server->objects + at,
                (server->len++ - at) * sizeof(*server->objects));
        server->objects[at] = (struct object){ .key = xstrdup(key) };
    }
    free(server->objects[at].text);
    server->objects[at].text = xstrdup(body);
    return answer(server, 200, "");
}

static const char *delete_object(struct s3_server *server, const char *key)
{
    size_t at = place_of(server, key);

    if (is_at(server, at, key)) {
        free(server->objects[at].key);
        free(server->objects[at].text);
        memmove(server->objects + at, server->objects + at + 1,
                (--server->len - at) * sizeof(*server->objects));
    }
    return answer(server, 204, "");
}

static const char *list_objects(struct s3_server *server, struct arena *arena, const char *query)
{
    const char *prefix = decoded(arena, part_of(arena, query, "prefix="));
    const char *after = decoded(arena, part_of(arena, query, "start-after="));
    const char *keys = "";
    size_t count = 0, at = 0;

    for (; at < server->len && count < PAGE; at++) {
        const char *key = server->objects[at].key;
        if (!str_has_prefix(key, prefix) || strcmp(key, after) <= 0)
            continue;
        keys = arena_printf(arena, "%s<Contents><Key>%s</Key><Size>1</Size></Contents>", keys, key);
        count++;
    }
    return answer(server, 200,
                  arena_printf(arena,
                               "<?xml version=\"1.0\"?><ListBucketResult><IsTruncated>%s"
                               "</IsTruncated>%s</ListBucketResult>",
                               count == PAGE ? "true" : "false", keys));
}

static const char *serve(struct s3_server *server, struct arena *arena, const char *request)
{
    const char *problem = s3_signature_problem(arena, request, S3_TEST_REGION, S3_TEST_ACCESS_KEY,
                                               S3_TEST_SECRET_KEY);
    const char *target = strchr(request, ' ') + 1;
    size_t path = strcspn(target, "? ");
    const char *query = arena_strndup(arena, target + path, strcspn(target + path, " "));
    const char *name = decoded(arena, arena_strndup(arena, target, path));

    if (problem)
        return refuse(server, arena, 403, strchr(problem, ' ') ? "AccessDenied" : problem);
    if (server->fail_status)
        return refuse(server, arena, server->fail_status, server->fail_code);
    if (!str_has_prefix(name, "/" S3_TEST_BUCKET))
        return refuse(server, arena, 404, "NoSuchBucket");

    const char *key = name + strlen("/" S3_TEST_BUCKET);
    key += *key == '/';
    for (char *c = (char *)(uintptr_t)query; *c; c++) /* part_of ends values at a comma */
        *c = *c == '&' ? ',' : *c;
    if (!*key)
        return list_objects(server, arena, query);
    if (str_has_prefix(request, "PUT "))
        return put_object(server, key, strstr(request, "\r\n\r\n") + 4);
    if (str_has_prefix(request, "DELETE "))
        return delete_object(server, key);

    size_t at = place_of(server, key);
    return is_at(server, at, key) ? answer(server, 200, server->objects[at].text)
                                  : refuse(server, arena, 404, "NoSuchKey");
}

static const char *on_request(void *ctx, unsigned number UNUSED, const char *request)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct s3_server *server = ctx;

    pthread_mutex_lock(&server->lock);
    const char *reply = serve(server, arena, request);
    pthread_mutex_unlock(&server->lock);
    return reply;
}

struct s3_server *s3_server_start(void)
{
    struct s3_server *server = xcalloc(1, sizeof(*server));

    pthread_mutex_init(&server->lock, NULL);
    server->raw = raw_server_start(on_request, server);
    return server;
}

void s3_server_stop(struct s3_server *server)
{
    if (!server)
        return;
    raw_server_stop(server->raw);
    for (size_t i = 0; i < server->len; i++) {
        free(server->objects[i].key);
        free(server->objects[i].text);
    }
    free(server->reply);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

int s3_server_port(const struct s3_server *server)
{
    return raw_server_port(server->raw);
}

unsigned s3_server_connections(const struct s3_server *server)
{
    return raw_server_connections(server->raw);
}

size_t s3_server_objects(struct s3_server *server)
{
    pthread_mutex_lock(&server->lock);
    size_t len = server->len;
    pthread_mutex_unlock(&server->lock);
    return len;
}

void s3_server_spoil(struct s3_server *server, size_t index, const char *text)
{
    pthread_mutex_lock(&server->lock);
    ck_assert_uint_lt(index, server->len);
    free(server->objects[index].text);
    server->objects[index].text = xstrdup(text);
    pthread_mutex_unlock(&server->lock);
}

void s3_server_fail(struct s3_server *server, int status, const char *code)
{
    pthread_mutex_lock(&server->lock);
    server->fail_status = status;
    server->fail_code = code;
    pthread_mutex_unlock(&server->lock);
}
