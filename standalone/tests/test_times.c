/* Times of Go's structs: what Go does not read is refused in its words, the rest is kept as it writes it. */
#include <check.h>

#include "standalone/schema/times.h"
#include "standalone/tests/resources_fixture.h"

#define TIME "\"2006-01-02T15:04:05Z07:00\": cannot parse "
#define MICRO "\"2006-01-02T15:04:05.000000Z07:00\": cannot parse "

/* --- what Go makes of a text ------------------------------------------------------------------ */

/* NULL: it is refused. */
static const struct {
    const char *text, *time, *micro;
} READ[] = {
    { "2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z", NULL },
    { "2020-01-01T00:00:00.5Z", "2020-01-01T00:00:00Z", NULL },
    { "2020-01-01T00:00:00.123456Z", "2020-01-01T00:00:00Z", "2020-01-01T00:00:00.123456Z" },
    { "2020-01-01T00:00:00,123456Z", "2020-01-01T00:00:00Z", "2020-01-01T00:00:00.123456Z" },
    { "2020-01-01T00:00:00.1234567Z", "2020-01-01T00:00:00Z", NULL },
    { "2020-01-01T01:00:00.000000+02:00", "2019-12-31T23:00:00Z", "2019-12-31T23:00:00.000000Z" },
    { "2020-02-28T23:00:00.000000-24:60", "2020-03-01T00:00:00Z", "2020-03-01T00:00:00.000000Z" },
    { "2020-01-01T1:00:00Z", "2020-01-01T01:00:00Z", NULL },
    { "1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.999999Z" },
    { "0000-01-01T00:00:00.000000Z", "0000-01-01T00:00:00Z", "0000-01-01T00:00:00.000000Z" },
    { "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999999Z" },
    { "0001-01-01T00:00:00.000000Z", "", "" },
    { "0001-01-01T01:00:00.000000+01:00", "", "" },
    { "0001-01-01T00:00:00.000001Z", "", "0001-01-01T00:00:00.000001Z" },
    { "2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z", NULL },
};

TEST_GROUP("times", resources_setup, resources_teardown);

TEST_EACH(a_time_is_kept_as_go_writes_it, READ)
{
    const char *times[] = { READ[_i].time, READ[_i].micro };

    for (size_t micro = 0; micro < 2; micro++) {
        const char *text = NULL;
        struct error err = { 0 };
        int r = time_rewrite(test_arena, READ[_i].text, micro, &text, &err);

        ck_assert_int_eq(r, times[micro] ? 0 : -ERROR_INVALID);
        if (times[micro])
            ck_assert_str_eq(text, times[micro]);
    }
}

static const struct {
    bool micro;
    const char *text, *why;
} REFUSED[] = {
    { false, "", "\"\" as " TIME "\"\" as \"2006\"" },
    { false, "202x-01-01T00:00:00Z", NULL },
    { false, "2020-1-01T00:00:00Z",
      "\"2020-1-01T00:00:00Z\" as " TIME "\"1-01T00:00:00Z\" as \"01\"" },
    { false, "2020-01-01t00:00:00z",
      "\"2020-01-01t00:00:00z\" as " TIME "\"t00:00:00z\" as \"T\"" },
    { false, "2020-01-01T00:00:00z", "\"2020-01-01T00:00:00z\" as " TIME "\"z\" as \"Z07:00\"" },
    { false, "2020-01-01T00:00:00", "\"2020-01-01T00:00:00\" as " TIME "\"\" as \"Z07:00\"" },
    { false, "2020-01-01T00:00:00.Z", "\"2020-01-01T00:00:00.Z\" as " TIME "\".Z\" as \"Z07:00\"" },
    { false, "2020-13-01T00:00:00Z", "\"2020-13-01T00:00:00Z\": month out of range" },
    { false, "2019-02-29T00:00:00Z", "\"2019-02-29T00:00:00Z\": day out of range" },
    { false, "2020-01-00T00:00:00Z", "\"2020-01-00T00:00:00Z\": day out of range" },
    { false, "2020-01-01T24:00:00Z", "\"2020-01-01T24:00:00Z\": hour out of range" },
    { false, "2020-01-01T00:60:00Z", "\"2020-01-01T00:60:00Z\": minute out of range" },
    { false, "2020-01-01T00:00:60Z", "\"2020-01-01T00:00:60Z\": second out of range" },
    { false, "2020-01-01T00:00:00+25:61",
      "\"2020-01-01T00:00:00+25:61\": time zone offset minute out of range" },
    { false, "2020-01-01T00:00:00+25:x1",
      "\"2020-01-01T00:00:00+25:x1\": time zone offset hour out of range" },
    { false, "2020-01-01T00:00:00*23:11",
      "\"2020-01-01T00:00:00*23:11\" as " TIME "\"*23:11\" as \"Z07:00\"" },
    { false, "2020-02-30T00:00:00Z\"\\\xc3\xa4\n",
      "\"2020-02-30T00:00:00Z\\\"\\\\\\xc3\\xa4\\x0a\": extra text: \"\\\"\\\\\\xc3\\xa4\\x0a\"" },
    { true, "2020-01-01T00:00:00Z", "\"2020-01-01T00:00:00Z\" as " MICRO "\"Z\" as \".000000\"" },
    { true, "2020-01-01T00:00:00.1Z",
      "\"2020-01-01T00:00:00.1Z\" as " MICRO "\".1Z\" as \".000000\"" },
    { true, "2020-01-01T00:00:00.123456789Z",
      "\"2020-01-01T00:00:00.123456789Z\" as " MICRO "\"789Z\" as \"Z07:00\"" },
    /* Go would read these, and write what it cannot read. */
    { false, "9999-12-31T23:59:59-00:01", "\"9999-12-31T23:59:59-00:01\": year out of range" },
    { true, "0000-01-01T00:00:00.000000+00:01",
      "\"0000-01-01T00:00:00.000000+00:01\": year out of range" },
};

TEST_EACH(what_go_does_not_read_is_refused_in_its_words, REFUSED)
{
    const char *text = NULL;
    struct error err = { 0 };

    ck_assert_int_eq(time_rewrite(test_arena, REFUSED[_i].text, REFUSED[_i].micro, &text, &err),
                     -ERROR_INVALID);
    if (REFUSED[_i].why)
        ck_assert_str_eq(err.message, arena_printf(test_arena, "parsing time %s", REFUSED[_i].why));
}
