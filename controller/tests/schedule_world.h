/* A recurring Task of task_world.h, and steps through its runs. */
#pragma once

#include "controller/task/plan/task_schedule_plan.h"
#include "controller/tests/task_world.h"

/* It is 10:00:00 on 2026-11-21, and the Task is a minute old. */
#define MINUTE_MS 60000
#define HOUR_MS (60 * MINUTE_MS)
#define DAY_MS (24 * HOUR_MS)

/* The world with "30 * * * *" in UTC. */
void schedule_set_up(void);
void schedule_set(const char *text);
void schedule_edit(const char *text);
/* Plans and does it. */
struct task_plan schedule_step(void);
/* "": none. */
void schedule_expect_time(int64_t us, const char *text);
/* The run is begun, nothing is chosen or sent in the same turn. */
void schedule_expect_begun(const struct task_plan *plan, int64_t run, const char *time);
/* The first run, that of 10:30, in this phase. */
void schedule_run_to(enum task_phase phase);
