/* Patches as a kube-apiserver takes and refuses them (found by e2e/standalone/differential). */
#include <check.h>
#include <string.h>

#include "common/base/str.h"
#include "standalone/tests/api_fixture.h"

#define ACCOUNTS "/api/v1/namespaces/default/serviceaccounts"
#define LEASES "/apis/coordination.k8s.io/v1/namespaces/default/leases"
#define NAMED "{\"metadata\":{\"name\":\"a\"%s}}"
#define NO_NAME "the name of the object (a based on URL) was undeterminable: name must be provided"
#define REJECTED "the server rejected our request due to an error in our request"
#define TO_OPERATION " into Go value of type jsonpatch.Operation"

static const char *named(const char *more)
{
    return arena_printf(test_arena, NAMED, more);
}

static const char *message_of(const cJSON *answer)
{
    return json_string(json_get(answer, "message"), "");
}

static void put_all(void)
{
    (void)ask("POST", CONFIGMAPS,
              "{\"metadata\":{\"name\":\"a\",\"finalizers\":[\"a.example/held\"]},\"data\":{\"k\":"
              "\"v\",\"l\":\"w\"}}",
              201);
    (void)ask("POST", ACCOUNTS, "{\"metadata\":{\"name\":\"a\"},\"secrets\":[{\"name\":\"s\"}]}",
              201);
    (void)ask("POST", LEASES, named(""), 201);
    (void)ask("POST", TASKS, task_text("a", "", ""), 201);
}

static const struct {
    const char *path, *type, *patch;
    int status;
    const char *message;
} REFUSALS[] = {
    { CONFIGMAPS "/a", "json", "[5]", 400,
      "error decoding patch: json: cannot unmarshal number into Go value of type "
      "handlers.jsonPatchOp" },
    { CONFIGMAPS "/a", "json", "5", 400,
      "error decoding patch: json: cannot unmarshal number into Go value of type "
      "[]handlers.jsonPatchOp" },
    { CONFIGMAPS "/a?fieldValidation=Ignore", "json", "[\"x\"]", 400,
      "json: cannot unmarshal string" TO_OPERATION },
    { CONFIGMAPS "/a?fieldValidation=Ignore", "json", "[[]]", 400,
      "json: cannot unmarshal array" TO_OPERATION },
    { CONFIGMAPS "/a?fieldValidation=Ignore", "json", "{}", 400,
      "json: cannot unmarshal object into Go value of type jsonpatch.Patch" },
    { CONFIGMAPS "/a", "json", "[null]", 422, REJECTED },
    { CONFIGMAPS "/a", "json", "[{\"op\":\"remove\",\"path\":\"/metadata/name\"}]", 400, NO_NAME },
    { CONFIGMAPS "/a", "json", "[{\"op\":\"remove\",\"path\":\"/metadata\"}]", 400, NO_NAME },
    { CONFIGMAPS "/a", "merge", "null", 400, "Invalid JSON Patch" },
    { TASKS "/a", "merge", "{\"kind\":5}", 422,
      " \"\" is invalid: patch: Invalid value: \"{\\\"kind\\\":5}\": couldn't get version/kind; "
      "json parse "
      "error: json: cannot unmarshal number into Go struct field .kind of type string" },
    { TASKS "/a", "merge", "{\"kind\":null}", 422,
      " \"\" is invalid: patch: Invalid value: \"{\\\"kind\\\":null}\": Object 'Kind' is missing" },
    { CONFIGMAPS "/a?fieldValidation=Ignore", "merge", "5", 400, "Invalid JSON Patch" },
    { TASKS "/a?fieldValidation=Ignore", "merge", "[ {\"b\": 1, \"a\": null}, null ]", 422,
      " \"\" is invalid: patch: Invalid value: \"[{\\\"b\\\":1},null]\": couldn't get "
      "version/kind; "
      "json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion "
      "string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" "
      "}" },
    { CONFIGMAPS "/a", "merge", "{\"metadata\":null}", 400, NO_NAME },
    { TASKS "/a", "merge", "{\"metadata\":{\"name\":null}}", 400, NO_NAME },
    { TASKS "/a/status", "merge", "{\"metadata\":null}", 400, NO_NAME },
    { CONFIGMAPS "/a", "strategic-merge", "{\"metadata\":{\"$patch\":\"delete\"}}", 400, NO_NAME },
    { CONFIGMAPS "/a", "strategic-merge", "{\"$patch\":\"delete\"}", 400, NO_NAME },
    { CONFIGMAPS "/a", "strategic-merge", "{\"metadata\":{\"labels\":{},\"$patch\":\"merge\"}}",
      500, "unknown patch type: merge in map: map[$patch:merge labels:map[]]" },
    { CONFIGMAPS "/a", "strategic-merge", "{\"data\":{\"$retainKeys\":[\"l\"],\"k\":\"x\"}}", 400,
      "invalid patch format of retainKeys" },
    { ACCOUNTS "/a", "strategic-merge", "{\"secrets\":[{\"name\":\"t\",\"$patch\":\"merge\"}]}",
      500, "merging lists cannot yet be specified in the patch" },
};

