#include "controller/proplet/proplet_plan.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"

/* What decides the phase; each says it in the Ready condition. */
enum verdict {
    VERDICT_NOT_CONFIGURED,
    VERDICT_DUPLICATE,
    VERDICT_SHARED,
    VERDICT_SHARED_ID,
    VERDICT_INDEXED,
    VERDICT_REFUSED,
    VERDICT_WILL,
    VERDICT_SILENT,
    VERDICT_ALIVE,
    VERDICT_UNHEARD, /* nothing heard by this process yet, and its time is not over: as it was */
};

struct judgement {
    enum verdict verdict;
    int64_t deadline_ms;
};

static bool has_indexed_ids(const struct proplet_spec *spec)
{
    return spec->type == PROPLET_K8S && spec->k8s && spec->k8s->indexed_client_ids;
}

/* Each pod would throw the others off the broker. */
static bool shares_client_id(const struct proplet_spec *spec)
{
    return spec->type == PROPLET_K8S && proplet_replicas(spec) > 1 && !has_indexed_ids(spec);
}

static struct judgement judge(const struct proplet_observed *observed)
{
    const struct fleet_device *device = &observed->device;

    if (!observed->mqtt_configured)
        return (struct judgement){ .verdict = VERDICT_NOT_CONFIGURED };
    if (observed->claimed_by)
        return (struct judgement){ .verdict = VERDICT_DUPLICATE };
    if (observed->channel_shared)
        return (struct judgement){ .verdict = VERDICT_SHARED };
    if (shares_client_id(&observed->proplet.spec))
        return (struct judgement){ .verdict = VERDICT_SHARED_ID };
    if (has_indexed_ids(&observed->proplet.spec))
        return (struct judgement){ .verdict = VERDICT_INDEXED };
    if (observed->channel.refused)
        return (struct judgement){ .verdict = VERDICT_REFUSED };
    if (device->will)
        return (struct judgement){ .verdict = VERDICT_WILL };

    enum verdict waiting = device->alive ? VERDICT_ALIVE : VERDICT_UNHEARD;
    if (!observed->channel.since_ms) /* nobody can be heard: nobody is silent */
        return (struct judgement){ .verdict = waiting };

    int64_t since_ms = observed->channel.since_ms;
    if (device->last_seen_ms > since_ms)
        since_ms = device->last_seen_ms;
    int64_t deadline_ms = since_ms + observed->threshold_ms;
    if (observed->now_ms >= deadline_ms)
        return (struct judgement){ .verdict = VERDICT_SILENT };
    return (struct judgement){ .verdict = waiting, .deadline_ms = deadline_ms };
}

static enum proplet_phase next_phase(const struct proplet_observed *observed, enum verdict verdict)
{
    enum proplet_phase phase = observed->proplet.status.phase;

    if (observed->pods && verdict != VERDICT_DUPLICATE)
        verdict = observed->pods->ready ? VERDICT_ALIVE : VERDICT_SILENT;
    switch (verdict) {
    case VERDICT_ALIVE:
        return PROPLET_RUNNING;
    case VERDICT_UNHEARD:
        return phase;
    default:
        return phase == PROPLET_RUNNING ? PROPLET_OFFLINE : phase;
    }
}

struct said {
    const char *reason;
    const char *message;
};

