#include "controller/task/plan/task_plan.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "common/base/str.h"
#include "controller/task/plan/broadcast_plan.h"
#include "controller/task/plan/owed_stops_plan.h"
#include "controller/task/plan/plan_parts.h"
#include "controller/task/plan/task_availability_plan.h"
#include "controller/task/plan/task_bringing_plan.h"
#include "controller/task/plan/task_checkpoint_plan.h"
#include "controller/task/plan/task_order.h"
#include "controller/task/plan/task_recovery_plan.h"
#include "controller/task/plan/task_retry_plan.h"
#include "controller/task/plan/task_run_plan.h"
#include "controller/task/plan/task_schedule_plan.h"
#include "controller/task/plan/task_transition.h"
#include "controller/task/plan/task_workload_plan.h"

bool task_needs_candidates(const struct task_observed *observed)
{
    enum task_phase phase = observed->task.status.phase;

    if (observed->deleted_us || task_awaits_schedule(&observed->task) ||
        dependencies_verdict(task_run_if(&observed->task.spec), &observed->dependencies) !=
            DEPENDENCIES_MET)
        return false;
    if (phase == TASK_PENDING || (phase == TASK_SCHEDULED && !task_is_assigned(observed)))
        return !observed->task.spec.suspend && observed->has_finalizer;
    return task_starts_exhausted(observed) || task_is_displaced(observed);
}

static enum result_verdict judge(struct arena *arena, const struct task_observed *observed,
                                 const struct observed_result *result)
{
    const struct result_message *message = &result->message;

    if (!str_equal(message->task_id, task_message_id(arena, observed)))
        return RESULT_OTHER_ATTEMPT;
    if (result->verdict != RESULT_ACCEPTED)
        return result->verdict;
    if (!task_is_active(observed) || !task_is_assigned(observed) || observed->workload.selected)
        return RESULT_NOT_RUNNING;
    if (!(observed->proplet.exists || observed->proplet.withdrawn) ||
        !str_equal(result->channel, observed->proplet.channel))
        return RESULT_OTHER_CHANNEL;
    if (message->proplet_id && !str_equal(message->proplet_id, observed->proplet.client_id))
        return RESULT_OTHER_PROPLET;
    return RESULT_ACCEPTED;
}

/* The first result that counts, or NULL; all mail is dealt with by this plan. */
static const struct observed_result *
take_results(struct arena *arena, const struct task_observed *observed, struct task_plan *plan)
{
    const struct observed_result *taken = NULL;
    enum result_verdict *verdicts =
        arena_array(arena, enum result_verdict, observed->result_count + 1);

    plan->verdicts = verdicts;
    for (size_t i = 0; i < observed->result_count; i++) {
        enum result_verdict verdict = judge(arena, observed, &observed->results[i]);
        if (verdict == RESULT_ACCEPTED && taken)
            verdict = observed->has_updates ? RESULT_DUPLICATE : RESULT_NOT_RUNNING;
        if (verdict == RESULT_ACCEPTED)
            taken = &observed->results[i];
        else
            plan->rejected[verdict]++;
        verdicts[i] = verdict;
        if (plan->ack_up_to < observed->results[i].sequence)
            plan->ack_up_to = observed->results[i].sequence;
    }
    if (plan->ack_up_to < observed->restart.sequence)
        plan->ack_up_to = observed->restart.sequence;
    plan->answered = taken != NULL;
    return taken;
}

static void plan_result(struct arena *arena, const struct task_observed *observed,
                        struct task_plan *plan, const struct observed_result *result)
{
    const struct result_message *message = &result->message;
    /* A daemon's result is not stored, so nothing is wrong with one that could not be. */
    bool daemon_started =
        observed->task.spec.daemon && (!message->error || message->refusal != RESULT_STORABLE);

    plan->has_payload = !daemon_started;
    if (daemon_started && plan->status.phase == TASK_SCHEDULED) {
        task_run(arena, observed, plan, CONDITION_TRUE);
        return;
    }
    task_heard(arena, observed, plan);
    if (daemon_started)
        return;
    plan->answer = ANSWER_CAME;
    if (message->error) {
        task_fail(arena, observed, plan, result->reason ? result->reason : REASON_DEVICE_ERROR,
                  message->error);
        return;
    }
    task_end(arena, observed, plan, message->results);
}

/* Once even to a device that does not look alive, and once more when it is back: it loses what was
 * published while it was away. */
static bool is_stop_due(const struct task_observed *observed)
{
    int64_t sent_ms = observed->attempt.stop_sent_ms;

    return !sent_ms || (observed->proplet.ready && sent_ms < observed->proplet.heard_since_ms);
}

