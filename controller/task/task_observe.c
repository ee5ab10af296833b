#include "controller/task/task_observe.h"

#include <string.h>

#include "common/api/names.h"
#include "common/api/proplet.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "common/kube/finalizer.h"
#include "controller/bridge/bridge_fence.h"
#include "controller/bridge/bridge_messages.h"
#include "controller/cache/indexes.h"
#include "controller/task/owner.h"
#include "controller/task/plan/broadcast_plan.h"
#include "controller/task/plan/task_availability_plan.h"
#include "controller/task/plan/task_order.h"
#include "controller/task/plan/task_recovery_plan.h"
#include "controller/task/plan/task_schedule_plan.h"
#include "controller/task/plan/task_transition.h"
#include "controller/task/task_dependencies.h"
#include "controller/task/task_workload.h"
#include "controller/workload/task_workload_manifest.h"

/* A device that came up has said so by then: its create is behind no marker that is sent later. */
#define DEVICE_SETTLE_MS 1000

/* Channels are subscribed to one after the other; a start whose result nobody is subscribed to would
 * lose it. The grant wakes it; looked at so often in any case. */
#define SUBSCRIBED_RETRY_MS 5000

/* While nothing can be written nothing is acknowledged, and a marker stays behind what waits for
 * that. Markers that used to come back are believed to be on their way for so long, and a connection
 * that is gone to come back; then a Task ends without. */
#define MARKER_PATIENCE_MS 600000

/* Nobody is lost who had no time to be heard, since we listen or since most of the fleet is back. */
static void observe_absence(const struct task_deps *deps, struct reconcile *rc,
                            const struct channel_state *channel, int64_t timeout_ms,
                            struct observed_proplet *proplet)
{
    int64_t now_us = clock_boot_ms(rc->clock) * 1000;
    int64_t now_ms = clock_monotonic_ms(rc->clock);
    struct brake_state brake = fleet_brake_state(deps->brake, now_us, now_ms);
    int64_t since_ms = channel->since_ms;

    if (!since_ms)
        return;
    if (since_ms < brake.released_ms)
        since_ms = brake.released_ms;
    proplet->absent_from_ms = since_ms + timeout_ms;
    if (brake.plan.holds)
        proplet->held_until_ms = now_ms + (brake.plan.until_us - now_us + 999) / 1000;
}

/* heard_since_ms: both connections, or the device is back. timeout_ms: of its silence. */
static void observe_device(const struct task_deps *deps, struct reconcile *rc, int64_t timeout_ms,
                           struct observed_proplet *proplet)
{
    struct fleet_device device;
    char key[FLEET_KEY_LEN];

    if (!deps->bridge || !fleet_key(proplet->channel, proplet->client_id, key))
        return;

    struct channel_state channel = bridge_channel_state(deps->bridge, proplet->channel);
    fleet_get(deps->fleet, rc->arena, key, &device);
    proplet->fresh_since_ms = device.fresh_since_ms;
    proplet->results_heard = channel.results_since_ms > 0;
    proplet->results_since_ms = channel.results_since_ms;
    proplet->results_refused = channel.refused;
    observe_absence(deps, rc, &channel, timeout_ms, proplet);
    if (!channel.since_ms || !channel.results_since_ms)
        return;

    int64_t since_ms = device.alive_since_ms;
    if (since_ms < channel.since_ms)
        since_ms = channel.since_ms;
    if (since_ms < channel.results_since_ms)
        since_ms = channel.results_since_ms;
    proplet->heard_since_ms = since_ms;
}

/* Of type k8s, for a Task over MQTT: the device, and not only its pods, has to be there. */
static void observe_pod(struct arena *arena, const struct proplet *proplet, const char *client_id,
                        struct observed_proplet *ret)
{
    bool indexed = proplet_is_indexed(&proplet->spec);

    if (client_id)
        ret->client_id = arena_strdup(arena, client_id);

    const struct proplet_device *device = proplet_device_find(&proplet->status, ret->client_id);
    ret->withdrawn = ret->exists && !proplet_has_device(&proplet->spec, ret->client_id);
    ret->exists &= !ret->withdrawn;
    ret->ready = ret->exists && device && device->connected && (indexed || ret->ready);
    if (indexed || (device && device->offline_since_us))
        ret->offline_since_us = device ? device->offline_since_us : 0;
}

