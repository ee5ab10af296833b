/* Choosing a Proplet for a Task: filter, score, lowest. Strategies are one pure function each. */
#pragma once

#include "common/api/proplet.h"
#include "common/api/reasons.h"
#include "common/api/task.h"
#include "common/kube/object.h"

/* A device of a Proplet whose pods are one each; it sends heartbeats. */
struct candidate_device {
    const char *client_id;
    int64_t active; /* Tasks scheduled or running on it */
    int64_t total;  /* Tasks that exist and were there last */
};

/* A Proplet as the scheduler sees it. */
struct candidate {
    const char *name;
    const char *uid;
    const struct proplet *proplet;
    const cJSON *labels; /* metadata.labels or NULL */
    bool closed;         /* it takes no new Tasks now: status.availability */
    int64_t close_us;    /* the time at which it closes by time; 0: not known, or it does not */
    int64_t now_us;      /* the time at which it was looked at */
    bool ready;          /* condition Ready is True */
    const char *absence; /* why it is not ready (scheduler_absence); NULL: it is */
    bool connected;      /* condition Connected is True: its device sends heartbeats */
    int64_t active;      /* Tasks scheduled or running on it */
    /* In the order of the pods; none where the Proplet is one device. */
    const struct candidate_device *devices;
    size_t device_count;
};

struct schedule_context {
    const struct candidate *candidates; /* all of the namespace, in name order */
    size_t len;
    const char *last_selected; /* "" if none */
    size_t next; /* index of the first name behind it, len if there is none; scheduler_pick's */
    /* Not NULL: it is known that none fits, and why; there are no candidates. */
    const struct schedule_refusal *known;
};

/* Why there is none: a reason and a message of the Scheduled condition. Constant while nothing
 * changes. */
struct schedule_refusal {
    enum reason reason;
    const char *message;
};

/* Why a candidate is out; in the order in which they are asked. */
enum schedule_filter {
    FILTER_PASSED,
    FILTER_NAME,
    FILTER_TYPE,
    FILTER_LABELS,
    FILTER_DEVICE_TYPE,
    FILTER_CAPABILITIES,
    FILTER_DIALECT,
    FILTER_CORDONED,
    FILTER_CLOSED,
    FILTER_TOO_SHORT, /* open, and closes before the Task would have ended */
    FILTER_NOT_READY,
    FILTER_CAPACITY,
    SCHEDULE_FILTERS,
};
/* Whether a start at now_us has room for need_s (task_need_s) until the close; close_us 0: it does not close by time. */
bool task_fits_until(int64_t need_s, int64_t close_us, int64_t now_us);
enum schedule_filter schedule_filter(const struct task_spec *task,
                                     const struct candidate *candidate);
/* Returns what is said of `count` Proplets that this filter refuses: "lacks label site=lab". It is the same for the same
 * Task. */
const char *schedule_filter_text(struct arena *arena, const struct task_spec *task,
                                 enum schedule_filter filter, size_t count);

/* Returns why this Proplet is not ready, as a message of a Task that waits for it: a device that was
 * never heard is named by its identity, and an Offline Proplet by the time since which it is. */
const char *scheduler_absence(struct arena *arena, const char *name, const struct proplet *proplet);

/* Returns the device that gets a Task which passed the filter: the one with the fewest that are
 * active, then the fewest in all, then the first. NULL: its only one, or none since the Task is
 * a Job. */
const char *schedule_device(const struct task_spec *task, const struct candidate *candidate);

/* Lower is better; ties go to the first in name order. index: of the candidate in the context. */
typedef double schedule_score_fn(const struct schedule_context *context, size_t index);
struct scheduler {
    const char *name;
    schedule_score_fn *score;
};

/*
 * round-robin   the feasible Proplet after the last selected one, in name order around the circle
 * least-loaded  active Tasks over maxTasks; a Proplet without maxTasks counts as if it had
 *               SCHEDULER_DEFAULT_CAPACITY, for each of its devices with heartbeats
 * priority      as least-loaded
 *
 * The wait list decides which Task is first where there is no room for all, for each of them.
 */
#define SCHEDULER_DEFAULT_CAPACITY 10
extern const struct scheduler SCHEDULER_ROUND_ROBIN;
extern const struct scheduler SCHEDULER_LEAST_LOADED;
extern const struct scheduler SCHEDULER_PRIORITY;
extern const char *const SCHEDULER_NAMES[];                  /* NULL-terminated */
const struct scheduler *scheduler_by_name(const char *name); /* NULL: unknown */

/* NULL: none fits, *ret_refusal says why. Pure. */
const struct candidate *scheduler_pick(const struct scheduler *scheduler, struct arena *arena,
                                       const struct task_spec *task,
                                       const struct schedule_context *context,
                                       struct schedule_refusal *ret_refusal);
