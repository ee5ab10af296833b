#include "controller/proplet/proplet_plan.h"

#include <inttypes.h>

#include <string.h>

#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"

/* The first that is heard speaks for them; if none is, the one that was heard last. */
static bool speaks_before(const struct fleet_device *a, const struct fleet_device *b)
{
    if (a->alive != b->alive)
        return a->alive;
    return !a->alive && a->last_seen_ms > b->last_seen_ms;
}

static struct fleet_device proplet_summary(const struct proplet_observed *observed)
{
    const struct fleet_device *all = observed->pod_devices;
    struct fleet_device ret = observed->device;
    size_t unanswered = 0;
    bool answered = false;

    for (size_t i = 0; i < observed->pod_device_count; i++) {
        if (!i || speaks_before(&all[i], &ret))
            ret = all[i];
        if (all[i].unanswered > unanswered)
            unanswered = all[i].unanswered;
        answered |= all[i].answered;
    }
    if (observed->pod_device_count) {
        ret.unanswered = unanswered;
        ret.answered = answered;
    }
    return ret;
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

static void proplet_plan_values(struct arena *arena, const struct proplet_observed *observed,
                                struct proplet_plan *plan)
{
    const struct fleet_device summary = proplet_summary(observed);
    const struct fleet_device *device = &summary;
    const struct proplet_status *old = &observed->proplet.status;
    struct proplet_status *status = &plan->status;
    bool changed = plan_heartbeats(arena, device, status);
    bool news = plan_metadata(arena, device, status);

    changed |= plan_metrics(arena, device, status);
    changed |= plan_resources(arena, observed->proplet.spec.resources, status);
    changed |= old->task_count != observed->tasks.total ||
               old->active_task_count != observed->tasks.active;
    status->task_count = observed->tasks.total;
    status->active_task_count = observed->tasks.active;
    if (plan->write == PROPLET_WRITE_NOTHING && (changed || news))
        plan->write = news ? PROPLET_WRITE_NEWS : PROPLET_WRITE_VALUES;
}

/* What decides the phase; each says it in the Ready condition. */
enum verdict {
    VERDICT_NOT_CONFIGURED,
    VERDICT_DUPLICATE,
    VERDICT_SHARED,
    VERDICT_SHARED_ID,
    VERDICT_REFUSED,
    OBSTACLES, /* the above hold whatever the device says, until their cause is gone */
    VERDICT_WILL = OBSTACLES,
    VERDICT_SILENT,
    VERDICT_ALIVE,
    VERDICT_UNHEARD, /* nothing heard by this process yet, and its time is not over: as it was */
};

struct judgement {
    enum verdict verdict;
    int64_t deadline_ms;
};

/* Each pod would throw the others off the broker. */
static bool shares_client_id(const struct proplet_spec *spec)
{
    return spec->type == PROPLET_K8S && proplet_replicas(spec) > 1 && !proplet_is_indexed(spec);
}

static struct judgement judge(const struct proplet_observed *observed)
{
    const struct fleet_device *device = &observed->device;

    if (!observed->mqtt_configured)
        return (struct judgement){ .verdict = VERDICT_NOT_CONFIGURED };
    if (observed->claimed_by)
        return (struct judgement){ .verdict = VERDICT_DUPLICATE };
    if (observed->channel_taken_by)
        return (struct judgement){ .verdict = VERDICT_SHARED };
    if (shares_client_id(&observed->proplet.spec))
        return (struct judgement){ .verdict = VERDICT_SHARED_ID };
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

