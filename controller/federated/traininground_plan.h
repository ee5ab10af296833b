/* This module decides what to do with a TrainingRound, from what was observed. Pure. */
#pragma once

#include "common/api/reasons.h"
#include "common/api/traininground.h"
#include "common/base/timeline.h"
#include "controller/events/transitions.h"
#include "controller/task/plan/task_outcome.h"

/*
 *   Pending ──ready──> Running ──k updates──> Aggregating ──model stored──> Completed
 *      │                  │  ^                     │
 *      │                  │  └──an update was unfit, k can still come──┘
 *      └──cannot start────┴──deadline, k out of reach──> Failed
 *
 * The status names the participants whose updates are counted (updateReceived, phase Aggregating)
 * before these are read and made into one model. A new leader aggregates the same ones, so that no
 * update is counted twice and the bytes are the same. An update that turns out to be unfit then
 * (its shape is not that of the others) is taken out by name, for good; the others stay.
 *
 * Tasks of a round that ended are stopped by their own reconciler (round_order.h), which reads the
 * phase that is written here. While the round is aggregated they go on: one of them may be needed.
 *
 * Participants that are Offline or Missing are out of reach at the deadline alone: a round may be
 * created before its devices boot.
 *
 * A model that cannot be read for now is tried again (condition ModelAvailable), before the round starts
 * for timeoutSeconds.
 *
 * A participant whose Proplet is closed and opens by time is Unavailable. A round that could begin with such ones alone
 * stays Pending until they open; one that runs counts those that open before its deadline.
 *
 * A participant whose Proplet does not exist, or is Offline or Unavailable when its Task would be made, gets none;
 * it gets one if it comes back in time. A participant with a Task may answer as long as the Task is
 * open, unless the Proplet is gone for good.
 */

/* Reasons of a round that failed: of its condition Failed, and in the job's message. */

/* The interval at which a store is asked again. */
#define ROUND_STORE_RETRY_US INT64_C(5000000)

/* The values of status.participants[].status. */
#define PART_WAITING "Pending"   /* its Task is to be made */
#define PART_TRAINING "Training" /* its Task waits or runs */
#define PART_RECEIVED                                                                              \
    "Received"           /* its update is there; of a round that completed: it was counted */
#define PART_LATE "Late" /* counted with an update of an earlier round */
#define PART_FAILED "Failed"
#define PART_REJECTED "Rejected" /* its update does not fit those of the others */
#define PART_OFFLINE "Offline"
#define PART_MISSING "Missing"
#define PART_UNAVAILABLE                                                                           \
    "Unavailable"              /* its Proplet is closed, or closes too early, and opens by time */
#define PART_STOPPED "Stopped" /* too late: the round ended without it */

enum member_device {
    DEVICE_HERE, /* also one that was not heard yet */
    DEVICE_OFFLINE,
    DEVICE_UNAVAILABLE,
    DEVICE_MISSING, /* no such Proplet, or it is being deleted */
};

/* One of spec.participants. */
struct round_member {
    const char *task; /* name of its Task, there or not */
    enum member_device device;
    int64_t opens_us;          /* UNAVAILABLE: the next time at which it may open */
    enum task_outcome outcome; /* of its Task; MISSING also where the object has another owner */
    bool foreign;              /* a Task of that name has another owner */
    const char *reason;        /* status.reason of its Task */
    const char *late;          /* Task of an earlier round with an update that was not counted */
    const char *unfit;         /* why its update, which was read, is of no use; NULL: it is */
};

struct round_observed {
    int64_t generation;
    int64_t now_us;
    struct timeline_view time; /* for the waiting times */
    struct traininground round;
    const struct round_member *members; /* of spec.participants */
    bool suspended;                     /* its FederatedJob is */

    /* Why it can never start, such as a model that is too large, or not go on, such as a job that
     * is gone; NULL: nothing. */
    enum reason problem;
    const char *problem_message;
    const char *refused;     /* the API server's last word on a Task; NULL: none */
    const char *blocked;     /* its answer for now, such as a quota; NULL: nothing */
    const char *unavailable; /* why the model store does not answer well, for now; NULL: it does */
    bool
        backlog_drained; /* all messages that the broker held for the last leader have been handled */
    const char *model_ref; /* Aggregating: the model is stored under it; NULL: not yet */
    enum reason failure;   /* Aggregating: why it never can be; REASON_NONE: it may */
    const char *failure_message;
};

/* The one thing that a reconcile of a TrainingRound does before it writes the status. */
enum round_action {
    ROUND_WRITE,        /* nothing beside the status */
    ROUND_CREATE_TASKS, /* Tasks of participants are made */
    ROUND_AGGREGATE,    /* the updates that the stored status names are made into a model */
};

struct round_plan {
    enum round_action action;
    const size_t *create; /* CREATE_TASKS: of spec.participants */
    size_t create_len;
    struct traininground_status status; /* as it is to be stored */

    const struct event *event; /* of a transition; NULL: none */

    uint32_t requeue_after_ms; /* 0: only a change wakes it */
};

struct round_plan round_plan(struct arena *arena, const struct round_observed *observed);

/* Returns how much of the time since then counts. */
int64_t round_age_us(const struct round_observed *observed, int64_t since_us);

/* The stored entry of a participant; NULL: none yet. */
const struct round_participant *round_participant_of(const struct traininground_status *status,
                                                     const char *proplet);
