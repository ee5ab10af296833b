/* Exports, imports into the same store and into a second one: all that goes along arrives as it was. */
#include <check.h>
#include <string.h>

#include "common/base/str.h"
#include "common/json/yaml.h"
#include "standalone/moving/export.h"
#include "standalone/moving/import.h"
#include "standalone/server/in_process.h"
#include "standalone/tests/api_fixture.h"

#define GROUP "/apis/propeller.propeller.abstractmachines.fr/v1/namespaces/default/"
#define API_VERSION "propeller.propeller.abstractmachines.fr/v1"
#define API "\"apiVersion\":\"" API_VERSION "\""

static const struct export_options PLAIN = { .ns = NULL };
static const struct export_options WITH_STATUS = { .status = true };
static const struct export_options ALL = { .all = true };

/* The store that things are moved to, empty, and its API. */
static struct kv_fixture second_store;
static struct in_process second = { .user = { .name = "import", .role = ROLE_ADMIN },
                                    .user_agent = "import" };
static struct manifest_counts exported, imported;
static const char *import_refusals; /* a line each */

static void moving_setup(void)
{
    api_setup();
    kv_fixture_begin(&second_store);
    kv_fixture_open(&second_store);

    const struct api_options options = { .kv = second_store.kv,
                                         .resources = test_resources,
                                         .clock = &second_store.clock.clock };

    second.api = api_create(&options);
}

static void moving_teardown(void)
{
    api_destroy(second.api);
    kv_fixture_end(&second_store);
    api_teardown();
}

static const char *export_of(const struct kv_fixture *store, const struct export_options *options)
{
    struct kv_reader *reader = NULL;
    struct error err = { 0 };
    char *text = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&text, &len);

    ck_assert_int_eq(kv_reader_open(store->options.path, &reader, &err), 0);
    int r = export_write(test_arena, reader, test_resources, options, file, &exported, &err);
    ck_assert_msg(r == 0, "%s", err.message);
    kv_reader_close(reader);
    ck_assert_int_eq(fclose(file), 0);
    return arena_own(test_arena, text, free);
}

static void note_refused(void *ctx UNUSED, const char *text)
{
    import_refusals = arena_printf(test_arena, "%s%s\n", import_refusals, text);
}

static int try_import(const char *text, http_roundtrip_fn *roundtrip, void *ctx, struct error *err)
{
    const struct import_options options = { .roundtrip = roundtrip,
                                            .ctx = ctx,
                                            .resources = test_resources,
                                            .source = "f.yaml",
                                            .refused = note_refused };
    FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");

    import_refusals = "";
    ck_assert_ptr_nonnull(file);
    int r = import_read(file, &options, &imported, err);
    ck_assert_int_eq(fclose(file), 0);
    return r;
}

static void import_into(struct api *target, const char *text)
{
    struct in_process caller = { .api = target, .user = second.user, .user_agent = "import" };
    struct error err = { 0 };
    int r = try_import(text, in_process_roundtrip, &caller, &err);

    ck_assert_msg(r == 0, "%s", err.message);
}

/* --- what is moved --- */

static void make_task(const char *name, const char *more_metadata, const char *more_spec)
{
    (void)ask("POST", TASKS, task_text(name, more_metadata, more_spec), 201);
}

static void set_status(const char *plural, const char *name, const char *status)
{
    (void)ask_patch(arena_printf(test_arena, GROUP "%s/%s/status", plural, name),
                    "merge-patch+json", arena_printf(test_arena, "{\"status\":%s}", status), 200);
}

static void make(const char *collection, const char *api_version, const char *kind,
                 const char *name, const char *more_metadata, const char *members)
{
    (void)ask(
        "POST", collection,
        arena_printf(test_arena,
                     "{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"metadata\":{\"name\":\"%s\"%s}%s}",
                     api_version, kind, name, more_metadata, members),
        201);
}

static void make_plain(const char *collection, const char *api_version, const char *kind,
                       const char *name)
{
    make(collection, api_version, kind, name, "", "");
}

static void make_configmap(const char *name, const char *more_metadata, const char *data)
{
    make(CONFIGMAPS, "v1", "ConfigMap", name, more_metadata,
         arena_printf(test_arena, ",\"data\":%s", data));
}

static void make_job(const char *name)
{
    make(GROUP "propellerjobs", API_VERSION, "PropellerJob", name, "",
         arena_printf(test_arena, ",\"spec\":{\"name\":\"%s\",\"taskRefs\":[\"a\"]}", name));
}

