/* What is taken of the numbers that devices send, and what cannot be meant. */
#include "controller/device/samples.h"

#include "common/base/str.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/suite.h"

#define NOW_US INT64_C(1795255200000000) /* 2026-11-21T10:00:00Z */

static struct error err;

TEST_GROUP("samples", arena_set_up, arena_tear_down);

static const char *describe(enum sample_verdict verdict, const struct sample *sample)
{
    if (verdict != SAMPLE_PLAUSIBLE)
        return SAMPLE_VERDICT_NAMES[verdict];

    return arena_printf(arena, "%lld %lld %lld", (long long)sample->cpu_milli_percent,
                        (long long)sample->memory_milli_percent, (long long)sample->memory_bytes);
}

static const struct {
    const char *members;  /* beside proplet_id */
    const char *expected; /* processor, memory in percent, bytes; or the verdict */
} DEVICES[] = {
    { ",\"cpu_metrics\":{\"percent\":84.76396179199219}", "84763 -1 -1" },
    { ",\"cpu_metrics\":{\"percent\":0}", "0 -1 -1" },
    { ",\"cpu_metrics\":{\"percent\":1000000}", "1000000000 -1 -1" },
    { ",\"memory_metrics\":{\"rss_bytes\":4096}", "-1 -1 4096" },
    { ",\"memory_metrics\":{\"rss_bytes\":1024,\"container_limit_bytes\":4096}", "-1 25000 1024" },
    { ",\"memory_metrics\":{\"rss_bytes\":1024,\"container_limit_bytes\":9223372036854771712}",
      "-1 -1 1024" },
    { ",\"memory_metrics\":{\"rss_bytes\":1024,\"container_limit_bytes\":-4096}", "-1 -1 1024" },
    { ",\"memory_metrics\":{\"rss_bytes\":1024,\"container_limit_bytes\":0}", "-1 -1 1024" },
    { ",\"memory_metrics\":{\"rss_bytes\":1024,\"container_limit_bytes\":\"1\"}", "-1 -1 1024" },
    { ",\"memory_metrics\":{\"rss_bytes\":1152921504606846976,\"container_limit_bytes\":1}",
      "-1 -1 1152921504606846976" },
    { ",\"memory_metrics\":{\"rss_bytes\":1024,\"heap_alloc_bytes\":7}", "-1 -1 1024" },
    { ",\"memory_metrics\":{\"rss_bytes\":0,\"heap_alloc_bytes\":0}", "-1 -1 0" },
    { ",\"memory_metrics\":{\"heap_alloc_bytes\":1024,\"heap_sys_bytes\":2048}", "-1 50000 1024" },
    { ",\"cpu_metrics\":{\"percent\":null},\"memory_metrics\":{\"rss_bytes\":1}", "-1 -1 1" },
    { "", "empty" },
    { ",\"cpu_metrics\":7,\"memory_metrics\":[]", "empty" },
    { ",\"cpu_metrics\":{\"percent\":null}", "empty" },
    { ",\"cpu_metrics\":{\"percent\":\"84\"}", "not_a_number" },
    { ",\"cpu_metrics\":{\"percent\":true}", "not_a_number" },
    { ",\"cpu_metrics\":{\"percent\":{}}", "not_a_number" },
    { ",\"cpu_metrics\":{\"percent\":-0.001}", "negative" },
    { ",\"cpu_metrics\":{\"percent\":1000000.1}", "too_large" },
    { ",\"cpu_metrics\":{\"percent\":1e308}", "too_large" },
    { ",\"cpu_metrics\":{\"percent\":1e999}", "too_large" },
    { ",\"memory_metrics\":{\"rss_bytes\":-1}", "negative" },
    { ",\"memory_metrics\":{\"rss_bytes\":2e18}", "too_large" },
    { ",\"memory_metrics\":{\"rss_bytes\":99999999999999999999}", "too_large" },
    { ",\"memory_metrics\":{\"rss_bytes\":1,\"heap_alloc_bytes\":-1}", "negative" },
    { ",\"cpu_metrics\":{\"percent\":1},\"memory_metrics\":{\"rss_bytes\":\"1\"}", "not_a_number" },
};

