/* Times of Go's structs: what Go does not read is refused in its words, the rest is kept as it writes it. */
#include <check.h>

#include "common/base/str.h"
#include "standalone/schema/times.h"
#include "standalone/tests/api_fixture.h"

#define LEASES "/apis/coordination.k8s.io/v1/namespaces/default/leases"
#define EVENTS "/api/v1/namespaces/default/events"
#define NEW_EVENTS "/apis/events.k8s.io/v1/namespaces/default/events"
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

START_TEST(a_time_is_kept_as_go_writes_it)
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
END_TEST

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

START_TEST(what_go_does_not_read_is_refused_in_its_words)
{
    const char *text = NULL;
    struct error err = { 0 };

    ck_assert_int_eq(time_rewrite(test_arena, REFUSED[_i].text, REFUSED[_i].micro, &text, &err),
                     -ERROR_INVALID);
    if (REFUSED[_i].why)
        ck_assert_str_eq(err.message, arena_printf(test_arena, "parsing time %s", REFUSED[_i].why));
}
END_TEST

/* --- whatever way it comes -------------------------------------------------------------------- */

static const char *text_at(const cJSON *object, const char *outer, const char *name)
{
    return json_string(outer ? json_path(object, outer, name, NULL) : json_get(object, name),
                       "none");
}

static void expect_words(const cJSON *answer, const char *words)
{
    const char *message = json_string(json_get(answer, "message"), "");

    ck_assert_msg(strstr(message, words) != NULL, "%s", message);
}

#define EVENT(members)                                                                             \
    "{\"metadata\":{\"name\":\"a\"},\"involvedObject\":{\"namespace\":\"default\"}," members "}"

START_TEST(an_event_has_no_time_that_a_client_cannot_read)
{
    expect_words(ask("POST", EVENTS, EVENT("\"eventTime\":\"2020-01-01T00:00:00Z\""), 400),
                 "as \".000000\"");
    expect_words(ask("POST", EVENTS, EVENT("\"firstTimestamp\":\"2020-01-01T00:00:60Z\""), 400),
                 "second out of range");
    expect_words(ask("POST", EVENTS,
                     EVENT("\"series\":{\"lastObservedTime\":\"2020-01-01T00:00:00Z\"}"), 400),
                 "as \".000000\"");
    expect_words(ask("POST", NEW_EVENTS, EVENT("\"eventTime\":\"2020-01-01T00:00:00Z\""), 400),
                 "as \".000000\"");
    (void)ask("GET", EVENTS "/a", NULL, 404);

    const cJSON *event =
        ask("POST", EVENTS,
            EVENT("\"firstTimestamp\":\"2020-01-01T00:00:00.5+02:00\",\"series\":{}"), 201);

    ck_assert_str_eq(text_at(event, NULL, "firstTimestamp"), "2019-12-31T22:00:00Z");
    ck_assert(cJSON_IsNull(json_path(event, "series", "lastObservedTime", NULL)));
    event = ask_patch(EVENTS "/a", "merge-patch+json",
                      "{\"firstTimestamp\":\"0001-01-01T00:00:00Z\"}", 200);
    ck_assert(cJSON_IsNull(json_get(event, "firstTimestamp")));
    event = ask("GET", NEW_EVENTS "/a", NULL, 200);
    ck_assert(cJSON_IsNull(json_get(event, "deprecatedFirstTimestamp")));
    ck_assert(cJSON_IsNull(json_path(event, "series", "lastObservedTime", NULL)));
    ck_assert_int_eq(json_int(json_path(event, "series", "count", NULL), -1), 0);
}
END_TEST

#define RENEWED(time) "\"spec\":{\"renewTime\":\"" time "\"}"

static const struct {
    const char *type; /* NULL: PUT */
    int refused;
} WAYS[] = {
    { NULL, 400 },
    { "merge-patch+json", 422 },
    { "strategic-merge-patch+json", 422 },
    { "apply-patch+yaml", 500 },
};

static const cJSON *write_lease(int way, const char *version, const char *members, int status)
{
    const char *body = arena_printf(test_arena,
                                    "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\","
                                    "\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"%s\"},%s}",
                                    version, members);

    if (!WAYS[way].type)
        return ask("PUT", LEASES "/a", body, status);
    return ask_patch(str_has_prefix(WAYS[way].type, "apply") ? LEASES "/a?fieldManager=m&force=true"
                                                             : LEASES "/a",
                     WAYS[way].type, body, status);
}

START_TEST(a_time_is_looked_at_whatever_way_it_comes)
{
    const cJSON *lease =
        ask("POST", LEASES,
            "{\"metadata\":{\"name\":\"a\"}," RENEWED("2020-01-01T00:00:00.000000Z") "}", 201);
    const char *version = meta(lease, "resourceVersion");

    expect_words(write_lease(_i, version, RENEWED("2020-01-01T00:00:00Z"), WAYS[_i].refused),
                 "parsing time \"2020-01-01T00:00:00Z\"");
    lease = write_lease(_i, version, RENEWED("2021-01-01T00:00:00.123456+01:00"), 200);
    ck_assert_str_eq(text_at(lease, "spec", "renewTime"), "2020-12-31T23:00:00.123456Z");
    lease = ask("GET", LEASES "/a", NULL, 200);
    ck_assert_str_eq(text_at(lease, "spec", "renewTime"), "2020-12-31T23:00:00.123456Z");
}
END_TEST

