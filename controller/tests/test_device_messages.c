/* Every captured message of a device, read as the contract says. */
#include "common/base/str.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/suite.h"
#include "controller/device/messages.h"
#include "controller/tests/captured.h"
#include "controller/tests/fixture.h"

static size_t len;

TEST_GROUP("messages", arena_set_up, arena_tear_down);

TEST_TIMES(result_of_a_device_is_read, CAPTURED_RESULTS)
{
    struct result_message message = { 0 };
    struct error err = { 0 };
    const char *text = fixture_read(arena, RESULTS[_i].file, &len);
    int r = message_result_parse(arena, text, len, &message, &err);

    ck_assert_msg(r == 0, "%s: %s", RESULTS[_i].file, err.message);
    ck_assert_str_eq(message.task_id, RESULTS[_i].task_id);
    ck_assert_pstr_eq(message.proplet_id, RESULTS[_i].proplet_id);
    ck_assert_str_eq(json_text(arena, message.results, NULL), RESULTS[_i].results);
    if (str_equal(RESULTS[_i].error, SOME_ERROR))
        ck_assert(!str_is_empty(message.error));
    else
        ck_assert_pstr_eq(message.error, RESULTS[_i].error);
}

TEST_TIMES(heartbeats_and_last_wills_are_told_apart, CAPTURED_ALIVE)
{
    struct alive_message message = { 0 };
    const char *text = fixture_read(arena, ALIVE[_i].file, &len);

    ck_assert_int_eq(message_alive_parse(arena, text, len, &message, NULL), 0);
    ck_assert_str_eq(message.proplet_id, ALIVE[_i].proplet_id);
    ck_assert_int_eq(message.alive, ALIVE[_i].alive);
}

TEST_TIMES(registration_becomes_metadata_of_the_status, CAPTURED_CREATES)
{
    struct create_message message = { 0 };
    const char *text = fixture_read(arena, CREATES[_i].file, &len);

    ck_assert_int_eq(message_create_parse(arena, text, len, &message, NULL), 0);
    ck_assert_str_eq(message.proplet_id, CREATES[_i].proplet_id);
    ck_assert_str_eq(json_text(arena, message.metadata, NULL), CREATES[_i].metadata);
}

#define NOW_US INT64_C(1795255200000000)
#define NOW_JSON "{\"timestamp\":\"2026-11-21T10:00:00Z\","

static const char *latest_metrics(const struct sample *sample)
{
    const char *text = json_text(arena, sample_json(arena, sample, NOW_US), NULL);

    ck_assert(str_has_prefix(text, NOW_JSON));
    return text + strlen(NOW_JSON);
}

TEST_TIMES(sample_of_a_task_names_its_attempt, CAPTURED_TASK_METRICS)
{
    struct task_metrics_message message = { 0 };
    const char *text = fixture_read(arena, TASK_METRICS[_i].file, &len);

    ck_assert_int_eq(message_task_metrics_parse(arena, text, len, &message, NULL), 0);
    ck_assert_str_eq(message.task_id, TASK_METRICS[_i].task_id);
    ck_assert_str_eq(message.proplet_id, TASK_METRICS[_i].proplet_id);
    ck_assert_int_eq(message.verdict, SAMPLE_PLAUSIBLE);
    sample_correct(&message.sample, TASK_METRICS[_i].dialect);
    ck_assert_str_eq(latest_metrics(&message.sample), TASK_METRICS[_i].latest);
}

TEST_TIMES(sample_of_a_device_becomes_its_latest_metrics, CAPTURED_METRICS)
{
    struct metrics_message message = { 0 };
    const char *text = fixture_read(arena, METRICS[_i].file, &len);

    ck_assert_int_eq(message_metrics_parse(arena, text, len, &message, NULL), 0);
    ck_assert_str_eq(message.proplet_id, METRICS[_i].proplet_id);
    ck_assert_int_eq(message.verdict, SAMPLE_PLAUSIBLE);
    ck_assert_str_eq(latest_metrics(&message.sample), METRICS[_i].latest);
}

TEST_TIMES(other_messages_are_taken_for_nothing_else, CAPTURED_PASSING)
{
    struct result_message result;
    struct task_metrics_message metrics;
    struct alive_message alive;
    const char *file = PASSING[_i].file;
    const char *text = fixture_read(arena, file, &len);
    bool invocation = str_has_prefix(file, "passing/invoke_results");

    ck_assert_int_eq(message_result_parse(arena, text, len, &result, NULL) == 0, invocation);
    ck_assert_int_eq(message_task_metrics_parse(arena, text, len, &metrics, NULL) == 0, invocation);
    ck_assert_int_lt(message_alive_parse(arena, text, len, &alive, NULL), 0);
}

static void expect_in_a_table(void *ctx, const char *name)
{
    bool known = false;

    for (size_t i = 0; i < CAPTURED_RESULTS; i++)
        known |= str_equal(RESULTS[i].file, name);
    for (size_t i = 0; i < CAPTURED_ALIVE; i++)
        known |= str_equal(ALIVE[i].file, name);
    for (size_t i = 0; i < CAPTURED_CREATES; i++)
        known |= str_equal(CREATES[i].file, name);
    for (size_t i = 0; i < CAPTURED_TASK_METRICS; i++)
        known |= str_equal(TASK_METRICS[i].file, name);
    for (size_t i = 0; i < CAPTURED_METRICS; i++)
        known |= str_equal(METRICS[i].file, name);
    for (size_t i = 0; i < CAPTURED_PASSING; i++)
        known |= str_equal(PASSING[i].file, name);
    ck_assert_msg(known, "'%s' is in no table", name);
    ++*(size_t *)ctx;
}

TEST(every_captured_message_is_in_a_table)
{
    size_t seen = 0;

    fixture_for_each("device", expect_in_a_table, &seen);
    fixture_for_each("device/mcu", expect_in_a_table, &seen);
    fixture_for_each("device/manager", expect_in_a_table, &seen);
    fixture_for_each("passing", expect_in_a_table, &seen);
    ck_assert_uint_eq(seen, CAPTURED_RESULTS + CAPTURED_ALIVE + CAPTURED_CREATES +
                                CAPTURED_TASK_METRICS + CAPTURED_METRICS + CAPTURED_PASSING);
}
