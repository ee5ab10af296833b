/* What the differential test (e2e/standalone/differential) found: here it stays found without a kube-apiserver. */
#include <check.h>
#include <string.h>

#include "common/base/str.h"
#include "standalone/tests/api_fixture.h"

#define GROUP "propeller.propeller.abstractmachines.fr"
#define EVENTS "/api/v1/namespaces/default/events"
#define NEW_EVENTS "/apis/events.k8s.io/v1/namespaces/default/events"
#define ACCOUNTS "/api/v1/namespaces/default/serviceaccounts"
#define LEASES "/apis/coordination.k8s.io/v1/namespaces/default/leases"
#define NAMED "{\"metadata\":{\"name\":\"a\"}}"
#define SENT_EVENT                                                                                 \
    "{\"metadata\":{\"name\":\"a\"%s},\"involvedObject\":{\"namespace\":\"default\","              \
    "\"name\":\"\"},\"reason\":\"\",\"message\":\"m\"}"
#define NEW_EVENT                                                                                  \
    "{\"metadata\":{\"name\":\"n\"},\"eventTime\":\"2026-11-21T10:00:00.000000Z\","                \
    "\"type\":\"Normal\",\"regarding\":{\"namespace\":\"default\"},\"reason\":\"r\","              \
    "\"note\":\"n\",\"action\":\"a\",\"reportingController\":\"c\",\"reportingInstance\":\"i\"}"
#define NO_OPTIONS                                                                                 \
    ": couldn't get version/kind; json parse error: json: cannot unmarshal %s into Go value of "   \
    "type "                                                                                        \
    "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string "               \
    "\"json:\\\"kind,omitempty\\\"\" }"
#define NO_FINALIZER                                                                               \
    "Invalid value: \"nodomain\": name is neither a standard finalizer name nor is it fully "      \
    "qualified"

static void patch(const char *path, const char *body, int status)
{
    (void)ask_patch(path, "merge-patch+json", body, status);
}

static const char *patch_refusal(const char *path, const char *type, const char *body, int status)
{
    return json_string(json_get(ask_patch(path, type, body, status), "message"), "");
}

static const cJSON *manager_at(const cJSON *object, size_t index)
{
    const cJSON *entry = json_first(json_path(object, "metadata", "managedFields", NULL));

    while (entry && index--)
        entry = entry->next;
    return entry;
}

/* --- words ------------------------------------------------------------------------------------ */

