#include "controller/task/plan/broadcast_plan.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/str.h"
#include "controller/task/plan/broadcast_end.h"
#include "controller/task/plan/broadcast_outcome.h"
#include "controller/task/plan/task_plan.h"
#include "controller/task/plan/task_recovery_plan.h"
#include "controller/task/plan/task_transition.h"
#include "controller/workload/task_workload_manifest.h"

static struct task_target *targets_of(const struct task_status *status)
{
    return status->broadcast_results.items;
}

bool target_is_open(const struct task_target *target)
{
    return target->phase == TARGET_SCHEDULED || target->phase == TARGET_RUNNING;
}

bool broadcast_is_active(const struct task_observed *observed)
{
    return task_is_active(observed) && observed->task.status.broadcast_results.len;
}

/* ---- the choice ---- */

static void wait_for(struct arena *arena, const struct task_observed *observed,
                     struct task_plan *plan, enum reason reason, const char *message)
{
    plan->action = TASK_AWAIT_CAPACITY;
    plan->refusal = (struct schedule_refusal){ reason, message };
    task_wait(arena, observed, plan, reason, message);
}

static void refuse(struct arena *arena, const struct task_observed *observed,
                   struct task_plan *plan)
{
    struct schedule_refusal refusal = { REASON_NO_CANDIDATES,
                                        "no Proplet matches that is told over MQTT" };

    (void)scheduler_pick(observed->scheduler, arena, &observed->task.spec, &observed->candidates,
                         &refusal);
    wait_for(arena, observed, plan, refusal.reason, refusal.message);
}

void broadcast_choose(struct arena *arena, const struct task_observed *observed,
                      struct task_plan *plan)
{
    const struct task_spec *spec = &observed->task.spec;
    const struct schedule_context *all = &observed->candidates;
    struct task_target *targets = arena_array(arena, struct task_target, all->len + 1);
    size_t len = 0, full = 0;

    for (size_t i = 0; i < all->len; i++) {
        const struct candidate *candidate = &all->candidates[i];
        if (candidate->proplet->spec.type == PROPLET_K8S && task_workload_is_for(spec))
            continue; /* it would be a Job of its own there */
        enum schedule_filter filter = schedule_filter(spec, candidate);
        if (filter == FILTER_PASSED) {
            targets[len] = (struct task_target){ .proplet = candidate->name,
                                                 .proplet_uid = candidate->uid,
                                                 .client_id = schedule_device(spec, candidate),
                                                 .index = (int64_t)len };
            len++;
        }
        full += filter == FILTER_CAPACITY;
    }
    if (len + full > BROADCAST_MAX_TARGETS) {
        task_fail(arena, observed, plan, REASON_TOO_MANY_TARGETS,
                  arena_printf(arena, "%zu Proplets match, a broadcast has at most %d", len + full,
                               BROADCAST_MAX_TARGETS));
        return;
    }
    if (!len && !full) {
        refuse(arena, observed, plan);
    } else if (full) { /* "every Proplet": none is left out because it is busy */
        wait_for(arena, observed, plan, REASON_NO_CAPACITY,
                 arena_printf(arena, "%zu of the %zu Proplets that match are at maxTasks", full,
                              len + full));
    } else if ((int64_t)len < broadcast_quorum(spec, len)) {
        wait_for(arena, observed, plan, REASON_TOO_FEW,
                 arena_printf(arena, "%zu Proplets match, broadcastQuorum is %" PRId64, len,
                              spec->broadcast_quorum.value));
    } else {
        task_clear_assigned(&plan->status);
        plan->status.broadcast_results = (struct json_objects){ targets, len };
        plan->status.targets = arena_new(arena, struct task_targets);
        plan->status.targets->total = (int64_t)len;
        task_assign_again(arena, observed, plan);
    }
}

/* ---- what becomes of a target ---- */

static void start_anew(const struct task_observed *part, int64_t *next_index,
                       const struct task_plan *plan, struct task_target *target,
                       struct target_action *action)
{
    *target = (struct task_target){
        .proplet = part->task.status.assigned_proplet,
        .proplet_uid = part->task.status.assigned_proplet_uid,
        .client_id = part->task.status.assigned_client_id,
        .index = (*next_index)++,
        .restarts = plan->status.device_restarts,
    };
    action->action = TASK_ASSIGN;
}

static void end_target(const struct task_observed *part, struct task_target *target,
                       enum target_phase phase, const char *reason, const char *error)
{
    target->phase = phase;
    target->finished_at_us = part->now_us;
    target->reason = reason;
    target->error = error;
}

/* It has no other Proplet to go to. */
static void lose(const struct task_observed *part, struct task_target *target)
{
    if (part->proplet.withdrawn)
        end_target(part, target, TARGET_FAILED, reason_text(REASON_SCALED_DOWN),
                   "its pod was scaled away");
    else if (!part->proplet.exists)
        end_target(part, target, TARGET_FAILED, reason_text(REASON_PROPLET_DELETED),
                   "its Proplet was deleted");
    else if (part->proplet.cordoned && !task_may_have_started(part))
        end_target(part, target, TARGET_FAILED, reason_text(REASON_CORDONED),
                   "its Proplet was cordoned before the start went out");
    else
        end_target(part, target, TARGET_FAILED, reason_text(REASON_LOST),
                   "its Proplet is offline for too long");
}

