/* Bodies that are no object of the kind, in the words of a kube-apiserver (found by e2e/standalone/differential). */
#include <check.h>
#include <string.h>

#include "common/base/str.h"
#include "common/tests/heap.h"
#include "standalone/tests/api_fixture.h"

#define LEASES "/apis/coordination.k8s.io/v1/namespaces/default/leases"
#define SECRETS "/api/v1/namespaces/default/secrets"
#define EVENTS "/api/v1/namespaces/default/events"
#define NEW_EVENTS "/apis/events.k8s.io/v1/namespaces/default/events"
#define NO_KIND                                                                                    \
    "the object provided is unrecognized (must be of type Task): Object 'Kind' is missing"

static const char *message_of(const cJSON *answer)
{
    return json_string(json_get(answer, "message"), "");
}

/* --- what is applied -------------------------------------------------------------------------- */

static const struct {
    const char *path, *applied, *why;
} NO_STRUCTS[] = {
    { LEASES, "Lease\",\"spec\":{\"leaseDurationSeconds\":1.5}",
      "cannot convert float64 to int32" },
    { LEASES, "Lease\",\"spec\":{\"leaseDurationSeconds\":3000000000}",
      "json: cannot unmarshal number 3000000000 into Go struct field " },
    { LEASES, "Lease\",\"spec\":{\"renewTime\":5}",
      "json: cannot unmarshal number into Go value of type string" },
    { LEASES, "Lease\",\"spec\":{\"renewTime\":\"x\"}",
      "parsing time \"x\" as \"2006-01-02T15:04:05.000000Z07:00\": " },
    { CONFIGMAPS, "ConfigMap\",\"binaryData\":{\"f\":\"!\"}",
      "error decoding from json: illegal base64 data at input byte 0" },
};

START_TEST(what_is_applied_must_become_a_struct_again)
{
    bool lease = str_equal(NO_STRUCTS[_i].path, LEASES);
    const char *kind = lease ? "coordination.k8s.io/v1, Kind=Lease" : "/v1, Kind=ConfigMap";
    const char *body = arena_printf(
        test_arena, "{\"metadata\":{\"name\":\"n\"},\"apiVersion\":\"%s\",\"kind\":\"%s}",
        lease ? "coordination.k8s.io/v1" : "v1", NO_STRUCTS[_i].applied);
    const char *path = arena_printf(test_arena, "%s/n?fieldManager=m", NO_STRUCTS[_i].path);
    const char *words = message_of(ask_patch(path, "apply-patch+yaml", body, 500));

    ck_assert_msg(
        str_has_prefix(words, arena_printf(test_arena,
                                           "failed to convert new object (/n; %s) to proper "
                                           "version: unable to convert unstructured object to %s: "
                                           "%s",
                                           kind, kind, NO_STRUCTS[_i].why)),
        "%s", words);
}
END_TEST

/* --- values ----------------------------------------------------------------------------------- */

START_TEST(a_body_of_more_values_than_its_bytes_allow_is_refused_before_it_is_built)
{
    enum { VALUES = 1500000 };
    char *zeros = arena_alloc(test_arena, 2 * VALUES + 2, 1);

    for (size_t i = 0; i < VALUES; i++)
        memcpy(zeros + 2 * i, i ? ",0" : "[0", 2);
    zeros[2 * VALUES] = ']';
    const char *body = arena_printf(test_arena,
                                    "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\","
                                    "\"metadata\":{\"name\":\"a\"},\"data\":%s}",
                                    zeros);

    heap_watch();
    ck_assert_str_eq(message_of(ask("POST", CONFIGMAPS, body, 413)),
                     "Request entity too large: 3000071 bytes of JSON with more than 100000 "
                     "values are not read");
    ck_assert_uint_le(heap_peak(), 6 * strlen(body));
}
END_TEST

/* --- which kind it is ------------------------------------------------------------------------- */

START_TEST(null_does_not_say_which_kind_it_is)
{
    ck_assert_str_eq(message_of(ask("POST", TASKS, "null", 400)), NO_KIND);
    ck_assert_str_eq(message_of(ask("PUT", TASKS "/a/status?fieldValidation=Ignore", "null", 400)),
                     NO_KIND);
}
END_TEST

