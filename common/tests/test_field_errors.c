#include "common/schema/field_errors.h"

#include "common/api/names.h"
#include "common/base/buf.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

static struct arena *arena;
static struct field_errors *errors;

static void setup(void)
{
    json_init();
    arena = arena_create();
    errors = field_errors_create(arena);
}

static void teardown(void)
{
    arena_destroy(arena);
}

TEST_GROUP("field_errors", setup, teardown);

static const char *message(void)
{
    const cJSON *status = field_errors_status(errors, API_GROUP, "Task", "x");

    return json_string(json_get(status, "message"), "");
}

/* Bodies as field.Error.ErrorBody() prints them. */
static const struct {
    enum field_error_type type;
    const char *value; /* JSON; NULL: none */
    const char *detail;
    const char *body;
    const char *reason;
} ERRORS[] = {
    { FIELD_ERROR_INVALID, "101", "must be between 0 and 100",
      "Invalid value: 101: must be between 0 and 100", "FieldValueInvalid" },
    { FIELD_ERROR_INVALID, "9007199254740993", "d", "Invalid value: 9007199254740993: d",
      "FieldValueInvalid" },
    { FIELD_ERROR_INVALID, "\"a\\\"b\\\\\\n\\u0001\"", "d",
      "Invalid value: \"a\\\"b\\\\\\n\\x01\": d", "FieldValueInvalid" },
    { FIELD_ERROR_INVALID, "\"\xc3\xa4\xe2\x80\xae\xef\xbb\xbf\xf0\x9f\x98\x80\"", "d",
      "Invalid value: \"\xc3\xa4\\u202e\\ufeff\xf0\x9f\x98\x80\": d", "FieldValueInvalid" },
    { FIELD_ERROR_INVALID, "true", "d", "Invalid value: true: d", "FieldValueInvalid" },
    { FIELD_ERROR_INVALID, NULL, "d", "Invalid value: d", "FieldValueInvalid" },
    { FIELD_ERROR_REQUIRED, "\"secret\"", "", "Required value", "FieldValueRequired" },
    { FIELD_ERROR_REQUIRED, NULL, "why", "Required value: why", "FieldValueRequired" },
    { FIELD_ERROR_FORBIDDEN, "\"secret\"", "cannot change", "Forbidden: cannot change",
      "FieldValueForbidden" },
    { FIELD_ERROR_TOO_LONG, "\"secret\"", "may not be more than 3 characters",
      "Too long: may not be more than 3 characters", "FieldValueTooLong" },
    { FIELD_ERROR_TOO_MANY, NULL, "must have at most 3 items",
      "Too many: must have at most 3 items", "FieldValueTooMany" },
    { FIELD_ERROR_DUPLICATE, "\"a\"", "", "Duplicate value: \"a\"", "FieldValueDuplicate" },
    { FIELD_ERROR_NOT_SUPPORTED, "\"x\"", "supported values: \"a\", \"b\"",
      "Unsupported value: \"x\": supported values: \"a\", \"b\"", "FieldValueNotSupported" },
    { FIELD_ERROR_TYPE, "\"secret\"", "must be an integer", "Invalid value: must be an integer",
      "FieldValueTypeInvalid" },
};

TEST_EACH(an_error_is_said_as_the_api_server_says_it, ERRORS)
{
    const cJSON *value = ERRORS[_i].value ? parsed(arena, ERRORS[_i].value) : NULL;

    if (*ERRORS[_i].detail)
        field_error(errors, ERRORS[_i].type, "spec.a", value, "%s", ERRORS[_i].detail);
    else
        field_error_plain(errors, ERRORS[_i].type, "spec.a", value);

    const cJSON *status = field_errors_status(errors, API_GROUP, "Task", "x");
    const cJSON *cause = json_first(json_path(status, "details", "causes", NULL));

    ck_assert_str_eq(json_string(json_get(cause, "message"), ""), ERRORS[_i].body);
    ck_assert_str_eq(json_string(json_get(cause, "reason"), ""), ERRORS[_i].reason);
    ck_assert_str_eq(json_string(json_get(cause, "field"), ""), "spec.a");
    ck_assert_str_eq(message(), arena_printf(arena, "Task.%s \"x\" is invalid: spec.a: %s",
                                             API_GROUP, ERRORS[_i].body));
}

TEST(several_errors_stand_in_brackets_and_the_same_text_once)
{
    field_error_plain(errors, FIELD_ERROR_REQUIRED, "spec.a", NULL);
    field_error(errors, FIELD_ERROR_INVALID, "spec.b", NULL, "must be %d", 7);
    field_error_plain(errors, FIELD_ERROR_REQUIRED, "spec.a", NULL);

    const cJSON *status = field_errors_status(errors, API_GROUP, "Task", "x");

    ck_assert_str_eq(message(), "Task." API_GROUP " \"x\" is invalid: "
                                "[spec.a: Required value, spec.b: Invalid value: must be 7]");
    ck_assert_uint_eq(json_len(json_path(status, "details", "causes", NULL)), 3);
    ck_assert_uint_eq(field_errors_count(errors), 3);
}

