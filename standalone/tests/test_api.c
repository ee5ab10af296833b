/* The API as clients meet it: verbs, refusals in the API server's words, versions. */
#include "standalone/tests/api_fixture.h"

#include <check.h>
#include <string.h>

#include "common/base/str.h"

#define GROUP "propeller.propeller.abstractmachines.fr"

START_TEST(what_the_server_sets_cannot_be_sent)
{
    const cJSON *made =
        ask("POST", TASKS,
            task_text(
                "a",
                ",\"uid\":\"mine\",\"generation\":7,\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"",
                ""),
            201);

    ck_assert_str_ne(meta(made, "uid"), "mine");
    ck_assert_str_eq(meta(made, "creationTimestamp"), "2026-11-21T10:00:00Z");
    ck_assert_int_eq(json_int(json_path(made, "metadata", "generation", NULL), 0), 1);
    ck_assert_ptr_null(json_path(made, "metadata", "deletionTimestamp", NULL));
    ck_assert_str_ne(meta(made, "resourceVersion"), "");
}
END_TEST

START_TEST(a_new_task_has_what_admission_sets_and_its_finalizer)
{
    const cJSON *made = ask("POST", TASKS, task_text("a", "", ""), 201);

    ck_assert_int_eq(json_int(json_path(made, "spec", "priority", NULL), 0), 50);
    ck_assert_uint_eq(json_len(json_path(made, "metadata", "finalizers", NULL)), 1);
    ck_assert_str_eq(refusal("POST", TASKS, task_text("b", "", ",\"dependsOn\":[\"b\"]"), 422),
                     "Invalid: Task." GROUP " \"b\" is invalid: spec.dependsOn[0]: Invalid value: "
                     "\"b\": a Task cannot depend on itself");
}
END_TEST

START_TEST(what_is_read_is_what_was_answered_to_the_write)
{
    const cJSON *made = ask("POST", TASKS, task_text("a", "", ""), 201);

    ck_assert(json_equal(made, ask("GET", TASKS "/a", NULL, 200)));

    const cJSON *list = ask("GET", TASKS, NULL, 200);

    ck_assert(json_equal(made, json_first(json_get(list, "items"))));
    ck_assert_str_eq(json_string(json_get(list, "kind"), ""), "TaskList");
    ck_assert_str_eq(meta(list, "resourceVersion"), meta(made, "resourceVersion"));
}
END_TEST

START_TEST(refusals_have_the_words_of_the_api_server)
{
    (void)ask("POST", TASKS, task_text("a", "", ""), 201);
    ck_assert_str_eq(refusal("GET", TASKS "/x", NULL, 404),
                     "NotFound: tasks." GROUP " \"x\" not found");
    ck_assert_str_eq(refusal("POST", TASKS, task_text("a", "", ""), 409),
                     "AlreadyExists: tasks." GROUP " \"a\" already exists");
    ck_assert_str_eq(
        refusal("PUT", TASKS "/a", task_text("b", "", ""), 400),
        "BadRequest: the name of the object (b) does not match the name on the URL (a)");
    ck_assert_str_eq(refusal("PUT", TASKS "/a", task_text("a", "", ""), 422),
                     "Invalid: tasks." GROUP " \"a\" is invalid: metadata.resourceVersion: Invalid "
                     "value: 0: must be specified for an update");
    ck_assert_str_eq(
        refusal("PUT", TASKS "/a", task_text("a", ",\"resourceVersion\":\"1\"", ""), 409),
        "Conflict: Operation cannot be fulfilled on tasks." GROUP
        " \"a\": the object has been modified; please apply your changes to the latest "
        "version and try again");
    ck_assert_str_eq(
        refusal("POST", "/api/v1/namespaces/x/configmaps", "{\"metadata\":{\"name\":\"a\"}}", 404),
        "NotFound: namespaces \"x\" not found");
    ck_assert_str_eq(refusal("PATCH", TASKS, NULL, 405),
                     "MethodNotAllowed: patch is not supported on resources of kind \"tasks." GROUP
                     "\"");
    ck_assert_str_eq(refusal("GET", "/api/v1/things", NULL, 404),
                     "NotFound: the server could not find the requested resource");
}
END_TEST

