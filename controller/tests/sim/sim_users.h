/* The users of the simulation: they make Tasks and jobs of every sort, delete and suspend Tasks, and
 * close Proplets for a while. */
#pragma once

#include "controller/tests/sim/sim_fleet.h"

/* A Proplet for each device; then something every few seconds. */
void sim_users_begin(const struct sim_device *devices, size_t count);
/* They make nothing any more. */
void sim_users_rest(void);
/* Deletes the Tasks whose schedules would go on for ever. */
void sim_users_end_schedules(void);
