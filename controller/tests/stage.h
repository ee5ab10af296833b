/* The reconcilers in one thread, on an API server in memory. The bridge is the test's: it defines
 * the functions of bridge.h that the reconcilers call. */
#pragma once

#include "common/kube/conditions.h"
#include "common/tests/fake_api.h"
#include "common/tests/fake_clock.h"
#include "common/tests/suite.h"
#include "controller/federated/federated.h"
#include "controller/job/propellerjob.h"
#include "controller/proplet/proplet.h"
#include "controller/task/task.h"

struct stage {
    struct arena *arena;
    struct fake_api *api;
    struct fake_clock clock;
    /* Of the process that lives now. */
    struct task_deps task;
    struct proplet_deps proplet;
    struct job_deps job;
    struct federatedjob_deps federated; /* with stage_federated_use only */
    struct traininground_deps round;    /* likewise */
    bool dead;           /* set by the test: no more requests; the next process takes over */
    bool still;          /* Proplets stay as the test put them */
    const char *silent;  /* this device sends no heartbeats */
    unsigned fleet;      /* Proplets "fleet-<n>" of devices of the same names, from 1 on */
    unsigned fleet_gone; /* the first so many of them send no heartbeats */
    int64_t fence_ms;    /* the last marker that came back to this process was sent then */
    int64_t since_ms;    /* the process is connected since then */
    unsigned errors;     /* turns that failed */
    unsigned task_turns; /* of the reconciler of Tasks */
};
extern struct stage stage;

/* For the next stage: what a test has beside it is made and ended with each process. */
void stage_each_process(void (*begins)(void), void (*ends)(void));
/* roundtrip: ctx is the fake_api. between: called before each turn of a reconciler; true: there is
 * more to come, whether there is a turn or not. */
void stage_set_up(http_roundtrip_fn *roundtrip, bool (*between)(void));
void stage_tear_down(void);

/* Turns until nothing is to be done for a while; devices send heartbeats, and a dead process is
 * followed by another. */
void stage_run(void);
void stage_turns(unsigned max); /* the same without heartbeats, and no more than so many turns */
void stage_wait_ms(int64_t ms); /* time passes, without a turn */
/* As if from the broker, on the channel of every Proplet. */
void stage_receive(const char *suffix, const char *payload);
/* The same on any topic, with any bytes. */
void stage_receive_bytes(const char *topic, const char *payload, size_t len);
/* The broker was away: all are woken that may want to tell a device something. */
void stage_reconnect(void);
/* Active Tasks look again. */
void stage_wake_active(void);

/* A marker that is sent now comes back: everything before it has been handed over. */
void stage_marker(void);

/* So many Proplets "fleet-<n>", which take no Tasks; the last will of the first so many comes, the
 * others send heartbeats. */
void stage_put_fleet(unsigned count);
void stage_lose_fleet(unsigned count);

/* The Events of this process so far reach the API server; those that come later do not. */
void stage_write_events(void);

/* What users do in the namespace "default"; spec is JSON, the rest of the object stays. The stage
 * begins with the Proplets "alpha" of "device-1" and "beta" of "device-2". */
void stage_put(const struct kube_kind *kind, const char *name, const char *spec);
void stage_annotate(const struct kube_kind *kind, const char *name, const char *key,
                    const char *value);
void stage_put_task(const char *spec); /* "one" */
void stage_put_proplet(const char *name, const char *spec);
/* Another object under its name, before any Task sees the old one go: as when a finalizer is removed by
 * hand. */
void stage_replace_proplet(const char *name, const char *spec);
void stage_delete(const struct kube_kind *kind, const char *name);
const cJSON *stage_get(const struct kube_kind *kind, const char *name); /* NULL: gone */
/* Every object that was put so far, in that order; some may be gone. For the stage itself. */
void stage_each_object(void (*each)(const struct kube_kind *kind, const char *name));
void stage_forget_objects(void);
/* A cache that the API server in memory feeds. Likewise. */
struct informer *stage_cache(const struct kube_kind *kind);
/* Requests of this method (NULL: of any) whose path holds this text, so far. */
unsigned stage_requests(const char *method, const char *path);
/* Tasks that count on the two Proplets: scheduled or running. */
int64_t stage_active(void);
/* A string of the Task's status; "" if it is not there. */
const char *stage_task_string(const char *key);
