/* The ConfigMap and the Job or Deployment of a Task: looking at them, making them, deleting them. */
#pragma once

#include "controller/task/plan/task_plan.h"
#include "controller/task/task.h"

/*
 * Fills ret->workload; ret->task, proplet and attempt are there. Jobs, Deployments and pods are
 * read from the caches. Final facts are read from the API server: that a Job is gone, how a
 * finished one ended, and its result.
 */
int task_workload_observe(const struct task_deps *deps, struct reconcile *rc,
                          struct task_observed *ret, struct error *err) MUST_CHECK;

/* Any thread that the watch reports a change on: queues the Task that owns the object. */
map_fn task_map_workload;

/*
 * Deletes objects that are left over (one that is gone is fine), gives the Job the deadline of now,
 * and scales a daemon back that was scaled by hand (put_back.h), for which nothing waits. *plan
 * gets the time to look again.
 */
int task_workload_clean(const struct task_deps *deps, struct reconcile *rc,
                        const struct task_observed *observed, struct task_plan *plan,
                        struct error *err) MUST_CHECK;

/*
 * Makes what the Task runs as, unless it is there. Returns 0 also with *ret: it can never be made, is refused for
 * now, or its name belongs to another owner.
 */
int task_workload_create(const struct task_deps *deps, struct reconcile *rc,
                         const struct task_observed *observed, struct task_setback *ret,
                         struct error *err) MUST_CHECK;

/* By the uid of the Task, as its label says. */
#define INDEX_TASK "task"
void indexes_add_workload(struct store *store);
/* Of a Job its labels, owner, deadline and conditions are kept. */
watch_project_fn project_task_job;
