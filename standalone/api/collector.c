#include "standalone/api/collector.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/cond.h"
#include "common/base/log.h"
#include "common/base/map.h"
#include "common/base/str.h"
#include "common/base/timeline.h"
#include "common/kube/finalizer.h"
#include "common/runtime/thread.h"
#include "standalone/api/delete.h"
#include "standalone/api/stored.h"
#include "standalone/patch/managed_fields.h"
#include "standalone/schema/object_meta.h"

#define ALL "/registry/"
#define NAMESPACE_KEYS "/registry/core/namespaces/" /* prefixes of keys */
#define EVENT_KEYS "/registry/core/events/"

/* Objects that are read, or deleted, before the events of the store are taken again: so the watch stays within
 * the history, and what comes meanwhile does not wait for 100,000 dependents of one owner. */
#define COLLECTOR_BATCH 256
/* Of a page of the store: objects are large, or many. */
#define COLLECTOR_PAGE 500
#define COLLECTOR_PAGE_BYTES ((size_t)1 << 20)
/* In managedFields, the collector has the name that it has in a cluster. */
#define MANAGER "kube-controller-manager"
/* Owners that are looked at; the rest counts as there. */
#define MAX_OWNERS 32
/* An Event is deleted when it was last written this long ago (--event-ttl of kube-apiserver). A restart
 * of the process begins the time again, as one of etcd does with its leases. */
#define EVENT_LIFETIME_US (INT64_C(60) * 60 * 1000000)

struct collector {
    struct api *api;
    pthread_t thread;
    struct kv_watch *watch;
    atomic_size_t looked_at; /* objects */
    sem_t wake;              /* posted when there are events, or it stops */
    atomic_bool stopping;

    /* The thread alone: */
    bool is_behind;         /* the store could not be read */
    struct map *dependents; /* uid of an owner -> set of the keys of its dependents */
    struct map *swept;      /* uids of the namespaces that are going, and whose content was noted */
    struct map *noted;      /* keys to be looked at */
    const char **stack;     /* the same; what comes later need not wait for 100,000 others */
    size_t stack_len, stack_cap;
    bool is_left;      /* something, in a namespace */
    struct map *later; /* keys of which the work failed */
    int64_t later_ms;  /* the time to look at them again */
    int64_t events_due_ms;
    struct timeline *timeline; /* of Events */
};

enum collector_outcome {
    COLLECTOR_DONE,
    COLLECTOR_MORE,  /* to be looked at again when the events of what was done were taken */
    COLLECTOR_LATER, /* it cannot be done now */
};

/* The value of maps that are sets. */
static char MARK[1];

static void collector_destroy_set(void *value)
{
    map_destroy(value);
}

static void collector_wake(void *ctx)
{
    (void)sem_post(&((struct collector *)ctx)->wake);
}

