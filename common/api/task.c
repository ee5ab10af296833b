#include "common/api/task.h"

#include "common/api/decode.h"
#include "common/api/embedded.h"
#include "common/base/str.h"

const char *const TASK_KIND_NAMES[] = { "standard", "federated", NULL };
const char *const PREFERRED_TYPE_NAMES[] = { "any", "k8s", "external", NULL };
const char *const RESTART_POLICY_NAMES[] = { NULL, "Never", "OnFailure", "Always", NULL };
const char *const TASK_MODE_NAMES[] = { NULL, "infer", "train", NULL };
const char *const RUN_IF_NAMES[] = { NULL, "success", "failure", NULL };
const char *const LOST_POLICY_NAMES[] = { NULL, "Reschedule", "Wait", "Fail", NULL };
const char *const CONCURRENCY_POLICY_NAMES[] = { NULL, "Forbid", "Replace", NULL };
const char *const TASK_PHASE_NAMES[] = {
    [TASK_PENDING] = "pending", [TASK_SCHEDULED] = "scheduled",
    [TASK_RUNNING] = "running", [TASK_COMPLETED] = "completed",
    [TASK_FAILED] = "failed",   [TASK_INTERRUPTED] = "interrupted",
    [TASK_SKIPPED] = "skipped", [TASK_PHASES] = NULL,
};

static const struct json_field SELECTOR_FIELDS[] = {
    JSON_FIELD(FIELD_STRING, struct proplet_selector, proplet_id, "propletId"),
    JSON_FIELD(FIELD_MAP, struct proplet_selector, match_labels, "matchLabels"),
    JSON_FIELD(FIELD_STRINGS, struct proplet_selector, match_device_types, "matchDeviceTypes"),
    JSON_FIELD(FIELD_STRINGS, struct proplet_selector, match_capabilities, "matchCapabilities"),
};
static const struct json_struct SELECTOR = JSON_STRUCT(struct proplet_selector, SELECTOR_FIELDS);

static const struct json_field MONITORING_FIELDS[] = {
    JSON_FIELD(FIELD_OPT_BOOL, struct monitoring_profile, enabled, "enabled"),
    JSON_FIELD(FIELD_STRING, struct monitoring_profile, interval, "interval"),
    JSON_FIELD(FIELD_OPT_BOOL, struct monitoring_profile, collect_cpu, "collectCpu"),
    JSON_FIELD(FIELD_OPT_BOOL, struct monitoring_profile, collect_memory, "collectMemory"),
    JSON_FIELD(FIELD_OPT_BOOL, struct monitoring_profile, collect_disk_io, "collectDiskIo"),
    JSON_FIELD(FIELD_OPT_BOOL, struct monitoring_profile, collect_threads, "collectThreads"),
    JSON_FIELD(FIELD_OPT_BOOL, struct monitoring_profile, collect_file_descriptors,
               "collectFileDescriptors"),
    JSON_FIELD(FIELD_OPT_BOOL, struct monitoring_profile, export_to_mqtt, "exportToMqtt"),
    JSON_FIELD(FIELD_OPT_BOOL, struct monitoring_profile, retain_history, "retainHistory"),
    JSON_FIELD(FIELD_OPT_INT, struct monitoring_profile, history_size, "historySize"),
};
static const struct json_struct MONITORING =
    JSON_STRUCT(struct monitoring_profile, MONITORING_FIELDS);

static const struct json_field CHECKPOINT_SPEC_FIELDS[] = {
    JSON_FIELD(FIELD_STRING, struct task_checkpoint_spec, interval, "interval"),
    JSON_FIELD(FIELD_OPT_INT, struct task_checkpoint_spec, keep, "keep"),
};
static const struct json_struct CHECKPOINT_SPEC =
    JSON_STRUCT(struct task_checkpoint_spec, CHECKPOINT_SPEC_FIELDS);

