/* The Task objects that a PropellerJob makes. Pure. */
#pragma once

#include "common/kube/object.h"
#include "controller/job/propellerjob_plan.h"

/*
 * job: the whole object as the API server has it; index: of tasks->items and of spec.tasks. dependsOn
 * leaves out the Tasks that will never be made (given_up of the plan). In the arena.
 */
const cJSON *job_child(struct arena *arena, const cJSON *job, const struct job_tasks *tasks,
                       const bool *given_up, size_t index);