static const struct {
    const char *method, *path, *body;
    int status;
    const char *words;
} REFUSALS[] = {
    { "GET", CONFIGMAPS "?labelSelector=tier%3D%40", NULL, 400,
      "BadRequest: unable to parse requirement: values[0][tier]: Invalid value: \"@\": a valid "
      "label" },
    { "GET", CONFIGMAPS "?labelSelector=tier+notin+(x,-y)", NULL, 400,
      "BadRequest: unable to parse requirement: values[0][tier]: Invalid value: \"-y\": a valid" },
    { "GET", CONFIGMAPS "?labelSelector=-x", NULL, 400,
      "BadRequest: unable to parse requirement: <nil>: Invalid value: \"-x\": name part must" },
    { "GET", CONFIGMAPS "?timeout=1", NULL, 400,
      "BadRequest: invalid timeout specified in the request URL - time: missing unit in duration "
      "\"1\"" },
    { "GET", CONFIGMAPS "?timeout=x", NULL, 400,
      "BadRequest: invalid timeout specified in the request URL - time: invalid duration \"x\"" },
    { "GET", CONFIGMAPS "?fieldSelector=metadata.name&resourceVersionMatch=Exact", NULL, 400,
      "BadRequest: invalid selector: 'metadata.name'; can't understand 'metadata.name'" },
    { "GET", CONFIGMAPS "?limit=1&continue=x&resourceVersion=7", NULL, 400,
      "BadRequest: invalid continue token" },
    { "GET", CONFIGMAPS "?watch=1&resourceVersionMatch=Exact", NULL, 422,
      "Invalid: ListOptions.meta.k8s.io \"\" is invalid: [resourceVersionMatch: Forbidden: "
      "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided, "
      "resourceVersionMatch: Unsupported value: \"Exact\": supported values: \"NotOlderThan\"]" },
    { "GET", CONFIGMAPS "?watch=1&continue=x", NULL, 422,
      "Invalid: ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: "
      "resourceVersionMatch is forbidden when continue is provided" },
    { "GET", CONFIGMAPS "?watch=1&resourceVersion=x", NULL, 500,
      ": resourceVersion: Invalid value: \"x\": strconv.ParseUint: parsing \"x\": invalid syntax" },
    { "POST", CONFIGMAPS, "null", 422,
      "Invalid: ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName "
      "is" },
    { "POST", CONFIGMAPS, "{\"metadata\":[]}", 400,
      "BadRequest: ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot "
      "unmarshal array into Go struct field ConfigMap.metadata of type v1.ObjectMeta" },
    { "POST", CONFIGMAPS, "{\"metadata\":{\"generation\":\"7\"}}", 400,
      "BadRequest: ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot "
      "unmarshal string into Go struct field ObjectMeta.metadata.generation of type int64" },
    { "POST", LEASES, "{\"apiVersion\":\"apps/v7\",\"metadata\":{\"name\":\"a\"}}", 400,
      "BadRequest: Lease in version \"v7\" cannot be handled as a Lease: no kind \"Lease\" is "
      "registered for version \"apps/v7\" in scheme \"pkg/runtime/scheme.go:110\"" },
    { "POST", EVENTS, "{\"apiVersion\":\"events.k8s.io/v1\",\"metadata\":{\"name\":\"a\"}}", 400,
      "BadRequest: the API version in the data (events.k8s.io/v1) does not match the expected API "
      "version (v1)" },
    { "POST", CONFIGMAPS, "{\"kind\":5,\"metadata\":{\"name\":\"a\"}}", 400,
      "BadRequest: the object provided is unrecognized (must be of type ConfigMap): couldn't get "
      "version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind" },
    { "POST", LEASES,
      "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"3\"},\"spec\":{\"leaseTransitions\":-1}"
      "}",
      422,
      "Invalid: Lease.coordination.k8s.io \"a\" is invalid: spec.leaseTransitions: Invalid value: "
      "-1" },
    { "POST", CONFIGMAPS, "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"3\"}}", 500,
      ": resourceVersion should not be set on objects to be created" },
    { "POST", CONFIGMAPS,
      "{\"metadata\":{\"name\":\"a\",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":"
      "\"Event\","
      "\"name\":\"p\",\"uid\":\"u\"}]}}",
      422,
      "Invalid: ConfigMap \"a\" is invalid: metadata.ownerReferences: Invalid value: "
      "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"name\":\"p\",\"uid\":\"u\"}: /v1, Kind=Event is "
      "disallowed from being an owner" },
    { "POST", CONFIGMAPS, "{\"metadata\":{\"name\":\"a\",\"finalizers\":[\"nodomain\"]}}", 422,
      "Invalid: ConfigMap \"a\" is invalid: metadata.finalizers[0]: " NO_FINALIZER },
    { "POST", "/api/v1/namespaces", "{\"metadata\":{\"name\":\"a.b\"}}", 422,
      "Invalid: Namespace \"a.b\" is invalid: metadata.name: Invalid value: \"a.b\": must not "
      "contain dots" },
    { "PUT", EVENTS "/a", "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\"}}", 409,
      "Conflict: Operation cannot be fulfilled on events \"a\": StorageError: invalid object, "
      "Code: "
      "4, Key: /registry/events/default/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition "
      "failed: UID in precondition: u, UID in object meta: " },
};

