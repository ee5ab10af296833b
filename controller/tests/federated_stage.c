#include "controller/tests/federated_stage.h"

#include <string.h>

#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "common/tests/parsed.h"
#include "controller/federated/model_cache.h"
#include "controller/federated/model_export.h"
#include "controller/federated/round_order.h"
#include "controller/tests/memory_store.h"
#include "controller/tests/staged.h"

#define MAX_TURNS 5000
#define SOON_MS 10000
#define MAX_DUE 32

struct federated_stage federated;

/* A turn that a reconciler wants by itself. */
struct due {
    struct kube_name name;
    int64_t at_ms; /* 0: free */
};

struct kind_queue {
    struct workqueue *queue;
    reconcile_fn *reconcile;
    void *self;
    struct due due[MAX_DUE];
};

static struct {
    struct kube_client *client;
    struct events *events;
    struct kube_config *config;
    struct watch_loop *loop;
    struct model_store *memory; /* outlives the processes */
    struct model_store *store;  /* of this process: memory, or ConfigMaps by its client */
    struct kind_queue jobs, rounds;
} process;

static int roundtrip(void *ctx, struct arena *arena, const struct http_request *request,
                     struct http_response *ret, struct error *err)
{
    if (federated.dead)
        return error_set(err, ERROR_UNAVAILABLE, "dead");
    if (++federated.steps != federated.fail_at)
        return fake_api_roundtrip(ctx, arena, request, ret, err);
    return staged_failure(federated.fault, &federated.dead, ctx, arena, request, ret, err);
}

/* A use of the model store is a step, too. */
static int before_store(void *ctx UNUSED, struct error *err)
{
    if (federated.looking)
        return 0;
    if (federated.dead)
        return error_set(err, ERROR_UNAVAILABLE, "dead");
    if (++federated.steps != federated.fail_at)
        return 0;
    federated.dead = federated.fault >= FAULT_CRASH_BEFORE;
    return error_set(err, ERROR_UNAVAILABLE, "the store fails");
}

/* ctx: the kind. */
static void on_kind(void *ctx, struct kube_object *old, struct kube_object *current)
{
    const struct staged staged[] = {
        { &KIND_FEDERATEDJOB, &federated.job, process.jobs.queue },
        { &KIND_TRAININGROUND, &federated.round, process.rounds.queue },
        { &KIND_TASK, NULL, federated.task_queue },
    };

    staged_changed(staged, ARRAY_LEN(staged), ctx, old, current);
}

static const struct kube_kind *const KINDS[] = { &KIND_TASK, &KIND_PROPLET, &KIND_TRAININGROUND,
                                                 &KIND_FEDERATEDJOB };
static struct informer *informers[ARRAY_LEN(KINDS)];

/* What a watch would tell. */
static void on_change(void *ctx UNUSED, const cJSON *old, const cJSON *current)
{
    const cJSON *either = current ? current : old;
    const char *kind_name = json_string(json_get(either, "kind"), "");
    CLEANUP(kube_object_unrefp) struct kube_object *object = NULL;
    size_t kind = 0;

    while (kind < ARRAY_LEN(KINDS) && !str_equal(KINDS[kind]->kind, kind_name))
        kind++;
    if (federated.dead || kind == ARRAY_LEN(KINDS))
        return;
    ck_assert_int_eq(kube_object_create(either, &object, NULL), 0);
    if (current) {
        cJSON *reply = json_copy(current);
        informer_observed(informers[kind], reply);
        json_free(reply);
        return;
    }
    const struct kube_name gone = kube_object_name(object);
    CLEANUP(kube_object_unrefp)
    struct kube_object *removed =
        store_remove(informer_store(informers[kind]), &gone, object->resource_version);
    if (removed)
        on_kind((void *)(uintptr_t)KINDS[kind], removed, NULL);
}

static int on_item(void *ctx UNUSED, const cJSON *item, struct error *err UNUSED)
{
    on_change(NULL, NULL, item);
    return 0;
}

