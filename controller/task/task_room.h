/* This module holds Tasks that wait for room on a Proplet, and decides which are woken when
 * there is some. */
#pragma once

#include "controller/task/plan/task_plan.h"
#include "controller/task/task.h"

/* The Proplet may have room, or fit a Task that it did not fit before. Any thread. A Proplet that drains is woken, as it may
 * have lost its last Task. */
void task_room_offer_all(const struct task_deps *deps, struct arena *arena,
                         const struct freed_list *freed);
void task_room_offer(const struct task_deps *deps, struct arena *arena,
                     const struct kube_name *proplet);

/*
 * The Proplets of a namespace have changed: its Tasks may have another reason to wait. They get it
 * soon: the queue gets one name that stands for all of them, which the reconciler hands to
 * task_room_tell. Any thread.
 */
void task_room_changed(const char *ns, struct workqueue *queue);
bool task_room_is_all(const struct kube_name *name);
void task_room_tell(const struct task_deps *deps, struct reconcile *rc);

/* Before the first turn of a term: those who waited under an earlier leader are in the order in which
 * they are called, and what became free meanwhile is offered in that order. */
void task_room_restore(const struct task_deps *deps, int64_t now_us);

/*
 * The Proplets that the Task may choose from, into observed->candidates: the one that a place on is
 * kept for it; or none, and why, if others of its wishes wait already; or all.
 *
 * Worker thread, in the Task's turn, like what follows.
 */
void task_room_look(const struct task_deps *deps, struct reconcile *rc, const cJSON *json,
                    struct task_observed *observed);
/* The plan found no room. sequence: of the wait list, read before task_room_look. false: there may
 * be room by now, so it has to look again. */
bool task_room_wait(const struct task_deps *deps, struct reconcile *rc, const cJSON *json,
                    const struct task_observed *observed, const struct task_plan *plan,
                    uint64_t sequence);
/* The turn ends, and it does not wait for room: a place that was kept for it goes to others. */
void task_room_leave(const struct task_deps *deps, struct arena *arena,
                     const struct kube_name *task);
