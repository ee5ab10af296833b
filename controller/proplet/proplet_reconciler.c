#include <string.h>

#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/kube/finalizer.h"
#include "common/runtime/metrics.h"
#include "controller/cache/indexes.h"
#include "controller/proplet/proplet.h"
#include "controller/proplet/proplet_availability.h"
#include "controller/proplet/proplet_plan.h"
#include "controller/proplet/proplet_pods.h"
#include "controller/proplet/proplet_reclaim.h"
#include "controller/shared/put_back.h"
#include "controller/shared/status_writer.h"

static struct metric BRAKE = {
    .type = METRIC_GAUGE,
    .name = "propeller_fleet_brake",
    .help = "1 while eviction is suppressed because too many Proplets went Offline at once."
};

struct identity {
    const char *client_id;
    const char *key; /* fleet_key */
};

struct identity_list {
    struct arena *arena;
    struct identity items[PROPLET_MAX_REPLICAS];
    size_t len;
};

static void add_identity(void *ctx, const char *client_id, const char *key)
{
    struct identity_list *list = ctx;

    if (list->len < ARRAY_LEN(list->items))
        list->items[list->len++] = (struct identity){ arena_strdup(list->arena, client_id),
                                                      arena_strdup(list->arena, key) };
}

/* NULL: of nobody. */
static struct identity_list *identities_of(struct arena *arena, const struct kube_object *object)
{
    struct identity_list *list = arena_new(arena, struct identity_list);

    list->arena = arena;
    if (object)
        proplet_identities(kube_object_json(arena, object), add_identity, list);
    return list;
}

/* NULL: the list is empty. */
static const struct kube_object *oldest_of(const struct object_list *list)
{
    const struct kube_object *oldest = NULL;

    for (size_t i = 0; i < list->len; i++) {
        if (!oldest || kube_object_is_older(list->items[i], oldest))
            oldest = list->items[i];
    }
    return oldest;
}

/* Returns the oldest object under the value, NULL if that is this one. */
static const struct kube_object *older_holder(const struct proplet_deps *deps, struct arena *arena,
                                              const struct kube_object *object, const char *index,
                                              const char *value)
{
    struct object_list list = store_find(informer_store(deps->proplets), arena, index, value);
    const struct kube_object *oldest = oldest_of(&list);

    return oldest && !str_equal(oldest->uid, object->uid) ? oldest : NULL;
}

static const char *key_of(struct arena *arena, const struct kube_object *object)
{
    return object ? kube_object_key(object, arena_alloc(arena, 1, KUBE_KEY_LEN)) : NULL;
}

static bool is_embedded(struct arena *arena, const struct kube_object *object)
{
    return object && proplet_dialect_of(kube_object_json(arena, object)) == DIALECT_EMBEDDED;
}

/* The oldest Proplet of a channel decides who may use it, so that no later one can take it away: if it
 * is embedded it is the only one, if not all that are not embedded may. */
static const char *channel_taken_by(const struct proplet_deps *deps, struct arena *arena,
                                    const struct kube_object *object, const char *channel)
{
    if (!store_count(informer_store(deps->proplets), INDEX_EMBEDDED, channel))
        return NULL;

    const struct kube_object *first = older_holder(deps, arena, object, INDEX_CHANNEL, channel);
    bool conflict = first && (is_embedded(arena, first) || is_embedded(arena, object));
    return conflict ? key_of(arena, first) : NULL;
}

static void observe_devices(const struct proplet_deps *deps, struct arena *arena,
                            const struct kube_object *object,
                            const struct identity_list *identities, struct proplet_observed *ret)
{
    bool indexed = proplet_is_indexed(&ret->proplet.spec);
    struct fleet_device *devices = arena_array(arena, struct fleet_device, identities->len + 1);

    for (size_t i = 0; i < identities->len; i++) {
        fleet_get(deps->fleet, arena, identities->items[i].key, &devices[i]);
        if (!ret->claimed_by)
            ret->claimed_by = key_of(
                arena, older_holder(deps, arena, object, INDEX_IDENTITY, identities->items[i].key));
    }
    ret->device = devices[0];
    ret->pod_devices = devices;
    ret->pod_device_count = indexed ? identities->len : 0;
}

