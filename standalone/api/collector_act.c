/* What the collector does about one object. */
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "standalone/api/collector_internal.h"
#include "standalone/api/delete.h"
#include "standalone/api/delete_plan.h"
#include "standalone/api/stored.h"
#include "standalone/patch/managed_fields.h"

/* What the collector of a cluster is to managedFields. */
#define MANAGER "kube-controller-manager"
/* Objects that are read at once. */
#define PAGE 500

/* 1: not there. */
static int read_subject(struct collector *collector, struct arena *arena, const char *key,
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
static const struct resource *resource_of(struct collector *collector, const char *key)
{
    const struct resources *resources = collector->api->resources;

    for (size_t i = 0; i < resources_len(resources); i++) {
        const struct resource *resource = resources_at(resources, i);
        const char *rest = key + strlen("/registry/");

        if (str_has_prefix(rest, resource->storage) && rest[strlen(resource->storage)] == '/' &&
            !resource->to_storage)
            return resource;
    }
    return NULL;
}

/* Written if it is still as it was read; false: not now. Nobody holds any more what goes. */
static bool write_object(struct collector *collector, struct arena *arena,
                         const struct collector_subject *subject, cJSON *object)
{
    const struct resource *resource = resource_of(collector, subject->key);
    uint64_t revision;
    struct error err;
    size_t len;

    if (!resource)
        return true;

    const struct managed_fields_write fields = {
        .resource = resource,
        .subresource = "",
        .manager = MANAGER,
        .now_us = clock_wall_us(collector->api->clock),
    };

    managed_fields_update(arena, &fields, subject->object, object);

    const char *text = stored_text(arena, resource, object, &len);

    if (collector_is_deleting(object) &&
        !json_len(json_path(object, "metadata", "finalizers", NULL)) &&
        !json_len(json_path(object, "spec", "finalizers", NULL)))
        return kv_delete(collector->api->kv, subject->key, subject->revision, &revision, &err) == 0;
    return kv_put(collector->api->kv, subject->key, text, len, subject->revision, &revision,
                  &err) == 0;
}

static cJSON *copy_of(struct arena *arena, const cJSON *object)
{
    return arena_own(arena, json_copy(object), json_free);
}

static cJSON *metadata_of(cJSON *object)
{
    return (cJSON *)(uintptr_t)json_get(object, "metadata");
}

bool collector_delete(struct collector *collector, struct arena *arena, const char *key,
                      const cJSON *object, const char *policy)
{
    const struct resource *resource = resource_of(collector, key);
    if (!policy && delete_has_finalizer(object, FINALIZER_ORPHAN))
        policy = "Orphan";
    else if (!policy && delete_has_finalizer(object, FINALIZER_FOREGROUND))
        policy = "Foreground";

    const struct delete_options options = {
        .uid = json_string(json_path(object, "metadata", "uid", NULL), ""),
        .propagation_policy = policy ? policy : "Background",
        .orphan_dependents = -1,
    };
    struct error err = { 0 };
    cJSON *after;

    if (!resource)
        return true;
    return delete_object(collector->api, arena, resource,
                         json_string(json_path(object, "metadata", "namespace", NULL), ""),
                         json_string(json_path(object, "metadata", "name", NULL), ""), &options,
                         &after, &err) != DELETE_FAILED;
}

/* --- whom nobody owns any more ---------------------------------------------------------------- */

static bool drop_references(struct collector *collector, struct arena *arena,
                            const struct collector_subject *subject, const enum owner_state *states)
{
    cJSON *object = copy_of(arena, subject->object);
    cJSON *kept = json_array(arena);
    size_t i = 0;

    json_for_each (reference, json_path(subject->object, "metadata", "ownerReferences", NULL)) {
        if (i >= COLLECTOR_MAX_OWNERS || states[i] == OWNER_SOLID)
            json_add(kept, json_copy(reference));
        i++;
    }
    json_remove(metadata_of(object), "ownerReferences");
    if (json_len(kept))
        json_set_copy(metadata_of(object), "ownerReferences", kept);
    return write_object(collector, arena, subject, object);
}

static bool has_dependents(struct collector *collector, struct arena *arena,
                           const struct collector_subject *subject)
{
    const char *uid = json_string(json_path(subject->object, "metadata", "uid", NULL), "");
    const char *const *keys;

    return collector_dependents(collector, arena, uid, COLLECTOR_ALL, &(size_t){ 0 }, &keys) > 0;
}

/* What is true of the object of this key; less than 0: it cannot be read. */
static int is_waiting(struct collector *collector, const char *key)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct collector_subject subject;
    int r = read_subject(collector, arena, key, &subject);

    if (r != 0)
        return r < 0 ? r : 0;
    return collector_is_deleting(subject.object) &&
           delete_has_finalizer(subject.object, FINALIZER_FOREGROUND);
}

