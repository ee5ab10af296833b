#include "controller/scheduler/candidates.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/map.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "common/runtime/metrics.h"

/* A Proplet in one version; shared by the sets that hold it. */
struct entry {
    atomic_size_t refs;
    char *name;
    char *uid;
    char *version;
    char *device_type;
    cJSON *labels;
    struct proplet_external external;
    struct proplet proplet;
    struct proplet_k8s k8s; /* if it is indexed */
    struct candidate_device *devices;
    size_t device_count;
    bool ready;
    bool connected;
    bool closed; /* as its status says, and when it closes */
    int64_t close_us;
    char *absence; /* why it is not ready; NULL: it is */
};

struct counted_set {
    struct candidate *items;
    size_t len;
    uint64_t version; /* changes of the store that it knows */
    atomic_size_t refs;
    struct entry **entries;
};

struct space {
    struct counted_set *set; /* NULL: not asked for yet */
    uint64_t changes, seen;  /* the set is made of the store after so many changes */
    uint64_t openings;       /* Proplets that opened or closed */
};

struct candidates {
    struct candidate_sources sources;
    pthread_mutex_t lock;
    struct map *spaces; /* namespace -> space */
};

static struct metric DECODED = { .type = METRIC_COUNTER,
                                 .name = "propeller_candidates_decoded_total",
                                 .help = "Number of Proplets decoded for the scheduler." };

static struct metric COMPARED = {
    .type = METRIC_COUNTER,
    .name = "propeller_candidates_compared_total",
    .help = "Number of comparisons of a Proplet with the constraints of a Task."
};

static void entry_unref(struct entry *entry)
{
    if (atomic_fetch_sub(&entry->refs, 1) != 1)
        return;

    for (size_t i = 0; i < entry->external.capabilities.len; i++)
        free((char *)entry->external.capabilities.items[i]);
    free(entry->external.capabilities.items);
    for (size_t i = 0; i < entry->device_count; i++)
        free((char *)entry->devices[i].client_id);
    free(entry->devices);
    free(entry->device_type);
    free(entry->name);
    free(entry->uid);
    free(entry->absence);
    free(entry->version);
    json_free(entry->labels);
    free(entry);
}

static void set_unref(void *ptr)
{
    struct counted_set *set = ptr;

    if (!set || atomic_fetch_sub(&set->refs, 1) != 1)
        return;

    for (size_t i = 0; i < set->len; i++)
        entry_unref(set->entries[i]);
    free(set->entries);
    free(set->items);
    free(set);
}

static void space_free(void *value)
{
    struct space *space = value;

    set_unref(space->set);
    free(space);
}

struct candidates *candidates_create(const struct candidate_sources *sources)
{
    struct candidates *candidates = xcalloc(1, sizeof(*candidates));

    candidates->sources = *sources;
    candidates->spaces = map_create(space_free);
    pthread_mutex_init(&candidates->lock, NULL);
    return candidates;
}

void candidates_destroy(struct candidates *candidates)
{
    if (!candidates)
        return;

    map_destroy(candidates->spaces);
    pthread_mutex_destroy(&candidates->lock);
    free(candidates);
}

/* With the lock. */
static struct space *space_of(struct candidates *candidates, const char *ns)
{
    struct space *space = map_get(candidates->spaces, ns);

    if (!space) {
        space = xcalloc(1, sizeof(*space));
        map_set(candidates->spaces, ns, space);
    }
    return space;
}

void candidates_changed(struct candidates *candidates, const char *ns)
{
    pthread_mutex_lock(&candidates->lock);
    space_of(candidates, ns)->changes++;
    pthread_mutex_unlock(&candidates->lock);
}

void candidates_opened(struct candidates *candidates, const char *ns)
{
    pthread_mutex_lock(&candidates->lock);
    space_of(candidates, ns)->openings++;
    pthread_mutex_unlock(&candidates->lock);
}

static void copy_external(struct entry *entry, const struct proplet_external *external)
{
    const struct str_list *capabilities = &external->capabilities;
    const char **items = xcalloc(capabilities->len + 1, sizeof(*items));

    for (size_t i = 0; i < capabilities->len; i++)
        items[i] = xstrdup(capabilities->items[i]);
    if (external->device_type)
        entry->device_type = xstrdup(external->device_type);
    entry->external = *external;
    entry->external.device_type = entry->device_type;
    entry->external.capabilities = (struct str_list){ items, capabilities->len };
    entry->proplet.spec.external = &entry->external;
}