    if (observed->pods && verdict != VERDICT_DUPLICATE) {
        if (observed->pods->reason == REASON_CLOSED)
            return PROPLET_OFFLINE;
        verdict = observed->pods->ready ? VERDICT_ALIVE : VERDICT_SILENT;
    }
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
    enum reason reason;
    const char *message;
    const char *word; /* REASON_OTHER: what the cluster calls it */
};

static const enum reason OBSTACLE_REASONS[OBSTACLES] = {
    [VERDICT_NOT_CONFIGURED] = REASON_NO_MQTT,       [VERDICT_DUPLICATE] = REASON_DUPLICATE,
    [VERDICT_SHARED] = REASON_SHARED_CHANNEL,        [VERDICT_SHARED_ID] = REASON_SHARED_ID,
    [VERDICT_REFUSED] = REASON_SUBSCRIPTION_REFUSED,
};

static const char *unheard_message(struct arena *arena, const struct proplet_observed *observed)
{
    const struct connection_config *connection = observed->proplet.spec.connection_config;

    return arena_printf(arena, "no heartbeat yet of client id '%s' on channel '%s/%s'%s%s",
                        connection->client_id, connection->domain_id, connection->channel_id,
                        observed->strangers ? "; other client ids on this channel: " : "",
                        observed->strangers ? observed->strangers : "");
}

static struct said say(struct arena *arena, const struct proplet_observed *observed,
                       enum verdict verdict)
{
    switch (verdict) {
    case VERDICT_NOT_CONFIGURED:
        return (struct said){ .reason = OBSTACLE_REASONS[verdict],
                              .message = "the controller was started without --mqtt-address" };
    case VERDICT_DUPLICATE:
        return (struct said){ .reason = OBSTACLE_REASONS[verdict],
                              .message = arena_printf(
                                  arena,
                                  "Proplet '%s' has the same domainId, channelId and clientId",
                                  observed->claimed_by) };
    case VERDICT_SHARED:
        return (struct said){
            .reason = OBSTACLE_REASONS[verdict],
            .message = arena_printf(
                arena,
                "Proplet '%s' was on this channel first, and an embedded Proplet must be "
                "the only one of its channel",
                observed->channel_taken_by)
        };
    case VERDICT_SHARED_ID:
        return (struct said){ .reason = OBSTACLE_REASONS[verdict],
                              .message =
                                  "more than one pod has the same MQTT client id: no Tasks over "
                                  "MQTT" };
    case VERDICT_REFUSED:
        return (struct said){ .reason = OBSTACLE_REASONS[verdict],
                              .message = "the broker refused a subscription to this channel" };
    case VERDICT_WILL:
        return (struct said){ .reason = REASON_LAST_WILL,
                              .message = "the broker published the device's last will" };
    case VERDICT_ALIVE:
        return (struct said){ .reason = REASON_ALIVE, .message = "heartbeats arrive" };
    case VERDICT_SILENT:
    case VERDICT_UNHEARD:
        break;
    }
    if (verdict == VERDICT_UNHEARD || observed->proplet.status.phase == PROPLET_INITIALIZING)
        return (struct said){ .reason = REASON_FIRST_HEARTBEAT,
                              .message = unheard_message(arena, observed) };
    return (struct said){ .reason = REASON_HEARTBEATS_STOPPED,
                          .message = arena_printf(arena, "no heartbeat for %" PRId64 " s",
                                                  observed->threshold_ms / 1000) };
}

static enum condition_status truth(bool value)
{
    return value ? CONDITION_TRUE : CONDITION_FALSE;
}

static bool set_condition(const struct proplet_observed *observed, cJSON *list, const char *type,
                          enum condition_status status, const struct said *said)
{
    const struct condition condition = {
        .type = type,
        .status = status,
        .reason = reason_word(said->reason, said->word),
        .message = reason_message(said->reason, status == CONDITION_TRUE, said->message),
        .observed_generation = observed->generation,
    };

