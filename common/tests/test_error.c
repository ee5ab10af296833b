#include "common/base/error.h"
#include "common/base/str.h"
#include "common/tests/suite.h"

TEST(set_fills_code_and_message_and_returns_the_code)
{
    struct error err = { .retry_after_ms = 500 };

    ck_assert_int_eq(error_set(&err, ERROR_CONFLICT, "task '%s' changed", "a"), -ERROR_CONFLICT);
    ck_assert_int_eq(err.code, ERROR_CONFLICT);
    ck_assert_str_eq(err.message, "task 'a' changed");
    ck_assert_uint_eq(err.retry_after_ms, 0);
}

TEST(wrap_puts_its_context_first_and_keeps_the_rest)
{
    struct error err = { 0 };

    (void)error_set(&err, ERROR_GONE, "too old");
    err.retry_after_ms = 500;
    ck_assert_int_eq(error_wrap(&err, "list '%s'", "tasks"), -ERROR_GONE);
    ck_assert_int_eq(error_wrap(&err, "start"), -ERROR_GONE);
    ck_assert_str_eq(err.message, "start: list 'tasks': too old");
    ck_assert_int_eq(err.code, ERROR_GONE);
    ck_assert_uint_eq(err.retry_after_ms, 500);
}

TEST(nobody_needs_to_listen)
{
    ck_assert_int_eq(error_set(NULL, ERROR_TIMEOUT, "x"), -ERROR_TIMEOUT);
    ck_assert_int_eq(error_wrap(NULL, "x"), -ERROR_INTERNAL);
}

TEST(a_wrapped_success_is_an_internal_error)
{
    struct error err = { 0 };

    ck_assert_int_eq(error_wrap(&err, "context"), -ERROR_INTERNAL);
    ck_assert_int_eq(err.code, ERROR_INTERNAL);
    ck_assert_str_eq(err.message, "context");
}

TEST(the_message_may_be_an_argument_of_the_next)
{
    struct error err = { 0 };

    (void)error_set(&err, ERROR_INVALID, "inner");
    (void)error_set(&err, ERROR_TOO_LARGE, "outer (%s)", err.message);
    ck_assert_str_eq(err.message, "outer (inner)");
    (void)error_wrap(&err, "again (%s)", err.message);
    ck_assert_str_eq(err.message, "again (outer (inner)): outer (inner)");
}

/* The place of the cut moves over all bytes of a three-byte character. */
TEST_TIMES(a_long_message_is_cut_at_a_character, 4)
{
    struct error err = { 0 };
    char text[2000] = { 0 };
    size_t len = 0;

    for (; len < (size_t)_i; len++)
        text[len] = 'x';
    for (; len + 3 < sizeof(text); len += 3)
        memcpy(text + len, "\xe2\x82\xac", 3);

    (void)error_set(&err, ERROR_INVALID, "%s", text);
    ck_assert(str_is_utf8(err.message, strlen(err.message)));
    ck_assert_uint_ge(strlen(err.message), sizeof(err.message) - 3);
    (void)error_wrap(&err, "%s", "more");
    ck_assert(str_is_utf8(err.message, strlen(err.message)));
    ck_assert(str_has_prefix(err.message, "more: "));
    (void)error_wrap(&err, "%s", text);
    ck_assert(str_is_utf8(err.message, strlen(err.message)));
    ck_assert_uint_ge(strlen(err.message), sizeof(err.message) - 5);
}

TEST(quoted_text_is_in_the_message_and_not_in_the_text_for_a_log)
{
    struct error err = { 0 };
    char text[sizeof(err.message)];

    (void)error_set_quoting(&err, ERROR_INVALID, "the device reports: %s", "a secret");
    ck_assert_str_eq(err.message, "the device reports: a secret");
    ck_assert_str_eq(ERROR_TEXT(&err), "Invalid");
    (void)error_wrap(&err, "update of '%s'", "a");
    (void)error_wrap(&err, "round '%s'", "one");
    ck_assert_str_eq(err.message, "round 'one': update of 'a': the device reports: a secret");
    ck_assert_str_eq(ERROR_TEXT(&err), "round 'one': update of 'a': Invalid");

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    (void)error_wrap(&err, "%s", text); /* nothing of the rest has room */
    ck_assert_str_eq(ERROR_TEXT(&err), text);
    (void)error_set(&err, ERROR_GONE, "too old");
    ck_assert_str_eq(ERROR_TEXT(&err), "too old");
}

TEST(what_may_change_by_itself_is_transient)
{
    static const bool TRANSIENT[] = {
        [ERROR_NONE] = false,      [ERROR_INVALID] = false,  [ERROR_NOT_FOUND] = false,
        [ERROR_EXISTS] = false,    [ERROR_CONFLICT] = true,  [ERROR_FORBIDDEN] = false,
        [ERROR_GONE] = true,       [ERROR_TIMEOUT] = true,   [ERROR_UNAVAILABLE] = true,
        [ERROR_TOO_LARGE] = false, [ERROR_CANCELED] = false, [ERROR_INTERNAL] = true,
    };

    for (size_t i = 0; i < ARRAY_LEN(TRANSIENT); i++) {
        struct error err = { .code = (enum error_code)i };

        ck_assert_int_eq(error_is_transient(&err), TRANSIENT[i]);
    }
}

TEST(every_code_has_a_name_of_its_own)
{
    for (int i = ERROR_NONE; i <= ERROR_INTERNAL; i++) {
        ck_assert(!str_is_empty(error_code_name((enum error_code)i)));
        for (int k = 0; k < i; k++)
            ck_assert_str_ne(error_code_name((enum error_code)i),
                             error_code_name((enum error_code)k));
    }
    ck_assert_str_eq(error_code_name((enum error_code)99), "Unknown");
}
