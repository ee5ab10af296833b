#include "common/runtime/controller.h"

#include <assert.h>
#include <stdatomic.h>

#include "common/base/alloc.h"
#include "common/base/log.h"
#include "common/runtime/metrics.h"
#include "common/runtime/thread.h"

/* Above about eight writers the API server is the limit; a larger number is a mistake. */
#define MAX_WORKERS 64

/* Names and results of controller-runtime. */
static struct metric results = { .type = METRIC_COUNTER,
                                 .name = "controller_runtime_reconcile_total",
                                 .help = "Total number of reconciliations per controller.",
                                 .labels = { "controller", "result" } };
static struct metric times = { .type = METRIC_HISTOGRAM,
                               .name = "controller_runtime_reconcile_time_seconds",
                               .help = "Length of time per reconciliation per controller.",
                               .labels = { "controller" } };

static struct metric active = { .type = METRIC_GAUGE,
                                .name = "controller_runtime_active_workers",
                                .help = "Number of workers that reconcile now, per controller.",
                                .labels = { "controller" } };

/* Between an informer and the queue. */
struct source {
    struct source *next;
    struct controller *controller;
    struct controller_source source;
};

struct controller {
    struct controller_options options;
    struct kube_client *client;
    struct events *events;
    const struct clock *clock;
    struct workqueue *queue;
    struct source *first; /* in the order in which they were added */
    struct source **last;
    atomic_bool started; /* what changes is queued */
    pthread_t *workers;
    unsigned running;
};

void map_self(void *self UNUSED, struct kube_object *old, struct kube_object *current,
              struct workqueue *queue)
{
    workqueue_add_object(queue, current ? current : old);
}

/* Informer's thread. */
static void source_changed(void *ctx, struct kube_object *old, struct kube_object *current)
{
    const struct source *from = ctx;

    if (atomic_load(&from->controller->started))
        from->source.map(from->source.self, old, current, from->controller->queue);
}

struct controller *controller_create(const struct controller_options *options,
                                     struct kube_client *client, struct events *events,
                                     const struct clock *clock)
{
    struct controller *controller = xcalloc(1, sizeof(*controller));

    assert(options->workers > 0 && options->workers <= MAX_WORKERS);
    controller->options = *options;
    controller->client = client;
    controller->events = events;
    controller->clock = clock;
    controller->queue = workqueue_create(options->name, clock);
    metric_add(&active, 0, options->name, NULL);
    metric_add(&times, 0, options->name, NULL);
    controller->workers = xcalloc(options->workers, sizeof(pthread_t));
    controller->last = &controller->first;
    atomic_init(&controller->started, false);
    return controller;
}

void controller_watch(struct controller *controller, const struct controller_source *source)
{
    struct source *added = xcalloc(1, sizeof(*added));

    added->controller = controller;
    added->source = *source;
    *controller->last = added;
    controller->last = &added->next;
    informer_subscribe(source->informer, source_changed, added);
}

void controller_destroy(struct controller *controller)
{
    if (!controller)
        return;
    controller_stop(controller);
    controller_join(controller);
    workqueue_destroy(controller->queue);
    free(controller->workers);
    for (struct source *next, *from = controller->first; from; from = next) {
        next = from->next;
        free(from);
    }
    free(controller);
}

struct workqueue *controller_queue(struct controller *controller)
{
    return controller->queue;
}

/* Queues the name again as its result demands; returns the label of it. */
static const char *requeue(struct controller *controller, const struct reconcile *rc, int result,
                           const struct error *err)
{
    const char *reason = error_code_name(err->code);

    if (result >= 0 || err->code == ERROR_INVALID)
        workqueue_forget(controller->queue, &rc->name);
    if (result >= 0 && !rc->requeue_after_ms)
        return "success";
    if (result >= 0) {
        workqueue_add_after(controller->queue, &rc->name, rc->requeue_after_ms);
        return "requeue_after";
    }

    switch (err->code) {
    case ERROR_INVALID:
        log_warn("reconcile failed, waiting for a change", "reason", reason, "error",
                 ERROR_TEXT(err), NULL);
        return "error";
    case ERROR_CONFLICT:
        log_debug("reconcile met a newer object, trying again", "error", ERROR_TEXT(err), NULL);
        workqueue_retry(controller->queue, &rc->name, err->retry_after_ms);
        return "requeue";
    case ERROR_CANCELED:
        log_debug("reconcile was canceled, trying again", "error", ERROR_TEXT(err), NULL);
        workqueue_retry(controller->queue, &rc->name, CONTROLLER_CANCELED_MS);
        return "requeue";
    default:
        log_warn("reconcile failed, trying again", "reason", reason, "error", ERROR_TEXT(err),
                 NULL);
        workqueue_retry(controller->queue, &rc->name, err->retry_after_ms);
        return "error";
    }
}

void controller_turn(struct controller *controller, const struct kube_name *name)
{
    const struct controller_options *options = &controller->options;
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct error err = { 0 };
    struct reconcile rc = { .name = *name,
                            .arena = arena,
                            .client = controller->client,
                            .events = controller->events,
                            .clock = controller->clock };

    log_fields_set("controller", options->name, "namespace", name->ns[0] ? name->ns : NULL, "name",
                   name->name, NULL);
    int64_t started_ms = clock_monotonic_ms(controller->clock);
    int r = options->reconcile(options->self, &rc, &err);
    int64_t took_ms = clock_monotonic_ms(controller->clock) - started_ms;

    assert(r >= 0 || -r == (int)err.code); /* an error that says nothing: a bug in the reconciler */
    metric_observe(&times, (double)took_ms / 1000, options->name, NULL);
    metric_add(&results, 1, options->name, requeue(controller, &rc, r, &err), NULL);
    log_fields_clear();
}

static void *worker(void *ctx)
{
    struct controller *controller = ctx;
    struct kube_name name;

    while (workqueue_get(controller->queue, &name)) {
        metric_add(&active, 1, controller->options.name, NULL);
        controller_turn(controller, &name);
        workqueue_done(controller->queue, &name);
        metric_add(&active, -1, controller->options.name, NULL);
    }
    return NULL;
}

/* What changes from here on is queued by source_changed; what was there before, here. */
static void queue_what_is_there(struct controller *controller)
{
    atomic_store(&controller->started, true);
    for (const struct source *from = controller->first; from; from = from->next) {
        const struct controller_source *source = &from->source;
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();
        struct object_list list = store_list(informer_store(source->informer), arena, NULL);

        for (size_t i = 0; i < list.len; i++)
            source->map(source->self, NULL, list.items[i], controller->queue);
    }
}

int controller_start(struct controller *controller, struct error *err)
{
    assert(!atomic_load(&controller->started));
    queue_what_is_there(controller);
    for (; controller->running < controller->options.workers; controller->running++) {
        int r = thread_start(&controller->workers[controller->running], controller->options.name,
                             worker, controller, err);
        if (r < 0) {
            controller_stop(controller);
            controller_join(controller);
            return r;
        }
    }
    return 0;
}

void controller_stop(struct controller *controller)
{
    workqueue_shutdown(controller->queue);
}

void controller_join(struct controller *controller)
{
    while (controller->running)
        thread_join(controller->workers[--controller->running]);
}

void reconcile_again_after(struct reconcile *rc, int64_t delay_ms)
{
    if (delay_ms < 1)
        delay_ms = 1;
    if (delay_ms > UINT32_MAX)
        delay_ms = UINT32_MAX;
    if (!rc->requeue_after_ms || delay_ms < rc->requeue_after_ms)
        rc->requeue_after_ms = (uint32_t)delay_ms;
}