#define NO_EVENT "Event in version \"v1\" cannot be handled as a Event: "
#define OTHER_VERSION                                                                              \
    "the API version in the data (%s) does not match the expected API version (%s)"

/* An Event has two forms, and here comes the other one. */
START_TEST(a_body_is_read_as_the_kind_that_it_says_before_it_is_asked_for_another_one)
{
    static const char body[] = "{\"apiVersion\":\"%s\",\"metadata\":%s,\"%s\":{},\"note\":\"n\"}";
    const char *good = "{\"name\":\"a\"}", *other = "events.k8s.io/v1";
    const char *core = arena_printf(test_arena, body, "v1", good, "involvedObject");
    const char *new = arena_printf(test_arena, body, other, good, "regarding");

    ck_assert_str_eq(message_of(ask("POST", NEW_EVENTS "?fieldValidation=Strict", core, 400)),
                     NO_EVENT "strict decoding error: unknown field \"note\"");
    ck_assert_str_eq(message_of(ask("PUT", NEW_EVENTS "/a",
                                    arena_printf(test_arena, body, "v1", "[]", "source"), 400)),
                     NO_EVENT "json: cannot unmarshal array into Go struct field Event.metadata of "
                              "type v1.ObjectMeta");
    ck_assert_str_eq(message_of(ask("PUT", EVENTS "/a?fieldValidation=Strict", new, 400)),
                     arena_printf(test_arena, OTHER_VERSION, other, "v1"));
    ck_assert_str_eq(message_of(ask("PUT", NEW_EVENTS "/a", core, 400)),
                     arena_printf(test_arena, OTHER_VERSION, "v1", other));
    ck_assert_str_eq(api_answer.warnings[0], "299 - \"unknown field \\\"note\\\"\"");
    ck_assert_ptr_null(api_answer.warnings[1]);
}
END_TEST

/* Its types come first, then its version, then its kind; in the refusals stands what it says. */
START_TEST(a_custom_kind_is_asked_what_it_is_when_its_types_are_right)
{
    static const char body[] = "{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"metadata\":{"
                               "\"name\":\"a\",\"generation\":%s},\"spec\":{}}";
    const char *ours = "propeller.propeller.abstractmachines.fr/v1";

    ck_assert_str_eq(
        message_of(
            ask("POST", TASKS, arena_printf(test_arena, body, "x/v7", "Tusk", "\"7\""), 400)),
        "Tusk in version \"v7\" cannot be handled as a Task: json: cannot unmarshal string into Go "
        "struct field ObjectMeta.generation of type int64");
    ck_assert_str_eq(
        message_of(ask("POST", TASKS, arena_printf(test_arena, body, "x/v7", "Tusk", "7"), 400)),
        arena_printf(test_arena, OTHER_VERSION, "x/v7", ours));
    ck_assert_str_eq(
        message_of(ask("POST", TASKS, arena_printf(test_arena, body, ours, "Tusk", "7"), 400)),
        "Tusk in version \"v1\" cannot be handled as a Task: converting (v1.Tusk) to (v1.Task): "
        "unknown conversion");
}
END_TEST

START_TEST(another_kind_is_read_as_that_one)
{
    static const char body[] = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{"
                               "\"name\":\"a\"},\"data\":%s}";
    const char *start = "ConfigMap in version \"v1\" cannot be handled as a Secret: ";

    ck_assert_str_eq(message_of(ask("POST", SECRETS, arena_printf(test_arena, body, "5"), 400)),
                     arena_printf(test_arena,
                                  "%sjson: cannot unmarshal number into Go struct field "
                                  "ConfigMap.data of type map[string]string",
                                  start));
    ck_assert_str_eq(
        message_of(ask("POST", SECRETS, arena_printf(test_arena, body, "{}"), 400)),
        arena_printf(test_arena, "%sconverting (v1.ConfigMap) to (core.Secret): unknown conversion",
                     start));
}
END_TEST

#define STRATEGIC "strategic-merge-patch+json"

/* To Go it is a tree from which a struct of this kind is made. */
START_TEST(a_strategic_patch_is_of_the_kind_of_the_object_whatever_it_says)
{
    static const char *const others[] = { "\"kind\":\"Secret\"",
                                          "\"apiVersion\":\"x/v2\",\"kind\":\"X\"",
                                          "\"apiVersion\":\"\",\"kind\":\"\"" };

    (void)ask("POST", CONFIGMAPS, "{\"metadata\":{\"name\":\"a\"}}", 201);
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        const char *body = arena_printf(test_arena, "{%s,\"data\":{\"k\":\"%zu\"}}", others[i], i);
        const cJSON *answer = ask_patch(CONFIGMAPS "/a", STRATEGIC, body, 200);

        ck_assert_str_eq(json_string(json_get(answer, "kind"), ""), "ConfigMap");
        ck_assert_str_eq(json_string(json_get(answer, "apiVersion"), ""), "v1");
        ck_assert_str_eq(json_string(json_path(answer, "data", "k", NULL), ""),
                         arena_printf(test_arena, "%zu", i));
    }
    ck_assert(str_has_suffix(message_of(ask_patch(CONFIGMAPS "/a", STRATEGIC, "{\"kind\":5}", 422)),
                             ": cannot convert int64 to string"));
    ck_assert(str_has_suffix(
        message_of(ask_patch(CONFIGMAPS "/a", STRATEGIC, "{\"apiVersion\":5.5}", 422)),
        ": unrecognized type: string"));
}
END_TEST

