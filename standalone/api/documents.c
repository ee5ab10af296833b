#include "standalone/api/documents.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/map.h"
#include "common/base/str.h"
#include "common/base/version.h"
#include "standalone/schema/discovery.h"
#include "standalone/schema/openapi.h"

/* As clients may have it: they go on with the address that they used. */
#define OWN_ADDRESS "127.0.0.1:6443"

static const char JSON[] = "application/json";
static const char PROTOBUF[] = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

struct document {
    char *body;
    size_t len;
};

struct api_documents {
    pthread_mutex_t lock;
    struct map *texts; /* document_key -> struct document; what is in it stays */
};

static void free_document(void *value)
{
    struct document *document = value;

    free(document->body);
    free(document);
}

struct api_documents *api_documents_create(void)
{
    struct api_documents *documents = xcalloc(1, sizeof(*documents));

    pthread_mutex_init(&documents->lock, NULL);
    documents->texts = map_create(free_document);
    return documents;
}

void api_documents_destroy(struct api_documents *documents)
{
    if (!documents)
        return;
    map_destroy(documents->texts);
    pthread_mutex_destroy(&documents->lock);
    free(documents);
}

size_t api_documents_count(struct api_documents *documents)
{
    pthread_mutex_lock(&documents->lock);

    size_t count = map_len(documents->texts);

    pthread_mutex_unlock(&documents->lock);
    return count;
}

static const struct document *find(struct api_documents *documents, const char *key)
{
    pthread_mutex_lock(&documents->lock);

    const struct document *found = map_get(documents->texts, key);

    pthread_mutex_unlock(&documents->lock);
    return found;
}

/* The first one counts, should several threads make it. */
static const struct document *keep(struct api_documents *documents, const char *key,
                                   const char *body, size_t len)
{
    struct document *document = xcalloc(1, sizeof(*document));

    document->body = xmalloc(len + 1);
    memcpy(document->body, body, len);
    document->body[len] = '\0';
    document->len = len;
    pthread_mutex_lock(&documents->lock);

    const struct document *found = map_get(documents->texts, key);

    if (!found)
        map_set(documents->texts, key, document);
    pthread_mutex_unlock(&documents->lock);
    if (found)
        free_document(document);
    return found ? found : document;
}

/* NULL: not served. */
static cJSON *make_openapi(struct api_call *call)
{
    const struct resources *resources = call->api->resources;

    switch (call->route.type) {
    case ROUTE_OPENAPI_V2:
        return openapi_v2(call->arena, resources);
    case ROUTE_OPENAPI_V3:
        return openapi_v3_index(call->arena, resources);
    default:
        return openapi_v3(call->arena, resources, call->route.group, call->route.version);
    }
}

/* What is meant, however the path is written: there are no more of them than groups and versions. */
static const char *document_key(const struct api_call *call, bool protobuf)
{
    const struct route *route = &call->route;
    bool of_group = route->type == ROUTE_OPENAPI_V3_GROUP;

    return arena_printf(call->arena, "%d %s %s %s", (int)route->type, protobuf ? "protobuf" : "",
                        of_group ? route->group : "", of_group ? route->version : "");
}

static int reply_openapi(struct api_call *call)
{
    struct api_documents *documents = call->api->documents;
    bool protobuf = call->route.type == ROUTE_OPENAPI_V2 && call->format.type == FORMAT_PROTOBUF;
    const char *key = document_key(call, protobuf);
    const struct document *document = find(documents, key);

    if (!document) {
        cJSON *tree = make_openapi(call);
        size_t len;

        if (!tree)
            return call_fail_no_path(call);

        const char *body = protobuf ? openapi_v2_protobuf(call->arena, tree, &len)
                                    : json_text(call->arena, tree, &len);

        document = keep(documents, key, body, len);
    }
    return call_reply_text(call, 200, protobuf ? PROTOBUF : JSON, document->body, document->len);
}

