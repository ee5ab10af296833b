/* Task: one WebAssembly workload. Its struct, its phases, its defaults. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/api/resources.h"
#include "common/json/codec.h"

/*
 * In every enum of a spec, index 0 of the names is the value that an absent field means in the CRD
 * schema too, or NULL where absence is a state of its own (..._UNSET).
 */
enum task_kind { TASK_KIND_STANDARD, TASK_KIND_FEDERATED };
enum preferred_type { PREFER_ANY, PREFER_K8S, PREFER_EXTERNAL };
enum restart_policy { RESTART_UNSET, RESTART_NEVER, RESTART_ON_FAILURE, RESTART_ALWAYS };
enum task_mode { TASK_MODE_UNSET, TASK_MODE_INFER, TASK_MODE_TRAIN };
enum run_if { RUN_IF_UNSET, RUN_IF_SUCCESS, RUN_IF_FAILURE };
enum lost_policy { LOST_UNSET, LOST_RESCHEDULE, LOST_WAIT, LOST_FAIL };
enum concurrency_policy { CONCURRENCY_UNSET, CONCURRENCY_FORBID, CONCURRENCY_REPLACE };

extern const char *const TASK_KIND_NAMES[];
extern const char *const PREFERRED_TYPE_NAMES[];
extern const char *const RESTART_POLICY_NAMES[];
extern const char *const TASK_MODE_NAMES[];
extern const char *const RUN_IF_NAMES[];
extern const char *const LOST_POLICY_NAMES[];
extern const char *const CONCURRENCY_POLICY_NAMES[];

struct proplet_selector {
    const char *proplet_id; /* name of the Proplet object */
    const cJSON *match_labels;
    struct str_list match_device_types;
    struct str_list match_capabilities;
};

struct monitoring_profile {
    struct json_opt_bool enabled;
    const char *interval; /* Go duration */
    struct json_opt_bool collect_cpu;
    struct json_opt_bool collect_memory;
    struct json_opt_bool collect_disk_io;
    struct json_opt_bool collect_threads;
    struct json_opt_bool collect_file_descriptors;
    struct json_opt_bool export_to_mqtt;
    struct json_opt_bool retain_history;
    struct json_opt_int history_size;
};

/* A Task with this hands over its state, and the next attempt goes on there. */
struct task_checkpoint_spec {
    const char *interval; /* Go duration; NULL: the default */
    struct json_opt_int keep;
};

struct task_spec {
    const char *name;
    const char *function_name;
    enum task_kind kind;
    const char *image_url;
    const char *file; /* base64; like env not in the cache: read the object for it */
    struct str_list cli_args;
    const cJSON *inputs; /* strings and numbers with all their digits */
    const cJSON *env;
    struct proplet_selector *proplet_selector; /* NULL: none */
    enum preferred_type preferred_proplet_type;
    struct resource_amounts *resource_requirements; /* NULL: none */
    bool daemon;
    enum restart_policy restart_policy;
    bool broadcast;
    enum task_mode mode;
    const cJSON *metadata;
    bool encrypted;
    const char *kbs_resource_path;
    struct str_list depends_on;
    enum run_if run_if;
    const char *workflow_id;
    const char *job_id;
    const char *schedule;
    const char *timezone;
    bool is_recurring;
    struct json_opt_int priority;
    struct monitoring_profile *monitoring_profile; /* NULL: the device's own settings */
    bool suspend;
    struct json_opt_int backoff_limit;
    struct json_opt_int active_deadline_seconds;
    struct json_opt_int ttl_seconds_after_finished;
    enum lost_policy proplet_lost_policy;
    struct json_opt_int proplet_lost_seconds;
    enum concurrency_policy concurrency_policy;
    struct json_opt_int lost_attempts_limit; /* unset: none */
    struct json_opt_int starting_deadline_seconds;
    struct json_opt_int history_limit;
    struct json_opt_int broadcast_quorum;
    struct task_checkpoint_spec *checkpoint; /* NULL: none */
    const cJSON *image_pull_secrets;         /* [{"name"}]; NULL: none */
    bool beyond_embedded; /* no field: embedded_problem found one when it was decoded */
    int64_t need_s;       /* no field: see task_need_s */
};

