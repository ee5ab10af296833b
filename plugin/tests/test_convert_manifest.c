/* Manifests of the Go operator's newer group. */
#include "plugin/commands/convert_manifest.h"

#include <string.h>

#include "common/base/str.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

#define OTHER "propeller.propeller.absmach.eu"
#define OURS "propeller.propeller.abstractmachines.fr"

static struct convert_schemas schemas;
static struct error err;
static cJSON *notes;

static void set_up(void)
{
    arena_set_up();
    schemas = (struct convert_schemas){ .arena = arena };
    notes = json_array(arena);
    err = (struct error){ 0 };
}

TEST_GROUP("convert", set_up, arena_tear_down);

static cJSON *object_of(const char *kind, const char *metadata, const char *spec)
{
    return (cJSON *)parsed(arena, arena_printf(arena,
                                               "{\"apiVersion\":\"" OTHER
                                               "/v1\",\"kind\":\"%s\",\"metadata\":{"
                                               "\"name\":\"a\"%s},\"spec\":%s}",
                                               kind, metadata, spec));
}

static int convert(cJSON *object)
{
    return convert_manifest(&schemas, arena, object, notes, &err);
}

static const char *spec_after(cJSON *object)
{
    int r = convert(object);

    ck_assert_msg(r == CONVERT_DONE, "%d: %s", r, err.message);
    ck_assert_str_eq(json_string(json_get(object, "apiVersion"), ""), OURS "/v1");
    return json_text(arena, json_get(object, "spec"), NULL);
}

/* "field lost|known" of each note */
static const char *notes_text(void)
{
    const char *ret = "";

    json_for_each (note, notes)
        ret = arena_printf(arena, "%s%s%s %s", ret, *ret ? ", " : "",
                           json_string(json_get(note, "field"), ""),
                           json_bool(json_get(note, "lost"), false) ? "lost" : "known");
    return ret;
}

#define MQTT "\"channelId\":\"c\",\"mqttAddress\":\"tcp://b:1883\""
#define CONNECTION "\"connectionConfig\":{\"domainId\":\"t\",\"clientId\":\"e\"," MQTT "}"

TEST(the_connection_gets_the_names_of_this_operator)
{
    ck_assert_str_eq(
        spec_after(object_of("Proplet", "",
                             "{\"type\":\"external\",\"connectionConfig\":{\"tenantId\":\"t\","
                             "\"entityId\":\"e\",\"apiKey\":\"k\"," MQTT "}}")),
        "{\"type\":\"external\",\"connectionConfig\":{\"domainId\":\"t\",\"clientId\":\"e\","
        "\"clientKey\":\"k\"," MQTT "}}");
    ck_assert_str_eq(notes_text(), "");
}

TEST(a_secret_reference_is_renamed_and_kept)
{
    ck_assert_str_eq(spec_after(object_of("Proplet", "",
                                          "{\"connectionConfig\":{\"apiKeySecretRef\":{\"name\":"
                                          "\"keys\",\"key\":\"mqtt\",\"optional\":true}}}")),
                     "{\"connectionConfig\":{\"clientKeySecretRef\":{\"name\":\"keys\",\"key\":"
                     "\"mqtt\",\"optional\":true}}}");
}

TEST(env_becomes_variables_of_the_pods)
{
    ck_assert_str_eq(
        spec_after(object_of(
            "Proplet", "",
            "{\"type\":\"k8s\",\"k8s\":{\"image\":\"i\",\"env\":{\"livelinessInterval\":\"1m30s\","
            "\"metricsInterval\":\"1500ms\",\"metricsPort\":9092,\"halEnabled\":true,"
            "\"usbEnabled\":false,\"tags\":\"a,b\",\"location\":\"\",\"kbsUri\":null}}}")),
        "{\"type\":\"k8s\",\"k8s\":{\"image\":\"i\",\"podTemplate\":{\"spec\":{\"containers\":[{"
        "\"name\":\"proplet\",\"env\":["
        "{\"name\":\"PROPLET_LIVELINESS_INTERVAL\",\"value\":\"90\"},"
        "{\"name\":\"PROPLET_METRICS_INTERVAL\",\"value\":\"2\"},"
        "{\"name\":\"PROPLET_METRICS_PORT\",\"value\":\"9092\"},"
        "{\"name\":\"PROPLET_HAL_ENABLED\",\"value\":\"true\"},"
        "{\"name\":\"PROPLET_USB_ENABLED\",\"value\":\"false\"},"
        "{\"name\":\"PROPLET_TAGS\",\"value\":\"a,b\"}]}]}}}}");
    ck_assert_str_eq(notes_text(), "spec.k8s.podTemplate known");
}

