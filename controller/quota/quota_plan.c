#include "controller/quota/quota_plan.h"

#include <string.h>

#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/clock.h"
#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "common/kube/finalizer.h"
#include "common/kube/owner.h"
#include "controller/job/holder.h"
#include "controller/quota/quota_admission.h"

#define NAME_HASH_LEN 5

/* Words of Kueue in conditions of a Workload. Some of them are reasons of a job, too. */
#define WORKLOAD_ADMITTED "Admitted"
#define WORKLOAD_EVICTED "Evicted"
#define WORKLOAD_FINISHED "Finished"
#define WORKLOAD_PODS_READY "PodsReady"
#define WORKLOAD_PENDING "Pending"
#define WORKLOAD_CHECK_READY "Ready"
#define WORKLOAD_FAILED "Failed"
#define WORKLOAD_SUCCEEDED "Succeeded"

/* Said before Kueue has words of its own. */
#define NOT_MADE "the Workload is not made yet"
#define NOT_SEEN "Kueue has not looked at it yet"
#define OTHER_ADMISSION "the Tasks of the job stop before it gets another admission"

struct quota_planning {
    struct arena *arena;
    const struct quota_observed *observed;
    struct quota_plan *plan;
};

/* --- reading ----------------------------------------------------------------------------------- */

static const char *label_of(const cJSON *object, const char *name)
{
    return json_string(json_path(object, "metadata", "labels", name, NULL), NULL);
}

static const cJSON *workload_condition(const struct quota_observed *observed, const char *type)
{
    return condition_get(json_path(observed->workload, "status", "conditions", NULL), type);
}

static bool workload_is(const struct quota_observed *observed, const char *type)
{
    return condition_is(json_path(observed->workload, "status", "conditions", NULL), type,
                        CONDITION_TRUE);
}

/* QuotaReserved in the status of the job: its Tasks run by that. */
static const cJSON *job_condition(const struct quota_observed *observed)
{
    return condition_get(json_path(observed->job, "status", "conditions", NULL), "QuotaReserved");
}

static bool job_is_granted(const struct quota_observed *observed)
{
    return str_equal(json_get_string(job_condition(observed), "status"), "True");
}

static bool has_workload(const struct quota_observed *observed)
{
    return observed->workload && !observed->is_foreign;
}

static bool is_suspended(const struct quota_observed *observed)
{
    return json_bool(json_path(observed->job, "spec", "suspend", NULL), false);
}

static bool is_active(const struct quota_observed *observed)
{
    return json_bool(json_path(observed->workload, "spec", "active", NULL), true);
}

static bool is_marked(const struct quota_observed *observed)
{
    return str_equal(json_string(json_path(observed->workload, "metadata", "annotations",
                                           ANNOTATION_SUSPENDED, NULL),
                                 ""),
                     "true");
}

/* Quota may be given back: nothing of the job is at work, and nothing will be. */
static bool may_give_back(const struct quota_observed *observed)
{
    return observed->quiet && !job_is_granted(observed);
}

const char *quota_workload_name(struct arena *arena, const char *job, const char *uid)
{
    char digest[SHA256_HEX_LEN];
    const char *hash = sha256_hex(uid, strlen(uid), digest);
    int room = NAME_MAX_OBJECT - (int)strlen("propellerjob--") - NAME_HASH_LEN;

    return arena_printf(arena, "propellerjob-%.*s-%.*s", room, job, NAME_HASH_LEN, hash);
}

static void say(struct quota_planning *planning, enum reason reason, const char *message)
{
    planning->plan->reason = reason;
    planning->plan->message = message;
}

/* Held, and looked at again after a while. */
static void say_again(struct quota_planning *planning, enum reason reason, const char *message)
{
    say(planning, reason, message);
    planning->plan->requeue_after_ms = QUOTA_LOOK_AGAIN_MS;
}

static void ask(struct quota_planning *planning, enum quota_need need)
{
    if (planning->observed->unreadable)
        say_again(planning, REASON_QUOTA_UNAVAILABLE, planning->observed->unreadable);
    else
        planning->plan->need = need;
}

const char *quota_class_missing(struct arena *arena, const char *class)
{
    return arena_printf(arena, "there is no WorkloadPriorityClass '%s'", class);
}

