/* The reconciler of PropellerJobs, their indexes, and the objects that a change wakes. */
#pragma once

#include "controller/job/holder.h"
#include "controller/task/owner.h"

struct job_deps {
    struct timeline *timeline;
    struct informer *tasks;
    struct informer *jobs;
    const struct job_holder *holder; /* NULL: none */
    void *holder_self;
};

/* self: struct job_deps. */
reconcile_fn propellerjob_reconcile;
map_fn propellerjob_map_task; /* a Task came, went, ended or restarted: the jobs that count it */
map_fn propellerjob_map_to_tasks; /* a job gives its Tasks another order, or ended: its Tasks */

/*
 * Indexes of the jobs
 *   INDEX_JOB_ORDERS  "<order>/<uid>"   unfinished ones of ours that order something
 *   INDEX_JOB_NAMES   "<ns>/<task>"     unfinished ones of ours that look at this Task without being
 *                                       told by its owner reference: taskRefs; the names of its
 *                                       children while one of them is taken
 *   INDEX_JOB_REFS    "<ns>/<task>"     unfinished ones of ours with this Task among their taskRefs
 * An unfinished job of ours is found under "open/<uid>" as well.
 */
#define INDEX_JOB_ORDERS "orders"
#define INDEX_JOB_NAMES "names"
#define INDEX_JOB_REFS "refs"
void indexes_add_propellerjob(struct store *store);

/* There is a holder: jobs with a queue are held, and the cache keeps what quota counts. Called before the first job is in
 * the cache. */
void propellerjob_hold_queued(bool holds);

/* Of the Tasks in the spec only their names and who waits for whom: the rest is read again from the
 * API server when they are made. */
watch_project_fn project_propellerjob;
extern const char
    *const UNREAD_OF_PROPELLERJOB[]; /* members that can be omitted before there is a tree */

/* self: the store of the jobs. A job orders its own Tasks, and awaits those that it refers to, too. */
extern const struct task_owner PROPELLERJOB_OWNER;