static const struct json_field SPEC_FIELDS[] = {
    JSON_FIELD(FIELD_STRING, struct task_spec, name, "name"),
    JSON_FIELD(FIELD_STRING, struct task_spec, function_name, "functionName"),
    JSON_FIELD_ENUM(struct task_spec, kind, "kind", TASK_KIND_NAMES),
    JSON_FIELD(FIELD_STRING, struct task_spec, image_url, "imageUrl"),
    JSON_FIELD(FIELD_STRING, struct task_spec, file, "file"),
    JSON_FIELD(FIELD_STRINGS, struct task_spec, cli_args, "cliArgs"),
    JSON_FIELD(FIELD_ARRAY, struct task_spec, inputs, "inputs"),
    JSON_FIELD(FIELD_MAP, struct task_spec, env, "env"),
    JSON_FIELD_NESTED(FIELD_OBJECT, struct task_spec, proplet_selector, "propletSelector",
                      &SELECTOR),
    JSON_FIELD_ENUM(struct task_spec, preferred_proplet_type, "preferredPropletType",
                    PREFERRED_TYPE_NAMES),
    JSON_FIELD_NESTED(FIELD_OBJECT, struct task_spec, resource_requirements, "resourceRequirements",
                      &RESOURCE_AMOUNTS),
    JSON_FIELD(FIELD_BOOL, struct task_spec, daemon, "daemon"),
    JSON_FIELD_ENUM(struct task_spec, restart_policy, "restartPolicy", RESTART_POLICY_NAMES),
    JSON_FIELD(FIELD_BOOL, struct task_spec, broadcast, "broadcast"),
    JSON_FIELD_ENUM(struct task_spec, mode, "mode", TASK_MODE_NAMES),
    JSON_FIELD(FIELD_ANY, struct task_spec, metadata, "metadata"),
    JSON_FIELD(FIELD_BOOL, struct task_spec, encrypted, "encrypted"),
    JSON_FIELD(FIELD_STRING, struct task_spec, kbs_resource_path, "kbsResourcePath"),
    JSON_FIELD(FIELD_STRINGS, struct task_spec, depends_on, "dependsOn"),
    JSON_FIELD_ENUM(struct task_spec, run_if, "runIf", RUN_IF_NAMES),
    JSON_FIELD(FIELD_STRING, struct task_spec, workflow_id, "workflowId"),
    JSON_FIELD(FIELD_STRING, struct task_spec, job_id, "jobId"),
    JSON_FIELD(FIELD_STRING, struct task_spec, schedule, "schedule"),
    JSON_FIELD(FIELD_STRING, struct task_spec, timezone, "timezone"),
    JSON_FIELD(FIELD_BOOL, struct task_spec, is_recurring, "isRecurring"),
    JSON_FIELD(FIELD_OPT_INT, struct task_spec, priority, "priority"),
    JSON_FIELD_NESTED(FIELD_OBJECT, struct task_spec, monitoring_profile, "monitoringProfile",
                      &MONITORING),
    JSON_FIELD(FIELD_BOOL, struct task_spec, suspend, "suspend"),
    JSON_FIELD(FIELD_OPT_INT, struct task_spec, backoff_limit, "backoffLimit"),
    JSON_FIELD(FIELD_OPT_INT, struct task_spec, active_deadline_seconds, "activeDeadlineSeconds"),
    JSON_FIELD(FIELD_OPT_INT, struct task_spec, ttl_seconds_after_finished,
               "ttlSecondsAfterFinished"),
    JSON_FIELD_ENUM(struct task_spec, proplet_lost_policy, "propletLostPolicy", LOST_POLICY_NAMES),
    JSON_FIELD(FIELD_OPT_INT, struct task_spec, proplet_lost_seconds, "propletLostSeconds"),
    JSON_FIELD(FIELD_OPT_INT, struct task_spec, lost_attempts_limit, "lostAttemptsLimit"),
    JSON_FIELD_ENUM(struct task_spec, concurrency_policy, "concurrencyPolicy",
                    CONCURRENCY_POLICY_NAMES),
    JSON_FIELD(FIELD_OPT_INT, struct task_spec, starting_deadline_seconds,
               "startingDeadlineSeconds"),
    JSON_FIELD(FIELD_OPT_INT, struct task_spec, history_limit, "historyLimit"),
    JSON_FIELD(FIELD_OPT_INT, struct task_spec, broadcast_quorum, "broadcastQuorum"),
    JSON_FIELD_NESTED(FIELD_OBJECT, struct task_spec, checkpoint, "checkpoint", &CHECKPOINT_SPEC),
    JSON_FIELD(FIELD_ARRAY, struct task_spec, image_pull_secrets, "imagePullSecrets"),
};
const struct json_struct TASK_SPEC = JSON_STRUCT(struct task_spec, SPEC_FIELDS);