/* "<reason>: <message>" of a condition of the Workload. */
static const char *words_of(struct arena *arena, const cJSON *condition)
{
    return arena_printf(arena, "%s: %s", json_get_string(condition, "reason"),
                        json_get_string(condition, "message"));
}

/* --- the Workload as it is to be --------------------------------------------------------------- */

/* The fields that labels of the job say, and that may change while no quota is reserved. */
static void set_labelled(const struct quota_observed *observed, cJSON *spec)
{
    const char *class = label_of(observed->job, LABEL_PRIORITY_CLASS);
    const char *limit = label_of(observed->job, LABEL_MAX_EXEC_TIME);
    int64_t seconds;

    json_set_string(spec, "queueName", label_of(observed->job, LABEL_QUEUE));
    if (limit && str_to_int64(limit, &seconds) && seconds >= 1 && seconds <= INT32_MAX)
        json_set_int(spec, "maximumExecutionTimeSeconds", seconds);
    else
        json_remove(spec, "maximumExecutionTimeSeconds");
    if (!class) {
        if (json_get(spec, "priorityClassRef") || !json_get(spec, "priority"))
            json_set_int(spec, "priority", 0);
        json_remove(spec, "priorityClassRef");
        return;
    }
    if (observed->class_read == QUOTA_FOUND) {
        json_set_int(spec, "priority", observed->class_value);
        cJSON *ref = json_set_object(spec, "priorityClassRef");
        json_set_string(ref, "group", KIND_WORKLOAD.group);
        json_set_string(ref, "kind", KIND_WORKLOADPRIORITYCLASS.kind);
        json_set_string(ref, "name", class);
    }
}

static const cJSON *new_workload(const struct quota_planning *planning)
{
    const struct quota_observed *observed = planning->observed;
    const cJSON *metadata = json_get(observed->job, "metadata");
    cJSON *workload = json_object(planning->arena);
    cJSON *own = json_set_object(workload, "metadata");
    const char *name = json_get_string(metadata, "name");
    const char *uid = kube_uid(observed->job);

    json_set_string(
        workload, "apiVersion",
        arena_printf(planning->arena, "%s/%s", KIND_WORKLOAD.group, KIND_WORKLOAD.version));
    json_set_string(workload, "kind", KIND_WORKLOAD.kind);
    json_set_string(own, "namespace", json_get_string(metadata, "namespace"));
    json_set_string(own, "name", quota_workload_name(planning->arena, name, uid));
    cJSON *labels = json_set_object(own, "labels");
    json_set_string(labels, LABEL_JOB_UID, uid);
    json_set_string(labels, LABEL_MANAGED_BY, LABEL_MANAGED_BY_VALUE);
    json_set_string(labels, LABEL_JOB, label_value(planning->arena, name));
    json_set_string(json_set_object(own, "annotations"), ANNOTATION_PODSETS,
                    observed->podsets->hash);
    json_add_string(json_set_array(own, "finalizers"), FINALIZER_QUOTA);
    owner_set_controller(own, &KIND_PROPELLERJOB, observed->job);
    cJSON *spec = json_set_object(workload, "spec");
    json_set_copy(spec, "podSets", observed->podsets->list);
    json_set_bool(spec, "active", true);
    set_labelled(observed, spec);
    return workload;
}

/* A copy, to be changed. */
static cJSON *copy_workload(const struct quota_planning *planning)
{
    return arena_own(planning->arena, json_copy(planning->observed->workload), json_free);
}

static cJSON *part(cJSON *object, const char *name)
{
    const cJSON *found = json_get(object, name);

    return cJSON_IsObject(found) ? (cJSON *)(uintptr_t)found : json_set_object(object, name);
}

static void patch_spec(const struct quota_planning *planning, const cJSON *body)
{
    planning->plan->action = QUOTA_PATCH_SPEC;
    planning->plan->body = body;
}

/* Conditions of ours in the status of the Workload; others stay. */
static cJSON *status_copy(const struct quota_planning *planning)
{
    cJSON *status = part(copy_workload(planning), "status");

    if (!cJSON_IsArray(json_get(status, "conditions")))
        json_set_array(status, "conditions");
    return status;
}

