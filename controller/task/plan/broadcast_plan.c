#include "controller/task/plan/broadcast_plan.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/str.h"
#include "controller/task/plan/owed_stops_plan.h"
#include "controller/task/plan/task_bringing_plan.h"
#include "controller/task/plan/task_order.h"
#include "controller/task/plan/task_plan.h"
#include "controller/task/plan/task_recovery_plan.h"
#include "controller/task/plan/task_schedule_plan.h"
#include "controller/task/plan/task_transition.h"
#include "controller/workload/task_workload_manifest.h"

struct broadcast_tally {
    int64_t completed;
    int64_t failed;
    int64_t open;
};

/* ---- whether it ends before its targets have ---- */

/* As the plans of single Tasks see it, each of which asks for the answer of one target. */
static struct task_observed broadcast_drained(const struct task_observed *observed)
{
    struct task_observed whole = *observed;

    whole.backlog_drained = true;
    whole.answer_awaited = false;
    return whole;
}

static bool may_have_answered(const struct task_observed *observed)
{
    const struct json_objects *list = &observed->task.status.broadcast_results;
    const struct task_target *targets = list->items;

    for (size_t i = 0; i < list->len; i++) {
        const struct task_observed *part = &observed->parts[i];
        if (target_is_open(&targets[i]) &&
            (part->answer_awaited || (!part->backlog_drained && !part->marker_overdue)))
            return true;
    }
    return false;
}

/* whole: what it knows of the backlog holds for all of them. */
static enum broadcast_end order_of(struct arena *arena, const struct task_observed *whole,
                                   struct task_plan *plan)
{
    const struct task_spec *spec = &whole->task.spec;
    struct task_plan scratch = *plan;

    if (task_obey_order(arena, whole, &scratch))
        return BROADCAST_STOPPED_BY_OWNER;
    (void)task_plan_schedule(arena, whole, &scratch);
    if (scratch.status.phase != whole->task.status.phase || !scratch.status.broadcast_results.len)
        return BROADCAST_RESCHEDULED;
    plan->status.next_run_us = scratch.status.next_run_us;
    plan->requeue_after_ms = scratch.requeue_after_ms;
    plan->event = scratch.event;
    if (spec->suspend)
        return BROADCAST_SUSPENDED;
    if (whole->task.status.phase != TASK_RUNNING || !spec->active_deadline_seconds.set)
        return BROADCAST_GOES_ON;

    int64_t left_ms =
        task_left_ms(whole, whole->task.status.started_at_us, spec->active_deadline_seconds.value);
    if (left_ms <= 0)
        return BROADCAST_OVERDUE;
    task_requeue_at(whole, plan, whole->now_ms + left_ms);
    return BROADCAST_GOES_ON;
}

/*
 * Sets plan->end, and what the schedule says of the next run. In the order of weight: the owner of the Task, its schedule
 * (Replace, startingDeadlineSeconds), suspend, its deadline. The broker may hold answers for a new leader that came in
 * time, so each of them but suspend, which asks for no answer, waits until the barrier is back for every open target, or
 * does not come back at all. Forbid leaves out a run no sooner either. Returns the end that waits; plan->end is then
 * BROADCAST_GOES_ON.
 */
static enum broadcast_end broadcast_end(struct arena *arena, const struct task_observed *observed,
                                        struct task_plan *plan)
{
    struct task_observed whole = broadcast_drained(observed);
    struct task_plan without = *plan;
    enum broadcast_end end = order_of(arena, &whole, &without);

    if (!may_have_answered(observed)) {
        *plan = without;
        plan->end = end;
        return BROADCAST_GOES_ON;
    }
    if (end != BROADCAST_GOES_ON && end != BROADCAST_SUSPENDED)
        return end;
    whole.backlog_drained = false;
    plan->end = order_of(arena, &whole, plan);
    return BROADCAST_GOES_ON;
}

/* ---- what its targets make of it ---- */

/* So many of those that failed are named in status.error. */
#define MAX_NAMED 40
#define MAX_ERROR 4096

static struct task_target *planned_targets(const struct task_plan *plan)
{
    return plan->status.broadcast_results.items;
}

static struct broadcast_tally broadcast_count(const struct task_status *status)
{
    const struct task_target *targets = status->broadcast_results.items;
    struct broadcast_tally tally = { 0 };

