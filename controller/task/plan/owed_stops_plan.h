/* This module plans stops for devices that were away: they are sent again when the devices are
 * back. Pure, parts of task_plan. */
#pragma once

#include "controller/task/plan/task_observed.h"

/*
 * A device that was lost computes on, and a message that is published while it is away is lost
 * (clean sessions). An attempt that is ended on it leaves it a stop that is owed; it stands in
 * status.lostAttempts until it is out, or its Proplet is gone, or the Task is. The oldest go when
 * there are too many.
 */
#define MAX_OWED_STOPS 32
/* It subscribes before or after its first heartbeat. */
#define OWED_STOP_SETTLE_MS 1000

/* plan ends an attempt of observed, which may be a target, on a device that cannot hear it; status:
 * of the Task. */
void owed_stop_note(struct arena *arena, const struct task_observed *observed,
                    struct task_status *status);
/* Completes a plan that is made otherwise: notes the stop that it owes, marks in plan->owed_due
 * those that can be sent now, and drops those owed to Proplets that are gone. */
void owed_stops_plan(struct arena *arena, const struct task_observed *observed,
                     struct task_plan *plan);
/* Told: by its id. */
void owed_stop_done(struct task_status *status, const char *id);
