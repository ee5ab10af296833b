/* The values that all plans of Tasks share: the observation that a plan is made from, and the
 * plan. */
#pragma once

#include "common/api/reasons.h"
#include "common/api/task.h"
#include "common/api/timetable.h"
#include "common/base/timeline.h"
#include "controller/device/attempts.h"
#include "controller/device/messages.h"
#include "controller/events/transitions.h"
#include "controller/scheduler/scheduler.h"
#include "controller/task/plan/task_dependencies_plan.h"
#include "controller/task/plan/task_order.h"
#include "controller/workload/task_workload_state.h"

/* Why a result was not taken: labels of propeller_results_rejected_total. */
enum result_verdict {
    RESULT_ACCEPTED,
    RESULT_OTHER_ATTEMPT,
    RESULT_OTHER_CHANNEL,
    RESULT_OTHER_PROPLET,
    RESULT_NOT_RUNNING,
    RESULT_DUPLICATE,      /* an update that came another way before */
    RESULT_INVALID_UPDATE, /* and its results message may be better */
    RESULT_VERDICTS,
};
extern const char *const RESULT_VERDICT_NAMES[RESULT_VERDICTS];

/* A result in the mailbox, parsed. */
struct observed_result {
    uint64_t sequence;
    const char *channel; /* "<domain>/<channel>" it came on */
    struct result_message message;

    /* Of a Task with updates (owner.h); its owner reads them into message. */
    const char *update; /* MAIL_UPDATE: as it came; NULL: none */
    size_t update_len;
    const char *asker;           /* the request that waits for the verdict; NULL: none */
    enum result_verdict verdict; /* RESULT_ACCEPTED: it is judged as any other */
    enum reason reason;          /* of message.error; REASON_NONE: the device said it */
    const char *blob;            /* to be stored before the status names it; NULL: nothing */
    size_t blob_len;
};

/* The outcomes of a checkpoint: see task_checkpoint_plan.h. */
enum checkpoint_verdict {
    CHECKPOINT_STORED,
    CHECKPOINT_NOTED,    /* its bytes are elsewhere */
    CHECKPOINT_REPEATED, /* the status names it already */
    CHECKPOINT_STALE,    /* its step is not above the last one */
    CHECKPOINT_EARLY,
    CHECKPOINT_TOO_LARGE,
    CHECKPOINT_INVALID, /* its bytes have another digest than it says */
    CHECKPOINT_OTHER_ATTEMPT,
    CHECKPOINT_NOT_RUNNING,
    CHECKPOINT_STORE_FAILED,
    CHECKPOINT_VERDICTS,
};

struct observed_checkpoint {
    const char *message_id; /* of its sender's attempt */
    int64_t step;
    struct json_opt_int samples; /* unset: not said */
    const char *sha256; /* NULL: not known yet, so that the same step may be the same bytes */
    size_t bytes;
    const char *ref; /* its place in the store; NULL with uri, or if it is not stored yet */
    const char *uri; /* the place at which the device keeps it; NULL: it handed over the bytes */
    uint64_t token;  /* of its request */
};

/* The device of the assigned Proplet was restarted. */
struct observed_restart {
    uint64_t sequence; /* of its mail; 0: none */
    int64_t came_ms;   /* 0: of another device */
    bool stored;       /* the broker held it: it may have come much earlier */
};