static struct said say(struct arena *arena, const struct proplet_observed *observed,
                       enum verdict verdict)
{
    switch (verdict) {
    case VERDICT_NOT_CONFIGURED:
        return (struct said){ "MQTTNotConfigured",
                              "the controller was started without --mqtt-address" };
    case VERDICT_DUPLICATE:
        return (struct said){
            "DuplicateClientId",
            arena_printf(arena, "Proplet '%s' has the same domainId, channelId and clientId",
                         observed->claimed_by)
        };
    case VERDICT_SHARED:
        return (struct said){ "SharedChannel",
                              "an embedded Proplet must be the only one of its channel" };
    case VERDICT_SHARED_ID:
        return (struct said){ "SharedClientId",
                              "more than one pod has the same MQTT client id: no Tasks over "
                              "MQTT" };
    case VERDICT_INDEXED:
        return (struct said){ "IndexedClientIds",
                              "each pod has an MQTT client id of its own: no Tasks over MQTT" };
    case VERDICT_REFUSED:
        return (struct said){ "SubscriptionRefused",
                              "the broker refused a subscription to this channel" };
    case VERDICT_WILL:
        return (struct said){ "LastWill", "the broker published the device's last will" };
    case VERDICT_ALIVE:
        return (struct said){ "Alive", "heartbeats arrive" };
    case VERDICT_SILENT:
    case VERDICT_UNHEARD:
        break;
    }
    if (observed->proplet.status.phase == PROPLET_INITIALIZING)
        return (struct said){ "WaitingForHeartbeat", "no heartbeat of the device has arrived yet" };
    return (struct said){ "HeartbeatsStopped", "no heartbeat within --last-seen-threshold" };
}

static bool set_condition(const struct proplet_observed *observed, cJSON *list, const char *type,
                          bool status, const struct said *said)
{
    const struct condition condition = {
        .type = type,
        .status = status ? CONDITION_TRUE : CONDITION_FALSE,
        .reason = said->reason,
        .message = said->message,
        .observed_generation = observed->generation,
    };

    return condition_set(list, &condition, observed->now_us);
}

static void plan_event(const struct proplet_observed *observed, enum verdict verdict,
                       const struct said *said, struct proplet_plan *plan)
{
    const struct proplet_status *old = &observed->proplet.status;
    const cJSON *ready = condition_get(old->conditions, "Ready");
    const char *old_reason = json_string(json_get(ready, "reason"), "");
    bool trouble = observed->pods && observed->pods->trouble;

    if ((verdict == VERDICT_DUPLICATE || trouble) && !str_equal(old_reason, said->reason)) {
        plan->event_type = EVENT_WARNING;
        plan->event_reason = said->reason;
        plan->event_message = said->message;
    } else if (plan->status.phase != old->phase) {
        bool online = plan->status.phase == PROPLET_RUNNING;
        plan->event_type = online ? EVENT_NORMAL : EVENT_WARNING;
        plan->event_reason = online ? "Online" : "Offline";
        plan->event_message = online && !observed->pods ? "the device is alive" : said->message;
    }
}

/* Of type k8s, where the pods decide on all but this. */
static bool is_connected(const struct proplet_observed *observed, enum verdict verdict)
{
    const cJSON *old = observed->proplet.status.conditions;

    return verdict == VERDICT_ALIVE ||
           (verdict == VERDICT_UNHEARD && condition_is(old, "Connected", CONDITION_TRUE));
}

static struct said say_connected(struct arena *arena, const struct proplet_observed *observed,
                                 enum verdict verdict, bool connected)
{
    static const struct said HEARTBEAT = { "Heartbeat", "" };
    static const struct said NO_HEARTBEAT = { "NoHeartbeat", "" };

    if (connected)
        return HEARTBEAT;
    if (!observed->pods || verdict == VERDICT_SILENT || verdict == VERDICT_UNHEARD)
        return NO_HEARTBEAT;
    return say(arena, observed, verdict);
}

static struct said say_ready(struct arena *arena, const struct proplet_observed *observed,
                             enum verdict verdict)
{
    if (observed->pods && verdict != VERDICT_DUPLICATE)
        return (struct said){ observed->pods->reason, observed->pods->message };
    return say(arena, observed, verdict);
}

/* Mirrored from the object that makes the pods. */
static bool plan_pods(struct arena *arena, const struct proplet_observed *observed,
                      struct proplet_status *status)
{
    static const struct proplet_k8s_status NONE;
    const struct proplet_k8s_status *old = status->k8s_status ? status->k8s_status : &NONE;
    const struct proplet_pods *pods = observed->pods;