static void set_status_condition(const struct quota_planning *planning, cJSON *status,
                                 const char *type, bool is_true, const char *reason,
                                 const char *message)
{
    const struct condition condition = {
        .type = type,
        .status = is_true ? CONDITION_TRUE : CONDITION_FALSE,
        .reason = reason,
        .message = message,
        .observed_generation =
            json_int(json_path(planning->observed->workload, "metadata", "generation", NULL), 0),
    };

    condition_set((cJSON *)(uintptr_t)json_get(status, "conditions"), &condition,
                  planning->observed->now_us);
}

static void patch_status(const struct quota_planning *planning, const cJSON *status)
{
    if (json_equal(status, json_get(planning->observed->workload, "status")))
        return;
    planning->plan->action = QUOTA_PATCH_STATUS;
    planning->plan->body = status;
}

static int64_t admitted_seconds(const struct quota_observed *observed)
{
    int64_t since_us = observed->now_us;

    if (!workload_is(observed, WORKLOAD_ADMITTED))
        return 0;
    rfc3339_parse(
        json_get_string(workload_condition(observed, WORKLOAD_ADMITTED), "lastTransitionTime"),
        &since_us);
    return observed->now_us > since_us ? (observed->now_us - since_us) / 1000000 : 0;
}

static bool all_checks_ready(const cJSON *workload)
{
    json_for_each (check, json_path(workload, "status", "admissionChecks", NULL)) {
        if (!str_equal(json_get_string(check, "state"), WORKLOAD_CHECK_READY))
            return false;
    }
    return true;
}

/* Takes the admission back after an eviction. */
static void release(const struct quota_planning *planning)
{
    const struct quota_observed *observed = planning->observed;
    const cJSON *evicted = workload_condition(observed, WORKLOAD_EVICTED);
    const char *why = json_get_string(evicted, "reason");
    const char *message = json_get_string(evicted, "message");
    bool requeued = str_equal(why, "Preempted") || str_equal(why, "NodeFailures");
    int64_t past = json_int(
        json_path(observed->workload, "status", "accumulatedPastExecutionTimeSeconds", NULL), 0);
    int64_t seconds = past + admitted_seconds(observed);
    cJSON *status = status_copy(planning);

    json_remove(status, "admission");
    if (seconds > 0)
        json_set_int(status, "accumulatedPastExecutionTimeSeconds",
                     seconds < INT32_MAX ? seconds : INT32_MAX);
    set_status_condition(planning, status, "QuotaReserved", false, WORKLOAD_PENDING, message);
    set_status_condition(planning, status, WORKLOAD_ADMITTED, false,
                         all_checks_ready(observed->workload) ? "NoReservation"
                                                              : "NoReservationUnsatisfiedChecks",
                         "The workload has no reservation");
    set_status_condition(planning, status, "Requeued", requeued, why, message);
    patch_status(planning, status);
}

/* --- the rows of the table --------------------------------------------------------------------- */

static void release_if_evicted(const struct quota_planning *planning)
{
    const struct quota_observed *observed = planning->observed;

    if (workload_is(observed, WORKLOAD_EVICTED) && workload_is(observed, "QuotaReserved") &&
        may_give_back(observed))
        release(planning);
}

static void plan_creation(struct quota_planning *planning)
{
    const struct quota_observed *observed = planning->observed;
    const char *class = label_of(observed->job, LABEL_PRIORITY_CLASS);

    if (class && observed->class_read == QUOTA_NOT_READ) {
        ask(planning, QUOTA_NEEDS_CLASS);
        return;
    }
    if (class && observed->class_read == QUOTA_MISSING) {
        say_again(planning, REASON_PRIORITY_CLASS_MISSING,
                  quota_class_missing(planning->arena, class));
        return;
    }
    say(planning, REASON_QUOTA_PENDING, NOT_MADE);
    if (!observed->quiet) /* without a Workload no Task wakes the job */
        planning->plan->requeue_after_ms = QUOTA_LOOK_AGAIN_MS;
    if (is_suspended(observed) || !may_give_back(observed))
        return;
    planning->plan->action = QUOTA_CREATE;
    planning->plan->body = new_workload(planning);
}

static void plan_suspension(struct quota_planning *planning)
{
    const struct quota_observed *observed = planning->observed;

    say(planning, REASON_SUSPENDED, "spec.suspend is true");
    if (!is_active(observed)) {
        release_if_evicted(planning);
        return;
    }
    cJSON *workload = copy_workload(planning);
    json_set_bool(part(workload, "spec"), "active", false);
    json_set_string(part(part(workload, "metadata"), "annotations"), ANNOTATION_SUSPENDED, "true");
    patch_spec(planning, workload);
}

