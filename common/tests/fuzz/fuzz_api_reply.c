/* Replies of an API server: the first byte chooses the status, the rest is the body. */
#include "common/api/kinds.h"
#include "common/base/log.h"
#include "common/kube/client.h"
#include "common/tests/fuzz/target.h"

/* 'a' is the first, and so on. */
static const int STATUSES[] = { 200, 201, 400, 401, 403, 404, 409, 410,
                                413, 422, 429, 500, 503, 504, 302, 0 };

/* The same answer to each request, but not for ever: it may have a continue token. */
struct script {
    struct http_response response;
    unsigned left;
};

static int roundtrip(void *ctx, struct arena *arena UNUSED,
                     const struct http_request *request UNUSED, struct http_response *ret,
                     struct error *err)
{
    struct script *script = ctx;

    if (!script->left)
        return error_set(err, ERROR_UNAVAILABLE, "no more");
    script->left--;
    *ret = script->response;
    return 0;
}

static void check_error(int r, const struct error *err)
{
    REQUIRE(r < 0 && r == -(int)err->code && err->message[0]);
}

static int see_item(void *ctx UNUSED, const cJSON *item, struct error *err UNUSED)
{
    REQUIRE(item);
    return 0;
}

static void get(struct kube_client *client)
{
    cJSON *object = NULL;
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct kube_name name = { .ns = "ns", .name = "a" };
    struct error err = { 0 };

    int r = kube_get(client, arena, &KIND_TASK, &name, &object, &err);
    if (r < 0) {
        check_error(r, &err);
        return;
    }
    REQUIRE(*json_string(json_path(object, "metadata", "name", NULL), ""));
    (void)kube_controller_uid(object);
}

void fuzz_input(const uint8_t *bytes, size_t len)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    if (!len)
        return;

    char *body = arena_alloc(arena, len, 1);
    memcpy(body, bytes + 1, len - 1);
    struct script script = {
        .response = { .status = STATUSES[(uint8_t)(bytes[0] - 'a') % ARRAY_LEN(STATUSES)],
                      .body = body,
                      .body_len = len - 1 },
        .left = 3,
    };
    struct kube_list_options options = { .ns = NULL };
    struct error err = { 0 };

    json_init();
    log_configure(LOG_ERROR, LOG_JSON);
    struct kube_client *client = kube_client_create_with(roundtrip, &script);
    get(client);
    int r = kube_list(client, &KIND_TASK, &options, see_item, NULL, &err);
    if (r < 0)
        check_error(r, &err);
    kube_client_destroy(client);
}