static void end_interrupted(const struct task_observed *part, int64_t *next_index,
                            const struct task_plan *plan, struct task_target *target,
                            struct target_action *action)
{
    const char *reason = plan->status.reason;
    bool lost = reason_of(reason) == REASON_LOST || !part->proplet.exists;

    const cJSON *told = condition_get(plan->status.conditions, "Completed");

    if (lost)
        end_target(part, target, TARGET_FAILED, reason, json_string(json_get(told, "message"), ""));
    else
        start_anew(part, next_index, plan, target, action);
}

/* What the plan of a Task says, in words of a target. */
static void translate(const struct task_observed *part, int64_t *next_index, bool stopping,
                      const struct task_plan *plan, struct task_target *target,
                      struct target_action *action)
{
    const struct task_status *status = &plan->status;
    bool gone = status->phase == TASK_INTERRUPTED ||
                (status->phase == TASK_SCHEDULED && str_is_empty(status->assigned_proplet));

    target->started_at_us = status->started_at_us;
    target->reason = status->reason;
    if (gone && stopping)
        end_target(part, target, TARGET_INTERRUPTED, NULL, NULL);
    else if (status->phase == TASK_INTERRUPTED)
        end_interrupted(part, next_index, plan, target, action);
    else if (gone)
        lose(part, target);
    else if (plan->action == TASK_ASSIGN)
        start_anew(part, next_index, plan, target, action);
    else if (status->phase == TASK_COMPLETED)
        end_target(part, target, TARGET_COMPLETED, NULL, NULL);
    else if (status->phase == TASK_FAILED)
        end_target(part, target, TARGET_FAILED, status->reason, status->error);
    else
        target->phase = status->phase == TASK_RUNNING ? TARGET_RUNNING : TARGET_SCHEDULED;
    if (status->phase == TASK_COMPLETED)
        target->results = status->results;
}

static uint64_t first_mail(const struct task_observed *part)
{
    uint64_t result = part->result_count ? part->results[0].sequence : 0;
    uint64_t restart = part->restart.sequence;

    return !result || (restart && restart < result) ? restart : result;
}

/* Of the orders to the Task it hears only what they are to it. Its schedule and its retries are none
 * of a target's. */
static struct task_plan plan_part(struct arena *arena, const struct task_observed *part,
                                  enum target_order order)
{
    struct task_observed one = *part;

    one.order = TASK_ORDER_NONE;
    one.task.spec.suspend = order == TARGET_STOPS;
    if (order == TARGET_HOLDS) {
        one.may_start = false;
        one.attempt.stop_sent_ms = part->now_ms; /* the last leader may have */
    }
    one.task.spec.active_deadline_seconds.set = false;
    one.task.spec.schedule = NULL;
    one.task.spec.backoff_limit.set = false;
    one.task.spec.restart_policy = RESTART_UNSET;
    one.candidates.len = 0;
    return task_plan(arena, &one);
}

static void plan_target(struct arena *arena, const struct task_observed *part,
                        enum target_order order, int64_t *next_index, struct task_plan *plan,
                        size_t i)
{
    struct task_target *target = &targets_of(&plan->status)[i];
    struct target_action *action = &plan->targets[i];
    struct task_plan one = plan_part(arena, part, order);
    bool stopping = order == TARGET_STOPS;

    *action = (struct target_action){
        .before = action->before,
        .action = one.action,
        /* Once is enough: what is stopped stays so until it is started again. */
        .stop = one.stop && !(stopping && part->attempt.stop_sent_ms),
        .answer = one.answer,
        .first_mail = first_mail(part),
    };
    *target = action->before;
    translate(part, next_index, stopping, &one, target, action);
    for (size_t verdict = 0; verdict < RESULT_VERDICTS; verdict++)
        plan->rejected[verdict] += one.rejected[verdict];
    if (one.requeue_after_ms)
        task_requeue_at(part, plan, part->now_ms + one.requeue_after_ms);
}

/* ---- all of them ---- */

static int64_t index_after(const struct task_status *status)
{
    int64_t next = 0;

    for (size_t i = 0; i < status->broadcast_results.len; i++) {
        if (targets_of(status)[i].index >= next)
            next = targets_of(status)[i].index + 1;
    }
    return next;
}

/* What is more than one turn may do comes in the next. */
static void limit(const struct task_observed *observed, struct task_plan *plan)
{
    size_t starts = 0, stops = 0;

    for (size_t i = 0; i < plan->status.broadcast_results.len; i++) {
        struct target_action *action = &plan->targets[i];
        bool starting = action->action == TASK_START;
        starts += starting;
        stops += action->stop;
        if ((!starting || starts <= BROADCAST_STARTS_A_TURN) &&
            (!action->stop || stops <= BROADCAST_STOPS_A_TURN))
            continue;
        if (starting)
            action->action = TASK_WRITE;
        action->stop = false;
        action->undone = true;
        task_requeue_at(observed, plan, observed->now_ms);
    }
}

