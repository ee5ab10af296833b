/* Which changes of a Task are accepted, beyond webhook/tests/reviews. */
#include "common/api/task.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "common/tests/validate_fixture.h"

static const cJSON *task_with(const char *spec_patch)
{
    return object_with(arena, "task", arena_printf(arena, "{\"spec\":%s}", spec_patch));
}

static const cJSON *task_in(const char *phase, const char *spec_patch)
{
    return object_with(
        arena, "task",
        arena_printf(arena, "{\"spec\":%s,\"status\":{\"phase\":\"%s\"}}", spec_patch, phase));
}

/* Of each field another value than the least Task has. */
static const struct {
    const char *patch;
    bool may_change;
} CHANGES[] = {
    { "{\"name\":\"other\"}", false },
    { "{\"functionName\":\"f\"}", false },
    { "{\"kind\":\"federated\"}", false },
    { "{\"imageUrl\":\"other\"}", false },
    { "{\"file\":\"AGFzbQEAAAA=\"}", false },
    { "{\"cliArgs\":[\"a\"]}", false },
    { "{\"inputs\":[1]}", false },
    { "{\"env\":{\"A\":\"b\"}}", false },
    { "{\"propletSelector\":{\"propletId\":\"p\"}}", false },
    { "{\"preferredPropletType\":\"external\"}", false },
    { "{\"resourceRequirements\":{\"cpu\":1}}", false },
    { "{\"daemon\":true}", false },
    { "{\"restartPolicy\":\"Never\"}", false },
    { "{\"broadcast\":true}", false },
    { "{\"mode\":\"infer\"}", false },
    { "{\"metadata\":{\"a\":1}}", false },
    { "{\"encrypted\":true}", false },
    { "{\"kbsResourcePath\":\"k\"}", false },
    { "{\"dependsOn\":[\"a\"]}", false },
    { "{\"runIf\":\"success\"}", false },
    { "{\"workflowId\":\"w\"}", false },
    { "{\"jobId\":\"j\"}", false },
    { "{\"schedule\":\"@daily\"}", false },
    { "{\"timezone\":\"UTC\"}", false },
    { "{\"isRecurring\":false}", false },
    { "{\"priority\":1}", true },
    { "{\"monitoringProfile\":{\"enabled\":true}}", false },
    { "{\"suspend\":true}", true },
    { "{\"backoffLimit\":1}", false },
    { "{\"activeDeadlineSeconds\":1}", true },
    { "{\"ttlSecondsAfterFinished\":1}", true },
    { "{\"propletLostPolicy\":\"Wait\"}", false },
    { "{\"propletLostSeconds\":1}", false },
    { "{\"lostAttemptsLimit\":1}", false },
    { "{\"concurrencyPolicy\":\"Forbid\"}", false },
    { "{\"startingDeadlineSeconds\":1}", false },
    { "{\"historyLimit\":1}", false },
    { "{\"broadcastQuorum\":1}", false },
    { "{\"checkpoint\":{\"keep\":1}}", false },
    { "{\"imagePullSecrets\":[{\"name\":\"s\"}]}", false },
};

TEST_GROUP("task_changes", arena_set_up, arena_tear_down);

TEST_EACH(a_running_task_keeps_its_spec_but_for_four_fields, CHANGES)
{
    static const char *const FIXED[] = { "scheduled", "running" };
    static const char *const OPEN[] = { "pending", "completed", "failed", "interrupted",
                                        "skipped" };
    const char *patch = CHANGES[_i].patch;
    const char *field = json_first(parsed(arena, patch))->string;

    for (size_t i = 0; i < ARRAY_LEN(FIXED); i++) {
        const char *error =
            arena_printf(arena,
                         "spec.%s: Forbidden: cannot change while the Task is %s: only suspend, "
                         "activeDeadlineSeconds, ttlSecondsAfterFinished and priority may",
                         field, FIXED[i]);
        if (CHANGES[_i].may_change)
            error = "";
        /* set, and removed again; the phase that counts is the stored one */
        ck_assert_str_eq(
            errors_of(arena, "task", task_in("pending", patch), task_in(FIXED[i], "{}")), error);
        ck_assert_str_eq(errors_of(arena, "task", task_with("{}"), task_in(FIXED[i], patch)),
                         error);
    }
    for (size_t i = 0; i < ARRAY_LEN(OPEN); i++)
        ck_assert_str_eq(errors_of(arena, "task", task_in(OPEN[i], patch), task_in(OPEN[i], "{}")),
                         "");
}

TEST(the_table_of_changes_has_every_field)
{
    ck_assert_uint_eq(ARRAY_LEN(CHANGES), TASK_SPEC.len);
    for (size_t i = 0; i < TASK_SPEC.len; i++)
        ck_assert_str_eq(json_first(parsed(arena, CHANGES[i].patch))->string,
                         TASK_SPEC.fields[i].name);
}

TEST(the_same_numbers_written_otherwise_are_no_change)
{
    ck_assert_str_eq(
        errors_of(arena, "task",
                  task_with("{\"inputs\":[1.0,1e1],\"env\":{\"B\":\"\",\"A\":\"\"},"
                            "\"mode\":null,\"priority\":5}"),
                  task_in("running", "{\"inputs\":[1,10],\"env\":{\"A\":\"\",\"B\":\"\"}}")),
        "");
}

/* --- phases ----------------------------------------------------------------------------------- */

static const cJSON *task_with_phase(const char *phase)
{
    const char *status =
        phase ? arena_printf(arena, "{\"status\":{\"phase\":\"%s\"}}", phase) : "{\"status\":{}}";

    return object_with(arena, "task/status", status);
}

TEST_TIMES(a_phase_changes_as_the_table_says, TASK_PHASES)
{
    enum task_phase from = (enum task_phase)_i;

    for (enum task_phase to = TASK_PENDING; to < TASK_PHASES; to++) {
        const char *error =
            arena_printf(arena, "status.phase: Forbidden: the phase cannot go from %s to %s",
                         TASK_PHASE_NAMES[from], TASK_PHASE_NAMES[to]);

        ck_assert_str_eq(errors_of(arena, "task/status", task_with_phase(TASK_PHASE_NAMES[to]),
                                   task_with_phase(TASK_PHASE_NAMES[from])),
                         task_may_become(from, to) ? "" : error);
    }
    ck_assert_str_eq(errors_of(arena, "task/status", task_with_phase(NULL),
                               task_with_phase(TASK_PHASE_NAMES[from])),
                     "status.phase: Forbidden: a phase that was set cannot be removed");
}

TEST(what_is_no_phase_is_refused_and_an_unknown_old_one_can_be_left)
{
    ck_assert_str_eq(errors_of(arena, "task/status",
                               object_with(arena, "task/status", "{\"status\":{\"phase\":7}}"),
                               task_with_phase("pending")),
                     "status.phase: Unsupported value: 7: must be a phase of a Task");
    ck_assert_str_eq(
        errors_of(arena, "task/status", task_with_phase("failed"), task_with_phase("odd")), "");
}