    for (size_t i = 0; i < status->broadcast_results.len; i++) {
        tally.completed += targets[i].phase == TARGET_COMPLETED;
        tally.failed += targets[i].phase == TARGET_FAILED;
        tally.open += target_is_open(&targets[i]);
    }
    return tally;
}

/* How many of total have to answer without error. */
static int64_t broadcast_quorum(const struct task_spec *spec, size_t total)
{
    return spec->broadcast_quorum.set ? spec->broadcast_quorum.value : (int64_t)total;
}

static void fail_unsendable(const struct task_observed *observed, struct task_plan *plan)
{
    for (size_t i = 0; i < plan->status.broadcast_results.len; i++) {
        const struct target_action *action = &plan->targets[i];
        struct task_target *target = &planned_targets(plan)[i];
        if (!action->unsendable)
            continue;
        *target = action->before;
        target->phase = TARGET_FAILED;
        target->finished_at_us = observed->now_us;
        target->reason = reason_text(action->unsendable);
        target->error = action->message;
    }
}

/* ---- what was not published did not happen ---- */

static void take_back(struct task_plan *plan, size_t i)
{
    struct target_action *action = &plan->targets[i];

    planned_targets(plan)[i] = action->before;
    if (action->action == TASK_ASSIGN)
        action->action = TASK_WRITE;
    action->answer = ANSWER_PENDING;
    action->cut = false;
    if (action->first_mail && action->first_mail <= plan->ack_up_to)
        plan->ack_up_to = action->first_mail - 1;
}

/* true: not everybody who has to be told to stop has been. */
static bool take_back_undone(struct task_plan *plan)
{
    bool any = false;

    for (size_t i = 0; i < plan->status.broadcast_results.len; i++) {
        if (!plan->targets[i].undone)
            continue;
        take_back(plan, i);
        any = true;
    }
    if (!any || plan->end == BROADCAST_GOES_ON)
        return false;
    for (size_t i = 0; i < plan->status.broadcast_results.len; i++) {
        if (planned_targets(plan)[i].phase == TARGET_INTERRUPTED &&
            target_is_open(&plan->targets[i].before))
            take_back(plan, i);
    }
    return true;
}

/* Of a deleted broadcast: it is released when all of its targets are. */
static enum task_action released(const struct task_plan *plan)
{
    enum task_action ret = TASK_RELEASE;

    for (size_t i = 0; i < plan->status.broadcast_results.len; i++) {
        const struct target_action *action = &plan->targets[i];
        if (action->action == TASK_RELEASE_UNCONFIRMED)
            ret = TASK_RELEASE_UNCONFIRMED;
        else if (action->action != TASK_RELEASE &&
                 (action->action != TASK_RELEASE_IF_STOPPED || action->undone))
            return TASK_HOLD;
    }
    return ret;
}

/* ---- answers ---- */

static size_t answer_len(struct arena *arena, struct task_target *target)
{
    size_t len = 0;

    if (target->error) {
        len = str_utf8_cut(target->error, strlen(target->error), BROADCAST_ERROR_BYTES);
        target->error = arena_strndup(arena, target->error, len);
    } else if (target->results) {
        (void)json_text(arena, target->results, &len);
    }
    return len;
}

static void omit(struct task_target *target)
{
    target->omitted = true;
    target->results = NULL;
    target->error = NULL;
}

/* Answers that came now are kept as long as there is room, in the order of the targets. */
static void keep_answers(struct arena *arena, struct task_plan *plan)
{
    size_t kept = 0, bytes = 0;

    for (size_t i = 0; i < plan->status.broadcast_results.len; i++) {
        const struct task_target *before = &plan->targets[i].before;
        if (!before->result_bytes.set || before->omitted)
            continue;
        kept++;
        bytes += (size_t)before->result_bytes.value;
    }
    for (size_t i = 0; i < plan->status.broadcast_results.len; i++) {
        struct task_target *target = &planned_targets(plan)[i];
        if (!target_is_open(&plan->targets[i].before) || target_is_open(target) ||
            (!target->results && !target->error))
            continue;
        size_t len = answer_len(arena, target);
        target->result_bytes = (struct json_opt_int){ true, (int64_t)len };
        if (kept >= BROADCAST_KEPT_ANSWERS || bytes + len > BROADCAST_KEPT_BYTES) {
            omit(target);
            continue;
        }
        kept++;
        bytes += len;
        plan->has_payload = true;
    }
}

