/* This module observes a Task: it reads all that a plan is made from, from the caches and from
 * the memory of this process. */
#pragma once

#include "controller/task/plan/task_plan.h"
#include "controller/task/task.h"

/* mail: MAIL_UPDATE. */
void task_observe_update(struct arena *arena, const struct mail *mail,
                         const struct observed_proplet *proplet, struct observed_result *ret);

/* Reads again whether the observed Proplet is open, and long enough for a start of this Task. */
void task_observe_opening(const struct task_deps *deps, const struct task_spec *spec,
                          struct observed_proplet *ret);

/* Reads and asks; writes, publishes and registers nothing. In memory it notes only since when the Task is to end
 * (attempts_deleting, attempts_cut). json: the tree of object. Of results that
 * came before a marker came back, none is missed: the mail is read after the state of the marker. */
int task_observe(const struct task_deps *deps, struct reconcile *rc,
                 const struct kube_object *object, const cJSON *json, struct task_observed *ret,
                 struct error *err) MUST_CHECK;
