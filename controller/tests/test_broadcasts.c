/* Broadcasts with the reconcilers, devices and a broker, one behaviour each. */
#include "common/api/kinds.h"
#include "common/base/str.h"
#include "controller/tests/fake_bridge.h"

#define SPEC "\"name\":\"one\",\"file\":\"AGFzbQEAAAA=\",\"broadcast\":true"
#define PROPLET(client, more)                                                                      \
    "{\"type\":\"external\"," more                                                                 \
    "\"connectionConfig\":{\"mqttAddress\":\"tcp://broker\",\"domainId\":\"d\","                   \
    "\"channelId\":\"c\",\"clientId\":\"" client "\"}}"

/* "completed 42, failed PropletCordoned" */
static const char *targets(void)
{
    const cJSON *status = json_get(stage_get(&KIND_TASK, "one"), "status");
    const char *text = "";

    json_for_each (target, json_get(status, "broadcastResults")) {
        text = arena_printf(
            stage.arena, "%s%s%s %s", text, *text ? ", " : "",
            json_string(json_get(target, "phase"), "?"),
            json_string(json_get(target, "results"), json_string(json_get(target, "reason"), "-")));
    }
    return text;
}

static void cordon_alpha(void)
{
    stage_put_proplet("alpha", PROPLET("device-1", "\"unschedulable\":true,"));
    stage_run();
}

TEST_GROUP("broadcasts", outside_set_up, stage_tear_down);

TEST(target_that_this_process_chose_is_known_not_to_be_started)
{
    outside.slow = true; /* starts wait for a marker */
    stage_put_task("{" SPEC "}");
    stage_run();
    ck_assert_str_eq(targets(), "scheduled -, scheduled -");
    cordon_alpha();
    ck_assert_str_eq(targets(), "failed PropletCordoned, scheduled -");
    ck_assert_uint_eq(outside.starts, 0);
}

TEST(target_does_not_go_over_to_another_proplet_of_its_name)
{
    stage_put_task("{" SPEC "}");
    stage_run();
    stage_replace_proplet("alpha", PROPLET("device-9", ""));
    stage_run();
    ck_assert_str_eq(targets(), "failed PropletDeleted, running -");
    ck_assert_uint_eq(outside.starts, 2);
}

TEST(target_that_begins_anew_is_known_not_to_be_started)
{
    stage_put_task("{" SPEC "}");
    stage_run();
    ck_assert_str_eq(targets(), "running -, running -");
    outside_restart();
    for (int i = 0; i < 50 && !str_equal(targets(), "scheduled -, scheduled -"); i++)
        stage_turns(1);
    outside.slow = true;
    stage_run();
    cordon_alpha();
    ck_assert_str_eq(targets(), "failed PropletCordoned, scheduled -");
    ck_assert_uint_eq(outside.starts, 2);
}

/* Each word is acknowledged when it comes, and not waited for again. */
TEST(deleted_it_is_gone_with_the_last_word_of_its_devices)
{
    stage_put_task("{" SPEC "}");
    stage_run();
    outside.deaf = true;
    stage_delete(&KIND_TASK, "one");
    stage_run();
    ck_assert(outside_answer_one(outside.runs[0].id));
    stage_run();
    ck_assert_ptr_nonnull(stage_get(&KIND_TASK, "one"));
    ck_assert_uint_eq(mailbox_len(stage.task.mailbox), 0);
    ck_assert(outside_answer_one(outside.runs[1].id));
    stage_run();
    ck_assert_ptr_null(stage_get(&KIND_TASK, "one"));
}

/* A run of a schedule has the targets that match at its time. */
TEST(each_run_of_a_schedule_is_told_to_all_who_match_then)
{
    outside.answers = true;
    stage_put_task("{" SPEC ",\"isRecurring\":true,\"schedule\":\"@every 60s\","
                   "\"startingDeadlineSeconds\":10}");
    stage_run();
    ck_assert_str_eq(stage_task_string("reason"), "WaitingForSchedule");
    ck_assert_str_eq(targets(), "");
    stage_wait_ms(61000);
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "completed");
    ck_assert_str_eq(targets(), "completed 42, completed 42");

    stage_put_proplet("gamma", PROPLET("device-1b", ""));
    cordon_alpha();
    stage_wait_ms(60000);
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "completed");
    ck_assert_str_eq(targets(), "completed 42");
    ck_assert_uint_eq(outside.starts, 3);
}

TEST(run_that_no_proplet_can_take_in_time_is_left_out)
{
    stage_put_task("{" SPEC ",\"isRecurring\":true,\"schedule\":\"@every 60s\","
                   "\"startingDeadlineSeconds\":10,\"broadcastQuorum\":3}");
    stage_run();
    stage_wait_ms(61000);
    stage_run();
    ck_assert_str_eq(stage_task_string("reason"), "TooFewTargets");
    stage_wait_ms(10000);
    stage_run();
    ck_assert_str_eq(stage_task_string("reason"), "WaitingForSchedule");
    ck_assert_uint_eq(outside.starts, 0);
}