static const struct json_field TARGETS_FIELDS[] = {
    JSON_FIELD(FIELD_COUNT, struct task_targets, total, "total"),
    JSON_FIELD(FIELD_COUNT, struct task_targets, completed, "completed"),
    JSON_FIELD(FIELD_COUNT, struct task_targets, failed, "failed"),
};
static const struct json_struct TARGETS = JSON_STRUCT(struct task_targets, TARGETS_FIELDS);

const char *const TARGET_PHASE_NAMES[] = { "scheduled", "running",     "completed",
                                           "failed",    "interrupted", NULL };

static const struct json_field TARGET_FIELDS[] = {
    JSON_FIELD(FIELD_STRING, struct task_target, proplet, "proplet"),
    JSON_FIELD(FIELD_STRING, struct task_target, proplet_uid, "propletUid"),
    JSON_FIELD(FIELD_STRING, struct task_target, client_id, "clientId"),
    JSON_FIELD(FIELD_COUNT, struct task_target, index, "index"),
    JSON_FIELD_ENUM(struct task_target, phase, "phase", TARGET_PHASE_NAMES),
    JSON_FIELD(FIELD_TIME, struct task_target, started_at_us, "startedAt"),
    JSON_FIELD(FIELD_TIME, struct task_target, finished_at_us, "finishedAt"),
    JSON_FIELD(FIELD_STRING, struct task_target, reason, "reason"),
    JSON_FIELD(FIELD_ANY, struct task_target, results, "results"),
    JSON_FIELD(FIELD_STRING, struct task_target, error, "error"),
    JSON_FIELD(FIELD_OPT_INT, struct task_target, result_bytes, "resultBytes"),
    JSON_FIELD(FIELD_BOOL, struct task_target, omitted, "omitted"),
    JSON_FIELD(FIELD_OPT_INT, struct task_target, restarts, "restarts"),
};
static const struct json_struct TARGET = JSON_STRUCT(struct task_target, TARGET_FIELDS);

static const struct json_field LOST_ATTEMPT_FIELDS[] = {
    JSON_FIELD(FIELD_STRING, struct lost_attempt, proplet, "proplet"),
    JSON_FIELD(FIELD_STRING, struct lost_attempt, client_id, "clientId"),
    JSON_FIELD(FIELD_STRING, struct lost_attempt, id, "id"),
};
static const struct json_struct LOST_ATTEMPT =
    JSON_STRUCT(struct lost_attempt, LOST_ATTEMPT_FIELDS);

static const struct json_field CHECKPOINT_FIELDS[] = {
    JSON_FIELD(FIELD_OPT_INT, struct task_checkpoint, step, "step"),
    JSON_FIELD(FIELD_OPT_INT, struct task_checkpoint, samples, "samples"),
    JSON_FIELD(FIELD_TIME, struct task_checkpoint, time_us, "time"),
    JSON_FIELD(FIELD_COUNT, struct task_checkpoint, attempt, "attempt"),
    JSON_FIELD(FIELD_STRING, struct task_checkpoint, proplet, "proplet"),
    JSON_FIELD(FIELD_STRING, struct task_checkpoint, sha256, "sha256"),
    JSON_FIELD(FIELD_OPT_INT, struct task_checkpoint, bytes, "bytes"),
    JSON_FIELD(FIELD_STRING, struct task_checkpoint, ref, "ref"),
    JSON_FIELD(FIELD_STRING, struct task_checkpoint, uri, "uri"),
};
static const struct json_struct CHECKPOINT = JSON_STRUCT(struct task_checkpoint, CHECKPOINT_FIELDS);

