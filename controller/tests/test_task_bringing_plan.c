/* A start whose module is brought: what the status says while it is held back, and how it ends. */
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "controller/task/plan/task_bringing_plan.h"
#include "controller/tests/task_world.h"

#define LIMIT_MS 300000
#define MANIFEST "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct bringing bringing;
static struct task_module module;

static void set_up(void)
{
    world_set_up();
    world_assigned();
    module = (struct task_module){ .manifest = MANIFEST };
    bringing = (struct bringing){ .step = BRING_WAIT,
                                  .reason = REASON_PULLING_MODULE,
                                  .message = "registry.example is asked",
                                  .since_ms = world.observed.now_ms,
                                  .limit_ms = LIMIT_MS };
}

TEST_GROUP("bringing_plan", set_up, world_tear_down);

/* The plan after the start was held back, or went out. */
static struct task_plan conclude(void)
{
    struct task_plan plan = world_plan();
    const struct task_setback setback = {
        .kind = bringing_holds(&bringing) ? SETBACK_HELD_BACK : SETBACK_NONE,
        .bringing = &bringing,
    };

    ck_assert_int_eq(plan.action, TASK_START);
    return task_plan_conclude(world.arena, &world.observed, &plan, &setback);
}

TEST(manifest_of_a_tag_is_written_and_nothing_else)
{
    bringing.step = BRING_CHOICE;
    bringing.module = &module;

    struct task_plan plan = conclude();
    ck_assert_int_eq(plan.action, TASK_WRITE);
    ck_assert_int_eq(plan.status.phase, TASK_SCHEDULED);
    ck_assert_str_eq(plan.status.module->manifest, MANIFEST);
    ck_assert_ptr_null(plan.status.module->digest);
    ck_assert_ptr_null(plan.event);
    ck_assert_uint_eq(plan.requeue_after_ms, 1);
}

/* The Started condition after a wait of so many milliseconds; "": it is not written. */
static const struct {
    enum reason reason;
    int64_t waited_ms;
    const char *started;
} WAITS[] = {
    { REASON_PULLING_MODULE, 0, "" },
    { REASON_PULLING_MODULE, 1999, "" },
    { REASON_PULLING_MODULE, 2000, "False PullingModule: registry.example is asked" },
    { REASON_DELIVERING_MODULE, 1999, "" },
    { REASON_DELIVERING_MODULE, 2000, "False DeliveringModule: registry.example is asked" },
    { REASON_REGISTRY_UNAVAILABLE, 0, "False RegistryUnavailable: registry.example is asked" },
    { REASON_CACHE_FULL, 0, "False CacheFull: registry.example is asked" },
};

TEST_EACH(wait_is_told_if_it_lasts_or_something_is_wrong, WAITS)
{
    bringing.reason = WAITS[_i].reason;
    world_wait_ms(WAITS[_i].waited_ms);

    struct task_plan plan = conclude();
    ck_assert_int_eq(plan.action, TASK_WRITE);
    ck_assert_int_eq(plan.status.phase, TASK_SCHEDULED);
    ck_assert_str_eq(world_condition(&plan, "Started"), WAITS[_i].started);
    ck_assert_str_eq(world_condition(&plan, "Scheduled"),
                     "True Assigned: assigned to Proplet 'alpha'");
    ck_assert_ptr_null(plan.event);
    if (*WAITS[_i].started)
        ck_assert_str_eq(plan.status.reason, reason_text(WAITS[_i].reason));
    else
        ck_assert_int_eq(plan.requeue_after_ms, 2000 - WAITS[_i].waited_ms);
}

TEST(what_went_wrong_stays_told_while_the_pull_is_tried_again)
{
    bringing.reason = REASON_REGISTRY_UNAVAILABLE;
    struct task_plan plan = conclude();
    world_do(&plan);

    bringing.reason = REASON_PULLING_MODULE;
    world_wait_ms(5000);
    plan = conclude();
    ck_assert_str_eq(world_condition(&plan, "Started"),
                     "False RegistryUnavailable: registry.example is asked");
    ck_assert_str_eq(plan.status.reason, "RegistryUnavailable");
}

static const struct {
    enum reason reason;
    const char *failed; /* with */
} OVERDUE[] = {
    { REASON_PULLING_MODULE, "RegistryUnavailable" },
    { REASON_REGISTRY_UNAVAILABLE, "RegistryUnavailable" },
    { REASON_CACHE_FULL, "CacheFull" },
};

TEST_EACH(attempt_whose_module_does_not_come_fails, OVERDUE)
{
    bringing.reason = OVERDUE[_i].reason;
    world_wait_ms(LIMIT_MS - 1);
    struct task_plan plan = conclude();
    ck_assert_int_eq(plan.status.phase, TASK_SCHEDULED);
    ck_assert_uint_eq(plan.requeue_after_ms, 1);

    world_wait_ms(1);
    plan = conclude();
    ck_assert_int_eq(plan.status.phase, TASK_FAILED);
    ck_assert_str_eq(plan.status.reason, OVERDUE[_i].failed);
    ck_assert_str_eq(plan.status.error, "the module was not there within --module-pull-timeout: "
                                        "registry.example is asked");
}

TEST(new_leader_tries_for_a_while_before_it_gives_up)
{
    world_wait_ms(LIMIT_MS * 2);
    bringing.since_ms = world.observed.now_ms;
    ck_assert_int_eq(conclude().status.phase, TASK_SCHEDULED);
    world_wait_ms(BRINGING_PATIENCE_MS);
    ck_assert_int_eq(conclude().status.phase, TASK_FAILED);
}

