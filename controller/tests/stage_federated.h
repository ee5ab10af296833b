/* Federated learning on the stage (stage.h): its reconcilers beside those of Tasks and Proplets, so
 * that an update goes all the way from the device's message to the model. */
#pragma once

#include "common/runtime/controller.h"
#include "controller/tests/stage.h"
#include "controller/tests/staged.h"

/* From the next stage_set_up on, until stage_tear_down. Uses of the model store, which outlives the
 * processes, are steps (outside.h). */
void stage_federated_use(void);
/* A model of the FederatedJob with this name, as text; NULL: it is not stored. */
const char *stage_federated_model(const char *job, const char *reference);

/* For the stage itself; nothing happens where it is not used. */
void stage_federated_start(void);
void stage_federated_end(void);
void stage_federated_clear(void);
struct staged stage_federated_jobs(void);
struct staged stage_federated_rounds(void);
/* That has a name, and whose turn it is; NULL: there is none. */
struct workqueue *stage_federated_queue(reconcile_fn **ret, void **ret_self);
/* Kinds of which objects are made by reconcilers, to be listed by the next process. */
const struct kube_kind *const *stage_federated_kinds(size_t *ret_len);