static const struct json_field STORED_CHECKPOINT_FIELDS[] = {
    JSON_FIELD(FIELD_OPT_INT, struct stored_checkpoint, step, "step"),
    JSON_FIELD(FIELD_STRING, struct stored_checkpoint, ref, "ref"),
    JSON_FIELD(FIELD_OPT_INT, struct stored_checkpoint, bytes, "bytes"),
};
static const struct json_struct STORED_CHECKPOINT =
    JSON_STRUCT(struct stored_checkpoint, STORED_CHECKPOINT_FIELDS);

static const struct json_field MODULE_FIELDS[] = {
    JSON_FIELD(FIELD_STRING, struct task_module, manifest, "manifest"),
    JSON_FIELD(FIELD_STRING, struct task_module, digest, "digest"),
    JSON_FIELD(FIELD_OPT_INT, struct task_module, bytes, "bytes"),
};
static const struct json_struct MODULE = JSON_STRUCT(struct task_module, MODULE_FIELDS);

static const struct json_field STATUS_FIELDS[] = {
    JSON_FIELD_ENUM(struct task_status, phase, "phase", TASK_PHASE_NAMES),
    JSON_FIELD(FIELD_STRING, struct task_status, assigned_proplet, "assignedProplet"),
    JSON_FIELD(FIELD_STRING, struct task_status, assigned_proplet_uid, "assignedPropletUid"),
    JSON_FIELD(FIELD_STRING, struct task_status, assigned_client_id, "assignedClientId"),
    JSON_FIELD(FIELD_TIME, struct task_status, created_at_us, "createdAt"),
    JSON_FIELD(FIELD_MICROTIME, struct task_status, scheduled_at_us, "scheduledAt"),
    JSON_FIELD(FIELD_TIME, struct task_status, started_at_us, "startedAt"),
    JSON_FIELD(FIELD_TIME, struct task_status, finished_at_us, "finishedAt"),
    JSON_FIELD(FIELD_TIME, struct task_status, updated_at_us, "updatedAt"),
    JSON_FIELD(FIELD_TIME, struct task_status, next_run_us, "nextRun"),
    JSON_FIELD(FIELD_TIME, struct task_status, last_run_us, "lastRun"),
    JSON_FIELD(FIELD_TIME, struct task_status, next_retry_us, "nextRetry"),
    JSON_FIELD(FIELD_ANY, struct task_status, results, "results"),
    JSON_FIELD(FIELD_STRING, struct task_status, error, "error"),
    JSON_FIELD(FIELD_STRING, struct task_status, reason, "reason"),
    JSON_FIELD(FIELD_ARRAY, struct task_status, conditions, "conditions"),
    JSON_FIELD(FIELD_ANY, struct task_status, latest_metrics, "latestMetrics"),
    JSON_FIELD(FIELD_COUNT, struct task_status, observed_generation, "observedGeneration"),
    JSON_FIELD(FIELD_COUNT, struct task_status, attempt, "attempt"),
    JSON_FIELD(FIELD_COUNT, struct task_status, failures, "failures"),
    JSON_FIELD(FIELD_OPT_INT, struct task_status, device_restarts, "deviceRestarts"),
    JSON_FIELD(FIELD_OPT_INT, struct task_status, unconfirmed_attempts, "unconfirmedAttempts"),
    JSON_FIELD(FIELD_OPT_INT, struct task_status, lost_attempt_count, "lostAttemptCount"),
    JSON_FIELD(FIELD_OPT_INT, struct task_status, cut_after_seconds, "cutAfterSeconds"),
    JSON_FIELD(FIELD_OPT_INT, struct task_status, prior_attempts, "priorAttempts"),
    JSON_FIELD(FIELD_COUNT, struct task_status, run, "run"),
    JSON_FIELD(FIELD_STRING, struct task_status, observed_restart, "observedRestart"),
    JSON_FIELD(FIELD_ARRAY, struct task_status, history, "history"),
    JSON_FIELD_NESTED(FIELD_OBJECT, struct task_status, targets, "targets", &TARGETS),
    JSON_FIELD_NESTED(FIELD_OBJECTS, struct task_status, broadcast_results, "broadcastResults",
                      &TARGET),
    JSON_FIELD_NESTED(FIELD_OBJECTS, struct task_status, lost_attempts, "lostAttempts",
                      &LOST_ATTEMPT),
    JSON_FIELD_NESTED(FIELD_OBJECT, struct task_status, last_checkpoint, "lastCheckpoint",
                      &CHECKPOINT),
    JSON_FIELD_NESTED(FIELD_OBJECTS, struct task_status, checkpoints, "checkpoints",
                      &STORED_CHECKPOINT),
    JSON_FIELD_NESTED(FIELD_OBJECT, struct task_status, module, "module", &MODULE),
};
const struct json_struct TASK_STATUS = JSON_STRUCT(struct task_status, STATUS_FIELDS);