/* What was deleted when this process saw it first may have waited under another leader. The API server's
 * clock wrote when that was, so it says nothing of what this process saw itself. */
static int64_t deletion_waited_ms(const struct task_observed *observed)
{
    const struct attempt *attempt = &observed->attempt;
    int64_t seen_ms = observed->now_ms - attempt->deleting_ms;
    int64_t age_ms =
        timeline_age_us(&observed->time, observed->now_us, observed->deleted_us) / 1000;

    return attempt->deleting_ms <= attempt->first_seen_ms && age_ms > seen_ms ? age_ms : seen_ms;
}

/* The stop is out, or due: release the finalizer when the device has answered or the time is over. */
static void plan_stop(const struct task_observed *observed, struct task_plan *plan)
{
    int64_t waited_ms = deletion_waited_ms(observed);

    plan->stop = is_stop_due(observed);
    if (waited_ms >= observed->stop_timeout_ms) {
        plan->action = TASK_RELEASE_UNCONFIRMED;
        return;
    }
    if (plan->stop && observed->task.spec.daemon)
        plan->action = TASK_RELEASE_IF_STOPPED;
    task_requeue_at(observed, plan, observed->now_ms + observed->stop_timeout_ms - waited_ms);
}

/* Stop, wait for the device's word or the time-out, release the finalizer. */
static void plan_deletion(struct arena *arena, const struct task_observed *observed,
                          struct task_plan *plan)
{
    const struct observed_result *result = take_results(arena, observed, plan);
    bool ended = observed->attempt.ended || task_is_restarted(observed, 0) ||
                 (result && (result->message.error || !observed->task.spec.daemon));

    plan->action = TASK_HOLD;
    if (!observed->has_finalizer) { /* another one holds it */
        plan->stop = task_may_have_started(observed) && !ended && observed->proplet.reachable &&
                     is_stop_due(observed);
        return;
    }
    if (!task_may_have_started(observed) || ended || !observed->proplet.reachable) {
        plan->action = TASK_RELEASE;
    } else if (observed->attempt.stop_sent_ms && observed->task.spec.daemon) {
        plan->action = TASK_RELEASE;
    } else {
        plan_stop(observed, plan);
    }
}

static void plan_choice(struct arena *arena, const struct task_observed *observed,
                        struct task_plan *plan)
{
    const struct task_spec *spec = &observed->task.spec;

    if (spec->suspend) {
        task_wait(arena, observed, plan, REASON_SUSPENDED, "spec.suspend is true");
        return;
    }
    if (task_depend(arena, observed, plan))
        return;
    if (!observed->mqtt_configured && !task_workload_is_possible(observed)) {
        task_wait(arena, observed, plan, REASON_NO_MQTT,
                  "the controller was started without --mqtt-address");
        return;
    }
    if (!observed->has_finalizer) { /* before anything is outside that would have to be stopped */
        plan->action = TASK_ADD_FINALIZER;
        return;
    }

    if (spec->broadcast) {
        broadcast_choose(arena, observed, plan);
        return;
    }
    struct schedule_refusal refusal;
    const struct candidate *chosen = task_pick(arena, observed, &refusal);
    if (!chosen) {
        plan->action = TASK_AWAIT_CAPACITY;
        plan->refusal = refusal;
        task_wait(arena, observed, plan, refusal.reason, refusal.message);
        return;
    }
    task_assign(arena, observed, plan, chosen);
}

/* Its result, or a create, may be queued; the marker wakes it. */
static void plan_backlog(struct arena *arena, const struct task_observed *observed,
                         struct task_plan *plan)
{
    if (observed->now_ms < observed->start_from_ms) {
        task_requeue_at(observed, plan, observed->start_from_ms);
    } else if (observed->marker_overdue) {
        const char *message = arena_printf(
            arena,
            "assigned to Proplet '%s'; the start waits for a marker, which the broker does "
            "not send back",
            observed->task.status.assigned_proplet);
        plan->status.reason = reason_text(REASON_BACKLOG);
        task_condition(arena, observed, plan, "Scheduled", CONDITION_TRUE, REASON_BACKLOG, message);
    }
}

static int64_t running_write_due_ms(const struct task_observed *observed)
{
    int64_t began_ms = observed->attempt.began_ms;

    return (began_ms ? began_ms : observed->now_ms) + observed->running_write_delay_ms;
}

/* The write of running is saved for a Task that ends within some milliseconds. Until the delay has passed, the phase
 * scheduled says all that another leader needs: the device, and the id under which a start may be there. A daemon
 * runs long by its nature, and where the status changes anyhow a delay saves nothing. */