START_TEST(what_is_refused)
{
    put_all();

    const char *type = arena_printf(test_arena, "%s-patch+json", REFUSALS[_i].type);
    const cJSON *answer =
        ask_patch(REFUSALS[_i].path, type, REFUSALS[_i].patch, REFUSALS[_i].status);

    ck_assert_str_eq(message_of(answer), REFUSALS[_i].message);

    const cJSON *map = ask("GET", CONFIGMAPS "/a", NULL, 200);

    ck_assert_uint_eq(json_len(json_path(map, "metadata", "finalizers", NULL)), 1);
    ck_assert_uint_eq(json_len(json_get(map, "data")), 2);
}
END_TEST

/* Of what is not there nothing can be deleted, and nothing is made of the directive. */
static const struct {
    const char *path, *type, *patch;
} NOTHINGS[] = {
    { ACCOUNTS "/b", "strategic-merge", "{\"secrets\":[{\"$patch\":\"delete\",\"name\":\"s\"}]}" },
    { LEASES "/b", "strategic-merge", "{\"data\":{\"$patch\":\"delete\"}}" },
    { CONFIGMAPS "/b", "strategic-merge", "{\"data\":{\"$patch\":\"delete\"}}" },
    { CONFIGMAPS "/b", "strategic-merge", "{\"data\":{\"$patch\":\"replace\",\"k\":\"v\"}}" },
    { CONFIGMAPS "/b", "strategic-merge",
      "{\"metadata\":{\"$deleteFromPrimitiveList/finalizers\":[\"a.example/b\"]}}" },
    { CONFIGMAPS "/b", "json", "null" },
    { CONFIGMAPS "/b", "strategic-merge", "null" },
};

START_TEST(what_changes_nothing_makes_no_version)
{
    const char *path = NOTHINGS[_i].path;
    const char *collection = arena_strndup(test_arena, path, strlen(path) - strlen("/b"));
    const char *version =
        meta(ask("POST", collection, "{\"metadata\":{\"name\":\"b\"}}", 201), "resourceVersion");
    const char *type = arena_printf(test_arena, "%s-patch+json", NOTHINGS[_i].type);
    const cJSON *answer = ask_patch(arena_printf(test_arena, "%s?fieldValidation=Strict", path),
                                    type, NOTHINGS[_i].patch, 200);

    ck_assert_str_eq(meta(answer, "resourceVersion"), version);
    ck_assert_ptr_null(json_get(answer, "secrets"));
    ck_assert_ptr_null(json_get(answer, "data"));
}
END_TEST

