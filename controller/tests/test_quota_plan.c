/* The table of what is seen and what is done for a PropellerJob with a queue. */
#include "controller/quota/quota_plan.h"

#include <string.h>

#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "controller/quota/quota.h"

#define NOW_US INT64_C(1795255200000000)

static struct job_podsets podsets;
static struct quota_observed observed;

/* Seen beside the Workload. */
enum seen {
    BUSY = 1,      /* a Task is active */
    GRANTED = 2,   /* the job's own status says QuotaReserved */
    SUSPENDED = 4, /* by its user */
    UNSERVED = 8,
    FOREIGN = 16,
    LIVE = 32,      /* read from the API server, and its flavors */
    NO_FLAVOR = 64, /* one of them is missing */
    CLASS = 128,    /* the label names a class, which exists */
    NO_CLASS = 256, /* which does not */
    OTHER_PODSETS = 512,
    FLAVOR_OF_BOTH = 1024,   /* the flavors want two values */
    DONE = 2048,             /* the job has completed */
    GONE = 4096,             /* there is no job */
    UNQUEUED = 8192,         /* it names no queue any more */
    UNLABELLED = 16384,      /* a Task lacks the label of its podSet */
    UNCOUNTED = 32768,       /* more podSets than a queue takes */
    OTHER_ADMISSION = 65536, /* the job shows another one */
    UNREADABLE = 131072,     /* what has to be read */
    ONE_LEFT = 262144,       /* of its two Tasks */
};

#define CONDITION(type, status, reason)                                                            \
    "{\"type\":\"" type "\",\"status\":\"" status "\",\"reason\":\"" reason                        \
    "\",\"message\":\"words\",\"lastTransitionTime\":\"2026-11-21T09:59:50Z\"}"
#define PENDING CONDITION("QuotaReserved", "False", "Pending")
#define RESERVED CONDITION("QuotaReserved", "True", "QuotaReserved")
#define ADMITTED RESERVED "," CONDITION("Admitted", "True", "Admitted")
#define EVICTED ADMITTED "," CONDITION("Evicted", "True", "Preempted")
#define ASSIGNED(count)                                                                            \
    ",\"admission\":{\"clusterQueue\":\"cq\",\"podSetAssignments\":[{\"name\":\"tasks-0\"," count  \
    "\"flavors\":{\"pods\":\"north\"}}]}"
#define ADMISSION ASSIGNED("\"count\":2,")
#define STATUS(conditions) "\"status\":{\"conditions\":[" conditions "]}"
#define ADMITTED_STATUS(conditions) "\"status\":{\"conditions\":[" conditions "]" ADMISSION "}"
#define PODSETS(count) "\"podSets\":[{\"name\":\"tasks-0\",\"count\":" #count "}]"
#define SPEC "\"spec\":{\"queueName\":\"q\",\"active\":true,\"priority\":0," PODSETS(2) "}"
#define INACTIVE "\"spec\":{\"queueName\":\"q\",\"active\":false,\"priority\":0," PODSETS(2) "}"
#define OTHER_QUEUE                                                                                \
    "\"spec\":{\"queueName\":\"other\",\"active\":true,\"priority\":0," PODSETS(2) "}"
#define SPEC_OF(podsets) "\"spec\":{\"queueName\":\"q\",\"active\":true,\"priority\":0," podsets "}"
#define ASSIGNED_STATUS(count) "\"status\":{\"conditions\":[" ADMITTED "]" ASSIGNED(count) "}"
#define DELETING "deleting "
#define MARKED "marked "

/* status.quota of the admission. */
#define QUOTA                                                                                      \
    "{\"workload\":\"w\",\"clusterQueue\":\"cq\",\"podSets\":[{\"name\":\"tasks-0\",\"count\":2}]" \
    "}"

static const char *const ACTIONS[] = {
    [QUOTA_NOTHING] = "-",        [QUOTA_CREATE] = "create",
    [QUOTA_PATCH_SPEC] = "spec",  [QUOTA_PATCH_STATUS] = "status",
    [QUOTA_DELETE] = "delete",    [QUOTA_FINALIZER_OFF] = "finalizer off",
    [QUOTA_LABEL_TASKS] = "label"
};