static bool may_end_soon(const struct task_observed *observed)
{
    const struct task_status *status = &observed->task.status;

    return observed->now_ms < running_write_due_ms(observed) && !observed->task.spec.daemon &&
           !observed->target_id && observed->proplet.dialect != DIALECT_EMBEDDED &&
           observed->proplet.exists && observed->proplet.ready && str_is_empty(status->reason) &&
           plan_condition_reason(status->conditions, "Scheduled") == REASON_ASSIGNED &&
           status->observed_generation == observed->generation;
}

/* The start is out, or goes out with this plan. */
static void plan_started(struct arena *arena, const struct task_observed *observed,
                         struct task_plan *plan)
{
    if (may_end_soon(observed))
        task_requeue_at(observed, plan, running_write_due_ms(observed));
    else
        task_run(arena, observed, plan, task_started_status(observed));
}

static const char *absence(struct arena *arena, const struct task_observed *observed)
{
    return observed->proplet.absence ? observed->proplet.absence
                                     : arena_printf(arena, "Proplet '%s' is not ready",
                                                    observed->task.status.assigned_proplet);
}

/* Its Proplet was deleted, or its pod was scaled away, before the start was confirmed. */
static void plan_gone(struct arena *arena, const struct task_observed *observed,
                      struct task_plan *plan)
{
    const char *message = task_gone_message(arena, observed);
    bool may_have_started = task_may_have_started(observed);

    plan->stop = may_have_started && observed->proplet.reachable;
    if (may_have_started && !task_count_loss(arena, observed, plan, message))
        return;
    task_unassign(arena, observed, plan, REASON_OFFLINE, message);
    plan->requeue_after_ms = 1;
}

/* The start cannot go out now. false: it can. */
static bool wait_for_proplet(struct arena *arena, const struct task_observed *observed,
                             struct task_plan *plan)
{
    if (!observed->proplet.ready) {
        task_wait(arena, observed, plan, task_is_held(observed) ? REASON_FLEET : REASON_OFFLINE,
                  absence(arena, observed));
        task_requeue_when_lost(observed, plan);
        return true;
    }
    if (!task_may_not_start(observed))
        return false;
    if (!task_may_have_started(observed))
        task_wait(arena, observed, plan, REASON_UNAVAILABLE,
                  arena_printf(arena, "Proplet '%s' %s", observed->task.status.assigned_proplet,
                               observed->proplet.closed ? "is closed" : "closes too early"));
    else if (observed->proplet.short_time && observed->backlog_drained &&
             task_started_status(observed) == CONDITION_TRUE)
        task_run(arena, observed, plan, CONDITION_TRUE); /* its silence tells if it does not run */
    return true; /* a start that may be out is not repeated, and its answer counts */
}

/* A start that is not out is displaced instead. */
static bool is_closing(struct arena *arena, const struct task_observed *observed,
                       struct task_plan *plan)
{
    return observed->proplet.exists && task_may_run(observed) &&
           task_plan_closing(arena, observed, plan);
}

static void plan_scheduled(struct arena *arena, const struct task_observed *observed,
                           struct task_plan *plan)
{
    const char *proplet = observed->task.status.assigned_proplet;

    if (observed->task.spec.suspend) {
        plan->stop = task_may_have_started(observed) && observed->proplet.reachable;
        task_unassign(arena, observed, plan, REASON_SUSPENDED, "spec.suspend is true");
        return;
    }
    if (!task_is_assigned(observed)) {
        plan_choice(arena, observed, plan);
        return;
    }
    if (is_closing(arena, observed, plan))
        return;
    if (observed->workload.selected && observed->proplet.exists && !task_is_displaced(observed)) {
        task_plan_workload(arena, observed, plan);
        return;
    }
    if (observed->attempt.published_ms) { /* the start went out, and running is not written yet */
        plan_started(arena, observed, plan);
        return;
    }
    if (task_is_displaced(observed)) {
        task_plan_displaced(arena, observed, plan);
        return;
    }
    if (!observed->proplet.exists) {
        plan_gone(arena, observed, plan);
        return;
    }
    if (wait_for_proplet(arena, observed, plan))
        return;
    if (!observed->may_start || task_awaits_backlog(observed)) {
        plan_backlog(arena, observed, plan);
        return;
    }

    plan->action = TASK_START;
    task_condition(arena, observed, plan, "Scheduled", CONDITION_TRUE, REASON_ASSIGNED,
                   arena_printf(arena, "assigned to Proplet '%s'", proplet));
    plan_started(arena, observed, plan);
}