static int reply_aggregated(struct api_call *call, bool core)
{
    const char *version = call->format.version ? call->format.version : "v2";
    cJSON *document = discovery_aggregated(call->arena, call->api->resources, core, version);

    (void)call_reply(call, 200, document);
    call->reply->content_type = arena_printf(
        call->arena, "application/json;g=apidiscovery.k8s.io;v=%s;as=APIGroupDiscoveryList",
        version);
    return 0;
}

static bool reads(const struct api_call *call)
{
    return str_equal(call->request->method, "GET") || str_equal(call->request->method, "HEAD");
}

static int reply_discovery(struct api_call *call)
{
    const struct resources *resources = call->api->resources;
    const struct route *route = &call->route;
    bool top = route->type == ROUTE_CORE || route->type == ROUTE_GROUPS;
    cJSON *document = NULL;

    if (top && call->format.type == FORMAT_AGGREGATED && reads(call))
        return reply_aggregated(call, route->type == ROUTE_CORE);
    if (route->type == ROUTE_CORE)
        document = discovery_api(call->arena, OWN_ADDRESS);
    else if (route->type == ROUTE_GROUPS)
        document = discovery_groups(call->arena, resources);
    else if (route->type == ROUTE_GROUP)
        document = discovery_group(call->arena, resources, route->group);
    else
        document = discovery_resources(call->arena, resources, route->group, route->version);
    if (!document)
        return call_fail_no_path(call);
    return reads(call) ? call_reply(call, 200, document) : call_fail_path(call, 405);
}

/* The version whose words and behaviour are followed; clients choose by it what they ask for. */
static cJSON *make_version(struct arena *arena)
{
    cJSON *version = json_object(arena);

    json_set_string(version, "major", "1");
    json_set_string(version, "minor", "34");
    json_set_string(version, "gitVersion", "v1.34.0+propeller-standalone");
    json_set_string(version, "gitCommit", version_name());
    json_set_string(version, "gitTreeState", "clean");
    json_set_string(version, "buildDate", "1970-01-01T00:00:00Z");
    json_set_string(version, "goVersion", "");
    json_set_string(version, "compiler", "");
    json_set_string(version, "platform", "linux");
    return version;
}

/* As kube-apiserver says it, to anybody: the log has the reason. */
static int reply_health(struct api_call *call)
{
    static const char TYPE[] = "text/plain; charset=utf-8", OK[] = "ok",
                      FAILED[] = "[+]ping ok\n"
                                 "[-]store failed: reason withheld\n"
                                 "readyz check failed\n",
                      LOST[] = "[+]ping ok\n"
                               "[+]store ok: it had lost writes, the log has details\n"
                               "readyz check passed\n";
    bool is_verbose = str_has_prefix(call->request->query, "verbose");

    /* A new start would not help, so it is alive. */
    if (str_has_prefix(call->request->path, "/readyz") && kv_health(call->api->kv, NULL) < 0)
        return call_reply_text(call, 500, TYPE, FAILED, strlen(FAILED));
    if (str_has_prefix(call->request->path, "/readyz") && is_verbose &&
        kv_loss(call->api->kv).found)
        return call_reply_text(call, 200, TYPE, LOST, strlen(LOST));
    return call_reply_text(call, 200, TYPE, OK, strlen(OK));
}

int call_document(struct api_call *call)
{
    const enum route_type type = call->route.type;

    /* What is not there is so for all methods. */
    if (type == ROUTE_UNKNOWN)
        return call_fail_no_path(call);
    if (type == ROUTE_CORE || type == ROUTE_GROUPS || type == ROUTE_GROUP ||
        type == ROUTE_RESOURCES)
        return reply_discovery(call);
    if (!reads(call))
        return call_fail_path(call, 405);
    switch (type) {
    case ROUTE_OPENAPI_V2:
    case ROUTE_OPENAPI_V3:
    case ROUTE_OPENAPI_V3_GROUP:
        return reply_openapi(call);
    case ROUTE_VERSION:
        return call_reply(call, 200, make_version(call->arena));
    default: /* health */
        return reply_health(call);
    }
}