/* "<reason>[ granted]: <action>" */
static const struct {
    const char *workload; /* members beside the metadata; NULL: there is none */
    unsigned seen;        /* enum seen */
    const char *told;
} ROWS[] = {
    { NULL, UNSERVED, "QuotaUnavailable: -" },
    { SPEC, UNSERVED | GRANTED, "Admitted granted: -" },
    { SPEC, FOREIGN, "WorkloadNameTaken: -" },
    { DELETING SPEC, 0, "WorkloadDeleted: finalizer off" },
    { DELETING SPEC, BUSY, "WorkloadDeleted: -" },
    { DELETING SPEC, GRANTED, "WorkloadDeleted: -" },
    { NULL, NO_CLASS, "PriorityClassMissing: -" },
    { NULL, CLASS, "Pending: create" },
    { NULL, 0, "Pending: create" },
    { NULL, BUSY, "Pending: -" },
    { NULL, SUSPENDED, "Pending: -" },
    { SPEC "," STATUS(CONDITION("Finished", "True", "Succeeded")), 0, "WorkloadFinished: -" },
    { SPEC "," STATUS(PENDING), SUSPENDED, "Suspended: spec" },
    { SPEC "," ADMITTED_STATUS(ADMITTED), SUSPENDED | GRANTED, "Suspended: spec" },
    { MARKED INACTIVE "," STATUS(PENDING), SUSPENDED, "Suspended: -" },
    { MARKED INACTIVE "," ADMITTED_STATUS(EVICTED), SUSPENDED, "Suspended: status" },
    { MARKED INACTIVE "," ADMITTED_STATUS(EVICTED), SUSPENDED | BUSY, "Suspended: -" },
    { MARKED INACTIVE "," STATUS(PENDING), 0, "Pending: spec" },
    { INACTIVE "," STATUS(PENDING), 0, "Deactivated: -" },
    { SPEC "," STATUS(PENDING), OTHER_PODSETS, "PodSetsChanged: spec" },
    { SPEC "," STATUS(PENDING), OTHER_PODSETS | BUSY, "PodSetsChanged: -" },
    { SPEC "," ADMITTED_STATUS(ADMITTED), OTHER_PODSETS, "PodSetsChanged: delete" },
    { SPEC "," ADMITTED_STATUS(ADMITTED), OTHER_PODSETS | GRANTED, "PodSetsChanged: -" },
    { SPEC "," ADMITTED_STATUS(EVICTED), 0, "Evicted: status" },
    { SPEC "," ADMITTED_STATUS(EVICTED), BUSY, "Evicted: -" },
    { SPEC "," ADMITTED_STATUS(EVICTED), GRANTED, "Evicted: -" },
    { SPEC "," ADMITTED_STATUS(EVICTED), LIVE, "Evicted: status" },
    { SPEC "," STATUS(PENDING), 0, "Pending: -" },
    { SPEC "," STATUS(PENDING), CLASS, "Pending: spec" },
    { SPEC, 0, "Pending: -" },
    { SPEC "," ADMITTED_STATUS(RESERVED), 0, "AdmissionChecks: -" },
    { SPEC "," ADMITTED_STATUS(ADMITTED), LIVE | NO_FLAVOR, "FlavorMissing: -" },
    { SPEC "," ADMITTED_STATUS(ADMITTED), LIVE | FLAVOR_OF_BOTH, "FlavorConflict: -" },
    { SPEC "," STATUS(ADMITTED), LIVE, "Pending: -" }, /* without an assignment */
    { SPEC "," ADMITTED_STATUS(ADMITTED), LIVE, "Admitted granted: status" },
    { SPEC "," ADMITTED_STATUS(ADMITTED), GRANTED | BUSY, "Admitted granted: status" },
    { SPEC "," ADMITTED_STATUS(ADMITTED), DONE | BUSY, ": -" },
    { SPEC "," ADMITTED_STATUS(ADMITTED), DONE, ": status" },
    { SPEC "," ADMITTED_STATUS(ADMITTED "," CONDITION("Finished", "True", "Succeeded")), DONE,
      ": finalizer off" },
    { DELETING SPEC "," STATUS(PENDING), DONE, ": finalizer off" },
    { NULL, DONE, ": -" },
    { SPEC "," STATUS(PENDING), DONE | FOREIGN, ": -" },
    { SPEC "," STATUS(PENDING), GONE, ": delete" },
    { DELETING SPEC "," STATUS(PENDING), GONE, ": finalizer off" },
    { DELETING SPEC "," STATUS(PENDING), GONE | BUSY, ": -" },
    { NULL, GONE, ": -" },
    { OTHER_QUEUE "," STATUS(PENDING), 0, "Pending: spec" },
    { OTHER_QUEUE "," ADMITTED_STATUS(ADMITTED), GRANTED, "PodSetsChanged: -" },
    { OTHER_QUEUE "," ADMITTED_STATUS(ADMITTED), BUSY, "PodSetsChanged: -" },
    { OTHER_QUEUE "," ADMITTED_STATUS(ADMITTED), 0, "PodSetsChanged: delete" },
    { NULL, UNQUEUED, ": -" },
    { SPEC, UNQUEUED | FOREIGN, ": -" },
    { SPEC, UNQUEUED | UNSERVED, ": -" },
    { SPEC "," ADMITTED_STATUS(ADMITTED), UNQUEUED | GRANTED, "PodSetsChanged: -" },
    { SPEC "," ADMITTED_STATUS(ADMITTED), UNQUEUED | BUSY, "PodSetsChanged: -" },
    { SPEC "," ADMITTED_STATUS(ADMITTED), UNQUEUED, "PodSetsChanged: delete" },
    { DELETING SPEC "," ADMITTED_STATUS(ADMITTED), UNQUEUED, "PodSetsChanged: finalizer off" },
    { DELETING SPEC "," ADMITTED_STATUS(ADMITTED), UNQUEUED | BUSY, "PodSetsChanged: -" },
    { SPEC "," ADMITTED_STATUS(ADMITTED), UNQUEUED | DONE, ": status" },
    { SPEC "," STATUS(PENDING), UNLABELLED, "Pending: label" },
    { SPEC "," ADMITTED_STATUS(ADMITTED), LIVE | UNLABELLED, "Pending: label" },
    { SPEC "," ADMITTED_STATUS(ADMITTED "," CONDITION("PodsReady", "True", "Started")),
      GRANTED | UNLABELLED, "Admitted granted: label" },
    { SPEC "," ADMITTED_STATUS(ADMITTED), DONE | UNLABELLED, ": status" },
    { NULL, UNCOUNTED, "PodSetsChanged: -" },
    { SPEC "," ADMITTED_STATUS(ADMITTED), UNCOUNTED | GRANTED, "PodSetsChanged: -" },
    { SPEC "," ADMITTED_STATUS(ADMITTED), UNCOUNTED, "PodSetsChanged: delete" },
    /* an admission for fewer Tasks than may be active, and for as many */
    { SPEC "," ASSIGNED_STATUS("\"count\":1,"), LIVE, "PodSetsChanged: delete" },
    { SPEC "," ASSIGNED_STATUS("\"count\":1,"), LIVE | UNLABELLED, "Pending: label" },
    { SPEC "," ASSIGNED_STATUS("\"count\":1,"), LIVE | ONE_LEFT, "Admitted granted: status" },
    { SPEC "," ASSIGNED_STATUS("\"count\":3,"), LIVE, "Admitted granted: status" },
    { SPEC "," ASSIGNED_STATUS(""), LIVE, "Admitted granted: status" },
    /* podSets that are not those of the job, under the hash of these */
    { SPEC_OF(PODSETS(0)) "," ADMITTED_STATUS(ADMITTED), LIVE, "PodSetsChanged: delete" },
    { SPEC_OF(PODSETS(0)) "," ADMITTED_STATUS(ADMITTED), GRANTED, "PodSetsChanged: -" },
    { SPEC_OF(PODSETS(0)) "," STATUS(PENDING), 0, "PodSetsChanged: spec" },
    { SPEC_OF("\"podSets\":[]") "," STATUS(PENDING), 0, "PodSetsChanged: spec" },
    { SPEC_OF("\"podSets\":[{\"name\":\"main\",\"count\":2}]") "," STATUS(PENDING), 0,
      "PodSetsChanged: spec" },
    { SPEC_OF("\"podSets\":[{\"name\":\"tasks-0\",\"count\":2},{\"name\":\"x\",\"count\":1}]") "," STATUS(
          PENDING),
      0, "PodSetsChanged: spec" },
    /* another admission than the job shows */
    { SPEC "," ADMITTED_STATUS(ADMITTED), GRANTED | OTHER_ADMISSION, "PodSetsChanged: -" },
    { SPEC "," ASSIGNED_STATUS("\"count\":3,"), GRANTED, "PodSetsChanged: -" },
    { SPEC "," ADMITTED_STATUS(ADMITTED), LIVE | BUSY, "PodSetsChanged: -" },
    /* Kueue is about to evict */
    { INACTIVE "," ADMITTED_STATUS(ADMITTED), LIVE, "Deactivated: -" },
    { INACTIVE "," ADMITTED_STATUS(RESERVED), 0, "Deactivated: -" },
    { INACTIVE "," ADMITTED_STATUS(ADMITTED), GRANTED, "Admitted granted: status" },
    { INACTIVE "," ADMITTED_STATUS(EVICTED), 0, "Evicted: status" },
    /* reads */
    { NULL, CLASS | UNREADABLE, "QuotaUnavailable: -" },
    { SPEC "," STATUS(PENDING), CLASS | UNREADABLE, "QuotaUnavailable: -" },
    { SPEC "," STATUS(PENDING), UNREADABLE, "Pending: -" },
    { SPEC "," STATUS(PENDING), NO_CLASS, "PriorityClassMissing: -" },
    { SPEC "," ADMITTED_STATUS(ADMITTED), UNREADABLE, "QuotaUnavailable: -" },
    { SPEC "," ADMITTED_STATUS(ADMITTED), GRANTED | UNREADABLE, "Admitted granted: status" },
};