    return condition_set(list, &condition, observed->now_us);
}

static void plan_event(const struct proplet_observed *observed, enum verdict verdict,
                       const struct said *said, struct proplet_plan *plan)
{
    const struct proplet_status *old = &observed->proplet.status;
    const cJSON *ready = condition_get(old->conditions, "Ready");
    enum reason old_reason = reason_of(json_string(json_get(ready, "reason"), ""));

    if (verdict == VERDICT_DUPLICATE && old_reason != said->reason)
        plan->event = &PROPLET_EVENT_DUPLICATE;
    else if (plan->status.phase != old->phase && said->reason != REASON_CLOSED)
        plan->event =
            plan->status.phase == PROPLET_RUNNING ? &PROPLET_EVENT_ONLINE : &PROPLET_EVENT_OFFLINE;
}

/* ---- devices of type k8s: the pods decide on all but whether they are heard ---- */

static struct proplet_device plan_device(const struct proplet_observed *observed,
                                         const char *client_id, enum verdict verdict,
                                         enum device_news *news)
{
    const struct proplet_device *old = proplet_device_find(&observed->proplet.status, client_id);
    bool was_connected = old && old->connected;
    struct proplet_device device = {
        .client_id = client_id,
        .connected = verdict == VERDICT_ALIVE || (verdict == VERDICT_UNHEARD && was_connected),
    };

    if (!device.connected)
        device.offline_since_us =
            old && old->offline_since_us ? old->offline_since_us : observed->now_us;
    *news = verdict == VERDICT_SILENT            ? DEVICE_SILENT
            : device.connected && !was_connected ? DEVICE_HEARD
                                                 : DEVICE_UNCHANGED;
    return device;
}

/* Each pod's as if it were the only one. *judgement: of the first, with the earliest deadline. */
static struct json_objects plan_pod_devices(struct arena *arena,
                                            const struct proplet_observed *observed,
                                            struct judgement *judgement, struct proplet_plan *plan)
{
    size_t count = observed->pod_device_count;
    struct proplet_device *devices = arena_array(arena, struct proplet_device, count + 1);

    plan->pod_devices = arena_array(arena, enum device_news, count + 1);
    for (size_t i = 0; i < count; i++) {
        struct proplet_observed one = *observed;
        one.device = observed->pod_devices[i];
        struct judgement own = judge(&one);

        devices[i] = plan_device(observed, proplet_device_id(arena, &observed->proplet.spec, i),
                                 own.verdict, &plan->pod_devices[i]);
        if (!i)
            *judgement = own;
        else if (own.deadline_ms &&
                 (!judgement->deadline_ms || own.deadline_ms < judgement->deadline_ms))
            judgement->deadline_ms = own.deadline_ms;
    }
    return (struct json_objects){ devices, count };
}

static struct json_objects plan_devices(struct arena *arena,
                                        const struct proplet_observed *observed,
                                        struct judgement *judgement, struct proplet_plan *plan)
{
    const struct proplet_spec *spec = &observed->proplet.spec;
    struct proplet_device *device = arena_new(arena, struct proplet_device);

    if (proplet_is_indexed(spec))
        return plan_pod_devices(arena, observed, judgement, plan);
    if (shares_client_id(spec))
        return (struct json_objects){ 0 };
    *device = plan_device(observed, spec->connection_config->client_id, judgement->verdict,
                          &plan->device);
    return (struct json_objects){ device, 1 };
}

static bool same_devices(const struct json_objects *a, const struct json_objects *b)
{
    const struct proplet_device *devices = a->items;
    const struct proplet_device *others = b->items;

    for (size_t i = 0; a->len == b->len && i < a->len; i++) {
        if (!str_equal(devices[i].client_id, others[i].client_id) ||
            devices[i].connected != others[i].connected)
            return false;
    }
    return a->len == b->len;
}

/* Mirrored from the object that makes the pods, and what is heard of them. */
static void plan_pods(struct arena *arena, const struct proplet_observed *observed,
                      struct judgement *judgement, struct proplet_plan *plan)
{
    static const struct proplet_k8s_status NONE;
    const struct proplet_status *status = &observed->proplet.status;
    const struct proplet_k8s_status *old = status->k8s_status ? status->k8s_status : &NONE;
    struct proplet_k8s_status *fresh = arena_new(arena, struct proplet_k8s_status);

