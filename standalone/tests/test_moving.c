/* What is exported, what of it, and that it arrives as it was. */
#include <string.h>

#include "common/base/str.h"
#include "common/json/yaml.h"
#include "standalone/tests/moving_fixture.h"

static const struct export_options PLAIN = { .ns = NULL };
static const struct export_options WITH_STATUS = { .status = true };
static const struct export_options ALL = { .all = true };

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
    ck_assert_uint_eq(exported.written, 1);
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
    ck_assert_uint_eq(exported.written, 21);
    (void)export_of(&kv_store, &PLAIN);
    ck_assert_uint_eq(exported.written, 42);

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
    size_t written = exported.written;
    import_into(second.api, first);
    ck_assert_str_eq(import_refusals, "");
    ck_assert_uint_eq(imported.created, written);
    ck_assert_str_eq(export_of(&second_store, &WITH_STATUS), first);
    import_into(second.api, first);
    ck_assert_uint_eq(imported.unchanged, written);
    ck_assert_uint_eq(imported.created + imported.refused, 0);
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
    ck_assert_uint_eq(imported.created, 8);
    ck_assert_uint_eq(imported.left_out[MANIFEST_CHILD], 1);
    ck_assert_str_eq(export_of(&second_store, &WITH_STATUS), export_of(&kv_store, &WITH_STATUS));
}
