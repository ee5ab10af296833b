/* Thousands of Tasks and little room, with the reconcilers: what is counted is work, not time. */
#include "common/api/kinds.h"
#include "common/tests/observe.h"
#include "common/tests/power.h"
#include "controller/tests/fake_bridge.h"

#define CONNECTION(client)                                                                         \
    "\"connectionConfig\":{\"mqttAddress\":\"tcp://"                                               \
    "broker\",\"domainId\":\"d\",\"channelId\":\"c\","                                             \
    "\"clientId\":\"" client "\"}"
#define PROPLET(client)                                                                            \
    "{\"type\":\"external\",\"external\":{\"maxTasks\":1}," CONNECTION(client) "}"
#define ANOTHER_TYPE "{\"type\":\"k8s\",\"k8s\":{\"image\":\"i\"}," CONNECTION("absent-50") "}"
#define TASK_THAT(wants) "{\"name\":\"n\",\"file\":\"AGFzbQEAAAA=\"," wants "}"
#define TASK TASK_THAT("\"preferredPropletType\":\"external\"")
#define PINNED(proplet) TASK_THAT("\"propletSelector\":{\"propletId\":\"" proplet "\"}")
#define PROPLETS 100 /* two of them with a device */

/* Time that passes would tell all who wait their reasons again and again. */
static void write_running_at_once(void)
{
    static struct controller_settings settings;

    settings = *stage.task.settings;
    settings.running_write_delay_ms = 0;
    stage.task.settings = &settings;
}

static void set_up(void)
{
    outside_set_up();
    write_running_at_once();
    stage_put_proplet("alpha", PROPLET("device-1"));
    stage_put_proplet("beta", PROPLET("device-2"));
    for (int i = 2; i < PROPLETS; i++)
        stage_put_proplet(arena_printf(stage.arena, "p-%02d", i),
                          arena_printf(stage.arena, PROPLET("absent-%d"), i));
    stage_run();
}

TEST_GROUP("room at scale", set_up, stage_tear_down);

static int compared(void)
{
    return (int)metric_said("propeller_candidates_compared_total");
}

static void put_tasks(int count)
{
    for (int i = 0; i < count; i++) {
        stage_put(&KIND_TASK, arena_printf(stage.arena, "task-%05d", i), TASK);
        if (i % 1000 == 999)
            stage_run();
    }
}

static void finish_one(void)
{
    for (size_t i = 0; i < outside.run_count; i++) {
        if (outside_answer_one(outside.runs[i].id))
            return;
    }
    ck_abort_msg("nothing runs");
}

static const char *message_of(const char *task)
{
    const cJSON *conditions = json_path(stage_get(&KIND_TASK, task), "status", "conditions", NULL);

    return json_string(json_get(condition_get(conditions, "Scheduled"), "message"), "");
}

/* All with all would be a hundred comparisons for each who comes, and as many each time that all
 * are told: any of these sizes shows it. */
TEST(thousands_that_wait_are_not_compared_with_every_proplet)
{
    enum { FINISHED = 100 };
    unsigned tasks = (unsigned)power_count(1000, 2000, 10000);
    int before = compared();

    put_tasks((int)tasks);
    ck_assert_uint_eq(wait_list_len(stage.task.waiting, "default"), tasks - 2);
    ck_assert_int_le(compared() - before, 5 * PROPLETS);
    ck_assert_uint_le(stage.task_turns, 4 * tasks);

    /* A place that becomes free costs as much as if nobody else waited. */
    unsigned turns = stage.task_turns;
    before = compared();
    for (int i = 0; i < FINISHED; i++) {
        finish_one();
        stage_run();
    }
    ck_assert_uint_eq(outside.starts, FINISHED + 2);
    ck_assert_uint_eq(wait_list_len(stage.task.waiting, "default"), tasks - 2 - FINISHED);
    ck_assert_int_le(compared() - before, 4 * FINISHED);
    ck_assert_uint_le(stage.task_turns - turns, 8 * FINISHED);

    /* Another reason to wait: all are told, one looks. */
    before = compared();
    stage_put_proplet("p-50", ANOTHER_TYPE);
    stage_wait_ms(30000);
    stage_run();
    ck_assert_str_eq(
        message_of("task-00999"),
        "none of 100 Proplets fits: 1 is not of type external, 97 are not ready, 2 are at "
        "maxTasks");
    ck_assert_int_le(compared() - before, 5 * PROPLETS);
}

/* Whether there is time until a close is one check for all that need the same time. */
TEST(tasks_that_need_the_same_time_are_compared_as_one)
{
    enum { TASKS = 1000, NEEDS = 4, FINISHED = 20 };
    int before = compared();

    for (int i = 0; i < TASKS; i++)
        stage_put(&KIND_TASK, arena_printf(stage.arena, "task-%05d", i),
                  arena_printf(stage.arena, TASK_THAT("\"activeDeadlineSeconds\":%d"),
                               36000 + i % NEEDS));
    stage_run();
    ck_assert_uint_eq(wait_list_len(stage.task.waiting, "default"), TASKS - 2);
    ck_assert_int_le(compared() - before, (NEEDS + 4) * PROPLETS);

    before = compared();
    for (int i = 0; i < FINISHED; i++) {
        finish_one();
        stage_run();
    }
    ck_assert_uint_eq(outside.starts, FINISHED + 2);
    ck_assert_int_le(compared() - before, (2 * NEEDS + 2) * FINISHED);
}

/* Of a thousand Tasks that are pinned to other Proplets none is looked at. */
TEST(those_who_are_pinned_elsewhere_are_passed_over)
{
    enum { TASKS = 1000, FINISHED = 20 };

    for (int i = 0; i < TASKS; i++)
        stage_put(&KIND_TASK, arena_printf(stage.arena, "pinned-%05d", i),
                  arena_printf(stage.arena, PINNED("p-%02d"), 2 + i % (PROPLETS - 2)));
    stage_run();
    put_tasks(TASKS);
    ck_assert_uint_eq(wait_list_len(stage.task.waiting, "default"), 2 * TASKS - 2);

    int before = compared();
    for (int i = 0; i < FINISHED; i++) {
        finish_one();
        stage_run();
    }
    ck_assert_uint_eq(outside.starts, FINISHED + 2);
    ck_assert_int_le(compared() - before, 4 * FINISHED);
}

/* Whatever becomes of a fleet, it is nothing to those who are suspended. */
TEST(suspended_tasks_take_no_turn_when_a_proplet_changes)
{
    enum { TASKS = 2000, CHANGES = 5 };

    for (int i = 0; i < TASKS; i++)
        stage_put(&KIND_TASK, arena_printf(stage.arena, "task-%05d", i),
                  TASK_THAT("\"suspend\":true"));
    stage_run();
    ck_assert_str_eq(message_of("task-01999"), "spec.suspend is true");

    unsigned turns = stage.task_turns;
    for (int i = 0; i < CHANGES; i++) {
        stage_put_proplet("p-50", i % 2 ? PROPLET("absent-50") : ANOTHER_TYPE);
        stage_wait_ms(60000);
        stage_run();
    }
    ck_assert_uint_le(stage.task_turns - turns, CHANGES);
}
