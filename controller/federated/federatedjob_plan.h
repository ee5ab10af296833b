/* This module decides what to do with a FederatedJob, from what was observed. Pure. */
#pragma once

#include "common/api/federatedjob.h"
#include "common/api/reasons.h"
#include "common/api/traininground.h"
#include "common/base/timeline.h"
#include "controller/events/transitions.h"

/*
 *   Pending ──> Running ──its last round completed──> Completed
 *                  └──a round failed, or is refused──> Failed ──restart annotation──> Running
 *
 * One round at a time, each made with the model of the one before: completedRounds and
 * aggregatedModelRef are written before the next round is made, so a new leader makes the same one.
 * A round that was deleted before it was counted is made again.
 *
 * A round that failed for want of participants or time is made again after a delay, up to
 * backoffLimit times in a row. Each attempt is an object of its own, begun with the same model. A job
 * that failed by a round goes on after the completed ones when the restart annotation has a new value.
 *
 * The newest kept model is copied to spec.checkpoint.uri in a turn that has nothing else to do, so
 * that a bucket delays no round and no end (condition Exported).
 *
 * A first model that cannot be read for now is tried again for timeoutSeconds (condition ModelAvailable);
 * then the job fails. Old rounds and models are removed before the next round is made, and after
 * the last one is written; where the store does not allow it, condition ModelsRemoved says so, and
 * everything else goes on.
 */

/* Reasons of the condition Failed. */

/* The interval at which a store is asked again. */
#define FEDERATED_STORE_RETRY_US INT64_C(10000000)

/* Of the round after the completed ones. */
struct observed_round {
    bool exists;
    bool foreign;  /* an object of its name has another owner */
    bool deleting; /* nothing is made of its name before it is gone */
    struct traininground_status status;
};

/* The outcome for the copy of the newest kept model in this turn. */
enum export_state {
    EXPORT_NOT_TRIED,
    EXPORT_DONE,
    EXPORT_FAILED,
    EXPORT_WAITS, /* it failed lately */
};
struct observed_export {
    enum export_state state;
    const char *uri;     /* DONE */
    enum reason reason;  /* FAILED */
    const char *message; /* FAILED */
    uint32_t retry_ms;   /* FAILED, WAITS: it may be tried again then */
};

struct federated_observed {
    int64_t generation;
    int64_t now_us;
    struct timeline_view time; /* for the waiting times */
    struct federatedjob job;
    const char *name;
    const char *round_name; /* of the present attempt of the round after the completed ones */
    const char *rerun;      /* value of the restart annotation; NULL: none */
    struct observed_round round;
    enum reason problem;     /* why there can be no round; REASON_NONE: nothing */
    const char *refused;     /* the same at length */
    const char *blocked;     /* its answer for now, such as a quota; NULL: nothing */
    const char *unavailable; /* why the first model cannot be read, for now; NULL: nothing */
    const char *unclean;     /* why what is old could not be removed; NULL: nothing */
    bool cleaned;            /* it was, now */
    struct observed_export export;
};

/* The one thing that a reconcile of a FederatedJob does before it writes the status. */
enum federated_action {
    FEDERATED_WRITE,        /* nothing beside the status */
    FEDERATED_CREATE_ROUND, /* old rounds are removed, and the next one is made */
    FEDERATED_CLEAN,        /* the job has ended: all but its history is removed */
    FEDERATED_EXPORT,       /* there is nothing else to do: the newest kept model is copied */
};

struct federated_plan {
    enum federated_action action;
    int64_t keep_from; /* rounds before this number, and their models, are removed */
    struct federatedjob_status status; /* as it is to be stored */

    const struct event *event;   /* of a transition; NULL: none */
    const char *event_note;      /* in place of that of the event; NULL: none */
    const char *checkpoint_note; /* of the Event of a model that is kept from now on; NULL: none */

    uint32_t requeue_after_ms; /* 0: only a change wakes it */
};

struct federated_plan federated_plan(struct arena *arena,
                                     const struct federated_observed *observed);

/* The number of the round after the completed ones: 1, 2, … */
int64_t federated_next_round(const struct federatedjob_status *status);
int64_t federated_round_attempt(const struct federatedjob_status *status);
/* round-{number}-{job}, of a later attempt round-{number}-{job}-r{attempt}; the same for ever. */
const char *federated_round_name(struct arena *arena, const char *job, int64_t number,
                                 int64_t attempt);