static void plan_running(struct arena *arena, const struct task_observed *observed,
                         struct task_plan *plan)
{
    const struct task_spec *spec = &observed->task.spec;

    if (spec->suspend) {
        plan->stop = observed->proplet.reachable;
        task_interrupt(arena, observed, plan, REASON_SUSPENDED, "spec.suspend is true");
        return;
    }
    if (!observed->proplet.exists) {
        task_plan_deleted_proplet(arena, observed, plan);
        return;
    }
    if (spec->active_deadline_seconds.set) {
        int64_t left_ms = task_left_ms(observed, observed->task.status.started_at_us,
                                       spec->active_deadline_seconds.value);
        if (left_ms <= 0 && task_may_have_answered(observed, plan))
            return;
        if (left_ms <= 0) {
            plan->stop = observed->proplet.reachable;
            task_fail(arena, observed, plan, REASON_DEADLINE,
                      arena_printf(arena, "still running after %" PRId64 " s",
                                   spec->active_deadline_seconds.value));
            return;
        }
        task_requeue_at(observed, plan, observed->now_ms + left_ms);
    }
    if (task_plan_closing(arena, observed, plan))
        return;
    if (observed->workload.selected)
        task_plan_workload(arena, observed, plan);
    else if (!task_plan_absence(arena, observed, plan))
        task_plan_confirmation(arena, observed, plan);
}

static void plan_finished(struct arena *arena, const struct task_observed *observed,
                          struct task_plan *plan)
{
    const struct task_spec *spec = &observed->task.spec;

    if (task_plan_rerun(arena, observed, plan))
        return;
    if (task_is_backing_off(observed)) {
        task_plan_retry(arena, observed, plan);
        return;
    }
    if (plan->status.phase == TASK_INTERRUPTED) {
        if (!spec->suspend)
            task_reset(arena, observed, plan);
        return;
    }
    if (task_recurs(spec)) /* it has not finished as long as it runs again */
        return;
    if (!spec->ttl_seconds_after_finished.set || !observed->task.status.finished_at_us)
        return;

    int64_t left_ms = task_left_ms(observed, observed->task.status.finished_at_us,
                                   spec->ttl_seconds_after_finished.value);
    if (left_ms > 0)
        task_requeue_at(observed, plan, observed->now_ms + left_ms);
    else if (!observed->awaited) /* deleted earlier it would be missing, or made and run again */
        plan->action = TASK_DELETE;
}

static void plan_phase(struct arena *arena, const struct task_observed *observed,
                       struct task_plan *plan)
{
    if (!observed->has_finalizer && task_is_active(observed)) { /* taken off by hand */
        plan->action = TASK_ADD_FINALIZER;
        return;
    }
    if (task_obey_order(arena, observed, plan) || task_plan_schedule(arena, observed, plan))
        return;
    switch (observed->task.status.phase) {
    case TASK_PENDING:
        task_note_rerun(observed, plan);
        plan_choice(arena, observed, plan);
        return;
    case TASK_SCHEDULED:
        plan_scheduled(arena, observed, plan);
        return;
    case TASK_RUNNING:
        plan_running(arena, observed, plan);
        return;
    default:
        plan_finished(arena, observed, plan);
        return;
    }
}

static void plan_life(struct arena *arena, const struct task_observed *observed,
                      struct task_plan *plan)
{
    const struct observed_result *result = take_results(arena, observed, plan);
    /* An error may be its word on the stop, and that does not make it failed. */
    bool stopped = result && result->message.error && task_is_stopping(observed);
    bool restarted = task_is_restarted(observed, result ? result->sequence : 0);
    /* A daemon that had started before the restart runs no more; any other word is its last. */
    bool outdated = restarted && observed->task.spec.daemon && result && !result->message.error;

    if (result && !stopped && !outdated)
        plan_result(arena, observed, plan, result);
    task_plan_workload_end(arena, observed, plan);
    if (plan->status.phase != observed->task.status.phase)
        return;
    if (restarted && !observed->task.spec.suspend && !observed->attempt.cut_ms)
        task_plan_restart(arena, observed, plan);
    else
        plan_phase(arena, observed, plan); /* a daemon's word changes nothing else */
    if (stopped)
        task_plan_stopped(arena, observed, plan);
}