/* On the monotonic clock, so that no step of the wall clock changes it; 0: there is none. */
static int64_t stop_of(const struct task_deps *deps, const struct availability *is, bool daemon)
{
    int64_t grace_ms = daemon ? 0 : (is->stop_us - is->since_us) / 1000;
    int64_t left_ms = is->since_ms + grace_ms - clock_boot_ms(deps->clock);
    int64_t stop_ms = clock_monotonic_ms(deps->clock) + left_ms;

    if (!is->stop_us)
        return 0;
    return stop_ms > 0 ? stop_ms : 1; /* before the machine started */
}

void task_observe_opening(const struct task_deps *deps, const struct task_spec *spec,
                          struct observed_proplet *ret)
{
    const struct availability is = availabilities_get(deps->availabilities, ret->uid);
    int64_t now_us = timeline_now_us(deps->timeline, NULL);
    const struct availability closing =
        availability_foreseen(&is, ret->generation, now_us, clock_boot_ms(deps->clock));

    ret->closed = !availability_is_open_at(&is, now_us);
    ret->short_time = !ret->closed && !task_fits_until(spec->need_s, is.next_us, now_us);
    ret->stop_ms = stop_of(deps, &closing, spec->daemon);
    ret->availability = closing.reason;
}

static void observe_proplet(const struct task_deps *deps, struct reconcile *rc,
                            const struct task *task, struct observed_proplet *ret)
{
    struct kube_name name;
    struct proplet proplet = { 0 };

    *ret = (struct observed_proplet){ 0 };
    if (str_is_empty(task->status.assigned_proplet) ||
        !kube_name_set(&name, rc->name.ns, task->status.assigned_proplet))
        return;

    CLEANUP(kube_object_unrefp)
    struct kube_object *object = store_get(informer_store(deps->proplets), &name);
    const char *uid = task->status.assigned_proplet_uid; /* unset by earlier versions */
    if (!object || (uid && !str_equal(uid, object->uid)))
        return;

    const cJSON *json = kube_object_json(rc->arena, object);
    bool usable = proplet_channel_of(json, ret->channel) &&
                  proplet_decode(rc->arena, json, &proplet, NULL) == 0;
    bool deleting = object->deleting;
    if (!usable)
        return;

    ret->uid = arena_strdup(rc->arena, object->uid);
    ret->generation = object->generation;
    ret->type = proplet.spec.type;
    if (proplet.spec.k8s && deps->settings->allow_pod_template)
        ret->pod_template = proplet.spec.k8s->pod_template;
    ret->exists = !deleting; /* a deleted Proplet is lost at once for its Tasks */
    ret->ready = !deleting && condition_is(proplet.status.conditions, "Ready", CONDITION_TRUE);
    ret->cordoned = proplet.spec.unschedulable;
    task_observe_opening(deps, &task->spec, ret);
    ret->offline_since_us = proplet.status.offline_since_us;
    ret->reachable = deps->bridge != NULL;
    ret->client_id = proplet.spec.connection_config->client_id;
    ret->dialect = proplet_dialect(&proplet.spec);
    ret->qos = proplet_mqtt_qos(&proplet.spec);
    if (ret->type == PROPLET_K8S && !task_workload_is_for(&task->spec))
        observe_pod(rc->arena, &proplet, task->status.assigned_client_id, ret);
    if (!ret->ready)
        ret->absence = scheduler_absence(rc->arena, name.name, &proplet);
    observe_device(
        deps, rc,
        proplet_heartbeat_timeout_ms(&proplet.spec, deps->settings->last_seen_threshold_ms), ret);
}

static void observe_result(struct arena *arena, const struct mail *mail,
                           enum result_refusal refusal, struct observed_result *ret)
{
    static const enum reason OF_REFUSAL[RESULT_REFUSALS] = {
        [RESULT_TOO_LARGE] = REASON_RESULT_TOO_LARGE,
        [RESULT_UNREADABLE] = REASON_RESULT_REFUSED,
    };