START_TEST(an_unknown_field_is_dropped_with_a_warning_or_refused_if_that_is_asked_for)
{
    const cJSON *made = ask("POST", TASKS, task_text("a", "", ",\"bogus\":1"), 201);

    ck_assert_ptr_null(json_path(made, "spec", "bogus", NULL));
    ck_assert_str_eq(api_answer.warnings[0], "299 - \"unknown field \\\"spec.bogus\\\"\"");
    ck_assert_str_eq(
        refusal("POST", TASKS "?fieldValidation=Strict", task_text("b", "", ",\"bogus\":1"), 400),
        "BadRequest: Task in version \"v1\" cannot be handled as a Task: strict decoding error: "
        "unknown field \"spec.bogus\"");
}
END_TEST

START_TEST(generation_counts_changes_of_the_spec_alone)
{
    (void)ask("POST", TASKS, task_text("a", "", ""), 201);

    const cJSON *labelled =
        ask_patch(TASKS "/a", "merge-patch+json", "{\"metadata\":{\"labels\":{\"k\":\"v\"}}}", 200);
    const cJSON *changed =
        ask_patch(TASKS "/a", "merge-patch+json", "{\"spec\":{\"priority\":9}}", 200);

    ck_assert_int_eq(json_int(json_path(labelled, "metadata", "generation", NULL), 0), 1);
    ck_assert_int_eq(json_int(json_path(changed, "metadata", "generation", NULL), 0), 2);
}
END_TEST

START_TEST(the_status_is_written_through_its_subresource_and_nothing_else_is)
{
    (void)ask("POST", TASKS, task_text("a", "", ""), 201);

    const cJSON *main =
        ask_patch(TASKS "/a", "merge-patch+json", "{\"status\":{\"phase\":\"running\"}}", 200);
    const cJSON *status =
        ask_patch(TASKS "/a/status", "merge-patch+json",
                  "{\"status\":{\"phase\":\"scheduled\"},\"spec\":{\"priority\":1}}", 200);

    ck_assert_ptr_null(json_path(main, "status", "phase", NULL));
    ck_assert_str_eq(json_string(json_path(status, "status", "phase", NULL), ""), "scheduled");
    ck_assert_int_eq(json_int(json_path(status, "spec", "priority", NULL), 0), 50);
    ck_assert_int_eq(json_int(json_path(status, "metadata", "generation", NULL), 0), 1);
    ck_assert_str_eq(
        json_string(json_get(ask_patch(TASKS "/a/status", "merge-patch+json",
                                       "{\"status\":{\"phase\":\"interrupted\"}}", 422),
                             "reason"),
                    ""),
        "Invalid");
}
END_TEST

START_TEST(built_in_kinds_may_be_replaced_without_a_version)
{
    const cJSON *made = ask("POST", CONFIGMAPS, "{\"metadata\":{\"name\":\"a\"}}", 201);
    const cJSON *replaced =
        ask("PUT", CONFIGMAPS "/a", "{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"v\"}}", 200);

    ck_assert_str_eq(meta(made, "uid"), meta(replaced, "uid"));
    ck_assert_str_ne(meta(made, "resourceVersion"), meta(replaced, "resourceVersion"));
}
END_TEST

START_TEST(a_write_that_changes_nothing_keeps_the_version)
{
    const cJSON *made = ask("POST", TASKS, task_text("a", "", ""), 201);
    const cJSON *same =
        ask_patch(TASKS "/a", "merge-patch+json", "{\"spec\":{\"priority\":50}}", 200);

    ck_assert_str_eq(meta(made, "resourceVersion"), meta(same, "resourceVersion"));
}
END_TEST

START_TEST(a_dry_run_answers_and_writes_nothing)
{
    (void)ask("POST", TASKS "?dryRun=All", task_text("a", "", ""), 201);
    (void)ask("GET", TASKS "/a", NULL, 404);
    (void)ask("POST", TASKS, task_text("b", "", ""), 201);
    (void)ask("DELETE", TASKS "/b?dryRun=All", NULL, 200);
    ck_assert_ptr_null(
        json_path(ask("GET", TASKS "/b", NULL, 200), "metadata", "deletionTimestamp", NULL));
}
END_TEST