    fresh->ready_replicas = observed->pods->ready_replicas;
    fresh->available_replicas = observed->pods->available_replicas;
    fresh->devices = plan_devices(arena, observed, judgement, plan);
    plan->status.k8s_status = fresh;
    if (!status->k8s_status || old->ready_replicas != fresh->ready_replicas ||
        old->available_replicas != fresh->available_replicas ||
        !same_devices(&old->devices, &fresh->devices))
        plan->write = PROPLET_WRITE_NOW;
}

static size_t connected_devices(const struct proplet_k8s_status *status)
{
    const struct proplet_device *devices = status->devices.items;
    size_t count = 0;

    for (size_t i = 0; i < status->devices.len; i++)
        count += devices[i].connected;
    return count;
}

/* ---- what is told ---- */

static struct said say_connected(struct arena *arena, const struct proplet_observed *observed,
                                 const struct proplet_status *status, enum verdict verdict,
                                 bool connected)
{
    static const struct said HEARTBEAT = { .reason = REASON_HEARTBEAT, .message = "" };
    static const struct said NO_HEARTBEAT = { .reason = REASON_NO_HEARTBEAT, .message = "" };

    if (connected && observed->pod_device_count)
        return (struct said){ .reason = REASON_HEARTBEAT,
                              .message = arena_printf(arena, "%zu of %zu pods are heard",
                                                      connected_devices(status->k8s_status),
                                                      status->k8s_status->devices.len) };
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
        return (struct said){ observed->pods->reason, observed->pods->message,
                              observed->pods->word };
    return say(arena, observed, verdict);
}

/* The pods are as well made without it. Stays until they are written again. */
static bool tell_left_out(struct arena *arena, const struct proplet_observed *observed, cJSON *list)
{
    const char *field = observed->pods ? observed->pods->left_out : NULL;

    if (!field)
        return false;
    if (!*field) {
        bool was_told = condition_get(list, "PodTemplateApplied") != NULL;
        condition_remove(list, "PodTemplateApplied");
        return was_told;
    }
    const struct said said = {
        .reason = REASON_UNKNOWN_FIELD,
        .message = arena_printf(
            arena,
            "spec.k8s.podTemplate%s: the API server does not know this field and left it "
            "out",
            field),
    };
    return set_condition(observed, list, "PodTemplateApplied", CONDITION_FALSE, &said);
}

/* The obstacle that Ready names is gone, and another one would be known. */
static bool is_obstacle_gone(const struct proplet_observed *observed)
{
    const cJSON *ready = condition_get(observed->proplet.status.conditions, "Ready");
    enum reason reason = reason_of(json_string(json_get(ready, "reason"), ""));

    for (size_t i = 0; i < OBSTACLES; i++) {
        if (reason == OBSTACLE_REASONS[i])
            return observed->channel.since_ms && observed->channel.results_since_ms;
    }
    return false;
}

/* Strangers are named as soon as they are heard. */
static bool names_strangers(const struct proplet_observed *observed)
{
    const cJSON *ready = condition_get(observed->proplet.status.conditions, "Ready");

    return observed->strangers &&
           reason_of(json_string(json_get(ready, "reason"), "")) == REASON_FIRST_HEARTBEAT;
}

static void plan_phase(struct arena *arena, const struct proplet_observed *observed,
                       enum verdict verdict, struct proplet_plan *plan)
{
    const struct proplet_status *old = &observed->proplet.status;
    struct proplet_status *status = &plan->status;
    bool unchanged = verdict == VERDICT_UNHEARD && old->conditions && !observed->pods &&
                     !is_obstacle_gone(observed) && !names_strangers(observed);
    bool alive = status->phase == PROPLET_RUNNING;
    bool connected = observed->pods ? connected_devices(status->k8s_status) > 0 : alive;
    struct said ready = say_ready(arena, observed, verdict);
    struct said heard = say_connected(arena, observed, status, verdict, connected);

    if (!observed->pods && alive && old->phase != PROPLET_RUNNING)
        plan->device = DEVICE_HEARD;
    if (unchanged) /* an earlier leader's word stands until this process has heard, or waited */
        return;

