/* Tasks that wait for room on a Proplet: who is woken when there is some, and who waits on. */
#pragma once

#include "controller/reconcilers.h"

/* The Proplet may have room, or fit somebody whom it did not fit before. Any thread. */
void task_room_offer(struct shared *shared, struct arena *arena, const struct kube_name *proplet);

/*
 * The Proplets of a namespace are not what they were: its Tasks may have another reason to wait.
 * They are told soon: the queue gets one name that stands for all of them, which the reconciler
 * hands to task_room_tell. Any thread.
 */
void task_room_changed(const char *ns, struct workqueue *queue);
bool task_room_is_all(const struct kube_name *name);
void task_room_tell(struct shared *shared, struct reconcile *rc);

/* Worker thread, in the Task's turn. sequence: of the wait list, read before the candidates were.
 * false: there may be room by now, so it has to look again. */
bool task_room_wait(struct shared *shared, struct arena *arena, const struct kube_name *task,
                    const cJSON *json, int64_t rank, uint64_t sequence);
/* The turn ends, and it does not wait for room: a place that was kept for it goes to others. */
void task_room_leave(struct shared *shared, struct arena *arena, const struct kube_name *task);