static int observe(const struct proplet_deps *deps, struct reconcile *rc,
                   const struct kube_object *object, const cJSON *json, const char *channel,
                   const struct identity_list *identities, struct proplet_observed *ret,
                   struct error *err)
{
    *ret = (struct proplet_observed){
        .name = object->name,
        .generation = object->generation,
        .mqtt_configured = deps->bridge != NULL,
        .channel_taken_by = channel_taken_by(deps, rc->arena, object, channel),
        .tasks = placements_count(deps->placements, object->ns, object->name),
        .now_ms = clock_monotonic_ms(rc->clock),
        .now_us = timeline_now_us(deps->timeline, NULL),
    };
    ret->strangers = strangers_on(fleet_strangers(deps->fleet), rc->arena, channel, ret->now_ms);
    if (deps->bridge)
        ret->channel = bridge_channel_state(deps->bridge, channel);

    int r = proplet_decode(rc->arena, json, &ret->proplet, err);
    if (r < 0)
        return r;
    ret->threshold_ms =
        proplet_heartbeat_timeout_ms(&ret->proplet.spec, deps->settings->last_seen_threshold_ms);
    observe_devices(deps, rc->arena, object, identities, ret);
    ret->availability = proplet_availability_look(deps, rc->arena, object, json, &ret->proplet,
                                                  ret->now_us, &ret->availability_message);
    return 0;
}

static struct metric TRANSITIONS = {
    .type = METRIC_COUNTER,
    .name = "propeller_proplet_transitions_total",
    .help = "Number of changes of the phase of a Proplet, by the new phase.",
    .labels = { "phase" },
};

static const char *const RECLAIM_SOURCES[] = { "annotation", "device" };
static struct metric RECLAIMS = {
    .type = METRIC_COUNTER,
    .name = "propeller_reclaims_total",
    .help =
        "Number of Proplets that were reclaimed, by the source: a device, or a person who set the "
        "annotation.",
    .labels = { "source" },
};

void proplet_metrics_begin(void)
{
    metric_set(&BRAKE, 0, NULL);
    for (size_t i = 0; i < ARRAY_LEN(RECLAIM_SOURCES); i++)
        metric_add(&RECLAIMS, 0, RECLAIM_SOURCES[i], NULL);
    for (size_t i = 0; PROPLET_PHASE_NAMES[i]; i++)
        metric_add(&TRANSITIONS, 0, PROPLET_PHASE_NAMES[i], NULL);
}

/* The note has the reason that was given. Only a message of a device has a time beside it. */
static void announce_reclaim(struct reconcile *rc, const struct kube_object *object)
{
    const cJSON *annotations =
        json_path(kube_object_json(rc->arena, object), "metadata", "annotations", NULL);
    const char *reason = json_string(json_get(annotations, ANNOTATION_RECLAIM_REASON), "");
    const char *note = PROPLET_EVENT_RECLAIMED.note;

    if (!str_is_empty(reason))
        note = arena_printf(rc->arena, "its owner wants the machine back: %s", reason);
    metric_add(&RECLAIMS, 1, RECLAIM_SOURCES[json_get(annotations, ANNOTATION_RECLAIM_AT) ? 1 : 0],
               NULL);
    events_emit_note(rc->events, &KIND_PROPLET, object, &PROPLET_EVENT_RECLAIMED, note);
}

static void announce(struct reconcile *rc, const struct kube_object *object,
                     const struct proplet_plan *plan)
{
    const struct event *const events[] = { plan->event, plan->availability_event };

    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        if (!events[i])
            continue;
        log_info("proplet changed", "uid", object->uid, "event", events[i]->reason, NULL);
        if (events[i] == &PROPLET_EVENT_RECLAIMED)
            announce_reclaim(rc, object);
        else
            events_emit(rc->events, &KIND_PROPLET, object, events[i]);
    }
}

