#include "common/api/task.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

static struct task decoded(const char *text)
{
    struct task task;
    struct error err = { 0 };
    int r = task_decode(arena, parsed(arena, text), &task, &err);

    ck_assert_msg(r == 0, "%s: %s", text, err.message);
    return task;
}

static const char FULL_SPEC[] =
    "{\"name\":\"n\",\"functionName\":\"f\",\"kind\":\"federated\",\"imageUrl\":\"i\","
    "\"file\":\"AGFzbQ==\",\"cliArgs\":[\"-v\"],\"inputs\":[10,\"x\",1.5,9007199254740993],"
    "\"env\":{\"A\":\"b\"},\"propletSelector\":{\"propletId\":\"p\",\"matchLabels\":{\"l\":\"v\"},"
    "\"matchDeviceTypes\":[\"t\"],\"matchCapabilities\":[\"c\",\"d\"]},"
    "\"preferredPropletType\":\"external\",\"resourceRequirements\":{\"cpu\":2,\"memory\":\"1Gi\","
    "\"custom\":{\"gpu\":\"1\"}},\"daemon\":true,\"restartPolicy\":\"Always\",\"broadcast\":true,"
    "\"mode\":\"train\",\"metadata\":{\"any\":[1,null]},\"encrypted\":true,"
    "\"kbsResourcePath\":\"k\",\"dependsOn\":[\"a\"],\"runIf\":\"failure\",\"workflowId\":\"w\","
    "\"jobId\":\"j\",\"schedule\":\"0 * * * *\",\"timezone\":\"Europe/Paris\","
    "\"isRecurring\":true,\"priority\":0,\"monitoringProfile\":{\"enabled\":false,"
    "\"interval\":\"5s\",\"collectCpu\":true,\"collectMemory\":true,\"collectDiskIo\":true,"
    "\"collectThreads\":true,\"collectFileDescriptors\":true,\"exportToMqtt\":true,"
    "\"retainHistory\":true,\"historySize\":7},\"suspend\":true,\"backoffLimit\":0,"
    "\"activeDeadlineSeconds\":1,\"ttlSecondsAfterFinished\":0,\"propletLostPolicy\":\"Fail\","
    "\"propletLostSeconds\":0,\"lostAttemptsLimit\":0,\"concurrencyPolicy\":\"Replace\","
    "\"startingDeadlineSeconds\":4,"
    "\"historyLimit\":0,\"broadcastQuorum\":2,"
    "\"checkpoint\":{\"interval\":\"90s\",\"keep\":1},\"imagePullSecrets\":[{\"name\":\"s\"}]}";

static const char FULL_STATUS[] =
    "{\"phase\":\"failed\",\"assignedProplet\":\"p\",\"assignedPropletUid\":\"u\","
    "\"assignedClientId\":\"p-0\",\"createdAt\":"
    "\"2026-11-21T10:00:00Z\","
    "\"scheduledAt\":\"2026-11-21T10:00:01.000002Z\",\"startedAt\":\"2026-11-21T10:00:02Z\","
    "\"finishedAt\":\"2026-11-21T10:00:03Z\",\"updatedAt\":\"2026-11-21T10:00:04Z\","
    "\"nextRun\":\"2026-11-21T11:00:00Z\",\"lastRun\":\"2026-11-21T10:00:00Z\",\"nextRetry\":"
    "\"2026-11-21T10:00:13Z\",\"results\":{"
    "\"a\":[1.50,9007199254740993,null]},"
    "\"error\":\"e\",\"reason\":\"Trapped\",\"conditions\":[{\"type\":\"Failed\","
    "\"status\":\"True\"}],\"latestMetrics\":{\"memoryBytes\":1},\"observedGeneration\":3,"
    "\"attempt\":2,\"failures\":1,\"deviceRestarts\":2,\"unconfirmedAttempts\":1,"
    "\"lostAttemptCount\":1,\"cutAfterSeconds\":21600,\"priorAttempts\":"
    "1,"
    "\"run\":4,\"observedRestart\":\"now\",\"history\":[{\"run\":3}],"
    "\"targets\":{\"total\":3,\"completed\":1,\"failed\":0},"
    "\"broadcastResults\":[{\"proplet\":\"p\",\"index\":7,\"phase\":\"failed\",\"startedAt\":"
    "\"2026-11-21T10:00:02Z\",\"finishedAt\":\"2026-11-21T10:00:03Z\",\"reason\":\"DeviceError\","
    "\"results\":[1.50],\"error\":\"e\",\"resultBytes\":1,\"omitted\":true,\"restarts\":2}],"
    "\"lostAttempts\":[{\"proplet\":\"p\",\"id\":\"uid.1\"}],"
    "\"lastCheckpoint\":{\"step\":0,\"samples\":5,\"time\":\"2026-11-21T10:00:02Z\","
    "\"attempt\":2,\"proplet\":\"p\",\"sha256\":\"ab\",\"bytes\":3,\"ref\":\"model://sha256:ab\","
    "\"uri\":\"file:///c\"},\"checkpoints\":[{\"step\":0,\"ref\":\"model://"
    "sha256:ab\",\"bytes\":3}],\"module\":{\"manifest\":\"sha256:a\",\"digest\":\"sha256:b\","
    "\"bytes\":4}}";

