/* The reconcilers in one thread, on an API server in memory. The bridge is the test's: it defines
 * the functions of bridge.h that the reconcilers call. */
#pragma once

#include "common/kube/conditions.h"
#include "common/tests/fake_api.h"
#include "common/tests/fake_clock.h"
#include "common/tests/suite.h"
#include "controller/reconcilers.h"

struct stage {
    struct arena *arena;
    struct fake_api *api;
    struct fake_clock clock;
    struct shared shared; /* of the process that lives now */
    bool dead;            /* set by the test: no more requests; the next process takes over */
    bool drained;         /* what the broker held for the last process has been handled */
    int64_t since_ms;     /* the process is connected since then */
};
extern struct stage stage;

/* roundtrip: ctx is the fake_api. between: called before each turn of a reconciler. */
void stage_set_up(http_roundtrip_fn *roundtrip, void (*between)(void));
void stage_tear_down(void);

/* Turns until nothing is to be done for a while; devices send heartbeats, and a dead process is
 * followed by another. */
void stage_run(void);
void stage_wait_ms(int64_t ms); /* time passes, without a turn */
/* As if from the broker, on the channel of every Proplet. */
void stage_receive(const char *suffix, const char *payload);
/* The broker was away: all are woken that may want to tell a device something. */
void stage_reconnect(void);
/* A user writes metadata and spec; the status stays. */
void stage_change_task(const cJSON *object);