    cJSON *list = arena_own(
        arena, old->conditions ? json_copy(old->conditions) : cJSON_CreateArray(), json_free);
    bool changed = set_condition(observed, list, "Ready", truth(alive), &ready);
    changed |= set_condition(observed, list, "Connected", truth(connected), &heard);
    changed |= tell_left_out(arena, observed, list);
    status->conditions = list;
    status->alive = alive;
    if (changed || status->phase != old->phase || old->alive != alive)
        plan->write = PROPLET_WRITE_NOW;

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

/* The condition that an earlier leader wrote stands until this one knows better, since it does not know
 * the reasons. */
static enum condition_status judge_health(const struct fleet_device *device, const cJSON *old)
{
    bool was_unhealthy = condition_is(old, "Healthy", CONDITION_FALSE);

    if (device->unanswered == FLEET_MAX_UNANSWERED || (was_unhealthy && !device->answered))
        return CONDITION_FALSE;
    if (device->answered || condition_is(old, "Healthy", CONDITION_TRUE))
        return CONDITION_TRUE;
    return CONDITION_UNKNOWN;
}

static void plan_health(struct arena *arena, const struct proplet_observed *observed,
                        struct proplet_plan *plan)
{
    static const struct said SAID[] = {
        [CONDITION_FALSE] = { .reason = REASON_NO_RESULTS,
                              .message =
                                  "its last 3 Tasks ended without a result from the device" },
        [CONDITION_TRUE] = { .reason = REASON_ANSWERS, .message = "" },
        [CONDITION_UNKNOWN] = { .reason = REASON_NO_TASK_YET,
                                .message = "no result of the device has arrived yet" },
    };
    _Static_assert(FLEET_MAX_UNANSWERED == 3, "the message says so");
    const struct fleet_device device = proplet_summary(observed);
    const cJSON *old = plan->status.conditions;
    enum condition_status healthy = judge_health(&device, old);
    cJSON *list = arena_own(arena, old ? json_copy(old) : cJSON_CreateArray(), json_free);

    if (!set_condition(observed, list, "Healthy", healthy, &SAID[healthy]))
        return;

    plan->status.conditions = list;
    plan->write = PROPLET_WRITE_NOW;
}

/* ---- whether it is open ---- */

static const struct event *availability_event(enum reason before, enum reason after)
{
    static const struct {
        enum reason reason;
        const struct event *event;
    } BEGINNINGS[] = {
        { REASON_KILL_SWITCH, &PROPLET_EVENT_KILL_SWITCH },
        { REASON_RECLAIMED, &PROPLET_EVENT_RECLAIMED },
        { REASON_BAD_SCHEDULE, &PROPLET_EVENT_BAD_SCHEDULE },
        { REASON_UNKNOWN_ZONE, &PROPLET_EVENT_UNKNOWN_ZONE },
        { REASON_NO_ZONES, &PROPLET_EVENT_NO_ZONES },
    };

    if (before == after)
        return NULL;
    for (size_t i = 0; i < ARRAY_LEN(BEGINNINGS); i++) {
        if (BEGINNINGS[i].reason == after)
            return BEGINNINGS[i].event;
    }
    if (before == REASON_KILL_SWITCH || before == REASON_RECLAIMED)
        return &PROPLET_EVENT_RELEASED;
    return NULL;
}

static bool set_available(const struct proplet_observed *observed, cJSON *list)
{
    static const enum condition_status STATUS[AVAILABILITY_STATES] = {
        [AVAILABILITY_OPEN] = CONDITION_TRUE,
        [AVAILABILITY_DRAINING] = CONDITION_FALSE,
        [AVAILABILITY_CLOSED] = CONDITION_FALSE,
        [AVAILABILITY_UNKNOWN] = CONDITION_UNKNOWN,
    };
    const struct availability *is = &observed->availability;
    const struct said said = { .reason = is->reason,
                               .message = observed->availability_message
                                              ? observed->availability_message
                                              : "" };

    return set_condition(observed, list, "Available", STATUS[is->state], &said);
}

static bool same_second(int64_t a_us, int64_t b_us)
{
    return a_us / 1000000 == b_us / 1000000;
}

static bool same_availability(const struct availability_status *a,
                              const struct availability_status *b)
{
    if (!a || !b)
        return a == b;
    return a->state == b->state && str_equal(a->reason, b->reason) &&
           a->in_window.set == b->in_window.set && a->in_window.value == b->in_window.value &&
           same_second(a->since_us, b->since_us) && same_second(a->stop_at_us, b->stop_at_us) &&
           same_second(a->next_transition_us, b->next_transition_us);
}

static const struct availability_status *written_availability(struct arena *arena,
                                                              const struct availability *is)
{
    struct availability_status *status = arena_new(arena, struct availability_status);

    if (is->state == AVAILABILITY_UNSET)
        return NULL;
    *status = (struct availability_status){
        .state = is->state,
        .reason = reason_text(is->reason),
        .in_window = is->in_window,
        .since_us = is->since_us,
        .stop_at_us = is->state == AVAILABILITY_DRAINING ? is->stop_us : 0,
        .next_transition_us = is->next_us,
    };
    return status;
}

/* A Proplet that uses none of the fields, and used none, costs nothing. */
static void plan_availability(struct arena *arena, const struct proplet_observed *observed,
                              struct proplet_plan *plan)
{
    const struct availability *is = &observed->availability;
    const struct availability_status *old = observed->proplet.status.availability;
    enum reason before = old ? reason_of(old->reason) : REASON_NONE;
    bool changed;