TEST(an_empty_env_needs_no_template)
{
    ck_assert_str_eq(spec_after(object_of("Proplet", "", "{\"k8s\":{\"image\":\"i\",\"env\":{}}}")),
                     "{\"k8s\":{\"image\":\"i\"}}");
    ck_assert_str_eq(notes_text(), "");
}

static const struct {
    const char *kind, *spec, *after, *notes;
} LOSSES[] = {
    { "Task", "{\"name\":\"a\",\"halStoragePath\":\"/d\"}", "{\"name\":\"a\"}",
      "spec.halStoragePath lost" },
    { "PropellerJob",
      "{\"name\":\"a\",\"tasks\":[{\"name\":\"b\"},{\"name\":\"c\",\"halStoragePath\":\"/d\"}]}",
      "{\"name\":\"a\",\"tasks\":[{\"name\":\"b\"},{\"name\":\"c\"}]}",
      "spec.tasks[1].halStoragePath lost" },
    { "Proplet", "{\"type\":\"external\",\"external\":{\"deviceType\":\"x\",\"colour\":\"red\"}}",
      "{\"type\":\"external\",\"external\":{\"deviceType\":\"x\"}}", "spec.external.colour lost" },
    { "Proplet", "{\"k8s\":{\"image\":\"i\",\"env\":{\"wheel\":\"x\"}}}",
      "{\"k8s\":{\"image\":\"i\"}}", "spec.k8s.env.wheel lost" },
    { "FederatedJob", "{\"modelRef\":\"m\",\"hyperparams\":{\"any\":[1.5]},\"secretSauce\":1}",
      "{\"modelRef\":\"m\",\"hyperparams\":{\"any\":[1.5]}}", "spec.secretSauce lost" },
};

TEST_EACH(a_field_that_cannot_be_expressed_is_listed, LOSSES)
{
    ck_assert_str_eq(spec_after(object_of(LOSSES[_i].kind, "", LOSSES[_i].spec)), LOSSES[_i].after);
    ck_assert_str_eq(notes_text(), LOSSES[_i].notes);
}

TEST(what_the_server_set_is_removed_and_the_rest_stays)
{
    cJSON *object =
        object_of("Task",
                  ",\"namespace\":\"lab\",\"uid\":\"u\",\"resourceVersion\":\"1\",\"generation\":2,"
                  "\"creationTimestamp\":\"2026-01-01T00:00:00Z\",\"managedFields\":[],"
                  "\"labels\":{\"site\":\"roof\"},\"annotations\":{\"kubectl.kubernetes.io/"
                  "last-applied-configuration\":\"{}\",\"note\":\"n\"},"
                  "\"finalizers\":[\"" OTHER "/task-finalizer\",\"example.com/other\"]",
                  "{\"name\":\"a\"}");

    json_set_string(json_set_object(object, "status"), "phase", "running");
    ck_assert_int_eq(convert(object), CONVERT_DONE);
    ck_assert_str_eq(json_text(arena, object, NULL),
                     "{\"apiVersion\":\"" OURS "/v1\",\"kind\":\"Task\",\"metadata\":{\"name\":"
                     "\"a\",\"namespace\":\"lab\",\"labels\":{\"site\":\"roof\"},\"annotations\":{"
                     "\"note\":\"n\"},\"finalizers\":[\"example.com/other\"]},\"spec\":{\"name\":"
                     "\"a\"}}");
}

