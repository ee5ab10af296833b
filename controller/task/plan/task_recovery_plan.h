/* This module decides about an attempt that its device may have lost: silence, a restart, a
 * Proplet that is gone. Pure, parts of task_plan. */
#pragma once

#include "common/kube/conditions.h"
#include "controller/task/plan/task_observed.h"

/*
 *                      policy Reschedule       policy Wait             policy Fail
 *   not confirmed      interrupted, elsewhere  failed                  failed
 *   device restarted   interrupted, there      interrupted, there      failed
 *   Proplet deleted,   interrupted             interrupted             failed
 *   or its pod scaled away
 *   Proplet lost       interrupted             stays running           failed
 *
 * No Proplet is lost while the brake holds (fleet_brake_plan.h): a Task that would lose its Proplet
 * has the reason FleetOffline.
 *
 * A scheduled Task whose start may be out fails or waits likewise, or gets another Proplet in one
 * write; one whose start is not out gets another one unless it waits.
 *
 * "There" and "elsewhere" survive the way through pending in status: assignedProplet and reason
 * stay until the next choice.
 */

/* A start that nothing confirms is published this number of times before its attempt is given
 * up. */
#define MAX_START_PUBLISHES 4
/* One run survives this number of restarts, and of attempts that were given up. */
#define MAX_RESTARTS 3
#define MAX_UNCONFIRMED_ATTEMPTS 3

/* Scheduled or running. */
bool task_is_active(const struct task_observed *observed);
bool task_is_assigned(const struct task_observed *observed);
/* The start may be out: published by this process, or by an earlier one that chose the Proplet. */
bool task_may_have_started(const struct task_observed *observed);
/* The same, but a workload of its own that is not there is not made any more while its Proplet is closed. */
bool task_may_run(const struct task_observed *observed);
/* Unknown: no sign of life is to be expected of it, so a start that was lost looks like one that
 * was not. */
enum condition_status task_started_status(const struct task_observed *observed);

/* An earlier leader may have published the start, and its result may wait in the broker. Or nothing
 * will confirm it: then a create from there must not be taken for one that ended it. */
bool task_awaits_backlog(const struct task_observed *observed);
/* In time, while no replica led, or while nothing could be written: a plan that is about to end
 * the Task waits for the marker, which wakes it. Its word is here already if plan->answered; a result that was refused
 * says nothing, since anyone may send it. */
bool task_may_have_answered(const struct task_observed *observed, const struct task_plan *plan);
/* The clock, its absence, or its job ends an active Task. Returns since when (monotonic, at
 * least 1); 0: none of them does. The plan waits for a marker that was sent later. */
int64_t task_end_due_ms(const struct task_observed *observed);

/* The device was restarted after the start of this attempt went out, and behind the result
 * (sequence 0: there is none). */
bool task_is_restarted(const struct task_observed *observed, uint64_t result_sequence);
/* The last start that may be published is out: the next step may need the candidates. */
bool task_starts_exhausted(const struct task_observed *observed);

/* A running Task whose device has been silent for too long: its start must be repeated, or its
 * attempt given up. Returns when that became so (monotonic); 0: it is not, or it is not known. */
int64_t task_silent_at_ms(const struct task_observed *observed);

/* Of a running Task. */
void task_plan_confirmation(struct arena *arena, const struct task_observed *observed,
                            struct task_plan *plan);
/* Counts an attempt that was lost, if its Task may go to another Proplet. false: the count is at
 * spec.lostAttemptsLimit, and the Task has failed with this message; backoffLimit does not count. */
bool task_count_loss(struct arena *arena, const struct task_observed *observed,
                     struct task_plan *plan, const char *message);
/* Why its Proplet, or the pod of it, is not there any more. */
const char *task_gone_message(struct arena *arena, const struct task_observed *observed);
void task_plan_deleted_proplet(struct arena *arena, const struct task_observed *observed,
                               struct task_plan *plan);
/* Of a running Task whose Proplet is Offline; true: that ended it. */
bool task_plan_absence(struct arena *arena, const struct task_observed *observed,
                       struct task_plan *plan);
/* It would be lost, if the brake did not hold. */
bool task_is_held(const struct task_observed *observed);
void task_requeue_when_lost(const struct task_observed *observed, struct task_plan *plan);
/* Its Proplet is closed, or closes before the Task would have ended: its start is not published, nor repeated. */
bool task_may_not_start(const struct task_observed *observed);
/* Scheduled on a Proplet that is lost, or was cordoned or closed before the start went out: it stays
 * scheduled, on another Proplet if there is one. */
bool task_is_displaced(const struct task_observed *observed);
void task_plan_displaced(struct arena *arena, const struct task_observed *observed,
                         struct task_plan *plan);
/* Whether its device may have got a stop: this leader sent one, or an earlier one chose the attempt and may have. */
bool task_may_be_told(const struct attempt *attempt);
/* It was stopped, or is going to be: an error is the device's answer to that. If its Proplet closed, a device that has no
 * stop yet means the error as its result. */
bool task_is_stopping(const struct task_observed *observed);
/* That word came; plan is what is done without it. */
void task_plan_stopped(struct arena *arena, const struct task_observed *observed,
                       struct task_plan *plan);
/* Of a Task for which task_is_restarted. */
void task_plan_restart(struct arena *arena, const struct task_observed *observed,
                       struct task_plan *plan);

/* The scheduler's choice; after a restart the same Proplet if it still fits, after an attempt that
 * was given up another one if there is one. */
const struct candidate *task_pick(struct arena *arena, const struct task_observed *observed,
                                  struct schedule_refusal *ret_refusal);
