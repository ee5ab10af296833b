/* The HTTP side of federated learning: devices send updates and fetch models. */
#pragma once

#include "common/net/http_server.h"
#include "common/runtime/informer.h"
#include "common/runtime/mailbox.h"
#include "common/runtime/workqueue.h"
#include "controller/federated/model_cache.h"
#include "controller/task/plan/task_plan.h"

/*
 *   POST /t/<message id>/update            the update of a training Task that runs: 200 when it is
 *                                          stored, 404 for anything else, 409 if another one was taken
 *                                          meanwhile, 422 if it is of no use
 *   GET  /j/<job uid>/models/<version>     the model that round <version> + 1 of a FederatedJob begins
 *                                          with: the model of round <version>
 *
 * The message id, which holds the uid of a Task, is what a sender has to know; nothing else is secret
 * here. A sender without one is refused before its body is taken. 503 where this process does not
 * lead, has no room in time, or could not store it in time: the device then uses MQTT. An update
 * that was whole by then is not lost, and counts once, also if its sender does not wait for the
 * answer.
 *
 * A body stays here (uploads.h). The mailbox of its Task, as if it had come over MQTT, gets word of it
 * when its turn has come; the request is answered when the Task's reconciler has written the
 * outcome (training_update.h). A body that does not fit into COORDINATOR_MAX_BODIES waits on its
 * device: its socket is not read; one of at most UPLOADS_LARGE does not wait. A model is sent from
 * the one copy of model_cache.h, however many ask.
 *
 * Memory at most: COORDINATOR_MAX_BODIES, and UPLOADS_LARGE for each of UPLOADS_MAX; for each of UPLOADS_MAX_LARGE that are read a copy, the
 * numbers (8 bytes each, FL_MAX_PARAMETERS) and as much again to be stored; the models of the cache.
 */
#define COORDINATOR_THREADS 8
#define COORDINATOR_MAX_CONNECTIONS 256
#define COORDINATOR_MAX_BODIES (96u << 20) /* of all updates that are not written yet */
#define COORDINATOR_PATIENCE_MS 60000      /* for room, and for the answer */
/* A transfer may take longer while it moves at this rate: 20 MB in 20 minutes. */
#define COORDINATOR_TIMEOUT_MS 16000
#define COORDINATOR_MIN_RATE (16u << 10) /* bytes a second */

struct coordinator_options {
    const char *address; /* borrowed; only start needs it */
    struct informer *tasks, *rounds, *jobs;
    struct mailbox *mailbox;      /* of Tasks, for updates */
    struct workqueue *task_queue; /* whose names are woken */
    struct model_cache *cache;    /* of the models that are sent */
    size_t max_update;            /* that the model store takes */
    bool (*leads)(void *ctx);     /* false: the answer to every request is 503 */
    void *leads_ctx;
};
struct coordinator;
struct coordinator *coordinator_create(const struct coordinator_options *options);
void coordinator_destroy(struct coordinator *coordinator); /* stops */
int coordinator_start(struct coordinator *coordinator, struct error *err) MUST_CHECK;
void coordinator_stop(struct coordinator *coordinator);           /* requests that wait get 503 */
unsigned coordinator_port(const struct coordinator *coordinator); /* 0: not started */

/* Bytes to bytes; a server thread, or a test. An update is HTTP_LATER. May wait for a model to be read. */
http_handler_fn coordinator_handle;
http_admit_fn coordinator_admit;

/* Worker thread. coordinator NULL: nothing came. */
/* The update that asker sent, copied; NULL: it is not here any more. */
const char *coordinator_read(struct coordinator *coordinator, struct arena *arena,
                             const char *asker, size_t *ret_len);
/* Returns the number of whole updates of the Task with this uid. */
size_t coordinator_count(struct coordinator *coordinator, const char *uid);
/* A turn of the Task has failed: its updates stay, and hold up no other. */
void coordinator_pass(struct coordinator *coordinator, const char *uid);
/* The Task is gone, or its mail was given up. */
void coordinator_forget(struct coordinator *coordinator, const char *uid);
/* The outcome for the update of asker. Nothing happens if no request waits any more. */
void coordinator_answer(struct coordinator *coordinator, const char *asker,
                        enum result_verdict verdict);
