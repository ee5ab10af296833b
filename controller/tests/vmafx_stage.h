/* The reconcilers of vmafx.dev in one thread, on an API server in memory, with peers that a test speaks for. */
#pragma once

#include "common/tests/fake_api.h"
#include "common/tests/fake_clock.h"
#include "common/tests/suite.h"
#include "common/tests/tiny_server.h"
#include "controller/tests/outside.h"
#include "controller/tests/vmafx_peer.h"
#include "controller/vmafx/vmafx.h"

struct vmafx_stage {
    struct arena *arena;
    struct fake_api *api;
    struct fake_clock clock;
    struct vmafx_peer peer;   /* of GetJob */
    struct tiny_server *http; /* "/healthz" is 200, all else 404, until the test says otherwise */
    struct vmafx_flags flags;
    struct vmafx_poll_deps job;
    struct vmafx_node_deps node;
    struct vmafx_poll_deps training;
    struct workqueue *queues[3]; /* of jobs, nodes and trainings */
    const char *pruned;          /* member that the CRD of the cluster does not have; NULL: none */
    bool is_late;                /* the watch brings nothing */
    unsigned steps;              /* requests of the reconcilers so far */
    unsigned fail_at;            /* the step that fails; 0: none */
    enum fault fault;
    bool dead;         /* no more requests; vmafx_stage_restart is due */
    uint32_t again_ms; /* when the last turn wants the next one; 0: not by itself */
};
extern struct vmafx_stage vmafx;

void vmafx_stage_set_up(void);
void vmafx_stage_tear_down(void);
void vmafx_stage_restart(void); /* the next process */

/* An object of the namespace "default"; status is JSON, NULL: as it is. */
void vmafx_stage_put(const struct kube_kind *kind, const char *name, const char *status);
const cJSON *vmafx_stage_status(const struct kube_kind *kind, const char *name);
const char *vmafx_stage_member(const struct kube_kind *kind, const char *name, const char *member);

/* One reconcile; returns what it returned. */
int vmafx_stage_turn(const struct kube_kind *kind, const char *name);
/* The same, and fails the test on an error. */
void vmafx_stage_expect_turn(const struct kube_kind *kind, const char *name);
void vmafx_stage_wait_ms(int64_t ms);

/* "Started Completed ": the reasons of the Events since the last call, in their order. */
const char *vmafx_stage_events(void);
const char *vmafx_stage_last_note(void); /* of these Events */
unsigned vmafx_stage_patches(void);      /* of statuses so far */