/* "Kind name, Kind name" of an export. */
static const char *names_in(const char *yaml)
{
    const char *names = "";
    const cJSON *documents;

    ck_assert_int_eq(yaml_parse_all(test_arena, yaml, strlen(yaml), &documents, NULL), 0);
    json_for_each (document, documents)
        names = arena_printf(test_arena, "%s%s%s %s", names, *names ? ", " : "",
                             json_string(json_get(document, "kind"), "?"), meta(document, "name"));
    return names;
}

/* Tasks done, failed, again (with a retry left), nightly (recurring), running, needs (on done), and a finished job. */
static void make_finished(void)
{
    make_task("done", "", "");
    set_status("tasks", "done",
               "{\"phase\":\"completed\",\"results\":42,\"observedGeneration\":1,\"conditions\":[{"
               "\"type\":\"Completed\",\"status\":\"True\",\"observedGeneration\":1}]}");
    make_task("failed", "", "");
    set_status("tasks", "failed", "{\"phase\":\"failed\",\"error\":\"no\"}");
    make_task("again", "", "");
    set_status(
        "tasks", "again",
        "{\"phase\":\"failed\",\"conditions\":[{\"type\":\"Failed\",\"status\":\"False\"}]}");
    make_task("nightly", "", ",\"schedule\":\"0 3 * * *\",\"isRecurring\":true");
    set_status("tasks", "nightly", "{\"phase\":\"completed\"}");
    make_task("running", "", "");
    set_status("tasks", "running", "{\"phase\":\"running\"}");
    make_task("needs", "", ",\"dependsOn\":[\"running\",\"done\"]");
    make_job("j");
    set_status("propellerjobs", "j", "{\"phase\":\"Completed\",\"taskCount\":1}");
}

static const char *left_out(void)
{
    return arena_printf(test_arena, "%zu finished, %zu children, %zu deleted, %zu of the cluster",
                        exported.left_out[MANIFEST_FINISHED], exported.left_out[MANIFEST_CHILD],
                        exported.left_out[MANIFEST_DELETED],
                        exported.left_out[MANIFEST_OF_CLUSTER]);
}

TEST_GROUP("all", moving_setup, moving_teardown);

TEST(what_the_server_and_controllers_set_is_not_exported)
{
    make_configmap(
        "c",
        ",\"annotations\":{\"kubectl.kubernetes.io/last-applied-configuration\":\"{}\"},"
        "\"labels\":{\"a\":\"on\"},\"finalizers\":[\"example.com/mine\"],"
        "\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"o\","
        "\"uid\":\"u\"}]",
        "{\"on\":\"0x1f\",\"text\":\"a\\nb\\n\"}");
    ck_assert_str_eq(export_of(&kv_store, &PLAIN), "---\n"
                                                   "apiVersion: v1\n"
                                                   "data:\n"
                                                   "  \"on\": \"0x1f\"\n"
                                                   "  text: |\n"
                                                   "    a\n"
                                                   "    b\n"
                                                   "kind: ConfigMap\n"
                                                   "metadata:\n"
                                                   "  finalizers:\n"
                                                   "  - example.com/mine\n"
                                                   "  labels:\n"
                                                   "    a: \"on\"\n"
                                                   "  name: c\n"
                                                   "  namespace: default\n");
    ck_assert_uint_eq(exported.made, 1);
    ck_assert_uint_eq(exported.without_owners, 1);
    ck_assert_str_eq(left_out(), "0 finished, 0 children, 0 deleted, 1 of the cluster");
    make_task("t", "", "");
    const char *task = strstr(export_of(&kv_store, &PLAIN), "kind: Task\n");
    ck_assert_str_eq(task, "kind: Task\n"
                           "metadata:\n"
                           "  name: t\n"
                           "  namespace: default\n"
                           "spec:\n"
                           "  file: AGFzbQEAAAA=\n"
                           "  functionName: main\n"
                           "  kind: standard\n"
                           "  name: t\n"
                           "  preferredPropletType: any\n"
                           "  priority: 50\n");
}

TEST(namespaces_come_first_and_tasks_last)
{
    make_task("b", "", "");
    make_task("a", "", "");
    make_job("j");
    (void)ask(
        "POST", GROUP "proplets",
        "{" API ",\"kind\":\"Proplet\",\"metadata\":{\"name\":\"p\"},\"spec\":{\"type\":"
        "\"external\",\"connectionConfig\":{\"mqttAddress\":\"tcp://b:1883\",\"domainId\":\"d\","
        "\"channelId\":\"c\",\"clientId\":\"i\",\"clientKey\":\"k\"}}}",
        201);
    make_configmap("c", "", "{}");
    make_plain("/api/v1/namespaces/default/secrets", "v1", "Secret", "s");
    make_plain("/api/v1/namespaces", "v1", "Namespace", "n");
    ck_assert_str_eq(
        names_in(export_of(&kv_store, &PLAIN)),
        "Namespace n, Secret s, ConfigMap c, Proplet p, PropellerJob j, Task a, Task b");
}