/* The Proplet of status.assignedProplet. */
struct observed_proplet {
    enum proplet_type type; /* PROPLET_TYPE_UNSET: it is gone */
    const char *uid;
    int64_t generation;
    bool exists;
    bool
        withdrawn; /* it does not exist because its pod was scaled away, and its Proplet is there */
    bool ready;    /* condition Ready: its device is alive and takes messages */
    bool reachable; /* external and MQTT is configured; also while the Proplet is being deleted */
    const char *client_id;
    char channel[CHANNEL_KEY_LEN];
    enum proplet_dialect dialect;
    int qos;            /* of messages that are published to it */
    bool results_heard; /* the subscriptions are there, so the broker keeps its results for us */
    int64_t results_since_ms; /* since then (monotonic); 0: it is not */
    bool results_refused;     /* nor will it be: the broker refuses a subscription */
    int64_t heard_since_ms;   /* its signs have been received since then (monotonic); 0: not now */
    bool cordoned;
    bool closed; /* it takes no new Tasks now: status.availability */
    /* It closes before the Task would have ended, if that started now: see task_need_s. */
    bool short_time;
    /* It stops what runs there then (monotonic): a daemon at its close; 0: it does not. */
    int64_t stop_ms;
    enum reason availability; /* why it is closed at stop_ms; otherwise why it is open */
    const char *absence;      /* why it is not ready, as a message; NULL: it is, or is gone */
    int64_t offline_since_us; /* 0: it is not Offline */
    int64_t absent_from_ms;   /* its absence counts from then on (monotonic); 0: not at all */
    int64_t fresh_since_ms;   /* it became Running, or was restarted; 0: not in this process */
    /* Most of the fleet went with it, so that its absence does not count: until then at most
     * (monotonic); 0: not so. See fleet_brake_plan.h. */
    int64_t held_until_ms;
    const cJSON *pod_template; /* for its Tasks' pods; NULL: none, or not allowed */
};

/* Of a Task that the cluster runs: see task_workload_plan.h. */
struct observed_workload {
    bool
        selected; /* it has a pod of its own: it sends nothing to a device, and no result of one counts */
    struct task_workload_state state;
    const cJSON *results;                  /* SUCCEEDED: the result; NULL: nothing */
    const struct task_leftover *leftovers; /* objects to delete, whatever the plan is */
    size_t leftover_count;
    /* The Job, if it has another deadline than the Task; the Deployment, if it was scaled by
     * hand. NULL: it is as it should be. */
    const cJSON *outdated;
};

/* The state of the module of a start that is due, if the controller brings it (owner.h). */
enum bringing_step {
    BRING_NOTHING, /* the device gets what the spec says */
    BRING_CHOICE,  /* a manifest was chosen for a tag */
    BRING_WAIT,
    BRING_REFUSED,
    BRING_READY,
};
struct bringing {
    enum bringing_step step;
    enum reason reason;  /* WAIT, REFUSED */
    const char *message; /* likewise; without times */
    int64_t since_ms;    /* WAIT: in this process (monotonic) */
    int64_t limit_ms;    /* WAIT: the attempt fails this time after scheduledAt; 0: never */
    int64_t retry_ms;    /* WAIT: it is asked again then; 0: it is woken */
    struct task_module
        *module;      /* CHOICE: its manifest; READY: all of it; NULL: it is of no registry */
    const char *note; /* READY: of the Event of a pull that the Task waited for; NULL: none */
};

/* Of spec.schedule, if there is one. */
struct observed_schedule {
    enum reason problem; /* why its times cannot be computed; REASON_NONE: they can */
    const char *message;
    struct timetable timetable; /* its anchor is the plan's */
};

struct task_observed {
    const char *uid;
    const char *name;
    int64_t generation;
    int64_t created_us;
    int64_t deleted_us; /* deletionTimestamp; 0: not deleting */
    bool has_finalizer;
    struct task task;

    struct observed_proplet proplet;
    struct observed_workload workload;
    bool has_updates;       /* its device sends updates: see owner.h */
    struct attempt attempt; /* the memory of this process of status.attempt */
    const struct observed_result *results;
    size_t result_count;
    struct observed_restart restart;
    /* Of a target of a broadcast, which is observed as if it were a Task: the id of its messages;
     * uid is then its key in attempts. NULL: of no target. */
    const char *target_id;
    const struct observed_proplet *owed; /* of each of status.lostAttempts; NULL: not looked at */
    /* Of a broadcast, those that are open: as broadcastResults. */
    const struct task_observed *parts;