void broadcast_omit_answers(struct task_plan *plan)
{
    plan->has_payload = false;
    for (size_t i = 0; i < plan->status.broadcast_results.len; i++) {
        struct task_target *target = &planned_targets(plan)[i];
        if (target->results || target->error)
            omit(target);
    }
}

static void owe_stops(struct arena *arena, const struct task_observed *observed,
                      struct task_plan *plan)
{
    for (size_t i = 0; i < plan->status.broadcast_results.len; i++) {
        const struct target_action *action = &plan->targets[i];
        if (action->stop && !action->undone && !target_is_open(&planned_targets(plan)[i]) &&
            observed->parts[i].proplet.exists && !observed->parts[i].proplet.ready)
            owed_stop_note(arena, &observed->parts[i], &plan->status);
    }
}

/* ---- the Task ---- */

static const char *failures_text(struct arena *arena, const struct task_observed *observed,
                                 const struct task_plan *plan, const struct broadcast_tally *tally)
{
    size_t total = plan->status.broadcast_results.len;
    struct buf buf = BUF_INIT(MAX_ERROR);
    int64_t named = 0;
    bool ok = buf_printf(
        &buf,
        "%" PRId64 " of %zu Proplets failed, %" PRId64 " answered, %" PRId64 " answers are needed",
        tally->failed, total, tally->completed, broadcast_quorum(&observed->task.spec, total));

    for (size_t i = 0; i < total && named < MAX_NAMED; i++) {
        const struct task_target *target = &planned_targets(plan)[i];
        if (target->phase == TARGET_FAILED)
            ok = ok && buf_printf(&buf, "%s %s (%s)", named++ ? "," : ":", target->proplet,
                                  target->reason ? target->reason : "Failed");
    }
    if (named < tally->failed)
        ok = ok && buf_printf(&buf, " and %" PRId64 " more", tally->failed - named);
    const char *text = arena_strdup(arena, buf_string(&buf)); /* what fits, if that is not all */
    buf_release(&buf);
    return ok ? text : arena_printf(arena, "%s ...", text);
}

static void finish_ordered(struct arena *arena, const struct task_observed *observed,
                           struct task_plan *plan)
{
    const struct task_observed whole = broadcast_drained(observed);
    bool running = observed->task.status.phase == TASK_RUNNING;

    switch (plan->end) {
    case BROADCAST_STOPPED_BY_OWNER:
        (void)task_obey_order(arena, &whole, plan);
        plan->stop = false; /* each target was told */
        return;
    case BROADCAST_RESCHEDULED:
        (void)task_plan_schedule(arena, &whole, plan);
        plan->stop = false;
        return;
    case BROADCAST_SUSPENDED:
        if (running)
            task_interrupt(arena, observed, plan, REASON_SUSPENDED, "spec.suspend is true");
        else
            task_unassign(arena, observed, plan, REASON_SUSPENDED, "spec.suspend is true");
        return;
    case BROADCAST_OVERDUE:
        task_fail(arena, observed, plan, REASON_DEADLINE,
                  arena_printf(arena, "still running after %" PRId64 " s",
                               observed->task.spec.active_deadline_seconds.value));
        return;
    default:
        return;
    }
}

/* The first that is open says why the Task waits, or how much is known of its start. */
static const struct task_observed *first_open(const struct task_observed *observed,
                                              const struct task_plan *plan, size_t *ret)
{
    for (size_t i = 0; i < plan->status.broadcast_results.len; i++) {
        if (target_is_open(&plan->targets[i].before) && target_is_open(&planned_targets(plan)[i])) {
            *ret = i;
            return &observed->parts[i];
        }
    }
    return NULL;
}

static bool is_begun(const struct task_plan *plan)
{
    for (size_t i = 0; i < plan->status.broadcast_results.len; i++) {
        if (planned_targets(plan)[i].started_at_us ||
            planned_targets(plan)[i].phase == TARGET_COMPLETED)
            return true;
    }
    return false;
}

