/* The requests of devices in federated learning, as services of the coordinator: they send updates
 * and fetch models. */
#pragma once

#include "common/runtime/informer.h"
#include "common/runtime/mailbox.h"
#include "common/runtime/workqueue.h"
#include "controller/coordinator/coordinator.h"
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
 * here. A sender without one is refused before its body is taken. After a 503 the device uses MQTT.
 * An update that was whole by then is not lost, and counts once, also if its sender does not wait
 * for the answer.
 *
 * The mailbox of its Task, as if it had come over MQTT, gets word of an update when its turn has
 * come; the request is answered when the Task's reconciler has written the outcome
 * (training_update.h). A model is sent from the one copy of model_cache.h, however many ask.
 *
 * Memory at most, beside that of the coordinator: for each of UPLOADS_MAX_LARGE that are read a copy,
 * the numbers (8 bytes each, FL_MAX_PARAMETERS) and as much again to be stored; the models of the
 * cache.
 */
struct training_requests {
    struct coordinator *coordinator;
    struct informer *tasks, *rounds, *jobs;
    struct mailbox *mailbox;      /* of Tasks, for updates */
    struct workqueue *task_queue; /* whose names are woken */
    struct model_cache *cache;    /* of the models that are sent */
};

/* self: struct training_requests. */
extern const struct coordinator_service UPDATE_SERVICE, MODEL_SERVICE;

/* The status of an update with this verdict. */
int training_request_status(enum result_verdict verdict);