/* Those that are heard. */
static void copy_devices(struct entry *entry, const struct proplet *proplet)
{
    static const struct proplet_k8s_status NONE;
    const struct proplet_k8s_status *status =
        proplet->status.k8s_status ? proplet->status.k8s_status : &NONE;
    const struct proplet_device *devices = status->devices.items;

    entry->k8s.indexed_client_ids = true;
    entry->proplet.spec.k8s = &entry->k8s;
    entry->devices = xcalloc(status->devices.len + 1, sizeof(*entry->devices));
    for (size_t i = 0; i < status->devices.len; i++) {
        if (devices[i].connected && proplet_has_device(&proplet->spec, devices[i].client_id))
            entry->devices[entry->device_count++].client_id = xstrdup(devices[i].client_id);
    }
}

static void copy_availability(struct entry *entry, const struct proplet *proplet, const cJSON *json)
{
    const struct availability_status *status = proplet->status.availability;

    if (!status || !availability_is_used(&proplet->spec, proplet_is_reclaimed(json)))
        return;
    entry->closed = status->state != AVAILABILITY_OPEN;
    if (!entry->closed)
        entry->close_us = status->next_transition_us;
}

/* NULL: it is no candidate. */
static struct entry *entry_create(const struct kube_object *object)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const cJSON *json = kube_object_json(arena, object);
    const cJSON *labels = json_path(json, "metadata", "labels", NULL);
    struct proplet proplet = { 0 };

    metric_add(&DECODED, 1, NULL);
    if (proplet_decode(arena, json, &proplet, NULL) < 0)
        return NULL;

    struct entry *entry = xcalloc(1, sizeof(*entry));
    atomic_init(&entry->refs, 1);
    entry->name = xstrdup(object->name);
    entry->uid = xstrdup(object->uid);
    entry->version = xstrdup(object->resource_version);
    entry->labels = labels ? json_copy(labels) : NULL;
    entry->ready = condition_is(proplet.status.conditions, "Ready", CONDITION_TRUE);
    if (!entry->ready)
        entry->absence = xstrdup(scheduler_absence(arena, object->name, &proplet));
    entry->connected = condition_is(proplet.status.conditions, "Connected", CONDITION_TRUE);
    entry->proplet.spec.type = proplet.spec.type;
    entry->proplet.spec.unschedulable = proplet.spec.unschedulable;
    copy_availability(entry, &proplet, json);
    if (proplet_is_indexed(&proplet.spec))
        copy_devices(entry, &proplet);
    if (proplet.spec.external)
        copy_external(entry, proplet.spec.external);
    return entry;
}

/* The entry of the old set, if it is of this version. Both are in name order. */
static struct entry *reuse(const struct counted_set *old, size_t *position,
                           const struct kube_object *object)
{
    while (old && *position < old->len && strcmp(old->entries[*position]->name, object->name) < 0)
        ++*position;
    if (!old || *position == old->len)
        return NULL;

    struct entry *entry = old->entries[*position];
    if (!str_equal(entry->name, object->name) ||
        !str_equal(entry->version, object->resource_version))
        return NULL;

    atomic_fetch_add(&entry->refs, 1);
    return entry;
}

static struct counted_set *set_create(struct candidates *candidates, const struct counted_set *old,
                                      const char *ns, uint64_t version)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct object_list list = store_list(candidates->sources.proplets, arena, ns);
    struct counted_set *set = xcalloc(1, sizeof(*set));
    size_t position = 0;

    atomic_init(&set->refs, 1);
    set->version = version;
    set->entries = xcalloc(list.len + 1, sizeof(struct entry *));
    set->items = xcalloc(list.len + 1, sizeof(*set->items));
    for (size_t i = 0; i < list.len; i++) {
        if (list.items[i]->deleting)
            continue;
        struct entry *entry = reuse(old, &position, list.items[i]);
        if (!entry)
            entry = entry_create(list.items[i]);
        if (!entry)
            continue;
        set->entries[set->len] = entry;
        set->items[set->len++] = (struct candidate){ .name = entry->name,
                                                     .uid = entry->uid,
                                                     .proplet = &entry->proplet,
                                                     .labels = entry->labels,
                                                     .closed = entry->closed,
                                                     .close_us = entry->close_us,
                                                     .ready = entry->ready,
                                                     .absence = entry->absence,
                                                     .connected = entry->connected,
                                                     .devices = entry->devices,
                                                     .device_count = entry->device_count };
    }
    return set;
}