/*
 *   pending ──> scheduled ──> running ──> completed, failed, interrupted ──> pending
 *      └─────────────┴──────────> skipped
 *
 * and every shorter way to an end: task_may_become is the whole table.
 */
enum task_phase {
    TASK_PENDING,
    TASK_SCHEDULED,
    TASK_RUNNING,
    TASK_COMPLETED,
    TASK_FAILED,
    TASK_INTERRUPTED,
    TASK_SKIPPED,
    TASK_PHASES
};
extern const char *const TASK_PHASE_NAMES[];

/* Staying is allowed. */
bool task_may_become(enum task_phase from, enum task_phase to);
/* Completed, failed or skipped: nothing happens any more unless a user or the clock asks. */
bool task_is_final(enum task_phase phase);

struct task_targets {
    int64_t total;
    int64_t completed;
    int64_t failed;
};

/* One Proplet's part in a broadcast. */
enum target_phase {
    TARGET_SCHEDULED,
    TARGET_RUNNING,
    TARGET_COMPLETED,
    TARGET_FAILED,
    TARGET_INTERRUPTED, /* told to stop when the others had decided */
};
extern const char *const TARGET_PHASE_NAMES[];

#define BROADCAST_MAX_TARGETS 500

struct task_target {
    const char *proplet; /* name of the Proplet object */
    const char *proplet_uid;
    const char *client_id; /* as assigned_client_id */
    int64_t index;         /* in the message ids; no two starts of an attempt have the same */
    enum target_phase phase;
    int64_t started_at_us;
    int64_t finished_at_us;
    const char *reason;
    const cJSON *results; /* like error not in the cache */
    const char *error;
    struct json_opt_int result_bytes; /* of its answer; unset: it has not answered */
    bool omitted;                     /* the answer is not kept */
    struct json_opt_int restarts;     /* of its device, under this attempt */
};

/* An attempt that its device may still compute, and that must be stopped when the device is
 * back. */
struct lost_attempt {
    const char *proplet;   /* name of the Proplet object */
    const char *client_id; /* as assigned_client_id */
    const char *id;        /* of its messages */
};

/* The newest checkpoint of a Task. */
struct task_checkpoint {
    struct json_opt_int step;
    struct json_opt_int samples; /* unset: the device did not say */
    int64_t time_us;
    int64_t attempt;
    const char *proplet; /* name of the Proplet object */
    const char *sha256;  /* lower case hex */
    struct json_opt_int bytes;
    const char *ref; /* model://sha256:<digits>; NULL: the bytes are not stored here */
    const char *uri; /* the place where the device keeps the bytes; NULL likewise */
};

/* A checkpoint whose bytes are stored here. */
struct stored_checkpoint {
    struct json_opt_int step;
    const char *ref;
    struct json_opt_int bytes;
};

/* The module of a run, if it comes from a registry. Digests are "sha256:<hex>". */
struct task_module {
    const char *manifest; /* of the manifest or index that the reference meant */
    const char *digest;   /* of the module; NULL: not known yet */
    struct json_opt_int bytes;
};

struct task_status {
    enum task_phase phase;
    const char *assigned_proplet; /* name of the Proplet object */
    const char *
        assigned_proplet_uid; /* of that object: one that is made later under its name is another */
    const char *assigned_client_id; /* the device, where each pod is one; NULL: its only one */
    int64_t created_at_us;
    int64_t scheduled_at_us; /* with microseconds: it orders the assignments */
    int64_t started_at_us;
    int64_t finished_at_us;
    int64_t updated_at_us;
    int64_t next_run_us;   /* of its schedule; 0: none */
    int64_t last_run_us;   /* the time that the present or last run is for */
    int64_t next_retry_us; /* a failed attempt is followed by another one then; 0: it is not */
    const cJSON *results;  /* NULL: none; JSON null is a result */
    const char *error;
    const char *reason;
    const cJSON *conditions;
    const cJSON *latest_metrics;
    int64_t observed_generation;
    int64_t attempt;                          /* 1, 2, … over the whole life; 0: never assigned */
    int64_t failures;                         /* of this run */
    struct json_opt_int device_restarts;      /* attempts of this run that a restart ended */
    struct json_opt_int unconfirmed_attempts; /* of this run, given up for another Proplet */
    struct json_opt_int lost_attempt_count;   /* of this run, whose Proplet was lost */
    /* Longest time that an attempt of this run had before its Proplet closed by time. */
    struct json_opt_int cut_after_seconds;
    struct json_opt_int prior_attempts; /* those of earlier runs */
    int64_t run;
    const char *observed_restart; /* value of the restart annotation that was acted on last */
    const cJSON *history;
    struct task_targets *targets;            /* NULL: no broadcast */
    struct json_objects broadcast_results;   /* of struct task_target */
    struct json_objects lost_attempts;       /* of struct lost_attempt, oldest first */
    struct task_checkpoint *last_checkpoint; /* NULL: none */
    struct json_objects checkpoints;         /* of struct stored_checkpoint, newest first */
    struct task_module *module;              /* NULL: none, or not known yet */
};

