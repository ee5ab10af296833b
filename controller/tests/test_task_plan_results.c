#include "common/base/digest.h"
#include "common/base/str.h"
#include "controller/tests/task_world.h"

#define RESULT(text) "{\"task_id\":\"" WORLD_UID "\"," text "}"
#define LAST (world.results[world.observed.result_count - 1].sequence)

static const char *stored(const struct task_plan *plan)
{
    return plan->status.results ? json_text(world.arena, plan->status.results, NULL) : NULL;
}

static const struct {
    const char *message;
    const char *stored; /* NULL: no results */
} VALUES[] = {
    { RESULT("\"results\":\"42\""), "\"42\"" },
    { RESULT("\"results\":\"\",\"error\":null"), "\"\"" },
    { RESULT("\"results\":\"42\",\"error\":\"\""), "\"42\"" },
    { RESULT("\"results\":42"), "42" },
    { RESULT("\"results\":9007199254740993"), "9007199254740993" },
    { RESULT("\"results\":1.50"), "1.50" },
    { RESULT("\"results\":{\"a\":[1,null]}"), "{\"a\":[1,null]}" },
    { RESULT("\"results\":[1,\"2\",{}]"), "[1,\"2\",{}]" },
    { RESULT("\"results\":true"), "true" },
    { RESULT("\"results\":null"), "null" },
    { RESULT("\"error\":null"), NULL },
};

TEST_GROUP("results", world_set_up, world_tear_down);

TEST_EACH(result_is_stored_as_it_came, VALUES)
{
    world_running();
    world_result(WORLD_CHANNEL, "%s", VALUES[_i].message);
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.status.phase, TASK_COMPLETED);
    ck_assert_pstr_eq(stored(&plan), VALUES[_i].stored);
    ck_assert_ptr_null(plan.status.error);
    ck_assert_ptr_null(plan.status.reason);
    ck_assert_str_eq(world_condition(&plan, "Completed"), "True ResultReceived: ");
    ck_assert_str_eq(world_condition(&plan, "Failed"), "");
    ck_assert_int_eq(plan.status.finished_at_us, world.observed.now_us);
    ck_assert_uint_eq(plan.ack_up_to, LAST);
    ck_assert(plan.has_payload);
    ck_assert_str_eq(plan.event->reason, "Completed");
    ck_assert(!plan.stop && plan.action != TASK_START);
}

TEST_TIMES(error_of_a_task_that_is_being_suspended_is_its_word_on_the_stop, 2)
{
    if (_i)
        world_running();
    else
        world_assigned();
    world_suspended();
    world_result(WORLD_CHANNEL, RESULT("\"error\":\"Task was cancelled or panicked\""));
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.status.phase, _i ? TASK_INTERRUPTED : TASK_SCHEDULED);
    ck_assert_str_eq(plan.status.reason, "Suspended");
    ck_assert_ptr_null(plan.status.error);
    ck_assert(!plan.stop && !plan.has_payload);
    ck_assert_uint_eq(plan.ack_up_to, LAST);
}

static void second_attempt(void)
{
    world_finished(TASK_INTERRUPTED);
    world.spec->suspend = false;
    struct task_plan plan = world_plan();
    world_do(&plan);
    world_running();
    ck_assert_int_eq(world.status->attempt, 2);
}

static void complete(void)
{
    world_finished(TASK_COMPLETED);
}

static void fail_it(void)
{
    world_finished(TASK_FAILED);
}

static void interrupt(void)
{
    world_finished(TASK_INTERRUPTED);
}

static void unassign(void)
{
    world_assigned();
    world_suspended();
    struct task_plan plan = world_plan();
    world_do(&plan);
}

static void stay_pending(void)
{
    world.spec->suspend = true;
    struct task_plan plan = world_plan();
    world_do(&plan);
}

static void wait_for_proplet(void)
{
    world_assigned();
    world.observed.proplet.ready = false;
    struct task_plan plan = world_plan();
    world_do(&plan);
}

static void lose_proplet(void)
{
    world_running();
    world.spec->proplet_lost_policy = LOST_FAIL;
    world.observed.proplet = (struct observed_proplet){ 0 };
}