    if (is->state == AVAILABILITY_UNSET && !old)
        return;

    cJSON *list = arena_own(arena, json_copy(plan->status.conditions), json_free);
    if (is->state == AVAILABILITY_UNSET) {
        condition_remove(list, "Available");
        changed = true;
    } else {
        changed = set_available(observed, list);
    }
    plan->status.availability = written_availability(arena, is);
    plan->status.conditions = list;
    if (!changed && same_availability(old, plan->status.availability))
        return;
    if (availability_is_decided(before, is->reason))
        plan->write = PROPLET_WRITE_NOW;
    else if (plan->write < PROPLET_WRITE_OPENING)
        plan->write = PROPLET_WRITE_OPENING;
    plan->availability_event = availability_event(before, is->reason);
}

/* The next time at which time alone changes something. */
static int64_t next_deadline_ms(const struct proplet_observed *observed, int64_t silence_ms)
{
    int64_t look_us = observed->availability.look_us;
    int64_t look_ms = observed->now_ms + (look_us - observed->now_us + 999) / 1000;

    if (!look_us)
        return silence_ms;
    return silence_ms && silence_ms < look_ms ? silence_ms : look_ms;
}

struct proplet_plan proplet_plan(struct arena *arena, const struct proplet_observed *observed)
{
    struct judgement judgement = judge(observed);
    struct proplet_plan plan = { .status = observed->proplet.status };

    if (judgement.verdict == VERDICT_SILENT)
        plan.device = DEVICE_SILENT;
    if (observed->pods)
        plan_pods(arena, observed, &judgement, &plan);
    plan.deadline_ms = next_deadline_ms(observed, judgement.deadline_ms);
    plan.status.observed_generation = observed->generation;
    plan.status.phase = next_phase(observed, judgement.verdict);
    plan_phase(arena, observed, judgement.verdict, &plan);
    if (plan_offline_since(observed, &plan.status))
        plan.write = PROPLET_WRITE_NOW;
    plan_health(arena, observed, &plan);
    plan_availability(arena, observed, &plan);
    if (plan.status.observed_generation != observed->proplet.status.observed_generation)
        plan.write = PROPLET_WRITE_NOW;
    proplet_plan_values(arena, observed, &plan);
    return plan;
}