    *ret = (struct observed_result){ .sequence = mail->sequence, .channel = mail->source };
    if (message_result_parse(arena, mail->body, mail->body_len, &ret->message, NULL) < 0)
        ret->message.task_id = ""; /* was read once before it came here: matches no attempt */
    ret->message.refusal = refusal;
    ret->reason = OF_REFUSAL[refusal];
}

void task_observe_update(struct arena *arena, const struct mail *mail,
                         const struct observed_proplet *proplet, struct observed_result *ret)
{
    size_t len = strcspn(mail->source, "#");

    *ret = (struct observed_result){
        .sequence = mail->sequence,
        .channel = proplet->channel, /* whose it is was found by round and identity, or by its id */
        .message = { .task_id = arena_strndup(arena, mail->source, len) },
        .update = mail->body,
        .update_len = mail->body_len,
        .asker = mail->source[len] ? mail->source + len + 1 : NULL,
    };
}

/* Counts for Tasks with updates only: a client that may publish copies can forge one for any other Task. */
static void observe_update(struct arena *arena, const struct mail *mail,
                           const struct task_observed *task, struct observed_result *ret)
{
    task_observe_update(arena, mail, &task->proplet, ret);
    if (!task->has_updates)
        ret->verdict = RESULT_OTHER_PROPLET;
}

/* Of several the last counts: it ends whatever the others do. Of a broadcast each target has its
 * own. */
static void observe_restart(const struct mail *mail, struct task_observed *ret)
{
    char key[FLEET_KEY_LEN];
    int64_t came_ms;

    if (!ret->target_id)
        ret->restart.sequence = mail->sequence;
    if (!ret->workload.selected && ret->proplet.client_id &&
        fleet_key(ret->proplet.channel, ret->proplet.client_id, key) &&
        str_equal(key, mail->source) && str_to_int64(mail->body, &came_ms))
        ret->restart = (struct observed_restart){
            .sequence = mail->sequence,
            .came_ms = came_ms,
            .stored = str_equal(mail->kind, MAIL_STORED_RESTART),
        };
}

/* Those with its id; whose they are is judged later. */
static void observe_part_results(struct arena *arena, const struct task_observed *task,
                                 struct task_observed *part)
{
    struct observed_result *results = NULL;

    for (size_t i = 0; part->target_id && i < task->result_count; i++) {
        if (!str_equal(task->results[i].message.task_id, part->target_id))
            continue;
        if (!results)
            results = arena_array(arena, struct observed_result, task->result_count);
        results[part->result_count++] = task->results[i];
    }
    part->results = results;
}

/* A result of this Task is in the broker, for lack of memory here: neither silent nor overdue. */
static void observe_elsewhere(struct task_observed *ret)
{
    ret->may_start = false;
    ret->answer_awaited = true;
    ret->marker_due_ms = ret->now_ms + FENCE_RETRY_MS;
}

static void observe_mail(const struct task_deps *deps, struct reconcile *rc,
                         const struct kube_object *object, struct task_observed *parts,
                         size_t part_count, struct task_observed *ret)
{
    struct mail *mail;

    /* Before and after: it may come or go meanwhile. */
    bool elsewhere = mailbox_is_elsewhere(deps->mailbox, object->uid);
    size_t count = mailbox_peek(deps->mailbox, rc->arena, object->uid, &mail);
    elsewhere = mailbox_is_elsewhere(deps->mailbox, object->uid) || elsewhere;
    struct observed_result *results =
        arena_array(rc->arena, struct observed_result, count ? count : 1);
    size_t len = 0;

    for (size_t i = 0; i < count; i++) {
        bool is_restart = false;
        enum result_refusal refusal;
        if (mail_is_result(mail[i].kind, &refusal))
            observe_result(rc->arena, &mail[i], refusal, &results[len++]);
        else if (str_equal(mail[i].kind, MAIL_UPDATE))
            observe_update(rc->arena, &mail[i], ret, &results[len++]);
        else
            is_restart = true;
        if (is_restart)
            observe_restart(&mail[i], ret);
        for (size_t j = 0; j < part_count && is_restart; j++)
            observe_restart(&mail[i], &parts[j]);
    }
    ret->results = results;
    ret->result_count = len;
    if (elsewhere)
        observe_elsewhere(ret);
    for (size_t j = 0; j < part_count; j++) {
        observe_part_results(rc->arena, ret, &parts[j]);
        if (elsewhere)
            observe_elsewhere(&parts[j]);
    }
}

