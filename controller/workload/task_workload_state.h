/* This module reads the state of a Task's Job or Deployment from it and its pods. Pure. */
#pragma once

#include "common/api/reasons.h"
#include "common/json/json.h"

enum task_workload_step {
    WORKLOAD_ABSENT,
    WORKLOAD_WAITING,   /* its container has not started yet */
    WORKLOAD_STARTED,   /* of a daemon: it is available */
    WORKLOAD_SUCCEEDED, /* a Job only, like the rest */
    WORKLOAD_FAILED,
    WORKLOAD_DISRUPTED, /* its pod was taken away: it may run again, and that is not its failure */
};

struct task_workload_state {
    enum task_workload_step step;
    /* WAITING: the obstacle, REASON_NONE while there is none; FAILED, DISRUPTED: why. Messages
     * hold no times and no counts. */
    enum reason reason;
    const char *message;
    const char *word; /* REASON_OTHER: the cluster's word */
    bool mute;        /* FAILED: its container ended without a word */
    bool stuck;       /* WAITING: that hardly passes by itself */
    bool podless;     /* WAITING: there is no pod, and only an event says why */
};

/* pods: those whose controller is the Job, in any order; whole or projected. */
struct task_workload_state task_workload_job_state(struct arena *arena, const cJSON *job,
                                                   const cJSON *const *pods, size_t count);
/* pods: with the labels of the attempt. */
struct task_workload_state task_workload_daemon_state(struct arena *arena, const cJSON *deployment,
                                                      const cJSON *const *pods, size_t count);

/* Of a Job that failed without a word: result is what it left all the same; NULL: nothing. */
void task_workload_add_words(struct arena *arena, struct task_workload_state *state,
                             const cJSON *result);

/* Of a Job that succeeded, and of whose result only the end is there. */
struct task_workload_state task_workload_cut_state(void);

/* The Job has no pod, because its controller got this refusal when it made one. */
struct task_workload_state task_workload_refused_state(struct arena *arena, const char *message);
