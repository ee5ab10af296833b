#include "controller/task/task_dispatch.h"

#include <string.h>

#include "common/api/kinds.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "controller/device/payload.h"
#include "controller/task/plan/broadcast_plan.h"
#include "controller/task/plan/task_bringing_plan.h"
#include "controller/task/plan/task_checkpoint_plan.h"
#include "controller/task/plan/task_transition.h"
#include "controller/task/task_metrics.h"
#include "controller/task/task_observe.h"

/* The reconnect wakes the Task; this is the backstop for refusals that end without one. */
#define PUBLISH_RETRY_MS 5000

/* QoS 0 to a microcontroller, which never acknowledges what it is sent. */
static int qos_of(const struct observed_proplet *proplet)
{
    return proplet->dialect == DIALECT_EMBEDDED ? 0 : proplet->qos;
}

static const char *manifest_of(const struct task_status *status)
{
    return status->module ? status->module->manifest : NULL;
}

int task_read_whole(struct reconcile *rc, const struct task_observed *observed, struct task *ret,
                    const cJSON **ret_json, struct error *err)
{
    cJSON *object = NULL;
    int r = kube_get(rc->client, rc->arena, &KIND_TASK, &rc->name, &object, err);
    if (r < 0)
        return error_wrap(err, "read the module");
    if (!str_equal(kube_uid(object), observed->uid) || kube_is_deleting(object))
        return error_set(err, ERROR_CONFLICT, "Task '%s' was deleted", rc->name.name);

    *ret_json = object;
    r = task_decode(rc->arena, object, ret, err);
    if (r < 0)
        return r;
    /* A target has the module of the whole, which its part was observed with. */
    if (ret->status.attempt != observed->task.status.attempt ||
        !str_equal(manifest_of(&ret->status), manifest_of(&observed->task.status)))
        return error_set(err, ERROR_CONFLICT, "Task '%s' changed since it was read", rc->name.name);
    return 0;
}

/* Reading the module took its time: what was observed before may hold no more. Its result may have
 * come, or the connection have ended over which it would. */
static bool has_news(const struct task_deps *deps, struct reconcile *rc,
                     const struct task_observed *observed)
{
    struct channel_state channel = bridge_channel_state(deps->bridge, observed->proplet.channel);
    const char *uid =
        observed->target_id ? message_id_uid(rc->arena, observed->target_id) : observed->uid;
    uint64_t seen = observed->restart.sequence;
    struct mail *mail;
    size_t count = mailbox_peek(deps->mailbox, rc->arena, uid, &mail);

    if (observed->result_count && observed->results[observed->result_count - 1].sequence > seen)
        seen = observed->results[observed->result_count - 1].sequence;
    return (count && mail[count - 1].sequence > seen) || !channel.results_since_ms ||
           channel.results_since_ms > observed->now_ms;
}

/* Nor its Proplet be open any more. */
static bool has_closed(const struct task_deps *deps, const struct task_observed *observed)
{
    struct observed_proplet proplet = observed->proplet;

    task_observe_opening(deps, &observed->task.spec, &proplet);
    return proplet.closed || proplet.short_time;
}

static int send_payload(const struct task_deps *deps, struct reconcile *rc,
                        const struct task_observed *observed, const char *text, size_t len,
                        struct error *err)
{
    const struct observed_proplet *proplet = &observed->proplet;
    int64_t began_ms = clock_monotonic_ms(rc->clock);
    int r = bridge_publish(deps->bridge, proplet->channel, "manager/start", text, len,
                           qos_of(proplet), err);
    if (r == -ERROR_UNAVAILABLE) {
        log_debug("start not published, waiting for the broker", "error", ERROR_TEXT(err), NULL);
        rc->requeue_after_ms = PUBLISH_RETRY_MS;
        return TASK_NOT_PUBLISHED;
    }
    if (r < 0 && r != -ERROR_TIMEOUT)
        return error_wrap(err, "publish start");

    task_metrics_start(observed->attempt.publishes || observed->task.status.phase == TASK_RUNNING);
    attempts_published(deps->attempts, observed->uid, observed->task.status.attempt, began_ms,
                       r < 0 ? 0 : clock_monotonic_ms(rc->clock));
    if (r < 0 && observed->task.status.phase == TASK_SCHEDULED) {
        log_warn("start not acknowledged by the broker, publishing it again", "uid", observed->uid,
                 "error", ERROR_TEXT(err), NULL);
        rc->requeue_after_ms = 1; /* asks for the marker that it waits for */
        return TASK_NOT_PUBLISHED;
    }
    return 0;
}