    if (!pods)
        return false;

    bool changed = !status->k8s_status || old->ready_replicas != pods->ready_replicas ||
                   old->available_replicas != pods->available_replicas;
    status->k8s_status = arena_new(arena, struct proplet_k8s_status);
    status->k8s_status->ready_replicas = pods->ready_replicas;
    status->k8s_status->available_replicas = pods->available_replicas;
    return changed;
}

static void plan_phase(struct arena *arena, const struct proplet_observed *observed,
                       enum verdict verdict, struct proplet_plan *plan)
{
    const struct proplet_status *old = &observed->proplet.status;
    struct proplet_status *status = &plan->status;
    bool unchanged = verdict == VERDICT_UNHEARD && old->conditions && !observed->pods;
    bool alive = status->phase == PROPLET_RUNNING;
    bool connected = observed->pods ? is_connected(observed, verdict) : alive;
    bool was_heard = observed->pods ? condition_is(old->conditions, "Connected", CONDITION_TRUE)
                                    : old->phase == PROPLET_RUNNING;
    struct said ready = say_ready(arena, observed, verdict);
    struct said heard = say_connected(arena, observed, verdict, connected);

    plan->heard = connected && !was_heard;
    if (unchanged) /* an earlier leader's word stands until this process has heard, or waited */
        return;

    cJSON *list = arena_own(
        arena, old->conditions ? json_copy(old->conditions) : cJSON_CreateArray(), json_free);
    bool changed = set_condition(observed, list, "Ready", alive, &ready);
    changed |= set_condition(observed, list, "Connected", connected, &heard);
    changed |= plan_pods(arena, observed, status);
    status->conditions = list;
    status->alive = alive;
    plan->transition = changed || status->phase != old->phase || old->alive != alive;

    plan_event(observed, verdict, &ready, plan);
}

/* The time counts from here for Tasks that do not wait for it. */
static bool plan_offline_since(const struct proplet_observed *observed,
                               struct proplet_status *status)
{
    if (status->phase != PROPLET_OFFLINE)
        status->offline_since_us = 0;
    else if (!status->offline_since_us)
        status->offline_since_us = observed->now_us;
    return status->offline_since_us != observed->proplet.status.offline_since_us;
}

/* An earlier leader's word that it is not healthy stands until a result comes: what led to it is
 * not known here. */
static void plan_health(struct arena *arena, const struct proplet_observed *observed,
                        struct proplet_plan *plan)
{
    static const struct said HEALTHY = { "Answers", "" };
    static const struct said UNHEALTHY = {
        "NoResults", "its last 3 Tasks ended without a result from the device"
    };
    _Static_assert(FLEET_MAX_UNANSWERED == 3, "the message says so");
    const struct fleet_device *device = &observed->device;
    const cJSON *old = plan->status.conditions;
    bool was_unhealthy = condition_is(old, "Healthy", CONDITION_FALSE);
    bool healthy =
        device->unanswered < FLEET_MAX_UNANSWERED && (device->answered || !was_unhealthy);
    const struct said *said = healthy ? &HEALTHY : &UNHEALTHY;
    cJSON *list = arena_own(arena, old ? json_copy(old) : cJSON_CreateArray(), json_free);

    if (!set_condition(observed, list, "Healthy", healthy, said))
        return;

    plan->status.conditions = list;
    plan->transition = true;
    if (plan->event_reason || healthy != was_unhealthy)
        return;
    plan->event_type = healthy ? EVENT_NORMAL : EVENT_WARNING;
    plan->event_reason = healthy ? "Healthy" : "Unhealthy";
    plan->event_message = healthy ? "a result came from the device" : said->message;
}

static bool plan_heartbeats(struct arena *arena, const struct fleet_device *device,
                            struct proplet_status *status)
{
    if (!device->last_seen_us)
        return false;