/* All mail is dealt with by this plan; what no open target has the id of is rejected. */
static void take_mail(const struct task_observed *observed, struct task_plan *plan)
{
    const struct json_objects *targets = &observed->task.status.broadcast_results;
    int64_t attempt, index;
    size_t matched = 0, ended = 0;

    for (size_t i = 0; i < targets->len; i++) {
        if (target_is_open(&targets_of(&observed->task.status)[i]))
            matched += observed->parts[i].result_count;
    }
    for (size_t i = 0; i < observed->result_count; i++) {
        const struct observed_result *result = &observed->results[i];
        ended += message_id_numbers(result->message.task_id, &attempt, &index) &&
                 attempt == observed->task.status.attempt && index >= 0;
        plan->ack_up_to = result->sequence;
    }
    ended = ended > matched ? ended - matched : 0;
    plan->rejected[RESULT_NOT_RUNNING] += ended;
    plan->rejected[RESULT_OTHER_ATTEMPT] += observed->result_count - matched - ended;
    if (plan->ack_up_to < observed->restart.sequence)
        plan->ack_up_to = observed->restart.sequence;
}

/* Its error may be its word on a stop that was sent before, perhaps by an earlier leader. */
static bool may_be_stopped(const struct task_observed *part, const struct task_target *target)
{
    bool told = part->attempt.stop_sent_ms || !part->attempt.chosen_here;

    return target_is_open(target) || (told && target->phase == TARGET_FAILED &&
                                      reason_of(target->reason) == REASON_DEVICE_ERROR);
}

static void begin(struct arena *arena, const struct task_observed *observed, struct task_plan *plan)
{
    const struct json_objects *old = &observed->task.status.broadcast_results;
    struct task_target *targets = arena_array(arena, struct task_target, old->len);

    memcpy(targets, old->items, old->len * sizeof(*targets));
    plan->status.broadcast_results.items = targets;
    plan->action = TASK_TELL_TARGETS;
    plan->targets = arena_array(arena, struct target_action, old->len);
    for (size_t i = 0; i < old->len; i++)
        plan->targets[i].before = targets[i];
    take_mail(observed, plan);
}

void broadcast_plan(struct arena *arena, const struct task_observed *observed,
                    struct task_plan *plan)
{
    const struct json_objects *old = &observed->task.status.broadcast_results;
    int64_t next_index = index_after(&observed->task.status);

    if (!observed->has_finalizer) { /* taken off by hand; answers stay in the inbox meanwhile */
        plan->action = TASK_ADD_FINALIZER;
        return;
    }
    begin(arena, observed, plan);
    enum broadcast_end awaited = broadcast_end(arena, observed, plan);
    enum target_order order = plan->end != BROADCAST_GOES_ON ? TARGET_STOPS
                              : awaited                      ? TARGET_HOLDS
                                                             : TARGET_GOES_ON;
    for (size_t i = 0; i < old->len; i++) {
        if (target_is_open(&plan->targets[i].before))
            plan_target(arena, &observed->parts[i], order, &next_index, plan, i);
    }

    struct broadcast_tally tally = broadcast_count(&plan->status);
    if (awaited && !tally.open) /* nobody is left to wait for */
        plan->end = awaited;
    if (plan->end == BROADCAST_GOES_ON && !observed->task.spec.daemon &&
        tally.completed >= broadcast_quorum(&observed->task.spec, old->len)) {
        size_t rejected[RESULT_VERDICTS];
        memcpy(rejected, plan->rejected, sizeof(rejected));
        plan->end = BROADCAST_QUORUM;
        for (size_t i = 0; i < old->len; i++) {
            if (target_is_open(&plan->targets[i].before) &&
                may_be_stopped(&observed->parts[i], &targets_of(&plan->status)[i]))
                plan_target(arena, &observed->parts[i], TARGET_STOPS, &next_index, plan, i);
        }
        memcpy(plan->rejected, rejected, sizeof(rejected)); /* the same mail */
    }
    limit(observed, plan);
}

void broadcast_plan_deletion(struct arena *arena, const struct task_observed *observed,
                             struct task_plan *plan)
{
    begin(arena, observed, plan);
    for (size_t i = 0; i < plan->status.broadcast_results.len; i++) {
        struct target_action *action = &plan->targets[i];
        if (!target_is_open(&action->before)) {
            action->action = TASK_RELEASE;
            continue;
        }
        struct task_plan one = plan_part(arena, &observed->parts[i], TARGET_GOES_ON);
        action->action = one.action;
        action->stop = one.stop;
        action->first_mail = first_mail(&observed->parts[i]);
        if (one.requeue_after_ms)
            task_requeue_at(observed, plan, observed->now_ms + one.requeue_after_ms);
    }
    limit(observed, plan);
}
