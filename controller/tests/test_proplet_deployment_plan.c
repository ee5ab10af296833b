#include "common/api/names.h"
#include "common/base/str.h"
#include "common/json/jsonpatch.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "controller/tests/fixture.h"
#include "controller/workload/pod_template.h"
#include "controller/workload/proplet_deployment_plan.h"

#define UID "0d1f5a5e-6c1e-4f2e-9a57-0d3f6f1f2a11"

static struct arena *arena;
static struct proplet proplet;
static struct deployment_observed observed;

static void observe(const cJSON *object)
{
    struct error err = { 0 };

    proplet = (struct proplet){ 0 };
    ck_assert_msg(proplet_decode(arena, object, &proplet, &err) == 0, "%s", err.message);
    observed = (struct deployment_observed){
        .proplet = object,
        .spec = &proplet.spec,
        .liveliness_s = 10,
        .kbs_uri = "http://kbs.lab:8080",
        .key_version = deployment_has_inline_key(&proplet.spec) ? "7" : NULL,
    };
}

/* more: further members of spec.k8s; spec: further members of spec. Both end in a comma. */
static void describe(const char *more, const char *spec)
{
    observe(parsed(
        arena,
        arena_printf(arena,
                     "{\"metadata\":{\"namespace\":\"lab\",\"name\":\"alpha\",\"uid\":\"" UID
                     "\"},\"spec\":{\"type\":\"k8s\",\"k8s\":{%s\"image\":\"reg/proplet:1\"},"
                     "%s\"connectionConfig\":{\"mqttAddress\":\"tcp://broker:1883\","
                     "\"domainId\":\"d\",\"channelId\":\"c\",\"clientId\":\"device-1\","
                     "\"clientKeySecretRef\":{\"name\":\"keys\",\"key\":\"k\"}}}}",
                     more, spec)));
}

static void set_up(void)
{
    json_init();
    arena = arena_create();
    describe("", "");
}

static void tear_down(void)
{
    arena_destroy(arena);
}

TEST_GROUP("plan", set_up, tear_down);

static struct deployment_plan plan(void)
{
    return deployment_plan(arena, &observed);
}

/* What the API server makes of an object: a version, and defaults. */
static const cJSON *stored(const cJSON *object)
{
    cJSON *copy = arena_own(arena, json_copy(object), json_free);
    cJSON *metadata = (cJSON *)json_get(copy, "metadata");
    cJSON *spec = (cJSON *)json_get(copy, "spec");
    cJSON *pod = (cJSON *)json_path(spec, "template", "spec", NULL);
    cJSON *container = (cJSON *)json_first(json_get(pod, "containers"));

    json_set_string(metadata, "uid", "deployment-uid");
    json_set_string(metadata, "resourceVersion", "100");
    json_set_int(metadata, "generation", 1);
    json_set_int(spec, "progressDeadlineSeconds", 600);
    json_set_string(pod, "restartPolicy", "Always");
    json_set_string(pod, "dnsPolicy", "ClusterFirst");
    json_set_string(container, "imagePullPolicy", "IfNotPresent");
    json_set_string(container, "terminationMessagePath", "/dev/termination-log");
    return copy;
}

/* As the first plan makes it. */
static void make(void)
{
    observed.live = NULL;
    struct deployment_plan first = plan();

    ck_assert_int_eq(first.action, DEPLOYMENT_CREATE);
    observed.live = stored(first.object);
    ck_assert_int_eq(plan().action, DEPLOYMENT_KEEP);
}

/* The patch, carried out. */
static const cJSON *patched(const struct deployment_plan *made)
{
    cJSON *after = NULL;
    struct error err;
    int r =
        json_patch_apply(arena, observed.live, json_patch_operations(made->patch), &after, &err);

    ck_assert_msg(r == 0, "%s", err.message);
    return after;
}

static const cJSON *container_of(const cJSON *object)
{
    return json_first(json_path(object, "spec", "template", "spec", "containers", NULL));
}

static const char *env(const cJSON *object, const char *name)
{
    json_for_each (variable, json_get(container_of(object), "env")) {
        if (str_equal(json_string(json_get(variable, "name"), ""), name))
            return json_string(json_get(variable, "value"),
                               json_text(arena, json_get(variable, "valueFrom"), NULL));
    }
    return "-";
}

static const cJSON *read_fixture(const char *name)
{
    size_t len;

    return parsed(arena, fixture_read(arena, arena_printf(arena, "pods/%s", name), &len));
}

