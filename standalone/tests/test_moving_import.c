/* What an import takes, refuses and leaves as it is. */
#include <string.h>

#include "common/base/str.h"
#include "common/json/yaml.h"
#include "standalone/tests/moving_fixture.h"

static const struct export_options PLAIN = { .ns = NULL };
static const struct export_options WITH_STATUS = { .status = true };
static const struct export_options ALL = { .all = true };

TEST_GROUP("all", moving_setup, moving_teardown);

TEST(refusals_name_place_and_field_and_the_rest_is_made)
{
    static const char TEXT[] =
        "---\n---\n" /* the first is empty */
        "apiVersion: v1\nkind: List\nitems:\n"
        "- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: y}}\n"
        "- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {x: 1}}\n"
        "---\n{" API ", kind: Task, metadata: {name: t, namespace: new}, spec: {name: t, file: "
        "AGFzbQEAAAA=, priority: 101}}\n"
        "---\n{" API ", kind: Task, metadata: {name: u, namespace: new}, spec: {name: t, file: "
        "AGFzbQEAAAA=, priorty: 1}}\n"
        "---\n{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}}\n"
        "---\n{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: d, ownerReferences: "
        "[{controller: true}]}}\n"
        "---\njust a text\n"
        "---\n{apiVersion: v1, kind: ConfigMap, metadata: {}}\n"
        "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: new}}\n"
        "---\n{apiVersion: v1, metadata: {name: d}}\n"
        "---\n{kind: ConfigMap, metadata: {name: e}}\n";

    import_into(second.api, TEXT);
    ck_assert_str_eq(
        import_refusals,
        "f.yaml: document 2, item 2, line 7: ConfigMap b: this is no ConfigMap: "
        "data.x: Invalid value: \"integer\": data.x in body must be of type string: \"integer\"\n"
        "f.yaml: document 3, line 9: Task new/t: Task.propeller.propeller.abstractmachines.fr "
        "\"t\" is "
        "invalid: spec.priority: Invalid value: 101: spec.priority in body should be less than or "
        "equal "
        "to 100\n"
        "f.yaml: document 4, line 11: Task new/u: this is no Task: "
        "unknown field \"spec.priorty\"\n"
        "f.yaml: document 5, line 13: Deployment d: apps/v1 Deployment is not served here\n"
        "f.yaml: document 7, line 17: object without a name: not an object of the Kubernetes API\n"
        "f.yaml: document 8, line 19: ConfigMap without a name: metadata.name is missing\n"
        "f.yaml: document 10, line 23: object d: kind is missing\n"
        "f.yaml: document 11, line 25: ConfigMap e: apiVersion is missing\n");
    ck_assert_uint_eq(imported.created, 2);
    ck_assert_uint_eq(imported.refused, 8);
    ck_assert_uint_eq(imported.left_out[MANIFEST_CHILD], 1);
    ck_assert_str_eq(names_in(export_of(&second_store, &PLAIN)),
                     "Namespace new, ConfigMap a, ConfigMap c");
}

/* kubectl get -o json: Go writes DEL as it is, and jq or Python pairs of escape sequences. */
TEST(what_kubectl_writes_as_json_is_taken_as_it_is)
{
    import_into(second.api,
                "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[\n"
                "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"},"
                "\"data\":{\"a\":\"\x7f\xc2\x85\\ud83d\\ude00\"}},\n"
                "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"b\"},"
                "\"data\":{\"a\":1}}]}");
    ck_assert(str_has_prefix(import_refusals, "f.yaml: document 1, item 2, line 3: ConfigMap b: "));
    ck_assert_uint_eq(imported.created, 1);

    const cJSON *documents = NULL;
    const char *text = export_of(&second_store, &PLAIN);

    ck_assert_int_eq(yaml_parse_all(test_arena, text, strlen(text), &documents, NULL), 0);
    ck_assert_str_eq(json_string(json_path(json_first(documents), "data", "a", NULL), ""),
                     "\x7f\xc2\x85\xf0\x9f\x98\x80");
}

TEST(what_is_there_is_never_overwritten)
{
    make_task("t", "", ",\"priority\":7");
    make_task("done", "", "");
    const char *text = export_of(&kv_store, &ALL);

    (void)ask_patch(TASKS "/t", "merge-patch+json", "{\"spec\":{\"priority\":8}}", 200);
    (void)ask_patch(TASKS "/done", "merge-patch+json", "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}",
                    200);
    import_into(api, text);
    ck_assert_str_eq(import_refusals, "f.yaml: document 1, line 2: Task default/done: it is there "
                                      "already, and differs in metadata.labels\n"
                                      "f.yaml: document 2, line 15: Task default/t: it is there "
                                      "already, and differs in spec.priority\n");
    ck_assert_uint_eq(imported.refused, 2);
    ck_assert_int_eq(
        json_int(json_path(ask("GET", TASKS "/t", NULL, 200), "spec", "priority", NULL), 0), 8);

    /* One that has run meanwhile is still the one that was brought. */
    (void)ask_patch(TASKS "/t", "merge-patch+json", "{\"spec\":{\"priority\":7}}", 200);
    set_status("tasks", "t", "{\"phase\":\"completed\"}");
    import_into(api, text);
    ck_assert_uint_eq(imported.unchanged, 1);
}

