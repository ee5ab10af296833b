/*
 * The Proplets and Tasks of one namespace as the controller's scheduler sees them, made of two lists.
 *
 * It uses the controller's own modules, so that a command and the controller cannot disagree about who fits. Main thread
 * only. Nothing fails: an object that cannot be read is left out, as the controller leaves it out.
 */
#pragma once

#include "controller/scheduler/scheduler.h"

/* proplets, tasks: arrays of whole objects of this namespace. Everything is in the arena. */
struct schedule_context fleet_context(struct arena *arena, const char *ns, const cJSON *proplets,
                                      const cJSON *tasks);

/* The place of a Task among those that wait for room. */
struct fleet_rank {
    size_t position; /* from 1 */
    size_t waiting;  /* all of them */
};
struct fleet_rank fleet_rank(const cJSON *tasks, const cJSON *task, int64_t now_us);