static void plan_resumption(const struct quota_planning *planning)
{
    cJSON *workload = copy_workload(planning);

    json_set_bool(part(workload, "spec"), "active", true);
    json_remove(part(part(workload, "metadata"), "annotations"), ANNOTATION_SUSPENDED);
    patch_spec(planning, workload);
}

static void plan_podset_change(struct quota_planning *planning)
{
    const struct quota_observed *observed = planning->observed;

    say(planning, REASON_PODSETS_CHANGED,
        "the Tasks or the queue of the job are not those of its Workload");
    if (!may_give_back(observed))
        return;
    /* reclaimablePods counts Tasks of the other podSets. */
    if (workload_is(observed, "QuotaReserved") ||
        json_path(observed->workload, "status", "reclaimablePods", NULL)) {
        planning->plan->action = QUOTA_DELETE;
        return;
    }
    cJSON *workload = copy_workload(planning);
    json_set_copy(part(workload, "spec"), "podSets", observed->podsets->list);
    json_set_string(part(part(workload, "metadata"), "annotations"), ANNOTATION_PODSETS,
                    observed->podsets->hash);
    patch_spec(planning, workload);
}

/* Numbers in the words of Kueue may change all the time. */
static bool is_rewording(const struct quota_observed *observed, const char *message)
{
    const char *shown = json_get_string(job_condition(observed), "message");
    enum reason reason = reason_of(json_get_string(job_condition(observed), "reason"));

    return *message && reason == REASON_QUOTA_PENDING && !str_equal(shown, message) &&
           !str_equal(shown, NOT_MADE) && !str_equal(shown, NOT_SEEN);
}

/* Kueue decides; what the labels say is kept up meanwhile. */
static void plan_wait(struct quota_planning *planning)
{
    const struct quota_observed *observed = planning->observed;
    const char *class = label_of(observed->job, LABEL_PRIORITY_CLASS);
    const char *stored =
        json_string(json_path(observed->workload, "spec", "priorityClassRef", "name", NULL), NULL);
    const char *message = json_get_string(workload_condition(observed, "QuotaReserved"), "message");

    if (class && !str_equal(class, stored) && observed->class_read == QUOTA_NOT_READ) {
        ask(planning, QUOTA_NEEDS_CLASS);
        return;
    }
    if (observed->class_read == QUOTA_MISSING) {
        say_again(planning, REASON_PRIORITY_CLASS_MISSING,
                  quota_class_missing(planning->arena, class));
    } else {
        say(planning, REASON_QUOTA_PENDING, *message ? message : NOT_SEEN);
        planning->plan->is_rewording = is_rewording(observed, message);
    }
    cJSON *workload = copy_workload(planning);
    set_labelled(observed, part(workload, "spec"));
    if (!json_equal(workload, observed->workload))
        patch_spec(planning, workload);
}

static void plan_checks(struct quota_planning *planning)
{
    const char *names = "";

    json_for_each (check,
                   json_path(planning->observed->workload, "status", "admissionChecks", NULL)) {
        if (!str_equal(json_get_string(check, "state"), WORKLOAD_CHECK_READY))
            names = arena_printf(planning->arena, "%s%s'%s'", names, *names ? ", " : "",
                                 json_get_string(check, "name"));
    }
    say(planning, REASON_ADMISSION_CHECKS,
        arena_printf(planning->arena, "not ready: %s", *names ? names : "Kueue's admission"));
}

/* --- admitted ---------------------------------------------------------------------------------- */

/* Adds what is reclaimable now. */
static void plan_reclaim(const struct quota_planning *planning, cJSON *status)
{
    const struct quota_observed *observed = planning->observed;
    const cJSON *stored = json_path(observed->workload, "status", "reclaimablePods", NULL);
    cJSON *list = json_array(planning->arena);

    for (size_t i = 0; i < observed->podsets->len; i++) {
        const char *name = job_podset_name(planning->arena, i);
        int64_t count = observed->podsets->counts[i] - observed->unfinished[i];

        json_for_each (item, stored) {
            int64_t before = json_int(json_get(item, "count"), 0);
            if (str_equal(json_get_string(item, "name"), name) && before > count)
                count = before; /* Kueue refuses less */
        }
        if (count <= 0)
            continue;
        cJSON *item = json_add_object(list);
        json_set_string(item, "name", name);
        json_set_int(item, "count", count);
    }
    if (json_len(list) && !json_equal(list, stored))
        json_set_copy(status, "reclaimablePods", list);
}

