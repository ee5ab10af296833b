#include "controller/tests/fake_registry.h"

#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/arena.h"
#include "common/base/cond.h"
#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/tests/raw_server.h"

#define MAX_ITEMS 64
#define PATIENCE_MS 20000 /* less than the 30 s after which a pull gives up */
#define PATH "/v2/acme/add/"

struct item {
    const char *tag; /* NULL: none */
    const char *digest;
    const char *bytes;
    size_t len;
};

struct fake_registry {
    struct raw_server *server;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t asked;
    struct arena *arena;
    const char *host;
    struct item items[MAX_ITEMS];
    size_t len;
    struct registry_manner manner;
    unsigned since_manner; /* requests */
    struct registry_counts counts;
    const char *authorization;
};

static const struct item *find(const struct fake_registry *registry, const char *reference)
{
    if (str_equal(reference, registry->manner.lacks))
        return NULL;
    for (size_t i = registry->len; i-- > 0;) {
        const struct item *item = &registry->items[i];

        if (str_equal(item->digest, reference) || str_equal(item->tag, reference))
            return item;
    }
    return NULL;
}

static const char *status(const struct fake_registry *registry, const char *line,
                          const char *headers)
{
    return arena_printf(registry->arena, "HTTP/1.1 %s\r\nContent-Length: 0\r\n%s\r\n", line,
                        headers);
}

static bool is_allowed(const struct fake_registry *registry, const char *authorization)
{
    const char *basic = registry->manner.basic;

    if (!basic)
        return true;
    if (registry->manner.by_token)
        return str_equal(authorization, arena_printf(registry->arena, "Bearer token-of-%s", basic));
    return str_equal(authorization,
                     arena_printf(registry->arena, "Basic %s",
                                  base64_encode(registry->arena, basic, strlen(basic))));
}

static const char *refuse(const struct fake_registry *registry)
{
    const char *challenge =
        registry->manner.by_token
            ? arena_printf(
                  registry->arena,
                  "WWW-Authenticate: Bearer realm=\"http://%s/token\",service=\"fake\"\r\n",
                  registry->host)
            : "WWW-Authenticate: Basic realm=\"fake\"\r\n";

    return status(registry, "401 Unauthorized", challenge);
}

static const char *give_token(struct fake_registry *registry, const char *authorization)
{
    const char *basic = registry->manner.basic;
    const char *wanted = arena_printf(registry->arena, "Basic %s",
                                      base64_encode(registry->arena, basic, strlen(basic)));
    const char *body = arena_printf(registry->arena, "{\"token\":\"token-of-%s\"}", basic);

    registry->counts.tokens++;
    if (!str_equal(authorization, wanted))
        return status(registry, "401 Unauthorized", "");
    return arena_printf(registry->arena, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s",
                        strlen(body), body);
}

static size_t range_of(const struct fake_registry *registry, const char *request)
{
    const char *range = strcasestr(request, "\r\nRange: bytes=");

    if (!range || registry->manner.ignores_ranges)
        return 0;
    return (size_t)strtoull(range + strlen("\r\nRange: bytes="), NULL, 10);
}

/* Head and body of a document from a byte; the fault REGISTRY_CUTS or cut_after shortens it. */
static const char *give(struct fake_registry *registry, const struct item *item,
                        const char *request, bool is_blob, bool cuts)
{
    bool is_head = str_has_prefix(request, "HEAD ");
    size_t from = is_blob ? range_of(registry, request) : 0;
    size_t rest, sent;

    if (from && from >= item->len)
        return status(registry, "416 Range Not Satisfiable", "");
    from -= from && registry->manner.misplaces;
    rest = sent = item->len - from;
    if (cuts)
        sent = rest / 2;
    else if (is_blob && registry->manner.cut_after && registry->manner.cut_after < rest)
        sent = registry->manner.cut_after;
    if (!is_head)
        raw_server_add_body(registry->server, item->bytes + from, sent, sent < rest);
    return arena_printf(
        registry->arena,
        "HTTP/1.1 %s\r\nContent-Length: %zu\r\nContent-Type: "
        "application/vnd.oci.image.manifest.v1+json\r\nContent-Range: bytes %zu-%zu/%zu\r\n"
        "%s%s%s\r\n",
        from ? "206 Partial Content" : "200 OK", rest, from, item->len - 1, item->len,
        registry->manner.hides_digests ? "" : "Docker-Content-Digest: ",
        registry->manner.hides_digests ? "" : item->digest,
        registry->manner.hides_digests ? "" : "\r\n");
}

/* NULL: the request has no fault. */
static const char *fault_of(struct fake_registry *registry, const char *request,
                            const struct item *item, bool is_blob)
{
    const struct registry_manner *manner = &registry->manner;
    unsigned number = registry->since_manner;

    if (!manner->fail_from || number < manner->fail_from ||
        number >= manner->fail_from + manner->fail_count)
        return NULL;
    switch (manner->fault) {
    case REGISTRY_CUTS:
        return item && !str_has_prefix(request, "HEAD ")
                   ? give(registry, item, request, is_blob, true)
                   : RAW_CLOSE;
    case REGISTRY_IS_ILL:
        return status(registry, "503 Service Unavailable", "");
    case REGISTRY_FORGETS:
        return status(registry, "404 Not Found", "");
    case REGISTRY_REFUSES:
        return status(registry, "403 Forbidden", "");
    case REGISTRY_LIES:
        if (item) {
            struct item *lie = arena_new(registry->arena, struct item);
            char *bytes = arena_alloc(registry->arena, 1, item->len);

            memcpy(bytes, item->bytes, item->len);
            bytes[item->len - 1] = (char)~bytes[item->len - 1];
            *lie = (struct item){ NULL, item->digest, bytes, item->len };
            return give(registry, lie, request, is_blob, false);
        }
        return NULL;
    case REGISTRY_ANSWERS_WITH_A_PAGE:
        return "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>";
    default:
        return RAW_CLOSE;
    }
}