TEST_GROUP("task_api", arena_set_up, arena_tear_down);

TEST(a_spec_with_every_field_comes_back_as_it_was)
{
    struct task task = decoded(arena_printf(arena, "{\"spec\":%s}", FULL_SPEC));

    ck_assert_str_eq(json_text(arena, json_encode(arena, &TASK_SPEC, &task.spec), NULL), FULL_SPEC);
}

TEST(a_status_with_every_field_comes_back_as_it_was)
{
    struct task task = decoded(arena_printf(arena, "{\"status\":%s}", FULL_STATUS));

    ck_assert_str_eq(json_text(arena, task_status_encode(arena, &task.status), NULL), FULL_STATUS);
}

/* Every field of FULL_SPEC differs from what a spec without it would say. */
TEST(the_full_samples_hold_every_field_of_the_tables)
{
    ck_assert_uint_eq(json_len(parsed(arena, FULL_SPEC)), TASK_SPEC.len);
    ck_assert_uint_eq(json_len(parsed(arena, FULL_STATUS)), TASK_STATUS.len);
}

TEST(members_are_where_their_names_say)
{
    struct task task =
        decoded(arena_printf(arena, "{\"spec\":%s,\"status\":%s}", FULL_SPEC, FULL_STATUS));

    ck_assert_str_eq(task.spec.function_name, "f");
    ck_assert_int_eq(task.spec.kind, TASK_KIND_FEDERATED);
    ck_assert_int_eq(task.spec.preferred_proplet_type, PREFER_EXTERNAL);
    ck_assert_int_eq(task.spec.restart_policy, RESTART_ALWAYS);
    ck_assert_int_eq(task.spec.mode, TASK_MODE_TRAIN);
    ck_assert_int_eq(task.spec.run_if, RUN_IF_FAILURE);
    ck_assert_int_eq(task.spec.proplet_lost_policy, LOST_FAIL);
    ck_assert_int_eq(task.spec.concurrency_policy, CONCURRENCY_REPLACE);
    ck_assert_str_eq(task.spec.proplet_selector->match_capabilities.items[1], "d");
    ck_assert_int_eq(task.spec.monitoring_profile->history_size.value, 7);
    ck_assert_int_eq(task.status.phase, TASK_FAILED);
    ck_assert_int_eq(task.status.scheduled_at_us % 1000000, 2);
    ck_assert_int_eq(task.status.targets->total, 3);
    ck_assert_int_eq(task.status.attempt, 2);
}

TEST(a_result_of_null_is_a_result)
{
    struct task task = decoded("{\"status\":{\"phase\":\"completed\",\"results\":null}}");

    ck_assert_ptr_nonnull(task.status.results);
    const cJSON *status = task_status_encode(arena, &task.status);
    ck_assert_ptr_nonnull(json_get(status, "results"));
    ck_assert_str_eq(json_text(arena, json_get(status, "results"), NULL), "null");
    ck_assert_ptr_null(decoded("{\"status\":{}}").status.results);
}

TEST(an_object_without_spec_and_status_is_a_pending_task)
{
    struct task task = decoded("{\"metadata\":{\"name\":\"x\"}}");

    ck_assert_int_eq(task.status.phase, TASK_PENDING);
    ck_assert_ptr_null(task.spec.name);
    ck_assert_str_eq(json_text(arena, task_status_encode(arena, &task.status), NULL),
                     "{\"phase\":\"pending\",\"observedGeneration\":0,\"attempt\":0,"
                     "\"failures\":0,\"run\":0}");
}