static cJSON *member(const cJSON *object, const char *name)
{
    return (cJSON *)(uintptr_t)json_get(object, name);
}

static enum quota_read class_read(unsigned seen)
{
    if (seen & UNREADABLE)
        return QUOTA_NOT_READ;
    if (seen & NO_CLASS)
        return QUOTA_MISSING;
    return seen & CLASS ? QUOTA_FOUND : QUOTA_NOT_READ;
}

static void see_job(unsigned seen)
{
    const char *reserved = seen & GRANTED ? "True" : "False";
    const char *class = seen & (CLASS | NO_CLASS) ? ",\"" LABEL_PRIORITY_CLASS "\":\"high\"" : "";
    const char *queue = seen & UNQUEUED ? "" : "\"" LABEL_QUEUE "\":\"q\"";
    const char *text = arena_printf(
        arena,
        "{\"metadata\":{\"name\":\"job\",\"namespace\":\"default\",\"uid\":\"u\",\"labels\":{"
        "%s%s}},\"spec\":{\"suspend\":%s,\"tasks\":[{\"name\":\"a\"},"
        "{\"name\":\"b\"}]},\"status\":{\"phase\":\"%s\",\"quota\":%s,"
        "\"conditions\":[{\"type\":\"QuotaReserved\",\"status\":\"%s\"},{\"type\":\"Complete\","
        "\"status\":\"True\",\"message\":\"done\"}]}}",
        queue, class, seen & SUSPENDED ? "true" : "false", seen & DONE ? "Completed" : "Running",
        seen & OTHER_ADMISSION ? "{\"workload\":\"w\"}" : QUOTA, reserved);
    const cJSON *job = parsed(arena, text);

    podsets = job_podsets_of(arena, json_get(job, "spec"));
    if (seen & UNCOUNTED)
        podsets.len = JOB_MAX_PODSETS + 1;
    observed = (struct quota_observed){
        .job = seen & GONE ? NULL : job,
        .podsets = &podsets,
        .is_served = !(seen & UNSERVED),
        .is_foreign = (seen & FOREIGN) != 0,
        .is_live = (seen & LIVE) != 0,
        .unlabelled = (seen & UNLABELLED) != 0,
        .quiet = !(seen & BUSY),
        .unreadable = seen & UNREADABLE ? "no right" : NULL,
        .unfinished = { seen & ONE_LEFT ? 1 : 2 },
        .counted = true,
        .lost_us = -1,
        .all_begun = true,
        .class_read = class_read(seen),
        .class_value = 7,
        .flavors_read = seen & NO_FLAVOR ? QUOTA_MISSING
                        : seen & LIVE    ? QUOTA_FOUND
                                         : QUOTA_NOT_READ,
        .flavor_missing = "north",
        .now_us = NOW_US,
    };
    observed.flavors[0] =
        parsed(arena, seen & FLAVOR_OF_BOTH ? "[{\"site\":\"north\"},{\"site\":\"south\"}]"
                                            : "[{\"site\":\"north\"}]");
}