/* All Tasks of the job may run again, and need its whole quota then. */
static bool may_run_again(const struct quota_observed *observed)
{
    const cJSON *limit = json_path(observed->job, "spec", "faultTolerance", "retryLimit", NULL);
    const cJSON *progress =
        condition_get(json_path(observed->job, "status", "conditions", NULL), "Progressing");

    if (reason_of(json_get_string(progress, "reason")) == REASON_RESETTING)
        return true;
    return json_int(json_path(observed->job, "status", "resettingCount", NULL), 0) <
           json_int(limit, 0);
}

static void plan_running(const struct quota_planning *planning)
{
    const struct quota_observed *observed = planning->observed;
    const cJSON *ready = workload_condition(observed, WORKLOAD_PODS_READY);
    bool recovers = str_equal(json_get_string(ready, "reason"), "WaitForRecovery");
    cJSON *status = status_copy(planning);

    if (observed->all_begun && !workload_is(observed, WORKLOAD_PODS_READY))
        set_status_condition(planning, status, WORKLOAD_PODS_READY, true,
                             recovers ? "Recovered" : "Started",
                             "All pods reached readiness and the workload is running");
    else if (observed->lost_us >= QUOTA_UNREADY_US && workload_is(observed, WORKLOAD_PODS_READY))
        set_status_condition(planning, status, WORKLOAD_PODS_READY, false, "WaitForRecovery",
                             "At least one pod has failed, waiting for recovery");
    if (observed->lost_us >= 0 && observed->lost_us < QUOTA_UNREADY_US)
        planning->plan->requeue_after_ms =
            (uint32_t)((QUOTA_UNREADY_US - observed->lost_us) / 1000 + 1);
    if (observed->counted && !may_run_again(observed))
        plan_reclaim(planning, status);
    patch_status(planning, status);
}

/* A quiet job that is not granted yet. Returns status.quota; NULL: said or asked why. */
static const cJSON *new_quota(struct quota_planning *planning)
{
    const struct quota_observed *observed = planning->observed;
    const char *shortage = quota_shortage(planning->arena, observed);
    const cJSON *quota = NULL;
    const char *conflict = NULL;

    if (observed->unlabelled) {
        say(planning, REASON_QUOTA_PENDING, "its Tasks get the labels of their podSets");
    } else if (!observed->is_live) {
        ask(planning, QUOTA_NEEDS_LIVE);
    } else if (shortage) {
        say(planning, REASON_PODSETS_CHANGED, shortage);
        planning->plan->action = QUOTA_DELETE; /* another one is made */
    } else if (observed->flavors_read == QUOTA_NOT_READ) {
        ask(planning, QUOTA_NEEDS_FLAVORS);
    } else if (observed->flavors_read == QUOTA_MISSING) {
        say_again(planning, REASON_FLAVOR_MISSING,
                  arena_printf(planning->arena, "there is no ResourceFlavor '%s'",
                               observed->flavor_missing));
    } else {
        quota = quota_of(planning->arena, observed, &conflict);
        if (!quota)
            say_again(planning, REASON_FLAVOR_CONFLICT, conflict);
    }
    return quota;
}

static void plan_admitted(struct quota_planning *planning)
{
    const struct quota_observed *observed = planning->observed;
    const char *missing = quota_unassigned(planning->arena, observed);
    const cJSON *quota = NULL;

    if (missing)
        say(planning, REASON_QUOTA_PENDING,
            arena_printf(planning->arena, "the Workload has no assignment for podSet '%s'",
                         missing));
    else if (job_is_granted(observed) && quota_is_same(planning->arena, observed))
        quota = json_path(observed->job, "status", "quota", NULL);
    else if (!may_give_back(observed))
        say(planning, REASON_PODSETS_CHANGED, OTHER_ADMISSION);
    else
        quota = new_quota(planning);
    if (!quota)
        return;
    planning->plan->quota = quota;
    planning->plan->granted = true;
    say(planning, REASON_ADMITTED,
        arena_printf(planning->arena, "admitted by ClusterQueue '%s'",
                     quota_cluster_queue(observed->workload)));
    plan_running(planning);
}