/* Whose turn it is when the brake begins or ends to hold says so, for all. */
static void announce_brake(const struct proplet_deps *deps, const struct reconcile *rc)
{
    struct brake_plan brake;

    if (!fleet_brake_news(deps->brake, clock_boot_ms(rc->clock) * 1000,
                          clock_monotonic_ms(rc->clock), &brake))
        return;
    metric_set(&BRAKE, brake.holds, NULL);
    if (brake.holds) {
        log_warn("most of the fleet went Offline at once, no Proplet counts as lost until enough "
                 "are back",
                 "offline", LOG_INT((int64_t)brake.offline), "fleet", LOG_INT((int64_t)brake.fleet),
                 NULL);
    } else {
        log_info("enough of the fleet is back, Proplets count as lost again", NULL);
    }
}

static void note_news(const struct proplet_deps *deps, const char *key,
                      const struct fleet_device *device, enum device_news news)
{
    if (news == DEVICE_SILENT)
        fleet_silent(deps->fleet, key, device->last_seen_ms);
    if (news == DEVICE_HEARD)
        fleet_fresh(deps->fleet, key, device->alive_since_ms); /* before any Task may */
}

static void note_all_news(const struct proplet_deps *deps, const struct identity_list *identities,
                          const struct proplet_observed *observed, const struct proplet_plan *plan)
{
    for (size_t i = 0; i < identities->len; i++) {
        if (observed->pod_device_count)
            note_news(deps, identities->items[i].key, &observed->pod_devices[i],
                      plan->pod_devices[i]);
        else
            note_news(deps, identities->items[i].key, &observed->device, plan->device);
    }
}

/* Writes of statuses that changed by time alone, of all Proplets. In each second at most 48 and what is made up for, 5,
 * and beside them the refreshes (10 by default): 64 together. */
static const struct refresh_limits OPENINGS = { .qps = 48, .catch_up_ms = 100 };

/* A whole fleet may open or close at one second. No worker waits for a write before the Tasks of all these Proplets have
 * heard of it: the next turn comes behind the Proplets that are due. */
static int64_t opening_slot_ms(const struct proplet_deps *deps, const struct kube_object *object,
                               bool just_changed, int64_t now_ms)
{
    int64_t slot_ms = refresh_budget_reserve(deps->openings, object->uid, false, &OPENINGS, now_ms);

    return just_changed && slot_ms <= now_ms ? now_ms + 1 : slot_ms;
}

/* Returns the time at which the status may be written; 0: at once. */
static int64_t write_slot_ms(const struct proplet_deps *deps, const struct kube_object *object,
                             enum proplet_write write, bool just_changed, int64_t now_ms)
{
    if (write == PROPLET_WRITE_NOW)
        return 0;
    if (write == PROPLET_WRITE_OPENING)
        return opening_slot_ms(deps, object, just_changed, now_ms);
    return refresh_budget_reserve(deps->budget, object->uid, write == PROPLET_WRITE_NEWS,
                                  &deps->settings->refresh, now_ms);
}

static int act(const struct proplet_deps *deps, struct reconcile *rc,
               const struct kube_object *object, const cJSON *json,
               const struct proplet_observed *observed, const struct proplet_plan *plan,
               struct error *err)
{
    if (plan->deadline_ms)
        reconcile_again_after(rc, plan->deadline_ms - observed->now_ms);
    if (plan->write == PROPLET_WRITE_NOTHING)
        return 0;

    int64_t slot_ms =
        write_slot_ms(deps, object, plan->write, observed->just_changed, observed->now_ms);
    if (observed->now_ms < slot_ms) {
        reconcile_again_after(rc, slot_ms - observed->now_ms);
        return 0;
    }

    bool written;
    int r = status_write(rc, deps->proplets, &KIND_PROPLET, json,
                         proplet_status_encode(rc->arena, &plan->status), &written, err);
    if (r == -ERROR_NOT_FOUND)
        return 0;
    if (r < 0)
        return error_wrap(err, "write status");