TEST(delivery_has_no_such_limit)
{
    bringing.reason = REASON_DELIVERING_MODULE;
    bringing.limit_ms = 0;
    bringing.retry_ms = 300;
    world_wait_ms(LIMIT_MS * 2);

    struct task_plan plan = conclude();
    ck_assert_int_eq(plan.status.phase, TASK_SCHEDULED);
    ck_assert_uint_eq(plan.requeue_after_ms, 300);
}

/* Whether backoffLimit counts. */
static const struct {
    enum reason reason;
    bool retried;
} REFUSALS[] = {
    { REASON_MODULE_NOT_FOUND, true },      { REASON_MODULE_FORBIDDEN, true },
    { REASON_PULL_SECRET_MISSING, true },   { REASON_REGISTRY_UNAVAILABLE, true },
    { REASON_DELIVERY_TOO_SLOW, true },     { REASON_CACHE_FULL, true },
    { REASON_REGISTRY_NOT_ALLOWED, false }, { REASON_MODULE_TOO_LARGE, false },
    { REASON_MODULE_INVALID, false },       { REASON_MODULE_UNSIGNED, false },
    { REASON_PAYLOAD_TOO_LARGE, false },
};

TEST_EACH(refusal_fails_the_attempt_and_says_whether_another_helps, REFUSALS)
{
    world.spec->backoff_limit = (struct json_opt_int){ true, 1 };
    bringing.step = BRING_REFUSED;
    bringing.reason = REFUSALS[_i].reason;
    bringing.message = "registry.example says no";

    struct task_plan plan = conclude();
    ck_assert_int_eq(plan.status.phase, TASK_FAILED);
    ck_assert_str_eq(plan.status.reason,
                     REFUSALS[_i].retried ? "BackingOff" : reason_text(REFUSALS[_i].reason));
    ck_assert_str_eq(plan.status.error, "registry.example says no");
    ck_assert_int_eq(condition_is(plan.status.conditions, "Failed", CONDITION_TRUE),
                     !REFUSALS[_i].retried);
}

TEST(module_of_a_start_is_written_with_running)
{
    module.digest = MANIFEST;
    module.bytes = (struct json_opt_int){ true, 64 };
    bringing.step = BRING_READY;
    bringing.module = &module;

    struct task_plan plan = conclude();
    ck_assert_int_eq(plan.status.phase, TASK_RUNNING);
    ck_assert_int_eq(plan.status.module->bytes.value, 64);
    ck_assert_str_eq(world_condition(&plan, "Started"),
                     "True StartPublished: the broker has the start");
}

TEST(module_of_a_short_run_is_written_with_its_result)
{
    world.observed.running_write_delay_ms = 500;
    bringing.step = BRING_READY;
    bringing.module = &module;

    struct task_plan plan = conclude();
    ck_assert_int_eq(plan.status.phase, TASK_SCHEDULED);
    ck_assert_ptr_null(plan.status.module); /* else the write that is saved would be made */
    world_act(&(struct task_plan){ .action = TASK_START });
    world.observed.brought = &module;
    world_result(WORLD_CHANNEL,
                 "{\"task_id\":\"" WORLD_UID "\",\"results\":\"42\",\"error\":null}");
    plan = world_plan();
    ck_assert_int_eq(plan.status.phase, TASK_COMPLETED);
    ck_assert_ptr_eq(plan.status.module, &module);
}

TEST(start_that_is_repeated_waits_and_the_task_goes_on_running)
{
    struct task_plan plan;

    bringing.step = BRING_NOTHING;
    plan = world_plan();
    world_do(&plan);
    world_wait_ms(60000);
    bringing.step = BRING_WAIT;
    bringing.since_ms = world.observed.now_ms;
    bringing.reason = REASON_DELIVERING_MODULE;
    bringing.limit_ms = 0;
    world.spec->active_deadline_seconds = (struct json_opt_int){ true, 70 };
    plan = conclude();
    ck_assert_int_eq(plan.status.phase, TASK_RUNNING);
    ck_assert_str_eq(world_condition(&plan, "Started"),
                     "True StartPublished: the broker has the start");
    ck_assert_ptr_null(plan.status.reason);
    ck_assert_uint_le(plan.requeue_after_ms, 10000); /* its deadline */
    ck_assert_uint_gt(plan.requeue_after_ms, 0);
}

TEST_GROUP("bringing_plan_runs", world_set_up, world_tear_down);

TEST(attempts_of_a_run_keep_the_module_and_a_new_run_has_none)
{
    world.spec->backoff_limit = (struct json_opt_int){ true, 1 };
    module = (struct task_module){ .manifest = MANIFEST };
    world.status->module = &module;
    world_finished(TASK_FAILED);
    world_wait_ms(11000);
    struct task_plan plan = world_plan();
    ck_assert_int_eq(plan.status.phase, TASK_PENDING);
    ck_assert_ptr_eq(plan.status.module, &module);
    world_do(&plan);

    plan = world_plan();
    world_do(&plan);
    ck_assert_ptr_eq(world.status->module, &module);
    world.status->phase = TASK_COMPLETED;
    world.observed.rerun = "again";
    plan = world_plan();
    ck_assert_int_eq(plan.status.phase, TASK_PENDING);
    ck_assert_ptr_null(plan.status.module);
}