static const struct {
    const char *object;
    const char *message;
} WRONG[] = {
    { "{\"spec\":{\"priority\":\"high\"}}", "spec.priority: must be an integer" },
    { "{\"spec\":{\"propletSelector\":{\"matchLabels\":{\"a\":1}}}}",
      "spec.propletSelector.matchLabels.a: must be a string" },
    { "{\"status\":{\"phase\":\"Pending\"}}", "status.phase: must be one of 'pending'" },
    { "{\"status\":{\"startedAt\":\"now\"}}", "status.startedAt: must be" },
    { "{\"status\":[]}", "status: must be an object" },
};

static const struct {
    const char *status;
    int64_t attempt;
} UNCOUNTED[] = {
    { "\"phase\":\"scheduled\",\"assignedProplet\":\"p\"", 1 },
    { "\"phase\":\"running\",\"assignedProplet\":\"p\"", 1 },
    { "\"phase\":\"completed\",\"assignedProplet\":\"p\"", 1 },
    { "\"phase\":\"failed\",\"assignedProplet\":\"p\"", 1 },
    { "\"phase\":\"interrupted\",\"assignedProplet\":\"p\"", 1 },
    { "\"phase\":\"pending\",\"assignedProplet\":\"p\"", 0 },
    { "\"phase\":\"skipped\",\"assignedProplet\":\"p\"", 0 },
    { "\"phase\":\"failed\",\"assignedProplet\":\"\"", 0 },
    { "\"phase\":\"failed\"", 0 },
    { "\"phase\":\"running\",\"assignedProplet\":\"p\",\"attempt\":4", 4 },
};

TEST_EACH(what_an_operator_began_that_counts_no_attempts_is_the_first_one, UNCOUNTED)
{
    struct task task = decoded(arena_printf(arena, "{\"status\":{%s}}", UNCOUNTED[_i].status));

    ck_assert_int_eq(task.status.attempt, UNCOUNTED[_i].attempt);
}

TEST_EACH(what_does_not_fit_is_named_and_nothing_is_written, WRONG)
{
    struct task task = { .spec = { .name = "before" } };
    struct error err = { 0 };

    ck_assert_int_eq(task_decode(arena, parsed(arena, WRONG[_i].object), &task, &err),
                     -ERROR_INVALID);
    ck_assert_msg(strncmp(err.message, WRONG[_i].message, strlen(WRONG[_i].message)) == 0, "%s",
                  err.message);
    ck_assert_str_eq(task.spec.name, "before");
}

/* The table of the API's documentation, written once more. */
static const char *const NEXT[TASK_PHASES] = {
    [TASK_PENDING] = "scheduled running completed failed skipped",
    [TASK_SCHEDULED] = "running completed failed skipped",
    [TASK_RUNNING] = "completed failed interrupted",
    [TASK_COMPLETED] = "pending",
    [TASK_FAILED] = "pending",
    [TASK_INTERRUPTED] = "pending",
    [TASK_SKIPPED] = "",
};

TEST_TIMES(a_phase_may_become_what_the_table_says_and_nothing_else, TASK_PHASES)
{
    for (enum task_phase to = TASK_PENDING; to < TASK_PHASES; to++) {
        bool listed = strstr(NEXT[_i], TASK_PHASE_NAMES[to]) != NULL;

        ck_assert_msg(task_may_become((enum task_phase)_i, to) == (listed || (int)to == _i),
                      "%s to %s", TASK_PHASE_NAMES[_i], TASK_PHASE_NAMES[to]);
    }
}

TEST(only_completed_failed_and_skipped_are_final)
{
    ck_assert(task_is_final(TASK_COMPLETED));
    ck_assert(task_is_final(TASK_FAILED));
    ck_assert(task_is_final(TASK_SKIPPED));
    ck_assert(!task_is_final(TASK_PENDING));
    ck_assert(!task_is_final(TASK_SCHEDULED));
    ck_assert(!task_is_final(TASK_RUNNING));
    ck_assert(!task_is_final(TASK_INTERRUPTED));
}

