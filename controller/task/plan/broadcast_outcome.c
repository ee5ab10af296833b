#include "controller/task/plan/broadcast_outcome.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/str.h"
#include "controller/task/plan/broadcast_end.h"
#include "controller/task/plan/owed_stops_plan.h"
#include "controller/task/plan/task_order.h"
#include "controller/task/plan/task_recovery_plan.h"
#include "controller/task/plan/task_schedule_plan.h"
#include "controller/task/plan/task_transition.h"

/* So many of those that failed are named in status.error. */
#define MAX_NAMED 40
#define MAX_ERROR 4096

static struct task_target *targets_of(const struct task_plan *plan)
{
    return plan->status.broadcast_results.items;
}

struct broadcast_tally broadcast_count(const struct task_status *status)
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

int64_t broadcast_quorum(const struct task_spec *spec, size_t total)
{
    return spec->broadcast_quorum.set ? spec->broadcast_quorum.value : (int64_t)total;
}

static void fail_unsendable(const struct task_observed *observed, struct task_plan *plan)
{
    for (size_t i = 0; i < plan->status.broadcast_results.len; i++) {
        const struct target_action *action = &plan->targets[i];
        struct task_target *target = &targets_of(plan)[i];
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

    targets_of(plan)[i] = action->before;
    if (action->action == TASK_ASSIGN)
        action->action = TASK_WRITE;
    action->answer = ANSWER_PENDING;
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
        if (targets_of(plan)[i].phase == TARGET_INTERRUPTED &&
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
        struct task_target *target = &targets_of(plan)[i];
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
        struct task_target *target = &targets_of(plan)[i];
        if (target->results || target->error)
            omit(target);
    }
}

static void owe_stops(struct arena *arena, const struct task_observed *observed,
                      struct task_plan *plan)
{
    for (size_t i = 0; i < plan->status.broadcast_results.len; i++) {
        const struct target_action *action = &plan->targets[i];
        if (action->stop && !action->undone && !target_is_open(&targets_of(plan)[i]) &&
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
        const struct task_target *target = &targets_of(plan)[i];
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
        if (target_is_open(&plan->targets[i].before) && target_is_open(&targets_of(plan)[i])) {
            *ret = i;
            return &observed->parts[i];
        }
    }
    return NULL;
}

static bool is_begun(const struct task_plan *plan)
{
    for (size_t i = 0; i < plan->status.broadcast_results.len; i++) {
        if (targets_of(plan)[i].started_at_us || targets_of(plan)[i].phase == TARGET_COMPLETED)
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
        plan->status.reason = targets_of(plan)[i].reason;
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
    }
}
