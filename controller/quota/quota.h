/* Kueue holds PropellerJobs that name a queue: the holder, and what wakes a job. */
#pragma once

#include "common/base/timeline.h"
#include "controller/job/holder.h"
#include "controller/shared/refresh_budget.h"

struct quota_flags {
    bool is_enabled;
};

struct quota_deps {
    bool (*is_served)(struct informer *workloads); /* their cache is complete */
    struct informer *workloads;
    struct informer *tasks;
    struct timeline *timeline;
    struct refresh_budget *budget; /* for other words of Kueue */
    const struct refresh_limits *refresh;
};

/*
 * Indexes of the Workloads
 *   INDEX_WORKLOAD_JOB  "<ns>/<job>"  those that a PropellerJob of this name controls, or controlled
 *   INDEX_WORKLOAD_UID  "<uid>"       those of the job with this uid
 * Index of the Tasks
 *   INDEX_TASK_LEFT     "<uid>"       those that nothing controls, by spec.jobId
 */
#define INDEX_WORKLOAD_JOB "job"
#define INDEX_WORKLOAD_UID "job-uid"
#define INDEX_TASK_LEFT "left"

/* self: struct quota_deps. */
extern const struct job_holder QUOTA_HOLDER;
map_fn quota_map_workload; /* a Workload: its job */
/* A Task began, ended, got or lost its device or its podSet: the job that Kueue has to hear about. */
map_fn quota_map_task;
map_fn quota_map_job; /* a job that is gone waits for no write; wakes nothing */
/* Of a Workload that is not of a PropellerJob the metadata stay. */
watch_project_fn quota_project;
void quota_indexes_add(struct store *store);
void quota_task_indexes_add(struct store *store);