static void start_process(void)
{
    const struct kube_list_options options = { 0 };
    struct error err = { 0 };

    federated.dead = false;
    process.client = kube_client_create_with(roundtrip, federated.api);
    process.events = events_create(process.client, "test", "test", &federated.clock.clock);
    process.loop = watch_loop_create(process.config);
    process.store = federated.user_store == process.memory
                        ? process.memory
                        : model_store_configmap_create(process.client);
    process.jobs = (struct kind_queue){
        .queue = workqueue_create("federatedjob", &federated.clock.clock),
        .reconcile = federatedjob_reconcile,
        .self = &federated.job,
    };
    process.rounds = (struct kind_queue){
        .queue = workqueue_create("traininground", &federated.clock.clock),
        .reconcile = traininground_reconcile,
        .self = &federated.round,
    };
    federated.task_queue = workqueue_create("task", &federated.clock.clock);
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
        informers[i] = staged_cache(process.loop, KINDS[i]);
        informer_subscribe(informers[i], on_kind, (void *)(uintptr_t)KINDS[i]);
    }
    federated.round = (struct traininground_deps){
        .timeline = fake_clock_timeline(&federated.clock, federated.round.timeline),
        .tasks = informers[0],
        .proplets = informers[1],
        .rounds = informers[2],
        .jobs = informers[3],
        .models = process.store,
        .cache = model_cache_create(process.store),
        .gone = gone_scopes_create(process.store, &KIND_TRAININGROUND),
    };
    federated.job = (struct federatedjob_deps){
        .timeline = federated.round.timeline,
        .tasks = informers[0],
        .rounds = informers[2],
        .jobs = informers[3],
        .models = process.store,
        .gone = gone_scopes_create(process.store, &KIND_FEDERATEDJOB),
        .exports = model_exports_create(&federated.clock.clock),
    };
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++)
        ck_assert_int_eq(kube_list(federated.user, KINDS[i], &options, on_item, NULL, &err), 0);
}

static void end_process(void)
{
    events_destroy(process.events);
    watch_loop_destroy(process.loop);
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++)
        informer_destroy(informers[i]);
    model_cache_destroy(federated.round.cache);
    gone_scopes_destroy(federated.round.gone);
    gone_scopes_destroy(federated.job.gone);
    model_exports_destroy(federated.job.exports);
    if (process.store != process.memory)
        model_store_destroy(process.store);
    workqueue_destroy(federated.task_queue);
    workqueue_destroy(process.jobs.queue);
    workqueue_destroy(process.rounds.queue);
    kube_client_destroy(process.client);
}

void federated_stage_set_up(void)
{
    json_init();
    federated = (struct federated_stage){ .arena = arena_create(), .api = fake_api_create() };
    fake_clock_init(&federated.clock);
    log_configure(LOG_ERROR, LOG_TEXT);
    process.config = staged_config(federated.arena);
    federated.user = kube_client_create_with(fake_api_roundtrip, federated.api);
    process.memory = memory_store_create(1u << 20, before_store, NULL);
    federated.user_store = process.memory;
    for (const char *name = "abcd"; *name; name++)
        federated_stage_put_proplet((const char[]){ *name, '\0' }, "Running");
    federated_stage_put_proplet("e", "Offline");
    start_process();
    fake_api_on_change(federated.api, on_change, NULL);
}

void federated_stage_tear_down(void)
{
    end_process();
    if (federated.user_store != process.memory)
        model_store_destroy(federated.user_store);
    model_store_destroy(process.memory);
    kube_client_destroy(federated.user);
    kube_config_destroy(process.config);
    fake_api_destroy(federated.api);
    timeline_destroy(federated.round.timeline);
    arena_destroy(federated.arena);
}

void federated_stage_use_configmaps(void)
{
    end_process();
    federated.user_store = model_store_configmap_create(federated.user);
    start_process();
}

const cJSON *federated_stage_get(const struct kube_kind *kind, const char *name)
{
    const struct kube_name key = staged_name(name);

    return fake_api_get(federated.api, federated.arena, kind, &key);
}

void federated_stage_put(const char *spec)
{
    staged_put(federated.api, &KIND_FEDERATEDJOB, "job", parsed(federated.arena, spec), NULL);
}

void federated_stage_annotate(const char *restart)
{
    cJSON *job = json_copy(federated_stage_get(&KIND_FEDERATEDJOB, "job"));

    arena_own(federated.arena, job, json_free);
    cJSON *metadata = (cJSON *)(uintptr_t)json_get(job, "metadata");
    json_set_string(json_set_object(metadata, "annotations"), ANNOTATION_RESTART, restart);
    fake_api_put(federated.api, &KIND_FEDERATEDJOB, job);
}

void federated_stage_put_proplet(const char *name, const char *phase)
{
    staged_put(federated.api, &KIND_PROPLET, name,
               parsed(federated.arena, "{\"type\":\"external\"}"),
               parsed(federated.arena, arena_printf(federated.arena, "{\"phase\":\"%s\"}", phase)));
}

