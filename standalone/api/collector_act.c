/* What the collector does about one object. */
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "standalone/api/collector.h"
#include "standalone/api/stored.h"
#include "standalone/patch/managed_fields.h"
#include "standalone/schema/object_meta.h"

/* What the collector of a cluster is to managedFields. */
#define MANAGER "kube-controller-manager"
/* Owners that are looked at; the rest counts as there. */
#define MAX_OWNERS 32
/* Of one look at what is in a namespace. */
#define SWEEP_PAGE 64
/* An Event is deleted when it was last written this long ago (--event-ttl of kube-apiserver). A restart
 * of the process begins the time again, as one of etcd does with its leases. */
#define EVENT_LIFETIME_US (INT64_C(60) * 60 * 1000000)

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

typedef bool collector_judge_fn(const cJSON *object, const char *uid);

/* The judgement of the object of this key; 0 if it is not there, less than 0: it cannot be read. */
static int collector_judge(struct collector *collector, const char *key, collector_judge_fn *judge,
                           const char *uid)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct collector_subject subject;
    int r = collector_read(collector, arena, key, &subject);

    return r == 0 ? judge(subject.object, uid) : r < 0 ? r : 0;
}

/* The resource of a key "/registry/<group>/<plural>/…": the one that is stored in this form. */
static const struct resource *collector_resource(struct collector *collector, const char *key)
{
    const struct resources *resources = collector->api->resources;
    const char *rest = key + strlen("/registry/");

    for (size_t i = 0; i < resources_len(resources); i++) {
        const struct resource *resource = resources_at(resources, i);

        if (str_has_prefix(rest, resource->storage) && rest[strlen(resource->storage)] == '/' &&
            !resource->to_storage)
            return resource;
    }
    return NULL;
}

/* The object with this list in metadata, which is left out when it is empty. Written, or deleted if nothing keeps it
 * any more, if it is still as it was read; false: not now. */
static bool collector_write(struct collector *collector, struct arena *arena,
                            const struct collector_subject *subject, const char *list,
                            const cJSON *items)
{
    const struct resource *resource = collector_resource(collector, subject->key);
    cJSON *object = arena_own(arena, json_copy(subject->object), json_free);
    uint64_t revision;
    struct error err;
    size_t len;

    if (!resource)
        return true;
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

    const char *text = stored_text(arena, resource, object, &len);

    if (delete_has_begun(object) && !json_len(json_path(object, "metadata", "finalizers", NULL)) &&
        !json_len(json_path(object, "spec", "finalizers", NULL)))
        return kv_delete(collector->api->kv, subject->key, subject->revision, &revision, &err) == 0;
    return kv_put(collector->api->kv, subject->key, text, len, subject->revision, &revision,
                  &err) == 0;
}

/* Deletes the object of a key, which was read as this one. policy NULL: as its finalizers say. False: not now. */
static bool collector_delete(struct collector *collector, struct arena *arena, const char *key,
                             const cJSON *object, const char *policy)
{
    const struct resource *resource = collector_resource(collector, key);

    if (!policy)
        policy = delete_has_finalizer(object, FINALIZER_ORPHAN)       ? POLICY_ORPHAN
                 : delete_has_finalizer(object, FINALIZER_FOREGROUND) ? POLICY_FOREGROUND
                                                                      : POLICY_BACKGROUND;

    const struct delete_options options = { .uid = object_meta_text(object, "uid"),
                                            .policy = policy };
    struct error err = { 0 };
    cJSON *after;

    return !resource ||
           delete_object(collector->api, arena, resource, object_meta_text(object, "namespace"),
                         object_meta_text(object, "name"), &options, &after, &err) != DELETE_FAILED;
}

/* --- objects with owners ---------------------------------------------------------------------- */

enum owner_state {
    OWNER_SOLID,   /* it is there, or that cannot be known */
    OWNER_MISSING, /* not there, or another one of that name */
    OWNER_WAITING, /* it is deleted in the foreground */
};

static enum owner_state collector_owner_state(const cJSON *reference, const cJSON *owner)
{
    if (!owner ||
        !str_equal(object_meta_text(owner, "uid"), json_string(json_get(reference, "uid"), "")))
        return OWNER_MISSING;
    return collector_is_waiting(owner) ? OWNER_WAITING : OWNER_SOLID;
}