START_TEST(what_a_json_patch_makes_is_looked_at)
{
    (void)ask("POST", LEASES, "{\"metadata\":{\"name\":\"a\"},\"spec\":{}}", 201);
    expect_words(
        ask_patch(
            LEASES "/a", "json-patch+json",
            "[{\"op\":\"add\",\"path\":\"/spec/acquireTime\",\"value\":\"2020-01-01T00:00:00Z\"}]",
            422),
        "parsing time");
}
END_TEST

/* --- metadata of all kinds -------------------------------------------------------------------- */

#define MANAGED(time)                                                                              \
    "\"managedFields\":[{\"manager\":\"m\",\"operation\":\"Update\",\"apiVersion\":\"v1\","        \
    "\"time\":" time ",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:immutable\":{}}}]"

START_TEST(times_of_metadata_are_looked_at)
{
    const char *bad[] = { "\"creationTimestamp\":\"2020-01-01T00:00:60Z\"",
                          MANAGED("\"2020-01-01T00:00:60Z\"") };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        expect_words(
            ask("POST", TASKS, task_text("a", arena_printf(test_arena, ",%s", bad[i]), ""), 400),
            "second out of range");
        expect_words(ask("POST", CONFIGMAPS,
                         arena_printf(test_arena, "{\"metadata\":{\"name\":\"a\",%s}}", bad[i]),
                         400),
                     "second out of range");
    }
    expect_words(ask("POST", CONFIGMAPS, "{\"metadata\":{\"name\":\"a\"," MANAGED("5") "}}", 400),
                 "json: cannot unmarshal number into Go struct field "
                 "ManagedFieldsEntry.metadata.managedFields.time of type string");
}
END_TEST

START_TEST(times_of_managers_are_kept_as_go_writes_them)
{
    static const char body[] = "{\"metadata\":{\"name\":\"a\"%s},\"immutable\":false}";
    const char *managed = "," MANAGED("\"2020-01-01T00:00:00.5+02:00\"");
    const cJSON *object;

    (void)ask("POST", CONFIGMAPS, arena_printf(test_arena, body, ""), 201);
    object = ask("PUT", CONFIGMAPS "/a", arena_printf(test_arena, body, managed), 200);
    ck_assert_str_eq(
        text_at(json_first(json_path(object, "metadata", "managedFields", NULL)), NULL, "time"),
        "2019-12-31T22:00:00Z");
}
END_TEST

/* An update has the time of the object, in whatever zone. */
START_TEST(the_same_time_is_no_change)
{
    const cJSON *object = ask("POST", CONFIGMAPS, "{\"metadata\":{\"name\":\"a\"}}", 201);
    const char *time = meta(object, "creationTimestamp"), *same;
    struct error err;

    same = arena_printf(test_arena, "%.*s.25+00:00", (int)strlen(time) - 1, time);
    ck_assert_int_eq(time_rewrite(test_arena, same, false, &same, &err), 0);
    ck_assert_str_eq(same, time);
    (void)ask("PUT", CONFIGMAPS "/a",
              arena_printf(test_arena,
                           "{\"metadata\":{\"name\":\"a\",\"creationTimestamp\":\"%.*s+00:00\"}}",
                           (int)strlen(time) - 1, time),
              200);
}
END_TEST

/* Only of metadata these are managers. */
START_TEST(a_key_may_be_called_as_managers_are)
{
    expect_words(ask("POST", CONFIGMAPS,
                     "{\"metadata\":{\"name\":\"a\"},\"data\":{\"managedFields\":5}}", 400),
                 "field ConfigMap.data of type string");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("times");
    TCase *tests = tcase_create("times");

    tcase_add_checked_fixture(tests, api_setup, api_teardown);
    tcase_add_loop_test(tests, a_time_is_kept_as_go_writes_it, 0, ARRAY_LEN(READ));
    tcase_add_loop_test(tests, what_go_does_not_read_is_refused_in_its_words, 0,
                        ARRAY_LEN(REFUSED));
    tcase_add_test(tests, an_event_has_no_time_that_a_client_cannot_read);
    tcase_add_loop_test(tests, a_time_is_looked_at_whatever_way_it_comes, 0, ARRAY_LEN(WAYS));
    tcase_add_test(tests, what_a_json_patch_makes_is_looked_at);
    tcase_add_test(tests, times_of_metadata_are_looked_at);
    tcase_add_test(tests, times_of_managers_are_kept_as_go_writes_them);
    tcase_add_test(tests, the_same_time_is_no_change);
    tcase_add_test(tests, a_key_may_be_called_as_managers_are);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
