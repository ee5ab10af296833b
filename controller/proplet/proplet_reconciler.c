#include <string.h>

#include "common/api/names.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/kube/finalizer.h"
#include "common/kube/kinds.h"
#include "common/runtime/metrics.h"
#include "controller/cache/indexes.h"
#include "controller/proplet/proplet_plan.h"
#include "controller/proplet/proplet_pods.h"
#include "controller/shared/reconcilers.h"
#include "controller/shared/status_writer.h"

static struct metric BRAKE = { .type = METRIC_GAUGE,
                               .name = "propeller_fleet_brake",
                               .help = "1 while so much of the fleet went Offline at once that no "
                                       "Proplet counts as lost." };

/* The oldest object of an identity has it: by creationTimestamp, then by uid. NULL: this one. */
static const char *claimed_by(struct shared *shared, struct arena *arena,
                              const struct kube_object *object, const cJSON *json, const char *key)
{
    struct object_list list =
        store_find(informer_store(shared->proplets), arena, INDEX_IDENTITY, key);
    const char *created = json_string(json_path(json, "metadata", "creationTimestamp", NULL), "");

    for (size_t i = 0; i < list.len; i++) {
        const struct kube_object *other = list.items[i];
        if (str_equal(other->uid, object->uid))
            continue;

        const cJSON *metadata = json_get(kube_object_json(arena, other), "metadata");
        int order = strcmp(json_string(json_get(metadata, "creationTimestamp"), ""), created);
        if (order < 0 || (order == 0 && strcmp(other->uid, object->uid) < 0))
            return kube_name_key(&other->name, arena_alloc(arena, 1, KUBE_KEY_LEN));
    }
    return NULL;
}

static int observe(struct shared *shared, struct reconcile *rc, const struct kube_object *object,
                   const cJSON *json, const char *channel, const char *key,
                   struct proplet_observed *ret, struct error *err)
{
    struct store *proplets = informer_store(shared->proplets);

    *ret = (struct proplet_observed){
        .name = object->name.name,
        .generation = object->generation,
        .mqtt_configured = shared->bridge != NULL,
        .claimed_by = claimed_by(shared, rc->arena, object, json, key),
        .channel_shared = store_count(proplets, INDEX_EMBEDDED, channel) &&
                          store_count(proplets, INDEX_CHANNEL, channel) > 1,
        .tasks = placements_count(shared->placements, object->name.ns, object->name.name),
        .threshold_ms = shared->settings->last_seen_threshold_ms,
        .now_ms = clock_monotonic_ms(rc->clock),
        .now_us = clock_wall_us(rc->clock),
    };
    if (shared->bridge)
        ret->channel = bridge_channel_state(shared->bridge, channel);
    fleet_get(shared->fleet, rc->arena, key, &ret->device);
    return proplet_decode(rc->arena, json, &ret->proplet, err);
}

static void announce(struct reconcile *rc, const struct kube_object *object,
                     const struct proplet_plan *plan)
{
    if (!plan->event_reason)
        return;

    log_info("proplet changed", "event", plan->event_reason, "message", plan->event_message, NULL);
    events_emit(rc->events, &KIND_PROPLET, object, plan->event_type, plan->event_reason, "%s",
                plan->event_message);
}

/* Whose turn it is when the brake begins or ends to hold says so, for all. */
static void announce_brake(struct shared *shared, struct reconcile *rc,
                           const struct kube_object *object)
{
    struct brake_plan brake;

    if (!fleet_brake_news(shared->brake, clock_wall_us(rc->clock), clock_monotonic_ms(rc->clock),
                          &brake))
        return;
    metric_set(&BRAKE, brake.holds, NULL);
    if (brake.holds) {
        log_warn("most of the fleet went Offline at once, no Proplet counts as lost until enough "
                 "are back",
                 "offline", LOG_INT((int64_t)brake.offline), "fleet", LOG_INT((int64_t)brake.fleet),
                 NULL);
        events_emit(rc->events, &KIND_PROPLET, object, EVENT_WARNING, "FleetOffline",
                    "%zu of %zu Proplets went Offline at once: their Tasks wait until enough are "
                    "back",
                    brake.offline, brake.fleet);
    } else {
        log_info("enough of the fleet is back, Proplets count as lost again", NULL);
        events_emit(rc->events, &KIND_PROPLET, object, EVENT_NORMAL, "FleetBack",
                    "enough Proplets are back: those that are not count as lost again");
    }
}