START_TEST(what_is_refused)
{
    const char *words =
        refusal(REFUSALS[_i].method, REFUSALS[_i].path, REFUSALS[_i].body, REFUSALS[_i].status);

    ck_assert_msg(str_has_prefix(words, REFUSALS[_i].words), "%s", words);
}
END_TEST

START_TEST(what_is_no_options_deletes_nothing)
{
    static const char *const BODIES[][2] = {
        { "\"x\"", "string" }, { "[]", "array" }, { "5", "number" }, { "true", "bool" }
    };
    (void)ask("POST", CONFIGMAPS, NAMED, 201);

    ck_assert_str_eq(refusal("DELETE", CONFIGMAPS "/a", BODIES[_i][0], 500),
                     arena_printf(test_arena, NO_OPTIONS, BODIES[_i][1]));
    ck_assert_str_eq(refusal("DELETE", CONFIGMAPS, BODIES[_i][0], 500),
                     arena_printf(test_arena, NO_OPTIONS, BODIES[_i][1]));
    (void)ask("GET", CONFIGMAPS "/a", NULL, 200);
}
END_TEST

START_TEST(preconditions_may_be_in_the_query)
{
    (void)ask("POST", CONFIGMAPS, NAMED, 201);
    (void)ask("DELETE", CONFIGMAPS "/a?resourceVersion=1", NULL, 409);
    (void)ask("DELETE", CONFIGMAPS "/a?uid=u", NULL, 409);
    (void)ask("DELETE", CONFIGMAPS "?resourceVersion=0", NULL, 409);
    (void)ask("GET", CONFIGMAPS "/a", NULL, 200);
    (void)ask("DELETE", CONFIGMAPS "/a", NULL, 200);
}
END_TEST

static const char *remaining(const cJSON *list)
{
    return arena_printf(test_arena, "%d of %zu",
                        (int)json_int(json_path(list, "metadata", "remainingItemCount", NULL), -1),
                        json_len(json_get(list, "items")));
}

START_TEST(a_collection_is_deleted_page_by_page)
{
    for (int i = 0; i < 4; i++)
        (void)ask("POST", CONFIGMAPS,
                  arena_printf(test_arena, "{\"metadata\":{\"name\":\"n%d\"}}", i), 201);

    const cJSON *page = ask("DELETE", CONFIGMAPS "?limit=1", NULL, 200);

    ck_assert_str_eq(remaining(page), "3 of 1");
    (void)ask("GET", CONFIGMAPS "/n0", NULL, 404);
    page = ask("DELETE",
               arena_printf(test_arena, CONFIGMAPS "?limit=2&continue=%s", meta(page, "continue")),
               NULL, 200);
    ck_assert_str_eq(remaining(page), "1 of 2");
    (void)ask("GET", CONFIGMAPS "/n2", NULL, 404);
    (void)ask("GET", CONFIGMAPS "/n3", NULL, 200);
    (void)ask("DELETE", CONFIGMAPS "?resourceVersionMatch=Nonsense", NULL, 422);
    (void)ask("DELETE", CONFIGMAPS "?limit=1&continue=x", NULL, 400);
    ck_assert_str_eq(remaining(ask("DELETE", CONFIGMAPS, NULL, 200)), "-1 of 1");
    ck_assert_uint_eq(json_len(json_get(ask("GET", CONFIGMAPS, NULL, 200), "items")), 0);
}
END_TEST

START_TEST(who_takes_any_version_gets_all_of_it)
{
    (void)ask("POST", CONFIGMAPS, NAMED, 201);
    (void)ask("POST", CONFIGMAPS, "{\"metadata\":{\"name\":\"b\"}}", 201);
    ck_assert_str_eq(remaining(ask("GET", CONFIGMAPS "?limit=1&resourceVersion=0", NULL, 200)),
                     "-1 of 2");
    ck_assert_str_eq(remaining(ask("GET", CONFIGMAPS "?limit=1", NULL, 200)), "1 of 1");
}
END_TEST

