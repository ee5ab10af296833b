/* Which of several mistakes is told, and in which words: what the differential test found of updates, Events and Tables. */
#include <check.h>
#include <string.h>

#include "common/base/str.h"
#include "standalone/tests/api_fixture.h"

#define GROUP "propeller.propeller.abstractmachines.fr"
#define EVENTS "/api/v1/namespaces/default/events"
#define NAMESPACES "/api/v1/namespaces"
#define TABLE "application/json;as=Table;v=%s;g=meta.k8s.io"

/* Members of metadata behind the name, and of the object behind metadata. */
static const char *named(const char *metadata, const char *more)
{
    return arena_printf(test_arena, "{\"metadata\":{\"name\":\"a\"%s}%s}", metadata, more);
}

/* --- updates ---------------------------------------------------------------------------------- */

static const struct {
    const char *path, *query, *resource, *key;
} OTHERS[] = {
    { TASKS "/a", "", "tasks." GROUP, "/registry/" GROUP "/tasks/default/a" },
    { TASKS "/a/status", "", "tasks." GROUP, "/registry/" GROUP "/tasks/default/a" },
    { TASKS "/a", "?dryRun=All", "tasks." GROUP, "/" GROUP "/tasks/default/a" },
    { CONFIGMAPS "/a", "", "configmaps", "/registry/configmaps/default/a" },
    { NAMESPACES "/a", "?dryRun=All", "namespaces", "/namespaces/a" },
};

START_TEST(an_update_of_another_object_names_where_it_looked)
{
    (void)ask("POST", TASKS, task_text("a", "", ""), 201);
    (void)ask("POST", CONFIGMAPS, named("", ""), 201);
    (void)ask("POST", NAMESPACES, named("", ""), 201);

    const char *other = ",\"uid\":\"u\",\"resourceVersion\":\"x\"";
    const char *body =
        strstr(OTHERS[_i].path, "/tasks/") ? task_text("a", other, "") : named(other, "");
    const char *uid = meta(ask("GET", OTHERS[_i].path, NULL, 200), "uid");

    ck_assert_str_eq(
        refusal("PUT", arena_printf(test_arena, "%s%s", OTHERS[_i].path, OTHERS[_i].query), body,
                409),
        arena_printf(test_arena,
                     "Conflict: Operation cannot be fulfilled on %s \"a\": StorageError: invalid "
                     "object, Code: 4, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: "
                     "Precondition failed: UID in precondition: u, UID in object meta: %s",
                     OTHERS[_i].resource, OTHERS[_i].key, uid));
}
END_TEST

/* Before a body is there, and before there is any path. */
static const struct {
    const char *method, *path, *query;
    int status; /* 0: it is let in */
} ADMITTED[] = {
    { "POST", CONFIGMAPS "/a/x/y", "timeout=1", 400 },
    { "POST", CONFIGMAPS "/a/x/y", "watch=1&timeout=1", 400 },
    { "POST", CONFIGMAPS "/a/x/y", "timeout=1s", 404 },
    { "POST", CONFIGMAPS "/a/x/y", "limit=x", 404 },
    { "POST", CONFIGMAPS, "timeout=1", 400 },
    { "POST", CONFIGMAPS, "limit=x", 0 },
    { "GET", CONFIGMAPS, "watch=1&timeout=1", 0 },
    { "GET", CONFIGMAPS "/a", "watch=1&timeout=1", 400 },
};

START_TEST(a_timeout_that_is_none_is_told_before_there_is_any_path)
{
    const struct api_request request = { .method = ADMITTED[_i].method,
                                         .path = ADMITTED[_i].path,
                                         .query = ADMITTED[_i].query,
                                         .user = &api_user };
    struct api_reply reply;

    ck_assert_int_eq(api_admit(api, test_arena, &request, &reply), !ADMITTED[_i].status);
    ck_assert_int_eq(reply.status, ADMITTED[_i].status);
}
END_TEST

START_TEST(one_object_is_read_and_not_watched)
{
    (void)refusal("GET", CONFIGMAPS "/a?watch=1", NULL, 404);
    (void)ask("POST", CONFIGMAPS, named("", ""), 201);
    ck_assert_str_eq(meta(ask("GET", CONFIGMAPS "/a?watch=1", NULL, 200), "name"), "a");
    ck_assert_ptr_null(api_answer.watch);
}
END_TEST

START_TEST(options_of_an_update_come_before_the_type_of_its_body_and_those_of_a_creation_after_it)
{
    (void)ask("POST", CONFIGMAPS, named("", ""), 201);
    api_send("PUT", CONFIGMAPS "/a?fieldValidation=strict", "xml", named("", ""), 422);
    ck_assert_ptr_nonnull(strstr(api_answer.body, "UpdateOptions"));
    api_send("PUT", CONFIGMAPS "/a", "xml", named("", ""), 415);
    api_send("POST", CONFIGMAPS "?fieldValidation=strict", "xml", named("", ""), 415);
    api_send("POST", CONFIGMAPS "?fieldValidation=strict", "json", named("", ""), 422);
}
END_TEST