/* All markers that a Task awaits are one: the last that is to be sent. */
static void await_marker(int64_t since_ms, struct task_observed *ret)
{
    if (!ret->marker_awaited || ret->marker_since_ms < since_ms)
        ret->marker_since_ms = since_ms;
    ret->marker_awaited = ret->marker_wanted = true;
}

static bool is_passed(const struct task_deps *deps, int64_t since_ms, struct task_observed *ret)
{
    enum fence_state state = bridge_fence_state(deps->bridge, since_ms);

    if (state == FENCE_PENDING)
        await_marker(since_ms, ret);
    else if (state == FENCE_PASSED_EARLIER)
        ret->marker_wanted = true;
    return state != FENCE_PENDING;
}

/* Returns the later of since_ms and the begin of the connection. A marker of an earlier connection says nothing of what
 * the broker kept for the session afterwards. */
static int64_t since_connected_ms(const struct task_observed *observed, int64_t since_ms)
{
    int64_t connected_ms = observed->proplet.results_since_ms - 1;

    return since_ms > connected_ms ? since_ms : connected_ms;
}

/* See may_start. */
static bool is_settled(const struct task_deps *deps, struct task_observed *ret)
{
    int64_t unacknowledged_ms = ret->attempt.published_ms ? 0 : ret->attempt.began_ms;
    /* An earlier leader may have published it. */
    bool inherited = !ret->attempt.chosen_here && !ret->attempt.began_ms &&
                     ret->task.status.phase == TASK_SCHEDULED;
    /* It may be silent because it is done, and its result wait behind what cannot be written. */
    int64_t silent_ms = task_silent_at_ms(ret);

    if (ret->start_from_ms &&
        (ret->now_ms < ret->start_from_ms || !is_passed(deps, ret->start_from_ms - 1, ret)))
        return false;
    if ((unacknowledged_ms || inherited) &&
        !is_passed(deps, since_connected_ms(ret, unacknowledged_ms), ret))
        return false;
    return !silent_ms || is_passed(deps, since_connected_ms(ret, silent_ms), ret);
}

/* The markers, or the subscriptions, may still come. */
static bool is_patient(const struct task_observed *observed, int64_t since_ms)
{
    return observed->now_ms - since_ms < MARKER_PATIENCE_MS;
}

/* Nothing is heard: since it was to end, and this process could know. */
static void observe_deafness(int64_t due_ms, struct task_observed *ret)
{
    int64_t since_ms = due_ms > ret->attempt.first_seen_ms ? due_ms : ret->attempt.first_seen_ms;
    bool waits = !ret->proplet.results_refused && is_patient(ret, since_ms);

    ret->answer_awaited = waits && ret->backlog_drained;
    ret->marker_overdue = !waits;
    if (waits)
        ret->marker_due_ms = ret->now_ms + FENCE_RETRY_MS;
}

/* due_ms: see task_end_due_ms. */
static void observe_answer(const struct task_deps *deps, int64_t due_ms, struct task_observed *ret)
{
    const struct observed_proplet *proplet = &ret->proplet;
    int64_t since_ms = since_connected_ms(ret, due_ms);

    if (!due_ms || ret->workload.selected)
        return;
    if (!proplet->results_heard) {
        observe_deafness(due_ms, ret);
        return;
    }
    if (!ret->backlog_drained)
        return;
    ret->answer_awaited = !is_passed(deps, since_ms, ret) &&
                          (!bridge_marker_overdue(deps->bridge) || is_patient(ret, since_ms));
    if (ret->answer_awaited)
        ret->marker_due_ms = ret->now_ms + FENCE_RETRY_MS;
}