/* The owner goes with the other operator, and would take the new object along. */
TEST(owners_of_the_other_group_are_removed)
{
    cJSON *object =
        object_of("Task",
                  ",\"ownerReferences\":[{\"apiVersion\":\"" OTHER
                  "/v1\",\"kind\":\"Task\",\"name\":\"b\",\"uid\":\"u\"},{\"apiVersion\":\"v1\","
                  "\"kind\":\"ConfigMap\",\"name\":\"c\",\"uid\":\"v\"}]",
                  "{\"name\":\"a\"}");

    ck_assert_int_eq(convert(object), CONVERT_DONE);
    ck_assert_str_eq(json_text(arena, json_get(object, "metadata"), NULL),
                     "{\"name\":\"a\",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":"
                     "\"ConfigMap\",\"name\":\"c\",\"uid\":\"v\"}]}");
}

TEST(lists_that_are_empty_now_go_too)
{
    cJSON *object = object_of("Task",
                              ",\"annotations\":{\"kubectl.kubernetes.io/"
                              "last-applied-configuration\":\"{}\"},\"finalizers\":[\"" OTHER
                              "/task-finalizer\"]",
                              "{\"name\":\"a\"}");

    ck_assert_int_eq(convert(object), CONVERT_DONE);
    ck_assert_str_eq(json_text(arena, json_get(object, "metadata"), NULL), "{\"name\":\"a\"}");
}

static const struct {
    const char *metadata, *field;
} OMITTED[] = {
    { ",\"ownerReferences\":[{\"apiVersion\":\"" OTHER
      "/v1\",\"kind\":\"PropellerJob\",\"name\":\"j\",\"controller\":true}]",
      "metadata.ownerReferences known" },
    { ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"", "metadata.deletionTimestamp known" },
};

TEST_EACH(an_object_that_must_not_be_made_is_omitted, OMITTED)
{
    ck_assert_int_eq(convert(object_of("Task", OMITTED[_i].metadata, "{\"name\":\"a\"}")),
                     CONVERT_OMITTED);
    ck_assert_str_eq(notes_text(), OMITTED[_i].field);
}

static const struct {
    const char *kind, *spec, *phase;
    int result;
} ENDED[] = {
    { "Task", "{\"name\":\"a\"}", "completed", CONVERT_OMITTED },
    { "Task", "{\"name\":\"a\"}", "skipped", CONVERT_OMITTED },
    { "Task", "{\"name\":\"a\",\"isRecurring\":true,\"schedule\":\"@daily\"}", "failed",
      CONVERT_DONE },
    { "Task", "{\"name\":\"a\",\"isRecurring\":true}", "completed", CONVERT_OMITTED },
    { "Task", "{\"name\":\"a\"}", "running", CONVERT_DONE },
    { "Task", "{\"name\":\"a\"}", "interrupted", CONVERT_DONE },
    { "PropellerJob", "{\"name\":\"a\"}", "Failed", CONVERT_OMITTED },
    { "FederatedJob", "{}", "Running", CONVERT_DONE },
    { "Proplet", "{}", "Offline", CONVERT_DONE },
};

TEST_EACH(an_object_that_has_ended_is_omitted, ENDED)
{
    cJSON *object = object_of(ENDED[_i].kind, "", ENDED[_i].spec);

    json_set_string(json_set_object(object, "status"), "phase", ENDED[_i].phase);
    ck_assert_int_eq(convert(object), ENDED[_i].result);
    ck_assert_str_eq(notes_text(), ENDED[_i].result == CONVERT_OMITTED ? "status.phase known" : "");
}

static const char *const FOREIGN[] = {
    "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"a\",\"uid\":\"u\"}}",
    "{\"apiVersion\":\"" OURS "/v1\",\"kind\":\"Task\",\"metadata\":{},\"spec\":{\"x\":1}}",
    "{\"apiVersion\":\"" OTHER "x/v1\",\"kind\":\"Task\"}",
};

TEST_EACH(objects_of_other_groups_stay_as_they_are, FOREIGN)
{
    cJSON *object = (cJSON *)parsed(arena, FOREIGN[_i]);

    ck_assert_int_eq(convert(object), CONVERT_UNCHANGED);
    ck_assert_str_eq(json_text(arena, object, NULL), FOREIGN[_i]);
    ck_assert_str_eq(notes_text(), "");
}

