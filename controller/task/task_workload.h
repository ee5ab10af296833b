/* The ConfigMap and the Job or Deployment of a Task: looking at them, making them, deleting them. */
#pragma once

#include "controller/task/plan/task_plan.h"
#include "controller/task/task.h"

/*
 * Fills ret->workload; ret->task, proplet and attempt are there. Jobs, Deployments and pods are read
 * from the caches. What decides for good is read from the API server: that a Job is gone, how a
 * finished one ended, and what it left.
 */
int task_workload_observe(const struct task_deps *deps, struct reconcile *rc,
                          struct task_observed *ret, struct error *err) MUST_CHECK;

/* Any thread that the watch tells a change on: whose workload it is. */
map_fn task_map_workload;

/*
 * Deletes what is left over, where what is gone is fine, gives the Job the deadline of now, and scales
 * a daemon back that somebody scaled (put_back.h), which nothing waits on. *plan is told when to look
 * again.
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
