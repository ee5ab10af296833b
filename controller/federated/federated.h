/* The reconcilers of FederatedJobs and TrainingRounds, and the objects that a change wakes. */
#pragma once

#include "controller/blobs/gone_scopes.h"
#include "controller/blobs/model_store.h"
#include "controller/task/owner.h"

struct federatedjob_deps {
    struct timeline *timeline;
    struct informer *tasks, *rounds, *jobs;
    struct model_store *models; /* the models that a job begins with, and those that it removes */
    struct gone_scopes *gone;
    struct model_exports *exports;
};

struct traininground_deps {
    struct timeline *timeline;
    struct informer *tasks, *proplets, *rounds, *jobs;
    struct model_store *models; /* updates, and the models made of them */
    struct model_cache *cache;  /* holds these models */
    struct gone_scopes *gone;
    struct coordinator *coordinator; /* NULL: devices send updates by MQTT alone */
    const char *coordinator_url;     /* NULL likewise */
    /* Whether all results that the broker held for an earlier leader are here, and the request to wake
     * the Task waiter when they may be. NULL: there is no broker. */
    bool (*backlog_drained)(void *ctx);
    void (*await_backlog)(void *ctx, const struct kube_name *waiter);
    void *backlog_ctx;
};

/* self: struct federatedjob_deps. */
reconcile_fn federatedjob_reconcile;
map_fn federatedjob_map_self;
map_fn federatedjob_map_round;    /* a TrainingRound ended: its job */
map_fn federatedjob_map_to_tasks; /* it is suspended, or ended: the Tasks of its rounds */

/* Shows the metrics of rounds with 0. */
void traininground_metrics_begin(void);

/* self: struct traininground_deps. */
reconcile_fn traininground_reconcile;
map_fn traininground_map_self;
map_fn traininground_map_task;    /* a Task ended: its round, and later ones that take its update */
map_fn traininground_map_proplet; /* it came, went, is Offline: the rounds that it takes part in */
map_fn traininground_map_job;     /* it is suspended, or ended: its rounds */
map_fn traininground_map_to_tasks; /* it ended: its Tasks */