/* --- the end ----------------------------------------------------------------------------------- */

static void plan_finished(const struct quota_planning *planning, bool failed)
{
    const struct quota_observed *observed = planning->observed;
    const cJSON *conditions = json_path(observed->job, "status", "conditions", NULL);

    if (!has_workload(observed) || !observed->quiet ||
        !finalizer_has(observed->workload, FINALIZER_QUOTA))
        return;
    if (workload_is(observed, WORKLOAD_FINISHED) || kube_is_deleting(observed->workload)) {
        planning->plan->action = QUOTA_FINALIZER_OFF;
        return;
    }
    cJSON *status = status_copy(planning);
    set_status_condition(
        planning, status, WORKLOAD_FINISHED, true, failed ? WORKLOAD_FAILED : WORKLOAD_SUCCEEDED,
        json_get_string(condition_get(conditions, failed ? "Failed" : "Complete"), "message"));
    patch_status(planning, status);
}

static void plan_orphan(const struct quota_planning *planning)
{
    const struct quota_observed *observed = planning->observed;

    if (!has_workload(observed))
        return;
    if (!kube_is_deleting(observed->workload))
        planning->plan->action = QUOTA_DELETE;
    else if (observed->quiet && finalizer_has(observed->workload, FINALIZER_QUOTA))
        planning->plan->action = QUOTA_FINALIZER_OFF;
}

static void give_up_workload(const struct quota_planning *planning)
{
    const struct quota_observed *observed = planning->observed;

    if (!observed->workload || !may_give_back(observed))
        return;
    if (!kube_is_deleting(observed->workload))
        planning->plan->action = QUOTA_DELETE;
    else if (finalizer_has(observed->workload, FINALIZER_QUOTA))
        planning->plan->action = QUOTA_FINALIZER_OFF;
}

static void plan_deletion(struct quota_planning *planning)
{
    say(planning, REASON_WORKLOAD_DELETED, "the Workload is being deleted");
    give_up_workload(planning);
}

/* The label of the queue was removed, and the job still has quota. */
static void plan_unqueued(struct quota_planning *planning)
{
    const struct quota_observed *observed = planning->observed;

    if (!has_workload(observed))
        return;
    say(planning, REASON_PODSETS_CHANGED,
        "the job names no queue any more and gives its quota back");
    give_up_workload(planning);
}

/* The webhook refuses such jobs, and may have been away. */
static bool is_countable(const struct quota_observed *observed)
{
    return observed->podsets->len && observed->podsets->len <= JOB_MAX_PODSETS &&
           !observed->podsets->is_recurring;
}

/* The podSets of the Workload, by names and counts, are those of the job. */
static bool has_podsets(const struct quota_observed *observed)
{
    const cJSON *stored = json_first(json_path(observed->workload, "spec", "podSets", NULL));

    json_for_each (podset, observed->podsets->list) {
        if (!str_equal(json_get_string(stored, "name"), json_get_string(podset, "name")) ||
            json_int(json_get(stored, "count"), -1) != json_int(json_get(podset, "count"), 0))
            return false;
        stored = stored->next;
    }
    return !stored;
}

/* Its Workload is for other Tasks, or reserves quota of another queue. */
static bool is_outdated(const struct quota_observed *observed)
{
    const cJSON *workload = observed->workload;

    if (!str_equal(
            json_string(json_path(workload, "metadata", "annotations", ANNOTATION_PODSETS, NULL),
                        ""),
            observed->podsets->hash) ||
        !has_podsets(observed))
        return true;
    return workload_is(observed, "QuotaReserved") &&
           !str_equal(json_string(json_path(workload, "spec", "queueName", NULL), ""),
                      label_of(observed->job, LABEL_QUEUE));
}

/* The Workload is as the job needs it, and Kueue decides. */
static void plan_decision(struct quota_planning *planning)
{
    const struct quota_observed *observed = planning->observed;
    bool reserved = workload_is(observed, "QuotaReserved");

    if (reserved && workload_is(observed, WORKLOAD_EVICTED)) {
        say(planning, REASON_EVICTED,
            words_of(planning->arena, workload_condition(observed, WORKLOAD_EVICTED)));
        release_if_evicted(planning);
    } else if (!is_active(observed) && !(reserved && job_is_granted(observed))) {
        say(planning, REASON_DEACTIVATED, "spec.active of the Workload is false");
    } else if (!reserved) {
        plan_wait(planning);
    } else if (!workload_is(observed, WORKLOAD_ADMITTED)) {
        plan_checks(planning);
    } else {
        plan_admitted(planning);
    }
}