static const char *header_of(struct fake_registry *registry, const char *request, const char *name)
{
    const char *line = strcasestr(request, arena_printf(registry->arena, "\r\n%s: ", name));

    if (!line)
        return NULL;
    line += 2 + strlen(name) + 2;
    return arena_strndup(registry->arena, line, strcspn(line, "\r"));
}

static const char *answer_locked(struct fake_registry *registry, const char *request)
{
    const char *target = strchr(request, ' ') + 1;
    const char *path = arena_strndup(registry->arena, target, strcspn(target, " "));
    const char *authorization = header_of(registry, request, "Authorization");
    bool is_blob = str_has_prefix(path, PATH "blobs/");
    const char *reference = strrchr(path, '/') + 1;
    const struct item *item = find(registry, reference);
    const char *fault;

    if (str_has_prefix(path, PATH "referrers/sha256:"))
        item = registry->manner.has_referrers
                   ? find(registry, arena_printf(registry->arena, "sha256-%s", reference + 7))
                   : NULL;

    registry->counts.all++;
    registry->since_manner++;
    registry->counts.heads += str_has_prefix(request, "HEAD ");
    registry->counts.blobs += is_blob && str_has_prefix(request, "GET ");
    registry->counts.manifests +=
        str_has_prefix(request, "GET ") && str_has_prefix(path, PATH "manifests/");
    if (authorization)
        registry->authorization = authorization;
    fault = fault_of(registry, request, item, is_blob);
    if (fault)
        return fault;
    if (str_has_prefix(path, "/token"))
        return give_token(registry, authorization ? authorization : "");
    if (!is_allowed(registry, authorization ? authorization : ""))
        return refuse(registry);
    if (!item || !str_has_prefix(path, PATH))
        return status(registry, "404 Not Found", "");
    return is_blob && registry->manner.is_silent ? RAW_SILENT
                                                 : give(registry, item, request, is_blob, false);
}

static const char *answer(void *ctx, unsigned number UNUSED, const char *request)
{
    struct fake_registry *registry = ctx;
    const char *reply;

    pthread_mutex_lock(&registry->lock);
    reply = answer_locked(registry, request);
    pthread_cond_broadcast(&registry->asked);
    pthread_mutex_unlock(&registry->lock);
    return reply;
}

struct fake_registry *fake_registry_start(void)
{
    struct fake_registry *registry = xcalloc(1, sizeof(*registry));

    pthread_mutex_init(&registry->lock, NULL);
    cond_init(&registry->asked);
    pthread_mutex_lock(&registry->lock);
    registry->arena = arena_create();
    registry->authorization = "";
    registry->server = raw_server_start(answer, registry);
    registry->host =
        arena_printf(registry->arena, "127.0.0.1:%d", raw_server_port(registry->server));
    pthread_mutex_unlock(&registry->lock);
    return registry;
}

void fake_registry_stop(struct fake_registry *registry)
{
    if (!registry)
        return;
    raw_server_stop(registry->server);
    pthread_mutex_destroy(&registry->lock);
    (void)pthread_cond_destroy(&registry->asked);
    arena_destroy(registry->arena);
    free(registry);
}

const char *fake_registry_host(const struct fake_registry *registry)
{
    return registry->host;
}

void fake_registry_behave(struct fake_registry *registry, const struct registry_manner *manner)
{
    pthread_mutex_lock(&registry->lock);
    registry->manner = *manner;
    registry->since_manner = 0;
    pthread_mutex_unlock(&registry->lock);
}

struct registry_counts fake_registry_counts(struct fake_registry *registry)
{
    struct registry_counts counts;

    pthread_mutex_lock(&registry->lock);
    counts = registry->counts;
    pthread_mutex_unlock(&registry->lock);
    return counts;
}

void fake_registry_await_blobs(struct fake_registry *registry, unsigned count)
{
    struct timespec deadline = cond_deadline(PATIENCE_MS);

    pthread_mutex_lock(&registry->lock);
    while (registry->counts.blobs < count)
        ck_assert(cond_wait_until(&registry->asked, &registry->lock, &deadline));
    pthread_mutex_unlock(&registry->lock);
}

const char *fake_registry_authorization(struct fake_registry *registry)
{
    const char *value;

    pthread_mutex_lock(&registry->lock);
    value = registry->authorization;
    pthread_mutex_unlock(&registry->lock);
    return value;
}

const char *fake_registry_push_document(struct fake_registry *registry, const char *tag,
                                        const char *text, size_t len)
{
    char hex[SHA256_HEX_LEN];
    const char *digest;

    pthread_mutex_lock(&registry->lock);
    ck_assert_uint_lt(registry->len, MAX_ITEMS);

    char *bytes = arena_alloc(registry->arena, 1, len + 1);

    memcpy(bytes, text, len);
    digest = arena_printf(registry->arena, "sha256:%s", sha256_hex(text, len, hex));
    registry->items[registry->len++] =
        (struct item){ arena_strdup(registry->arena, tag), digest, bytes, len };
    pthread_mutex_unlock(&registry->lock);
    return digest;
}

const char *fake_registry_push(struct fake_registry *registry, const char *tag, const void *bytes,
                               size_t len)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *digest = fake_registry_push_document(registry, NULL, bytes, len);
    const char *manifest = arena_printf(
        arena,
        "{\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\",\"layers\":[{\"mediaType\":"
        "\"application/wasm\",\"digest\":\"%s\",\"size\":%zu}]}",
        digest, len);

    return fake_registry_push_document(registry, tag, manifest, strlen(manifest));
}