START_TEST(an_event_is_of_the_core_group_when_it_is_deleted)
{
    (void)ask("POST", NEW_EVENTS, NEW_EVENT, 201);

    const cJSON *answer = ask("DELETE", NEW_EVENTS, "{\"preconditions\":{\"uid\":\"u\"}}", 409);

    ck_assert(str_has_prefix(json_string(json_get(answer, "message"), ""),
                             "Operation cannot be fulfilled on Event \"n\": the UID"));
    ck_assert_ptr_null(json_path(answer, "details", "group", NULL));
    ck_assert_str_eq(json_string(json_path(answer, "details", "kind", NULL), ""), "Event");
}
END_TEST

/* Not there for any method: a Status where Go's routes end, a page where nothing is. */
#define A_STATUS "the server could not find the requested resource"
#define A_PAGE "404 page not found\n"
#define NO_TASK "tasks.propeller.propeller.abstractmachines.fr \"a\" not found"

static const struct {
    const char *path, *words;
} NO_PATHS[] = {
    { "/api/v2", A_STATUS },
    { "/version/x", A_STATUS },
    { "/apis/coordination.k8s.io/x", A_STATUS },
    { "/api/v1//configmaps", A_STATUS },
    { CONFIGMAPS "/a/x/y", A_STATUS },
    { EVENTS "/a/status/x", A_STATUS },
    { "/api/v1/namespaces/default/pods/a/log/x", A_STATUS },
    { TASKS "/a/x", NO_TASK },
    { TASKS "/a/scale", NO_TASK },
    { TASKS "/a/x/y", NO_TASK },
    { "/apis/" GROUP "/v1/tasks/a/x", A_PAGE },
    { "/apis/" GROUP "/nonsense", A_PAGE },
    { "/apis/" GROUP "/v1//tasks", A_PAGE },
    { "/apis//x", A_PAGE },
    { "/apis", "" },
    { "/openapi/v9", A_PAGE },
    { "/x//y", A_PAGE },
};

START_TEST(what_is_not_there_is_so_for_all_methods)
{
    static const char *const METHODS[] = { "GET", "POST", "PUT", "PATCH", "DELETE" };

    for (size_t i = 0; i < ARRAY_LEN(METHODS) && *NO_PATHS[_i].words; i++) {
        api_send(METHODS[i], NO_PATHS[_i].path, "json", i ? "{}" : NULL, 404);

        const char *words = api_answer.body;

        if (words[0] == '{')
            words = json_string(json_get(parsed(test_arena, words), "message"), "");
        ck_assert_str_eq(words, NO_PATHS[_i].words);
    }
    if (!*NO_PATHS[_i].words)
        (void)ask("POST", NO_PATHS[_i].path, "{}", 405);
}
END_TEST

/* --- writes ----------------------------------------------------------------------------------- */

START_TEST(a_version_that_is_none_does_not_keep_from_creating)
{
    (void)ask("POST", CONFIGMAPS, "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"x\"}}", 201);
    (void)ask("POST", CONFIGMAPS "?dryRun=All",
              "{\"metadata\":{\"name\":\"b\",\"resourceVersion\":\"3\"}}", 201);
    (void)ask("PUT", EVENTS "/a",
              arena_printf(test_arena, SENT_EVENT, ",\"resourceVersion\":\"3\""), 201);
}
END_TEST

START_TEST(finalizers_of_core_kinds_are_checked_whenever_they_are_written)
{
    (void)ask("POST", CONFIGMAPS, NAMED, 201);
    (void)ask("POST", LEASES, NAMED, 201);
    ck_assert_str_eq(patch_refusal(CONFIGMAPS "/a", "merge-patch+json",
                                   "{\"metadata\":{\"finalizers\":[\"kubernetes\",\"nodomain\"]}}",
                                   422),
                     "ConfigMap \"a\" is invalid: metadata.finalizers[1]: " NO_FINALIZER);
    patch(CONFIGMAPS "/a", "{\"metadata\":{\"generateName\":\"Upper_\"}}", 422);
    patch(LEASES "/a", "{\"metadata\":{\"finalizers\":[\"-bad-/x\"]}}", 422);
    patch(LEASES "/a", "{\"metadata\":{\"finalizers\":[\"nodomain\"],\"generateName\":\"Upper_\"}}",
          200);
}
END_TEST