static void see_workload(const char *text, unsigned seen)
{
    bool deleting = str_has_prefix(text, DELETING);
    bool marked = str_has_prefix(text, MARKED);

    text += deleting ? strlen(DELETING) : marked ? strlen(MARKED) : 0;
    const cJSON *workload = parsed(
        arena, arena_printf(arena,
                            "{\"metadata\":{\"name\":\"w\",\"uid\":\"v\",\"generation\":3,"
                            "\"finalizers\":[\"" FINALIZER_QUOTA "\"],\"annotations\":{}},%s}",
                            text));
    cJSON *metadata = member(workload, "metadata");

    json_set_string(member(metadata, "annotations"), ANNOTATION_PODSETS,
                    seen & OTHER_PODSETS ? "other" : podsets.hash);
    if (marked)
        json_set_string(member(metadata, "annotations"), ANNOTATION_SUSPENDED, "true");
    if (deleting)
        json_set_string(metadata, "deletionTimestamp", "2026-11-21T10:00:00Z");
    observed.workload = workload;
}

static struct quota_plan plan_of(const char *workload, unsigned seen)
{
    see_job(seen);
    if (workload)
        see_workload(workload, seen);
    struct quota_plan plan = quota_plan(arena, &observed);
    ck_assert_int_eq(plan.need, QUOTA_NEEDS_NOTHING);
    return plan;
}

