/* The reconcilers of FederatedJobs and TrainingRounds in one thread, on an API server and a model
 * store in memory; Tasks do what the test says. */
#pragma once

#include "common/tests/fake_api.h"
#include "common/tests/fake_clock.h"
#include "common/tests/suite.h"
#include "controller/federated/federated.h"
#include "controller/tests/outside.h"

struct federated_stage {
    struct arena *arena;
    struct fake_api *api;
    struct fake_clock clock;
    struct traininground_deps round;
    struct federatedjob_deps job;
    struct workqueue *task_queue; /* Tasks that are woken */
    unsigned steps;   /* requests of the reconcilers, and uses of the model store, so far */
    unsigned fail_at; /* the step that fails; 0: none */
    enum fault fault;
    bool dead;              /* no more requests; the next process takes over */
    void (*at_death)(void); /* after it, before the next process begins; NULL: nothing */
    unsigned errors;
    struct kube_client *user;       /* without failures, not counted */
    struct model_store *user_store; /* the processes' own, as the user sees it */
    bool looking;                   /* the test uses it: no step */
};
extern struct federated_stage federated;

/* Of a job of the participants a to e; more begins with a comma. */
#define FEDERATED_SPEC(total, k, more)                                                             \
    "{\"experimentId\":\"x\",\"taskWasmImage\":\"http://w\",\"participants\":["                    \
    "{\"propletId\":\"a\"},{\"propletId\":\"b\"},{\"propletId\":\"c\"},{\"propletId\":\"d\"},"     \
    "{\"propletId\":\"e\"}],\"kOfN\":" #k ",\"rounds\":{\"total\":" #total "}" more "}"

/* With the Proplets a, b, c, d, which are Running, and e, which is Offline. */
void federated_stage_set_up(void);
/* Models and updates are in ConfigMaps from now on, whose requests are steps like others. */
void federated_stage_use_configmaps(void);
void federated_stage_tear_down(void);

/* The job "job" in the namespace "default"; spec is JSON. */
void federated_stage_put(const char *spec);
void federated_stage_annotate(const char *restart); /* the restart annotation of the job */
void federated_stage_put_proplet(const char *name, const char *phase);
/* Running, with this status.availability. */
void federated_stage_put_availability(const char *name, const char *availability);
void federated_stage_delete(const struct kube_kind *kind, const char *name);
/* Turns until nothing is to be done for ten seconds. */
void federated_stage_run(void);
/* No turn: time passes, and all are looked at again. */
void federated_stage_wait_ms(int64_t ms);

/* As its own reconciler would write it. */
void federated_stage_set_task(const char *name, const char *status);
/* The Task ends; update: JSON of numbers, NULL: it fails. */
void federated_stage_end_task(const char *name, const char *update, int samples);
/* The same with an update that is in the model store, as a large one is. */
void federated_stage_end_task_by_reference(const char *name, const char *update, int samples);

const cJSON *federated_stage_get(const struct kube_kind *kind, const char *name); /* NULL: gone */
/* "Running 1 0 -; True RoundRunning": phase, current and completed rounds, the model as text;
 * Progressing. */
const char *federated_stage_told(void);
/* "Running 1/2 a=Received! b=Training": of a round; "" if there is none. */
const char *federated_stage_round(const char *name);
/* What is stored under the reference, as text; NULL: nothing. */
const char *federated_stage_model(const char *reference);
size_t federated_stage_models(void);  /* how many of the job are stored */
size_t federated_stage_updates(void); /* how many of its rounds, also of those that are gone */
