/* Moving a Task's status from phase to phase, with the conditions, times and events that belong to
 * it. */
#pragma once

#include "common/kube/conditions.h"
#include "controller/task/plan/task_observed.h"

/* Reasons of failures; those of recovery are in task_recovery_plan.h. */

/* The plan that changes nothing. */
struct task_plan task_plan_again(const struct task_observed *observed);

/* Returns the text of a reason in the status of this Task: REASON_OTHER is what its workload says. */
const char *task_reason_text(const struct task_observed *observed, enum reason reason);

/* Each sets plan->status and the event. Messages hold no times. */
void task_wait(struct arena *arena, const struct task_observed *observed, struct task_plan *plan,
               enum reason reason, const char *message);
void task_skip(struct arena *arena, const struct task_observed *observed, struct task_plan *plan,
               enum reason reason, const char *message);
/* Waits or is skipped, as its dependencies say. false: they are met. */
bool task_depend(struct arena *arena, const struct task_observed *observed, struct task_plan *plan);
void task_assign(struct arena *arena, const struct task_observed *observed, struct task_plan *plan,
                 const struct candidate *chosen);
/* Another attempt on the same device, or on the targets that plan->status has. */
void task_assign_again(struct arena *arena, const struct task_observed *observed,
                       struct task_plan *plan);
/* No Proplet, and none of its devices. */
void task_clear_assigned(struct task_status *status);
void task_unassign(struct arena *arena, const struct task_observed *observed,
                   struct task_plan *plan, enum reason reason, const char *message);
/* started: of the condition; unknown where the device gives no sign of it before its end. */
void task_run(struct arena *arena, const struct task_observed *observed, struct task_plan *plan,
              enum condition_status started);
/* A result proves that it started, also when it came before the running write. */
void task_heard(struct arena *arena, const struct task_observed *observed, struct task_plan *plan);
void task_complete(struct arena *arena, const struct task_observed *observed,
                   struct task_plan *plan, const cJSON *results);
/* Completed, or failed because the result is larger than it may be. */
void task_end(struct arena *arena, const struct task_observed *observed, struct task_plan *plan,
              const cJSON *results);
/* For good, or until the next retry: see task_retry_plan.h. */
void task_fail(struct arena *arena, const struct task_observed *observed, struct task_plan *plan,
               enum reason reason, const char *message);
void task_interrupt(struct arena *arena, const struct task_observed *observed,
                    struct task_plan *plan, enum reason reason, const char *message);
void task_reset(struct arena *arena, const struct task_observed *observed, struct task_plan *plan);
/* Milliseconds, rounded up, until `seconds` have passed since then; at most 0: they have. A step of
 * the wall clock does not count. */
int64_t task_left_ms(const struct task_observed *observed, int64_t since_us, int64_t seconds);
int64_t task_wait_left_ms(const struct task_observed *observed, int64_t since_us, int64_t wait_us);
/* Milliseconds, rounded up, until the wall clock shows this time: for schedules alone. */
int64_t task_until_ms(const struct task_observed *observed, int64_t time_us);
/* Wakes it then (monotonic), if nothing does earlier. */
void task_requeue_at(const struct task_observed *observed, struct task_plan *plan, int64_t at_ms);
void task_condition(struct arena *arena, const struct task_observed *observed,
                    struct task_plan *plan, const char *type, enum condition_status status,
                    enum reason reason, const char *message);
/* Adds to the planned status what kstatus reads (common/kube/kstatus.h). A Task is in progress until it
 * ends, runs as a daemon, or waits for the next time of its schedule. It is called when the status is
 * about to be written, and a status is never written for this alone. */
void task_show_kstatus(struct arena *arena, const struct task_observed *observed,
                       struct task_plan *plan);
