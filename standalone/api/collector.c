#include "standalone/api/collector.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/cond.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/runtime/thread.h"
#include "standalone/api/collector_internal.h"

#define ALL "/registry/"
#define NAMESPACES "/registry/core/namespaces/"
/* Of the first look at the store. */
#define PAGE 500

static char MARK[1]; /* the value of maps that are sets */

static void destroy_set(void *value)
{
    map_destroy(value);
}

static void on_notify(void *ctx)
{
    struct collector *collector = ctx;

    pthread_mutex_lock(&collector->lock);
    collector->woken = true;
    pthread_cond_signal(&collector->changed);
    pthread_mutex_unlock(&collector->lock);
}

void collector_note(struct collector *collector, const char *key)
{
    map_set(collector->todo, key, MARK);
}

size_t collector_dependents(struct collector *collector, struct arena *arena, const char *uid,
                            const char *const **ret)
{
    struct map *set = map_get(collector->dependents, uid);
    size_t len = 0, position = 0;
    const char *key;
    void *value;

    if (!set)
        return 0;

    const char **keys = arena_array(arena, const char *, map_len(set) + 1);

    while (map_next(set, &position, &key, &value))
        keys[len++] = arena_strdup(arena, key);
    *ret = keys;
    return len;
}

/* --- what the store tells --------------------------------------------------------------------- */

/* Few objects have owners or are being deleted: the others are not even parsed. */
static const cJSON *read_if(struct arena *arena, const struct kv_value *value, const char *word)
{
    const cJSON *tree;

    if (!value->text || !strstr(value->text, word) ||
        json_parse(arena, value->text, value->len, &tree, NULL) < 0)
        return NULL;
    return tree;
}

static void index_owners(struct collector *collector, const cJSON *object, const char *key,
                         bool add)
{
    json_for_each (reference, json_path(object, "metadata", "ownerReferences", NULL)) {
        const char *uid = json_string(json_get(reference, "uid"), "");
        struct map *set = map_get(collector->dependents, uid);

        if (!set && add) {
            set = map_create(NULL);
            map_set(collector->dependents, uid, set);
        }
        if (set && add)
            map_set(set, key, MARK);
        else if (set && map_remove(set, key) && !map_len(set))
            map_remove(collector->dependents, uid);
    }
}

static void note_all(struct collector *collector, struct arena *arena, const char *uid)
{
    const char *const *keys = NULL;
    size_t len = collector_dependents(collector, arena, uid, &keys);

    for (size_t i = 0; i < len; i++)
        collector_note(collector, keys[i]);
}

static void see_object(struct collector *collector, struct arena *arena,
                       const struct kv_value *value, bool had_owners)
{
    const cJSON *owned = read_if(arena, value, "\"ownerReferences\"");
    const cJSON *deleting = read_if(arena, value, "\"deletionTimestamp\"");

    index_owners(collector, owned, value->key, true);
    if ((owned && !had_owners) || collector_is_deleting(deleting))
        collector_note(collector, value->key);
    if (collector_is_deleting(deleting)) /* in the foreground: its dependents are to go first */
        note_all(collector, arena, json_string(json_path(deleting, "metadata", "uid", NULL), ""));
}

/* A namespace that is going waits for what is in it, an owner in the foreground for its dependents. */
static void note_who_waits(struct collector *collector, struct arena *arena, const cJSON *object)
{
    const char *ns = json_string(json_path(object, "metadata", "namespace", NULL), "");

    if (*ns)
        collector_note(collector, arena_printf(arena, NAMESPACES "%s", ns));
    json_for_each (reference, json_path(object, "metadata", "ownerReferences", NULL)) {
        const char *key = collector_owner_key(arena, collector->api->resources, ns, reference);

        if (key)
            collector_note(collector, key);
    }
}

static void see_event(struct collector *collector, struct arena *arena,
                      const struct kv_event *event)
{
    const cJSON *previous = read_if(arena, &event->previous, "\"uid\"");

    if (event->type == KV_PUT) {
        see_object(collector, arena, &event->value,
                   read_if(arena, &event->previous, "\"ownerReferences\""));
        return;
    }
    index_owners(collector, previous, event->value.key, false);
    note_all(collector, arena, json_string(json_path(previous, "metadata", "uid", NULL), ""));
    note_who_waits(collector, arena, previous);
}

