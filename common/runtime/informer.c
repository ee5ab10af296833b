#include "common/runtime/informer.h"

#include <assert.h>
#include <pthread.h>

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/log.h"

/* One a controller that looks at the kind, and a few for tables beside them. */
#define MAX_SUBSCRIBERS 16

struct subscriber {
    informer_fn *function;
    void *ctx;
};

/* One list and watch: of everything, or of one of the namespaces. */
struct source {
    struct informer *informer;
    struct watch_machine *machine;
    char *ns; /* "": all */
    bool synced;
    bool left_out;      /* of the last list something could not be kept */
    int64_t refused_ms; /* monotonic: since when every answer was a refusal; 0: it was not */
};

struct informer {
    struct store *store;
    struct source *sources;
    size_t source_count;
    watch_project_fn *project;
    const struct kube_kind *kind;
    struct subscriber subscribers[MAX_SUBSCRIBERS]; /* fixed before the loop starts */
    size_t subscriber_count;
    pthread_mutex_t lock; /* of what is synced */
    pthread_cond_t changed;
    size_t unsynced;
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
    const struct kube_name name = kube_object_name(object);
    CLEANUP(kube_object_unrefp)
    struct kube_object *old = store_remove(informer->store, &name, object->resource_version);

    if (old)
        tell(informer, old, NULL);
}

static void set_synced(struct source *source)
{
    struct informer *informer = source->informer;

    pthread_mutex_lock(&informer->lock);
    if (!source->synced)
        informer->unsynced--;
    source->synced = true;
    pthread_cond_broadcast(&informer->changed);
    pthread_mutex_unlock(&informer->lock);
}

static void note_answer(struct source *source, bool refused)
{
    struct informer *informer = source->informer;

    pthread_mutex_lock(&informer->lock);
    if (!refused)
        source->refused_ms = 0;
    else if (!source->refused_ms)
        source->refused_ms = clock_monotonic_ms(&CLOCK_SYSTEM);
    pthread_mutex_unlock(&informer->lock);
}

static void set_left_out(struct source *source, bool left_out)
{
    pthread_mutex_lock(&source->informer->lock);
    source->left_out = left_out;
    pthread_mutex_unlock(&source->informer->lock);
}

/* Watch loop thread. The seen version comes after the change: who reads it finds the change made.
 */
static void on_event(void *ctx, enum watch_event_type type, struct kube_object *object,
                     const char *version)
{
    struct source *source = ctx;
    struct informer *informer = source->informer;

    switch (type) {
    case WATCH_REFUSED:
        note_answer(source, true);
        return;
    case WATCH_INIT:
        note_answer(source, false);
        set_left_out(source, false);
        store_set_begin(informer->store, source->ns);
        return;
    case WATCH_INIT_APPLY:
        put(informer, store_set_add, object);
        return;
    case WATCH_INIT_KEEP:
        set_left_out(source, true);
        store_set_keep(informer->store, source->ns, version);
        return;
    case WATCH_INIT_DONE:
        store_set_sweep(informer->store, source->ns, version, on_gone, informer);
        set_synced(source);
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
    store_seen(informer->store, source->ns, version);
}

static void add_source(struct informer *informer, struct watch_loop *loop,
                       const struct watch_options *options, const char *ns)
{
    struct source *source = &informer->sources[informer->source_count++];
    struct watch_options own = *options;

    own.ns = ns;
    *source = (struct source){ .informer = informer, .ns = xstrdup(ns ? ns : "") };
    source->machine = watch_machine_create(&own, on_event, source);
    informer->unsynced++;
    watch_loop_add(loop, source->machine);
}

struct informer *informer_create_in(struct watch_loop *loop, const struct watch_options *options,
                                    const char *const *namespaces, size_t len)
{
    struct informer *informer = xcalloc(1, sizeof(*informer));

    informer->store = store_create();
    informer->project = options->project;
    informer->kind = options->kind;
    pthread_mutex_init(&informer->lock, NULL);
    cond_init(&informer->changed);
    informer->sources = xcalloc(len > 0 ? len : 1, sizeof(struct source));
    store_split(informer->store, namespaces, len);
    for (size_t i = 0; i < len; i++)
        add_source(informer, loop, options, namespaces[i]);
    if (len == 0)
        add_source(informer, loop, options, options->ns);
    return informer;
}

struct informer *informer_create(struct watch_loop *loop, const struct watch_options *options)
{
    return informer_create_in(loop, options, NULL, 0);
}

void informer_destroy(struct informer *informer)
{
    if (!informer)
        return;
    for (size_t i = 0; i < informer->source_count; i++) {
        watch_machine_destroy(informer->sources[i].machine);
        free(informer->sources[i].ns);
    }
    free(informer->sources);
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
    bool synced = !informer->unsynced;
    pthread_mutex_unlock(&informer->lock);
    return synced;
}

bool informer_complete(struct informer *informer)
{
    size_t left_out = 0;

    pthread_mutex_lock(&informer->lock);
    for (size_t i = 0; i < informer->source_count; i++)
        left_out += informer->sources[i].left_out;
    bool complete = !informer->unsynced && !left_out;
    pthread_mutex_unlock(&informer->lock);
    return complete;
}

static bool is_settled(const struct source *source, int64_t now_ms, uint32_t patience_ms)
{
    return source->synced || (source->refused_ms && now_ms - source->refused_ms >= patience_ms);
}

bool informer_settled(struct informer *informer, uint32_t patience_ms)
{
    int64_t now_ms = clock_monotonic_ms(&CLOCK_SYSTEM);
    size_t settled = 0;

    pthread_mutex_lock(&informer->lock);
    bool any = informer->unsynced < informer->source_count;
    for (size_t i = 0; i < informer->source_count; i++)
        settled += is_settled(&informer->sources[i], now_ms, patience_ms);
    pthread_mutex_unlock(&informer->lock);
    return any && settled == informer->source_count;
}

bool informer_wait_synced(struct informer *informer, uint32_t timeout_ms)
{
    struct timespec deadline = cond_deadline(timeout_ms);

    pthread_mutex_lock(&informer->lock);
    while (informer->unsynced && cond_wait_until(&informer->changed, &informer->lock, &deadline))
        ;
    bool synced = !informer->unsynced;
    pthread_mutex_unlock(&informer->lock);
    return synced;
}

void informer_observed(struct informer *informer, cJSON *reply)
{
    CLEANUP(kube_object_unrefp) struct kube_object *kept = NULL;
    struct error err = { 0 };

    if (watch_keep(informer->project, reply, informer->kind, &kept, &err) < 0) {
        log_warn("reply to a write not kept, waiting for the watch", "name",
                 json_string(json_path(reply, "metadata", "name", NULL), ""), "error",
                 ERROR_TEXT(&err), NULL);
        return;
    }
    put(informer, store_put, kept);
}