/* Of what had finished the phase counts: its controller may have said more about it. */
TEST(a_finished_task_must_have_ended_the_same_way)
{
    make_task("t", "", "");
    set_status("tasks", "t", "{\"phase\":\"completed\",\"results\":42}");
    const char *text = export_of(&kv_store, &WITH_STATUS);

    import_into(api, text);
    ck_assert_uint_eq(imported.unchanged, 1);
    set_status("tasks", "t", "{\"createdAt\":\"2026-01-01T00:00:00Z\"}");
    import_into(api, text);
    ck_assert_uint_eq(imported.unchanged, 1);
    ck_assert_str_eq(import_refusals, "");

    (void)ask("DELETE", TASKS "/t", NULL, 200);
    (void)ask_patch(TASKS "/t", "merge-patch+json", "{\"metadata\":{\"finalizers\":null}}", 200);
    make_task("t", "", "");
    import_into(api, text);
    ck_assert_str_eq(import_refusals, "f.yaml: document 1, line 2: Task default/t: it is there "
                                      "already, and differs in status.phase\n");
    ck_assert_uint_eq(imported.refused, 1);
}

/* --- what had finished --- */

TEST(nobody_sees_a_finished_object_that_could_be_started)
{
    make_finished();
    (void)ask("POST", GROUP "trainingrounds",
              "{" API
              ",\"kind\":\"TrainingRound\",\"metadata\":{\"name\":\"r\"},\"spec\":{\"roundId\":"
              "\"r\",\"federatedJobRef\":{\"name\":\"j\"},\"taskWasmImage\":\"i\",\"participants\":"
              "[\"p\"],\"kOfN\":1}}",
              201);
    set_status("trainingrounds", "r", "{\"phase\":\"Failed\"}");
    const char *text = export_of(&kv_store, &WITH_STATUS);
    struct kv_watch *watch = NULL;
    struct kv_event event;
    int finished = 0;

    ck_assert_int_eq(kv_watch(second_store.kv, "/registry/propeller", 1, NULL, NULL, &watch, NULL),
                     0);
    import_into(second.api, text);
    ck_assert_str_eq(import_refusals, "");
    while (kv_watch_next(watch, test_arena, &event, &second_store.err) > 0) {
        const cJSON *object = parsed(test_arena, event.value.text);
        const cJSON *status = json_get(object, "status");

        ck_assert_uint_eq(event.previous.revision, 0); /* one write each */
        if (!json_get(status, "phase"))
            continue;
        finished++;
        ck_assert_int_eq(json_int(json_get(status, "observedGeneration"), 0),
                         json_int(json_path(object, "metadata", "generation", NULL), -1));
    }
    kv_watch_close(watch);
    ck_assert_int_eq(finished, 4);
    ck_assert_str_eq(export_of(&second_store, &WITH_STATUS), text);
}

/* The server goes away after so many requests; the last one is answered or not. */
static int requests_left;
static bool is_answered;

static int breaking_roundtrip(void *ctx, struct arena *arena, const struct http_request *request,
                              struct http_response *ret, struct error *err)
{
    if (requests_left-- > 0)
        return in_process_roundtrip(ctx, arena, request, ret, err);
    if (requests_left == -1 && is_answered)
        (void)in_process_roundtrip(ctx, arena, request, ret, err);
    return error_set(err, ERROR_TIMEOUT, "no answer");
}

TEST_TIMES(an_import_that_breaks_anywhere_goes_on_when_it_is_run_again, 2)
{
    struct error err = { 0 };

    make_finished();
    make_plain("/api/v1/namespaces", "v1", "Namespace", "n");
    const char *text = export_of(&kv_store, &WITH_STATUS);
    int breaks = 0;

    is_answered = _i != 0;
    for (int r = -1; r < 0; breaks++) {
        requests_left = breaks;
        r = try_import(text, breaking_roundtrip, &second, &err);
        ck_assert_str_eq(import_refusals, "");
        ck_assert_msg(r == 0 || strstr(err.message, "no answer"), "%s", err.message);
        ck_assert_int_lt(breaks, 100);
    }
    ck_assert_int_gt(breaks, 8);
    ck_assert_str_eq(export_of(&second_store, &WITH_STATUS), text);
}