START_TEST(of_a_status_the_words_begin_below_it)
{
    (void)ask("POST", TASKS, task_text("a", "", ""), 201);

    const cJSON *answer =
        ask_patch(TASKS "/a/status", "merge-patch+json",
                  "{\"status\":{\"conditions\":[{\"type\":\"Done\",\"status\":\"True\","
                  "\"reason\":\"A\",\"message\":\"\",\"lastTransitionTime\":\"x\"}]}}",
                  422);

    ck_assert_ptr_nonnull(
        strstr(json_string(json_get(answer, "message"), ""),
               "status.conditions[0].lastTransitionTime: Invalid value: \"x\": "
               "conditions[0].lastTransitionTime in body must be of type date-time: \"x\""));
}
END_TEST

/* Unless it is asked for not to look: the list is not a patch, but the object. */
START_TEST(a_list_as_a_merge_patch_takes_the_place_of_the_object)
{
    static const char *const PATHS[][2] = { { TASKS "/a", TASKS },
                                            { CONFIGMAPS "/a", CONFIGMAPS } };
    const char *path = PATHS[_i][0];
    const char *unseen = arena_printf(test_arena, "%s?fieldValidation=Ignore", path);

    (void)ask("POST", PATHS[_i][1], _i ? named("", "") : task_text("a", "", ""), 201);
    ck_assert_str_eq(
        json_string(json_get(ask_patch(unseen, "merge-patch+json", "[]", 422), "message"), ""),
        " \"\" is invalid: patch: Invalid value: \"[]\": couldn't get version/kind; json parse "
        "error: "
        "json: cannot unmarshal array into Go value of type struct { APIVersion string "
        "\"json:\\\"apiVersion,omitempty\\\"\"; Kind string "
        "\"json:\\\"kind,omitempty\\\"\" }");
    ck_assert_str_eq(
        json_string(json_get(ask_patch(path, "merge-patch+json", "[]", 400), "message"), ""),
        "error decoding patch: json: cannot unmarshal array into Go value of type "
        "map[string]interface {}");
    (void)ask("GET", path, NULL, 200);
}
END_TEST

/* --- creations -------------------------------------------------------------------------------- */

START_TEST(a_generation_that_nobody_counts_stays_as_it_came)
{
    const cJSON *map = ask("POST", CONFIGMAPS, named(",\"generation\":7", ""), 201);
    const cJSON *task = ask("POST", TASKS, task_text("a", ",\"generation\":7", ""), 201);

    ck_assert_int_eq(json_int(json_path(map, "metadata", "generation", NULL), 0), 7);
    ck_assert_int_eq(json_int(json_path(task, "metadata", "generation", NULL), 0), 1);
    map = ask_patch(CONFIGMAPS "/a", "merge-patch+json",
                    "{\"metadata\":{\"generation\":9},\"data\":{\"k\":\"v\"}}", 200);
    ck_assert_int_eq(json_int(json_path(map, "metadata", "generation", NULL), 0), 7);
    (void)ask("DELETE", CONFIGMAPS "/a", NULL, 200);
    ck_assert_str_eq(refusal("POST", CONFIGMAPS, named(",\"generation\":-1", ""), 422),
                     "Invalid: ConfigMap \"a\" is invalid: metadata.generation: Invalid value: -1: "
                     "must be greater than or equal to 0");
}
END_TEST

START_TEST(a_creation_that_is_only_tried_shows_the_version_that_was_sent)
{
    static const char *const VERSIONS[] = { "0", "7" };
    const char *version = arena_printf(test_arena, ",\"resourceVersion\":\"%s\"", VERSIONS[_i]);
    const cJSON *map = ask("POST", CONFIGMAPS "?dryRun=All", named(version, ""), 201);

    ck_assert_str_eq(meta(map, "resourceVersion"), VERSIONS[_i]);
    map = ask("POST", CONFIGMAPS "?dryRun=All", named("", ""), 201);
    ck_assert_str_eq(meta(map, "resourceVersion"), "");
}
END_TEST

static const struct {
    const char *type, *patch;
} UNVERSIONED[] = {
    { "merge-patch+json", "{\"metadata\":{\"resourceVersion\":\"0\"}}" },
    { "merge-patch+json", "{\"metadata\":{\"resourceVersion\":null}}" },
    { "json-patch+json", "[{\"op\":\"remove\",\"path\":\"/metadata/resourceVersion\"}]" },
    { "apply-patch+yaml",
      "{\"apiVersion\":\"" GROUP
      "/v1\",\"kind\":\"Task\",\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"0\"}}" },
};