TEST_GROUP("quota", arena_set_up, arena_tear_down);

TEST_EACH(job_with_a_queue_does_as_the_table_says, ROWS)
{
    const struct quota_plan plan = plan_of(ROWS[_i].workload, ROWS[_i].seen);
    const char *reason = reason_text(plan.reason);

    ck_assert_str_eq(arena_printf(arena, "%s%s: %s", reason ? reason : "",
                                  plan.granted ? " granted" : "", ACTIONS[plan.action]),
                     ROWS[_i].told);
    ck_assert_int_eq(plan.quota != NULL, plan.granted);
    ck_assert(plan.is_held || (!plan.reason && !plan.granted));
}

/* Every row with every way to be at work: what gives quota back, and what is granted. */
TEST_EACH(admission_is_taken_back_from_a_quiet_job_only, ROWS)
{
    static const unsigned WORK[] = { BUSY, GRANTED, BUSY | GRANTED };

    for (size_t i = 0; i < ARRAY_LEN(WORK); i++) {
        unsigned seen = ROWS[_i].seen | WORK[i];
        see_job(seen);
        if (ROWS[_i].workload)
            see_workload(ROWS[_i].workload, seen);
        const struct quota_plan plan = quota_plan(arena, &observed);
        bool reserved =
            condition_is(json_get(plan.body, "conditions"), "QuotaReserved", CONDITION_FALSE);
        bool finished = condition_is(json_get(plan.body, "conditions"), "Finished", CONDITION_TRUE);

        ck_assert(plan.action != QUOTA_PATCH_STATUS || !(reserved && !plan.granted));
        if (seen & BUSY)
            ck_assert(plan.action != QUOTA_FINALIZER_OFF && !finished);
    }
}

static const struct {
    unsigned seen;
    enum quota_need need;
    const char *workload;
} NEEDS[] = {
    { 0, QUOTA_NEEDS_LIVE, SPEC "," ADMITTED_STATUS(ADMITTED) },
    { LIVE, QUOTA_NEEDS_LIVE, SPEC "," ADMITTED_STATUS(ADMITTED) }, /* the flavors alone are read */
    { GRANTED, QUOTA_NEEDS_NOTHING, SPEC "," ADMITTED_STATUS(ADMITTED) },
};