START_TEST(who_has_finalizers_goes_when_the_last_one_is_taken_off)
{
    (void)ask("POST", TASKS, task_text("a", "", ""), 201);

    const cJSON *going = ask("DELETE", TASKS "/a", NULL, 200);

    ck_assert_str_eq(meta(going, "deletionTimestamp"), "2026-11-21T10:00:00Z");
    ck_assert_int_eq(json_int(json_path(going, "metadata", "generation", NULL), 0), 2);
    (void)ask("GET", TASKS "/a", NULL, 200);
    (void)ask_patch(TASKS "/a", "merge-patch+json", "{\"metadata\":{\"finalizers\":null}}", 200);
    (void)ask("GET", TASKS "/a", NULL, 404);
}
END_TEST

/* What a client could do harm with if it were otherwise than on a cluster. */
START_TEST(tries_collections_and_updates_of_nothing_go_as_on_a_cluster)
{
    static const char LEASE[] = "/apis/coordination.k8s.io/v1/namespaces/default/leases/a";

    (void)ask("POST", CONFIGMAPS, "{\"metadata\":{\"name\":\"a\"}}", 201);
    ck_assert_str_eq(
        refusal("POST", CONFIGMAPS "?dryRun=All", "{\"metadata\":{\"name\":\"a\"}}", 409),
        "AlreadyExists: configmaps \"a\" already exists");
    ck_assert_str_eq(refusal("POST", CONFIGMAPS "?dryRun=Some", "{}", 422),
                     "Invalid: CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported "
                     "value: [\"Some\"]: supported values: \"All\"");
    ck_assert_str_eq(refusal("DELETE", "/api/v1/namespaces", NULL, 405),
                     "MethodNotAllowed: the server does not allow this method on the requested "
                     "resource");
    (void)ask("GET", "/api/v1/namespaces/default", NULL, 200);
    (void)ask("PUT", LEASE, "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"holderIdentity\":\"x\"}}",
              201);
    ck_assert_str_eq(refusal("PUT", CONFIGMAPS "/b", "{\"metadata\":{\"name\":\"b\"}}", 404),
                     "NotFound: configmaps \"b\" not found");
    (void)ask_patch(CONFIGMAPS "/a", "merge-patch+json", "{\"metadata\":{\"uid\":\"u\"}}", 422);
    (void)ask("DELETE", LEASE, "{\"dryRun\":[\"All\"]}", 200);
    (void)ask("GET", LEASE, NULL, 200);
}
END_TEST

static const struct {
    const char *options;
    int status;
    const char *words;
} NO_PRECONDITIONS[] = {
    { "{\"preconditions\":{\"uid\":5}}", 500,
      ": json: cannot unmarshal number into Go struct field Preconditions.preconditions.uid of "
      "type "
      "types.UID" },
    { "{\"preconditions\":{\"resourceVersion\":7}}", 500,
      ": json: cannot unmarshal number into Go struct field "
      "Preconditions.preconditions.resourceVersion of type string" },
    { "{\"preconditions\":{\"uid\":\"\"}}", 409,
      "Conflict: Operation cannot be fulfilled on ConfigMap \"a\": the UID in the precondition () "
      "does not match" },
    { "{\"preconditions\":{\"resourceVersion\":\"\"}}", 409,
      "Conflict: Operation cannot be fulfilled on ConfigMap \"a\": the ResourceVersion in the "
      "precondition () does not match" },
    { "{\"gracePeriodSeconds\":1.5}", 500,
      ": json: cannot unmarshal number 1.5 into Go struct field DeleteOptions.gracePeriodSeconds "
      "of "
      "type int64" },
};

/* Whoever sends one that cannot be met does not mean that there is none. */
START_TEST(a_precondition_that_is_none_is_not_left_out)
{
    const char *words;

    (void)ask("POST", CONFIGMAPS, "{\"metadata\":{\"name\":\"a\"}}", 201);
    words = refusal("DELETE", CONFIGMAPS "/a", NO_PRECONDITIONS[_i].options,
                    NO_PRECONDITIONS[_i].status);
    ck_assert_msg(str_has_prefix(words, NO_PRECONDITIONS[_i].words), "%s", words);
    (void)ask("GET", CONFIGMAPS "/a", NULL, 200);
}
END_TEST