static int act(struct shared *shared, struct reconcile *rc, const struct kube_object *object,
               const cJSON *json, const char *key, const struct proplet_observed *observed,
               const struct proplet_plan *plan, struct error *err)
{
    if (plan->silent)
        fleet_silent(shared->fleet, key, observed->device.last_seen_ms);
    if (plan->heard)
        fleet_fresh(shared->fleet, key, observed->device.alive_since_ms); /* before any Task may */
    if (plan->deadline_ms)
        reconcile_again_after(rc, plan->deadline_ms - observed->now_ms);
    if (!plan->transition && !plan->refresh)
        return 0;

    if (!plan->transition) {
        int64_t slot_ms = refresh_budget_reserve(shared->budget, key, plan->news,
                                                 &shared->settings->refresh, observed->now_ms);
        if (observed->now_ms < slot_ms) {
            reconcile_again_after(rc, slot_ms - observed->now_ms);
            return 0;
        }
    }

    bool written;
    int r = status_write(rc, shared->proplets, &KIND_PROPLET, json,
                         proplet_status_encode(rc->arena, &plan->status), &written, err);
    if (r == -ERROR_NOT_FOUND)
        return 0;
    if (r < 0)
        return error_wrap(err, "write status");

    refresh_budget_release(shared->budget, key);
    if (written)
        announce(rc, object, plan);
    return 0;
}

/* The webhook adds it; this is for objects that came while it was away. The reply wakes the Proplet
 * again. */
static int add_finalizer(struct shared *shared, struct reconcile *rc, const cJSON *json,
                         struct error *err)
{
    CLEANUP(kube_object_unrefp) struct kube_object *reply = NULL;
    int r = finalizer_add(rc->client, &KIND_PROPLET, json, FINALIZER_PROPLET, &reply, err);
    if (r == -ERROR_NOT_FOUND)
        return 0;
    if (r < 0)
        return error_wrap(err, "add finalizer");
    if (reply)
        informer_observed(shared->proplets, reply);
    return 0;
}

/* Held until its Tasks have let go of it, since they can tell its device to stop as long as it is
 * there; the last of them wakes it. */
static int release(struct shared *shared, struct reconcile *rc, const struct kube_object *object,
                   const cJSON *json, struct error *err)
{
    char key[KUBE_KEY_LEN];
    size_t tasks = store_count(informer_store(shared->tasks), INDEX_ASSIGNED,
                               kube_name_key(&object->name, key));
    int64_t deleted_us = 0;

    rfc3339_parse(json_string(json_path(json, "metadata", "deletionTimestamp", NULL), ""),
                  &deleted_us);
    int64_t left_ms =
        shared->settings->stop_timeout_ms - (clock_wall_us(rc->clock) - deleted_us) / 1000;
    if (tasks && left_ms > 0) {
        rc->requeue_after_ms = (uint32_t)left_ms;
        return 0;
    }
    return finalizer_remove(rc->client, &KIND_PROPLET, json, FINALIZER_PROPLET, err);
}

int proplet_reconcile(void *self, struct reconcile *rc, struct error *err)
{
    struct shared *shared = self;
    CLEANUP(kube_object_unrefp)
    struct kube_object *object = store_get(informer_store(shared->proplets), &rc->name);
    char channel[CHANNEL_KEY_LEN];
    char key[FLEET_KEY_LEN];

    if (!object)
        return 0; /* deleted: its map function has told the bridge and the fleet */

    const cJSON *json = kube_object_json(rc->arena, object);
    if (object->deleting)
        return release(shared, rc, object, json, err);
    if (!proplet_channel_of(json, channel) || !proplet_identity_of(json, key))
        return error_set(err, ERROR_INVALID,
                         "spec.connectionConfig: domainId, channelId and clientId are required");

    if (!finalizer_has(json, FINALIZER_PROPLET))
        return add_finalizer(shared, rc, json, err);

    struct proplet_observed observed;
    struct proplet_pods pods;
    int r = observe(shared, rc, object, json, channel, key, &observed, err);
    if (r < 0)
        return r;
    if (observed.proplet.spec.type == PROPLET_K8S) {
        r = proplet_pods_sync(shared, rc, json, &observed.proplet, observed.claimed_by, &pods, err);
        if (r < 0)
            return r;
        observed.pods = &pods;
    }

    struct proplet_plan plan = proplet_plan(rc->arena, &observed);
    r = act(shared, rc, object, json, key, &observed, &plan, err);
    announce_brake(shared, rc, object); /* its own write may have made it news */
    return r;
}

