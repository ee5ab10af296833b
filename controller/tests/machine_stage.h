/* The reconciler of ScheduledMachines in one thread, on an API server in memory. The stage speaks for the manager of
 * Cluster API, for kubelets, and for disruption budgets. */
#pragma once

#include "common/tests/fake_api.h"
#include "common/tests/fake_clock.h"
#include "common/tests/suite.h"
#include "common/tests/tiny_server.h"
#include "controller/machine/machine.h"
#include "controller/tests/outside.h"

struct machine_stage {
    struct arena *arena;
    struct fake_api *api;
    struct fake_clock clock;
    struct tiny_server *http;
    struct machine_flags flags;
    struct machine_deps deps;
    unsigned steps;   /* requests of the reconciler so far */
    unsigned fail_at; /* the step that fails; 0: none */
    enum fault fault;
    bool dead;               /* no more requests; the next process takes over */
    bool keeps_node;         /* a Node outlives its Machine */
    bool is_late;            /* the watch brings nothing */
    bool hides_pods;         /* lists of pods are answered with 500 */
    bool still;              /* the manager does nothing */
    bool has_no_machines;    /* the API server does not have the kind */
    int node_refusal;        /* what a patch of the Node is answered with; 0: as it comes */
    const char *provider_id; /* of the Node; that of the Machine is kind://one */
    int eviction;            /* what an eviction is answered with: 201, or a refusal */
    int refusal;             /* what a creation is answered with; 0: as it comes */
    const struct kube_kind
        *unreadable; /* one object of this kind is answered with unread; NULL: none */
    int unread;
    const struct kube_kind *intruder; /* another owner makes it right before us; NULL: none */
    const struct kube_kind *usurper;  /* another owner takes its name right before it is deleted */
    unsigned evictions, machines, pods_deleted; /* so far: evicted, made, deleted without asking */
    const char *broken; /* a guarantee that was broken, in words; NULL: none */
    uint32_t again_ms;  /* of the last turn */
};
extern struct machine_stage mstage;

#define STAGE_NS "propeller-system" /* of the controller */
#define STAGE_ANYTIME "\"daysOfWeek\":[\"mon-sun\"],\"hoursOfDay\":[\"0-23\"]"
#define STAGE_NEVER "\"daysOfWeek\":[],\"hoursOfDay\":[]"

extern const struct kube_kind STAGE_BOOTSTRAP, STAGE_INFRASTRUCTURE;

void machine_stage_set_up(void);
void machine_stage_tear_down(void);

/* The ScheduledMachine "one" with this schedule (members of JSON), and more members of its spec. */
void machine_stage_put(const char *schedule, const char *more);
/* A pod on the Node. */
void machine_stage_put_pod(const char *name);
/* An object of another owner, under the name of ours. */
void machine_stage_put_foreign(const struct kube_kind *kind);
void machine_stage_annotate_node(const char *key, const char *value);
/* A user deletes it. */
void machine_stage_delete(void);
/* The CRDs of Cluster API go, and the process begins again. */
void machine_stage_end_cluster_api(void);
/* One turn; a dead process is followed by the next. */
int machine_stage_turn(void);
/* The manager of Cluster API: a Machine gets a finalizer and a Node, and takes its Node with it. true: something was
 * done. */
bool machine_stage_manage(void);
/* Turns, with what the others do in between, until nothing changes for a while. Time passes as the turns ask. */
void machine_stage_run(void);
void machine_stage_wait_ms(int64_t ms);

const cJSON *machine_stage_get(const struct kube_kind *kind, const char *name); /* NULL: gone */
const char *machine_stage_phase(void);              /* "gone" without the object */
const char *machine_stage_text(const char *member); /* of the status */
const char *machine_stage_condition(const char *type, const char *member);
/* The ConfigMap of the reclaim agent; NULL: there is none. */
const cJSON *machine_stage_agent(void);
/* Another owner has a ConfigMap of that name. */
void machine_stage_put_foreign_agent(void);
/* "B I M N A p<pods>": what exists of bootstrap, infrastructure, Machine, Node and ConfigMap of the agent, and how many
 * pods. */
const char *machine_stage_left(void);
