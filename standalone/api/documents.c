#include <string.h>

#include "common/base/str.h"
#include "common/base/version.h"
#include "standalone/api/call.h"
#include "standalone/schema/bundle.h"

static const char JSON[] = "application/json";
static const char PROTOBUF[] = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

static bool is_read(const struct api_call *call)
{
    return str_equal(call->request->method, "GET") || str_equal(call->request->method, "HEAD");
}

/* The name that documents.py gives to the document of a path, however the path is written. */
static const char *document_name(const struct api_call *call)
{
    const struct route *route = &call->route;
    const char *openapi = route->type == ROUTE_OPENAPI_V3_GROUP ? "/openapi/v3" : "";

    switch (route->type) {
    case ROUTE_CORE:
        return "/api";
    case ROUTE_GROUPS:
        return "/apis";
    case ROUTE_GROUP:
        return arena_printf(call->arena, "/apis/%s", route->group);
    case ROUTE_OPENAPI_V2:
        return "/openapi/v2";
    case ROUTE_OPENAPI_V3:
        return "/openapi/v3";
    default:
        return *route->group ? arena_printf(call->arena, "%s/apis/%s/%s", openapi, route->group,
                                            route->version)
                             : arena_printf(call->arena, "%s/api/%s", openapi, route->version);
    }
}

/* /api, /apis and /openapi/v2 have more than one form. */
static int reply_document(struct api_call *call)
{
    const enum route_type type = call->route.type;
    const char *name = document_name(call), *content_type = JSON, *body;
    size_t len;

    if (type == ROUTE_OPENAPI_V2 && call->format.type == FORMAT_PROTOBUF) {
        name = "/openapi/v2 protobuf";
        content_type = PROTOBUF;
    } else if ((type == ROUTE_CORE || type == ROUTE_GROUPS) &&
               call->format.type == FORMAT_AGGREGATED && is_read(call)) {
        const char *version = call->format.version ? call->format.version : "v2";

        name = arena_printf(call->arena, "%s %s", name, version);
        content_type = arena_printf(
            call->arena, "application/json;g=apidiscovery.k8s.io;v=%s;as=APIGroupDiscoveryList",
            version);
    }
    body = bundle_find(name, &len);
    if (!body)
        return call_fail_no_path(call);
    if (!is_read(call))
        return call_fail_path(call, 405);
    return call_reply_text(call, 200, content_type, body, len);
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

    if (type == ROUTE_UNKNOWN)
        return call_fail_no_path(call);
    if (type != ROUTE_VERSION && type != ROUTE_HEALTH)
        return reply_document(call);
    if (!is_read(call))
        return call_fail_path(call, 405);
    return type == ROUTE_HEALTH ? reply_health(call)
                                : call_reply(call, 200, make_version(call->arena));
}