    refresh_budget_release(deps->budget, object->uid);
    refresh_budget_release(deps->openings, object->uid);
    if (written)
        announce(rc, object, plan);
    if (written && plan->status.phase != observed->proplet.status.phase)
        metric_add(&TRANSITIONS, 1, PROPLET_PHASE_NAMES[plan->status.phase], NULL);
    return 0;
}

/* The webhook adds it; this is for objects that came while it was away. The reply wakes the Proplet
 * again. */
static int add_finalizer(const struct proplet_deps *deps, struct reconcile *rc, const cJSON *json,
                         struct error *err)
{
    cJSON *reply = NULL;
    int r =
        finalizer_add(rc->client, rc->arena, &KIND_PROPLET, json, FINALIZER_PROPLET, &reply, err);
    if (r == -ERROR_NOT_FOUND)
        return 0;
    if (r < 0)
        return error_wrap(err, "add finalizer");
    if (reply)
        informer_observed(deps->proplets, reply);
    return 0;
}

/* Held until its Tasks have let go of it, since they can tell its device to stop as long as it is
 * there; the last of them wakes it. */
static int release(const struct proplet_deps *deps, struct reconcile *rc,
                   const struct kube_object *object, const cJSON *json, struct error *err)
{
    char key[KUBE_KEY_LEN];
    size_t tasks =
        store_count(informer_store(deps->tasks), INDEX_ASSIGNED, kube_object_key(object, key));
    int64_t now_ms = clock_monotonic_ms(rc->clock);

    attempts_deleting(deps->attempts, object->uid, 0, now_ms);
    int64_t since_ms = attempts_get(deps->attempts, object->uid, 0, now_ms).deleting_ms;
    int64_t left_ms = since_ms + deps->settings->stop_timeout_ms - now_ms;
    if (tasks && left_ms > 0) {
        rc->requeue_after_ms = (uint32_t)left_ms;
        return 0;
    }
    return finalizer_remove(rc->client, &KIND_PROPLET, json, FINALIZER_PROPLET, err);
}

static enum deployment_hold hold_of(const struct proplet_observed *observed)
{
    if (observed->claimed_by)
        return DEPLOYMENT_DUPLICATE;
    return availability_takes_pods(&observed->availability) ? DEPLOYMENT_CLOSED : DEPLOYMENT_FREE;
}

/* The back-off of an error does not put off a change of its windows. */
static void look_in_time(const struct proplet_deps *deps, const struct reconcile *rc,
                         const struct proplet_observed *observed)
{
    int64_t left_ms = (observed->availability.look_us - observed->now_us + 999) / 1000;

    if (left_ms > 0 && left_ms <= UINT32_MAX)
        workqueue_add_after(deps->queue, &rc->name, (uint32_t)left_ms);
}

