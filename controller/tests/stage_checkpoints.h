/* Checkpoints on the stage (stage.h): the coordinator and the queue of checkpoints, beside the
 * reconcilers of Tasks, and a module that hands over its state. */
#pragma once

#include "controller/checkpoint/checkpoint.h"
#include "controller/tests/staged.h"

/* From the next stage_set_up on, until stage_tear_down. Uses of the model store, which outlives the
 * processes, are steps (outside.h). */
void stage_checkpoints_use(void);
/* One request of a module; the stage comes to rest, or takes many turns, before it is answered. id: of its message. Returns the
 * status. The reply may be NULL. */
int stage_checkpoint_ask(const char *method, const char *id, const char *query, const char *body,
                         struct http_server_reply *ret);
/* The number of blobs that are stored for Tasks. */
size_t stage_checkpoints_stored(void);
/* The bytes of a reference, looked up without a step; NULL: they are not there. */
const char *stage_checkpoint_bytes(const char *uid, const char *reference);
/* All blobs of the Task but this one are lost. */
void stage_checkpoints_lose_all_but(const char *uid, const char *reference);
/* From now on uses of the store fail so; 0: they do not. */
void stage_checkpoints_break(enum error_code code);

/* For the stage itself; nothing happens where it is not used. */
void stage_checkpoints_start(void);
void stage_checkpoints_lead(void);
void stage_checkpoints_end(void);
void stage_checkpoints_clear(void);
struct staged stage_checkpoints_tasks(void);
struct workqueue *stage_checkpoints_queue(reconcile_fn **ret, void **ret_self);