/* Its dependents go before it, for its owner waits for all of them. */
static bool collector_delete_for_owner(struct collector *collector, struct arena *arena,
                                       const struct collector_subject *subject)
{
    const char *const *keys;
    size_t len = collector_dependents(collector, arena, collector_uid(subject), false, &keys);

    return collector_delete(collector, arena, subject->key, subject->object,
                            len ? POLICY_FOREGROUND : NULL);
}

/* One owner that is there keeps the object; references to the others go. */
static bool collector_look_at_owners(struct collector *collector, struct arena *arena,
                                     const struct collector_subject *subject)
{
    const char *ns = object_meta_text(subject->object, "namespace");
    cJSON *kept = json_array(arena);
    size_t len = 0, solid = 0, waiting = 0;

    json_for_each (reference, collector_owners(subject->object)) {
        const char *key = collector_owner_key(collector, arena, ns, reference);
        struct collector_subject owner = { .key = key };
        enum owner_state state = OWNER_SOLID;

        if (len++ < MAX_OWNERS && key) {
            if (collector_read(collector, arena, key, &owner) < 0)
                return false;
            state = collector_owner_state(reference, owner.object);
        }
        solid += state == OWNER_SOLID;
        waiting += state == OWNER_WAITING;
        if (state == OWNER_SOLID)
            json_add(kept, json_copy(reference));
    }
    if (solid == len)
        return true;
    if (solid)
        return collector_write(collector, arena, subject, "ownerReferences", kept);
    if (waiting)
        return collector_delete_for_owner(collector, arena, subject);
    return collector_delete(collector, arena, subject->key, subject->object, NULL);
}

/* --- owners that are being deleted ------------------------------------------------------------- */

static bool collector_remove_finalizer(struct collector *collector, struct arena *arena,
                                       const struct collector_subject *subject, const char *name)
{
    cJSON *kept = json_array(arena);

    json_for_each (item, json_path(subject->object, "metadata", "finalizers", NULL)) {
        if (!str_equal(json_string(item, ""), name))
            json_add_string(kept, json_string(item, ""));
    }
    return collector_write(collector, arena, subject, "finalizers", kept);
}

static bool collector_judge_waited_for(const cJSON *object, const char *uid)
{
    json_for_each (reference, collector_owners(object)) {
        if (collector_blocks(reference) &&
            str_equal(json_string(json_get(reference, "uid"), ""), uid))
            return true;
    }
    return false;
}

static bool collector_judge_going(const cJSON *object, const char *uid)
{
    (void)uid;
    return delete_has_begun(object);
}

/* The end of the dependent wakes this owner. In a namespace that goes nothing waits, even if the sweep of it was here
 * before. */
static enum collector_outcome collector_wait_on(struct collector *collector, struct arena *arena,
                                                const struct collector_subject *subject)
{
    const char *ns = object_meta_text(subject->object, "namespace");
    int r = *ns ? collector_judge(collector, arena_printf(arena, NAMESPACE_KEYS "%s", ns),
                                  collector_judge_going, NULL)
                : 0;

    if (r > 0 &&
        !collector_delete(collector, arena, subject->key, subject->object, POLICY_BACKGROUND))
        return COLLECTOR_LATER;
    return r < 0 ? COLLECTOR_LATER : COLLECTOR_DONE;
}

/* Dependents are looked at on their own: they were noted when their owner began to wait, or when they came. */
static enum collector_outcome collector_await_dependents(struct collector *collector,
                                                         struct arena *arena,
                                                         const struct collector_subject *subject)
{
    const char *uid = collector_uid(subject);
    const char *const *keys;
    size_t len = collector_dependents(collector, arena, uid, true, &keys);

    for (size_t i = 0; i < len; i++) {
        int r = collector_judge(collector, keys[i], collector_judge_waited_for, uid);

        if (r)
            return r < 0 ? COLLECTOR_LATER : collector_wait_on(collector, arena, subject);
    }
    if (len == COLLECTOR_BATCH)
        return COLLECTOR_MORE;
    return collector_remove_finalizer(collector, arena, subject, FINALIZER_FOREGROUND)
               ? COLLECTOR_DONE
               : COLLECTOR_LATER;
}