TEST_EACH(workload_is_read_before_it_grants_and_not_afterwards, NEEDS)
{
    see_job(NEEDS[_i].seen);
    see_workload(NEEDS[_i].workload, NEEDS[_i].seen);
    observed.is_live = false;
    const struct quota_plan plan = quota_plan(arena, &observed);
    ck_assert_int_eq(plan.need, NEEDS[_i].need);
    ck_assert_int_eq(plan.granted, NEEDS[_i].need == QUOTA_NEEDS_NOTHING);
}

/* Rows in which nothing wakes the job. */
static const struct {
    const char *workload;
    unsigned seen;
    uint32_t after_ms;
} AGAIN[] = {
    { NULL, UNSERVED, QUOTA_LOOK_AGAIN_MS },
    { NULL, UNSERVED | DONE, 0 },
    { SPEC, UNSERVED | DONE | FOREIGN, 0 },
    { SPEC, UNSERVED | DONE, QUOTA_LOOK_AGAIN_MS }, /* it has our finalizer */
    { SPEC, UNSERVED | GONE, QUOTA_LOOK_AGAIN_MS },
    { SPEC, UNSERVED | UNQUEUED, QUOTA_LOOK_AGAIN_MS },
    { NULL, CLASS | UNREADABLE, QUOTA_LOOK_AGAIN_MS },
    { SPEC "," STATUS(PENDING), NO_CLASS, QUOTA_LOOK_AGAIN_MS },
    { SPEC "," ADMITTED_STATUS(ADMITTED), LIVE | NO_FLAVOR, QUOTA_LOOK_AGAIN_MS },
    { SPEC "," ADMITTED_STATUS(ADMITTED), LIVE | FLAVOR_OF_BOTH, QUOTA_LOOK_AGAIN_MS },
    { SPEC "," ADMITTED_STATUS(ADMITTED), LIVE, 0 },
};

TEST_EACH(job_is_looked_at_again_where_no_change_tells_it, AGAIN)
{
    ck_assert_uint_eq(plan_of(AGAIN[_i].workload, AGAIN[_i].seen).requeue_after_ms,
                      AGAIN[_i].after_ms);
}

static const char *told_condition(const cJSON *status, const char *type)
{
    const cJSON *condition = condition_get(json_get(status, "conditions"), type);

    return arena_printf(arena, "%s %s %s", json_get_string(condition, "status"),
                        json_get_string(condition, "reason"),
                        json_get_string(condition, "message"));
}

TEST(release_takes_the_admission_back_and_asks_again_after_a_preemption)
{
    const cJSON *status = plan_of(SPEC "," ADMITTED_STATUS(EVICTED), 0).body;

    ck_assert_ptr_null(json_get(status, "admission"));
    ck_assert_str_eq(told_condition(status, "QuotaReserved"), "False Pending words");
    ck_assert_str_eq(told_condition(status, "Admitted"),
                     "False NoReservation The workload has no reservation");
    ck_assert_str_eq(told_condition(status, "Requeued"), "True Preempted words");
    ck_assert_int_eq(json_int(json_get(status, "accumulatedPastExecutionTimeSeconds"), 0), 10);
    ck_assert_int_eq(json_int(json_get(condition_get(json_get(status, "conditions"), "Admitted"),
                                       "observedGeneration"),
                              0),
                     3);
}

TEST(flavors_of_the_admission_become_labels_of_proplets)
{
    const struct quota_plan plan = plan_of(SPEC "," ADMITTED_STATUS(ADMITTED), LIVE);

    ck_assert_str_eq(json_text(arena, plan.quota, NULL),
                     "{\"workload\":\"w\",\"clusterQueue\":\"cq\",\"podSets\":[{\"name\":"
                     "\"tasks-0\",\"count\":2,\"matchLabels\":{\"site\":\"north\"}}]}");
    ck_assert_str_eq(plan.message, "admitted by ClusterQueue 'cq'");
    ck_assert_str_eq(told_condition(plan.body, "PodsReady"),
                     "True Started All pods reached readiness and the workload is running");
}

