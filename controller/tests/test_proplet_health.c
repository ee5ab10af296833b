/* The condition Healthy: whether the last Tasks of a device ended with a word of it. */
#include "common/api/kinds.h"
#include "common/base/str.h"
#include "controller/proplet/proplet_plan.h"
#include "controller/tests/fake_bridge.h"

#define SPEC                                                                                       \
    "\"name\":\"one\",\"file\":\"AGFzbQEAAAA=\",\"propletSelector\":{\"propletId\":\"alpha\"}"
#define NOW_US INT64_C(1795255200000000)

static const char *healthy(const char *proplet)
{
    const cJSON *conditions =
        json_path(stage_get(&KIND_PROPLET, proplet), "status", "conditions", NULL);
    const cJSON *found = condition_get(conditions, "Healthy");

    return arena_printf(stage.arena, "%s %s", json_string(json_get(found, "status"), "?"),
                        json_string(json_get(found, "reason"), "?"));
}

static void expect_task(const char *phase, const char *reason)
{
    ck_assert_str_eq(stage_task_string("phase"), phase);
    ck_assert_str_eq(stage_task_string("reason"), reason);
}

static void next_task(void)
{
    if (stage_get(&KIND_TASK, "one")) {
        stage_delete(&KIND_TASK, "one");
        stage_run();
    }
    stage_put_task("{" SPEC "}");
    stage_run();
}

/* A Task on alpha whose start nobody confirms. */
static void task_without_a_word(void)
{
    outside.deaf = true;
    next_task();
    for (int i = 0; i < 4; i++) {
        stage_wait_ms(31000);
        stage_run();
    }
    expect_task("failed", "StartNotConfirmed");
    outside.deaf = false;
}

static void task_that_ends(const char *result, const char *phase)
{
    next_task();
    outside_answer(result);
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), phase);
}

static const struct {
    const char *result;
    const char *phase;
} WORDS[] = {
    { "\"results\":\"42\",\"error\":null", "completed" },
    { "\"results\":\"\",\"error\":\"trap\"", "failed" }, /* the module's error, not the device's */
};

TEST_GROUP("health", outside_set_up, stage_tear_down);

TEST_EACH(health_of_a_device_is_unknown_until_a_result_comes, WORDS)
{
    ck_assert_str_eq(healthy("alpha"), "Unknown NoTaskYet");
    task_without_a_word();
    ck_assert_str_eq(healthy("alpha"), "Unknown NoTaskYet");
    task_that_ends(WORDS[_i].result, WORDS[_i].phase);
    ck_assert_str_eq(healthy("alpha"), "True Answers");
    ck_assert_str_eq(healthy("beta"), "Unknown NoTaskYet");

    stage.dead = true; /* the next leader has heard no result yet */
    stage_run();
    stage_wait_ms(10000);
    stage_run();
    ck_assert_str_eq(healthy("alpha"), "True Answers");
}

TEST(device_is_healthy_until_three_tasks_ended_without_a_word_of_it)
{
    task_that_ends(WORDS[0].result, WORDS[0].phase);
    ck_assert_str_eq(healthy("alpha"), "True Answers");
    task_without_a_word();
    task_without_a_word();
    ck_assert_str_eq(healthy("alpha"), "True Answers");
    task_without_a_word();
    ck_assert_str_eq(healthy("alpha"), "False NoResults");
    ck_assert_str_eq(healthy("beta"), "Unknown NoTaskYet");
}

TEST_EACH(any_result_makes_it_healthy_again, WORDS)
{
    for (int i = 0; i < 3; i++)
        task_without_a_word();
    ck_assert_str_eq(healthy("alpha"), "False NoResults");
    task_that_ends(WORDS[_i].result, WORDS[_i].phase);
    ck_assert_str_eq(healthy("alpha"), "True Answers");
}

TEST_EACH(result_in_between_begins_the_count_anew, WORDS)
{
    task_without_a_word();
    task_without_a_word();
    task_that_ends(WORDS[_i].result, WORDS[_i].phase);
    task_without_a_word();
    task_without_a_word();
    ck_assert_str_eq(healthy("alpha"), "True Answers");
}

TEST(next_leader_believes_it_until_a_result_comes)
{
    for (int i = 0; i < 3; i++)
        task_without_a_word();
    stage.dead = true;
    stage_run();
    stage_wait_ms(10000);
    stage_run();
    ck_assert_str_eq(healthy("alpha"), "False NoResults");
    task_without_a_word();
    ck_assert_str_eq(healthy("alpha"), "False NoResults");
    task_that_ends(WORDS[0].result, WORDS[0].phase);
    ck_assert_str_eq(healthy("alpha"), "True Answers");
}

TEST(health_is_told_in_an_event_once)
{
    struct connection_config connection = { .domain_id = "d", .channel_id = "c", .client_id = "a" };
    struct proplet_observed observed = { .name = "alpha",
                                         .proplet.spec = { .type = PROPLET_EXTERNAL,
                                                           .connection_config = &connection },
                                         .mqtt_configured = true,
                                         .now_us = NOW_US };
    struct proplet_plan plan = proplet_plan(stage.arena, &observed);

    ck_assert_ptr_null(plan.event); /* unknown from the beginning */
    observed.proplet.status = plan.status;
    observed.device.unanswered = FLEET_MAX_UNANSWERED;
    plan = proplet_plan(stage.arena, &observed);
    ck_assert(plan.write == PROPLET_WRITE_NOW);
    ck_assert(condition_is(plan.status.conditions, "Healthy", CONDITION_FALSE));
    ck_assert_ptr_null(plan.event);

    observed.proplet.status = plan.status;
    plan = proplet_plan(stage.arena, &observed);
    ck_assert(plan.write != PROPLET_WRITE_NOW);
    ck_assert_ptr_null(plan.event);

    observed.device.unanswered = 0;
    observed.device.answered = true;
    plan = proplet_plan(stage.arena, &observed);
    ck_assert(condition_is(plan.status.conditions, "Healthy", CONDITION_TRUE));
    ck_assert_ptr_null(plan.event);
}