static void observe_backlog(const struct task_deps *deps, int64_t due_ms, struct task_observed *ret)
{
    const struct observed_proplet *proplet = &ret->proplet;

    ret->backlog_drained = true;
    ret->may_start = true;
    if (!deps->bridge || !proplet->exists || !task_is_active(ret))
        return;

    ret->backlog_drained = is_passed(deps, 0, ret);
    if (proplet->fresh_since_ms)
        ret->start_from_ms = proplet->fresh_since_ms + DEVICE_SETTLE_MS;
    ret->may_start = is_settled(deps, ret);
    if (!proplet->results_heard) {
        ret->may_start = false;
        if (ret->start_from_ms < ret->now_ms + SUBSCRIBED_RETRY_MS)
            ret->start_from_ms = ret->now_ms + SUBSCRIBED_RETRY_MS;
    } else if (!ret->backlog_drained || !ret->may_start) {
        ret->marker_due_ms = ret->now_ms + FENCE_RETRY_MS;
        ret->marker_overdue = bridge_marker_overdue(deps->bridge);
    }
    observe_answer(deps, due_ms, ret);
}

/* Tasks on a Proplet that never closes cost nothing. */
static void observe_stop(const struct task_deps *deps, struct task_observed *ret)
{
    bool due = ret->proplet.stop_ms && ret->proplet.stop_ms <= ret->now_ms && task_is_active(ret);
    enum reason reason = task_cut_noted(ret);

    if (!reason && due)
        reason = ret->proplet.availability;
    if (reason || ret->attempt.cut_ms)
        ret->attempt =
            attempts_cut(deps->attempts, ret->uid, ret->task.status.attempt, reason, ret->now_ms);
}

/* A Task waits for what its targets wait for. */
static void await_markers_of(const struct task_observed *parts, size_t count,
                             struct task_observed *ret)
{
    for (size_t i = 0; i < count; i++) {
        ret->marker_wanted = ret->marker_wanted || parts[i].marker_wanted;
        if (parts[i].marker_awaited)
            await_marker(parts[i].marker_since_ms, ret);
    }
}

/* Each open target as if it were a Task. */
static struct task_observed *observe_parts(const struct task_deps *deps, struct reconcile *rc,
                                           const struct task_observed *task, size_t *ret_count)
{
    const struct json_objects *list = &task->task.status.broadcast_results;
    const struct task_target *targets = list->items;
    int64_t attempt = task->task.status.attempt;
    int64_t due_ms = task_end_due_ms(task);
    int64_t last = 0;

    *ret_count = 0;
    if (!broadcast_is_active(task))
        return NULL;

    struct task_observed *parts = arena_array(rc->arena, struct task_observed, list->len);
    for (size_t i = 0; i < list->len; i++) {
        const struct task_target *target = &targets[i];
        last = target->index > last ? target->index : last;
        if (!target_is_open(target))
            continue;
        struct task_observed *part = &parts[i];
        *part = *task;
        part->uid = attempts_key(rc->arena, task->uid, target->index);
        part->target_id = message_id_of_target(rc->arena, task->uid, attempt, target->index);
        part->task.status = (struct task_status){
            .phase = target->phase == TARGET_RUNNING ? TASK_RUNNING : TASK_SCHEDULED,
            .assigned_proplet = target->proplet,
            .assigned_proplet_uid = target->proplet_uid,
            .assigned_client_id = target->client_id,
            .attempt = attempt,
            .scheduled_at_us = task->task.status.scheduled_at_us,
            .started_at_us = target->started_at_us,
            .reason = target->reason,
            .device_restarts = target->restarts,
            .module = task->task.status.module,
        };
        part->attempt = attempts_get(deps->attempts, part->uid, attempt, task->now_ms);
        part->attempt.deleting_ms = task->attempt.deleting_ms;
        observe_proplet(deps, rc, &part->task, &part->proplet);
        observe_stop(deps, part);
        int64_t own_ms = task_end_due_ms(part);
        observe_backlog(deps, own_ms > due_ms ? own_ms : due_ms, part);
    }
    attempts_targets(deps->attempts, task->uid, attempt, last + 1, task->now_ms);
    *ret_count = list->len;
    return parts;
}

/* The Proplets whose devices are still to be told to stop. */
static void observe_owed(const struct task_deps *deps, struct reconcile *rc,
                         struct task_observed *ret)
{
    const struct json_objects *list = &ret->task.status.lost_attempts;
    const struct lost_attempt *attempts = list->items;
    struct observed_proplet *owed = arena_array(rc->arena, struct observed_proplet, list->len + 1);

