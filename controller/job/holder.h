/* A job_holder is the table by which a module holds PropellerJobs until something outside lets them run. */
#pragma once

#include "common/api/reasons.h"
#include "common/runtime/controller.h"
#include "common/runtime/events.h"
#include "controller/job/propellerjob_tasks.h"
#include "controller/task/plan/task_outcome.h"

struct module_host;

/* Ends of Tasks come in bursts, and each reconcile looks at all Tasks of the job. */
#define JOB_SETTLE_MS 100

/* The job in its reconcile. All of it is borrowed for the call. */
struct held_job {
    const struct kube_object *object; /* NULL: the job of rc->name does not exist */
    const cJSON *json;                /* in the cache */
    const struct job_tasks *tasks;
};

/* The answer of a holder about a job. */
struct job_hold {
    bool is_governed; /* false: the holder does not look after this job, and nothing else counts */
    bool granted;     /* it may run */
    enum reason reason; /* of the condition QuotaReserved */
    const char *message;
    const cJSON *quota;        /* status.quota while it is granted */
    const struct event *event; /* NULL: none */
    uint32_t requeue_after_ms; /* 0: only a change */
    bool writes;               /* settle has a request to send */
    const void *next;          /* the holder's own, for settle */
    const char
        *refused; /* set by the job: the last word on a write of settle; NULL: none was refused */
};

/*
 * The job asks its holder in each of its reconciles, and does nothing beside it meanwhile. A job that is not granted is as
 * a suspended one, but for the reasons that it shows. It begins when its own status says so: QuotaReserved is True.
 * The order is: the status of the job, its Tasks, then the writes of the holder.
 * A module registers its holder in its create, and stands behind PropellerJob in the list.
 */
struct job_holder {
    /* Reads, and writes nothing. < 0: a failure that may pass; the job is left alone in this reconcile. */
    int (*look)(void *self, struct reconcile *rc, const struct held_job *job, struct job_hold *ret,
                struct error *err);
    /* Adds what the holder needs to the metadata of a Task that is made; index: in spec.tasks. */
    void (*stamp)(void *self, struct arena *arena, const struct job_hold *hold, size_t index,
                  cJSON *metadata);
    /* The status of the job is as look asked for. Carries out what look decided. Idempotent.
     * INVALID, FORBIDDEN, TOO_LARGE: the job says WorkloadRefused, in Progressing or at its end in QuotaReserved. It is
     * tried again after JOB_REFUSAL_MS, then with back-off. */
    int (*settle)(void *self, struct reconcile *rc, const struct held_job *job,
                  const struct job_hold *hold, struct error *err);
};

/* The job names a queue, and no AppWrapper controls it, which would have the quota. */
bool job_is_queued(const cJSON *job);

/* A process has at most one. */
void job_holder_register(const struct module_host *host, const struct job_holder *hooks,
                         void *self);