/* Of the object that a Proplet becomes, as a file beside the Proplet. */
static const char *const GOLDEN[] = { "plain", "inline-key", "indexed", "pod-template" };

TEST_EACH(proplet_becomes_what_the_file_says, GOLDEN)
{
    const char *name = GOLDEN[_i];

    observe(read_fixture(arena_printf(arena, "%s.proplet.json", name)));
    observed.pod_template_allowed = true;
    const cJSON *object = plan().object;
    const cJSON *expected = read_fixture(arena_printf(arena, "%s.made.json", name));
    ck_assert_msg(json_equal(object, expected), "%s becomes\n%s", name,
                  json_text(arena, object, NULL));
}

TEST(what_the_server_filled_in_and_others_added_is_left_alone)
{
    make();
    cJSON *live = arena_own(arena, json_copy(observed.live), json_free);
    cJSON *metadata = (cJSON *)json_get(live, "metadata");
    cJSON *template = (cJSON *)json_path(live, "spec", "template", "metadata", NULL);
    json_set_string((cJSON *)json_get(metadata, "labels"), "team", "lab");
    json_set_string(json_set_object(metadata, "annotations"), "deployment.kubernetes.io/revision",
                    "1");
    json_set_string((cJSON *)json_get(template, "annotations"), "kubectl.kubernetes.io/restartedAt",
                    "2026-11-21T10:00:00Z");
    observed.live = live;
    ck_assert_int_eq(plan().action, DEPLOYMENT_KEEP);
}

TEST(amounts_that_the_server_writes_otherwise_are_no_change)
{
    describe("", "\"resources\":{\"cpu\":\"0.5\",\"memory\":134217728},");
    make();
    cJSON *live = arena_own(arena, json_copy(observed.live), json_free);
    workload_set_resources((cJSON *)container_of(live),
                           parsed(arena, "{\"cpu\":\"500m\",\"memory\":\"134217728\"}"));
    observed.live = live;
    ck_assert_int_eq(plan().action, DEPLOYMENT_KEEP);
}

static const struct {
    const char *k8s;
    const char *spec;
    const char *paths; /* that the patch writes beside the version */
} CHANGES[] = {
    { "\"logLevel\":\"debug\",", "", "/spec/template" },
    { "\"pluginDir\":\"/plugins\",", "", "/spec/template" },
    { "\"replicas\":0,", "", "/spec/replicas" },
    { "\"replicas\":3,", "", "/spec/replicas" },
    { "", "\"resources\":{\"cpu\":\"1\"},", "/spec/template" },
    { "\"replicas\":2,", "\"resources\":{\"cpu\":\"1\"},", "/spec/replicas /spec/template" },
};

static const char *written(const struct deployment_plan *made)
{
    const char *paths = "";

    json_for_each (operation, json_patch_operations(made->patch)) {
        const char *path = json_string(json_get(operation, "path"), "");
        if (!str_has_prefix(path, "/metadata/uid") && !str_equal(path, "/metadata/resourceVersion"))
            paths = arena_printf(arena, "%s%s%s", paths, *paths ? " " : "", path);
    }
    return paths;
}

TEST_EACH(change_of_the_proplet_writes_what_it_is_about_and_is_then_done, CHANGES)
{
    make();
    const cJSON *live = observed.live;
    describe(CHANGES[_i].k8s, CHANGES[_i].spec);
    observed.live = live;

    struct deployment_plan made = plan();
    ck_assert_int_eq(made.action, DEPLOYMENT_PATCH);
    ck_assert_str_eq(written(&made), CHANGES[_i].paths);
    ck_assert(!made.put_back);
    observed.live = patched(&made);
    ck_assert_int_eq(plan().action, DEPLOYMENT_KEEP);

    /* and back: what is not wanted any more goes */
    live = observed.live;
    describe("", "");
    observed.live = live;
    made = plan();
    ck_assert_int_eq(made.action, DEPLOYMENT_PATCH);
    ck_assert_str_eq(written(&made), CHANGES[_i].paths);
    ck_assert_ptr_null(json_get(container_of(patched(&made)), "resources"));
}

TEST(patch_is_bound_to_the_object_that_was_read)
{
    make();
    const cJSON *live = observed.live;
    describe("\"replicas\":0,", "");
    observed.live = live;
    struct deployment_plan made = plan();
    ck_assert_str_eq(json_text(arena, json_patch_operations(made.patch), NULL),
                     "[{\"op\":\"test\",\"path\":\"/metadata/uid\",\"value\":\"deployment-uid\"},"
                     "{\"op\":\"add\",\"path\":\"/metadata/resourceVersion\",\"value\":\"100\"},"
                     "{\"op\":\"replace\",\"path\":\"/spec/replicas\",\"value\":0}]");
}

