/* The checkpoints that were handed over and are not in a status yet, by the uid of their Task. */
#pragma once

#include "controller/task/plan/task_observed.h"

/*
 *   add ──> RECEIVED ──settle──> READY ──remove──> gone
 *
 * At most CHECKPOINT_MAX_WAITING of a Task are here, so that no Task takes all the room for uploads
 * (UPLOADS_MAX), which is the limit of all. Beside them the inbox remembers of each Task with
 * checkpoints why the last one was not stored, what is to be removed, and what could not be read.
 * In memory only: a device repeats what was not answered. Strings are copied. Any thread; one leaf
 * lock.
 */
#define CHECKPOINT_MAX_WAITING 2

struct checkpoint_inbox;
struct checkpoint_inbox *checkpoint_inbox_create(void);
void checkpoint_inbox_destroy(struct checkpoint_inbox *inbox);

/* false: the Task has CHECKPOINT_MAX_WAITING. */
bool checkpoint_inbox_add(struct checkpoint_inbox *inbox, const char *uid,
                          const struct observed_checkpoint *checkpoint);
/* The oldest that is READY, or the oldest RECEIVED; strings in the arena. false: there is none. */
bool checkpoint_inbox_first(struct checkpoint_inbox *inbox, struct arena *arena, const char *uid,
                            bool ready, struct observed_checkpoint *ret);
/* It is stored, or needs no store: READY. */
void checkpoint_inbox_settle(struct checkpoint_inbox *inbox, const char *uid,
                             const struct observed_checkpoint *checkpoint);
void checkpoint_inbox_remove(struct checkpoint_inbox *inbox, const char *uid, uint64_t token);
/* The Task is gone. */
void checkpoint_inbox_forget(struct checkpoint_inbox *inbox, const char *uid);

/* Why the last one was not stored; NULL: it was. */
void checkpoint_inbox_set_failure(struct checkpoint_inbox *inbox, const char *uid,
                                  const char *message);
const char *checkpoint_inbox_failure(struct checkpoint_inbox *inbox, struct arena *arena,
                                     const char *uid);
/* The store may have what no status names. take: whether it may, once. */
void checkpoint_inbox_set_garbage(struct checkpoint_inbox *inbox, const char *uid);
bool checkpoint_inbox_take_garbage(struct checkpoint_inbox *inbox, const char *uid);
/* In this attempt a stored one could not be read. take: whether that is news, once an attempt. */
void checkpoint_inbox_set_unreadable(struct checkpoint_inbox *inbox, const char *uid,
                                     int64_t attempt);
bool checkpoint_inbox_take_unreadable(struct checkpoint_inbox *inbox, const char *uid);