START_TEST(a_finalizer_without_a_domain_is_warned_of_where_it_comes)
{
    api_send("POST", TASKS, "json", task_text("a", ",\"finalizers\":[\"nodomain\"]", ""), 201);
    ck_assert_str_eq(
        api_answer.warnings[0],
        "299 - \"metadata.finalizers: \\\"nodomain\\\": prefer a domain-qualified finalizer "
        "name to avoid accidental conflicts with other finalizer writers\"");
    patch(TASKS "/a", "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}", 200);
    ck_assert_ptr_null(api_answer.warnings[0]);
    patch(TASKS "/a", "{\"metadata\":{\"finalizers\":[\"nodomain\",\"no.domain\"]}}", 200);
    ck_assert_ptr_nonnull(strstr(api_answer.warnings[0], "name including a path (/) to avoid"));
    ck_assert_ptr_null(api_answer.warnings[1]);
}
END_TEST

START_TEST(a_patch_that_is_none_is_refused)
{
    (void)ask("POST", CONFIGMAPS, NAMED, 201);
    ck_assert_str_eq(patch_refusal(CONFIGMAPS "/a", "merge-patch+json", "5", 400),
                     "error decoding patch: json: cannot unmarshal number into Go value of type "
                     "map[string]interface {}");
    ck_assert_str_eq(patch_refusal(CONFIGMAPS "/a", "json-patch+json", "{}", 400),
                     "error decoding patch: json: cannot unmarshal object into Go value of type "
                     "[]handlers.jsonPatchOp");
    (void)ask("POST", ACCOUNTS, "{\"metadata\":{\"name\":\"a\"},\"secrets\":[{\"name\":\"s\"}]}",
              201);
    ck_assert_str_eq(patch_refusal(ACCOUNTS "/a", "strategic-merge-patch+json", "[]", 400),
                     "json: cannot unmarshal array into Go value of type map[string]interface {}");
    (void)ask_patch(ACCOUNTS "/a", "strategic-merge-patch+json",
                    "{\"secrets\":[{\"$patch\":\"delete\"}]}", 500);
}
END_TEST

START_TEST(a_patch_of_the_status_does_not_look_at_the_uid)
{
    (void)ask("POST", TASKS, task_text("a", "", ""), 201);
    patch(TASKS "/a/status", "{\"metadata\":{\"uid\":\"u\"},\"status\":{\"phase\":\"pending\"}}",
          200);
    patch(TASKS "/a", "{\"metadata\":{\"uid\":\"u\"}}", 422);
}
END_TEST

/* --- managers --------------------------------------------------------------------------------- */

START_TEST(nobody_holds_what_the_server_wipes)
{
    const cJSON *made = ask("POST", CONFIGMAPS,
                            "{\"metadata\":{\"name\":\"a\",\"deletionGracePeriodSeconds\":5,"
                            "\"labels\":{\"a\":\"b\"}}}",
                            201);
    const cJSON *held = json_path(manager_at(made, 0), "fieldsV1", "f:metadata", NULL);

    ck_assert_uint_eq(json_len(held), 1);
    ck_assert_ptr_nonnull(json_get(held, "f:labels"));
}
END_TEST

START_TEST(managers_of_the_other_form_of_an_event_are_forgotten)
{
    (void)ask("POST", NEW_EVENTS "?fieldManager=first", NEW_EVENT, 201);
    patch(EVENTS "/n?fieldManager=second", "{\"count\":2}", 200);

    const cJSON *event = ask("GET", EVENTS "/n", NULL, 200);

    ck_assert_uint_eq(json_len(json_path(event, "metadata", "managedFields", NULL)), 1);
    ck_assert_str_eq(json_string(json_get(manager_at(event, 0), "manager"), ""), "second");
}
END_TEST