/* One of its dependents waits in the foreground: it may be in a circle of owners. All are looked at, once: who
 * calls this is deleted next. As is_waiting. */
static int has_waiting_dependent(struct collector *collector,
                                 const struct collector_subject *subject)
{
    const char *uid = json_string(json_path(subject->object, "metadata", "uid", NULL), "");
    size_t position = 0, len;

    do {
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();
        const char *const *keys = NULL;

        len = collector_dependents(collector, arena, uid, COLLECTOR_ALL, &position, &keys);
        for (size_t i = 0; i < len; i++) {
            int r = is_waiting(collector, keys[i]);

            if (r)
                return r;
        }
    } while (len == COLLECTOR_BATCH);
    return 0;
}

/* Its owners do not wait for it any more. */
static bool unblock(struct collector *collector, struct arena *arena,
                    const struct collector_subject *subject)
{
    cJSON *object = copy_of(arena, subject->object);
    cJSON *references = json_array(arena);

    json_for_each (reference, json_path(object, "metadata", "ownerReferences", NULL)) {
        cJSON *copy = json_copy(reference);

        if (json_bool(json_get(copy, "blockOwnerDeletion"), false))
            json_set_bool(copy, "blockOwnerDeletion", false);
        json_add(references, copy);
    }
    json_remove(metadata_of(object), "ownerReferences");
    json_set_copy(metadata_of(object), "ownerReferences", references);
    return write_object(collector, arena, subject, object);
}

/* As the collector of a cluster: a circle of owners that all wait is broken where it closes. */
static bool delete_foreground(struct collector *collector, struct arena *arena,
                              const struct collector_subject *subject)
{
    if (!has_dependents(collector, arena, subject))
        return collector_delete(collector, arena, subject->key, subject->object, NULL);

    int r = has_waiting_dependent(collector, subject);

    if (r < 0 || (r > 0 && !unblock(collector, arena, subject)))
        return false;
    return collector_delete(collector, arena, subject->key, subject->object, "Foreground");
}

static bool look_at_owners(struct collector *collector, struct arena *arena,
                           const struct collector_subject *subject)
{
    const char *ns = json_string(json_path(subject->object, "metadata", "namespace", NULL), "");
    enum owner_state states[COLLECTOR_MAX_OWNERS] = { OWNER_SOLID };
    size_t len = 0;

    json_for_each (reference, json_path(subject->object, "metadata", "ownerReferences", NULL)) {
        const char *key = collector_owner_key(arena, collector->api->resources, ns, reference);
        struct collector_subject owner = { .key = key };

        if (len == COLLECTOR_MAX_OWNERS)
            break;
        if (key && read_subject(collector, arena, key, &owner) < 0)
            return false;
        states[len++] = key ? collector_owner_state(reference, owner.object) : OWNER_SOLID;
    }
    switch (collector_plan(states, len)) {
    case COLLECT_NOTHING:
        return true;
    case COLLECT_DROP_REFERENCES:
        return drop_references(collector, arena, subject, states);
    case COLLECT_DELETE:
        return collector_delete(collector, arena, subject->key, subject->object, NULL);
    case COLLECT_DELETE_FOREGROUND:
        return delete_foreground(collector, arena, subject);
    }
    return true;
}