TEST(the_status_is_that_of_an_invalid_object)
{
    field_error_plain(errors, FIELD_ERROR_REQUIRED, "spec.a", NULL);

    const char *expected =
        "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"Task." API_GROUP
        " \\\"x\\\" is invalid: spec.a: Required value\",\"reason\":\"Invalid\",\"details\":"
        "{\"name\":\"x\",\"group\":\"" API_GROUP "\",\"kind\":\"Task\",\"causes\":[{"
        "\"reason\":\"FieldValueRequired\",\"message\":\"Required value\",\"field\":\"spec.a\"}]},"
        "\"code\":422}";

    ck_assert_str_eq(json_text(arena, field_errors_status(errors, API_GROUP, "Task", "x"), NULL),
                     expected);
}

TEST(an_object_without_a_name_has_none_in_the_details)
{
    field_error_plain(errors, FIELD_ERROR_REQUIRED, "spec.a", NULL);

    const cJSON *status = field_errors_status(errors, API_GROUP, "Task", "");

    ck_assert_ptr_null(json_path(status, "details", "name", NULL));
    ck_assert_str_eq(json_string(json_get(status, "message"), ""),
                     "Task." API_GROUP " \"\" is invalid: spec.a: Required value");
}

TEST(errors_above_the_limit_are_only_counted)
{
    for (int i = 0; i < FIELD_ERRORS_MAX + 5; i++)
        field_error(errors, FIELD_ERROR_INVALID, arena_printf(arena, "spec.a[%d]", i), NULL, "bad");

    const cJSON *status = field_errors_status(errors, API_GROUP, "Task", "x");

    ck_assert_uint_eq(json_len(json_path(status, "details", "causes", NULL)), FIELD_ERRORS_MAX);
    ck_assert_uint_eq(field_errors_count(errors), FIELD_ERRORS_MAX + 5);
    ck_assert_ptr_nonnull(strstr(message(), ": bad, and 5 more]"));
}

TEST(a_long_value_is_cut_at_a_character)
{
    CLEANUP(buf_releasep) struct buf text = BUF_INIT(4096);

    ck_assert(buf_append_string(&text, "\"x"));
    for (int i = 0; i < FIELD_VALUE_MAX; i++)
        ck_assert(buf_append_string(&text, "\xc3\xa4"));
    ck_assert(buf_append_string(&text, "\""));
    field_error(errors, FIELD_ERROR_INVALID, "spec.a", parsed(arena, buf_string(&text)), "bad");

    ck_assert(strlen(message()) < FIELD_VALUE_MAX + 200);
    ck_assert_ptr_nonnull(strstr(message(), "\xc3\xa4\"...: bad"));
}

TEST(warnings_are_kept_once_in_order_up_to_a_limit)
{
    ck_assert_ptr_null(field_errors_warnings(errors));
    field_warning(errors, "spec.a", "odd %s", "thing");
    field_warning(errors, "spec.b", "odd");
    field_warning(errors, "spec.a", "odd thing");
    ck_assert_str_eq(json_text(arena, field_errors_warnings(errors), NULL),
                     "[\"spec.a: odd thing\",\"spec.b: odd\"]");

    for (int i = 0; i < FIELD_WARNINGS_MAX; i++)
        field_warning(errors, arena_printf(arena, "spec.c[%d]", i), "odd");
    ck_assert_uint_eq(json_len(field_errors_warnings(errors)), FIELD_WARNINGS_MAX + 1);
    ck_assert_ptr_nonnull(
        strstr(json_text(arena, field_errors_warnings(errors), NULL), "\"and 2 more warnings\"]"));
    ck_assert_uint_eq(field_errors_count(errors), 0);
}

TEST(a_long_warning_is_cut)
{
    char *text = arena_alloc(arena, FIELD_WARNING_MAX * 2, 1);

    memset(text, 'a', FIELD_WARNING_MAX * 2 - 1);
    field_warning(errors, "spec.a", "%s", text);
    ck_assert_uint_eq(strlen(json_string(json_first(field_errors_warnings(errors)), "")),
                      FIELD_WARNING_MAX);
}

TEST(bytes_that_are_no_utf8_are_escaped)
{
    CLEANUP(buf_releasep) struct buf text = BUF_INIT(64);

    ck_assert(buf_append_quoted(&text, "a\xff\x80\x7f", 4));
    ck_assert_str_eq(buf_string(&text), "\"a\\xff\\x80\\x7f\"");
}
