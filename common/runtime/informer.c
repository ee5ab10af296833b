#include "common/runtime/informer.h"

#include <assert.h>
#include <pthread.h>

#include "common/base/alloc.h"
#include "common/base/cond.h"
#include "common/base/log.h"

/* One a controller that looks at the kind, and a few for tables beside them. */
#define MAX_SUBSCRIBERS 16

struct subscriber {
    informer_fn *function;
    void *ctx;
};

struct informer {
    struct store *store;
    struct watch_machine *machine;
    watch_project_fn *project;
    struct subscriber subscribers[MAX_SUBSCRIBERS]; /* fixed before the loop starts */
    size_t subscriber_count;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool synced;
};

static void tell(const struct informer *informer, struct kube_object *old,
                 struct kube_object *current)
{
    for (size_t i = 0; i < informer->subscriber_count; i++)
        informer->subscribers[i].function(informer->subscribers[i].ctx, old, current);
}

typedef bool put_fn(struct store *store, struct kube_object *object, struct kube_object **ret_old);

static void put(struct informer *informer, put_fn *function, struct kube_object *object)
{
    CLEANUP(kube_object_unrefp) struct kube_object *old = NULL;

    if (function(informer->store, object, &old))
        tell(informer, old, object);
}

static void on_gone(void *ctx, struct kube_object *old)
{
    tell(ctx, old, NULL);
}

static void remove_object(struct informer *informer, const struct kube_object *object)
{
    CLEANUP(kube_object_unrefp)
    struct kube_object *old =
        store_remove(informer->store, &object->name, object->resource_version);

    if (old)
        tell(informer, old, NULL);
}

static void set_synced(struct informer *informer)
{
    pthread_mutex_lock(&informer->lock);
    informer->synced = true;
    pthread_cond_broadcast(&informer->changed);
    pthread_mutex_unlock(&informer->lock);
}

/* Watch loop thread. The seen version comes after the change: who reads it finds the change made.
 */
static void on_event(void *ctx, enum watch_event_type type, struct kube_object *object,
                     const char *version)
{
    struct informer *informer = ctx;

    switch (type) {
    case WATCH_INIT:
        store_set_begin(informer->store);
        return;
    case WATCH_INIT_APPLY:
        put(informer, store_set_add, object);
        return;
    case WATCH_INIT_DONE:
        store_set_sweep(informer->store, version, on_gone, informer);
        set_synced(informer);
        return;
    case WATCH_APPLY:
        put(informer, store_put, object);
        break;
    case WATCH_DELETE:
        remove_object(informer, object);
        break;
    case WATCH_BOOKMARK:
        break;
    }
    store_seen(informer->store, version);
}

struct informer *informer_create(struct watch_loop *loop, const struct watch_options *options)
{
    struct informer *informer = xcalloc(1, sizeof(*informer));

    informer->store = store_create();
    informer->machine = watch_machine_create(options, on_event, informer);
    informer->project = options->project;
    pthread_mutex_init(&informer->lock, NULL);
    cond_init(&informer->changed);
    watch_loop_add(loop, informer->machine);
    return informer;
}

void informer_destroy(struct informer *informer)
{
    if (!informer)
        return;
    watch_machine_destroy(informer->machine);
    store_destroy(informer->store);
    pthread_cond_destroy(&informer->changed);
    pthread_mutex_destroy(&informer->lock);
    free(informer);
}

struct store *informer_store(struct informer *informer)
{
    return informer->store;
}

void informer_subscribe(struct informer *informer, informer_fn *function, void *ctx)
{
    assert(informer->subscriber_count < MAX_SUBSCRIBERS);
    informer->subscribers[informer->subscriber_count++] =
        (struct subscriber){ .function = function, .ctx = ctx };
}

bool informer_synced(struct informer *informer)
{
    pthread_mutex_lock(&informer->lock);
    bool synced = informer->synced;
    pthread_mutex_unlock(&informer->lock);
    return synced;
}

bool informer_wait_synced(struct informer *informer, uint32_t timeout_ms)
{
    struct timespec deadline = cond_deadline(timeout_ms);

    pthread_mutex_lock(&informer->lock);
    while (!informer->synced && cond_wait_until(&informer->changed, &informer->lock, &deadline))
        ;
    bool synced = informer->synced;
    pthread_mutex_unlock(&informer->lock);
    return synced;
}

void informer_observed(struct informer *informer, const struct kube_object *object)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    CLEANUP(kube_object_unrefp) struct kube_object *kept = NULL;
    struct error err = { 0 };
    /* the tree was parsed for this alone, so it may be changed */
    cJSON *tree = (cJSON *)(uintptr_t)kube_object_json(arena, object);

    if (watch_keep(informer->project, tree, &kept, &err) < 0) {
        log_warn("reply to a write not kept, waiting for the watch", "name", object->name.name,
                 "error", err.message, NULL);
        return;
    }
    put(informer, store_put, kept);
}
