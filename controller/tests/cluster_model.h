/* What kube-controller-manager and a kubelet make of the Jobs and the Deployment of the Task "one". */
#pragma once

#include <stdbool.h>

/* What becomes of the pods from now on, while they run. */
enum cluster_mood {
    CLUSTER_RUNS,     /* they go on */
    CLUSTER_SUCCEEDS, /* 42 in the termination message */
    CLUSTER_FAILS,    /* exit code 3 */
    CLUSTER_DRAINS,   /* the next pod is taken away, then they go on */
    CLUSTER_REFUSES,  /* no pod is made */
};

struct cluster {
    bool on; /* outside_between calls cluster_step */
    enum cluster_mood mood;
    bool silent; /* what succeeds leaves nothing */
};
extern struct cluster cluster;

/*
 * Every Job that is there gets one pod, which runs at once; each counts as an execution of its
 * TASK_ID in outside.runs. A Job that goes takes its pod along, which counts as stopped if it ran.
 * true: something changed.
 */
bool cluster_step(void);
/* Both Proplets of the stage are of type k8s, and ready; the reconciler of Proplets rests. */
void cluster_set_up(void);