START_TEST(a_patch_cannot_take_the_version_of_a_task_away)
{
    const char *path = TASKS "/a?fieldManager=m";

    (void)ask("POST", TASKS, task_text("a", "", ""), 201);
    const cJSON *answer = ask_patch(path, UNVERSIONED[_i].type, UNVERSIONED[_i].patch, 422);
    ck_assert_str_eq(json_string(json_get(answer, "message"), ""),
                     "tasks.propeller.propeller.abstractmachines.fr \"a\" is invalid: "
                     "metadata.resourceVersion: Invalid value: 0: must be specified for an update");
}
END_TEST

/* --- Events ----------------------------------------------------------------------------------- */

START_TEST(metadata_of_a_new_event_is_looked_at_when_the_rest_is_good)
{
    static const char elsewhere[] = ",\"involvedObject\":{\"namespace\":\"elsewhere\"}";
    static const char here[] = ",\"involvedObject\":{\"namespace\":\"default\"}";
    static const char wrong[] = ",\"labels\":{\"bad key\":\"x\"}";

    ck_assert_str_eq(refusal("POST", EVENTS, named(wrong, elsewhere), 422),
                     "Invalid: Event \"a\" is invalid: involvedObject.namespace: Invalid value: "
                     "\"elsewhere\": does not match event.namespace");
    ck_assert(str_has_prefix(refusal("POST", EVENTS, named(wrong, here), 422),
                             "Invalid: Event \"a\" is invalid: metadata.labels: "));

    /* Of a change both are told. */
    (void)ask("POST", EVENTS, named("", here), 201);

    const char *both = refusal("PUT", EVENTS "/a", named(wrong, elsewhere), 422);

    ck_assert_ptr_nonnull(strstr(both, "metadata.labels: "));
    ck_assert_ptr_nonnull(strstr(both, "involvedObject.namespace: "));
}
END_TEST

/* --- Tables ----------------------------------------------------------------------------------- */

START_TEST(a_table_with_what_is_none_is_refused_and_nobody_else_is_asked)
{
    static const char *const PATHS[] = { "/a?", "?", "?watch=1&" };
    const char *path = arena_printf(test_arena, CONFIGMAPS "%sincludeObject=Nonsense", PATHS[_i]);

    (void)ask("POST", CONFIGMAPS, named("", ""), 201);
    (void)ask("GET", path, NULL, 200);
    api_watch_close(api_answer.watch);

    api_accept = arena_printf(test_arena, TABLE, "v1");
    ck_assert_str_eq(refusal("GET", path, NULL, 400),
                     "BadRequest: Unable to convert to Table as requested: includeObject: Invalid "
                     "value: \"Nonsense\": must be 'Metadata', 'Object', 'None', or empty");
    ck_assert_ptr_null(api_answer.watch);
}
END_TEST

START_TEST(the_tables_of_a_watch_are_of_the_version_that_was_asked_for)
{
    static const char *const VERSIONS[] = { "v1", "v1beta1" };

    (void)ask("POST", CONFIGMAPS, named("", ""), 201);
    api_accept = arena_printf(test_arena, TABLE, VERSIONS[_i]);

    struct api_watch *watch = watch_open(CONFIGMAPS "?watch=1");
    const char *line = NULL;
    size_t len;

    ck_assert_int_eq(api_watch_next(watch, test_arena, &line, &len), 1);
    ck_assert_ptr_nonnull(
        strstr(line, arena_printf(test_arena, "\"apiVersion\":\"meta.k8s.io/%s\"", VERSIONS[_i])));
    api_watch_close(watch);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api order");
    TCase *tests = tcase_create("mistakes");

    tcase_add_checked_fixture(tests, api_setup, api_teardown);
    tcase_add_loop_test(tests, an_update_of_another_object_names_where_it_looked, 0,
                        ARRAY_LEN(OTHERS));
    tcase_add_test(tests, one_object_is_read_and_not_watched);
    tcase_add_loop_test(tests, a_timeout_that_is_none_is_told_before_there_is_any_path, 0,
                        ARRAY_LEN(ADMITTED));
    tcase_add_test(
        tests,
        options_of_an_update_come_before_the_type_of_its_body_and_those_of_a_creation_after_it);
    tcase_add_test(tests, of_a_status_the_words_begin_below_it);
    tcase_add_loop_test(tests, a_patch_cannot_take_the_version_of_a_task_away, 0,
                        (int)ARRAY_LEN(UNVERSIONED));
    tcase_add_loop_test(tests, a_list_as_a_merge_patch_takes_the_place_of_the_object, 0, 2);
    tcase_add_test(tests, a_generation_that_nobody_counts_stays_as_it_came);
    tcase_add_loop_test(tests, a_creation_that_is_only_tried_shows_the_version_that_was_sent, 0, 2);
    tcase_add_test(tests, metadata_of_a_new_event_is_looked_at_when_the_rest_is_good);
    tcase_add_loop_test(tests, a_table_with_what_is_none_is_refused_and_nobody_else_is_asked, 0, 3);
    tcase_add_loop_test(tests, the_tables_of_a_watch_are_of_the_version_that_was_asked_for, 0, 2);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