TEST(reclaimable_pods_never_fall)
{
    static const struct {
        int64_t unfinished, stored, told;
    } COUNTS[] = { { 2, 0, 0 }, { 1, 0, 1 }, { 0, 0, 2 }, { 2, 1, 1 }, { 0, 1, 2 }, { 1, 2, 2 } };

    for (size_t i = 0; i < ARRAY_LEN(COUNTS); i++) {
        see_job(GRANTED | BUSY);
        see_workload(SPEC "," ADMITTED_STATUS(ADMITTED), 0);
        observed.unfinished[0] = COUNTS[i].unfinished;
        if (COUNTS[i].stored)
            json_set_copy(member(observed.workload, "status"), "reclaimablePods",
                          parsed(arena, arena_printf(arena, "[{\"name\":\"tasks-0\",\"count\":%d}]",
                                                     (int)COUNTS[i].stored)));
        const struct quota_plan plan = quota_plan(arena, &observed);
        ck_assert_int_eq(
            json_int(json_get(json_first(json_get(plan.body, "reclaimablePods")), "count"), 0),
            COUNTS[i].told);
    }
}

TEST(task_without_a_device_makes_its_workload_unready_after_a_while)
{
    see_job(GRANTED | BUSY);
    see_workload(SPEC "," ADMITTED_STATUS(ADMITTED "," CONDITION("PodsReady", "True", "Started")),
                 0);
    observed.all_begun = false;
    observed.lost_us = QUOTA_UNREADY_US - 1000000;
    struct quota_plan plan = quota_plan(arena, &observed);
    ck_assert_int_eq(plan.action, QUOTA_NOTHING);
    ck_assert_uint_eq(plan.requeue_after_ms, 1001);
    observed.lost_us = QUOTA_UNREADY_US;
    plan = quota_plan(arena, &observed);
    ck_assert_str_eq(told_condition(plan.body, "PodsReady"),
                     "False WaitForRecovery At least one pod has failed, waiting for recovery");

    see_workload(
        SPEC "," ADMITTED_STATUS(ADMITTED "," CONDITION("PodsReady", "False", "WaitForRecovery")),
        0);
    observed.all_begun = true;
    observed.lost_us = -1;
    plan = quota_plan(arena, &observed);
    ck_assert_str_eq(told_condition(plan.body, "PodsReady"),
                     "True Recovered All pods reached readiness and the workload is running");
}

TEST(workload_has_what_kueue_schedules)
{
    const cJSON *workload = plan_of(NULL, CLASS).body;
    const cJSON *spec = json_get(workload, "spec");

    ck_assert_str_eq(json_string(json_path(workload, "metadata", "name", NULL), ""),
                     "propellerjob-job-0bfe9"); /* SHA-256 of "u" */
    ck_assert_str_eq(json_text(arena, json_path(workload, "metadata", "labels", NULL), NULL),
                     "{\"" LABEL_JOB_UID "\":\"u\",\"" LABEL_MANAGED_BY
                     "\":\"propeller\",\"" LABEL_JOB "\":\"job\"}");
    ck_assert_str_eq(
        json_text(arena, spec, NULL),
        "{\"podSets\":[{\"count\":2,\"name\":\"tasks-0\",\"template\":{\"spec\":{\"containers\":[{"
        "\"name\":\"task\",\"resources\":{\"requests\":{}}}],\"restartPolicy\":\"Never\"}}}],"
        "\"active\":true,\"queueName\":\"q\",\"priority\":7,\"priorityClassRef\":{\"group\":"
        "\"kueue.x-k8s.io\",\"kind\":\"WorkloadPriorityClass\",\"name\":\"high\"}}");
}

/* An owner and a name; "-": none. quota_workload_name of "job" and "u" proves the operator's hand. */
static const struct {
    const char *owner, *name, *managed_by;
    bool is_ours;
} KEPT[] = {
    { API_VERSION, "any", "-", true },
    { "batch/v1", "propellerjob-job-0bfe9", "propeller", false },
    { "-", "propellerjob-job-0bfe9", "propeller", true },
    { "-", "propellerjob-job-0bfe9", "-", false },
    { "-", "propellerjob-job-00000", "propeller", false },
    { "-", "propellerjob-0bfe9", "propeller", false },
    { "-", "", "propeller", false },
};