/* A new reference; NULL: there is none. */
static struct counted_set *current_set(struct candidates *candidates, const char *ns,
                                       uint64_t *ret_changes, uint64_t *ret_openings,
                                       bool *ret_is_new)
{
    pthread_mutex_lock(&candidates->lock);
    struct space *space = space_of(candidates, ns);
    struct counted_set *set = space->set;
    if (set)
        atomic_fetch_add(&set->refs, 1);
    *ret_changes = space->changes;
    *ret_openings = space->openings;
    *ret_is_new = set && space->seen == space->changes;
    pthread_mutex_unlock(&candidates->lock);
    return set;
}

static void replace_set(struct candidates *candidates, const char *ns, struct counted_set *set,
                        uint64_t changes)
{
    struct counted_set *old = NULL;

    pthread_mutex_lock(&candidates->lock);
    struct space *space = space_of(candidates, ns);
    if (!space->set || space->seen < changes) {
        atomic_fetch_add(&set->refs, 1);
        old = space->set;
        space->set = set;
        space->seen = changes;
    }
    pthread_mutex_unlock(&candidates->lock);
    set_unref(old);
}

const struct candidate_set *candidates_get(struct candidates *candidates, struct arena *arena,
                                           const char *ns)
{
    uint64_t changes, openings;
    bool is_new;
    struct counted_set *set = current_set(candidates, ns, &changes, &openings, &is_new);
    struct candidate_set *ret = arena_new(arena, struct candidate_set);

    if (!is_new) {
        struct counted_set *old = set;
        set = set_create(candidates, old, ns, changes);
        set_unref(old);
        replace_set(candidates, ns, set, changes);
    }
    arena_own(arena, set, set_unref);
    *ret = (struct candidate_set){ set->items, set->len, set->version + openings };
    return ret;
}

/* The plan of a Task that is scheduled looks there, too, and takes it off a closed Proplet. A choice that looked
 * elsewhere would bring it back, again and again. */
static void look_up_close(const struct candidates *candidates, struct candidate *candidate)
{
    if (!candidates->sources.availabilities)
        return;

    const struct availability is =
        availabilities_get(candidates->sources.availabilities, candidate->uid);
    candidate->closed = !availability_is_open_at(&is, candidate->now_us);
    candidate->close_us = candidate->closed ? 0 : is.next_us;
}

struct candidate candidate_count(struct candidates *candidates, struct arena *arena,
                                 const struct candidate *candidate, const char *ns, int64_t kept,
                                 int64_t now_us)
{
    struct placements *placements = candidates->sources.placements;
    struct candidate ret = *candidate;
    struct candidate_device *devices =
        arena_array(arena, struct candidate_device, candidate->device_count + 1);

    ret.now_us = now_us;
    look_up_close(candidates, &ret);
    ret.active = placements_count(placements, ns, candidate->name).active + kept;
    for (size_t i = 0; i < candidate->device_count; i++) {
        const char *client_id = candidate->devices[i].client_id;
        struct placement_count count =
            placements_device_count(placements, ns, candidate->name, client_id);

        devices[i] = (struct candidate_device){ client_id, count.active, count.total };
    }
    ret.devices = devices;
    return ret;
}

static int compare_name(const void *name, const void *candidate)
{
    return strcmp(name, ((const struct candidate *)candidate)->name);
}

const struct candidate *candidate_find(const struct candidate_set *set, const char *name)
{
    return bsearch(name, set->items, set->len, sizeof(*set->items), compare_name);
}

void candidates_compared(size_t count)
{
    metric_add(&COMPARED, (double)count, NULL);
}
