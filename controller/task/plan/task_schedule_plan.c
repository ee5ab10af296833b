#include "controller/task/plan/task_schedule_plan.h"

#include "common/api/timezone.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "controller/task/plan/plan_parts.h"
#include "controller/task/plan/task_order.h"
#include "controller/task/plan/task_recovery_plan.h"
#include "controller/task/plan/task_retry_plan.h"
#include "controller/task/plan/task_run_plan.h"
#include "controller/task/plan/task_transition.h"

static struct observed_schedule problem(enum reason reason, const char *message)
{
    return (struct observed_schedule){ .problem = reason, .message = message };
}

struct observed_schedule task_schedule_observe(struct arena *arena, const struct task_spec *spec,
                                               const char *directory)
{
    struct observed_schedule schedule = { 0 };
    const char *name = task_timezone(spec);
    struct error err = { 0 };

    if (str_is_empty(spec->schedule))
        return schedule;
    if (cron_parse(spec->schedule, &schedule.timetable.cron, &err) < 0)
        return problem(REASON_BAD_SCHEDULE, arena_printf(arena, "spec.schedule: %s", err.message));

    switch (timezone_read(directory, name, arena, &schedule.timetable.zone)) {
    case TIMEZONE_KNOWN:
        return schedule;
    case TIMEZONE_UNKNOWN:
        return problem(REASON_UNKNOWN_ZONE,
                       arena_printf(arena, "spec.timezone: there is no time zone '%s'", name));
    default:
        return problem(REASON_NO_ZONES,
                       arena_printf(arena,
                                    "spec.timezone: '%s' is unknown without the database of time "
                                    "zones, " TIMEZONE_DATABASE " (package tzdata)",
                                    name));
    }
}

static const char *const REPLACED_MESSAGE = "the next run is due, and concurrencyPolicy is Replace";

/* A run has begun and has no final outcome. */
static bool is_open(const struct task_observed *observed)
{
    switch (observed->task.status.phase) {
    case TASK_PENDING:
        return !task_awaits_schedule(&observed->task);
    case TASK_FAILED:
        return task_is_backing_off(observed);
    default:
        return !task_is_final(observed->task.status.phase);
    }
}

static struct timetable timetable_of(const struct task_observed *observed)
{
    struct timetable table = observed->schedule.timetable;
    int64_t last_us = observed->task.status.last_run_us;

    table.anchor_us = last_us ? last_us : observed->created_us;
    return table;
}

static bool is_time(const struct timetable *table, int64_t at_us)
{
    int64_t next_us;

    return timetable_next(table, at_us - 1, &next_us) && next_us == at_us;
}

/* In the past: it is due. false: there is none. */
static bool next_time(const struct task_observed *observed, int64_t *ret_us)
{
    const struct task_status *status = &observed->task.status;
    const struct timetable table = timetable_of(observed);
    bool unchanged = status->observed_generation == observed->generation;
    int64_t from_us = observed->now_us;

    if (!task_recurs(&observed->task.spec) && status->last_run_us)
        return false;
    if (status->next_run_us && status->next_run_us <= observed->now_us &&
        (unchanged || is_time(&table, status->next_run_us))) {
        *ret_us = status->next_run_us;
        return true;
    }
    if (!status->observed_generation) /* what passed before anybody looked at it was missed */
        from_us = observed->created_us;
    if (from_us < status->last_run_us) /* the clock was set back: nothing runs twice */
        from_us = status->last_run_us;
    return timetable_next(&table, from_us, ret_us);
}

/* Of what comes after this turn; 0: nothing. */
static int64_t time_after_now(const struct task_observed *observed)
{
    const struct timetable table = timetable_of(observed);
    int64_t next_us;

    return task_recurs(&observed->task.spec) && timetable_next(&table, observed->now_us, &next_us)
               ? next_us
               : 0;
}

static void wait_for_time(struct arena *arena, const struct task_observed *observed,
                          struct task_plan *plan)
{
    char text[RFC3339_LEN];

    task_wait(arena, observed, plan, REASON_SCHEDULE,
              plan->status.next_run_us
                  ? arena_printf(arena, "the next run is at %s",
                                 rfc3339_format(plan->status.next_run_us, text))
                  : "the schedule has no time that is still to come");
}

/* Its times cannot be told. */
static bool plan_problem(struct arena *arena, const struct task_observed *observed,
                         struct task_plan *plan)
{
    const struct observed_schedule *schedule = &observed->schedule;

    if (is_open(observed))
        return false;
    if (observed->task.status.phase == TASK_PENDING) {
        task_wait(arena, observed, plan, schedule->problem, schedule->message);
        return true;
    }
    task_condition(arena, observed, plan, "Scheduled", CONDITION_FALSE, schedule->problem,
                   schedule->message);
    return false;
}

/* ---- a time that is due ---- */

/* As the wall clock shows it: a run that it has left behind for too long does not begin. */
static bool is_too_late(const struct task_observed *observed, int64_t time_us)
{
    const struct json_opt_int *deadline = &observed->task.spec.starting_deadline_seconds;

    return task_recurs(&observed->task.spec) && deadline->set &&
           observed->now_us - time_us >= plan_limit_us(deadline->value);
}

static void end_as(struct arena *arena, struct task_plan *plan, enum task_phase phase,
                   enum reason reason, const char *message)
{
    struct run_end *end = arena_new(arena, struct run_end);

    *end = (struct run_end){ phase, reason, message };
    plan->run_end = end;
}

