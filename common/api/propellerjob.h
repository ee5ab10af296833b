/* PropellerJob: a batch of Tasks. Its struct, its phases, its defaults. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/api/task.h"
#include "common/json/codec.h"

/* Index 0 of the names as in task.h. */
enum execution_mode { MODE_CONFIGURABLE, MODE_PARALLEL, MODE_SEQUENTIAL };
enum failure_policy { FAILURE_FAIL_FAST, FAILURE_CONTINUE };
enum job_phase { JOB_PENDING, JOB_RUNNING, JOB_COMPLETED, JOB_FAILED, JOB_PHASES };

extern const char *const EXECUTION_MODE_NAMES[];
extern const char *const FAILURE_POLICY_NAMES[];
extern const char *const JOB_PHASE_NAMES[];

/* Of spec.tasks; larger lists are refused. */
#define JOB_MAX_TASKS 1000
#define JOB_DEFAULT_RETRY_PAUSE "90s"

struct job_fault_tolerance {
    struct json_opt_int retry_limit;
    const char *retry_pause_period; /* Go duration; NULL: the default */
};

struct propellerjob_spec {
    const char *name;
    enum execution_mode execution_mode;
    struct json_objects tasks; /* of struct task_spec */
    struct str_list task_refs;
    bool suspend;
    struct json_opt_int parallelism;
    struct json_opt_int backoff_limit;
    struct json_opt_int active_deadline_seconds;
    struct json_opt_int ttl_seconds_after_finished;
    enum failure_policy failure_policy;
    struct job_fault_tolerance *fault_tolerance; /* NULL: no retry */
    const char *managed_by;
};

struct propellerjob_status {
    enum job_phase phase;
    int64_t start_time_us;
    int64_t finish_time_us;
    int64_t created_at_us;
    int64_t updated_at_us;
    int64_t task_count;
    int64_t completed_count;
    int64_t failed_count;
    int64_t skipped_count;
    int64_t interrupted_count;
    struct json_opt_int resetting_count;
    int64_t reset_at_us;
    const cJSON *quota; /* of the present admission; NULL: there is none */
    const cJSON *conditions;
    int64_t observed_generation;
};

struct propellerjob {
    struct propellerjob_spec spec;
    struct propellerjob_status status;
};

extern const struct json_struct PROPELLERJOB_SPEC;
extern const struct json_struct PROPELLERJOB_STATUS;

/* object: a whole PropellerJob; spec and status may be absent. *ret borrows from it. */
int propellerjob_decode(struct arena *arena, const cJSON *object, struct propellerjob *ret,
                        struct error *err) MUST_CHECK;
/* The value of "status"; owned by the arena. */
cJSON *propellerjob_status_encode(struct arena *arena, const struct propellerjob_status *status);

const struct task_spec *propellerjob_task(const struct propellerjob_spec *spec, size_t index);
/* Returns how often the whole job may run again. */
int64_t propellerjob_retry_limit(const struct propellerjob_spec *spec);
/* Returns the time between a failure and the next run. */
int64_t propellerjob_retry_pause_ms(const struct propellerjob_spec *spec);
/* Reads a retryPausePeriod. false: it is no duration from 0s to 24h. */
bool propellerjob_parse_pause(const char *text, int64_t *ret_ms);
/* false: managedBy names another controller, which owns it alone. */
bool propellerjob_is_ours(const struct propellerjob_spec *spec);