START_TEST(what_a_strategic_patch_makes_must_become_a_struct)
{
    (void)ask("POST", CONFIGMAPS, "{\"metadata\":{\"name\":\"a\"}}", 201);
    (void)ask("POST", LEASES, "{\"metadata\":{\"name\":\"a\"}}", 201);
    ck_assert(str_has_suffix(
        message_of(ask_patch(CONFIGMAPS "/a", STRATEGIC, "{\"binaryData\":{\"f\":\"!\"}}", 422)),
        ": error decoding from json: illegal base64 data at input byte 0"));
    ck_assert(
        str_has_suffix(message_of(ask_patch(LEASES "/a", STRATEGIC,
                                            "{\"spec\":{\"leaseDurationSeconds\":1.5}}", 422)),
                       ": cannot convert float64 to int32"));
    ck_assert(str_has_suffix(
        message_of(ask_patch(LEASES "/a", STRATEGIC, "{\"spec\":{\"renewTime\":5}}", 422)),
        ": json: cannot unmarshal number into Go value of type string"));
}
END_TEST

START_TEST(what_is_unknown_in_a_strategic_patch_is_told_in_order)
{
    static const char body[] = "{\"z\":1,\"b\":{},\"metadata\":{\"y\":1}}";

    (void)ask("POST", CONFIGMAPS, "{\"metadata\":{\"name\":\"a\"}}", 201);
    ck_assert(str_has_suffix(
        message_of(ask_patch(CONFIGMAPS "/a?fieldValidation=Strict", STRATEGIC, body, 422)),
        ": strict decoding error: unknown field \"b\", unknown field \"metadata.y\", unknown field "
        "\"z\""));
    (void)ask_patch(CONFIGMAPS "/a", STRATEGIC, body, 200);
    ck_assert_str_eq(api_answer.warnings[0], "299 - \"unknown field \\\"b\\\"\"");
    ck_assert_str_eq(api_answer.warnings[1], "299 - \"unknown field \\\"metadata.y\\\"\"");
    ck_assert_str_eq(api_answer.warnings[2], "299 - \"unknown field \\\"z\\\"\"");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api bodies");
    TCase *tests = tcase_create("bodies");

    tcase_add_checked_fixture(tests, api_setup, api_teardown);
    tcase_add_loop_test(tests, what_is_applied_must_become_a_struct_again, 0,
                        ARRAY_LEN(NO_STRUCTS));
    tcase_add_test(tests, null_does_not_say_which_kind_it_is);
    tcase_add_test(tests, a_body_of_more_values_than_its_bytes_allow_is_refused_before_it_is_built);
    tcase_add_test(tests,
                   a_body_is_read_as_the_kind_that_it_says_before_it_is_asked_for_another_one);
    tcase_add_test(tests, a_custom_kind_is_asked_what_it_is_when_its_types_are_right);
    tcase_add_test(tests, another_kind_is_read_as_that_one);
    tcase_add_test(tests, a_strategic_patch_is_of_the_kind_of_the_object_whatever_it_says);
    tcase_add_test(tests, what_a_strategic_patch_makes_must_become_a_struct);
    tcase_add_test(tests, what_is_unknown_in_a_strategic_patch_is_told_in_order);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