struct task {
    struct task_spec spec;
    struct task_status status;
};

extern const struct json_struct TASK_SPEC;
extern const struct json_struct TASK_STATUS;

/* object: a whole Task; spec and status may be absent. *ret borrows from it. The Go operator of
 * the group counts no attempts, so a run that it began is attempt 1: its id is the same. */
int task_decode(struct arena *arena, const cJSON *object, struct task *ret,
                struct error *err) MUST_CHECK;
/* The value of "status"; owned by the arena. */
cJSON *task_status_encode(struct arena *arena, const struct task_status *status);

/* It runs at every time of its schedule. */
bool task_recurs(const struct task_spec *spec);
/* Pending, and its run has not begun, or did not take place (finishedAt): the schedule will tell. */
bool task_awaits_schedule(const struct task *task);

/* The values of absent fields. */
#define TASK_DEFAULT_PRIORITY 50
#define TASK_DEFAULT_TIMEZONE "UTC"
#define TASK_DEFAULT_BACKOFF_LIMIT 0
#define TASK_DEFAULT_PROPLET_LOST_SECONDS 120
#define TASK_DEFAULT_HISTORY_LIMIT 3
#define TASK_DEFAULT_CHECKPOINT_SECONDS 600
#define TASK_DEFAULT_CHECKPOINT_KEEP 2
/* The device's own interval between two samples of a Task. */
#define TASK_DEFAULT_MONITORING_INTERVAL_MS 10000

int64_t task_priority(const struct task_spec *spec);
int64_t task_backoff_limit(const struct task_spec *spec);
/* Returns the seconds that a start must have until its Proplet closes; 0: any start will do. An attempt ends by its
 * deadline, and one that had cut_after (status.cutAfterSeconds) was not done. */
int64_t task_need_s(const struct task_spec *spec, struct json_opt_int cut_after);
int64_t task_proplet_lost_seconds(const struct task_spec *spec);
int64_t task_history_limit(const struct task_spec *spec);
/* checkpoint may be NULL. A duration outside of its limits is the default. */
#define TASK_MIN_CHECKPOINT_SECONDS 10
#define TASK_MAX_CHECKPOINT_SECONDS 86400
int64_t task_checkpoint_seconds(const struct task_checkpoint_spec *checkpoint);
int64_t task_checkpoint_keep(const struct task_checkpoint_spec *checkpoint);
/* The export to call: object_name if there is no functionName. */
const char *task_function_name(const struct task_spec *spec, const char *object_name);
const char *task_timezone(const struct task_spec *spec);
enum run_if task_run_if(const struct task_spec *spec);
enum concurrency_policy task_concurrency_policy(const struct task_spec *spec);
/* Reschedule, but Wait for a Task pinned to one Proplet. */
enum lost_policy task_lost_policy(const struct task_spec *spec);
/* The Proplet that it is pinned to, or NULL. */
const char *task_pinned_proplet(const struct task_spec *spec);
/* Whether a Linux device reports metrics while it runs the Task: the sign that its start arrived. */
bool task_sends_metrics(const struct task_spec *spec);
/* profile may be NULL. Never less than a second, the shortest interval that a start can carry. */
int64_t task_monitoring_interval_ms(const struct monitoring_profile *profile);
