#include "standalone/api/collector.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/cond.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/runtime/thread.h"
#include "standalone/api/stored.h"
#include "standalone/schema/object_meta.h"

#define ALL "/registry/"

/* Values of maps that are sets; the second one: of a dependent that its owner waits for. */
static char MARK[1], BLOCKS[1];

static void collector_destroy_set(void *value)
{
    map_destroy(value);
}

static void collector_on_notify(void *ctx)
{
    struct collector *collector = ctx;

    pthread_mutex_lock(&collector->lock);
    collector->woken = true;
    pthread_cond_signal(&collector->changed);
    pthread_mutex_unlock(&collector->lock);
}

static void collector_note(struct collector *collector, const char *key)
{
    map_set(collector->todo, key, MARK);
}

size_t collector_dependents(struct collector *collector, struct arena *arena, const char *uid,
                            bool blocking, const char *const **ret)
{
    struct map *set = map_get(collector->dependents, uid);
    const char **keys = arena_array(arena, const char *, COLLECTOR_BATCH);
    size_t len = 0, position = 0;
    const char *key;
    void *value;

    while (set && len < COLLECTOR_BATCH && map_next(set, &position, &key, &value)) {
        if (!blocking || value == BLOCKS)
            keys[len++] = arena_strdup(arena, key);
    }
    *ret = keys;
    return len;
}

size_t collector_looked_at(const struct collector *collector)
{
    return atomic_load(&collector->looked_at);
}

/* --- what the store tells --------------------------------------------------------------------- */

/* Few objects have owners or are being deleted: the others are not even parsed. */
static const cJSON *collector_read_if(struct arena *arena, const struct kv_value *value,
                                      const char *word)
{
    const cJSON *tree;

    if (!value->text || !strstr(value->text, word) ||
        json_parse_own(arena, value->text, value->len, &tree, NULL) < 0)
        return NULL;
    return tree;
}

const cJSON *collector_owners(const cJSON *object)
{
    return json_path(object, "metadata", "ownerReferences", NULL);
}

bool collector_blocks(const cJSON *reference)
{
    return json_bool(json_get(reference, "blockOwnerDeletion"), false);
}

bool collector_is_waiting(const cJSON *object)
{
    return delete_has_begun(object) && delete_has_finalizer(object, FINALIZER_FOREGROUND);
}

const char *collector_owner_key(const struct collector *collector, struct arena *arena,
                                const char *ns, const cJSON *reference)
{
    const struct resource *resource = resources_find_kind(
        collector->api->resources, json_string(json_get(reference, "apiVersion"), ""),
        json_string(json_get(reference, "kind"), ""));

    if (!resource || (resource->kind.namespaced && !*ns))
        return NULL;
    return stored_key(arena, resource, ns, json_string(json_get(reference, "name"), ""));
}

static void collector_index_owners(struct collector *collector, const cJSON *owners,
                                   const char *key, bool add)
{
    json_for_each (reference, owners) {
        const char *uid = json_string(json_get(reference, "uid"), "");
        bool blocks = collector_blocks(reference);
        struct map *set = map_get(collector->dependents, uid);

        if (!set && add) {
            set = map_create(NULL);
            map_set(collector->dependents, uid, set);
        }
        if (set && add && map_get(set, key) != BLOCKS)
            map_set(set, key, blocks ? BLOCKS : MARK);
        else if (set && !add && map_remove(set, key) && !map_len(set))
            map_remove(collector->dependents, uid);
    }
}

static void collector_note_dependents(struct collector *collector, const char *uid)
{
    struct map *set = map_get(collector->dependents, uid);
    size_t position = 0;
    const char *key;
    void *value;

    while (set && map_next(set, &position, &key, &value))
        collector_note(collector, key);
}

/* A namespace that is going waits for its content, an owner in the foreground for its dependents. */
static void collector_note_owners(struct collector *collector, struct arena *arena, const char *ns,
                                  const cJSON *owners)
{
    json_for_each (reference, owners) {
        const char *key = collector_owner_key(collector, arena, ns, reference);

        if (key)
            collector_note(collector, key);
    }
}

/* previous: without text when there was none, or nobody knows. Events own nothing and are owned by nobody, as
 * kube-controller-manager ignores them. */