/* --- owners that are being deleted ------------------------------------------------------------- */

static bool names_owner(const cJSON *object, const char *uid, bool blocking)
{
    json_for_each (reference, json_path(object, "metadata", "ownerReferences", NULL)) {
        if (str_equal(json_string(json_get(reference, "uid"), ""), uid) &&
            (!blocking || json_bool(json_get(reference, "blockOwnerDeletion"), false)))
            return true;
    }
    return false;
}

static bool remove_finalizer(struct collector *collector, struct arena *arena,
                             const struct collector_subject *subject, const char *name)
{
    cJSON *object = copy_of(arena, subject->object);
    cJSON *kept = json_array(arena);

    json_for_each (item, json_path(subject->object, "metadata", "finalizers", NULL)) {
        if (!str_equal(json_string(item, ""), name))
            json_add_string(kept, json_string(item, ""));
    }
    json_remove(metadata_of(object), "finalizers");
    if (json_len(kept))
        json_set_copy(metadata_of(object), "finalizers", kept);
    return write_object(collector, arena, subject, object);
}

static bool disown(struct collector *collector, struct arena *arena,
                   const struct collector_subject *dependent, const char *uid)
{
    cJSON *object = copy_of(arena, dependent->object);
    cJSON *kept = json_array(arena);

    json_for_each (reference, json_path(dependent->object, "metadata", "ownerReferences", NULL)) {
        if (!str_equal(json_string(json_get(reference, "uid"), ""), uid))
            json_add(kept, json_copy(reference));
    }
    json_remove(metadata_of(object), "ownerReferences");
    if (json_len(kept))
        json_set_copy(metadata_of(object), "ownerReferences", kept);
    return write_object(collector, arena, dependent, object);
}

/* What is true of the object of this key; less than 0: it cannot be read. */
static int is_waited_for(struct collector *collector, const char *key, const char *uid)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct collector_subject dependent;
    int r = read_subject(collector, arena, key, &dependent);

    return r == 0 ? names_owner(dependent.object, uid, true) : r < 0 ? r : 0;
}

/* What is true; less than 0: it cannot be read. */
static int is_in_going_namespace(struct collector *collector, struct arena *arena,
                                 const struct collector_subject *subject)
{
    const char *ns = json_string(json_path(subject->object, "metadata", "namespace", NULL), "");
    struct collector_subject place;

    if (!*ns)
        return 0;

    int r = read_subject(collector, arena, arena_printf(arena, NAMESPACE_KEYS "%s", ns), &place);

    return r == 0 ? collector_is_deleting(place.object) : r < 0 ? r : 0;
}

/* The end of who is waited for wakes this one. In a namespace that goes nobody waits, even if who empties it
 * was here before. */
static enum collector_outcome wait_on(struct collector *collector, struct arena *arena,
                                      const struct collector_subject *subject)
{
    int r = is_in_going_namespace(collector, arena, subject);

    if (r > 0 && !collector_delete(collector, arena, subject->key, subject->object, "Background"))
        return COLLECTOR_LATER;
    return r < 0 ? COLLECTOR_LATER : COLLECTOR_DONE;
}

/* Dependents are looked at on their own: they were noted when their owner began to wait, or when they came. */
static enum collector_outcome await_dependents(struct collector *collector, struct arena *arena,
                                               const struct collector_subject *subject)
{
    const char *uid = json_string(json_path(subject->object, "metadata", "uid", NULL), "");
    const char *const *keys = NULL;
    size_t position = 0;
    size_t len = collector_dependents(collector, arena, uid, COLLECTOR_BLOCKING, &position, &keys);

    for (size_t i = 0; i < len; i++) {
        int r = is_waited_for(collector, keys[i], uid);

        if (r)
            return r < 0 ? COLLECTOR_LATER : wait_on(collector, arena, subject);
    }
    if (len == COLLECTOR_BATCH)
        return COLLECTOR_MORE;
    return remove_finalizer(collector, arena, subject, FINALIZER_FOREGROUND) ? COLLECTOR_DONE
                                                                             : COLLECTOR_LATER;
}