const unsigned TASK_PLAN_MAY_HAVE[TASK_ACTIONS] = {
    [TASK_WRITE] = WITH_STOP | WITH_PHASE | WITH_EVENT | WITH_EARLIER | WITH_RUN_END | WITH_ANSWER |
                   WITH_PAYLOAD | WITH_OWED,
    [TASK_ADD_FINALIZER] = 0,
    [TASK_DELETE] = 0,
    [TASK_ASSIGN] = WITH_STOP | WITH_PHASE | WITH_EVENT | WITH_ANSWER | WITH_OWED,
    [TASK_AWAIT_CAPACITY] = WITH_REFUSAL | WITH_OWED,
    [TASK_START] = WITH_PHASE | WITH_EVENT | WITH_OWED,
    [TASK_CREATE_WORKLOAD] = WITH_OWED,
    [TASK_TELL_TARGETS] = WITH_TARGETS | WITH_EVENT | WITH_OWED,
    [TASK_HOLD] = WITH_STOP,
    [TASK_RELEASE] = 0,
    [TASK_RELEASE_IF_STOPPED] = WITH_STOP,
    [TASK_RELEASE_UNCONFIRMED] = WITH_STOP,
};

unsigned task_plan_companions(const struct task_observed *observed, const struct task_plan *plan)
{
    const struct json_objects *owed = &observed->task.status.lost_attempts;
    unsigned set = 0;

    set |= plan->stop ? WITH_STOP : 0;
    set |= plan->status.phase != observed->task.status.phase ? WITH_PHASE : 0;
    set |= plan->event ? WITH_EVENT : 0;
    set |= plan->earlier ? WITH_EARLIER : 0;
    set |= plan->run_end ? WITH_RUN_END : 0;
    set |= plan->answer != ANSWER_PENDING ? WITH_ANSWER : 0;
    set |= plan->has_payload ? WITH_PAYLOAD : 0;
    set |= plan->targets ? WITH_TARGETS : 0;
    set |= plan->refusal.reason ? WITH_REFUSAL : 0;
    for (size_t i = 0; plan->owed_due && i < owed->len; i++)
        set |= plan->owed_due[i] ? WITH_OWED : 0;
    return set;
}

struct task_plan task_plan(struct arena *arena, const struct task_observed *observed)
{
    struct task_plan plan = task_plan_again(observed);

    if (broadcast_is_active(observed))
        (observed->deleted_us ? broadcast_plan_deletion : broadcast_plan)(arena, observed, &plan);
    else if (observed->deleted_us)
        plan_deletion(arena, observed, &plan);
    else
        plan_life(arena, observed, &plan);
    if (plan.action != TASK_ADD_FINALIZER && plan.action != TASK_DELETE && !observed->deleted_us &&
        !observed->target_id)
        owed_stops_plan(arena, observed, &plan);
    task_plan_checkpoint(arena, observed, &plan);
    return plan;
}

/* The plan after an action that did not go as planned. */
static void conclude(struct arena *arena, const struct task_observed *observed,
                     const struct task_plan *plan, const struct task_setback *setback,
                     struct task_plan *ret)
{
    switch (setback->kind) {
    case SETBACK_HELD_UP:
        task_plan_workload_held_up(arena, observed, ret, setback->reason, setback->message);
        break;
    case SETBACK_UNSTORABLE:
        task_heard(arena, observed, ret);
        task_fail(arena, observed, ret, REASON_RESULT_REFUSED,
                  "the API server does not take this result");
        break;
    case SETBACK_HELD_BACK:
        if (observed->task.status.phase == TASK_RUNNING) /* its deadline goes on */
            ret->requeue_after_ms = plan->requeue_after_ms;
        task_plan_bringing(arena, observed, setback->bringing, ret);
        break;
    default:
        task_fail(arena, observed, ret, setback->reason, setback->message);
    }
}

struct task_plan task_plan_conclude(struct arena *arena, const struct task_observed *observed,
                                    const struct task_plan *plan,
                                    const struct task_setback *setback)
{
    struct task_plan ret = *plan;

    if (plan->targets && setback->kind == SETBACK_UNSTORABLE)
        broadcast_omit_answers(&ret);
    else if (plan->action == TASK_TELL_TARGETS)
        broadcast_settle(arena, observed, &ret);
    if (plan->action == TASK_START && setback->kind == SETBACK_NONE)
        bringing_done(setback->bringing, &ret);
    if (plan->targets || setback->kind == SETBACK_NONE)
        return ret;

    /* The mail was judged, and other attempts are owed their stops, whatever became of the action. */
    ret = task_plan_again(observed);
    ret.status.lost_attempts = plan->status.lost_attempts;
    ret.owed_due = plan->owed_due;
    ret.verdicts = plan->verdicts;
    memcpy(ret.rejected, plan->rejected, sizeof(ret.rejected));
    ret.ack_up_to = plan->ack_up_to;
    conclude(arena, observed, plan, setback, &ret);
    task_plan_checkpoint(arena, observed, &ret);
    return ret;
}
