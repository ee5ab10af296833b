/* What the collector does about one object. */
#include <string.h>

#include "common/base/log.h"
#include "common/base/str.h"
#include "standalone/api/collector_internal.h"
#include "standalone/api/delete.h"
#include "standalone/api/stored.h"

#define NAMESPACES "/registry/core/namespaces/"
#define EVENTS "/registry/core/events/"
/* Objects that are read at once. */
#define PAGE 500

/* An object as it is stored. */
struct subject {
    const char *key;
    const cJSON *object;
    uint64_t revision;
};

/* 1: not there. */
static int read_subject(struct collector *collector, struct arena *arena, const char *key,
                        struct subject *ret)
{
    struct kv_value value;
    struct error err;
    int r = kv_get(collector->api->kv, arena, key, 0, &value, &err);

    if (r == -ERROR_NOT_FOUND)
        return 1;
    if (r == 0)
        r = json_parse(arena, value.text, value.len, &ret->object, &err);
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

/* Written if it is still as it was read; false: not now. */
static bool write_object(struct collector *collector, struct arena *arena,
                         const struct subject *subject, cJSON *object)
{
    uint64_t revision;
    struct error err;
    size_t len;
    const char *text = json_text(arena, object, &len);

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

static bool delete_one(struct collector *collector, struct arena *arena, const char *key,
                       const cJSON *object, const char *policy)
{
    const struct resource *resource = resource_of(collector, key);
    const struct delete_options options = {
        .uid = json_string(json_path(object, "metadata", "uid", NULL), ""),
        .resource_version = "",
        .propagation_policy = policy,
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
                            const struct subject *subject, const enum owner_state *states)
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

static bool look_at_owners(struct collector *collector, struct arena *arena,
                           const struct subject *subject)
{
    const char *ns = json_string(json_path(subject->object, "metadata", "namespace", NULL), "");
    enum owner_state states[COLLECTOR_MAX_OWNERS] = { OWNER_SOLID };
    size_t len = 0;

    json_for_each (reference, json_path(subject->object, "metadata", "ownerReferences", NULL)) {
        const char *key = collector_owner_key(arena, collector->api->resources, ns, reference);
        struct subject owner = { .key = key };

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
        return delete_one(collector, arena, subject->key, subject->object, "Background");
    case COLLECT_DELETE_FOREGROUND:
        return delete_one(collector, arena, subject->key, subject->object, "Foreground");
    }
    return true;
}

/* --- owners that are being deleted ------------------------------------------------------------- */

static bool names_owner(const cJSON *object, const char *uid, bool blocking)
{
    json_for_each (reference, json_path(object, "metadata", "ownerReferences", NULL)) {
        if (str_equal(json_string(json_get(reference, "uid"), ""), uid))
            return !blocking || json_bool(json_get(reference, "blockOwnerDeletion"), false);
    }
    return false;
}

static bool remove_finalizer(struct collector *collector, struct arena *arena,
                             const struct subject *subject, const char *name)
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
                   const struct subject *dependent, const char *uid)
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

static bool look_at_dependents(struct collector *collector, struct arena *arena,
                               const struct subject *subject, bool orphan)
{
    const char *uid = json_string(json_path(subject->object, "metadata", "uid", NULL), "");
    const char *const *keys = NULL;
    size_t len = collector_dependents(collector, arena, uid, &keys);
    bool waits = false;

    for (size_t i = 0; i < len; i++) {
        struct subject dependent;
        int r = read_subject(collector, arena, keys[i], &dependent);

        if (r < 0)
            return false;
        if (r > 0 || !names_owner(dependent.object, uid, false))
            continue;
        if (orphan && !disown(collector, arena, &dependent, uid))
            return false;
        if (!orphan && !collector_is_deleting(dependent.object) &&
            !look_at_owners(collector, arena, &dependent))
            return false;
        waits = waits || (!orphan && names_owner(dependent.object, uid, true) &&
                          read_subject(collector, arena, keys[i], &dependent) == 0);
    }
    if (waits)
        return true; /* their ends wake this one */
    return remove_finalizer(collector, arena, subject,
                            orphan ? FINALIZER_ORPHAN : FINALIZER_FOREGROUND);
}

/* --- namespaces ------------------------------------------------------------------------------- */

/* Deletes what is there; *ret_left counts what waits for finalizers. */
static bool empty(struct collector *collector, struct arena *arena, const struct resource *resource,
                  const char *ns, size_t *ret_left)
{
    const struct kv_range range = { .prefix = stored_key(arena, resource, ns, NULL) };
    struct kv_page page;

    if (kv_list(collector->api->kv, arena, &range, &page, NULL) < 0)
        return false;
    for (size_t i = 0; i < page.len; i++) {
        const cJSON *object;

        if (json_parse(arena, page.items[i].text, page.items[i].len, &object, NULL) < 0)
            continue;
        if (!collector_is_deleting(object) &&
            !delete_one(collector, arena, page.items[i].key, object, "Background"))
            return false;
        *ret_left += kv_count(collector->api->kv, page.items[i].key);
    }
    return true;
}

static bool finish_namespace(struct collector *collector, struct arena *arena,
                             const struct subject *subject)
{
    const struct resources *resources = collector->api->resources;
    const char *ns = subject->key + strlen(NAMESPACES);
    uint64_t revision;
    size_t left = 0;

    for (size_t i = 0; i < resources_len(resources); i++) {
        const struct resource *resource = resources_at(resources, i);

        if (resource->kind.namespaced && !resource->to_storage &&
            !empty(collector, arena, resource, ns, &left))
            return false;
    }
    if (left || json_len(json_path(subject->object, "metadata", "finalizers", NULL)))
        return true; /* the end of what is left wakes this one */
    return kv_delete(collector->api->kv, subject->key, subject->revision, &revision, NULL) == 0;
}

bool collector_act(struct collector *collector, struct arena *arena, const char *key)
{
    struct subject subject;
    int r = read_subject(collector, arena, key, &subject);

    if (r != 0)
        return r > 0;
    if (collector_is_deleting(subject.object)) {
        if (str_has_prefix(key, NAMESPACES))
            return finish_namespace(collector, arena, &subject);
        if (collector_has_finalizer(subject.object, FINALIZER_ORPHAN))
            return look_at_dependents(collector, arena, &subject, true);
        if (collector_has_finalizer(subject.object, FINALIZER_FOREGROUND))
            return look_at_dependents(collector, arena, &subject, false);
        return true;
    }
    return look_at_owners(collector, arena, &subject);
}

void collector_expire_events(struct collector *collector)
{
    int64_t now_ms = clock_monotonic_ms(collector->api->clock);
    int64_t now_us = clock_wall_us(collector->api->clock);
    struct kv_page page;
    struct error err;
    uint64_t revision;

    if (now_ms < collector->events_due_ms)
        return;
    collector->events_due_ms = now_ms + COLLECTOR_EVENTS_MS;

    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct kv_range range = { .prefix = EVENTS, .limit = PAGE };

    do {
        if (kv_list(collector->api->kv, arena, &range, &page, &err) < 0) {
            log_warn("events cannot be read, looking at them again later", "error", err.message,
                     NULL);
            return;
        }
        for (size_t i = 0; i < page.len; i++) {
            const struct kv_value *value = &page.items[i];
            const cJSON *event;

            range.after = value->key;
            if (json_parse(arena, value->text, value->len, &event, NULL) == 0 &&
                collector_event_is_over(event, now_us))
                (void)!kv_delete(collector->api->kv, value->key, value->revision, &revision, NULL);
        }
        range.revision = page.revision;
    } while (page.remaining);
}