TEST(absent_fields_mean_their_defaults)
{
    struct task_spec spec = decoded("{\"spec\":{\"name\":\"n\",\"functionName\":\"\"}}").spec;

    ck_assert_int_eq(task_priority(&spec), 50);
    ck_assert_int_eq(task_backoff_limit(&spec), 0);
    ck_assert_int_eq(task_proplet_lost_seconds(&spec), 120);
    ck_assert_int_eq(task_history_limit(&spec), 3);
    ck_assert_str_eq(task_function_name(&spec, "object"), "object");
    ck_assert_str_eq(task_timezone(&spec), "UTC");
    ck_assert_int_eq(task_run_if(&spec), RUN_IF_SUCCESS);
    ck_assert_int_eq(task_concurrency_policy(&spec), CONCURRENCY_FORBID);
    ck_assert_int_eq(task_lost_policy(&spec), LOST_RESCHEDULE);
    ck_assert_ptr_null(task_pinned_proplet(&spec));
    ck_assert_int_eq(spec.kind, TASK_KIND_STANDARD);
    ck_assert_int_eq(spec.preferred_proplet_type, PREFER_ANY);
    ck_assert_int_eq(spec.restart_policy, RESTART_UNSET);
    ck_assert_int_eq(spec.mode, TASK_MODE_UNSET);
}

TEST(what_is_written_wins_over_the_defaults_also_zero)
{
    struct task_spec spec = decoded(arena_printf(arena, "{\"spec\":%s}", FULL_SPEC)).spec;

    ck_assert_int_eq(task_priority(&spec), 0);
    ck_assert_int_eq(task_proplet_lost_seconds(&spec), 0);
    ck_assert_int_eq(task_history_limit(&spec), 0);
    ck_assert_str_eq(task_function_name(&spec, "object"), "f");
    ck_assert_str_eq(task_timezone(&spec), "Europe/Paris");
    ck_assert_int_eq(task_run_if(&spec), RUN_IF_FAILURE);
    ck_assert_int_eq(task_concurrency_policy(&spec), CONCURRENCY_REPLACE);
    ck_assert_int_eq(task_lost_policy(&spec), LOST_FAIL);
    ck_assert_str_eq(task_pinned_proplet(&spec), "p");
}

TEST(a_task_pinned_to_a_proplet_waits_for_it)
{
    const char *pinned = "{\"spec\":{\"propletSelector\":{\"propletId\":\"p\"}}}";
    const char *empty = "{\"spec\":{\"propletSelector\":{\"propletId\":\"\"}}}";
    struct task_spec spec = decoded(pinned).spec;

    ck_assert_int_eq(task_lost_policy(&spec), LOST_WAIT);
    spec = decoded(empty).spec;
    ck_assert_int_eq(task_lost_policy(&spec), LOST_RESCHEDULE);
}

static const struct {
    const char *interval;
    int64_t ms;
} INTERVALS[] = { { NULL, 10000 }, { "5s", 5000 },   { "1m30s", 90000 }, { "1500ms", 1500 },
                  { "0s", 1000 },  { "10ms", 1000 }, { "soon", 10000 } };

TEST_EACH(a_monitoring_interval_is_at_least_a_second, INTERVALS)
{
    struct monitoring_profile profile = { .interval = INTERVALS[_i].interval };

    ck_assert_int_eq(task_monitoring_interval_ms(&profile), INTERVALS[_i].ms);
    ck_assert_int_eq(task_monitoring_interval_ms(NULL), 10000);
}

static const struct {
    int64_t deadline, cut;
    int64_t need_s;
} NEEDS[] = {
    { -1, -1, 0 },  { 60, -1, 60 }, { -1, 21600, 21601 },
    { 60, 10, 60 }, { 60, 60, 61 }, { 0, INT64_MAX, 0 },
};

TEST_EACH(start_needs_the_time_of_its_deadline_or_more_than_it_was_cut_after, NEEDS)
{
    const char *spec =
        NEEDS[_i].deadline < 0
            ? ""
            : arena_printf(arena, "\"activeDeadlineSeconds\":%lld", (long long)NEEDS[_i].deadline);
    const char *status = NEEDS[_i].cut < 0 ? ""
                                           : arena_printf(arena, "\"cutAfterSeconds\":%lld",
                                                          (long long)NEEDS[_i].cut);

    ck_assert_int_eq(
        decoded(arena_printf(arena, "{\"spec\":{%s},\"status\":{%s}}", spec, status)).spec.need_s,
        NEEDS[_i].need_s);
}
