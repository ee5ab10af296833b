/* Decides what becomes of a VmafxJob when its controller was asked: a pure function. */
#pragma once

#include "common/api/vmafx.h"
#include "controller/events/transitions.h"
#include "controller/vmafx/vmafx_getjob.h"

/* Between two calls, plus or minus a tenth. It doubles with each failure in a row, up to the second one. */
#define VMAFX_JOB_POLL_MS 10000
#define VMAFX_JOB_MAX_WAIT_MS 60000
/* A job that the controller denies for this time without another answer has failed. */
#define VMAFX_JOB_UNKNOWN_MS 120000

/* The answers that followed each other so far, of one controllerJobID. All zero: none. */
struct vmafx_series {
    unsigned failures;        /* calls without a usable answer, in a row */
    int64_t unknown_since_ms; /* of the first NOT_FOUND in a row; 0: the last answer was another */
};

struct vmafx_job_observed {
    struct vmafx_job_status status;
    struct vmafx_answer answer;
    struct vmafx_series series; /* before this answer */
    int64_t now_us;             /* wall clock */
    int64_t now_ms;             /* monotonic, above 0 */
    int32_t jitter;             /* random, from -100 to 100: thousandths of the next wait */
};

struct vmafx_job_plan {
    struct vmafx_job_status status;
    struct vmafx_series series;
    const struct event *event;      /* of the job; NULL: none */
    const struct event *peer_event; /* of its controller; NULL: none */
    uint32_t wait_ms;               /* until the next call; 0: there is none */
};

/* Whether the controller is to be asked: the job has an id there, and has not ended. */
bool vmafx_job_is_followed(const struct vmafx_job_status *status);
/* With VMAFX_SEEN_NOTHING only the phase of a new job is decided. Texts of the status may be in the arena. */
struct vmafx_job_plan vmafx_job_plan(struct arena *arena,
                                     const struct vmafx_job_observed *observed);
