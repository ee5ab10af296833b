#include <string.h>

#include "common/base/str.h"
#include "common/base/version.h"
#include "standalone/api/call.h"
#include "standalone/schema/bundle.h"

static const char JSON[] = "application/json";
static const char PROTOBUF[] = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/* /api, /apis and /openapi/v2 have more than one form, whose names have a blank. */
static int reply_document(struct api_call *call)
{
    const char *name = call->route.document, *content_type = JSON, *body;
    bool is_groups = str_equal(name, "/api") || str_equal(name, "/apis");
    size_t len;

    if (strchr(name, ' '))
        return call_fail_path(call, 404);
    if (str_equal(name, "/openapi/v2") && call->format.type == FORMAT_PROTOBUF) {
        name = "/openapi/v2 protobuf";
        content_type = PROTOBUF;
    } else if (is_groups && call->format.type == FORMAT_AGGREGATED && call_is_read(call)) {
        const char *version = call->format.version ? call->format.version : "v2";

        name = arena_printf(call->arena, "%s %s", name, version);
        content_type = arena_printf(
            call->arena, "application/json;g=apidiscovery.k8s.io;v=%s;as=APIGroupDiscoveryList",
            version);
    }
    body = bundle_find(name, &len);
    if (!body)
        return call_fail_path(call, 404);
    if (!call_is_read(call))
        return call_fail_path(call, 405);
    return call_reply_text(call, 200, content_type, body, len);
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
        return call_fail_path(call, 404);
    if (type == ROUTE_DOCUMENT)
        return reply_document(call);
    if (!call_is_read(call))
        return call_fail_path(call, 405);
    if (type == ROUTE_HEALTH)
        return reply_health(call);

    /* The version whose words and behaviour are followed; clients choose by it what they ask for. */
    const char *text = arena_printf(
        call->arena,
        "{\"major\":\"1\",\"minor\":\"34\",\"gitVersion\":\"v1.34.0+propeller-standalone\","
        "\"gitCommit\":\"%s\",\"gitTreeState\":\"clean\",\"buildDate\":\"1970-01-01T00:00:00Z\","
        "\"goVersion\":\"\",\"compiler\":\"\",\"platform\":\"linux\"}\n",
        version_name());

    return call_reply_text(call, 200, JSON, text, strlen(text));
}