TEST(children_and_what_is_the_clusters_stay_behind)
{
    make_task("child",
              ",\"ownerReferences\":[{" API
              ",\"kind\":\"PropellerJob\",\"name\":\"j\",\"uid\":\"u\","
              "\"controller\":true}]",
              "");
    make_task("going", ",\"finalizers\":[\"example.com/mine\"]", "");
    (void)ask("DELETE", TASKS "/going", NULL, 200);
    make_task("stays", "", "");
    make_configmap("kube-root-ca.crt", "", "{}");
    make_plain("/api/v1/namespaces", "v1", "Namespace", "kube-system");
    make_plain("/api/v1/namespaces/kube-system/secrets", "v1", "Secret", "s");
    make_plain("/api/v1/namespaces/default/serviceaccounts", "v1", "ServiceAccount", "default");
    make_plain("/apis/coordination.k8s.io/v1/namespaces/default/leases", "coordination.k8s.io/v1",
               "Lease", "l");
    ck_assert_str_eq(names_in(export_of(&kv_store, &PLAIN)), "Task stays");
    ck_assert_str_eq(left_out(), "0 finished, 1 children, 1 deleted, 5 of the cluster");
    (void)ask_patch("/api/v1/namespaces/default", "merge-patch+json",
                    "{\"metadata\":{\"labels\":{\"mine\":\"y\"}}}", 200);
    ck_assert_str_eq(names_in(export_of(&kv_store, &PLAIN)), "Namespace default, Task stays");
}

TEST(what_has_finished_goes_along_only_when_asked_for)
{
    make_finished();
    ck_assert_str_eq(names_in(export_of(&kv_store, &PLAIN)),
                     "Task again, Task needs, Task nightly, Task running");
    ck_assert_ptr_null(strstr(export_of(&kv_store, &PLAIN), "\nstatus:"));
    ck_assert_str_eq(left_out(), "3 finished, 0 children, 0 deleted, 1 of the cluster");

    static const char EVERYTHING[] = "PropellerJob j, Task again, Task done, Task failed, Task "
                                     "needs, Task nightly, Task running";
    ck_assert_str_eq(names_in(export_of(&kv_store, &ALL)), EVERYTHING);
    ck_assert_ptr_null(strstr(export_of(&kv_store, &ALL), "\nstatus:"));
    const char *text = export_of(&kv_store, &WITH_STATUS);
    ck_assert_str_eq(names_in(text), EVERYTHING);
    ck_assert_ptr_nonnull(strstr(text, "status:\n"
                                       "  conditions:\n"
                                       "  - status: \"True\"\n"
                                       "    type: Completed\n"
                                       "  phase: completed\n"
                                       "  results: 42\n"));
    ck_assert_ptr_null(strstr(text, "phase: running"));
    ck_assert_ptr_null(strstr(text, "observedGeneration"));
}

#define VIDEOS "/apis/vmafx.dev/v1/namespaces/default/vmafxjobs"

static void make_video(const char *name, const char *phase)
{
    (void)ask("POST", VIDEOS,
              arena_printf(test_arena,
                           "{\"apiVersion\":\"vmafx.dev/v1\",\"kind\":\"VmafxJob\",\"metadata\":{"
                           "\"name\":\"%s\"},\"spec\":{\"reference\":\"s3://a\","
                           "\"distorted\":\"s3://b\"}}",
                           name),
              201);
    (void)ask_patch(arena_printf(test_arena, VIDEOS "/%s/status", name), "merge-patch+json",
                    arena_printf(test_arena, "{\"status\":{\"phase\":\"%s\"}}", phase), 200);
}

TEST(jobs_of_vmafx_go_along_until_they_have_finished)
{
    make_video("failed", "Failed");
    make_video("running", "Running");
    make_video("scored", "Succeeded");
    ck_assert_str_eq(names_in(export_of(&kv_store, &PLAIN)), "VmafxJob running");
    ck_assert_str_eq(left_out(), "2 finished, 0 children, 0 deleted, 1 of the cluster");
}