#define BEGIN "{\"apiVersion\":\"" OTHER "/v1\",\"metadata\":{\"name\":\"a\"},\"kind\":"
static const struct {
    const char *object, *message;
} WRONG[] = {
    { "{\"apiVersion\":\"" OTHER "/v2\",\"kind\":\"Task\"}", "apiVersion: must be " OTHER "/v1" },
    { BEGIN "\"WasmTask\",\"spec\":{}}", "kind: 'WasmTask' is no kind of " OTHER },
    { BEGIN "\"VmafxJob\",\"spec\":{}}", "kind: 'VmafxJob' is no kind of " OTHER },
    { BEGIN "\"Task\"}", "spec: must be an object" },
    { "{\"apiVersion\":\"" OTHER "/v1\",\"kind\":\"Task\",\"spec\":{}}",
      "metadata: must be an object" },
    { BEGIN "\"Proplet\",\"spec\":{\"connectionConfig\":{\"apiKey\":\"planted\",\"clientKey\":"
            "\"planted\"}}}",
      "spec.connectionConfig: has apiKey and clientKey, which are the same field" },
    { BEGIN "\"Proplet\",\"spec\":{\"k8s\":{\"env\":\"planted\"}}}",
      "spec.k8s.env: must be an object" },
    { BEGIN "\"Proplet\",\"spec\":{\"k8s\":{\"env\":{},\"podTemplate\":{}}}}",
      "spec.k8s: has env and podTemplate, which would set the same variables" },
    { BEGIN "\"Proplet\",\"spec\":{\"k8s\":{\"env\":{\"metricsPort\":\"planted\"}}}}",
      "spec.k8s.env.metricsPort: must be a number" },
    { BEGIN "\"Proplet\",\"spec\":{\"k8s\":{\"env\":{\"halEnabled\":\"planted\"}}}}",
      "spec.k8s.env.halEnabled: must be true or false" },
    { BEGIN "\"Proplet\",\"spec\":{\"k8s\":{\"env\":{\"metricsInterval\":\"planted\"}}}}",
      "spec.k8s.env.metricsInterval: must be a duration such as 10s" },
    { BEGIN "\"Proplet\",\"spec\":{\"k8s\":{\"env\":{\"mqttTlsClientKey\":[\"planted\"]}}}}",
      "spec.k8s.env.mqttTlsClientKey: must be a string" },
};

TEST_EACH(a_mistake_names_its_field_and_no_value, WRONG)
{
    ck_assert_int_eq(convert((cJSON *)parsed(arena, WRONG[_i].object)), -ERROR_INVALID);
    ck_assert_str_eq(err.message, WRONG[_i].message);
}

TEST(notes_hold_no_values)
{
    (void)spec_after(object_of("Proplet", "",
                               "{\"k8s\":{\"image\":\"i\",\"env\":{\"mqttTlsClientKey\":"
                               "\"planted\",\"other\":\"planted\"}},\"connectionConfig\":{"
                               "\"apiKey\":\"planted\",\"password\":\"planted\"}}"));
    ck_assert_str_eq(
        notes_text(),
        "spec.k8s.env.other lost, spec.k8s.podTemplate known, spec.connectionConfig.password lost");
    ck_assert_ptr_null(strstr(json_text(arena, notes, NULL), "planted"));
}

TEST(the_notes_of_an_object_are_limited)
{
    const char *env = "\"v\":1";

    for (unsigned i = 0; i < 300; i++)
        env = arena_printf(arena, "%s,\"v%u\":1", env, i);
    (void)spec_after(object_of(
        "Proplet", "", arena_printf(arena, "{\"k8s\":{\"image\":\"i\",\"env\":{%s}}}", env)));
    ck_assert_uint_eq(json_len(notes), 201);
    ck_assert_ptr_nonnull(strstr(notes_text(), "spec.k8s.env.v198 lost, spec lost"));
}
