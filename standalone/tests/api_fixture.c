#include "standalone/tests/api_fixture.h"

#include <check.h>
#include <malloc.h>
#include <string.h>

#include "common/base/str.h"

uint64_t api_history;
const char *api_vfs;
const struct admission_policy *api_policy;
int64_t (*api_wall_us)(void *ctx);
struct api *api;
struct user api_user;
const char *api_accept;
struct api_reply api_answer;

static void open_api(void)
{
    kv_fixture_open(&kv_store);

    const struct api_options options = { .kv = kv_store.kv,
                                         .resources = test_resources,
                                         .clock = &kv_store.clock.clock,
                                         .policy = api_policy,
                                         .collector_retry_ms = 20 };

    api = api_create(&options);
}

void api_restart(void (*meanwhile)(void))
{
    api_destroy(api);
    kv_fixture_close(&kv_store);
    if (meanwhile)
        meanwhile();
    open_api();
}

void api_setup(void)
{
    api_accept = NULL;
    resources_setup();
    kv_store_begin();
    kv_store.options.history_revisions = api_history;
    kv_store.options.vfs = api_vfs;
    if (api_wall_us)
        kv_store.clock.clock.wall_us = api_wall_us;
    open_api();
    api_user = (struct user){ .name = "tester", .role = ROLE_ADMIN };
    (void)ask("POST", "/api/v1/namespaces",
              "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"default\"}}",
              201);
}

void api_teardown(void)
{
    api_destroy(api);
    kv_store_end();
    resources_teardown();
}

static void handle(struct arena *arena, const char *method, const char *path, const char *type,
                   const char *body, struct api_reply *ret)
{
    const char *question = strchr(path, '?');
    const struct api_request request = {
        .method = method,
        .path = question ? arena_strndup(arena, path, (size_t)(question - path)) : path,
        .query = question ? question + 1 : "",
        .content_type = arena_printf(arena, "application/%s", type),
        .accept = api_accept,
        .user_agent = "tester/1.0",
        .body = body ? body : "",
        .body_len = body ? strlen(body) : 0,
        .user = &api_user,
    };

    api_handle(api, arena, &request, ret);
}

void api_try(const char *method, const char *path, const char *type, const char *body)
{
    handle(test_arena, method, path, type, body, &api_answer);
}

int api_status(const char *method, const char *path, const char *type, const char *body)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct api_reply reply;

    handle(arena, method, path, type, body, &reply);
    return reply.status;
}

void api_put(const char *name, const char *more, size_t bytes)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    char *data = arena_alloc(arena, bytes + 1, 1);

    memset(data, 'x', bytes);
    ck_assert_int_eq(
        api_status("POST", CONFIGMAPS, "json",
                   arena_printf(arena, "{\"metadata\":{\"name\":\"%s\"%s},\"data\":{\"d\":\"%s\"}}",
                                name, more, data)),
        201);
}

size_t api_allocated(void)
{
    const struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

void api_send(const char *method, const char *path, const char *type, const char *body, int status)
{
    api_try(method, path, type, body);
    ck_assert_msg(api_answer.status == status, "%s %s: %d and not %d: %s", method, path,
                  api_answer.status, status, api_answer.body ? api_answer.body : "a watch");
}

static const cJSON *ask_as(const char *method, const char *path, const char *type, const char *body,
                           int status)
{
    const cJSON *tree = NULL;

    api_send(method, path, type, body, status);
    if (api_answer.body && api_answer.body[0] == '{')
        tree = parsed(test_arena, api_answer.body);
    return tree;
}

const cJSON *ask(const char *method, const char *path, const char *body, int status)
{
    return ask_as(method, path, "json", body, status);
}

const cJSON *ask_patch(const char *path, const char *type, const char *body, int status)
{
    return ask_as("PATCH", path, type, body, status);
}

const char *refusal(const char *method, const char *path, const char *body, int status)
{
    const cJSON *answer = ask(method, path, body, status);

    ck_assert_str_eq(json_get_string(answer, "kind"), "Status");
    ck_assert_str_eq(json_get_string(answer, "apiVersion"), "v1");
    ck_assert_int_eq(json_int(json_get(answer, "code"), 0), status);
    return arena_printf(test_arena, "%s: %s", json_get_string(answer, "reason"),
                        json_get_string(answer, "message"));
}

const char *task_text(const char *name, const char *more_metadata, const char *more_spec)
{
    return arena_printf(
        test_arena,
        "{\"apiVersion\":\"propeller.propeller.abstractmachines.fr/v1\",\"kind\":\"Task\","
        "\"metadata\":{\"name\":\"%s\"%s},\"spec\":{\"name\":\"%s\",\"functionName\":\"main\","
        "\"file\":\"AGFzbQEAAAA=\"%s}}",
        name, more_metadata, name, more_spec);
}

const char *meta(const cJSON *object, const char *field)
{
    return json_string(json_path(object, "metadata", field, NULL), "");
}

struct api_watch *watch_open(const char *path)
{
    (void)ask("GET", path, NULL, 200);
    ck_assert_ptr_nonnull(api_answer.watch);
    return api_answer.watch;
}

const char *watch_next(struct api_watch *watch)
{
    const char *line = NULL;
    size_t len = 0;
    int r = api_watch_next(watch, test_arena, &line, &len);

    if (r <= 0)
        return r < 0 ? "END" : ".";
    ck_assert_uint_eq(strlen(line), len);
    ck_assert_int_eq(line[len - 1], '\n');

    const cJSON *event = parsed(test_arena, arena_strndup(test_arena, line, len - 1));
    const cJSON *object = json_get(event, "object");
    const char *type = json_get_string(event, "type");

    if (str_equal(type, "ERROR"))
        return arena_printf(test_arena, "ERROR %d", (int)json_int(json_get(object, "code"), 0));
    return arena_printf(test_arena, "%s %s@%s", type, meta(object, "name"),
                        meta(object, "resourceVersion"));
}

void api_collect(void)
{
    struct error err;

    ck_assert_int_eq(api_start_collector(api, &err), 0);
}

void await_gone(const char *path)
{
    AWAIT(api_status("GET", path, "json", NULL) == 404);
}