    for (size_t i = 0; i < list->len; i++) {
        struct task task = ret->task;
        task.status.assigned_proplet = attempts[i].proplet;
        task.status.assigned_proplet_uid = NULL; /* it is for a device, whatever Proplet has it */
        task.status.assigned_client_id = attempts[i].client_id;
        observe_proplet(deps, rc, &task, &owed[i]);
        owed[i].exists = owed[i].exists && owed[i].reachable;
    }
    ret->owed = owed;
}

static void observe_order(const struct task_deps *deps, struct reconcile *rc,
                          const struct kube_object *object, const cJSON *json,
                          struct task_observed *ret)
{
    task_owners_order(&deps->owners, rc->arena, json, ret);
    if (task_order_suspends(ret->order))
        ret->task.spec.suspend = true;

    attempts_ordered(deps->attempts, object->uid, ret->task.status.attempt,
                     task_order_stops(&ret->task.spec, ret->order), ret->now_ms);
}

int task_observe(const struct task_deps *deps, struct reconcile *rc,
                 const struct kube_object *object, const cJSON *json, struct task_observed *ret,
                 struct error *err)
{
    const cJSON *metadata = json_get(json, "metadata");

    *ret = (struct task_observed){
        .uid = object->uid,
        .name = object->name,
        .generation = object->generation,
        .has_finalizer = finalizer_has(json, FINALIZER_TASK),
        .scheduler = deps->scheduler,
        .mqtt_configured = deps->bridge != NULL,
        .has_coordinator = !str_is_empty(deps->settings->coordinator_url),
        .max_result_bytes = (size_t)deps->settings->max_result_bytes,
        .stop_timeout_ms = deps->settings->stop_timeout_ms,
        .start_confirm_ms = deps->settings->start_confirm_ms,
        .running_write_delay_ms = deps->is_stopping ? 0 : deps->settings->running_write_delay_ms,
        .pod_start_ms = deps->settings->pod_start_ms,
        .now_ms = clock_monotonic_ms(rc->clock),
    };
    ret->now_us = timeline_now_us(deps->timeline, &ret->time);
    ret->rerun = json_string(json_path(metadata, "annotations", ANNOTATION_RESTART, NULL), NULL);
    rfc3339_parse(json_string(json_get(metadata, "creationTimestamp"), ""), &ret->created_us);
    rfc3339_parse(json_string(json_get(metadata, "deletionTimestamp"), ""), &ret->deleted_us);

    int r = task_decode(rc->arena, json, &ret->task, err);
    if (r < 0)
        return r;

    if (task_is_final(ret->task.status.phase) && ret->task.spec.ttl_seconds_after_finished.set)
        ret->awaited = task_owners_await(&deps->owners, rc->arena, &rc->name, json) ||
                       dependencies_awaited(informer_store(deps->tasks), &rc->name);
    observe_order(deps, rc, object, json, ret);
    int64_t attempt = ret->task.status.attempt;
    if (object->deleting)
        attempts_deleting(deps->attempts, object->uid, attempt, ret->now_ms);
    ret->attempt = attempts_get(deps->attempts, object->uid, attempt, ret->now_ms);
    observe_proplet(deps, rc, &ret->task, &ret->proplet);
    observe_stop(deps, ret);
    observe_owed(deps, rc, ret);
    r = task_workload_observe(deps, rc, ret, err);
    if (r < 0)
        return r;
    observe_backlog(deps, task_end_due_ms(ret), ret);
    size_t part_count;
    struct task_observed *parts = observe_parts(deps, rc, ret, &part_count);
    ret->parts = parts;
    await_markers_of(parts, part_count, ret);
    /* after the marker: what came before it is there */
    observe_mail(deps, rc, object, parts, part_count, ret);
    r = task_owners_read_results(&deps->owners, rc, json, ret, err);
    if (r)
        return r;
    ret->schedule = task_schedule_observe(rc->arena, &ret->task.spec, NULL);
    if (task_awaits_dependencies(&ret->task))
        ret->dependencies = dependencies_observe(informer_store(deps->tasks), rc->arena, &rc->name,
                                                 json, &ret->task);
    return 0;
}