TEST(what_somebody_else_changed_is_put_back)
{
    make();
    observed.settled = true;
    cJSON *live = arena_own(arena, json_copy(observed.live), json_free);
    json_set_int((cJSON *)json_get(live, "spec"), "replicas", 5);
    json_set_string((cJSON *)container_of(live), "image", "other");
    observed.live = live;

    struct deployment_plan made = plan();
    ck_assert_int_eq(made.action, DEPLOYMENT_PATCH);
    ck_assert(made.put_back);
    ck_assert_str_eq(written(&made), "/spec/replicas /spec/template");
    ck_assert_str_eq(json_string(json_get(container_of(patched(&made)), "image"), ""),
                     "reg/proplet:1");
}

TEST(object_of_somebody_else_is_left_alone)
{
    make();
    cJSON *live = arena_own(arena, json_copy(observed.live), json_free);
    cJSON *metadata = (cJSON *)json_get(live, "metadata");
    cJSON *owner = (cJSON *)json_first(json_get(metadata, "ownerReferences"));

    observed.live = live;
    json_set_bool(owner, "controller", false);
    ck_assert_int_eq(plan().action, DEPLOYMENT_TAKEN);
    json_set_bool(owner, "controller", true);
    json_set_string(owner, "uid", "of-a-former-proplet-of-this-name");
    ck_assert_int_eq(plan().action, DEPLOYMENT_TAKEN);
    json_remove(metadata, "ownerReferences");
    ck_assert_int_eq(plan().action, DEPLOYMENT_TAKEN);
}

/* One of the same Proplet that another operator made: no labels of ours, another container, the key
 * as a value, durations with units, a rolling update. */
TEST(object_of_another_operator_is_taken_over_without_what_it_had)
{
    make();
    const cJSON *made_by_us = observed.live;
    cJSON *live = arena_own(arena, json_copy(observed.live), json_free);
    cJSON *metadata = (cJSON *)json_get(live, "metadata");
    cJSON *spec = (cJSON *)json_get(live, "spec");
    json_remove(metadata, "labels");
    json_set_copy(spec, "selector",
                  parsed(arena, "{\"matchLabels\":{\"propeller.absmach.fr/proplet\":\"alpha\","
                                "\"app\":\"proplet\"}}"));
    json_set_copy(spec, "strategy",
                  parsed(arena, "{\"type\":\"RollingUpdate\",\"rollingUpdate\":{}}"));
    json_set_copy(spec, "template",
                  parsed(arena,
                         "{\"metadata\":{\"labels\":{\"propeller.absmach.fr/proplet\":\"alpha\","
                         "\"app\":\"proplet\"}},\"spec\":{\"containers\":[{\"name\":\"worker\","
                         "\"env\":[{\"name\":\"PROPLET_CLIENT_KEY\",\"value\":\"open\"}]}]}}"));
    observed.live = live;

    struct deployment_plan taken = plan();
    ck_assert_int_eq(taken.action, DEPLOYMENT_PATCH);
    ck_assert(!taken.put_back);
    const cJSON *after = patched(&taken);
    ck_assert(workload_has(json_path(after, "metadata", "labels", NULL),
                           json_path(made_by_us, "metadata", "labels", NULL)));
    ck_assert_str_eq(json_text(arena, json_path(after, "spec", "strategy", NULL), NULL),
                     "{\"type\":\"Recreate\"}");
    ck_assert_uint_eq(json_len(json_path(after, "spec", "template", "spec", "containers", NULL)),
                      1);
    ck_assert_str_eq(env(after, "PROPLET_CLIENT_KEY"),
                     "{\"secretKeyRef\":{\"name\":\"keys\",\"key\":\"k\"}}");
    /* its selector cannot change, so its pods keep the labels that it asks for */
    ck_assert_str_eq(
        json_string(json_path(after, "spec", "template", "metadata", "labels", "app", NULL), ""),
        "proplet");
    observed.live = after;
    ck_assert_int_eq(plan().action, DEPLOYMENT_KEEP);
}

TEST(object_that_is_going_is_waited_for)
{
    make();
    cJSON *live = arena_own(arena, json_copy(observed.live), json_free);
    json_set_string((cJSON *)json_get(live, "metadata"), "deletionTimestamp",
                    "2026-11-21T10:00:00Z");
    observed.live = live;
    describe("\"replicas\":0,", "");
    observed.live = live;
    ck_assert_int_eq(plan().action, DEPLOYMENT_WAIT);
}

