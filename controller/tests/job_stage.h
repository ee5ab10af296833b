/* The reconciler of PropellerJobs in one thread, on an API server in memory; Tasks do what the test
 * says. */
#pragma once

#include "common/tests/fake_api.h"
#include "common/tests/fake_clock.h"
#include "common/tests/suite.h"
#include "controller/job/propellerjob.h"
#include "controller/quota/quota.h"
#include "controller/tests/outside.h"

struct job_stage {
    struct arena *arena;
    struct fake_api *api;
    struct fake_clock clock;
    struct job_deps deps;
    struct quota_deps quota;
    bool has_quota; /* the holder of Kueue is there */
    bool unserved;  /* and cannot watch Workloads */
    void (*watcher)(const cJSON *old,
                    const cJSON *current); /* of each change of an object; NULL: none */
    struct workqueue *task_queue;          /* Tasks that are woken */
    struct workqueue *queue;               /* of the jobs */
    unsigned steps;                        /* requests of the reconciler so far */
    unsigned fail_at;                      /* the step that fails; 0: none */
    enum fault fault;
    const char *event; /* a reason: Events with it are counted; NULL: none */
    unsigned events;
    uint32_t retry_after_ms; /* of the last turn */
    bool kueue_refuses;      /* each write to a Workload */
    const char *refused;     /* of this name; NULL: to all */
    bool invalid;            /* the step is answered with 422 instead */
    const char *late;        /* the watch does not bring this Task; NULL: it brings all */
    bool dead;               /* no more requests; the next process takes over */
    unsigned errors;
};
extern struct job_stage jobs;

void job_stage_set_up(void);
void job_stage_set_up_with_quota(void);
void job_stage_tear_down(void);

/* The job "job" in the namespace "default"; spec is JSON. */
void job_stage_put(const char *spec);
void job_stage_delete(const struct kube_kind *kind, const char *name);
/* Another process writes this condition of the job. */
void job_stage_put_status(const char *condition, const char *reason);
void job_stage_put_task(const char *name, const char *spec);
/* The Task says so; "Failed" is added for TASK_FAILED. */
void job_stage_end_task(const char *name, enum task_phase phase);
/* The Task goes in spite of its finalizer, as when nothing of it is to be stopped any more. */
void job_stage_remove_task(const char *name);
void job_stage_let_go(void); /* all Tasks that are being deleted */
/* Turns until nothing is to be done for ten seconds. */
void job_stage_write_events(void); /* those that wait */
void job_stage_run(void);
void job_stage_turn(void); /* one, which must be due */
/* No turn: time passes. */
void job_stage_wait_ms(int64_t ms);

const cJSON *job_stage_get(const struct kube_kind *kind, const char *name); /* NULL: gone */
size_t job_stage_tasks(void);
/* "Running 3 1 0 0; True TasksRunning": phase, all, completed, failed, skipped; Progressing. */
const char *job_stage_told(void);
/* Requests of this method whose path has this in it. */
unsigned job_stage_requests(const char *method, const char *path);