static void collector_note(struct collector *collector, const char *key)
{
    if (map_get(collector->noted, key))
        return;
    if (collector->stack_len == collector->stack_cap) {
        collector->stack_cap = collector->stack_cap ? 2 * collector->stack_cap : COLLECTOR_BATCH;
        collector->stack =
            xrealloc(collector->stack, collector->stack_cap * sizeof(*collector->stack));
    }
    map_set(collector->noted, key, MARK);
    collector->stack[collector->stack_len++] = map_key(collector->noted, key);
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

static const cJSON *collector_owners(const cJSON *object)
{
    return json_path(object, "metadata", "ownerReferences", NULL);
}

static void collector_index_owners(struct collector *collector, const cJSON *owners,
                                   const char *key, bool add)
{
    json_for_each (reference, owners) {
        const char *uid = json_get_string(reference, "uid");
        struct map *set = map_get(collector->dependents, uid);

        if (!set && add) {
            set = map_create(NULL);
            map_set(collector->dependents, uid, set);
        }
        if (set && add)
            map_set(set, key, MARK);
        else if (set && !add && map_remove(set, key) && !map_len(set))
            map_remove(collector->dependents, uid);
    }
}

/* Returns whether there is something to look at. before: the owners that it had. Events own nothing and have no owners,
 * as kube-controller-manager ignores them. */
static bool collector_see_object(struct collector *collector, struct arena *arena,
                                 const struct kv_value *value, const cJSON *before)
{
    const cJSON *owners = collector_owners(collector_read_if(arena, value, "\"ownerReferences\""));
    bool changed = !json_equal(owners, before);

    if (str_has_prefix(value->key, EVENT_KEYS))
        return false;
    if (changed) {
        collector_index_owners(collector, before, value->key, false);
        collector_index_owners(collector, owners, value->key, true);
    }
    return changed || kube_is_deleting(collector_read_if(arena, value, "\"deletionTimestamp\""));
}

static void collector_see_event(struct collector *collector, struct arena *arena,
                                const struct kv_event *event)
{
    const cJSON *previous = collector_read_if(arena, &event->previous, "\"uid\"");
    const char *uid = object_meta_text(previous, "uid");
    const char *ns = object_meta_text(previous, "namespace"), *key;
    struct map *dependents = map_get(collector->dependents, uid);
    size_t position = 0;

    if (event->type == KV_PUT) {
        if (collector_see_object(collector, arena, &event->value, collector_owners(previous)))
            collector_note(collector, event->value.key);
        return;
    }
    collector_index_owners(collector, collector_owners(previous), event->value.key, false);
    map_remove(collector->swept, uid);
    while (dependents && map_next(dependents, &position, &key, NULL))
        collector_note(collector, key);
    if (*ns)
        collector_note(collector, arena_printf(arena, NAMESPACE_KEYS "%s", ns));
}

static void collector_forget(struct collector *collector)
{
    collector->stack_len = 0;
    map_destroy(collector->noted);
    map_destroy(collector->dependents);
    map_destroy(collector->swept);
    collector->noted = map_create(NULL);
    collector->dependents = map_create(collector_destroy_set);
    collector->swept = map_create(NULL);
}

typedef void collector_walk_fn(struct collector *collector, struct arena *arena,
                               const struct kv_value *value);

/* Calls the function with each object below the prefix, at one revision, or with the first `limit` of them. */
static int collector_walk(struct collector *collector, const char *prefix, size_t limit,
                          collector_walk_fn *function, uint64_t *ret_revision, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *keys = arena_create();
    struct kv_range range = { .prefix = prefix,
                              .limit = limit ? limit : COLLECTOR_PAGE,
                              .max_bytes = COLLECTOR_PAGE_BYTES,
                              .uncounted = true };
    struct kv_page page;

    do {
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();

        int r = kv_list(collector->api->kv, arena, &range, &page, err);
        if (r < 0)
            return r;
        atomic_fetch_add(&collector->looked_at, page.len);
        for (size_t i = 0; i < page.len; i++)
            function(collector, arena, &page.items[i]);
        range.revision = page.revision;
        if (page.len)
            range.after = arena_strdup(keys, page.items[page.len - 1].key);
    } while (page.remaining && !limit);
    *ret_revision = range.revision;
    return 0;
}

static void collector_see_first(struct collector *collector, struct arena *arena,
                                const struct kv_value *value)
{
    if (collector_see_object(collector, arena, value, NULL))
        collector_note(collector, value->key);
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

/* Where there is no watch, or it fell behind: the whole store, and from then on its events. */
static void collector_take_events(struct collector *collector)
{
    struct error err = { 0 };
    uint64_t revision;
    int r = collector->watch ? collector_drain(collector, &err) : -ERROR_GONE;

    if (r == -ERROR_GONE) {
        kv_watch_close(collector->watch);
        collector->watch = NULL;
        collector_forget(collector);
        r = collector_walk(collector, ALL, 0, collector_see_first, &revision, &err);
        if (r == 0)
            r = kv_watch(collector->api->kv, ALL, revision, &collector->watch, &err);
        if (r == 0) {
            kv_watch_set_notify(collector->watch, collector_wake, collector);
            r = collector_drain(collector, &err);
        }
    }
    collector->is_behind = r < 0;
    if (r < 0)
        log_warn("garbage collection cannot read the store, trying again", "error",
                 ERROR_TEXT(&err), NULL);
}

/* --- what is due -------------------------------------------------------------------------------- */

/* An object as it is stored. */
struct collector_subject {
    const char *key;
    const cJSON *object;
    uint64_t revision;
};

static const char *collector_uid(const struct collector_subject *subject)
{
    return object_meta_text(subject->object, "uid");
}

/* 1: not there. */
static int collector_read(struct collector *collector, struct arena *arena, const char *key,
                          struct collector_subject *ret)
{
    struct kv_value value;
    struct error err;
    int r = kv_get(collector->api->kv, arena, key, 0, &value, &err);

    atomic_fetch_add(&collector->looked_at, 1);
    if (r == -ERROR_NOT_FOUND)
        return 1;
    if (r == 0)
        r = json_parse_own(arena, value.text, value.len, &ret->object, &err);
    ret->key = key;
    ret->revision = value.revision;
    return r;
}

/* The resource of a key "/registry/<group>/<plural>/…": the one that is stored in this form. */
static const struct resource *collector_resource(struct collector *collector, const char *key)
{
    const struct resources *resources = collector->api->resources;
    const char *rest = key + strlen("/registry/");

    for (size_t i = 0; i < resources_len(resources); i++) {
        const struct resource *resource = resources_at(resources, i);

        if (str_has_prefix(rest, resource->storage) && rest[strlen(resource->storage)] == '/' &&
            !resource->convert)
            return resource;
    }
    return NULL;
}

/* The object with these items of a list in metadata, which is left out when it is empty, if some are missing. Written,
 * or deleted if nothing keeps it any more, if it is still as it was read. */
static enum collector_outcome collector_keep(struct collector *collector, struct arena *arena,
                                             const struct collector_subject *subject,
                                             const char *list, const cJSON *items)
{
    const struct resource *resource = collector_resource(collector, subject->key);
    const struct kv_value at = { .key = subject->key, .revision = subject->revision };
    cJSON *object = arena_own(arena, json_copy(subject->object), json_free);
    uint64_t revision;
    struct error err;

    if (!resource || json_len(items) == json_len(json_path(object, "metadata", list, NULL)))
        return COLLECTOR_DONE;
    json_remove(object_meta_of(object), list);
    if (json_len(items))
        json_set_copy(object_meta_of(object), list, items);

    const struct managed_fields_write fields = {
        .resource = resource,
        .subresource = "",
        .manager = MANAGER,
        .now_us = clock_wall_us(collector->api->clock),
    };

    managed_fields_update(arena, &fields, subject->object, object);

    int r = stored_write(collector->api->kv, arena, resource, object, &at, NULL, &revision, &err);
    return r == 0 ? COLLECTOR_DONE : COLLECTOR_LATER;
}

/* Deletes the object, if it is still the one that was read. policy NULL: as its finalizers say. */
static enum collector_outcome collector_delete(struct collector *collector, struct arena *arena,
                                               const struct collector_subject *subject,
                                               const char *policy)
{
    const struct resource *resource = collector_resource(collector, subject->key);
    const struct delete_options options = { .uid = collector_uid(subject), .policy = policy };
    struct error err;
    cJSON *after;

    if (!resource ||
        delete_object(collector->api, arena, resource,
                      object_meta_text(subject->object, "namespace"),
                      object_meta_text(subject->object, "name"), &options, &after, &err) >= 0)
        return COLLECTOR_DONE;
    return err.code == ERROR_NOT_FOUND || err.code == ERROR_GONE || err.code == ERROR_FORBIDDEN
               ? COLLECTOR_DONE
               : COLLECTOR_LATER;
}

/* --- owners and dependents -------------------------------------------------------------------- */

/* One owner that is there keeps the object; references to the others go. */
static enum collector_outcome collector_look_at_owners(struct collector *collector,
                                                       struct arena *arena,
                                                       const struct collector_subject *subject)
{
    const char *ns = object_meta_text(subject->object, "namespace");
    cJSON *kept = json_array(arena);
    size_t len = 0;

    json_for_each (reference, collector_owners(subject->object)) {
        const struct resource *resource =
            resources_find_kind(collector->api->resources, json_get_string(reference, "apiVersion"),
                                json_get_string(reference, "kind"));
        const char *name = json_get_string(reference, "name");
        struct collector_subject owner = { .key = NULL };
        bool is_known = len++ < MAX_OWNERS && resource && (*ns || !resource->kind.namespaced);

        if (is_known &&
            collector_read(collector, arena, stored_key(arena, resource, ns, name), &owner) < 0)
            return COLLECTOR_LATER;
        if (!is_known ||
            (owner.object && str_equal(collector_uid(&owner), json_get_string(reference, "uid"))))
            json_add(kept, json_copy(reference));
    }
    return len && !json_len(kept)
               ? collector_delete(collector, arena, subject, NULL)
               : collector_keep(collector, arena, subject, "ownerReferences", kept);
}

static enum collector_outcome collector_disown(struct collector *collector, const char *key,
                                               const char *uid)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct collector_subject dependent;
    cJSON *kept = json_array(arena);
    int r = collector_read(collector, arena, key, &dependent);

    if (r != 0)
        return r > 0 ? COLLECTOR_DONE : COLLECTOR_LATER;
    json_for_each (reference, collector_owners(dependent.object)) {
        if (!str_equal(json_get_string(reference, "uid"), uid))
            json_add(kept, json_copy(reference));
    }
    return collector_keep(collector, arena, &dependent, "ownerReferences", kept);
}

/* A batch of the dependents of an owner that is being deleted. */
static enum collector_outcome collector_orphan_dependents(struct collector *collector,
                                                          const struct collector_subject *subject)
{
    const char *uid = collector_uid(subject);
    struct map *set = map_get(collector->dependents, uid);
    size_t position = 0, len = 0;
    const char *key;

    while (set && map_next(set, &position, &key, NULL)) {
        if (len++ == COLLECTOR_BATCH)
            return COLLECTOR_MORE;
        if (collector_disown(collector, key, uid) != COLLECTOR_DONE)
            return COLLECTOR_LATER;
    }
    return COLLECTOR_DONE;
}

/* --- namespaces that are being deleted: their content goes, and then they do -------------------------- */

/* 1: the object is in a namespace that goes; less than 0: that cannot be read. */
static int collector_is_in_going(struct collector *collector, struct arena *arena,
                                 const struct collector_subject *subject)
{
    const char *ns = object_meta_text(subject->object, "namespace");
    struct collector_subject space = { .object = NULL };
    int r =
        *ns ? collector_read(collector, arena, arena_printf(arena, NAMESPACE_KEYS "%s", ns), &space)
            : 1;

    return r < 0 ? r : kube_is_deleting(space.object);
}

/* Something is left: it goes, or a finalizer keeps it, and the end of it wakes the namespace. */
static void collector_see_left(struct collector *collector, struct arena *arena UNUSED,
                               const struct kv_value *value UNUSED)
{
    collector->is_left = true;
}

static void collector_note_left(struct collector *collector, struct arena *arena UNUSED,
                                const struct kv_value *value)
{
    collector->is_left = true;
    collector_note(collector, value->key);
}

/* Nothing comes into a namespace that is going (kv_put_guarded), so all that is in it is noted once; from then on the
 * first object of each resource says whether there is one. */
static enum collector_outcome collector_empty_namespace(struct collector *collector,
                                                        struct arena *arena,
                                                        const struct collector_subject *subject)
{
    const struct resources *resources = collector->api->resources;
    const char *ns = object_meta_text(subject->object, "name"), *uid = collector_uid(subject);
    bool is_swept = map_get(collector->swept, uid);
    uint64_t revision;
    struct error err;

    collector->is_left = false;
    for (size_t i = 0; i < resources_len(resources); i++) {
        const struct resource *resource = resources_at(resources, i);

        if (resource->kind.namespaced && !resource->convert &&
            collector_walk(collector, stored_key(arena, resource, ns, NULL), is_swept,
                           is_swept ? collector_see_left : collector_note_left, &revision,
                           &err) < 0)
            return COLLECTOR_LATER;
    }
    map_set(collector->swept, uid, MARK);
    if (collector->is_left || json_len(json_path(subject->object, "metadata", "finalizers", NULL)))
        return COLLECTOR_DONE;
    return kv_delete(collector->api->kv, subject->key, subject->revision, &revision, NULL) == 0
               ? COLLECTOR_DONE
               : COLLECTOR_LATER;
}

/* Looks at the object of a key and does what is due. */
static enum collector_outcome collector_act(struct collector *collector, struct arena *arena,
                                            const char *key)
{
    struct collector_subject subject;
    enum collector_outcome outcome = COLLECTOR_DONE;
    int r = collector_read(collector, arena, key, &subject);

    if (r != 0)
        return r > 0 ? COLLECTOR_DONE : COLLECTOR_LATER;

    bool orphans = finalizer_has(subject.object, FINALIZER_ORPHAN);

    r = collector_is_in_going(collector, arena, &subject);
    if (r < 0)
        return COLLECTOR_LATER;
    /* As the namespace controller of a cluster, which takes from objects that are being deleted, too, what makes them
     * wait for the collector. */
    if (r > 0)
        return kube_is_deleting(subject.object) && !orphans &&
                       !finalizer_has(subject.object, FINALIZER_FOREGROUND)
                   ? COLLECTOR_DONE /* it is kept by another finalizer */
                   : collector_delete(collector, arena, &subject, POLICY_BACKGROUND);
    if (!kube_is_deleting(subject.object))
        return collector_look_at_owners(collector, arena, &subject);
    if (str_has_prefix(key, NAMESPACE_KEYS))
        return collector_empty_namespace(collector, arena, &subject);
    /* It is looked at again when its event was taken, and with it those of dependents that came before. */
    if (subject.revision > kv_watch_progress(collector->watch))
        return COLLECTOR_DONE;
    if (orphans)
        outcome = collector_orphan_dependents(collector, &subject);
    /* Objects of an older version may have a finalizer for deletion in the foreground. */
    return outcome != COLLECTOR_DONE
               ? outcome
               : collector_keep(collector, arena, &subject, "finalizers",
                                delete_finalizers(arena, subject.object, POLICY_BACKGROUND));
}

/* --- Events ----------------------------------------------------------------------------------- */

static void collector_expire(struct collector *collector, struct arena *arena UNUSED,
                             const struct kv_value *value)
{
    struct timeline_view time;
    int64_t now_us = timeline_now_us(collector->timeline, &time);
    uint64_t revision;

    if (timeline_age_us(&time, now_us, value->written_ms * 1000) >= EVENT_LIFETIME_US)
        (void)!kv_delete(collector->api->kv, value->key, value->revision, &revision, NULL);
}

static void collector_expire_events(struct collector *collector)
{
    int64_t now_ms = clock_monotonic_ms(collector->api->clock);
    uint64_t revision;
    struct error err;

    if (now_ms < collector->events_due_ms)
        return;
    collector->events_due_ms = now_ms + COLLECTOR_EVENTS_MS;
    if (collector_walk(collector, EVENT_KEYS, 0, collector_expire, &revision, &err) < 0)
        log_warn("events cannot be read, looking at them again later", "error", ERROR_TEXT(&err),
                 NULL);
}

/* --- the thread ------------------------------------------------------------------------------- */

/* The key that was noted last. */
static enum collector_outcome collector_look(struct collector *collector)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *key = arena_strdup(arena, collector->stack[--collector->stack_len]);

    map_remove(collector->noted, key);

    enum collector_outcome outcome = collector_act(collector, arena, key);

    if (outcome == COLLECTOR_MORE)
        collector_note(collector, key);
    if (outcome == COLLECTOR_LATER && !map_len(collector->later))
        collector->later_ms =
            clock_monotonic_ms(&CLOCK_SYSTEM) + collector->api->collector_retry_ms;
    if (outcome == COLLECTOR_LATER)
        map_set(collector->later, key, MARK);
    return outcome;
}