static int task_send_start(const struct task_deps *deps, struct reconcile *rc,
                           const struct task_observed *observed, const struct task_spec *whole,
                           struct bringing *ret_bringing, enum reason *ret_reason,
                           struct error *err)
{
    const char *text;
    size_t len;
    bool repeated = observed->attempt.publishes || !observed->attempt.chosen_here;
    struct start_request request = {
        .task = whole,
        .object_name = rc->name.name,
        .message_id = task_message_id(rc->arena, observed),
        .client_id = observed->proplet.client_id,
        .dialect = observed->proplet.dialect,
        .checkpoint =
            task_checkpoint_environment(rc->arena, observed, deps->settings->coordinator_url),
        .coordinator_url = deps->settings->coordinator_url,
    };

    if ((repeated && has_news(deps, rc, observed)) || has_closed(deps, observed)) {
        rc->requeue_after_ms = 1;
        return TASK_NOT_PUBLISHED;
    }
    task_owners_bring(&deps->owners, rc, observed, &request, ret_bringing);
    if (bringing_holds(ret_bringing))
        return TASK_HELD_BACK;
    if (repeated && whole->daemon && !task_publish_stop(deps, rc, observed))
        return TASK_NOT_PUBLISHED;

    int r = payload_start(rc->arena, &request, &text, &len, err);
    if (r < 0) {
        *ret_reason = r == -ERROR_TOO_LARGE ? REASON_PAYLOAD_TOO_LARGE : REASON_PAYLOAD_INVALID;
        return TASK_NOT_SENDABLE;
    }
    return send_payload(deps, rc, observed, text, len, err);
}

int task_publish_start(const struct task_deps *deps, struct reconcile *rc,
                       const struct task_observed *observed, struct task_setback *ret,
                       struct error *err)
{
    struct task whole = { 0 };
    const cJSON *json;
    enum reason reason = REASON_NONE;
    struct bringing *bringing = arena_new(rc->arena, struct bringing);

    *ret = (struct task_setback){ .kind = SETBACK_HELD_BACK, .bringing = bringing };
    task_owners_bring(&deps->owners, rc, observed, NULL, bringing);
    if (bringing_holds(bringing))
        return 0;

    int r = task_read_whole(rc, observed, &whole, &json, err);
    if (r < 0)
        return r;

    r = task_send_start(deps, rc, observed, &whole.spec, bringing, &reason, err);
    if (r == TASK_HELD_BACK)
        return 0;
    *ret = (struct task_setback){ .bringing = bringing };
    if (r != TASK_NOT_SENDABLE)
        return r;
    *ret = (struct task_setback){ .kind = SETBACK_FAILED,
                                  .reason = reason,
                                  .message = arena_strdup(rc->arena, err->message) };
    return 0;
}

bool task_send_stop(const struct task_deps *deps, struct reconcile *rc,
                    const struct task_observed *observed, const struct observed_proplet *proplet,
                    const char *id)
{
    struct error err = { 0 };
    const char *text = payload_stop(
        rc->arena, id, task_function_name(&observed->task.spec, rc->name.name), proplet->client_id);

    int r = bridge_publish(deps->bridge, proplet->channel, "manager/stop", text, strlen(text),
                           qos_of(proplet), &err);
    if (r == 0 || r == -ERROR_TIMEOUT)
        return true;
    log_warn("stop not published, trying again", "uid", observed->uid, "error", ERROR_TEXT(&err),
             NULL);
    rc->requeue_after_ms = PUBLISH_RETRY_MS;
    return false;
}

bool task_publish_stop(const struct task_deps *deps, struct reconcile *rc,
                       const struct task_observed *observed)
{
    if (!task_send_stop(deps, rc, observed, &observed->proplet,
                        task_message_id(rc->arena, observed)))
        return false;
    attempts_stop_sent(deps->attempts, observed->uid, observed->task.status.attempt,
                       clock_monotonic_ms(rc->clock));
    return true;
}

/* Some of it is out: what can be done is written all the same, and the rest is tried again then. */
static void leave_rest(struct reconcile *rc, const struct task_observed *observed,
                       struct task_plan *plan, size_t from)
{
    for (size_t i = from; i < plan->status.broadcast_results.len; i++) {
        struct target_action *action = &plan->targets[i];
        if (action->action == TASK_START || action->stop)
            action->undone = true;
    }
    task_requeue_at(observed, plan, observed->now_ms + rc->requeue_after_ms);
}

static bool is_to_start(const struct target_action *action)
{
    return action->action == TASK_START && !action->undone && !action->unsendable;
}

static bool any_start(const struct task_plan *plan)
{
    for (size_t i = 0; i < plan->status.broadcast_results.len; i++) {
        if (is_to_start(&plan->targets[i]))
            return true;
    }
    return false;
}