START_TEST(a_map_is_replaced_as_it_is_sent)
{
    put_all();

    const cJSON *answer =
        ask_patch(CONFIGMAPS "/a", "strategic-merge-patch+json",
                  "{\"data\":{\"$patch\":\"replace\",\"m\":\"x\"},\"metadata\":{\"labels\":{\"a\":"
                  "{\"$patch\":\"delete\"},\"b\":\"c\"}}}",
                  200);

    ck_assert_uint_eq(json_len(json_get(answer, "data")), 1);
    ck_assert_str_eq(json_string(json_path(answer, "data", "m", NULL), ""), "x");
    ck_assert_uint_eq(json_len(json_path(answer, "metadata", "labels", NULL)), 1);
}
END_TEST

/* --- the end of an object --------------------------------------------------------------------- */

static const char *is_immutable(const char *field, const char *value)
{
    return arena_printf(test_arena,
                        "ConfigMap \"a\" is invalid: metadata.%s: Invalid value: %s: field is "
                        "immutable",
                        field, value);
}

START_TEST(nobody_ends_an_object_by_writing_when)
{
    put_all();
    ck_assert_str_eq(message_of(ask("PUT", CONFIGMAPS "/a",
                                    named(",\"deletionTimestamp\":\"2020-01-01T00:00:00Z\""), 422)),
                     is_immutable("deletionTimestamp", "\"2020-01-01T00:00:00Z\""));
    ck_assert_str_eq(
        message_of(ask_patch(CONFIGMAPS "/a", "merge-patch+json",
                             "{\"metadata\":{\"deletionGracePeriodSeconds\":5}}", 422)),
        is_immutable("deletionGracePeriodSeconds", "5"));
    ck_assert_str_eq(meta(ask("GET", CONFIGMAPS "/a", NULL, 200), "deletionTimestamp"), "");
}
END_TEST

START_TEST(an_end_stays_whatever_is_written)
{
    put_all();

    const char *when = meta(ask("DELETE", CONFIGMAPS "/a", NULL, 200), "deletionTimestamp");

    ck_assert_str_ne(when, "");

    const cJSON *after = ask_patch(CONFIGMAPS "/a", "merge-patch+json",
                                   "{\"metadata\":{\"deletionTimestamp\":null,"
                                   "\"deletionGracePeriodSeconds\":null},\"data\":{\"k\":\"x\"}}",
                                   200);

    ck_assert_str_eq(meta(after, "deletionTimestamp"), when);
    ck_assert_int_eq(json_int(json_path(after, "metadata", "deletionGracePeriodSeconds", NULL), -1),
                     0);
    (void)ask_patch(CONFIGMAPS "/a", "merge-patch+json",
                    "{\"metadata\":{\"deletionTimestamp\":\"2020-01-01T00:00:00Z\"}}", 200);
    ck_assert_str_eq(meta(ask("GET", CONFIGMAPS "/a", NULL, 200), "deletionTimestamp"), when);
    (void)ask_patch(CONFIGMAPS "/a", "merge-patch+json",
                    "{\"metadata\":{\"deletionGracePeriodSeconds\":5}}", 422);
    ck_assert_ptr_nonnull(strstr(
        message_of(ask_patch(CONFIGMAPS "/a", "merge-patch+json",
                             "{\"metadata\":{\"finalizers\":[\"a.example/held\",\"a.example/z\","
                             "\"a.example/b\"]}}",
                             422)),
        "found new finalizers []string{\"a.example/b\", \"a.example/z\"}"));
}
END_TEST

START_TEST(what_a_patch_ends_has_the_version_that_it_had)
{
    put_all();

    const char *version = meta(ask("DELETE", CONFIGMAPS "/a", NULL, 200), "resourceVersion");
    const cJSON *end =
        ask_patch(CONFIGMAPS "/a", "merge-patch+json", "{\"metadata\":{\"finalizers\":null}}", 200);

    ck_assert_str_eq(meta(end, "resourceVersion"), version);
    (void)ask("GET", CONFIGMAPS "/a", NULL, 404);
}
END_TEST

