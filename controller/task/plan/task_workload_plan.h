/* This module decides about a Task that the cluster runs in a pod of its own. Pure, parts of
 * task_plan. */
#pragma once

#include "controller/task/plan/task_observed.h"

/*
 *   scheduled ──no Job yet──> the Job is made (nothing is written)
 *       │ └──its container started──> running ──Job complete──> completed
 *       │                                │ └─────Job failed───> failed
 *       └─cannot start for long─> failed └──pod or Job taken away──> interrupted ──> pending
 *
 * The status decides, and what runs follows it: an attempt that the status does not hold any more is
 * a leftover, and is deleted. So a suspend, a deadline, a lost Proplet write the status first, as
 * everywhere, and a crash in between leaves something that the next look finds. A Job has a name per
 * attempt, so none is made twice; once the Task runs, a Job that is gone is never made again, its
 * successor is another attempt.
 *
 * A Task scheduled on a Proplet that goes Offline, is cordoned or closes keeps its pod: it does not run there.
 */

/* A disrupted pod of a scheduled or running Task; so many does one run survive (MAX_RESTARTS). */
/* The interval at which names with another owner, and refusals that a user may repair, are
 * looked at again. */
#define TASK_WORKLOAD_RETRY_MS 60000
/* The Job's controller made no pod: its Events are read after this time, and then at this
 * interval. */
#define TASK_WORKLOAD_PODLESS_MS 3000
#define TASK_WORKLOAD_PODLESS_AGAIN_MS 30000

/* Owned by the Task, and not what its status says. */
struct task_leftover {
    const struct kube_kind *kind;
    const char *name;
    const cJSON *object; /* as the cache has it */
};
/* attempt: of a Job or Deployment that the Task owns; finished: Complete or Failed. */
bool task_workload_is_leftover(const struct task_observed *observed, int64_t attempt,
                               bool finished);

/*
 * activeDeadlineSeconds of the Job. That of the Task counts from its startedAt, the Job's from when the
 * Job was made: so it has none until its container runs, and then the time that it waited on top.
 */
struct json_opt_int task_workload_deadline(const struct task *task, const cJSON *job);
/* The Job has another one: it began to run, or the user moved the deadline. */
bool task_workload_deadline_moved(const struct task *task, const cJSON *job);

/* The Deployment of a daemon was scaled by hand; it has one pod as long as its Task is active. */
bool task_workload_is_scaled(const cJSON *deployment);

/* A Proplet of type k8s is among the candidates, and the Task could run there without MQTT. */
bool task_workload_is_possible(const struct task_observed *observed);

/* Its end counts whatever else there is to do: a deadline that passed, a suspend, a deleted Proplet. */
void task_plan_workload_end(struct arena *arena, const struct task_observed *observed,
                            struct task_plan *plan);
/* Of an active Task that has not ended. */
void task_plan_workload(struct arena *arena, const struct task_observed *observed,
                        struct task_plan *plan);

/* The objects that were to be made are refused for now, or their name belongs to another owner. */
void task_plan_workload_held_up(struct arena *arena, const struct task_observed *observed,
                                struct task_plan *plan, enum reason reason, const char *message);
