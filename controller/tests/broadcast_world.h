/* The one Task of task_world.h as a broadcast, its devices and their attempts. */
#pragma once

#include "controller/task/plan/broadcast_plan.h"
#include "controller/tests/task_world.h"

#define WORLD_FLEET 1001 /* Proplets at most */

/* The Proplets worker-0000, … of the devices device-0, …; all are candidates. */
struct broadcast_world {
    struct candidate *fleet;
    struct proplet *proplets;
    struct proplet_external *externals;
    struct attempt *memory; /* of each target, by its index */
    struct task_observed *parts;
    struct observed_result *results;
};
extern struct broadcast_world all;

void broadcast_set_up(void); /* three of them */
void broadcast_make_fleet(size_t count);
const char *broadcast_name_of(size_t i);
struct task_target *broadcast_targets(void); /* of the status */

/* As the reconciler observes them, all devices well; tests change what they are about. */
void broadcast_observe(void);
/* Plans, publishes but for the target `refused`, settles. */
struct task_plan broadcast_plan_refusing(size_t refused);
struct task_plan broadcast_plan_all(void);
void broadcast_write(const struct task_plan *plan);
void broadcast_turn(void); /* plan_all and write */
void broadcast_dispatch(size_t count);

/* A result in the mailbox; rest: its members beside the id and the sender. */
#define GOOD "\"results\":\"42\",\"error\":null"
#define BAD "\"results\":\"\",\"error\":\"out of tune\""
void broadcast_say(const char *id, const char *client, const char *rest);
void broadcast_answer(size_t i, const char *rest);

/* "completed running failed:DeviceError" */
const char *broadcast_phases(const struct task_status *status);
