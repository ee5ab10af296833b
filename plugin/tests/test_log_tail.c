/* Lines of a log that is read again and again. */
#include "plugin/commands/log_tail.h"

#include "common/tests/arena_fixture.h"
#include "common/tests/suite.h"

TEST_GROUP("log_tail", arena_set_up, arena_tear_down);

#define AT(second, nanoseconds) "2026-01-01T00:00:0" second "." nanoseconds "Z "

TEST(each_line_is_taken_once)
{
    struct log_tail tail = { .same = 0 };

    ck_assert_ptr_null(log_tail_since(&tail, arena));
    ck_assert_str_eq(log_tail_take(&tail, arena, ""), "");
    ck_assert_str_eq(
        log_tail_take(&tail, arena, AT("1", "000000001") "one\n" AT("1", "000000002") "two\n"),
        "one\ntwo\n");
    ck_assert_str_eq(log_tail_since(&tail, arena), "2026-01-01T00:00:01Z");
    ck_assert_str_eq(
        log_tail_take(&tail, arena, AT("1", "000000001") "one\n" AT("1", "000000002") "two\n"), "");
    ck_assert_str_eq(log_tail_take(&tail, arena,
                                   AT("1", "000000001") "one\n" AT("1", "000000002") "two\n" AT(
                                       "2", "000000000") "three\n"),
                     "three\n");
}

/* A program may print several lines in one tick of the clock, of which a call sees some. */
TEST(lines_of_the_same_time_are_counted)
{
    struct log_tail tail = { .same = 0 };
    const char *line = AT("1", "000000000") "same\n";

    ck_assert_str_eq(log_tail_take(&tail, arena, arena_printf(arena, "%s%s", line, line)),
                     "same\nsame\n");
    ck_assert_str_eq(log_tail_take(&tail, arena, arena_printf(arena, "%s%s%s", line, line, line)),
                     "same\n");
    ck_assert_str_eq(log_tail_take(&tail, arena, arena_printf(arena, "%s%s%s", line, line, line)),
                     "");
}

static const struct {
    const char *text, *taken;
} ODD[] = {
    { AT("1", "000000000") "\n", "\n" },                            /* an empty line */
    { AT("1", "000000000") "no end", "no end" },                    /* one that is not finished */
    { "unable to retrieve the log", "unable to retrieve the log" }, /* words of the kubelet */
};

TEST_EACH(odd_lines_are_kept, ODD)
{
    struct log_tail tail = { .same = 0 };

    ck_assert_str_eq(log_tail_take(&tail, arena, ODD[_i].text), ODD[_i].taken);
}

TEST(a_time_of_a_zone_keeps_it)
{
    struct log_tail tail = { .last = "2026-01-01T01:00:00.500000000+01:00" };

    ck_assert_str_eq(log_tail_since(&tail, arena), "2026-01-01T01:00:00+01:00");
}