int proplet_reconcile(void *self, struct reconcile *rc, struct error *err)
{
    const struct proplet_deps *deps = self;
    CLEANUP(kube_object_unrefp)
    struct kube_object *object = store_get(informer_store(deps->proplets), &rc->name);
    char channel[CHANNEL_KEY_LEN];
    char key[FLEET_KEY_LEN];

    if (!object)
        return 0; /* deleted: its map function has told the bridge and the fleet */

    const cJSON *json = kube_object_json(rc->arena, object);
    if (object->deleting)
        return release(deps, rc, object, json, err);
    if (!proplet_channel_of(json, channel) || !proplet_identity_of(json, NULL, key))
        return error_set(err, ERROR_INVALID,
                         "spec.connectionConfig: domainId, channelId and clientId are required");

    if (!finalizer_has(json, FINALIZER_PROPLET))
        return add_finalizer(deps, rc, json, err);

    int r = proplet_reclaim_take(deps, rc, object, json, err);
    if (r)
        return r < 0 ? r : 0;

    const struct identity_list *identities = identities_of(rc->arena, object);
    struct proplet_observed observed;
    struct proplet_pods pods;
    r = observe(deps, rc, object, json, channel, identities, &observed, err);
    if (r < 0)
        return r;
    /* Before its pods go, so that its devices get their stops. */
    observed.just_changed =
        proplet_availability_keep(deps, object, &observed.availability, observed.now_us);
    observed.availability =
        availability_reported(&observed.availability, observed.now_us, clock_boot_ms(deps->clock));
    if (observed.proplet.spec.type == PROPLET_K8S) {
        r = proplet_pods_sync(deps, rc, json, &observed.proplet, hold_of(&observed), &pods, err);
        if (r == -ERROR_CANCELED)
            return r;
        if (r < 0) /* not acted on */
            observed.generation = observed.proplet.status.observed_generation;
        observed.pods = &pods;
    }

    struct error later = { 0 };
    struct proplet_plan plan = proplet_plan(rc->arena, &observed);
    note_all_news(deps, identities, &observed, &plan);
    proplet_availability_tell(deps, rc, object, &observed.availability);
    int told = act(deps, rc, object, json, &observed, &plan, r < 0 ? &later : err);
    announce_brake(deps, rc); /* its own write may have made it news */
    r = r < 0 ? r : told;
    if (r < 0)
        look_in_time(deps, rc, &observed);
    return r;
}

/* The oldest of those under the value decides for them: wakes them all if that is the changed object,
 * or was before it went. */
static void wake_if_oldest(const struct proplet_deps *deps, struct arena *arena,
                           const struct kube_object *changed, const char *index, const char *value,
                           struct workqueue *queue)
{
    struct object_list list = store_find(informer_store(deps->proplets), arena, index, value);
    const struct kube_object *oldest = oldest_of(&list);

    if (!oldest ||
        (!str_equal(oldest->uid, changed->uid) && !kube_object_is_older(changed, oldest)))
        return;
    for (size_t i = 0; i < list.len; i++)
        workqueue_add_object(queue, list.items[i]);
}

static bool has_identity(const struct identity_list *list, const char *key)
{
    for (size_t i = 0; i < list->len; i++) {
        if (str_equal(list->items[i].key, key))
            return true;
    }
    return false;
}

/* Wakes the claimants of identities that the changed object has in one list and not in the other.
 * gone: it was perhaps the last that had them. */
static void wake_claimants(const struct proplet_deps *deps, struct arena *arena,
                           const struct kube_object *changed, const struct identity_list *list,
                           const struct identity_list *other, bool gone, struct workqueue *queue)
{
    for (size_t i = 0; i < list->len; i++) {
        const char *key = list->items[i].key;

        if (has_identity(other, key))
            continue;
        if (gone && !store_count(informer_store(deps->proplets), INDEX_IDENTITY, key))
            fleet_remove(deps->fleet, key, clock_monotonic_ms(deps->clock));
        wake_if_oldest(deps, arena, changed, INDEX_IDENTITY, key, queue);
    }
}

/* The changed object is on the channel, or was, or is embedded now and was not, or the reverse. */
static void wake_neighbours(const struct proplet_deps *deps, struct arena *arena,
                            const struct kube_object *changed, const char *channel,
                            struct workqueue *queue)
{
    if (is_embedded(arena, changed) ||
        store_count(informer_store(deps->proplets), INDEX_EMBEDDED, channel))
        wake_if_oldest(deps, arena, changed, INDEX_CHANNEL, channel, queue);
}

/* It is away on purpose. */
static bool is_closed(const cJSON *status)
{
    const char *state = json_string(json_path(status, "availability", "state", NULL), "");

    return str_equal(state, AVAILABILITY_STATE_NAMES[AVAILABILITY_DRAINING]) ||
           str_equal(state, AVAILABILITY_STATE_NAMES[AVAILABILITY_CLOSED]);
}

static enum brake_member member_of(const struct kube_object *object, const cJSON *status)
{
    const char *phase = json_string(json_get(status, "phase"), "");