/* Everyone whom this one's coming, going or changing may promote, demote or disturb. */
static void wake_index(struct shared *shared, struct arena *arena, const char *index,
                       const char *value, struct workqueue *queue)
{
    struct object_list list = store_find(informer_store(shared->proplets), arena, index, value);

    for (size_t i = 0; i < list.len; i++)
        workqueue_add(queue, &list.items[i]->name);
}

static void device_gone(struct shared *shared, const char *key)
{
    fleet_remove(shared->fleet, key);
    refresh_budget_release(shared->budget, key);
}

static void gone_from(struct shared *shared, struct arena *arena, const char *key,
                      const char *channel, struct workqueue *queue)
{
    if (shared->bridge)
        bridge_channel_remove(shared->bridge, channel);
    if (!store_count(informer_store(shared->proplets), INDEX_IDENTITY, key))
        device_gone(shared, key);
    wake_index(shared, arena, INDEX_IDENTITY, key, queue);
    if (store_count(informer_store(shared->proplets), INDEX_EMBEDDED, channel))
        wake_index(shared, arena, INDEX_CHANNEL, channel, queue);
}

static void come_to(struct shared *shared, struct arena *arena, const char *key,
                    const char *channel, struct workqueue *queue)
{
    if (shared->bridge)
        bridge_channel_add(shared->bridge, channel);
    wake_index(shared, arena, INDEX_IDENTITY, key, queue); /* the older one has it */
    if (store_count(informer_store(shared->proplets), INDEX_EMBEDDED, channel))
        wake_index(shared, arena, INDEX_CHANNEL, channel, queue);
}

static bool is_embedded(struct arena *arena, const struct kube_object *object)
{
    struct proplet proplet = { 0 };

    return proplet_decode(arena, kube_object_json(arena, object), &proplet, NULL) == 0 &&
           proplet_dialect(&proplet.spec) == DIALECT_EMBEDDED;
}

static enum brake_member member_of(const struct kube_object *object, const cJSON *status)
{
    const char *phase = json_string(json_get(status, "phase"), "");

    if (!object || object->deleting) /* its Tasks let go of it at once */
        return BRAKE_NO_MEMBER;
    if (str_equal(phase, PROPLET_PHASE_NAMES[PROPLET_RUNNING]))
        return BRAKE_RUNNING;
    return str_equal(phase, PROPLET_PHASE_NAMES[PROPLET_OFFLINE]) ? BRAKE_OFFLINE : BRAKE_NO_MEMBER;
}

/* Tasks that the brake held go on when it holds no more. */
static void note_member(struct shared *shared, struct arena *arena, const struct kube_name *name,
                        const struct kube_object *current)
{
    const cJSON *status = current ? json_get(kube_object_json(arena, current), "status") : NULL;
    int64_t since_us = 0;

    rfc3339_parse(json_string(json_get(status, "offlineSince"), ""), &since_us);
    if (!fleet_brake_note(shared->brake, name, member_of(current, status), since_us,
                          clock_wall_us(shared->clock), clock_monotonic_ms(shared->clock)) ||
        !shared->task_queue)
        return;

    struct object_list held = store_find(informer_store(shared->tasks), arena, INDEX_ACTIVE, "");
    for (size_t i = 0; i < held.len; i++)
        workqueue_add(shared->task_queue, &held.items[i]->name);
}

void proplet_map_proplet(void *self, struct kube_object *old, struct kube_object *current,
                         struct workqueue *queue)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct shared *shared = self;
    char old_key[FLEET_KEY_LEN] = "";
    char old_channel[CHANNEL_KEY_LEN] = "";
    char key[FLEET_KEY_LEN] = "";
    char channel[CHANNEL_KEY_LEN] = "";
    bool had = old && proplet_identity_of(kube_object_json(arena, old), old_key) &&
               proplet_channel_of(kube_object_json(arena, old), old_channel);
    bool has = current && proplet_identity_of(kube_object_json(arena, current), key) &&
               proplet_channel_of(kube_object_json(arena, current), channel);

    note_member(shared, arena, current ? &current->name : &old->name, current);
    if (current)
        workqueue_add(queue, &current->name);
    else if (old)
        proplet_pods_forget(shared, old->uid);
    if (had && has && str_equal(old_key, key)) {
        if (is_embedded(arena, old) != is_embedded(arena, current))
            wake_index(shared, arena, INDEX_CHANNEL, channel, queue);
        return;
    }
    if (has)
        come_to(shared, arena, key, channel, queue);
    if (had)
        gone_from(shared, arena, old_key, old_channel, queue);
}