/* The Go operator of the group counts no attempts, and starts each Task once under its uid, which is
 * the id of our first attempt. */
static bool is_uncounted_attempt(const struct task_status *status)
{
    return !status->attempt && !str_is_empty(status->assigned_proplet) &&
           status->phase != TASK_PENDING && status->phase != TASK_SKIPPED;
}

int task_decode(struct arena *arena, const cJSON *object, struct task *ret, struct error *err)
{
    int r = api_decode(arena, object, &TASK_SPEC, &ret->spec, &TASK_STATUS, &ret->status, err);
    if (r < 0)
        return r;

    ret->spec.beyond_embedded = embedded_problem(arena, &ret->spec) != NULL;
    ret->spec.need_s = task_need_s(&ret->spec, ret->status.cut_after_seconds);
    /* null is absence to the tables, but a device may well answer null */
    ret->status.results = json_path(object, "status", "results", NULL);
    if (is_uncounted_attempt(&ret->status))
        ret->status.attempt = 1;
    return 0;
}

cJSON *task_status_encode(struct arena *arena, const struct task_status *status)
{
    return json_encode(arena, &TASK_STATUS, status);
}

bool task_may_become(enum task_phase from, enum task_phase to)
{
    static const bool MAY_BECOME[TASK_PHASES][TASK_PHASES] = {
        [TASK_PENDING] = { [TASK_SCHEDULED] = true,
                           [TASK_RUNNING] = true,
                           [TASK_COMPLETED] = true,
                           [TASK_FAILED] = true,
                           [TASK_SKIPPED] = true },
        [TASK_SCHEDULED] = { [TASK_RUNNING] = true,
                             [TASK_COMPLETED] = true,
                             [TASK_FAILED] = true,
                             [TASK_SKIPPED] = true },
        [TASK_RUNNING] = { [TASK_COMPLETED] = true,
                           [TASK_FAILED] = true,
                           [TASK_INTERRUPTED] = true },
        [TASK_COMPLETED] = { [TASK_PENDING] = true },
        [TASK_FAILED] = { [TASK_PENDING] = true },
        [TASK_INTERRUPTED] = { [TASK_PENDING] = true },
    };

    return from == to || MAY_BECOME[from][to];
}

bool task_is_final(enum task_phase phase)
{
    return phase == TASK_COMPLETED || phase == TASK_FAILED || phase == TASK_SKIPPED;
}

bool task_recurs(const struct task_spec *spec)
{
    return spec->is_recurring && !str_is_empty(spec->schedule);
}

bool task_awaits_schedule(const struct task *task)
{
    const struct task_status *status = &task->status;

    return !str_is_empty(task->spec.schedule) && status->phase == TASK_PENDING &&
           (!status->last_run_us || status->finished_at_us);
}