static void collector_see_object(struct collector *collector, struct arena *arena,
                                 const struct kv_value *value, const struct kv_value *previous)
{
    if (str_has_prefix(value->key, EVENT_KEYS))
        return;

    const cJSON *before = collector_read_if(arena, previous, "\"ownerReferences\"");
    const cJSON *owners = collector_owners(collector_read_if(arena, value, "\"ownerReferences\""));
    const cJSON *deleting = collector_read_if(arena, value, "\"deletionTimestamp\"");

    if (!json_equal(owners, collector_owners(before))) {
        collector_index_owners(collector, collector_owners(before), value->key, false);
        collector_index_owners(collector, owners, value->key, true);
        collector_note(collector, value->key);
        /* they may not wait any more for this object, which is there as before */
        collector_note_owners(collector, arena, object_meta_text(before, "namespace"),
                              collector_owners(before));
    }
    if (!delete_has_begun(deleting))
        return;
    collector_note(collector, value->key);
    if (collector_is_waiting(deleting) &&
        !collector_is_waiting(collector_read_if(arena, previous, "\"deletionTimestamp\"")))
        collector_note_dependents(collector, object_meta_text(deleting, "uid"));
}

static void collector_see_event(struct collector *collector, struct arena *arena,
                                const struct kv_event *event)
{
    if (event->type == KV_PUT) {
        collector_see_object(collector, arena, &event->value, &event->previous);
        return;
    }

    const cJSON *previous = collector_read_if(arena, &event->previous, "\"uid\"");
    const char *uid = object_meta_text(previous, "uid");
    const char *ns = object_meta_text(previous, "namespace");

    collector_index_owners(collector, collector_owners(previous), event->value.key, false);
    map_remove(collector->sweeps, uid);
    collector_note_dependents(collector, uid);
    if (*ns)
        collector_note(collector, arena_printf(arena, NAMESPACE_KEYS "%s", ns));
    collector_note_owners(collector, arena, ns, collector_owners(previous));
}

static void collector_forget(struct collector *collector)
{
    map_destroy(collector->dependents);
    map_destroy(collector->sweeps);
    collector->dependents = map_create(collector_destroy_set);
    collector->sweeps = map_create(collector_sweep_destroy);
}

int collector_walk(struct collector *collector, const char *prefix, collector_walk_fn *function,
                   uint64_t *ret_revision, struct error *err)
{
    struct kv_range range = { .prefix = prefix,
                              .limit = COLLECTOR_PAGE,
                              .max_bytes = COLLECTOR_PAGE_BYTES,
                              .uncounted = true };
    struct kv_page page;
    char *after = NULL;
    int r;

    do {
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();

        range.after = after;
        r = kv_list(collector->api->kv, arena, &range, &page, err);
        if (r < 0)
            break;
        for (size_t i = 0; i < page.len; i++)
            function(collector, arena, &page.items[i]);
        range.revision = page.revision;
        free(after);
        after = page.len ? xstrdup(page.items[page.len - 1].key) : NULL;
    } while (page.remaining);
    free(after);
    *ret_revision = range.revision;
    return r;
}

static void collector_see_first(struct collector *collector, struct arena *arena,
                                const struct kv_value *value)
{
    static const struct kv_value NOTHING;

    collector_see_object(collector, arena, value, &NOTHING);
}

/* The whole store, and from then on its events. */
static int collector_begin_watch(struct collector *collector, struct error *err)
{
    uint64_t revision;

    collector_forget(collector);

    int r = collector_walk(collector, ALL, collector_see_first, &revision, err);
    if (r < 0)
        return r;
    return kv_watch(collector->api->kv, ALL, revision, collector_on_notify, collector,
                    &collector->watch, err);
}

/* Until there is nothing more: only then a notification is due. < 0: the watch is of no use. */
static int collector_drain(struct collector *collector, struct error *err)
{
    int r = 1;

    while (r > 0) {
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();
        struct kv_event event;

        r = kv_watch_next(collector->watch, arena, &event, err);
        if (r > 0)
            collector_see_event(collector, arena, &event);
    }
    return r;
}

static void collector_take_events(struct collector *collector)
{
    struct error err = { 0 };
    int r = collector->watch ? collector_drain(collector, &err) : -ERROR_GONE;

    if (r == -ERROR_GONE) {
        kv_watch_close(collector->watch);
        collector->watch = NULL;
        r = collector_begin_watch(collector, &err);
        if (r == 0)
            r = collector_drain(collector, &err);
    }
    collector->is_behind = r < 0;
    if (r < 0)
        log_warn("garbage collection cannot read the store, trying again", "error",
                 ERROR_TEXT(&err), NULL);
}

/* --- the thread ------------------------------------------------------------------------------- */

static bool collector_is_stopping(struct collector *collector)
{
    pthread_mutex_lock(&collector->lock);

    bool stopping = collector->stopping;

    pthread_mutex_unlock(&collector->lock);
    return stopping;
}

