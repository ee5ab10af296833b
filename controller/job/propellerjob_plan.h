/* This module decides what to do with a PropellerJob, from what was observed. Pure. */
#pragma once

#include "common/base/timeline.h"
#include "controller/events/transitions.h"
#include "controller/job/holder.h"
#include "controller/job/propellerjob_tasks.h"
#include "controller/task/plan/task_outcome.h"

/*
 *   Pending ──> Running ──all done──> Completed | Failed
 *                  │
 *                  └──first failure (FailFast), deadline, a task that the API server refuses──>
 *                     Running, Progressing gives the reason ──rest stopped──> Failed
 *
 * The decision to fail is written first, with its reason, into the condition Progressing. From
 * there the reconciler of the Tasks takes it (struct task_owner): pending Tasks are skipped,
 * active ones are stopped and fail; except for a deadline those of runIf: failure go on. So
 * whatever dies in the middle, the job goes on to the same end for the same reason.
 *
 * No Task is made while another object has the name of one. Tasks are made in the order of their
 * dependencies: without spec.parallelism all at once, with it as many as may be open at a time,
 * each when the Tasks that it waits for have ended. A Task that is never made, because the job
 * fails before, counts as skipped. The cache alone does not prove that a Task was never made: the
 * reply to its creation may have been lost. So the API server is asked before the job ends.
 *
 * A job with spec.faultTolerance that fails by a Task runs again as a whole in place of Failed, if
 * another run may end otherwise:
 *
 *   Running ──failed, all own Tasks final──> Progressing Resetting ──no Task left, pause over──>
 *      Progressing TasksRunning
 *
 * Both changes are written before anything is done for them. While it is resetting no Task is made,
 * so each Task that exists is of the run that failed, and every step can repeat. A suspended job
 * neither begins to reset nor goes on with it. A deadline ends it.
 *
 * A job that a holder looks after (holder.h) and that it has not granted is as a suspended one. Such a job has quota for
 * the Tasks of its spec that may run at once. Open Tasks that its spec does not name any more are deleted, and it is not
 * granted before they are gone. So are those that exist beyond what may run at once, before it is granted again: the
 * spec may be another one since they were made. If the spec becomes invalid, its Tasks end before the job does.
 *
 * A change of nothing but counts is written at most every JOB_COUNTS_INTERVAL_US.
 */
#define JOB_COUNTS_INTERVAL_US INT64_C(5000000)
/* Nor is another text of why no Task can be made said more often: it may differ each time. */
#define JOB_TROUBLE_INTERVAL_US INT64_C(60000000)

struct job_task_state {
    enum task_outcome outcome; /* missing also where the object has another owner */
    bool foreign;
    bool waits;                 /* open, and has not begun: it looks at its dependencies */
    struct str_list depends_on; /* if it waits: names of Task objects, as it was made */
    const char *reason;         /* status.reason */
    int64_t finished_at_us;     /* 0: not yet */
};

/* A write of a holder that is refused for good is tried again after this or later. */
#define JOB_REFUSAL_MS 5000

struct job_observed {
    int64_t generation;
    int64_t created_us;
    int64_t now_us;
    struct timeline_view time; /* for the waiting times */
    struct propellerjob job;
    const struct job_hold *hold; /* NULL: no holder looks after it */
    const struct job_tasks *tasks;
    const struct job_task_state *states; /* of tasks->items */
    const char *refused;                 /* the API server's last word on a child; NULL: none */
    const char *blocked;    /* why one is not made for now, such as a quota; NULL: nothing */
    bool absence_confirmed; /* the API server has none of the Tasks whose outcome is missing */
    size_t
        children; /* Tasks that the job controls, also those that its spec does not name any more */
    struct str_list strays; /* the open ones of them that its spec does not name */
};

/* The Tasks of the run that failed are being deleted, as the status says. */
bool job_is_resetting(const struct propellerjob_status *status);

/* The one thing that a reconcile of a PropellerJob does beside writing the status. */
enum job_action {
    JOB_WRITE,           /* nothing beside the status */
    JOB_CREATE_TASKS,    /* before the status is written */
    JOB_CONFIRM_ABSENCE, /* of the Tasks that are given up; then the job ends, or runs again */
    JOB_DELETE_TASKS,    /* that the job controls: all, or some (excess) */
    JOB_DELETE,          /* the object, whose time to live is over; and nothing else */
};

struct job_plan {
    enum job_action action;
    const size_t *create; /* CREATE_TASKS: of tasks->items, in this order */
    size_t create_len;
    const bool *given_up;              /* of tasks->items: it will never be made */
    const struct map *excess;          /* DELETE_TASKS: names of those Tasks; NULL: all */
    struct propellerjob_status status; /* as it is to be stored */

    const struct event *event; /* of a transition; NULL: none */
    const char *event_note;    /* NULL: that of the event */

    uint32_t requeue_after_ms; /* 0: only a change wakes it */
};

struct job_plan job_plan(struct arena *arena, const struct job_observed *observed);