static bool collector_disown(struct collector *collector, const char *key, const char *uid)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct collector_subject dependent;
    cJSON *kept = json_array(arena);
    int r = collector_read(collector, arena, key, &dependent);

    if (r != 0)
        return r > 0;
    json_for_each (reference, collector_owners(dependent.object)) {
        if (!str_equal(json_string(json_get(reference, "uid"), ""), uid))
            json_add(kept, json_copy(reference));
    }
    return json_len(kept) == json_len(collector_owners(dependent.object)) ||
           collector_write(collector, arena, &dependent, "ownerReferences", kept);
}

static enum collector_outcome collector_orphan_dependents(struct collector *collector,
                                                          struct arena *arena,
                                                          const struct collector_subject *subject)
{
    const char *uid = collector_uid(subject);
    const char *const *keys;
    size_t len = collector_dependents(collector, arena, uid, false, &keys);

    for (size_t i = 0; i < len; i++) {
        if (!collector_disown(collector, keys[i], uid))
            return COLLECTOR_LATER;
    }
    if (len == COLLECTOR_BATCH)
        return COLLECTOR_MORE;
    return collector_remove_finalizer(collector, arena, subject, FINALIZER_ORPHAN)
               ? COLLECTOR_DONE
               : COLLECTOR_LATER;
}

/* --- namespaces that are being deleted: their content goes, a batch at a time, and then they do ------ */

void collector_sweep_destroy(void *pointer)
{
    struct collector_sweep *sweep = pointer;

    free(sweep->after);
    free(sweep);
}

static bool collector_is_swept(const struct resource *resource)
{
    return resource->kind.namespaced && !resource->to_storage;
}

/* As the namespace controller of a cluster, which takes from objects that are being deleted, too, what makes them
 * wait for others: two that wait for one another would stay, and the namespace with them. False: not now. */
static bool collector_sweep_one(struct collector *collector, const struct kv_value *value)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const cJSON *object;

    if (json_parse_own(arena, value->text, value->len, &object, NULL) < 0)
        return true;
    if (delete_has_begun(object) && !delete_has_finalizer(object, FINALIZER_ORPHAN) &&
        !delete_has_finalizer(object, FINALIZER_FOREGROUND))
        return true; /* it is kept by another finalizer */
    return collector_delete(collector, arena, value->key, object, POLICY_BACKGROUND);
}

/* One page of one resource. */
static enum collector_outcome collector_sweep_page(struct collector *collector, struct arena *arena,
                                                   struct collector_sweep *sweep, const char *ns)
{
    const struct resource *resource = resources_at(collector->api->resources, sweep->resource);
    const struct kv_range range = { .prefix = stored_key(arena, resource, ns, NULL),
                                    .after = sweep->after,
                                    .limit = SWEEP_PAGE,
                                    .max_bytes = COLLECTOR_PAGE_BYTES,
                                    .uncounted = true };
    struct kv_page page = { 0 };

    if (collector_is_swept(resource) && kv_list(collector->api->kv, arena, &range, &page, NULL) < 0)
        return COLLECTOR_LATER;
    atomic_fetch_add(&collector->looked_at, page.len);
    for (size_t i = 0; i < page.len; i++) {
        if (!collector_sweep_one(collector, &page.items[i]))
            return COLLECTOR_LATER;
    }
    free(sweep->after);
    sweep->after = page.remaining ? xstrdup(page.items[page.len - 1].key) : NULL;
    sweep->resource += !sweep->after;
    return COLLECTOR_MORE;
}

/* Something that is still there: 1, 0 or the error of the store. */
static int collector_find_left(struct collector *collector, struct arena *arena, const char *ns,
                               struct kv_value *ret)
{
    const struct resources *resources = collector->api->resources;

    for (size_t i = 0; i < resources_len(resources); i++) {
        const struct resource *resource = resources_at(resources, i);
        const struct kv_range range = { .prefix = stored_key(arena, resource, ns, NULL),
                                        .limit = 1,
                                        .uncounted = true };
        struct kv_page page;

        if (!collector_is_swept(resource))
            continue;

        int r = kv_list(collector->api->kv, arena, &range, &page, NULL);
        if (r < 0)
            return r;
        atomic_fetch_add(&collector->looked_at, page.len);
        if (page.len) {
            *ret = page.items[0];
            return 1;
        }
    }
    return 0;
}