static void collector_look_at(struct collector *collector, const char *key)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    if (collector_is_stopping(collector))
        return;
    switch (collector_act(collector, arena, key)) {
    case COLLECTOR_DONE:
        break;
    case COLLECTOR_MORE:
        collector_note(collector, key);
        break;
    case COLLECTOR_LATER:
        if (!map_len(collector->later))
            collector->later_ms =
                clock_monotonic_ms(&CLOCK_SYSTEM) + collector->api->collector_retry_ms;
        map_set(collector->later, key, MARK);
        break;
    }
}

/* Takes what is in the set, and leaves an empty one. */
static void collector_for_each(struct collector *collector, struct map **set,
                               void (*function)(struct collector *collector, const char *key))
{
    struct map *all = *set;
    size_t position = 0;
    const char *key;
    void *value;

    *set = map_create(NULL);
    while (map_next(all, &position, &key, &value))
        function(collector, key);
    map_destroy(all);
}

static void collector_put_off(struct collector *collector, const char *key)
{
    map_set(collector->bulk, key, MARK);
}

static void collector_work_on_bulk(struct collector *collector)
{
    const char *key;
    void *value;

    for (size_t i = 0; i < COLLECTOR_BATCH; i++) {
        if (!map_next(collector->going, &collector->position, &key, &value)) {
            map_destroy(collector->going);
            collector->going = collector->bulk;
            collector->bulk = map_create(NULL);
            collector->position = 0;
            return;
        }
        collector_look_at(collector, key);
    }
}

/* Keys noted since the last time are looked at, or wait in bulk. Returns whether there is more to do at once. */
static bool collector_work(struct collector *collector)
{
    if (map_len(collector->later) && clock_monotonic_ms(&CLOCK_SYSTEM) >= collector->later_ms)
        collector_for_each(collector, &collector->later, collector_note);
    collector_for_each(collector, &collector->todo,
                       map_len(collector->todo) > COLLECTOR_BATCH ? collector_put_off
                                                                  : collector_look_at);
    collector_work_on_bulk(collector);
    return map_len(collector->todo) || map_len(collector->bulk) || map_len(collector->going);
}

static void collector_wait_for_more(struct collector *collector)
{
    bool idle = !collector->is_behind && !map_len(collector->later);
    struct timespec deadline =
        cond_deadline(idle ? COLLECTOR_EVENTS_MS : collector->api->collector_retry_ms);

    pthread_mutex_lock(&collector->lock);
    while (!collector->woken && !collector->stopping &&
           cond_wait_until(&collector->changed, &collector->lock, &deadline))
        ;
    collector->woken = false;
    pthread_mutex_unlock(&collector->lock);
}

static void *collector_run(void *ctx)
{
    struct collector *collector = ctx;

    while (!collector_is_stopping(collector)) {
        collector_take_events(collector);

        /* Who has not seen all dependents of an owner would take those for all. */
        bool more = !collector->is_behind && collector_work(collector);

        collector_expire_events(collector);
        if (!more)
            collector_wait_for_more(collector);
    }
    return NULL;
}

static void collector_release(struct collector *collector)
{
    kv_watch_close(collector->watch);
    struct map *const maps[] = { collector->dependents, collector->sweeps, collector->todo,
                                 collector->bulk,       collector->going,  collector->later };

    for (size_t i = 0; i < ARRAY_LEN(maps); i++)
        map_destroy(maps[i]);
    timeline_destroy(collector->timeline);
    pthread_cond_destroy(&collector->changed);
    pthread_mutex_destroy(&collector->lock);
    free(collector);
}

int collector_create(struct api *api, struct collector **ret, struct error *err)
{
    struct collector *collector = xcalloc(1, sizeof(*collector));

    collector->api = api;
    collector_forget(collector);
    collector->todo = map_create(NULL);
    collector->bulk = map_create(NULL);
    collector->going = map_create(NULL);
    collector->later = map_create(NULL);
    collector->timeline = timeline_create(api->clock);
    pthread_mutex_init(&collector->lock, NULL);
    cond_init(&collector->changed);

    int r = thread_start(&collector->thread, "collector", collector_run, collector, err);
    if (r < 0) {
        collector_release(collector);
        return r;
    }
    *ret = collector;
    return 0;
}

void collector_destroy(struct collector *collector)
{
    if (!collector)
        return;
    pthread_mutex_lock(&collector->lock);
    collector->stopping = true;
    pthread_cond_signal(&collector->changed);
    pthread_mutex_unlock(&collector->lock);
    thread_join(collector->thread);
    collector_release(collector);
}