    enum task_order order;     /* of its owner */
    const char *order_message; /* why, if the order ends it */
    bool awaited; /* finished, and its outcome is still to be looked at: by Tasks, or an owner */
    const char *rerun; /* value of the restart annotation; NULL: none */
    struct observed_schedule schedule;
    struct dependencies dependencies; /* none: met, or decided before */
    const struct scheduler *scheduler;
    struct schedule_context candidates; /* gathered when the Task may be assigned */
    uint64_t candidates_version;        /* of all of them, also where only some were looked at */

    bool mqtt_configured;
    bool backlog_drained; /* everything stored for the last leader has been handled */
    /* It is to be ended, and what the broker held when that became so is still on its way: its
     * answer may be there, given in time. See task_end_due_ms. */
    bool answer_awaited;
    /* No message is still to come that the broker held when the device came up, when a start
     * went out that it did not acknowledge, or when its silence became too long; and its result
     * will be received. Not before start_from_ms (monotonic; 0: any time). */
    bool may_start;
    int64_t start_from_ms;
    int64_t marker_due_ms; /* the broker is asked again then (monotonic); 0: it was answered */
    bool marker_overdue;   /* it did not answer for a whole time-out */
    /* The reconciler asks for a marker, and the Task waits for one that is sent after
     * marker_since_ms (monotonic). */
    bool marker_wanted, marker_awaited;
    int64_t marker_since_ms;
    /* With spec.checkpoint: the one that waits for its judgement (NULL: none), and why the last one
     * was not stored (NULL: it was). See task_checkpoint_plan.h. */
    const struct observed_checkpoint *checkpoint;
    const char *checkpoint_failure;
    struct task_module *brought; /* with the last start of this process; NULL: nothing, or none */
    bool has_coordinator;
    size_t max_result_bytes;
    int64_t stop_timeout_ms;
    int64_t start_confirm_ms;
    int64_t running_write_delay_ms; /* 0: running is written when the start is out */
    int64_t pod_start_ms;           /* the time that a pod has which cannot start */
    int64_t now_ms;
    int64_t now_us;
    struct timeline_view time; /* for the waiting times */
};

/* The way in which an attempt ended for its device. */
enum task_answer {
    ANSWER_PENDING, /* it has not ended, or the device was not asked (suspend, deadline, deletion) */
    ANSWER_CAME,    /* a result, of whatever content */
    ANSWER_MISSED,  /* no confirmation, restarted, lost */
};

/* The end of a run that left no final phase in the status. */
struct run_end {
    enum task_phase phase;
    enum reason reason; /* REASON_NONE: the status says it */
    const char *message;
};

/* Why a broadcast ends before all of its targets have. */
enum broadcast_end {
    BROADCAST_GOES_ON,
    BROADCAST_SUSPENDED,
    BROADCAST_OVERDUE,
    BROADCAST_STOPPED_BY_OWNER,
    BROADCAST_RESCHEDULED, /* its next run is due, or it is too late for this one */
    BROADCAST_QUORUM,
};
/* The one thing that a reconcile of a Task does beside writing its status. */
enum task_action {
    TASK_WRITE,         /* nothing beside the status */
    TASK_ADD_FINALIZER, /* and nothing else: the reply wakes the Task again */
    TASK_DELETE,        /* the object, whose time to live is over; and nothing else */
    TASK_ASSIGN, /* the status holds a choice, which is assumed before the status is written */
    TASK_AWAIT_CAPACITY,  /* no Proplet fits: it enters the scheduling queue before that write */
    TASK_START,           /* its start is published */
    TASK_CREATE_WORKLOAD, /* its Job or Deployment is made, unless it is there */
    TASK_TELL_TARGETS, /* starts and stops of a broadcast are published, see task_plan_conclude */
    TASK_HOLD,         /* deleted: it waits for its device, and no status is written any more */
    TASK_RELEASE,      /* deleted: its finalizer is removed */
    TASK_RELEASE_IF_STOPPED,  /* the same, once the stop is out: a daemon does not answer one */
    TASK_RELEASE_UNCONFIRMED, /* the same, although its device did not confirm the stop in time */
    TASK_ACTIONS,
};