static bool disown_one(struct collector *collector, const char *key, const char *uid)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct collector_subject dependent;
    int r = read_subject(collector, arena, key, &dependent);

    return r > 0 || (r == 0 && (!names_owner(dependent.object, uid, false) ||
                                disown(collector, arena, &dependent, uid)));
}

static enum collector_outcome orphan_dependents(struct collector *collector, struct arena *arena,
                                                const struct collector_subject *subject)
{
    const char *uid = json_string(json_path(subject->object, "metadata", "uid", NULL), "");
    const char *const *keys = NULL;
    size_t position = 0;
    size_t len = collector_dependents(collector, arena, uid, COLLECTOR_ALL, &position, &keys);

    for (size_t i = 0; i < len; i++) {
        if (!disown_one(collector, keys[i], uid))
            return COLLECTOR_LATER;
    }
    if (len == COLLECTOR_BATCH)
        return COLLECTOR_MORE;
    return remove_finalizer(collector, arena, subject, FINALIZER_ORPHAN) ? COLLECTOR_DONE
                                                                         : COLLECTOR_LATER;
}

enum collector_outcome collector_act(struct collector *collector, struct arena *arena,
                                     const char *key)
{
    struct collector_subject subject;
    int r = read_subject(collector, arena, key, &subject);

    if (r != 0)
        return r > 0 ? COLLECTOR_DONE : COLLECTOR_LATER;
    if (!collector_is_deleting(subject.object))
        return look_at_owners(collector, arena, &subject) ? COLLECTOR_DONE : COLLECTOR_LATER;
    if (str_has_prefix(key, NAMESPACE_KEYS))
        return collector_empty_namespace(collector, arena, &subject);
    /* It is looked at again when its event was taken, and with it those of dependents that came before. */
    if (subject.revision > kv_watch_progress(collector->watch))
        return COLLECTOR_DONE;
    if (delete_has_finalizer(subject.object, FINALIZER_ORPHAN))
        return orphan_dependents(collector, arena, &subject);
    if (delete_has_finalizer(subject.object, FINALIZER_FOREGROUND))
        return collector->owners_turn ? await_dependents(collector, arena, &subject)
                                      : COLLECTOR_OWNER;
    return COLLECTOR_DONE;
}

/* A page of them; *after goes to its last. 1: there are more. */
static int expire_page(struct collector *collector, char **after, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct kv_range range = { .prefix = EVENT_KEYS,
                                    .after = *after,
                                    .limit = PAGE,
                                    .max_bytes = COLLECTOR_PAGE_BYTES,
                                    .uncounted = true };
    struct timeline_view time;
    int64_t now_us = timeline_now_us(collector->timeline, &time);
    struct kv_page page;
    uint64_t revision;

    int r = kv_list(collector->api->kv, arena, &range, &page, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < page.len; i++) {
        const struct kv_value *value = &page.items[i];
        const cJSON *event;

        if (json_parse_own(arena, value->text, value->len, &event, NULL) == 0 &&
            collector_event_is_over(event, &time, now_us))
            (void)!kv_delete(collector->api->kv, value->key, value->revision, &revision, NULL);
    }
    free(*after);
    *after = page.len ? xstrdup(page.items[page.len - 1].key) : NULL;
    return page.remaining > 0;
}

void collector_expire_events(struct collector *collector)
{
    int64_t now_ms = clock_monotonic_ms(collector->api->clock);
    char *after = NULL;
    struct error err;
    int r;

    if (now_ms < collector->events_due_ms)
        return;
    collector->events_due_ms = now_ms + COLLECTOR_EVENTS_MS;
    do
        r = expire_page(collector, &after, &err);
    while (r > 0);
    free(after);
    if (r < 0)
        log_warn("events cannot be read, looking at them again later", "error", ERROR_TEXT(&err),
                 NULL);
}