START_TEST(a_deletion_bound_to_another_object_is_refused)
{
    (void)ask("POST", CONFIGMAPS, "{\"metadata\":{\"name\":\"a\"}}", 201);
    ck_assert(str_has_prefix(
        refusal("DELETE", CONFIGMAPS "/a", "{\"preconditions\":{\"uid\":\"other\"}}", 409),
        "Conflict: Operation cannot be fulfilled on ConfigMap \"a\": the UID in the precondition "
        "(other) does not match the UID in record ("));
    ck_assert(str_has_prefix(
        refusal("DELETE", CONFIGMAPS "/a", "{\"preconditions\":{\"resourceVersion\":\"1\"}}", 409),
        "Conflict: "));
    ck_assert_str_eq(json_string(json_get(ask("DELETE", CONFIGMAPS "/a", NULL, 200), "status"), ""),
                     "Success");
    (void)ask("GET", CONFIGMAPS "/a", NULL, 404);
}
END_TEST

static const char *names(const cJSON *list)
{
    const char *ret = "";

    json_for_each (item, json_get(list, "items"))
        ret = arena_printf(test_arena, "%s%s%s", ret, *ret ? " " : "", meta(item, "name"));
    return ret;
}

static void make_configmaps(void)
{
    static const char *const LABELS[] = { "x", "y", "x", "y", "x" };

    for (size_t i = 0; i < ARRAY_LEN(LABELS); i++)
        (void)ask("POST", CONFIGMAPS,
                  arena_printf(test_arena,
                               "{\"metadata\":{\"name\":\"c%zu\",\"labels\":{\"k\":\"%s\"}}}", i,
                               LABELS[i]),
                  201);
}

START_TEST(pages_together_are_the_list_of_the_first_page)
{
    make_configmaps();

    const cJSON *page = ask("GET", CONFIGMAPS "?limit=2", NULL, 200);

    ck_assert_str_eq(names(page), "c0 c1");
    ck_assert_int_eq(json_int(json_path(page, "metadata", "remainingItemCount", NULL), 0), 3);
    (void)ask("DELETE", CONFIGMAPS "/c3", NULL, 200); /* too late for this list */

    const char *next =
        arena_printf(test_arena, CONFIGMAPS "?limit=2&continue=%s", meta(page, "continue"));
    const cJSON *second = ask("GET", next, NULL, 200);

    ck_assert_str_eq(names(second), "c2 c3");
    ck_assert_str_eq(meta(second, "resourceVersion"), meta(page, "resourceVersion"));
    next = arena_printf(test_arena, CONFIGMAPS "?limit=2&continue=%s", meta(second, "continue"));
    page = ask("GET", next, NULL, 200);
    ck_assert_str_eq(names(page), "c4");
    ck_assert_str_eq(meta(page, "continue"), "");
    (void)ask("GET", CONFIGMAPS "?limit=2&continue=zz", NULL, 400);
}
END_TEST

START_TEST(selectors_choose_and_fill_pages)
{
    make_configmaps();
    ck_assert_str_eq(names(ask("GET", CONFIGMAPS "?labelSelector=k%3Dx", NULL, 200)), "c0 c2 c4");
    ck_assert_str_eq(names(ask("GET", CONFIGMAPS "?labelSelector=k+notin+(x)", NULL, 200)),
                     "c1 c3");
    ck_assert_str_eq(names(ask("GET", CONFIGMAPS "?labelSelector=k%3Dx&limit=2", NULL, 200)),
                     "c0 c2");
    ck_assert_str_eq(names(ask("GET", CONFIGMAPS "?fieldSelector=metadata.name%3Dc3", NULL, 200)),
                     "c3");
    ck_assert_str_eq(
        refusal("GET", CONFIGMAPS "?fieldSelector=data.a%3Db", NULL, 400),
        "BadRequest: \"data.a\" is not a known field selector: only \"metadata.name\", "
        "\"metadata.namespace\"");
    (void)ask("DELETE", CONFIGMAPS "?labelSelector=k%3Dy", NULL, 200);
    ck_assert_str_eq(names(ask("GET", CONFIGMAPS, NULL, 200)), "c0 c2 c4");
}
END_TEST

START_TEST(a_version_of_the_future_is_waited_for_by_the_client)
{
    static const char *const PATHS[] = { CONFIGMAPS, CONFIGMAPS "/a", TASKS "/t" };

    /* The reason, and a message that begins with it, as that of a kube-apiserver. */
    for (size_t i = 0; i < ARRAY_LEN(PATHS); i++) {
        const char *path = arena_printf(test_arena, "%s?resourceVersion=1000", PATHS[i]);
        const char *words = refusal("GET", path, NULL, 504);

        ck_assert_msg(str_has_prefix(words, "Timeout: Timeout: Too large resource version: 1000, "
                                            "current: "),
                      "%s", words);
        ck_assert_uint_eq(api_answer.retry_after_s, 1);
    }
}
END_TEST