    if (!object || object->deleting || is_closed(status)) /* its Tasks let go of it at once */
        return BRAKE_NO_MEMBER;
    if (str_equal(phase, PROPLET_PHASE_NAMES[PROPLET_RUNNING]))
        return BRAKE_RUNNING;
    return str_equal(phase, PROPLET_PHASE_NAMES[PROPLET_OFFLINE]) ? BRAKE_OFFLINE : BRAKE_NO_MEMBER;
}

/* Tasks that the brake held go on when it holds no more. */
static void note_member(const struct proplet_deps *deps, struct arena *arena,
                        const struct kube_name *name, const struct kube_object *current)
{
    const cJSON *status = current ? json_get(kube_object_json(arena, current), "status") : NULL;
    struct timeline_view time;
    int64_t now_us = timeline_now_us(deps->timeline, &time);
    int64_t since_us = now_us;

    rfc3339_parse(json_string(json_get(status, "offlineSince"), ""), &since_us);
    if (!fleet_brake_note(deps->brake, name, member_of(current, status),
                          timeline_steady_us(&time, now_us, since_us),
                          clock_boot_ms(deps->clock) * 1000, clock_monotonic_ms(deps->clock)))
        return;

    struct object_list held = store_find(informer_store(deps->tasks), arena, INDEX_ACTIVE, "");
    for (size_t i = 0; i < held.len; i++)
        workqueue_add_object(deps->task_queue, held.items[i]);
}

static void proplet_gone(const struct proplet_deps *deps, const char *uid)
{
    put_back_done(deps->budget, uid);
    refresh_budget_release(deps->budget, uid);
    refresh_budget_release(deps->openings, uid);
    availabilities_remove(deps->availabilities, uid);
    mailbox_ack(deps->mailbox, uid, UINT64_MAX);
    attempts_remove(deps->attempts, uid);
}

/* "": of no object, or of one that names none. */
static void read_channel(struct arena *arena, const struct kube_object *object,
                         char ret[static CHANNEL_KEY_LEN])
{
    if (!object || !proplet_channel_of(kube_object_json(arena, object), ret))
        *ret = '\0';
}

static void follow_channel(const struct proplet_deps *deps, const char *before, const char *after)
{
    if (str_equal(before, after) || !deps->bridge)
        return;
    if (*after)
        bridge_channel_add(deps->bridge, after);
    if (*before)
        bridge_channel_remove(deps->bridge, before);
}

/* replaced: see proplet_map_proplet. */
static void note_channel(const struct proplet_deps *deps, struct arena *arena,
                         const struct kube_object *old, const struct kube_object *current,
                         bool replaced, struct workqueue *queue)
{
    char before[CHANNEL_KEY_LEN];
    char after[CHANNEL_KEY_LEN];

    read_channel(arena, old, before);
    read_channel(arena, current, after);
    follow_channel(deps, before, after);
    if (!replaced && str_equal(before, after) &&
        is_embedded(arena, old) == is_embedded(arena, current))
        return;
    if (old)
        wake_neighbours(deps, arena, old, before, queue);
    if (current)
        wake_neighbours(deps, arena, current, after, queue);
}

void proplet_map_proplet(void *self, struct kube_object *old, struct kube_object *current,
                         struct workqueue *queue)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct proplet_deps *deps = self;
    const struct identity_list *before = identities_of(arena, old);
    const struct identity_list *after = identities_of(arena, current);
    const struct identity_list *none = identities_of(arena, NULL);
    /* Deleted and made again under its name, between two looks at the API server. */
    bool replaced = old && current && !str_equal(old->uid, current->uid);

    const struct kube_name name = kube_object_name(current ? current : old);

    note_member(deps, arena, &name, current);
    if (current)
        workqueue_add_object(queue, current);
    if (old && (!current || replaced))
        proplet_gone(deps, old->uid);
    note_channel(deps, arena, old, current, replaced, queue);
    wake_claimants(deps, arena, current, after, replaced ? none : before, false, queue);
    wake_claimants(deps, arena, old, before, replaced ? none : after, true, queue);
}