TEST(another_key_starts_new_pods_and_the_same_key_does_not)
{
    observe(read_fixture("inline-key.proplet.json"));
    make();
    ck_assert_str_eq(deployment_key_version(observed.live), "7");
    observed.key_version = "8";
    struct deployment_plan made = plan();
    ck_assert_int_eq(made.action, DEPLOYMENT_PATCH);
    ck_assert_str_eq(written(&made), "/spec/template");
    ck_assert_str_eq(deployment_key_version(patched(&made)), "8");
}

TEST(proplet_whose_identity_is_anothers_has_no_pods)
{
    make();
    observed.hold = DEPLOYMENT_DUPLICATE;
    struct deployment_plan made = plan();
    ck_assert_str_eq(written(&made), "/spec/replicas");
    ck_assert_int_eq(json_int(json_path(patched(&made), "spec", "replicas", NULL), -1), 0);
}

TEST(pod_template_needs_the_flag)
{
    observe(read_fixture("pod-template.proplet.json"));
    ck_assert_int_eq(plan().action, DEPLOYMENT_TEMPLATE_REFUSED);
    observed.pod_template_allowed = true;
    ck_assert_int_eq(plan().action, DEPLOYMENT_CREATE);
}

/* What an API server made of a fragment; the first that is missing. */
static const struct {
    const char *fragment, *made, *left_out;
} LEFT_OUT[] = {
    { "{\"spec\":{\"a\":1}}", "{\"spec\":{\"a\":1,\"b\":2}}", NULL },
    { "{\"spec\":{\"a\":\"1000m\"}}", "{\"spec\":{\"a\":\"1\"}}", NULL },
    { "{\"spec\":{\"b\":2,\"a\":1}}", "{\"spec\":{\"b\":2}}", ".spec.a" },
    { "{\"a\":false,\"b\":0,\"c\":\"\",\"d\":[],\"e\":{},\"f\":null}", "{}", NULL },
    { "{\"a\":true}", "{}", ".a" },
    { "{\"c\":[{\"name\":\"x\",\"v\":1}]}", "{\"c\":[{\"name\":\"w\",\"v\":1},{\"name\":\"x\"}]}",
      ".c[x].v" },
    { "{\"c\":[{\"name\":\"x\"}]}", "{\"c\":[{\"name\":\"w\"}]}", ".c[x]" },
    { "{\"c\":[{\"v\":1}]}", "{\"c\":[{\"w\":1},{\"v\":2}]}", NULL },
    { "{\"c\":[{\"v\":1,\"u\":1}]}", "{\"c\":[{\"v\":1},{\"u\":1}]}", ".c[].v" },
};

TEST_EACH(what_the_api_server_left_out_of_a_template_is_named, LEFT_OUT)
{
    const char *left_out = pod_template_left_out(arena, parsed(arena, LEFT_OUT[_i].fragment),
                                                 parsed(arena, LEFT_OUT[_i].made));

    ck_assert_pstr_eq(left_out, LEFT_OUT[_i].left_out);
}

/* A device on a node with SEV, TDX or SGX ends at its start without one. */
TEST(every_device_has_a_key_broker_and_that_of_a_template_counts)
{
    static const char SOURCE[] = "{\"secretKeyRef\":{\"name\":\"kbs\",\"key\":\"uri\"}}";
    const struct {
        const char *member;
        const char *uri;
    } templates[] = {
        { "\"value\":\"http://other\"", "http://other" },
        { arena_printf(arena, "\"valueFrom\":%s", SOURCE), SOURCE },
    };

    describe("", "");
    ck_assert_str_eq(env(plan().object, "PROPLET_KBS_URI"), "http://kbs.lab:8080");
    for (size_t i = 0; i < ARRAY_LEN(templates); i++) {
        describe(arena_printf(arena,
                              "\"podTemplate\":{\"spec\":{\"containers\":[{\"name\":\"proplet\","
                              "\"env\":[{\"name\":\"PROPLET_KBS_URI\",%s}]}]}},",
                              templates[i].member),
                 "");
        observed.pod_template_allowed = true;
        ck_assert_str_eq(env(plan().object, "PROPLET_KBS_URI"), templates[i].uri);
    }
}