/* Who writes the status takes nothing else along, and holds what was sent. */
START_TEST(who_sends_an_end_with_a_status_holds_it)
{
    put_all();

    const cJSON *task = ask_patch(TASKS "/a/status?fieldManager=m", "merge-patch+json",
                                  "{\"metadata\":{\"deletionTimestamp\":\"2020-01-01T00:00:00Z\"},"
                                  "\"status\":{\"phase\":\"pending\"}}",
                                  200);
    const cJSON *entry = json_first(json_path(task, "metadata", "managedFields", NULL));

    ck_assert_str_eq(meta(task, "deletionTimestamp"), "");
    ck_assert_str_eq(json_string(json_get(entry, "manager"), ""), "m");
    ck_assert_ptr_nonnull(json_path(entry, "fieldsV1", "f:metadata", "f:deletionTimestamp", NULL));
}
END_TEST

START_TEST(an_apply_that_makes_an_object_does_not_look_at_the_version)
{
    static const char text[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\","
        "\"resourceVersion\":\"%s\"}}";

    ck_assert_str_eq(message_of(ask_patch(CONFIGMAPS "/a?fieldManager=m", "apply-patch+yaml",
                                          arena_printf(test_arena, text, "x"), 500)),
                     "strconv.ParseUint: parsing \"x\": invalid syntax");
    (void)ask("GET", CONFIGMAPS "/a", NULL, 404);
    (void)ask_patch(CONFIGMAPS "/a?fieldManager=m", "apply-patch+yaml",
                    arena_printf(test_arena, text, "5"), 201);
}
END_TEST

/* --- what does not fit ------------------------------------------------------------------------ */

#define APPLIED                                                                                    \
    "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"n\","                  \
    "\"ownerReferences\":[%s]}}"
#define OWNER "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"p\"}"

static const char *refusal_of_apply(const char *owners, int status)
{
    return message_of(ask_patch(CONFIGMAPS "/n?fieldManager=m", "apply-patch+yaml",
                                arena_printf(test_arena, APPLIED, owners), status));
}

START_TEST(an_owner_without_a_uid_has_an_empty_one)
{
    ck_assert_str_eq(refusal_of_apply(OWNER, 422),
                     "ConfigMap \"n\" is invalid: metadata.ownerReferences.uid: Invalid value: "
                     "\"\": must not be empty");
    ck_assert_str_eq(refusal_of_apply(OWNER "," OWNER, 500),
                     "failed to create typed patch object (/n; /v1, Kind=ConfigMap): "
                     ".metadata.ownerReferences: duplicate entries for key [uid=\"\"]");
}
END_TEST

START_TEST(nobody_holds_anything_of_what_does_not_fit)
{
    static const char *const NAMELESS[] = { "{}", "{\"name\":\"\"}" };
    const cJSON *account =
        ask("POST", ACCOUNTS,
            arena_printf(test_arena,
                         "{\"metadata\":{\"name\":\"n\"},\"secrets\":[{\"name\":\"s\"},%s]}",
                         NAMELESS[_i]),
            201);

    ck_assert_uint_eq(json_len(json_get(account, "secrets")), 2);
    ck_assert_ptr_null(json_path(account, "metadata", "managedFields", NULL));
    ck_assert(str_has_prefix(
        message_of(ask_patch(ACCOUNTS "/n?fieldManager=m", "apply-patch+yaml",
                             "{\"apiVersion\":\"v1\",\"kind\":\"ServiceAccount\","
                             "\"metadata\":{\"name\":\"n\"}}",
                             500)),
        "failed to create manager for existing fields: failed to convert new object (default/n; "
        "/v1, Kind=ServiceAccount) to smd typed: .secrets: element 1: associative list"));
    account = ask_patch(ACCOUNTS "/n", "merge-patch+json", "{\"secrets\":[{\"name\":\"s\"}]}", 200);
    ck_assert_ptr_null(json_path(account, "metadata", "managedFields", NULL));
}
END_TEST

START_TEST(all_that_is_wrong_is_told)
{
    put_all();
    ck_assert_str_eq(
        message_of(ask_patch(TASKS "/a", "merge-patch+json",
                             "{\"metadata\":{\"uid\":\"u\"},\"spec\":{\"name\":null}}", 422)),
        "Task.propeller.propeller.abstractmachines.fr \"a\" is invalid: [metadata.uid: Invalid "
        "value: \"u\": field is immutable, spec.name: Required value, <nil>: Invalid value: "
        "null: some validation rules were not checked because the object was invalid; correct the "
        "existing errors to complete validation]");
}
END_TEST

START_TEST(finalizers_of_custom_kinds_are_checked_when_they_change)
{
    put_all();
    ck_assert(str_has_prefix(
        message_of(ask_patch(TASKS "/a", "merge-patch+json",
                             "{\"metadata\":{\"finalizers\":[\"-bad-/x\"]}}", 422)),
        "Task.propeller.propeller.abstractmachines.fr \"a\" is invalid: metadata.finalizers: "
        "Invalid "
        "value: \"-bad-/x\": prefix part a lowercase RFC 1123 subdomain must consist"));
    ck_assert_ptr_nonnull(strstr(
        message_of(ask_patch(TASKS "/a", "merge-patch+json",
                             "{\"metadata\":{\"finalizers\":[\"orphan\",\"foregroundDeletion\"]}}",
                             422)),
        ": finalizer orphan and foregroundDeletion cannot be both set"));
}
END_TEST

/* Of what may be a number or a text nothing is known that could be unknown. */
START_TEST(what_is_applied_is_not_looked_through_for_unknown_fields)
{
    const char *path = TASKS "/n?fieldManager=m&fieldValidation=Strict";
    const cJSON *answer =
        ask_patch(path, "apply-patch+yaml",
                  task_text("n", "", ",\"resourceRequirements\":{\"cpu\":{\"zz\":1}}"), 422);

    ck_assert_ptr_null(strstr(message_of(answer), "strict decoding error"));
    ck_assert_ptr_nonnull(
        strstr(message_of(answer), "spec.resourceRequirements.cpu: Invalid value"));
}
END_TEST

/* --- what is told first ----------------------------------------------------------------------- */

#define NO_SPACE "/apis/propeller.propeller.abstractmachines.fr/v1/namespaces/none/tasks"
#define EVENTS "/api/v1/namespaces/default/events"
#define TASK_HEAD "\"apiVersion\":\"propeller.propeller.abstractmachines.fr/v1\",\"kind\":\"Task\""
#define GONE                                                                                       \
    "Operation cannot be fulfilled on events \"a\": StorageError: invalid object, Code: 4, Key: "  \
    "%s/events/default/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in "    \
    "precondition: u, UID in object meta: "

static const struct {
    const char *collection, *metadata;
    int status;
    const char *message;
} APPLIES[] = {
    { NO_SPACE, "{}", 400, NO_NAME },
    { NO_SPACE, "{\"name\":\"b\"}", 400,
      "the name of the object (b) does not match the name on the URL (a)" },
    { NO_SPACE, "{\"name\":\"a\",\"uid\":\"u\"}", 409,
      "Operation cannot be fulfilled on tasks.propeller.propeller.abstractmachines.fr \"a\": uid "
      "mismatch: the provided object specified uid u, and no existing object was found" },
    { NO_SPACE, "{\"name\":\"a\",\"resourceVersion\":\"x\"}", 404,
      "namespaces \"none\" not found" },
    { TASKS, "{\"namespace\":\"elsewhere\"}", 400,
      "the namespace of the provided object does not match the namespace sent on the request" },
};

START_TEST(what_is_applied_is_looked_at_before_its_namespace)
{
    const char *path = arena_printf(test_arena, "%s/a?fieldManager=m", APPLIES[_i].collection);
    const char *body =
        arena_printf(test_arena, "{" TASK_HEAD ",\"metadata\":%s}", APPLIES[_i].metadata);

    ck_assert_str_eq(message_of(ask_patch(path, "apply-patch+yaml", body, APPLIES[_i].status)),
                     APPLIES[_i].message);
    (void)ask("GET", arena_printf(test_arena, "%s/a", APPLIES[_i].collection), NULL, 404);
}
END_TEST

START_TEST(that_an_object_is_another_is_told_before_its_version)
{
    const char *body = named(",\"uid\":\"u\",\"resourceVersion\":\"x\"");

    ck_assert_str_eq(message_of(ask("PUT", EVENTS "/a", body, 409)),
                     arena_printf(test_arena, GONE, "/registry"));
    ck_assert_str_eq(message_of(ask("PUT", EVENTS "/a?dryRun=All", body, 409)),
                     arena_printf(test_arena, GONE, ""));
}
END_TEST

START_TEST(options_of_a_deletion_say_what_they_are)
{
    static const char *const BODIES[][2] = {
        { "{\"kind\":5}", "number into Go struct field .kind" },
        { "{\"apiVersion\":[]}", "array into Go struct field .apiVersion" },
    };
    const char *message = arena_printf(
        test_arena,
        "couldn't get version/kind; json parse error: json: cannot unmarshal %s of type string",
        BODIES[_i][1]);

    put_all();
    ck_assert_str_eq(message_of(ask("DELETE", TASKS "/none", BODIES[_i][0], 500)), message);
    ck_assert_str_eq(message_of(ask("DELETE", TASKS "/a", BODIES[_i][0], 500)), message);
    ck_assert_str_eq(message_of(ask("DELETE", TASKS, BODIES[_i][0], 500)), message);
    (void)ask("GET", TASKS "/a", NULL, 200);
}
END_TEST

START_TEST(nobody_holds_a_count_of_nothing)
{
    const cJSON *event = ask(
        "POST", EVENTS,
        named("},\"count\":0,\"reason\":\"r\",\"involvedObject\":{\"namespace\":\"default\""), 201);
    const cJSON *entry = json_first(json_path(event, "metadata", "managedFields", NULL));

    ck_assert_ptr_null(json_get(event, "count"));
    ck_assert_ptr_nonnull(json_path(entry, "fieldsV1", "f:reason", NULL));
    ck_assert_ptr_null(json_path(entry, "fieldsV1", "f:count", NULL));
    event = ask_patch(EVENTS "/a", "merge-patch+json", "{\"count\":2}", 200);
    ck_assert_int_eq(json_int(json_get(event, "count"), -1), 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api patches");
    TCase *tests = tcase_create("patches");

    tcase_add_checked_fixture(tests, api_setup, api_teardown);
    tcase_add_loop_test(tests, what_is_refused, 0, ARRAY_LEN(REFUSALS));
    tcase_add_loop_test(tests, what_changes_nothing_makes_no_version, 0, ARRAY_LEN(NOTHINGS));
    tcase_add_test(tests, a_map_is_replaced_as_it_is_sent);
    tcase_add_test(tests, nobody_ends_an_object_by_writing_when);
    tcase_add_test(tests, an_end_stays_whatever_is_written);
    tcase_add_test(tests, what_a_patch_ends_has_the_version_that_it_had);
    tcase_add_test(tests, who_sends_an_end_with_a_status_holds_it);
    tcase_add_test(tests, an_apply_that_makes_an_object_does_not_look_at_the_version);
    tcase_add_test(tests, an_owner_without_a_uid_has_an_empty_one);
    tcase_add_loop_test(tests, nobody_holds_anything_of_what_does_not_fit, 0, 2);
    tcase_add_test(tests, all_that_is_wrong_is_told);
    tcase_add_test(tests, finalizers_of_custom_kinds_are_checked_when_they_change);
    tcase_add_test(tests, what_is_applied_is_not_looked_through_for_unknown_fields);
    tcase_add_loop_test(tests, what_is_applied_is_looked_at_before_its_namespace, 0,
                        ARRAY_LEN(APPLIES));
    tcase_add_test(tests, that_an_object_is_another_is_told_before_its_version);
    tcase_add_loop_test(tests, options_of_a_deletion_say_what_they_are, 0, 2);
    tcase_add_test(tests, nobody_holds_a_count_of_nothing);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