/* One target whose module is not there holds up no other; a manifest that was just chosen holds up all. */
static void hold_back(struct reconcile *rc, const struct task_observed *part,
                      const struct bringing *bringing, struct task_plan *plan, size_t i)
{
    struct target_action *action = &plan->targets[i];
    bool gives_up = bringing->step == BRING_WAIT && bringing_is_overdue(part, bringing);

    if (!plan->bringing || plan->bringing->step == BRING_READY)
        plan->bringing = bringing;
    for (size_t j = 0; bringing->step == BRING_CHOICE && j < plan->status.broadcast_results.len;
         j++)
        plan->targets[j].undone = plan->targets[j].undone || is_to_start(&plan->targets[j]);
    action->undone = bringing->step == BRING_CHOICE || (bringing->step == BRING_WAIT && !gives_up);
    if (action->undone)
        return;
    action->unsendable = bringing->reason;
    action->message = bringing->message;
    if (gives_up)
        action->unsendable = bringing_failure(rc->arena, bringing, &action->message);
}

/* Before the Task is read. */
static void ask_for_modules(const struct task_deps *deps, struct reconcile *rc,
                            const struct task_observed *observed, struct task_plan *plan)
{
    for (size_t i = 0; i < plan->status.broadcast_results.len; i++) {
        struct bringing *bringing = arena_new(rc->arena, struct bringing);

        if (!is_to_start(&plan->targets[i]))
            continue;
        task_owners_bring(&deps->owners, rc, &observed->parts[i], NULL, bringing);
        if (bringing_holds(bringing))
            hold_back(rc, &observed->parts[i], bringing, plan, i);
    }
}

static int start_target(const struct task_deps *deps, struct reconcile *rc,
                        const struct task_observed *observed, const struct task_spec *whole,
                        struct task_plan *plan, size_t i, struct error *err)
{
    struct target_action *action = &plan->targets[i];
    struct bringing *bringing = arena_new(rc->arena, struct bringing);
    int r =
        task_send_start(deps, rc, &observed->parts[i], whole, bringing, &action->unsendable, err);

    if (r == TASK_HELD_BACK) {
        hold_back(rc, &observed->parts[i], bringing, plan, i);
        return 0;
    }
    if (r == 0 && !plan->bringing)
        plan->bringing = bringing;
    if (r != TASK_NOT_SENDABLE)
        return r;
    action->message = arena_strdup(rc->arena, err->message);
    return 0;
}

/* Their words are acknowledged before those of the others come. */
static void remember_ended(const struct task_deps *deps, const struct task_observed *observed,
                           const struct task_plan *plan)
{
    for (size_t i = 0; i < plan->status.broadcast_results.len; i++) {
        const struct target_action *action = &plan->targets[i];
        bool released =
            action->action == TASK_RELEASE || action->action == TASK_RELEASE_UNCONFIRMED;
        if (released && action->first_mail)
            attempts_ended(deps->attempts, observed->parts[i].uid, observed->task.status.attempt,
                           observed->now_ms);
    }
}

int task_broadcast_publish(const struct task_deps *deps, struct reconcile *rc,
                           const struct task_observed *observed, struct task_plan *plan,
                           struct error *err)
{
    struct task whole = { 0 };
    const cJSON *json;

    ask_for_modules(deps, rc, observed, plan);

    int r = any_start(plan) ? task_read_whole(rc, observed, &whole, &json, err) : 0;
    if (r < 0)
        return r;

    for (size_t i = 0; i < plan->status.broadcast_results.len; i++) {
        const struct target_action *action = &plan->targets[i];
        if (action->stop && !task_publish_stop(deps, rc, &observed->parts[i]))
            r = TASK_NOT_PUBLISHED;
        else if (is_to_start(action))
            r = start_target(deps, rc, observed, &whole.spec, plan, i, err);
        if (r == 0)
            continue;
        if (r < 0 && i == 0)
            return r;
        leave_rest(rc, observed, plan, i);
        break;
    }
    if (observed->deleted_us)
        remember_ended(deps, observed, plan);
    return 0;
}

void task_broadcast_chosen(const struct task_deps *deps, struct reconcile *rc,
                           const struct task_observed *observed, const struct task_plan *plan)
{
    const struct task_target *targets = plan->status.broadcast_results.items;

    for (size_t i = 0; i < plan->status.broadcast_results.len; i++) {
        if (plan->action == TASK_ASSIGN ||
            (plan->targets && plan->targets[i].action == TASK_ASSIGN))
            attempts_chosen(deps->attempts,
                            attempts_key(rc->arena, observed->uid, targets[i].index),
                            plan->status.attempt, observed->now_ms);
    }
}