static const struct {
    void (*set_up)(void);
    const char *channel;
    const char *id;
    const char *rest;
    enum result_verdict verdict;
} JUDGED[] = {
    { world_running, WORLD_CHANNEL, WORLD_UID, "", RESULT_ACCEPTED },
    { world_running, WORLD_CHANNEL, WORLD_UID, ",\"proplet_id\":\"device-1\"", RESULT_ACCEPTED },
    { wait_for_proplet, WORLD_CHANNEL, WORLD_UID, "", RESULT_ACCEPTED },
    { second_attempt, WORLD_CHANNEL, WORLD_UID ".2", "", RESULT_ACCEPTED },
    { world_running, WORLD_CHANNEL, WORLD_UID ".2", "", RESULT_OTHER_ATTEMPT },
    { world_running, WORLD_CHANNEL, WORLD_UID ".1", "", RESULT_OTHER_ATTEMPT },
    { second_attempt, WORLD_CHANNEL, WORLD_UID, "", RESULT_OTHER_ATTEMPT },
    { second_attempt, WORLD_CHANNEL, WORLD_UID ".3", "", RESULT_OTHER_ATTEMPT },
    { second_attempt, WORLD_CHANNEL, WORLD_UID ".2.0", "", RESULT_OTHER_ATTEMPT },
    { world_running, "dom-1/chan-2", WORLD_UID, "", RESULT_OTHER_CHANNEL },
    { world_running, "dom-2/chan-1", WORLD_UID, ",\"proplet_id\":\"device-1\"",
      RESULT_OTHER_CHANNEL },
    { world_running, WORLD_CHANNEL, WORLD_UID, ",\"proplet_id\":\"device-2\"",
      RESULT_OTHER_PROPLET },
    { world_running, WORLD_CHANNEL, WORLD_UID, ",\"proplet_id\":\"alpha\"",
      RESULT_OTHER_PROPLET }, /* the object's name is not the device's identity */
    { world_running, WORLD_CHANNEL, WORLD_UID, ",\"results\":{\"proplet_id\":\"device-2\"}",
      RESULT_OTHER_PROPLET },
    { world_running, WORLD_CHANNEL, WORLD_UID, ",\"results\":{\"proplet_id\":\"device-1\"}",
      RESULT_ACCEPTED },
    { complete, WORLD_CHANNEL, WORLD_UID, "", RESULT_NOT_RUNNING },
    { fail_it, WORLD_CHANNEL, WORLD_UID, "", RESULT_NOT_RUNNING },
    { interrupt, WORLD_CHANNEL, WORLD_UID, "", RESULT_NOT_RUNNING },
    { unassign, WORLD_CHANNEL, WORLD_UID, "", RESULT_NOT_RUNNING },
    { stay_pending, WORLD_CHANNEL, WORLD_UID, "", RESULT_NOT_RUNNING },
    { lose_proplet, WORLD_CHANNEL, WORLD_UID, "", RESULT_OTHER_CHANNEL },
};

TEST_EACH(result_counts_only_from_the_device_that_was_given_the_attempt, JUDGED)
{
    JUDGED[_i].set_up();
    struct task_plan without = world_plan();
    world_result(JUDGED[_i].channel, "{\"task_id\":\"%s\"%s}", JUDGED[_i].id, JUDGED[_i].rest);
    struct task_plan plan = world_plan();
    bool accepted = JUDGED[_i].verdict == RESULT_ACCEPTED;

    for (int verdict = 0; verdict < RESULT_VERDICTS; verdict++)
        ck_assert_uint_eq(plan.rejected[verdict], !accepted && verdict == (int)JUDGED[_i].verdict);
    ck_assert_uint_eq(plan.ack_up_to, LAST);
    ck_assert_int_eq(plan.has_payload, accepted);
    if (accepted)
        ck_assert_int_eq(plan.status.phase, TASK_COMPLETED);
    else
        ck_assert_str_eq(
            json_text(world.arena, task_status_encode(world.arena, &plan.status), NULL),
            json_text(world.arena, task_status_encode(world.arena, &without.status), NULL));
}

TEST(first_of_two_results_counts_and_both_are_dealt_with)
{
    world_running();
    world_result(WORLD_CHANNEL, "{\"task_id\":\"" WORLD_UID ".7\",\"results\":\"forged\"}");
    world_result(WORLD_CHANNEL, RESULT("\"results\":\"first\""));
    world_result(WORLD_CHANNEL, RESULT("\"results\":\"second\""));
    struct task_plan plan = world_plan();

    ck_assert_str_eq(stored(&plan), "\"first\"");
    ck_assert_uint_eq(plan.rejected[RESULT_OTHER_ATTEMPT], 1);
    ck_assert_uint_eq(plan.rejected[RESULT_NOT_RUNNING], 1);
    ck_assert_uint_eq(plan.ack_up_to, LAST);
}

TEST(every_verdict_has_a_name_for_its_metric)
{
    for (int verdict = 0; verdict < RESULT_VERDICTS; verdict++)
        ck_assert(!str_is_empty(RESULT_VERDICT_NAMES[verdict]));
}

TEST_TIMES(error_of_the_device_fails_the_task, 2)
{
    if (_i)
        world_running();
    else
        world_assigned();
    world_result(WORLD_CHANNEL, RESULT("\"results\":\"\",\"error\":\"trap\\n 0: 0x2e\""));
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.status.phase, TASK_FAILED);
    ck_assert_str_eq(plan.status.reason, "DeviceError");
    ck_assert_str_eq(plan.status.error, "trap\n 0: 0x2e");
    ck_assert_ptr_null(plan.status.results);
    ck_assert_int_eq(plan.status.failures, 1);
    ck_assert_int_ne(plan.status.started_at_us, 0);
    ck_assert_str_eq(world_condition(&plan, "Completed"), "False DeviceError: trap\n 0: 0x2e");
    ck_assert_str_eq(world_condition(&plan, "Failed"), "True DeviceError: trap\n 0: 0x2e");
    ck_assert_ptr_eq(plan.event, &TASK_EVENT_FAILED);
    ck_assert(plan.has_payload);
}

