#include "common/tests/fake_api.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/str.h"
#include "common/tests/fake_verbs.h"

struct fake_api {
    pthread_mutex_t lock;
    struct fake_store store;
    struct logged {
        const char *method;
        char *path;
    } * log;
    size_t log_len;
    unsigned fail_in; /* requests until the failure; 0: none */
    enum fake_failure failure;
};

struct fake_api *fake_api_create(void)
{
    struct fake_api *api = xcalloc(1, sizeof(*api));

    pthread_mutex_init(&api->lock, NULL);
    return api;
}

void fake_api_destroy(struct fake_api *api)
{
    if (!api)
        return;
    fake_store_release(&api->store);
    for (size_t i = 0; i < api->log_len; i++)
        free(api->log[i].path);
    free(api->log);
    pthread_mutex_destroy(&api->lock);
    free(api);
}

void fake_api_set_clock(struct fake_api *api, const struct clock *clock)
{
    api->store.clock = clock;
}

void fake_api_on_change(struct fake_api *api, fake_change_fn *function, void *ctx)
{
    pthread_mutex_lock(&api->lock);
    api->store.on_change = function;
    api->store.ctx = ctx;
    pthread_mutex_unlock(&api->lock);
}

void fake_api_fail(struct fake_api *api, unsigned k, enum fake_failure failure)
{
    pthread_mutex_lock(&api->lock);
    api->fail_in = k;
    api->failure = failure;
    pthread_mutex_unlock(&api->lock);
}

static const char *known_method(const char *method)
{
    static const char *const METHODS[] = { "GET", "POST", "PUT", "PATCH", "DELETE" };

    for (size_t i = 0; i < ARRAY_LEN(METHODS); i++) {
        if (str_equal(METHODS[i], method))
            return METHODS[i];
    }
    return "?";
}

static void record(struct fake_api *api, const struct http_request *request)
{
    if (!api->log)
        api->log = xcalloc(FAKE_MAX_LOG, sizeof(*api->log));
    if (api->log_len < FAKE_MAX_LOG)
        api->log[api->log_len++] = (struct logged){
            .method = known_method(request->method),
            .path = xstrdup(request->path),
        };
}

static int execute_or_fail(struct fake_api *api, struct fake_exchange *x, struct error *err)
{
    bool fails = api->fail_in && --api->fail_in == 0;
    const char *method = x->request->method;
    bool can_conflict = !str_equal(method, "GET") && !str_equal(method, "POST");

    if (!fails) {
        fake_execute(x);
        return 0;
    }
    switch (api->failure) {
    case FAKE_REFUSED:
        return error_set(err, ERROR_UNAVAILABLE, "connect to the fake: Connection refused");
    case FAKE_LOST_REPLY:
        fake_execute(x);
        return error_set(err, ERROR_TIMEOUT, "no reply from the fake");
    default:
        if (api->failure == FAKE_CONFLICT && can_conflict)
            fake_refuse(x, 409, "Conflict", "the object has been modified");
        else
            fake_refuse(x, 500, "InternalError", "an error that was asked for");
        return 0;
    }
}

int fake_api_roundtrip(void *ctx, struct arena *arena, const struct http_request *request,
                       struct http_response *ret, struct error *err)
{
    struct fake_api *api = ctx;
    struct fake_exchange x = {
        .store = &api->store, .arena = arena, .request = request, .ret = ret
    };

    pthread_mutex_lock(&api->lock);
    record(api, request);
    int r = execute_or_fail(api, &x, err);
    pthread_mutex_unlock(&api->lock);
    return r;
}

/* As an API server counts, except where a test gives a generation of its own. */
static void count_generation(const cJSON *before, cJSON *current)
{
    int64_t counted = json_int(json_path(before, "metadata", "generation", NULL), 1);

    if (!json_equal(json_get(before, "spec"), json_get(current, "spec")))
        counted++;
    if (json_int(json_path(current, "metadata", "generation", NULL), 0) < counted)
        json_set_int(fake_metadata(current), "generation", counted);
}

void fake_api_put(struct fake_api *api, const struct kube_kind *kind, const cJSON *object)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct kube_name name;
    bool fits = kube_name_set(&name, fake_metadata_string(object, "namespace"),
                              fake_metadata_string(object, "name"));
    assert(fits);
    (void)fits;

    const char *key = fake_path_object_key(arena, kind, &name);
    cJSON *current = json_copy(object);
    pthread_mutex_lock(&api->lock);
    struct fake_entry *entry = fake_store_find(&api->store, key);
    if (entry) {
        json_set_string(fake_metadata(current), "uid", fake_metadata_string(entry->object, "uid"));
        count_generation(entry->object, current);
        fake_store_replace(&api->store, entry, current);
    } else {
        fake_store_complete(&api->store, current);
        fake_store_insert(&api->store, key, current);
    }
    pthread_mutex_unlock(&api->lock);
}

void fake_api_delete(struct fake_api *api, const struct kube_kind *kind,
                     const struct kube_name *name)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct http_request request = { .method = "DELETE", .path = fake_path_of(arena, kind, name) };
    struct http_response response;
    struct fake_exchange x = {
        .store = &api->store, .arena = arena, .request = &request, .ret = &response
    };

    pthread_mutex_lock(&api->lock);
    fake_execute(&x);
    pthread_mutex_unlock(&api->lock);
}

const cJSON *fake_api_get(struct fake_api *api, struct arena *arena, const struct kube_kind *kind,
                          const struct kube_name *name)
{
    const char *key = fake_path_object_key(arena, kind, name);
    cJSON *copy = NULL;

    pthread_mutex_lock(&api->lock);
    const struct fake_entry *entry = fake_store_find(&api->store, key);
    if (entry)
        copy = json_copy(entry->object);
    pthread_mutex_unlock(&api->lock);
    return arena_own(arena, copy, json_free);
}

size_t fake_api_requests(struct fake_api *api, struct arena *arena, struct fake_request **ret)
{
    pthread_mutex_lock(&api->lock);
    size_t len = api->log_len;
    *ret = arena_array(arena, struct fake_request, len);
    for (size_t i = 0; i < len; i++)
        (*ret)[i] = (struct fake_request){ .method = api->log[i].method,
                                           .path = arena_strdup(arena, api->log[i].path) };
    pthread_mutex_unlock(&api->lock);
    return len;
}