START_TEST(apply_makes_changes_and_says_whose_field_it_is)
{
    static const char MINE[] = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{"
                               "\"name\":\"a\"},\"data\":{\"k\":\"1\"}}";
    static const char OTHERS[] = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{"
                                 "\"name\":\"a\"},\"data\":{\"k\":\"2\"}}";

    (void)ask_patch(CONFIGMAPS "/a?fieldManager=me", "apply-patch+yaml", MINE, 201);
    (void)ask_patch(CONFIGMAPS "/a?fieldManager=me", "apply-patch+yaml", MINE, 200);

    const cJSON *conflict =
        ask_patch(CONFIGMAPS "/a?fieldManager=you", "apply-patch+yaml", OTHERS, 409);

    ck_assert_str_eq(
        json_string(json_get(json_first(json_path(conflict, "details", "causes", NULL)), "field"),
                    ""),
        ".data.k");

    const cJSON *forced =
        ask_patch(CONFIGMAPS "/a?fieldManager=you&force=true", "apply-patch+yaml", OTHERS, 200);

    ck_assert_str_eq(json_string(json_path(forced, "data", "k", NULL), ""), "2");
    (void)ask_patch(CONFIGMAPS "/a", "apply-patch+yaml", MINE, 422);
}
END_TEST

START_TEST(roles_may_what_their_names_say)
{
    (void)ask("POST", "/api/v1/namespaces/default/secrets", "{\"metadata\":{\"name\":\"s\"}}", 201);
    api_user = (struct user){ .name = "eve", .role = ROLE_VIEW };
    (void)ask("GET", TASKS, NULL, 200);
    ck_assert_str_eq(refusal("GET", "/api/v1/namespaces/default/secrets/s", NULL, 403),
                     "Forbidden: secrets \"s\" is forbidden: User \"eve\" cannot get resource "
                     "\"secrets\" in API group \"\" in the namespace \"default\"");
    (void)refusal("POST", TASKS, task_text("a", "", ""), 403);
    (void)refusal("DELETE", TASKS, NULL, 403);
    (void)refusal("GET", "/api/v1/secrets?watch=1", NULL, 403);
    api_user.role = ROLE_EDIT;
    (void)ask("POST", TASKS, task_text("a", "", ""), 201);
    (void)ask("GET", "/api/v1/namespaces/default/secrets/s", NULL, 200);
    (void)refusal("DELETE", "/api/v1/namespaces/default", NULL, 403);
    api_user.role = ROLE_NONE;
    (void)refusal("GET", TASKS, NULL, 403);
    (void)ask("GET", "/apis", NULL, 200);
}
END_TEST

START_TEST(what_is_not_here_is_selected_by_the_fields_of_a_cluster)
{
#define PODS "/api/v1/namespaces/default/pods?fieldSelector="
    static const char *const KNOWN[] = {
        PODS "spec.nodeName%3Dx",
        PODS "status.phase!%3DRunning,spec.host%3Dx",
        PODS "status.podIPs%3D,metadata.name%3Da",
        "/api/v1/pods?fieldSelector=spec.hostNetwork%3Dtrue",
        "/api/v1/services?fieldSelector=spec.clusterIP%3DNone,spec.type%3Dx",
        "/apis/batch/v1/namespaces/default/jobs?fieldSelector=status.successful%3D1",
        "/apis/apps/v1/deployments?fieldSelector=metadata.namespace%3Da",
    };

    for (size_t i = 0; i < ARRAY_LEN(KNOWN); i++)
        ck_assert_uint_eq(json_len(json_get(ask("GET", KNOWN[i], NULL, 200), "items")), 0);
    ck_assert_str_eq(refusal("GET", PODS "spec.priority%3D1", NULL, 400),
                     "BadRequest: field label not supported: spec.priority");
    ck_assert_str_eq(
        refusal("GET", "/apis/batch/v1/jobs?fieldSelector=spec.nodeName%3Dx", NULL, 400),
        "BadRequest: field label \"spec.nodeName\" not supported for Job");
    ck_assert_str_eq(refusal("GET", "/apis/apps/v1/daemonsets?fieldSelector=spec.x%3Dx", NULL, 400),
                     "BadRequest: \"spec.x\" is not a known field selector: only "
                     "\"metadata.name\", \"metadata.namespace\"");
}
END_TEST

START_TEST(what_would_make_pods_is_refused_and_looks_empty)
{
    ck_assert_uint_eq(
        json_len(json_get(ask("GET", "/apis/apps/v1/deployments", NULL, 200), "items")), 0);
    ck_assert_str_eq(refusal("POST", "/apis/apps/v1/namespaces/default/deployments", "{}", 403),
                     "Forbidden: deployments.apps is forbidden: there are no pods on this server, "
                     "which is propeller-standalone and no Kubernetes cluster");
    /* kubectl cluster-info, and what kubectl asks before it says that it does not know a kind. */
    ck_assert_uint_eq(json_len(json_get(ask("GET",
                                            "/api/v1/namespaces/kube-system/services"
                                            "?labelSelector=kubernetes.io/cluster-service",
                                            NULL, 200),
                                        "items")),
                      0);
    ck_assert_uint_eq(
        json_len(json_get(
            ask("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", NULL, 200),
            "items")),
        0);
    (void)ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "{}", 404);
}
END_TEST

START_TEST(a_patch_that_is_no_json_is_told_so)
{
    const cJSON *answer;

    (void)ask("POST", TASKS, task_text("a", "", ""), 201);
    answer = ask_patch(TASKS "/a", "merge-patch+json", "{", 400);
    ck_assert_str_eq(json_string(json_get(answer, "message"), ""),
                     "error decoding patch: invalid JSON at byte 1: expected a string");
}
END_TEST

START_TEST(secrets_are_in_no_message)
{
    const char *said = refusal(
        "POST", "/api/v1/namespaces/default/secrets",
        "{\"metadata\":{\"name\":\"s\"},\"data\":{\"k\":\"not base64: hidden-word\"}}", 400);

    ck_assert_msg(!strstr(said, "hidden-word"), "%s", said);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api");
    TCase *all = tcase_create("all");

    tcase_set_timeout(all, 120);
    tcase_add_checked_fixture(all, api_setup, api_teardown);
    tcase_add_test(all, what_the_server_sets_cannot_be_sent);
    tcase_add_test(all, a_new_task_has_what_admission_sets_and_its_finalizer);
    tcase_add_test(all, what_is_read_is_what_was_answered_to_the_write);
    tcase_add_test(all, refusals_have_the_words_of_the_api_server);
    tcase_add_test(all, an_unknown_field_is_dropped_with_a_warning_or_refused_if_that_is_asked_for);
    tcase_add_test(all, generation_counts_changes_of_the_spec_alone);
    tcase_add_test(all, the_status_is_written_through_its_subresource_and_nothing_else_is);
    tcase_add_test(all, built_in_kinds_may_be_replaced_without_a_version);
    tcase_add_test(all, a_write_that_changes_nothing_keeps_the_version);
    tcase_add_test(all, a_dry_run_answers_and_writes_nothing);
    tcase_add_loop_test(all, a_precondition_that_is_none_is_not_left_out, 0,
                        (int)ARRAY_LEN(NO_PRECONDITIONS));
    tcase_add_test(all, who_has_finalizers_goes_when_the_last_one_is_taken_off);
    tcase_add_test(all, a_deletion_bound_to_another_object_is_refused);
    tcase_add_test(all, pages_together_are_the_list_of_the_first_page);
    tcase_add_test(all, selectors_choose_and_fill_pages);
    tcase_add_test(all, a_version_of_the_future_is_waited_for_by_the_client);
    tcase_add_test(all, apply_makes_changes_and_says_whose_field_it_is);
    tcase_add_test(all, roles_may_what_their_names_say);
    tcase_add_test(all, what_is_not_here_is_selected_by_the_fields_of_a_cluster);
    tcase_add_test(all, what_would_make_pods_is_refused_and_looks_empty);
    tcase_add_test(all, a_patch_that_is_no_json_is_told_so);
    tcase_add_test(all, secrets_are_in_no_message);
    tcase_add_test(all, tries_collections_and_updates_of_nothing_go_as_on_a_cluster);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