START_TEST(who_applies_what_is_there_has_no_time)
{
    (void)ask("POST", NEW_EVENTS "?fieldManager=first", NEW_EVENT, 201);

    const cJSON *event = ask_patch(NEW_EVENTS "/n?fieldManager=second", "apply-patch+yaml",
                                   "{\"apiVersion\":\"events.k8s.io/v1\",\"kind\":\"Event\","
                                   "\"metadata\":{\"name\":\"n\"},\"note\":\"n\"}",
                                   200);

    ck_assert_str_eq(json_string(json_get(manager_at(event, 0), "operation"), ""), "Apply");
    ck_assert_ptr_null(json_get(manager_at(event, 0), "time"));
}
END_TEST

START_TEST(of_a_status_with_what_is_none_beside_it_nobody_holds_anything)
{
    const cJSON *made = ask("POST", TASKS, task_text("a", "", ""), 201);

    ck_assert_ptr_nonnull(manager_at(made, 0));
    patch(TASKS "/a/status", "{\"spec\":\"x\",\"status\":{\"phase\":\"pending\"}}", 200);
    ck_assert_ptr_null(manager_at(ask("GET", TASKS "/a", NULL, 200), 0));
}
END_TEST

/* --- Events ----------------------------------------------------------------------------------- */

START_TEST(what_is_empty_in_an_event_is_left_out)
{
    (void)ask("POST", EVENTS, arena_printf(test_arena, SENT_EVENT, ""), 201);

    const cJSON *core = ask("GET", EVENTS "/a", NULL, 200),
                *new = ask("GET", NEW_EVENTS "/a", NULL, 200);

    ck_assert_ptr_null(json_path(core, "involvedObject", "name", NULL));
    ck_assert_ptr_null(json_get(core, "reason"));
    ck_assert_str_eq(json_string(json_get(core, "reportingComponent"), "none"), "");
    ck_assert_ptr_null(json_get(new, "reportingController"));
    ck_assert_ptr_null(json_get(new, "reportingInstance"));
}
END_TEST

START_TEST(an_event_may_have_any_name_that_a_path_may_have)
{
    static const char text[] = "{\"metadata\":{\"name\":\"%s\"},\"involvedObject\":{\"namespace\":"
                               "\"default\"}}";

    (void)ask("POST", EVENTS, arena_printf(test_arena, text, "Upper_Case"), 201);
    ck_assert_str_eq(
        refusal("POST", EVENTS, arena_printf(test_arena, text, "a%b"), 422),
        "Invalid: Event \"a%b\" is invalid: metadata.name: Invalid value: \"a%b\": may "
        "not contain '%'");
    ck_assert_str_eq(refusal("POST", EVENTS, arena_printf(test_arena, text, ".."), 422),
                     "Invalid: Event \"..\" is invalid: metadata.name: Invalid value: \"..\": may "
                     "not be '..'");
    (void)ask("POST", NEW_EVENTS, NEW_EVENT, 201);
    ck_assert_str_eq(patch_refusal(NEW_EVENTS "/n", "merge-patch+json", "{\"note\":null}", 422),
                     "Event \"n\" is invalid: message: Invalid value: \"\": field is immutable");
}
END_TEST

START_TEST(an_event_has_nobody_who_depends_on_it)
{
    (void)ask("POST", EVENTS, arena_printf(test_arena, SENT_EVENT, ""), 201);
    (void)ask("DELETE", EVENTS "/a?propagationPolicy=Foreground", NULL, 200);
    (void)ask("GET", EVENTS "/a", NULL, 404);
}
END_TEST

/* --- the garbage collector -------------------------------------------------------------------- */