    bool changed = status->last_seen_us / 1000000 != device->last_seen_us / 1000000;
    status->last_seen_us = device->last_seen_us;
    status->alive_history.items = arena_array(arena, const char *, device->history_len);
    status->alive_history.len = device->history_len;
    for (size_t i = 0; i < device->history_len; i++)
        status->alive_history.items[i] =
            rfc3339_format(device->history_us[i], arena_alloc(arena, 1, RFC3339_LEN));
    return changed;
}

static bool plan_metadata(struct arena *arena, const struct fleet_device *device,
                          struct proplet_status *status)
{
    const cJSON *metadata;

    if (!device->metadata ||
        json_parse(arena, device->metadata, strlen(device->metadata), &metadata, NULL) < 0)
        return false;

    bool changed = !json_equal(metadata, status->metadata);
    status->metadata = metadata;
    return changed;
}

static bool plan_metrics(struct arena *arena, const struct fleet_device *device,
                         struct proplet_status *status)
{
    if (!device->sample_us)
        return false;

    const cJSON *metrics = sample_json(arena, &device->sample, device->sample_us);
    bool changed = !json_equal(metrics, status->latest_metrics);
    status->latest_metrics = metrics;
    return changed;
}

static bool same_amounts(const struct resource_amounts *a, const struct resource_amounts *b)
{
    return json_equal(a->cpu, b->cpu) && json_equal(a->memory, b->memory) &&
           json_equal(a->custom, b->custom);
}

/* What the user says that the device has: it says nothing of it itself. */
static bool plan_resources(struct arena *arena, const cJSON *resources,
                           struct proplet_status *status)
{
    static const struct resource_amounts NOTHING;
    const struct resource_amounts *old = status->available_resources;
    struct resource_amounts *amounts = arena_new(arena, struct resource_amounts);
    cJSON *custom = json_object(arena);

    json_for_each (item, resources) {
        if (str_equal(item->string, "cpu"))
            amounts->cpu = item;
        else if (str_equal(item->string, "memory"))
            amounts->memory = item;
        else
            json_set_copy(custom, item->string, item);
    }
    if (json_len(custom))
        amounts->custom = custom;
    status->available_resources = json_len(resources) ? amounts : NULL;
    return !same_amounts(old ? old : &NOTHING, amounts);
}

/* What is written when there is time for it: true if any of it differs from what is stored. */
static bool plan_live_values(struct arena *arena, const struct proplet_observed *observed,
                             struct proplet_plan *plan)
{
    const struct fleet_device *device = &observed->device;
    const struct proplet_status *old = &observed->proplet.status;
    struct proplet_status *status = &plan->status;
    bool changed = plan_heartbeats(arena, device, status);

    plan->news = plan_metadata(arena, device, status);
    changed |= plan->news;
    changed |= plan_metrics(arena, device, status);
    changed |= plan_resources(arena, observed->proplet.spec.resources, status);
    changed |= old->task_count != observed->tasks.total ||
               old->active_task_count != observed->tasks.active;
    status->task_count = observed->tasks.total;
    status->active_task_count = observed->tasks.active;
    return changed;
}

struct proplet_plan proplet_plan(struct arena *arena, const struct proplet_observed *observed)
{
    struct judgement judgement = judge(observed);
    struct proplet_plan plan = { .status = observed->proplet.status,
                                 .deadline_ms = judgement.deadline_ms };

    plan.status.observed_generation = observed->generation;
    plan.status.phase = next_phase(observed, judgement.verdict);
    plan.silent = judgement.verdict == VERDICT_SILENT;
    plan_phase(arena, observed, judgement.verdict, &plan);
    plan.transition |= plan_offline_since(observed, &plan.status);
    plan_health(arena, observed, &plan);
    if (plan.status.observed_generation != observed->proplet.status.observed_generation)
        plan.transition = true;
    plan.refresh = plan_live_values(arena, observed, &plan);
    return plan;
}