/* Returns whether there is more to do at once. */
static bool collector_work(struct collector *collector)
{
    size_t position = 0;
    const char *key;

    /* Keys that failed join the others, which do not wait for them. */
    if (map_len(collector->later) && clock_monotonic_ms(&CLOCK_SYSTEM) >= collector->later_ms) {
        while (map_next(collector->later, &position, &key, NULL))
            collector_note(collector, key);
        map_destroy(collector->later);
        collector->later = map_create(NULL);
    }
    for (size_t i = 0; i < COLLECTOR_BATCH && collector->stack_len; i++) {
        if (atomic_load(&collector->stopping) || collector_look(collector) == COLLECTOR_MORE)
            break;
    }
    return collector->stack_len;
}

static void *collector_run(void *ctx)
{
    struct collector *collector = ctx;

    while (!atomic_load(&collector->stopping)) {
        collector_take_events(collector);

        /* With events left, dependents of an owner may be missing here. */
        bool more = !collector->is_behind && collector_work(collector);

        collector_expire_events(collector);
        if (more)
            continue;

        bool idle = !collector->is_behind && !map_len(collector->later);
        struct timespec deadline =
            cond_deadline(idle ? COLLECTOR_EVENTS_MS : collector->api->collector_retry_ms);

        while (sem_clockwait(&collector->wake, CLOCK_MONOTONIC, &deadline) < 0 && errno == EINTR)
            ;
    }
    return NULL;
}

static void collector_release(struct collector *collector)
{
    kv_watch_close(collector->watch);
    map_destroy(collector->dependents);
    map_destroy(collector->swept);
    map_destroy(collector->noted);
    free(collector->stack);
    map_destroy(collector->later);
    timeline_destroy(collector->timeline);
    (void)sem_destroy(&collector->wake);
    free(collector);
}

int collector_create(struct api *api, struct collector **ret, struct error *err)
{
    struct collector *collector = xcalloc(1, sizeof(*collector));

    collector->api = api;
    collector_forget(collector);
    collector->later = map_create(NULL);
    collector->timeline = timeline_create(api->clock);
    (void)sem_init(&collector->wake, 0, 0);

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
    atomic_store(&collector->stopping, true);
    collector_wake(collector);
    thread_join(collector->thread);
    collector_release(collector);
}