void federated_stage_put_availability(const char *name, const char *availability)
{
    staged_put(federated.api, &KIND_PROPLET, name,
               parsed(federated.arena, "{\"type\":\"external\"}"),
               parsed(federated.arena,
                      arena_printf(federated.arena, "{\"phase\":\"Running\",\"availability\":%s}",
                                   availability)));
}

void federated_stage_delete(const struct kube_kind *kind, const char *name)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct kube_name key = staged_name(name);
    cJSON *object = json_copy(fake_api_get(federated.api, arena, kind, &key));

    json_remove((cJSON *)(uintptr_t)json_get(object, "metadata"), "finalizers");
    fake_api_put(federated.api, kind, object);
    json_free(object);
    fake_api_delete(federated.api, kind, &key);
}

void federated_stage_set_task(const char *name, const char *status)
{
    staged_put(federated.api, &KIND_TASK, name, NULL, parsed(federated.arena, status));
}

void federated_stage_end_task(const char *name, const char *update, int samples)
{
    struct arena *arena = federated.arena;

    if (!update) {
        staged_put(federated.api, &KIND_TASK, name, NULL,
                   parsed(arena, "{\"phase\":\"failed\",\"reason\":\"DeviceError\"}"));
        return;
    }
    staged_put(federated.api, &KIND_TASK, name, NULL,
               parsed(arena, arena_printf(arena,
                                          "{\"phase\":\"completed\",\"results\":{\"format\":"
                                          "\"json-f64\",\"numSamples\":%d,\"update_b64\":\"%s\"}}",
                                          samples, base64_encode(arena, update, strlen(update)))));
}

static void remember(struct kind_queue *kind, const struct kube_name *name, int64_t at_ms)
{
    for (size_t i = 0; i < MAX_DUE; i++) {
        struct due *due = &kind->due[i];
        if (due->at_ms && !kube_name_equal(&due->name, name))
            continue;
        *due = (struct due){ .name = *name, .at_ms = at_ms };
        return;
    }
    ck_abort_msg("too many names");
}

static void turn(struct kind_queue *kind)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct reconcile rc = { .arena = arena,
                            .client = process.client,
                            .events = process.events,
                            .clock = &federated.clock.clock };
    struct error err = { 0 };

    fake_clock_advance(&federated.clock, ROUND_SETTLE_MS);
    ck_assert(workqueue_get(kind->queue, &rc.name));
    int r = kind->reconcile(kind->self, &rc, &err);
    workqueue_done(kind->queue, &rc.name);
    federated.errors += r < 0;
    if (r < 0 && r != -ERROR_INVALID)
        workqueue_add(kind->queue, &rc.name);
    else if (rc.requeue_after_ms)
        remember(kind, &rc.name, clock_monotonic_ms(&federated.clock.clock) + rc.requeue_after_ms);
}

/* The earliest that is due soon; NULL: none. */
static struct due *next_due(struct kind_queue *kind)
{
    struct due *first = NULL;

    for (size_t i = 0; i < MAX_DUE; i++) {
        struct due *due = &kind->due[i];
        if (due->at_ms && (!first || due->at_ms < first->at_ms) &&
            due->at_ms - clock_monotonic_ms(&federated.clock.clock) <= SOON_MS)
            first = due;
    }
    return first;
}

static bool step(struct kind_queue *kind)
{
    if (workqueue_len(kind->queue)) {
        turn(kind);
        return true;
    }
    struct due *due = next_due(kind);
    if (!due)
        return false;
    int64_t left_ms = due->at_ms - clock_monotonic_ms(&federated.clock.clock);
    if (left_ms > 0)
        fake_clock_advance(&federated.clock, left_ms);
    due->at_ms = 0;
    workqueue_add(kind->queue, &due->name);
    return true;
}

void federated_stage_run(void)
{
    int turns = 0;
    bool busy = true;

    while (busy) {
        ck_assert_msg(++turns < MAX_TURNS, "no rest after %d turns", MAX_TURNS);
        if (federated.dead) {
            if (federated.at_death)
                federated.at_death();
            end_process();
            start_process();
        }
        busy = step(&process.rounds);
        busy = (!federated.dead && step(&process.jobs)) || busy || federated.dead;
    }
}

void federated_stage_wait_ms(int64_t ms)
{
    fake_clock_advance(&federated.clock, ms);
    for (size_t i = 0; i < MAX_DUE; i++) {
        if (process.rounds.due[i].at_ms)
            workqueue_add(process.rounds.queue, &process.rounds.due[i].name);
        if (process.jobs.due[i].at_ms)
            workqueue_add(process.jobs.queue, &process.jobs.due[i].name);
    }
}