static void go_on(struct arena *arena, const struct task_observed *observed, struct task_plan *plan)
{
    size_t i = 0;
    const struct task_observed *part = first_open(observed, plan, &i);

    if (plan->status.phase != TASK_SCHEDULED || !part)
        return;
    if (is_begun(plan))
        task_run(arena, observed, plan, task_started_status(part));
    else
        plan->status.reason = planned_targets(plan)[i].reason;
}

/* Starts that are held back are to be sent in a later turn. */
static void settle_bringing(struct arena *arena, const struct task_observed *observed,
                            struct task_plan *plan)
{
    const struct bringing *bringing = plan->bringing;

    if (!bringing)
        return;
    if (bringing->step == BRING_CHOICE)
        bringing_choose(observed, bringing, plan);
    else if (bringing->step == BRING_WAIT)
        bringing_wait(arena, observed, bringing, plan);
    else
        bringing_done(bringing, plan);
}

void broadcast_settle(struct arena *arena, const struct task_observed *observed,
                      struct task_plan *plan)
{
    bool postponed = take_back_undone(plan);
    const struct task_spec *spec = &observed->task.spec;
    size_t total = plan->status.broadcast_results.len;

    fail_unsendable(observed, plan);
    if (observed->deleted_us) {
        plan->action = released(plan);
        return;
    }
    keep_answers(arena, plan);
    owe_stops(arena, observed, plan);

    struct broadcast_tally tally = broadcast_count(&plan->status);
    plan->status.targets = arena_new(arena, struct task_targets);
    *plan->status.targets = (struct task_targets){ .total = (int64_t)total,
                                                   .completed = tally.completed,
                                                   .failed = tally.failed };
    if (tally.completed >= broadcast_quorum(spec, total) && !postponed && !spec->daemon) {
        task_heard(arena, observed, plan);
        task_complete(arena, observed, plan, NULL);
    } else if (!postponed && plan->end != BROADCAST_GOES_ON) {
        finish_ordered(arena, observed, plan);
    } else if (!tally.open && plan->end == BROADCAST_GOES_ON) {
        task_fail(arena, observed, plan, REASON_TARGETS_FAILED,
                  failures_text(arena, observed, plan, &tally));
    } else {
        go_on(arena, observed, plan);
        settle_bringing(arena, observed, plan);
    }
}

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
static void lose(const struct task_observed *part, bool cut, struct task_target *target)
{
    if (cut)
        end_target(part, target, TARGET_FAILED, reason_text(REASON_CUT), "its Proplet closed");
    else if (part->proplet.withdrawn)
        end_target(part, target, TARGET_FAILED, reason_text(REASON_SCALED_DOWN),
                   "its pod was scaled away");
    else if (!part->proplet.exists)
        end_target(part, target, TARGET_FAILED, reason_text(REASON_PROPLET_DELETED),
                   "its Proplet was deleted");
    else if (part->proplet.cordoned && !task_may_have_started(part))
        end_target(part, target, TARGET_FAILED, reason_text(REASON_CORDONED),
                   "its Proplet was cordoned before the start went out");
    else if (task_may_not_start(part) && !task_may_have_started(part))
        end_target(part, target, TARGET_FAILED, reason_text(REASON_UNAVAILABLE),
                   part->proplet.closed ? "its Proplet closed before the start went out"
                                        : "its Proplet closes too early");
    else
        end_target(part, target, TARGET_FAILED, reason_text(REASON_LOST),
                   "its Proplet is offline for too long");
}

static void end_interrupted(const struct task_observed *part, int64_t *next_index,
                            const struct task_plan *plan, struct task_target *target,
                            struct target_action *action)
{
    const char *reason = plan->status.reason;
    bool lost = reason_of(reason) == REASON_LOST || plan->cut || !part->proplet.exists;

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
        lose(part, plan->cut, target);
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
        one.attempt.cut_ms = 0;                  /* all of them end soon */
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
        .cut = one.cut,
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

/* Its error may be its word on a stop that was sent before. */
static bool may_be_stopped(const struct task_observed *part, const struct task_target *target)
{
    return target_is_open(target) ||
           (task_may_be_told(&part->attempt) && target->phase == TARGET_FAILED &&
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