/* The whole store, and from then on its events. */
static int begin(struct collector *collector, struct error *err)
{
    struct kv_range range = { .prefix = ALL, .limit = PAGE };
    struct kv_page page;
    char *after = NULL;

    do {
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();

        range.after = after;

        int r = kv_list(collector->api->kv, arena, &range, &page, err);
        if (r < 0) {
            free(after);
            return r;
        }
        for (size_t i = 0; i < page.len; i++)
            see_object(collector, arena, &page.items[i], false);
        range.revision = page.revision;
        free(after);
        after = page.len ? xstrdup(page.items[page.len - 1].key) : NULL;
    } while (page.remaining);
    free(after);
    return kv_watch(collector->api->kv, ALL, range.revision, on_notify, collector,
                    &collector->watch, err);
}

/* Until there is nothing more: only then a notification is due. < 0: the watch is of no use. */
static int drain(struct collector *collector, struct error *err)
{
    int r = 1;

    while (r > 0) {
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();
        struct kv_event event;

        r = kv_watch_next(collector->watch, arena, &event, err);
        if (r > 0)
            see_event(collector, arena, &event);
    }
    return r;
}

static void take_events(struct collector *collector)
{
    struct error err = { 0 };
    int r = collector->watch ? drain(collector, &err) : -ERROR_GONE;

    if (r == -ERROR_GONE) {
        kv_watch_close(collector->watch);
        collector->watch = NULL;
        r = begin(collector, &err);
        if (r == 0)
            r = drain(collector, &err);
    }
    if (r < 0)
        log_warn("garbage collection cannot read the store, trying again", "error", err.message,
                 NULL);
}

/* --- the thread ------------------------------------------------------------------------------- */

static bool is_stopping(struct collector *collector)
{
    pthread_mutex_lock(&collector->lock);

    bool stopping = collector->stopping;

    pthread_mutex_unlock(&collector->lock);
    return stopping;
}

/* What is to be tried again stays. */
static void work(struct collector *collector)
{
    struct map *todo = collector->todo;
    size_t position = 0;
    const char *key;
    void *value;

    collector->todo = map_create(NULL);
    while (map_next(todo, &position, &key, &value)) {
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();

        if (is_stopping(collector))
            break;
        if (!collector_act(collector, arena, key))
            collector_note(collector, key);
    }
    map_destroy(todo);
}

static void wait_for_more(struct collector *collector)
{
    bool idle = collector->watch && !map_len(collector->todo);
    struct timespec deadline = cond_deadline(idle ? COLLECTOR_EVENTS_MS : COLLECTOR_RETRY_MS);

    pthread_mutex_lock(&collector->lock);
    while (!collector->woken && !collector->stopping &&
           cond_wait_until(&collector->changed, &collector->lock, &deadline))
        ;
    collector->woken = false;
    pthread_mutex_unlock(&collector->lock);
}

static void *run(void *ctx)
{
    struct collector *collector = ctx;

    while (!is_stopping(collector)) {
        take_events(collector);
        work(collector);
        collector_expire_events(collector);
        wait_for_more(collector);
    }
    return NULL;
}

static void release(struct collector *collector)
{
    kv_watch_close(collector->watch);
    map_destroy(collector->dependents);
    map_destroy(collector->todo);
    pthread_cond_destroy(&collector->changed);
    pthread_mutex_destroy(&collector->lock);
    free(collector);
}

int collector_create(struct api *api, struct collector **ret, struct error *err)
{
    struct collector *collector = xcalloc(1, sizeof(*collector));

    collector->api = api;
    collector->dependents = map_create(destroy_set);
    collector->todo = map_create(NULL);
    pthread_mutex_init(&collector->lock, NULL);
    cond_init(&collector->changed);

    int r = thread_start(&collector->thread, "collector", run, collector, err);
    if (r < 0) {
        release(collector);
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
    release(collector);
}