/* The first row of the table that fits. */
static void plan_row(struct quota_planning *planning)
{
    const struct quota_observed *observed = planning->observed;
    const cJSON *workload = observed->workload;

    if (workload && observed->is_foreign) {
        say_again(planning, REASON_WORKLOAD_NAME_TAKEN,
                  arena_printf(planning->arena, "the Workload '%s' does not belong to this job",
                               json_string(json_path(workload, "metadata", "name", NULL), "")));
        planning->plan->event = &JOB_EVENT_WORKLOAD_NAME_TAKEN;
    } else if (kube_is_deleting(workload)) {
        plan_deletion(planning);
    } else if (!is_countable(observed)) {
        say(planning, REASON_PODSETS_CHANGED,
            "spec.tasks must have from 1 to 8 combinations of resourceRequirements and "
            "matchLabels, and none with isRecurring");
        give_up_workload(planning);
    } else if (!workload) {
        plan_creation(planning);
    } else if (workload_is(observed, WORKLOAD_FINISHED)) {
        say(planning, REASON_WORKLOAD_FINISHED,
            "the Workload is finished and the job is not; delete it");
    } else if (is_suspended(observed)) {
        plan_suspension(planning);
    } else if (is_marked(observed)) {
        say(planning, REASON_QUOTA_PENDING, "the job is resumed");
        plan_resumption(planning);
    } else if (is_outdated(observed)) {
        plan_podset_change(planning);
    } else {
        plan_decision(planning);
    }
}

/* Nothing is known of the Workload: what runs goes on, and nothing begins. */
static void plan_unserved(struct quota_planning *planning, bool is_open)
{
    const struct quota_observed *observed = planning->observed;

    if (!is_open) { /* what is left to be given back waits */
        if (has_workload(observed) &&
            (!observed->job || finalizer_has(observed->workload, FINALIZER_QUOTA)))
            planning->plan->requeue_after_ms = QUOTA_LOOK_AGAIN_MS;
        return;
    }
    planning->plan->granted = job_is_granted(observed);
    if (planning->plan->granted) {
        planning->plan->quota = json_path(observed->job, "status", "quota", NULL);
        say_again(planning, REASON_ADMITTED, json_get_string(job_condition(observed), "message"));
    } else {
        say_again(planning, REASON_QUOTA_UNAVAILABLE,
                  "Workloads of kueue.x-k8s.io cannot be watched");
    }
}

static bool has_ended(const struct quota_observed *observed, bool *ret_completed)
{
    const char *phase = json_string(json_path(observed->job, "status", "phase", NULL), "");

    *ret_completed = str_equal(phase, JOB_PHASE_NAMES[JOB_COMPLETED]);
    return *ret_completed || str_equal(phase, JOB_PHASE_NAMES[JOB_FAILED]);
}

static void plan_any(struct quota_planning *planning, bool queued)
{
    const struct quota_observed *observed = planning->observed;
    bool completed;
    bool ended = has_ended(observed, &completed);

    if (!observed->is_served) {
        plan_unserved(planning, queued && !ended);
    } else if (!observed->job) {
        plan_orphan(planning);
    } else if (ended) {
        plan_finished(planning, !completed);
    } else if (!queued) {
        plan_unqueued(planning);
    } else {
        plan_row(planning);
    }
}

/* A job that goes on, whose Workload needs nothing now. */
static bool may_label(const struct quota_planning *planning)
{
    const struct quota_plan *plan = planning->plan;

    return plan->reason && !plan->action && !plan->need && has_workload(planning->observed);
}

struct quota_plan quota_plan(struct arena *arena, const struct quota_observed *observed)
{
    struct quota_plan plan = { .action = QUOTA_NOTHING };
    struct quota_planning planning = { arena, observed, &plan };
    bool queued = job_is_queued(observed->job);

    plan.is_held = observed->job && (queued || (observed->is_served && has_workload(observed)));
    plan_any(&planning, queued);
    if (queued && observed->unlabelled && may_label(&planning))
        plan.action = QUOTA_LABEL_TASKS;
    return plan;
}