static int64_t or_default(const struct json_opt_int *field, int64_t value)
{
    return field->set ? field->value : value;
}

int64_t task_priority(const struct task_spec *spec)
{
    return or_default(&spec->priority, TASK_DEFAULT_PRIORITY);
}

int64_t task_need_s(const struct task_spec *spec, struct json_opt_int cut_after)
{
    const struct json_opt_int *deadline = &spec->active_deadline_seconds;
    int64_t need_s = deadline->set ? deadline->value : 0;

    if (cut_after.set && cut_after.value >= need_s && cut_after.value < INT64_MAX)
        need_s = cut_after.value + 1;
    return need_s > 0 ? need_s : 0;
}

int64_t task_backoff_limit(const struct task_spec *spec)
{
    return or_default(&spec->backoff_limit, TASK_DEFAULT_BACKOFF_LIMIT);
}

int64_t task_proplet_lost_seconds(const struct task_spec *spec)
{
    return or_default(&spec->proplet_lost_seconds, TASK_DEFAULT_PROPLET_LOST_SECONDS);
}

int64_t task_history_limit(const struct task_spec *spec)
{
    return or_default(&spec->history_limit, TASK_DEFAULT_HISTORY_LIMIT);
}

int64_t task_checkpoint_seconds(const struct task_checkpoint_spec *checkpoint)
{
    int64_t ms = 0;

    if (!checkpoint || !checkpoint->interval || !str_to_duration_ms(checkpoint->interval, &ms) ||
        ms < TASK_MIN_CHECKPOINT_SECONDS * 1000 || ms > TASK_MAX_CHECKPOINT_SECONDS * 1000)
        return TASK_DEFAULT_CHECKPOINT_SECONDS;
    return ms / 1000;
}

int64_t task_checkpoint_keep(const struct task_checkpoint_spec *checkpoint)
{
    return checkpoint ? or_default(&checkpoint->keep, TASK_DEFAULT_CHECKPOINT_KEEP) : 0;
}

const char *task_function_name(const struct task_spec *spec, const char *object_name)
{
    return str_is_empty(spec->function_name) ? object_name : spec->function_name;
}

const char *task_timezone(const struct task_spec *spec)
{
    return str_is_empty(spec->timezone) ? TASK_DEFAULT_TIMEZONE : spec->timezone;
}

enum run_if task_run_if(const struct task_spec *spec)
{
    return spec->run_if == RUN_IF_UNSET ? RUN_IF_SUCCESS : spec->run_if;
}

enum concurrency_policy task_concurrency_policy(const struct task_spec *spec)
{
    return spec->concurrency_policy == CONCURRENCY_UNSET ? CONCURRENCY_FORBID
                                                         : spec->concurrency_policy;
}

const char *task_pinned_proplet(const struct task_spec *spec)
{
    const char *id = spec->proplet_selector ? spec->proplet_selector->proplet_id : NULL;

    return str_is_empty(id) ? NULL : id;
}

enum lost_policy task_lost_policy(const struct task_spec *spec)
{
    if (spec->proplet_lost_policy != LOST_UNSET)
        return spec->proplet_lost_policy;
    return task_pinned_proplet(spec) ? LOST_WAIT : LOST_RESCHEDULE;
}

static bool is_on(const struct json_opt_bool *field)
{
    return !field->set || field->value;
}

bool task_sends_metrics(const struct task_spec *spec)
{
    const struct monitoring_profile *profile = spec->monitoring_profile;

    /* A device stops sampling a daemon when it reports that the daemon has started. */
    return !spec->daemon &&
           (!profile || (is_on(&profile->enabled) && is_on(&profile->export_to_mqtt)));
}

int64_t task_monitoring_interval_ms(const struct monitoring_profile *profile)
{
    int64_t ms = TASK_DEFAULT_MONITORING_INTERVAL_MS;

    if (profile && profile->interval)
        str_to_duration_ms(profile->interval, &ms);
    return ms < 1000 ? 1000 : ms;
}