TEST(durations_are_whole_seconds_rounded_up)
{
    observe(parsed(arena, "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"type\":\"k8s\",\"k8s\":{"
                          "\"image\":\"i\"},\"connectionConfig\":{\"clientId\":\"a$(B)\","
                          "\"mqttTimeout\":\"1m1500ms\",\"mqttQos\":0}}}"));
    const cJSON *object = plan().object;
    ck_assert_str_eq(env(object, "PROPLET_MQTT_TIMEOUT"), "62");
    ck_assert_str_eq(env(object, "PROPLET_MQTT_QOS"), "0");
    ck_assert_str_eq(env(object, "PROPLET_LIVELINESS_INTERVAL"), "10");
    ck_assert_str_eq(env(object, "PROPLET_CLIENT_ID"), "a$$(B)");
}

#define STATUS(generation, updated, ready)                                                         \
    "{\"metadata\":{\"generation\":2},\"status\":{\"observedGeneration\":" #generation             \
    ",\"updatedReplicas\":" #updated ",\"readyReplicas\":" #ready ",\"availableReplicas\":" #ready
#define PULLING(name)                                                                              \
    "{\"metadata\":{\"name\":\"" name "\"},\"status\":{\"containerStatuses\":[{\"name\":"          \
    "\"proplet\",\"image\":\"i\",\"state\":{\"waiting\":{\"reason\":\"ErrImagePull\"}}}]}}"

static const struct {
    const char *k8s;
    const char *live;
    const char *pod;
    const char *told; /* "<ready> <trouble> <reason>: <message>" */
} STATUSES[] = {
    { "", NULL, NULL, "0 0 PodsNotReady: 0 of 1 pods are ready" },
    { "", STATUS(2, 1, 1) "}}", NULL, "1 0 PodsReady: 1 of 1 pods are ready" },
    { "\"replicas\":3,", STATUS(2, 3, 2) "}}", NULL, "0 0 PodsNotReady: 2 of 3 pods are ready" },
    { "\"replicas\":3,", STATUS(2, 2, 3) "}}", NULL, "0 0 PodsNotReady: 3 of 3 pods are ready" },
    { "", STATUS(1, 1, 1) "}}", NULL, "0 0 PodsNotReady: 1 of 1 pods are ready" },
    { "\"replicas\":0,", STATUS(2, 0, 0) "}}", NULL, "0 0 ScaledToZero: spec.k8s.replicas is 0" },
    { "", STATUS(2, 1, 0) "}}", PULLING("p"),
      "0 1 ImagePullBackOff: pod 'p': image 'i' cannot be pulled" },
    { "",
      STATUS(2, 0, 0) ",\"conditions\":[{\"type\":\"ReplicaFailure\",\"status\":\"True\","
                      "\"reason\":\"FailedCreate\",\"message\":\"exceeded quota: q\"}]}}",
      NULL, "0 1 QuotaExceeded: exceeded quota: q" },
    { "",
      STATUS(2, 1, 0) ",\"conditions\":[{\"type\":\"Progressing\",\"status\":\"False\","
                      "\"reason\":\"ProgressDeadlineExceeded\",\"message\":\"too long\"}]}}",
      NULL, "0 1 ProgressDeadlineExceeded: too long" },
    { "", STATUS(2, 1, 1) "}}", PULLING("old"), "1 0 PodsReady: 1 of 1 pods are ready" },
};

TEST_EACH(readiness_and_trouble_are_mirrored, STATUSES)
{
    const cJSON *pods[1] = { NULL };
    size_t len = STATUSES[_i].pod ? 1 : 0;

    describe(STATUSES[_i].k8s, "");
    const cJSON *live = STATUSES[_i].live ? parsed(arena, STATUSES[_i].live) : NULL;
    if (len)
        pods[0] = parsed(arena, STATUSES[_i].pod);
    struct proplet_pods told =
        deployment_status(arena, &proplet.spec, DEPLOYMENT_FREE, live, pods, len);
    ck_assert_str_eq(arena_printf(arena, "%d %d %s: %s", told.ready, told.trouble,
                                  reason_word(told.reason, told.word), told.message),
                     STATUSES[_i].told);
}

TEST(of_several_pods_in_trouble_the_first_is_told)
{
    const cJSON *pods[] = { parsed(arena, PULLING("b")), parsed(arena, PULLING("a")),
                            parsed(arena, PULLING("c")) };
    const cJSON *live = parsed(arena, STATUS(2, 3, 0) "}}");

    ck_assert_str_eq(
        deployment_status(arena, &proplet.spec, DEPLOYMENT_FREE, live, pods, ARRAY_LEN(pods))
            .message,
        "pod 'a': image 'i' cannot be pulled");
}
