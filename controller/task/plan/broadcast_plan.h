/* Broadcasts: one Task on every Proplet that matches when it is dispatched. Pure, parts of
 * task_plan. */
#pragma once

#include "controller/task/plan/task_observed.h"

/*
 * The targets are chosen once, in name order, and stored before anything is sent. Each is then like
 * a Task of its own, pinned to its Proplet: the same plan decides when it is started, repeated,
 * lost. Its id "<uid>.<attempt>.<index>" distinguishes its results from those of the others, and a
 * device that was restarted gets a new index.
 *
 * scheduled ──start published──> running ──result──> completed | failed
 *     └──────────┴──device restarted──> scheduled, another index
 *     └──────────┴──lost, deleted, cordoned or closed before the start──> failed (Wait: stays)
 *     └──────────┴──suspend, deadline, enough have answered──> interrupted
 *
 * The Task is completed when broadcastQuorum targets are (all, if it is not set): the others are
 * stopped. It is failed when all have ended and fewer are.
 */

/* The number of starts, which carry the module, and of stops that go out in one turn; the rest
 * follows in the next ones, and the status is written between. */
#define BROADCAST_STARTS_A_TURN 32
#define BROADCAST_STOPS_A_TURN 64
/* The limits of answers in the status; beyond them it has names and outcomes (api.md). */
#define BROADCAST_KEPT_ANSWERS 100
#define BROADCAST_KEPT_BYTES (256u << 10)
#define BROADCAST_ERROR_BYTES 1024

/* The meaning of an order to the Task for its targets. */
enum target_order {
    TARGET_GOES_ON,
    TARGET_HOLDS, /* it will end, but for its answer: it is not started, and its error is its word
                     on a stop */
    TARGET_STOPS,
};

/* Scheduled or running with targets. */
bool broadcast_is_active(const struct task_observed *observed);
bool target_is_open(const struct task_target *target);

/* Of a Task that may be assigned: chooses the targets, or waits. */
void broadcast_choose(struct arena *arena, const struct task_observed *observed,
                      struct task_plan *plan);
/* Decides which messages are to be published, and the state of each target if they are. */
void broadcast_plan(struct arena *arena, const struct task_observed *observed,
                    struct task_plan *plan);
void broadcast_plan_deletion(struct arena *arena, const struct task_observed *observed,
                             struct task_plan *plan);
/* After publishing: the status of the Task that follows. */
void broadcast_settle(struct arena *arena, const struct task_observed *observed,
                      struct task_plan *plan);
/* See SETBACK_UNSTORABLE. */
void broadcast_omit_answers(struct task_plan *plan);
