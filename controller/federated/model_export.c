#include "controller/federated/model_export.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/log.h"
#include "common/base/map.h"
#include "common/base/str.h"
#include "controller/task/plan/task_retry_plan.h"

struct failing {
    int64_t failures;
    int64_t retry_ms; /* monotonic */
};

struct model_exports {
    const struct clock *clock;
    pthread_mutex_t lock;
    struct map *failing; /* of struct failing, by the uid of the job */
};

struct model_exports *model_exports_create(const struct clock *clock)
{
    struct model_exports *exports = xcalloc(1, sizeof(*exports));

    exports->clock = clock;
    pthread_mutex_init(&exports->lock, NULL);
    exports->failing = map_create(free);
    return exports;
}

void model_exports_destroy(struct model_exports *exports)
{
    if (!exports)
        return;
    map_destroy(exports->failing);
    pthread_mutex_destroy(&exports->lock);
    free(exports);
}

void model_exports_forget(struct model_exports *exports, const char *uid)
{
    pthread_mutex_lock(&exports->lock);
    map_remove(exports->failing, uid);
    pthread_mutex_unlock(&exports->lock);
}

/* Milliseconds until it may be tried; 0: now. */
static uint32_t wait_ms(struct model_exports *exports, const char *uid)
{
    pthread_mutex_lock(&exports->lock);
    const struct failing *failing = map_get(exports->failing, uid);
    int64_t left_ms = failing ? failing->retry_ms - clock_monotonic_ms(exports->clock) : 0;
    pthread_mutex_unlock(&exports->lock);
    return left_ms > 0 ? (uint32_t)left_ms : 0;
}

/* Returns the delay until the next try. */
static uint32_t note_failure(struct model_exports *exports, const char *uid)
{
    pthread_mutex_lock(&exports->lock);
    struct failing *failing = map_get(exports->failing, uid);
    if (!failing) {
        failing = xcalloc(1, sizeof(*failing));
        map_set(exports->failing, uid, failing);
    }
    int64_t delay_ms = retry_delay_s(++failing->failures) * 1000;
    failing->retry_ms = clock_monotonic_ms(exports->clock) + delay_ms;
    pthread_mutex_unlock(&exports->lock);
    return (uint32_t)delay_ms;
}

/* "exports/<namespace>/<path>/<name>"; uri has been checked. */
static const char *key_of(struct arena *arena, const char *uri, const char *name)
{
    const char *bucket = strstr(uri, "://") + strlen("://");

    return arena_printf(arena, "%s/%s", strchr(bucket, '/') + 1, name);
}

static bool is_bucket(const char *uri, const char *bucket)
{
    const char *named = strstr(uri, "://") + strlen("://");

    return strcspn(named, "/") == strlen(bucket) && str_has_prefix(named, bucket);
}

static int copy(struct model_store *store, struct arena *arena, const struct model_scope *scope,
                const struct model_checkpoint *model, const char *uri, const char *name,
                struct error *err)
{
    const char *bytes;
    size_t len;
    int r = model_store_get(store, arena, scope, model->ref, &bytes, &len, err);

    if (r == 0)
        r = model_store_s3_write(store, key_of(arena, uri, name), bytes, len, err);
    return r < 0 ? r : model_store_s3_write(store, key_of(arena, uri, "latest"), bytes, len, err);
}

struct observed_export model_export(struct model_exports *exports, struct model_store *store,
                                    struct arena *arena, const struct model_scope *scope,
                                    const struct federatedjob *job)
{
    const struct model_checkpoint *model = job->status.last_checkpoint;
    const char *uri = federatedjob_export_uri(arena, job->spec.checkpoint->uri, scope->owner.ns);
    const char *bucket = model_store_s3_bucket(store);
    const char *name = arena_printf(arena, "round-%" PRId64, model->round);
    struct observed_export ret = { .state = EXPORT_WAITS,
                                   .retry_ms = wait_ms(exports, scope->uid) };
    struct error err = { 0 };

    if (ret.retry_ms)
        return ret;
    ret.state = EXPORT_FAILED;
    ret.message = federatedjob_export_problem(uri, scope->owner.ns);
    if (ret.message || !bucket) {
        ret.reason = REASON_EXPORT_NOT_CONFIGURED;
        ret.message = ret.message ? arena_printf(arena, "spec.checkpoint.uri: %s", ret.message)
                                  : "the controller has no --model-store s3";
    } else if (!is_bucket(uri, bucket)) {
        ret.reason = REASON_OTHER_BUCKET;
        ret.message = "the bucket of spec.checkpoint.uri is not the one of --s3-bucket";
    } else if (copy(store, arena, scope, model, uri, name, &err) < 0) {
        ret.reason = REASON_STORE_FAILED;
        ret.message = arena_strdup(arena, err.message);
    } else {
        model_exports_forget(exports, scope->uid);
        return (struct observed_export){ .state = EXPORT_DONE,
                                         .uri = arena_printf(arena, "%s/%s", uri, name) };
    }
    ret.retry_ms = note_failure(exports, scope->uid);
    log_warn("a model was not copied, trying again later", "job", scope->uid, "error", ret.message,
             NULL);
    return ret;
}
