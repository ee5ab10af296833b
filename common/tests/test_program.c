#include "common/runtime/program.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/observe.h"
#include "common/tests/suite.h"

TEST_GROUP("program", arena_set_up, arena_tear_down);

TEST(help_and_version_end_in_success_and_silence)
{
    struct error err = { 0 };

    capture_start(STDERR_FILENO);
    ck_assert_int_eq(program_end_of_options("prog", 1, &err), 0);
    ck_assert_str_eq(capture_text(arena), "");
}

TEST(unusable_options_end_in_2_and_their_error)
{
    struct error err = { 0 };
    int r = error_set(&err, ERROR_INVALID, "--port: must be a number");

    capture_start(STDERR_FILENO);
    ck_assert_int_eq(program_end_of_options("prog", r, &err), 2);
    ck_assert_str_eq(capture_text(arena), "prog: --port: must be a number\n");
}

TEST(a_program_that_did_its_work_ends_in_success_and_silence)
{
    struct error err = { 0 };

    capture_start(STDERR_FILENO);
    program_configure_log("info", "text");
    ck_assert_int_eq(program_end("prog", 0, &err), 0);
    ck_assert_str_eq(capture_text(arena), "");
}

TEST(what_ended_a_program_is_logged)
{
    struct error err = { 0 };
    int r = error_set(&err, ERROR_CANCELED, "leadership ended");

    capture_start(STDERR_FILENO);
    program_configure_log("error", "json");
    ck_assert_int_eq(program_end("prog", r, &err), 1);
    ck_assert_ptr_nonnull(
        strstr(capture_text(arena), "\"program\":\"prog\",\"error\":\"leadership ended\"}\n"));
}

TEST(log_has_the_level_and_the_format_of_the_options)
{
    capture_start(STDERR_FILENO);
    program_configure_log("warn", "text");
    log_info("not this", NULL);
    log_warn("but this", NULL);

    const char *text = capture_text(arena);
    ck_assert_ptr_null(strstr(text, "not this"));
    ck_assert_ptr_nonnull(strstr(text, "but this"));
    ck_assert_ptr_null(strchr(text, '{'));
}

/* Standard error is a terminal from here on, for a forked test. Returns its other end. */
static int open_terminal(void)
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);

    ck_assert_int_ge(terminal, 0);
    ck_assert_int_eq(grantpt(terminal), 0);
    ck_assert_int_eq(unlockpt(terminal), 0);
    int other = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    ck_assert_int_ge(dup2(other, STDERR_FILENO), 0);
    return terminal;
}

static const char *line_of(int terminal)
{
    char line[512];
    ssize_t len = read(terminal, line, sizeof(line)); /* a terminal hands over a line at a time */

    ck_assert_int_gt(len, 0);
    return arena_strndup(arena, line, (size_t)len);
}

TEST(person_at_a_terminal_reads_text)
{
    int terminal = open_terminal();
    struct error err = { 0 };
    int r = error_set(&err, ERROR_INVALID, "'x' has no users: run init first");

    program_configure_log("info", "auto");
    log_info("hello", NULL);
    ck_assert_ptr_null(strchr(line_of(terminal), '{'));
    ck_assert_int_eq(program_end("prog", r, &err), 1);
    ck_assert_str_eq(line_of(terminal), "prog: 'x' has no users: run init first\r\n");
}

static const struct {
    const char *format;
    bool json;
} OTHERS[] = { { "auto", true }, { "json", true }, { "text", false } };

TEST_EACH(program_that_reads_gets_json_unless_text_is_asked_for, OTHERS)
{
    capture_start(STDERR_FILENO);
    program_configure_log("info", OTHERS[_i].format);
    log_info("hello", NULL);
    ck_assert(!strchr(capture_text(arena), '{') == !OTHERS[_i].json);
}

TEST(person_who_asks_for_json_gets_it)
{
    int terminal = open_terminal();

    program_configure_log("info", "json");
    log_info("hello", NULL);
    ck_assert_ptr_nonnull(strchr(line_of(terminal), '{'));
}