static void begin_in_place(struct arena *arena, const struct task_observed *observed,
                           struct task_plan *plan)
{
    plan->stop = task_may_have_started(observed) && observed->proplet.reachable;
    task_unassign(arena, observed, plan, REASON_REPLACED, REPLACED_MESSAGE);
    task_renew_counts(&plan->status);
    end_as(arena, plan, plan->stop ? TASK_INTERRUPTED : TASK_SKIPPED, REASON_REPLACED,
           REPLACED_MESSAGE);
}

/* last_us: the time of the run. */
static void begin(struct arena *arena, const struct task_observed *observed, struct task_plan *plan,
                  int64_t last_us)
{
    enum task_phase phase = observed->task.status.phase;

    if (phase == TASK_SCHEDULED) { /* from there nothing leads back to pending */
        begin_in_place(arena, observed, plan);
    } else {
        task_begin_run(arena, observed, plan);
        if (phase == TASK_PENDING) /* no run has ended */
            plan->run_end = NULL;
        if (phase == TASK_PENDING && is_open(observed))
            end_as(arena, plan, TASK_SKIPPED, REASON_REPLACED, REPLACED_MESSAGE);
    }
    plan->status.last_run_us = last_us;
    plan->status.next_run_us = time_after_now(observed);
}

static bool plan_due(struct arena *arena, const struct task_observed *observed,
                     struct task_plan *plan)
{
    const struct timetable table = timetable_of(observed);
    int64_t due_us = plan->status.next_run_us;
    int64_t last_us = due_us;

    if (task_recurs(&observed->task.spec)) /* else the one that is due is the only one */
        (void)timetable_last(&table, due_us - 1, observed->now_us, &last_us);
    if (is_too_late(observed, last_us)) {
        plan->status.next_run_us = time_after_now(observed);
        plan->event = &TASK_EVENT_RUN_SKIPPED;
        if (task_awaits_schedule(&observed->task))
            wait_for_time(arena, observed, plan);
        return true;
    }

    begin(arena, observed, plan, last_us);
    plan->missed = timetable_count(&table, due_us - 1, last_us - 1, MAX_MISSED_COUNTED);
    if (plan->missed)
        plan->event = &TASK_EVENT_RUN_SKIPPED;
    return true;
}

static bool plan_overlap(struct arena *arena, const struct task_observed *observed,
                         struct task_plan *plan)
{
    bool backlog = !observed->backlog_drained && !observed->marker_overdue;

    if (task_is_active(observed) && (backlog || observed->answer_awaited))
        return false; /* its result may be there: the marker wakes it */
    if (task_concurrency_policy(&observed->task.spec) != CONCURRENCY_REPLACE) {
        plan->status.next_run_us = time_after_now(observed);
        plan->event = &TASK_EVENT_RUN_SKIPPED;
        return true;
    }
    if (observed->task.status.phase == TASK_RUNNING) { /* the time stays due */
        plan->stop = observed->proplet.reachable;
        task_interrupt(arena, observed, plan, REASON_REPLACED, REPLACED_MESSAGE);
        return true;
    }
    return plan_due(arena, observed, plan);
}

/* ---- a time to come ---- */

void task_leave_out(struct arena *arena, const struct task_observed *observed,
                    struct task_plan *plan, enum reason reason, const char *message)
{
    plan->status.finished_at_us = observed->now_us;
    task_wait(arena, observed, plan, reason, message);
    end_as(arena, plan, TASK_SKIPPED, reason, message);
    plan->event = &TASK_EVENT_RUN_SKIPPED;
}

/* Begun, and not one start of it is out. */
static bool is_unstarted(const struct task_observed *observed)
{
    const struct task_status *status = &observed->task.status;
    int64_t attempts = status->attempt - status->prior_attempts.value;

    return (status->phase == TASK_PENDING && !attempts) ||
           (status->phase == TASK_SCHEDULED && attempts <= 1 && !task_may_have_started(observed));
}

static bool plan_unstarted(struct arena *arena, const struct task_observed *observed,
                           struct task_plan *plan)
{
    const struct json_opt_int *deadline = &observed->task.spec.starting_deadline_seconds;
    int64_t last_us = observed->task.status.last_run_us;
    const char *message = "it could not start within startingDeadlineSeconds";

    if (!task_recurs(&observed->task.spec) || !deadline->set || !is_unstarted(observed))
        return false;

    int64_t left_ms = task_left_ms(observed, last_us, deadline->value);
    if (left_ms > 0) {
        task_requeue_at(observed, plan, observed->now_ms + left_ms);
        return false;
    }
    if (observed->task.status.phase == TASK_PENDING)
        task_leave_out(arena, observed, plan, REASON_START_DEADLINE, message);
    else
        task_fail(arena, observed, plan, REASON_START_DEADLINE, message);
    return true;
}

bool task_plan_schedule(struct arena *arena, const struct task_observed *observed,
                        struct task_plan *plan)
{
    const struct task_spec *spec = &observed->task.spec;
    int64_t next_us = 0;

    plan->status.next_run_us = 0;
    if (str_is_empty(spec->schedule) || observed->task.status.phase == TASK_SKIPPED ||
        spec->suspend)
        return false;
    if (observed->schedule.problem)
        return plan_problem(arena, observed, plan);

    bool found = next_time(observed, &next_us);
    plan->status.next_run_us = next_us;
    if (found && next_us <= observed->now_us) {
        if (is_open(observed))
            return plan_overlap(arena, observed, plan);
        /* a run that begins now would be skipped, and the outcome of the one before be lost */
        return !task_order_stops(spec, observed->order) && plan_due(arena, observed, plan);
    }
    if (found)
        task_requeue_at(observed, plan, observed->now_ms + task_until_ms(observed, next_us));
    if (task_awaits_schedule(&observed->task)) {
        wait_for_time(arena, observed, plan);
        return true;
    }
    return plan_unstarted(arena, observed, plan);
}
