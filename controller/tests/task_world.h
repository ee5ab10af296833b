/* One Task, its Proplet and its controller, as a plan observes them. Tests change what they are
 * about. */
#pragma once

#include "common/tests/suite.h"
#include "controller/task/plan/task_plan.h"

#define WORLD_UID "5f0c1f8e-2a43-4a0e-9f8d-6f6f2a8b7c11"
#define WORLD_CHANNEL "dom-1/chan-1"
#define WORLD_PROPLET "alpha"
#define WORLD_CLIENT "device-1"
#define WORLD_CANDIDATES 4
#define WORLD_RESULTS 4

/*
 * observed    of a pending Task with its finalizer, and one candidate, WORLD_PROPLET, that is ready
 * proplets    of the candidates: external, without labels or limits
 */
struct task_world {
    struct arena *arena;
    struct task_observed observed;
    struct task_spec *spec;     /* of observed */
    struct task_status *status; /* of observed */
    struct proplet proplets[WORLD_CANDIDATES];
    struct proplet_external externals[WORLD_CANDIDATES];
    struct candidate candidates[WORLD_CANDIDATES];
    struct observed_result results[WORLD_RESULTS];
};
extern struct task_world world;

void world_set_up(void);
void world_tear_down(void);

/* Further on its way: what the plans before would have left. */
void world_assigned(void); /* scheduled on WORLD_PROPLET by this process, nothing published yet */
void world_running(void);  /* and started a second ago */
void world_finished(enum task_phase phase);
void world_suspended(void);
/* Another process takes over: what only the memory of this one held is gone. */
void world_new_leader(void);
void world_wait_ms(int64_t ms);
void world_result(const char *channel, const char *format, ...) PRINTF_LIKE(2, 3);

/* Plans, and fails the test for an illegal transition. */
struct task_plan world_plan(void);
/* What follows when the plan was acted on, with this setback; checked as a plan is. */
struct task_plan world_conclude(const struct task_plan *plan, enum task_setback_kind kind,
                                enum reason reason, const char *message);
/* What the reconciler does with a plan, when everything works; world_act without the status write,
 * as if that had failed. */
void world_act(const struct task_plan *plan);
void world_do(const struct task_plan *plan);

/* "True Assigned: assigned to Proplet 'alpha'"; "" if there is no such condition. */
const char *world_condition(const struct task_plan *plan, const char *type);
/* Nothing is sent, chosen, removed, or written anew. */
void world_expect_rest(const struct task_plan *plan);
/* The phase stays, Scheduled is False for this reason, and nothing else happens. */
void world_expect_waiting(const struct task_plan *plan, const char *reason, const char *message);