TEST(long_error_is_cut_at_a_character)
{
    char *error = arena_alloc(world.arena, 1, 6001);

    for (size_t i = 0; i < 6000; i += 3) /* 4096 is in the middle of a character */
        memcpy(error + i, "\xe2\x82\xac", 3);
    world_running();
    world_result(WORLD_CHANNEL, RESULT("\"error\":\"%s\""), error);
    struct task_plan plan = world_plan();

    ck_assert_uint_eq(strlen(plan.status.error), 4095);
    ck_assert(str_is_utf8(plan.status.error, 4095));
    ck_assert_uint_eq(strlen(world_condition(&plan, "Failed")),
                      strlen("True DeviceError: ") + 1023);
}

static const char *text_of(size_t len)
{
    char *text = arena_alloc(world.arena, 1, len + 1);

    memset(text, 'x', len);
    return text;
}

TEST_TIMES(result_of_the_greatest_size_is_taken, 2)
{
    world_running();
    world_result(WORLD_CHANNEL, RESULT("\"results\":%s%s%s"), _i ? "[\"" : "\"",
                 text_of(world.observed.max_result_bytes - (_i ? 4 : 0)), _i ? "\"]" : "\"");
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.status.phase, TASK_COMPLETED);
}

TEST_TIMES(result_that_is_too_large_fails_the_task_with_size_and_digest, 2)
{
    const char *text = text_of(world.observed.max_result_bytes + 1 - (_i ? 4 : 0));
    char digest[SHA256_HEX_LEN];

    world_running();
    world_result(WORLD_CHANNEL, RESULT("\"results\":%s%s%s"), _i ? "[\"" : "\"", text,
                 _i ? "\"]" : "\"");
    struct task_plan plan = world_plan();

    if (_i) /* what is not a string counts and is hashed as JSON text */
        text = arena_printf(world.arena, "[\"%s\"]", text);
    ck_assert_int_eq(plan.status.phase, TASK_FAILED);
    ck_assert_str_eq(plan.status.reason, "ResultTooLarge");
    ck_assert_str_eq(plan.status.error,
                     arena_printf(world.arena, "the result has 65 bytes, 64 are allowed; sha256 %s",
                                  sha256_hex(text, 65, digest)));
    ck_assert_ptr_null(plan.status.results);
    ck_assert_uint_eq(plan.ack_up_to, LAST);
}

TEST_GROUP("daemons", world_set_up, world_tear_down);

TEST(daemon_that_reports_in_is_running)
{
    world.spec->daemon = true;
    world_assigned();
    world_result(WORLD_CHANNEL, RESULT("\"results\":\"\",\"error\":null"));
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.status.phase, TASK_RUNNING);
    ck_assert(plan.action != TASK_START);
    ck_assert(!plan.has_payload);
    ck_assert_uint_eq(plan.ack_up_to, LAST);
    ck_assert_ptr_null(plan.status.results);
    ck_assert_str_eq(world_condition(&plan, "Started"),
                     "True StartPublished: the broker has the start");
}

static void run_daemon(void)
{
    world.spec->daemon = true;
    world_running();
    world_result(WORLD_CHANNEL, RESULT("\"results\":\"\",\"error\":null"));
}

TEST(daemon_goes_on_after_its_result)
{
    run_daemon();
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.status.phase, TASK_RUNNING);
    ck_assert_uint_eq(plan.ack_up_to, LAST);
    ck_assert_str_eq(world_condition(&plan, "Started"), "True ResultReceived: ");
    ck_assert_ptr_null(plan.event);
    world_do(&plan);
    plan = world_plan();
    world_expect_rest(&plan);
}

TEST(error_of_a_daemon_fails_it)
{
    world.spec->daemon = true;
    world_running();
    world_result(WORLD_CHANNEL, RESULT("\"error\":\"trap\""));
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.status.phase, TASK_FAILED);
    ck_assert_str_eq(plan.status.reason, "DeviceError");
}

TEST_GROUP("results", world_set_up, world_tear_down);

TEST_TIMES(refused_status_is_replaced_by_one_without_payload, 2)
{
    static const char *const MESSAGES[] = { RESULT("\"results\":\"42\""),
                                            RESULT("\"error\":\"trap\"") };

    world_assigned();
    world_result(WORLD_CHANNEL, "%s", MESSAGES[_i]);
    struct task_plan plan = world_plan();
    struct task_plan minimal = world_conclude(&plan, SETBACK_UNSTORABLE, REASON_NONE, NULL);

    ck_assert_int_eq(minimal.status.phase, TASK_FAILED);
    ck_assert_str_eq(minimal.status.reason, "ResultRefused");
    ck_assert_str_eq(minimal.status.error, "the API server does not take this result");
    ck_assert_ptr_null(minimal.status.results);
    ck_assert_str_eq(world_condition(&minimal, "Started"), "True ResultReceived: ");
    ck_assert_uint_eq(minimal.ack_up_to, LAST);
}