static enum collector_outcome collector_empty_namespace(struct collector *collector,
                                                        struct arena *arena,
                                                        const struct collector_subject *subject)
{
    const char *ns = object_meta_text(subject->object, "name"), *uid = collector_uid(subject);
    struct collector_sweep *sweep = map_get(collector->sweeps, uid);
    struct kv_value left = { 0 };
    const cJSON *object;
    uint64_t revision;

    if (!sweep) {
        sweep = xcalloc(1, sizeof(*sweep));
        map_set(collector->sweeps, uid, sweep);
    }
    if (sweep->resource < resources_len(collector->api->resources))
        return collector_sweep_page(collector, arena, sweep, ns);

    /* All that was there was deleted; objects with finalizers may stay for long. */
    int r = collector_find_left(collector, arena, ns, &left);
    if (r < 0)
        return COLLECTOR_LATER;
    if (r > 0 && json_parse_own(arena, left.text, left.len, &object, NULL) == 0 &&
        !delete_has_begun(object)) {
        map_remove(collector->sweeps, uid); /* it came behind the sweep */
        return COLLECTOR_MORE;
    }
    if (r > 0 || json_len(json_path(subject->object, "metadata", "finalizers", NULL)))
        return COLLECTOR_DONE; /* the end of what is left wakes this one */
    return kv_delete(collector->api->kv, subject->key, subject->revision, &revision, NULL) == 0
               ? COLLECTOR_DONE
               : COLLECTOR_LATER;
}

enum collector_outcome collector_act(struct collector *collector, struct arena *arena,
                                     const char *key)
{
    struct collector_subject subject;
    int r = collector_read(collector, arena, key, &subject);

    if (r != 0)
        return r > 0 ? COLLECTOR_DONE : COLLECTOR_LATER;
    if (!delete_has_begun(subject.object))
        return collector_look_at_owners(collector, arena, &subject) ? COLLECTOR_DONE
                                                                    : COLLECTOR_LATER;
    if (str_has_prefix(key, NAMESPACE_KEYS))
        return collector_empty_namespace(collector, arena, &subject);
    /* It is looked at again when its event was taken, and with it those of dependents that came before. */
    if (subject.revision > kv_watch_progress(collector->watch))
        return COLLECTOR_DONE;
    if (delete_has_finalizer(subject.object, FINALIZER_ORPHAN))
        return collector_orphan_dependents(collector, arena, &subject);
    if (delete_has_finalizer(subject.object, FINALIZER_FOREGROUND))
        return collector_await_dependents(collector, arena, &subject);
    return COLLECTOR_DONE;
}

/* --- Events ----------------------------------------------------------------------------------- */

static void collector_expire(struct collector *collector, struct arena *arena,
                             const struct kv_value *value)
{
    static const char *const TIMES[][2] = { { "series", "lastObservedTime" },
                                            { "lastTimestamp", NULL },
                                            { "eventTime", NULL },
                                            { "metadata", "creationTimestamp" } };
    struct timeline_view time;
    int64_t now_us = timeline_now_us(collector->timeline, &time);
    int64_t newest_us = INT64_MIN, time_us;
    const cJSON *event;
    uint64_t revision;

    if (json_parse_own(arena, value->text, value->len, &event, NULL) < 0)
        return;
    for (size_t i = 0; i < ARRAY_LEN(TIMES); i++) {
        const char *text = json_string(json_path(event, TIMES[i][0], TIMES[i][1], NULL), "");

        if (rfc3339_parse(text, &time_us) && time_us > newest_us)
            newest_us = time_us;
    }
    if (newest_us != INT64_MIN && timeline_age_us(&time, now_us, newest_us) >= EVENT_LIFETIME_US)
        (void)!kv_delete(collector->api->kv, value->key, value->revision, &revision, NULL);
}

void collector_expire_events(struct collector *collector)
{
    int64_t now_ms = clock_monotonic_ms(collector->api->clock);
    uint64_t revision;
    struct error err;

    if (now_ms < collector->events_due_ms)
        return;
    collector->events_due_ms = now_ms + COLLECTOR_EVENTS_MS;
    if (collector_walk(collector, EVENT_KEYS, collector_expire, &revision, &err) < 0)
        log_warn("events cannot be read, looking at them again later", "error", ERROR_TEXT(&err),
                 NULL);
}
