#include "common/runtime/program.h"

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