TEST_EACH(numbers_of_a_device_are_taken_or_objected_to, DEVICES)
{
    struct metrics_message message = { 0 };
    const char *text = arena_printf(arena, "{\"proplet_id\":\"device-1\"%s}", DEVICES[_i].members);
    int r = message_metrics_parse(arena, text, strlen(text), &message, &err);

    ck_assert_msg(r == 0, "%s: %s", text, err.message);
    ck_assert_str_eq(message.proplet_id, "device-1");
    ck_assert_str_eq(describe(message.verdict, &message.sample), DEVICES[_i].expected);
}

static const struct {
    const char *members; /* beside task_id */
    const char *standard;
    const char *embedded;
} TASKS[] = {
    { ",\"metrics\":{\"cpu_percent\":65.64,\"memory_percent\":0.0,\"memory_bytes\":2048}",
      "65640 -1 2", "65640 0 2048" },
    { ",\"metrics\":{\"memory_percent\":28.125,\"memory_bytes\":1024}", "-1 -1 1",
      "-1 28125 1024" },
    { ",\"metrics\":{\"cpu_percent\":1,\"memory_bytes\":null}", "1000 -1 -1", "1000 -1 -1" },
    { ",\"metrics\":{\"cpu_percent\":1,\"memory_bytes\":0}", "1000 -1 0", "1000 -1 0" },
    { "", "empty", "empty" },
    { ",\"metrics\":[]", "empty", "empty" },
    { ",\"metrics\":{\"memory_percent\":1}", "empty", "empty" },
    { ",\"metrics\":{\"cpu_percent\":\"NaN\"}", "not_a_number", "not_a_number" },
    { ",\"metrics\":{\"cpu_percent\":1,\"memory_bytes\":-5}", "negative", "negative" },
    { ",\"metrics\":{\"cpu_percent\":1,\"memory_percent\":1e7}", "too_large", "too_large" },
};

TEST_EACH(numbers_of_a_task_are_corrected_for_the_linux_device, TASKS)
{
    struct task_metrics_message message = { 0 };
    const char *text = arena_printf(arena, "{\"task_id\":\"t\"%s}", TASKS[_i].members);
    int r = message_task_metrics_parse(arena, text, strlen(text), &message, &err);

    ck_assert_msg(r == 0, "%s: %s", text, err.message);
    struct sample other = message.sample;
    sample_correct(&message.sample, DIALECT_STANDARD);
    ck_assert_str_eq(describe(message.verdict, &message.sample), TASKS[_i].standard);
    sample_correct(&other, DIALECT_EMBEDDED);
    ck_assert_str_eq(describe(message.verdict, &other), TASKS[_i].embedded);
}

TEST_TIMES(nobody_is_no_owner, 5)
{
    static const char *const TEXTS[] = { "{}", "{\"proplet_id\":7}", "{\"proplet_id\":\"\"}", "[1]",
                                         "NaN" };
    struct metrics_message message;
    int r = message_metrics_parse(arena, TEXTS[_i], strlen(TEXTS[_i]), &message, &err);

    ck_assert_int_eq(r, -ERROR_INVALID);
    ck_assert(!str_is_empty(err.message));
}

TEST(what_the_device_does_not_say_is_left_out)
{
    const struct sample all = { 1, 2, 3 };
    const struct sample none = { -1, -1, -1 };

    ck_assert_str_eq(json_text(arena, sample_json(arena, &all, NOW_US), NULL),
                     "{\"timestamp\":\"2026-11-21T10:00:00Z\",\"cpuMilliPercent\":1,"
                     "\"memoryMilliPercent\":2,\"memoryBytes\":3}");
    ck_assert_str_eq(json_text(arena, sample_json(arena, &none, NOW_US), NULL),
                     "{\"timestamp\":\"2026-11-21T10:00:00Z\"}");
}
