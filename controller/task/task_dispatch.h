/* Telling a device to start and to stop a Task, over MQTT. */
#pragma once

#include "controller/task/plan/task_plan.h"
#include "controller/task/task.h"

/* Not an error, and perhaps not published. One of these: the broker is away, and the Task is
 * woken when it is back; a start that is not the first was overtaken by its result, or lost the
 * connection on which that would come, while the module was read, so that it must be decided
 * again; the broker did not acknowledge the start of a scheduled Task, which waits for a marker
 * and then publishes the same again, because a lost start would never be noticed where nothing
 * confirms one. */
#define TASK_NOT_PUBLISHED 1

/* The start can never be sent, whatever is tried. */
#define TASK_NOT_SENDABLE 2

/* The start must not go out: see bringing_holds. */
#define TASK_HELD_BACK 3

/* The complete object, as the cache has neither module nor environment; ERROR_CONFLICT: it is not the
 * one that was observed any more, or another attempt. *ret_json is its tree. */
int task_read_whole(struct reconcile *rc, const struct task_observed *observed, struct task *ret,
                    const cJSON **ret_json, struct error *err) MUST_CHECK;

/*
 * Reads the complete object (the cache has neither module nor environment), builds the message and
 * publishes it. Returns 0 if it is out, or of a repeat, may be; and if it can never be sent, with *ret.
 */
int task_publish_start(const struct task_deps *deps, struct reconcile *rc,
                       const struct task_observed *observed, struct task_setback *ret,
                       struct error *err) MUST_CHECK;

/* The same of any attempt, on any device; nothing remembers it. */
bool task_send_stop(const struct task_deps *deps, struct reconcile *rc,
                    const struct task_observed *observed, const struct observed_proplet *proplet,
                    const char *id);
/* A plan with a stop says what to do without an answer. false: it is not out, see
 * TASK_NOT_PUBLISHED. */
bool task_publish_stop(const struct task_deps *deps, struct reconcile *rc,
                       const struct task_observed *observed);

/*
 * Publishes what the plan says, with the module read once, until something cannot be published. Marks the targets of
 * the plan for which that was not done, or can never be.
 */
int task_broadcast_publish(const struct task_deps *deps, struct reconcile *rc,
                           const struct task_observed *observed, struct task_plan *plan,
                           struct error *err) MUST_CHECK;
/* The status is written: starts that it chose are known to be no earlier leader's. */
void task_broadcast_chosen(const struct task_deps *deps, struct reconcile *rc,
                           const struct task_observed *observed, const struct task_plan *plan);
