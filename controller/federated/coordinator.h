/* The HTTP side of federated learning: devices send updates and fetch models. */
#pragma once

#include "common/net/http_server.h"
#include "controller/shared/reconcilers.h"
#include "controller/task/plan/task_plan.h"

/*
 *   POST /t/<message id>/update            the update of a training Task that runs: 200 when it is
 *                                          stored, 404 for anything else, 409 if another one was taken
 *                                          meanwhile, 422 if it is of no use
 *   GET  /j/<job uid>/models/<version>     the model that round <version> + 1 of a FederatedJob begins
 *                                          with: what round <version> made
 *
 * The message id, which holds the uid of a Task, is what a sender has to know; nothing else is secret
 * here. 503 where this process does not lead, has no room, or could not store it in time: the device
 * then uses MQTT. What came by then is not lost, and counts once.
 *
 * An update goes into the mailbox of its Task, as if it had come over MQTT; the handler waits until
 * the Task's reconciler has written what became of it (training_update.h).
 */
#define COORDINATOR_THREADS 8
#define COORDINATOR_MAX_CONNECTIONS 256
#define COORDINATOR_MAX_WAITING 64         /* requests whose update is not stored yet */
#define COORDINATOR_MAX_BODIES (32u << 20) /* of all requests at once */
#define COORDINATOR_PATIENCE_MS 8000       /* less than the server's own time for a request */

struct coordinator;
/* shared is borrowed, and complete by the first request. leads: as may_act of the process. */
struct coordinator *coordinator_create(struct shared *shared, bool (*leads)(void *ctx), void *ctx);
void coordinator_destroy(struct coordinator *coordinator); /* stops */
int coordinator_start(struct coordinator *coordinator, const char *address,
                      struct error *err) MUST_CHECK;
void coordinator_stop(struct coordinator *coordinator);           /* those who wait are told 503 */
unsigned coordinator_port(const struct coordinator *coordinator); /* 0: not started */

/* Bytes to bytes; a server thread, or a test. May wait. */
http_handler_fn coordinator_handle;

/* Worker thread: what became of the update of the one who waits as asker. Nobody does any more: fine. */
void coordinator_answer(struct coordinator *coordinator, const char *asker,
                        enum result_verdict verdict);
