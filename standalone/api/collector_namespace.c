/* A namespace that is being deleted: what is in it goes, a batch at a time, and then it. */
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "standalone/api/collector_internal.h"
#include "standalone/api/delete_plan.h"
#include "standalone/api/stored.h"

/* Of one look at what is in a namespace. */
#define PAGE 64

void collector_sweep_destroy(void *pointer)
{
    struct collector_sweep *sweep = pointer;

    free(sweep->after);
    free(sweep);
}

static struct collector_sweep *sweep_of(struct collector *collector, const char *uid)
{
    struct collector_sweep *sweep = map_get(collector->sweeps, uid);

    if (!sweep) {
        sweep = xcalloc(1, sizeof(*sweep));
        map_set(collector->sweeps, uid, sweep);
    }
    return sweep;
}

static void move_on(struct collector_sweep *sweep, const char *after)
{
    free(sweep->after);
    sweep->after = after ? xstrdup(after) : NULL;
    sweep->resource += !after;
}

static bool is_swept(const struct resource *resource)
{
    return resource->kind.namespaced && !resource->to_storage;
}

/* It goes as soon as who put the other finalizers on it lets it go. */
static bool is_on_its_way(const cJSON *object)
{
    return collector_is_deleting(object) && !delete_has_finalizer(object, FINALIZER_ORPHAN) &&
           !delete_has_finalizer(object, FINALIZER_FOREGROUND);
}

/* As the namespace controller of a cluster, which takes from those that are being deleted, too, what makes them wait
 * for others: two that wait for one another would stay, and the namespace with them. False: not now. */
static bool delete_listed(struct collector *collector, const struct kv_value *value)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const cJSON *object;

    return json_parse_own(arena, value->text, value->len, &object, NULL) < 0 ||
           is_on_its_way(object) ||
           collector_delete(collector, arena, value->key, object, "Background");
}

/* One page of one resource. */
static enum collector_outcome sweep_on(struct collector *collector, struct arena *arena,
                                       struct collector_sweep *sweep, const char *ns)
{
    const struct resource *resource = resources_at(collector->api->resources, sweep->resource);
    struct kv_page page = { 0 };

    if (is_swept(resource)) {
        const struct kv_range range = { .prefix = stored_key(arena, resource, ns, NULL),
                                        .after = sweep->after,
                                        .limit = PAGE,
                                        .max_bytes = COLLECTOR_PAGE_BYTES,
                                        .uncounted = true };

        if (kv_list(collector->api->kv, arena, &range, &page, NULL) < 0)
            return COLLECTOR_LATER;
    }
    atomic_fetch_add(&collector->looked_at, page.len);
    for (size_t i = 0; i < page.len; i++) {
        if (!delete_listed(collector, &page.items[i]))
            return COLLECTOR_LATER;
    }
    move_on(sweep, page.remaining ? page.items[page.len - 1].key : NULL);
    return COLLECTOR_MORE;
}

/* Something that is still there: 1, 0 or the error of the store. */
static int find_left(struct collector *collector, struct arena *arena, const char *ns,
                     struct kv_value *ret)
{
    const struct resources *resources = collector->api->resources;

    for (size_t i = 0; i < resources_len(resources); i++) {
        const struct resource *resource = resources_at(resources, i);
        const struct kv_range range = { .prefix = stored_key(arena, resource, ns, NULL),
                                        .limit = 1,
                                        .uncounted = true };
        struct kv_page page;

        if (!is_swept(resource))
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

/* All that was there was deleted; what has finalizers may be there for long. */
static enum collector_outcome finish(struct collector *collector, struct arena *arena,
                                     const struct collector_subject *subject, const char *ns,
                                     const char *uid)
{
    struct kv_value left = { 0 };
    const cJSON *object;
    uint64_t revision;

    int r = find_left(collector, arena, ns, &left);
    if (r < 0)
        return COLLECTOR_LATER;
    if (r > 0 && json_parse_own(arena, left.text, left.len, &object, NULL) == 0 &&
        !collector_is_deleting(object)) {
        map_remove(collector->sweeps, uid); /* it came behind the sweep */
        return COLLECTOR_MORE;
    }
    if (r > 0 || json_len(json_path(subject->object, "metadata", "finalizers", NULL)))
        return COLLECTOR_DONE; /* the end of what is left wakes this one */
    return kv_delete(collector->api->kv, subject->key, subject->revision, &revision, NULL) == 0
               ? COLLECTOR_DONE
               : COLLECTOR_LATER;
}

enum collector_outcome collector_empty_namespace(struct collector *collector, struct arena *arena,
                                                 const struct collector_subject *subject)
{
    const char *ns = json_string(json_path(subject->object, "metadata", "name", NULL), "");
    const char *uid = json_string(json_path(subject->object, "metadata", "uid", NULL), "");
    struct collector_sweep *sweep = sweep_of(collector, uid);

    if (sweep->resource < resources_len(collector->api->resources))
        return sweep_on(collector, arena, sweep, ns);
    return finish(collector, arena, subject, ns, uid);
}