TEST(one_namespace_is_itself_and_what_is_in_it)
{
    const struct export_options one = { .ns = "n" }, none = { .ns = "nowhere" };
    struct kv_reader *reader = NULL;
    struct error err = { 0 };

    make_plain("/api/v1/namespaces", "v1", "Namespace", "n");
    make_plain("/api/v1/namespaces", "v1", "Namespace", "n-2");
    for (int i = 0; i < 40; i++)
        (void)ask("POST",
                  i % 2 ? "/api/v1/namespaces/n/configmaps" : "/api/v1/namespaces/n-2/configmaps",
                  arena_printf(test_arena,
                               "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{"
                               "\"name\":\"c%02d\"}}",
                               i),
                  201);
    const char *names = names_in(export_of(&kv_store, &one));
    ck_assert(str_has_prefix(names, "Namespace n, ConfigMap c01, ConfigMap c03, "));
    ck_assert(str_has_suffix(names, "ConfigMap c37, ConfigMap c39"));
    ck_assert_uint_eq(exported.made, 21);
    (void)export_of(&kv_store, &PLAIN);
    ck_assert_uint_eq(exported.made, 42);

    ck_assert_int_eq(kv_reader_open(kv_store.options.path, &reader, &err), 0);
    ck_assert_int_eq(
        export_write(test_arena, reader, test_resources, &none, stdout, &exported, &err),
        -ERROR_NOT_FOUND);
    ck_assert_str_eq(err.message, "there is no namespace 'nowhere'");
    kv_reader_close(reader);
}

/* --- there and back --- */

TEST(an_export_that_is_imported_exports_the_same_bytes)
{
    make_finished();
    make_configmap("c", ",\"annotations\":{\"a/b\":\"1e3\"}",
                   "{\"on\":\"~\",\"t\":\"\\u0085 \\u2028\\ufeff\\t\\r\\n\",\"x\":\"- a: |\\n\"}");
    (void)ask(
        "POST", "/api/v1/namespaces",
        "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"n\",\"labels\":"
        "{\"1\":\"2\"}}}",
        201);
    make_task("inputs", "",
              ",\"inputs\":[1.50,9007199254740993,\"1e3\",\"\"],\"metadata\":{\"b\":"
              "[{}],\"a\":null}");

    const char *first = export_of(&kv_store, &WITH_STATUS);
    size_t written = exported.made;
    import_into(second.api, first);
    ck_assert_str_eq(import_refusals, "");
    ck_assert_uint_eq(imported.made, written);
    ck_assert_str_eq(export_of(&second_store, &WITH_STATUS), first);
    import_into(second.api, first);
    ck_assert_uint_eq(imported.unchanged, written);
    ck_assert_uint_eq(imported.made + imported.refused, 0);
    ck_assert_str_eq(export_of(&second_store, &WITH_STATUS), first);
}

/* As kubectl get tasks,… -A -o yaml gives it. */
TEST(a_list_with_all_that_a_server_sets_is_imported)
{
    static const char *const PATHS[] = { CONFIGMAPS, GROUP "propellerjobs", TASKS };
    cJSON *list = json_object(test_arena), *items;

    make_finished();
    make_configmap("c", "", "{\"a\":\"b\"}");
    make_task("child",
              ",\"ownerReferences\":[{" API
              ",\"kind\":\"PropellerJob\",\"name\":\"j\",\"uid\":\"u\","
              "\"controller\":true}]",
              "");
    json_set_string(list, "apiVersion", "v1");
    json_set_string(list, "kind", "List");
    items = json_set_array(list, "items");
    for (size_t i = 0; i < ARRAY_LEN(PATHS); i++) {
        json_for_each (item, json_get(ask("GET", PATHS[i], NULL, 200), "items"))
            json_add(items, json_copy(item));
    }
    import_into(second.api, json_text(test_arena, list, NULL));
    ck_assert_str_eq(import_refusals, "");
    ck_assert_uint_eq(imported.made, 8);
    ck_assert_uint_eq(imported.left_out[MANIFEST_CHILD], 1);
    ck_assert_str_eq(export_of(&second_store, &WITH_STATUS), export_of(&kv_store, &WITH_STATUS));
}

/* --- what is refused, and what is there --- */

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
    ck_assert_uint_eq(imported.made, 2);
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
    ck_assert_uint_eq(imported.made, 1);

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

/* The phase of a finished object counts. Its controller may have written more about it. */
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

    ck_assert_int_eq(kv_watch(second_store.kv, "/registry/propeller", 1, &watch, NULL), 0);
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