/* The parts that a plan may have beside its action; a set. */
enum task_companion {
    WITH_STOP = 1,
    WITH_PHASE = 2, /* the phase changes */
    WITH_EVENT = 4,
    WITH_EARLIER = 8,
    WITH_RUN_END = 16,
    WITH_ANSWER = 32,
    WITH_PAYLOAD = 64,
    WITH_OWED = 128, /* stops that are owed are due */
    WITH_TARGETS = 256,
    WITH_REFUSAL = 512,
};

/* The action for one target of a broadcast, and its outcome. */
struct target_action {
    struct task_target before;
    enum task_action action; /* as if the target were a Task; ASSIGN: it has a new index */
    bool stop;
    bool cut;
    enum task_answer answer;
    uint64_t first_mail; /* the first message that it is about; 0: none */

    /* Set by the code that acts. */
    bool undone;            /* it could not be published */
    enum reason unsendable; /* its start can never be published; REASON_NONE: it can */
    const char *message;
};

/* The outcome of an action that did not go as planned. */
enum task_setback_kind {
    SETBACK_NONE,
    SETBACK_FAILED,     /* its start can never be sent, or its workload never be made: it fails */
    SETBACK_HELD_UP,    /* its Job or Deployment cannot be made for now */
    SETBACK_UNSTORABLE, /* the API server does not take the status, which has a payload */
    SETBACK_HELD_BACK,  /* its start must not go out: see bringing_holds */
};
struct task_setback {
    enum task_setback_kind kind;
    enum reason reason;
    const char *message;
    const struct bringing *bringing; /* of HELD_BACK, and of a start that is out; NULL: none */
};

struct task_plan {
    enum task_action action;
    bool cut;  /* its attempt ends because its Proplet closed; of no broadcast */
    bool stop; /* its device is stopped first, and only a deleted Task goes on without that */
    struct schedule_refusal refusal; /* AWAIT_CAPACITY: why no Proplet fits */
    struct target_action *targets;   /* TELL_TARGETS: one for each target; NULL otherwise */
    enum broadcast_end end;          /* TELL_TARGETS */
    /* TELL_TARGETS: of the first start that is held back, else of one that is out. Set by the code that acts. NULL:
     * neither. */
    const struct bringing *bringing;

    struct task_status status; /* as it is to be stored */
    const struct run_end
        *run_end; /* the end of the stored run, as a new one begins; NULL: it does not end */
    const struct event *event;   /* of a transition; NULL: none */
    const struct event *earlier; /* the start, which no write has told yet; NULL: none */
    size_t missed;  /* times of the schedule that passed before this run; counted to a limit */
    bool *owed_due; /* of status.lostAttempts as observed: stops to send now; NULL: none */

    enum checkpoint_verdict checkpoint_verdict; /* of the observed one */
    const char *checkpoint_note; /* of the Event of the one that the status names now; NULL: none */
    size_t rejected[RESULT_VERDICTS];
    const enum result_verdict *verdicts; /* of observed.results; NULL: they were not looked at */
    bool answered;                       /* one of them counts */
    enum task_answer answer;             /* to be noted when the status is written */
    bool has_payload;                    /* the new status holds what a device sent */
    uint64_t ack_up_to;        /* mail that is dealt with once the status is written; 0: none */
    uint32_t requeue_after_ms; /* 0: only a change wakes it */
};

/* Returns the id of the present attempt in messages of its device. */
const char *task_message_id(struct arena *arena, const struct task_observed *observed);