TEST_EACH(workload_that_is_not_of_a_job_is_kept_without_its_spec, KEPT)
{
    const char *owner =
        str_equal(KEPT[_i].owner, "-")
            ? ""
            : arena_printf(arena,
                           "{\"apiVersion\":\"%s\",\"kind\":\"PropellerJob\",\"name\":\"job\","
                           "\"uid\":\"u\",\"controller\":true}",
                           KEPT[_i].owner);
    const cJSON *workload = parsed(
        arena, arena_printf(arena,
                            "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"default\","
                            "\"ownerReferences\":[%s],\"labels\":{\"" LABEL_JOB_UID
                            "\":\"u\",\"" LABEL_MANAGED_BY "\":\"%s\"}},\"spec\":{},\"status\":{}}",
                            KEPT[_i].name, owner, KEPT[_i].managed_by));

    quota_project((cJSON *)(uintptr_t)workload);
    ck_assert_int_eq(json_get(workload, "spec") != NULL, KEPT[_i].is_ours);
    ck_assert_int_eq(json_get(workload, "status") != NULL, KEPT[_i].is_ours);
}

/* The words that the job shows, those of Kueue, and whether these can wait. */
static const struct {
    const char *reason, *shown, *said;
    bool can_wait;
} WORDS[] = {
    { "Pending", "2 of 5", "3 of 5", true },
    { "Pending", "2 of 5", "2 of 5", false },
    { "Pending", "2 of 5", "", false },
    { "Pending", "Kueue has not looked at it yet", "3 of 5", false },
    { "Pending", "the Workload is not made yet", "3 of 5", false },
    { "Evicted", "Preempted: 2 of 5", "3 of 5", false },
};

TEST_EACH(other_words_for_the_same_reason_can_wait, WORDS)
{
    see_job(0);
    cJSON *shown =
        (cJSON *)(uintptr_t)json_first(json_path(observed.job, "status", "conditions", NULL));
    json_set_string(shown, "reason", WORDS[_i].reason);
    json_set_string(shown, "message", WORDS[_i].shown);
    see_workload(arena_printf(arena,
                              SPEC ",\"status\":{\"conditions\":[{\"type\":\"QuotaReserved\","
                                   "\"status\":\"False\",\"message\":\"%s\"}]}",
                              WORDS[_i].said),
                 0);
    ck_assert_int_eq(quota_plan(arena, &observed).is_rewording, WORDS[_i].can_wait);
}

/* "tasks of a job | mode" and the counts of its podSets. */
static const struct {
    const char *spec;
    const char *counts;
} SHAPES[] = {
    { "\"tasks\":[{},{},{}]", "3" },
    { "\"parallelism\":2,\"tasks\":[{},{},{}]", "2" },
    { "\"executionMode\":\"sequential\",\"parallelism\":2,\"tasks\":[{},{}]", "1" },
    { "\"tasks\":[{\"resourceRequirements\":{\"cpu\":\"1\"}},{\"resourceRequirements\":{\"cpu\":"
      "\"1000m\"}},{\"resourceRequirements\":{\"cpu\":1,\"memory\":\"0\"}}]",
      "3" },
    { "\"tasks\":[{\"resourceRequirements\":{\"cpu\":\"1\"}},{},{\"resourceRequirements\":{"
      "\"custom\":{\"gpu\":1}}},{}]",
      "1 2 1" },
    { "\"tasks\":[{\"propletSelector\":{\"matchLabels\":{\"a\":\"1\",\"b\":\"2\"}}},{"
      "\"propletSelector\":{\"matchLabels\":{\"b\":\"2\",\"a\":\"1\"}}},{\"propletSelector\":{"
      "\"propletId\":\"p\"}}]",
      "2 1" },
    { "\"taskRefs\":[\"r\"]", "" },
};

TEST_EACH(tasks_of_one_shape_are_one_podset, SHAPES)
{
    const cJSON *spec = parsed(arena, arena_printf(arena, "{%s}", SHAPES[_i].spec));
    const struct job_podsets found = job_podsets_of(arena, spec);
    const char *counts = "";

    for (size_t i = 0; i < found.len; i++)
        counts = arena_printf(arena, "%s%s%d", counts, i ? " " : "", (int)found.counts[i]);
    ck_assert_str_eq(counts, SHAPES[_i].counts);
}
