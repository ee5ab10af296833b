/* This module decides what becomes of a PropellerJob with a queue, and of its Workload of Kueue. Pure. */
#pragma once

#include "common/api/job_podsets.h"
#include "common/api/names.h"
#include "common/api/propellerjob.h"
#include "common/api/reasons.h"
#include "controller/events/transitions.h"

/*
 * Guarantees
 *
 *  1. A job is granted only with a Workload that is admitted and not evicted, as `is_live` says: read from the API server.
 *     A job that is granted already keeps this while the Workload in the cache is admitted.
 *  2. An admission is taken back, Finished written, and the finalizer taken off only when the job is quiet and its own
 *     status does not say QuotaReserved any more.
 *  3. Only fields that are the operator's are written. spec.active becomes true only where our mark is.
 *  4. reclaimablePods never falls while quota is reserved, and comes after the release.
 *  5. A job is granted only after its Tasks have the labels of their podSets, by which flavors find them.
 *  6. A job is granted only while it is quiet, and only if each podSet has a place for every Task that may be active at once.
 *     If the admission of a granted job is another one, the job is held first.
 */
#define LABEL_JOB_UID "kueue.x-k8s.io/job-uid"
#define ANNOTATION_PODSETS API_GROUP "/podsets"
#define ANNOTATION_SUSPENDED API_GROUP "/suspended"
#define FINALIZER_QUOTA API_GROUP "/quota"

/* An API or an object that is missing is looked for again after this. */
#define QUOTA_LOOK_AGAIN_MS 30000
/* A Task that had begun may be without a device for this time before the Workload is not ready. */
#define QUOTA_UNREADY_US INT64_C(10000000)

/* An object that is read from the API server when it is needed. */
enum quota_read { QUOTA_NOT_READ, QUOTA_MISSING, QUOTA_FOUND };

struct quota_observed {
    const cJSON *job; /* NULL: gone, or being deleted */
    const struct job_podsets *podsets;
    const cJSON *workload; /* NULL: none */
    bool is_served;        /* the cache of Workloads is complete */
    bool is_foreign;       /* the Workload is not the job's */
    bool is_live;          /* the Workload was read from the API server in this reconcile */
    bool quiet;            /* no Task of the job is active or being deleted */
    bool unlabelled;       /* a Task of spec.tasks lacks the label of its podSet */
    int64_t unfinished[JOB_MAX_PODSETS]; /* Tasks of spec.tasks that have not ended */
    /* The status of the job counts those that ended. It is written rarely, and reclaimablePods follows it. */
    bool counted;
    bool all_begun; /* each Task that exists and waits for no other one has begun */
    int64_t
        lost_us; /* for how long the first Task that had begun is without a device; < 0: each has one */
    const char *unreadable; /* why an object that the plan needs cannot be read; NULL: all can */
    enum quota_read class_read;
    int64_t class_value;
    /* Of each podSet: node labels of its flavors, in the order of the assignment. */
    enum quota_read flavors_read;
    const char *flavor_missing;
    const cJSON *flavors[JOB_MAX_PODSETS]; /* array of maps */
    int64_t now_us;
};

enum quota_action {
    QUOTA_NOTHING,
    QUOTA_CREATE,       /* body: the Workload */
    QUOTA_PATCH_SPEC,   /* body: the Workload as it is to be, metadata and spec */
    QUOTA_PATCH_STATUS, /* body: its status as it is to be */
    QUOTA_DELETE,
    QUOTA_FINALIZER_OFF,
    QUOTA_LABEL_TASKS, /* Tasks get the label of their podSet */
};

/* The object that must be read before the plan can be made; then it is made again. */
enum quota_need {
    QUOTA_NEEDS_NOTHING,
    QUOTA_NEEDS_CLASS,   /* the WorkloadPriorityClass of the label */
    QUOTA_NEEDS_LIVE,    /* the Workload, from the API server */
    QUOTA_NEEDS_FLAVORS, /* of the admission */
};

struct quota_plan {
    enum quota_need need;
    enum quota_action action;
    const cJSON *body;

    bool
        is_held; /* the job is queued, or its Workload is left; false: the members below are empty */
    bool granted;
    enum reason reason; /* of QuotaReserved */
    const char *message;
    bool
        is_rewording; /* Kueue gives the reason that the job shows, in other words, which can wait */
    const cJSON *quota; /* status.quota */
    const struct event *event;
    uint32_t requeue_after_ms;
};

struct quota_plan quota_plan(struct arena *arena, const struct quota_observed *observed);

/* Returns the name of the Workload of a job. */
const char *quota_workload_name(struct arena *arena, const char *job, const char *uid);
/* Returns what a job says that names a class which does not exist. */
const char *quota_class_missing(struct arena *arena, const char *class);