/* A ConfigMap that is owned; more: members of the reference. */
static const char *owned(const char *name, const char *uid, const char *more)
{
    return arena_printf(
        test_arena,
        "{\"metadata\":{\"name\":\"%s\",\"ownerReferences\":[{\"apiVersion\":\"v1\","
        "\"kind\":\"ConfigMap\",\"name\":\"a\",\"uid\":\"%s\"%s}]}}",
        name, uid, more);
}

START_TEST(nobody_holds_the_reference_that_an_orphan_had)
{
    const char *uid = meta(ask("POST", CONFIGMAPS, NAMED, 201), "uid");

    (void)ask("POST", CONFIGMAPS, owned("b", uid, ""), 201);
    api_collect();
    (void)ask("DELETE", CONFIGMAPS "/a?propagationPolicy=Orphan", NULL, 200);
    await_gone(CONFIGMAPS "/a");

    const cJSON *orphan = ask("GET", CONFIGMAPS "/b", NULL, 200);

    ck_assert_ptr_null(json_path(orphan, "metadata", "ownerReferences", NULL));
    ck_assert_ptr_null(manager_at(orphan, 0));
}
END_TEST

START_TEST(who_has_no_dependents_is_gone_at_once)
{
    const char *uid = meta(ask("POST", CONFIGMAPS, NAMED, 201), "uid");

    (void)ask("POST", CONFIGMAPS, owned("b", uid, ",\"blockOwnerDeletion\":true"), 201);

    struct api_watch *watch = watch_open(
        arena_printf(test_arena, CONFIGMAPS "?watch=1&fieldSelector=metadata.name%%3Db"));

    ck_assert(str_has_prefix(watch_next(watch), "ADDED b"));
    api_collect();
    (void)ask("DELETE", CONFIGMAPS "/a?propagationPolicy=Foreground", NULL, 200);
    await_gone(CONFIGMAPS "/a");
    ck_assert(str_has_prefix(watch_next(watch), "DELETED b"));
    ck_assert_str_eq(watch_next(watch), ".");
    api_watch_close(watch);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api differential");
    TCase *tests = tcase_create("calls");

    tcase_add_checked_fixture(tests, api_setup, api_teardown);
    tcase_add_loop_test(tests, what_is_refused, 0, ARRAY_LEN(REFUSALS));
    tcase_add_loop_test(tests, what_is_no_options_deletes_nothing, 0, 4);
    tcase_add_test(tests, preconditions_may_be_in_the_query);
    tcase_add_test(tests, a_collection_is_deleted_page_by_page);
    tcase_add_test(tests, who_takes_any_version_gets_all_of_it);
    tcase_add_test(tests, an_event_is_of_the_core_group_when_it_is_deleted);
    tcase_add_loop_test(tests, what_is_not_there_is_so_for_all_methods, 0, ARRAY_LEN(NO_PATHS));
    tcase_add_test(tests, a_version_that_is_none_does_not_keep_from_creating);
    tcase_add_test(tests, finalizers_of_core_kinds_are_checked_whenever_they_are_written);
    tcase_add_test(tests, a_finalizer_without_a_domain_is_warned_of_where_it_comes);
    tcase_add_test(tests, a_patch_that_is_none_is_refused);
    tcase_add_test(tests, a_patch_of_the_status_does_not_look_at_the_uid);
    tcase_add_test(tests, nobody_holds_what_the_server_wipes);
    tcase_add_test(tests, managers_of_the_other_form_of_an_event_are_forgotten);
    tcase_add_test(tests, who_applies_what_is_there_has_no_time);
    tcase_add_test(tests, of_a_status_with_what_is_none_beside_it_nobody_holds_anything);
    tcase_add_test(tests, what_is_empty_in_an_event_is_left_out);
    tcase_add_test(tests, an_event_may_have_any_name_that_a_path_may_have);
    tcase_add_test(tests, an_event_has_nobody_who_depends_on_it);
    tcase_add_test(tests, nobody_holds_the_reference_that_an_orphan_had);
    tcase_add_test(tests, who_has_no_dependents_is_gone_at_once);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
