/* Every captured message of a device, read as the contract says. */
#include "common/base/str.h"
#include "common/tests/suite.h"
#include "controller/device/messages.h"
#include "controller/tests/captured.h"
#include "controller/tests/fixture.h"

static struct arena *arena;
static size_t len;

static void set_up(void)
{
    json_init();
    arena = arena_create();
}

static void tear_down(void)
{
    arena_destroy(arena);
}

START_TEST(result_of_a_device_is_read)
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
END_TEST

START_TEST(heartbeats_and_last_wills_are_told_apart)
{
    struct alive_message message = { 0 };
    const char *text = fixture_read(arena, ALIVE[_i].file, &len);

    ck_assert_int_eq(message_alive_parse(arena, text, len, &message, NULL), 0);
    ck_assert_str_eq(message.proplet_id, ALIVE[_i].proplet_id);
    ck_assert_int_eq(message.alive, ALIVE[_i].alive);
}
END_TEST

START_TEST(registration_becomes_metadata_of_the_status)
{
    struct create_message message = { 0 };
    const char *text = fixture_read(arena, CREATES[_i].file, &len);

    ck_assert_int_eq(message_create_parse(arena, text, len, &message, NULL), 0);
    ck_assert_str_eq(message.proplet_id, CREATES[_i].proplet_id);
    ck_assert_str_eq(json_text(arena, message.metadata, NULL), CREATES[_i].metadata);
}
END_TEST

#define NOW_US INT64_C(1795255200000000)
#define NOW_JSON "{\"timestamp\":\"2026-11-21T10:00:00Z\","

static const char *latest_metrics(const struct sample *sample)
{
    const char *text = json_text(arena, sample_json(arena, sample, NOW_US), NULL);

    ck_assert(str_has_prefix(text, NOW_JSON));
    return text + strlen(NOW_JSON);
}

START_TEST(sample_of_a_task_names_its_attempt)
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
END_TEST

START_TEST(sample_of_a_device_becomes_its_latest_metrics)
{
    struct metrics_message message = { 0 };
    const char *text = fixture_read(arena, METRICS[_i].file, &len);

    ck_assert_int_eq(message_metrics_parse(arena, text, len, &message, NULL), 0);
    ck_assert_str_eq(message.proplet_id, METRICS[_i].proplet_id);
    ck_assert_int_eq(message.verdict, SAMPLE_PLAUSIBLE);
    ck_assert_str_eq(latest_metrics(&message.sample), METRICS[_i].latest);
}
END_TEST

START_TEST(other_messages_are_taken_for_nothing_else)
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
END_TEST

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

START_TEST(every_captured_message_is_in_a_table)
{
    size_t seen = 0;

    fixture_for_each("device", expect_in_a_table, &seen);
    fixture_for_each("device/mcu", expect_in_a_table, &seen);
    fixture_for_each("device/manager", expect_in_a_table, &seen);
    fixture_for_each("passing", expect_in_a_table, &seen);
    ck_assert_uint_eq(seen, CAPTURED_RESULTS + CAPTURED_ALIVE + CAPTURED_CREATES +
                                CAPTURED_TASK_METRICS + CAPTURED_METRICS + CAPTURED_PASSING);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("messages of devices");
    TCase *tcase = tcase_create("messages");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, result_of_a_device_is_read, 0, CAPTURED_RESULTS);
    tcase_add_loop_test(tcase, heartbeats_and_last_wills_are_told_apart, 0, CAPTURED_ALIVE);
    tcase_add_loop_test(tcase, registration_becomes_metadata_of_the_status, 0, CAPTURED_CREATES);
    tcase_add_loop_test(tcase, sample_of_a_task_names_its_attempt, 0, CAPTURED_TASK_METRICS);
    tcase_add_loop_test(tcase, sample_of_a_device_becomes_its_latest_metrics, 0, CAPTURED_METRICS);
    tcase_add_loop_test(tcase, other_messages_are_taken_for_nothing_else, 0, CAPTURED_PASSING);
    tcase_add_test(tcase, every_captured_message_is_in_a_table);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
