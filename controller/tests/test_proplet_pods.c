#include <unistd.h>

#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "common/tests/observe.h"
#include "common/tests/parsed.h"
#include "controller/shared/put_back.h"
#include "controller/tests/fake_bridge.h"
#include "controller/tests/pods_stage.h"

#define IMAGE(value) "\"image\":\"" value "\","

/* The API server answers a write of refused_path so; 0: as usual. */
static int refuse_with;
static const char *refused_path;
static const char *refusal;
/* The reasons of the Events of "alpha", in the order in which they are made. */
static char events[256];

static int roundtrip(void *ctx, struct arena *arena, const struct http_request *request,
                     struct http_response *ret, struct error *err)
{
    if (refuse_with && strstr(request->path, refused_path) && !str_equal(request->method, "GET")) {
        *ret = (struct http_response){
            .status = refuse_with,
            .body = arena_printf(arena, "{\"kind\":\"Status\",\"message\":\"%s\"}", refusal),
        };
        ret->body_len = strlen(ret->body);
        return 0;
    }
    if (str_equal(request->method, "POST") && strstr(request->path, "/events")) {
        const cJSON *event = parsed(arena, request->body);

        if (str_equal(json_string(json_path(event, "regarding", "name", NULL), ""), "alpha"))
            (void)str_copy(
                events, sizeof(events),
                arena_printf(arena, "%s %s", events, json_string(json_get(event, "reason"), "")));
    }
    return outside_roundtrip(ctx, arena, request, ret, err);
}

static void set_up(void)
{
    events[0] = '\0';
    refuse_with = 0;
    refusal = "exceeded quota: q";
    refused_path = "/deployments";
    outside_reset();
    stage_set_up(roundtrip, outside_between);
    pods_put_proplet(IMAGE("i:1"), PODS_KEY_REF);
    stage_run();
}

TEST_GROUP("pods", set_up, stage_tear_down);

static void run_and_expect(const char *told)
{
    stage_run();
    ck_assert_str_eq(pods_told(), told);
}

TEST(readiness_of_the_pods_is_that_of_the_proplet)
{
    ck_assert_str_eq(pods_image(), "i:1");
    ck_assert_int_eq(pods_replicas(), 1);
    ck_assert_str_eq(pods_told(), "Initializing False PodsNotReady");

    pods_report(true);
    run_and_expect("Running True PodsReady");
    const cJSON *status = json_get(stage_get(&KIND_PROPLET, "alpha"), "status");
    ck_assert_str_eq(json_text(stage.arena, json_get(status, "k8sStatus"), NULL),
                     "{\"readyReplicas\":1,\"availableReplicas\":1,"
                     "\"devices\":[{\"clientId\":\"device-1\",\"connected\":true}]}");
    ck_assert(condition_is(json_get(status, "conditions"), "Connected", CONDITION_TRUE));

    pods_report(false);
    run_and_expect("Offline False PodsNotReady");
}

/* Another Proplet may have had the name before. */
TEST(each_line_of_the_log_has_the_uid_of_its_proplet)
{
    const char *uid = json_string(
        json_path(stage_get(&KIND_PROPLET, "alpha"), "metadata", "uid", NULL), "no uid");

    log_configure(LOG_INFO, LOG_JSON);
    capture_start(STDERR_FILENO);
    pods_report(true);
    stage_run();
    pods_put_proplet(IMAGE("i:2"), PODS_KEY_REF);
    stage_run();
    const char *text = capture_text(stage.arena);
    capture_stop();

    ck_assert_ptr_nonnull(strstr(text, "proplet changed"));
    ck_assert_ptr_nonnull(strstr(text, "pods changed"));
    for (const char *end; *text; text = end) {
        end = strchr(text, '\n') + 1;
        const char *line = arena_strndup(stage.arena, text, (size_t)(end - text));
        ck_assert_msg(strstr(line, uid) != NULL, "%s", line);
    }
}

#define ON_ALPHA                                                                                   \
    "{\"name\":\"t\",\"file\":\"AGFzbQEAAAA=\",\"propletSelector\":{\"propletId\":\"alpha\"}%s}"

static void put_task(const char *more)
{
    stage_put_task(arena_printf(stage.arena, ON_ALPHA, more));
    stage_run();
}

TEST(task_over_mqtt_waits_for_the_pod_and_for_its_device)
{
    put_task(""); /* the device is heard, the pod is not ready */
    ck_assert_str_eq(stage_task_string("reason"), "PropletOffline");
    ck_assert_uint_eq(outside.starts, 0);
    pods_report(true);
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "running");
    ck_assert_uint_eq(outside.starts, 1);
}

TEST(start_waits_while_the_pod_is_gone)
{
    pods_report(true);
    stage_run();
    outside.away = true;
    put_task("");
    ck_assert_str_eq(stage_task_string("phase"), "scheduled");
    pods_report(false); /* its last heartbeat was just now */
    stage_run();
    outside.away = false;
    stage_reconnect();
    stage_run();
    ck_assert_str_eq(stage_task_string("reason"), "PropletOffline");
    ck_assert_uint_eq(outside.starts, 0);
}

TEST(ready_pod_that_is_not_heard_loses_its_task)
{
    pods_report(true);
    stage_run();
    put_task(",\"propletLostPolicy\":\"Fail\"");
    stage.silent = "device-1";
    for (int i = 0; i < 20 && str_equal(stage_task_string("phase"), "running"); i++) {
        stage_wait_ms(10000);
        stage_run();
    }
    ck_assert_str_eq(pods_told(), "Running True PodsReady");
    ck_assert_str_eq(stage_task_string("phase"), "failed");
    ck_assert_str_eq(stage_task_string("reason"), "PropletLost");
}

TEST(nothing_is_written_when_nothing_changed)
{
    pods_report(true);
    stage_run();
    unsigned before = stage_requests(NULL, "");
    for (int i = 0; i < 10; i++) {
        pods_report(true); /* told again by the API server */
        stage_run();
    }
    ck_assert_uint_eq(stage_requests(NULL, ""), before);
    ck_assert_uint_eq(stage_requests("POST", "/deployments"), 1);
    ck_assert_uint_eq(stage_requests("PATCH", "/deployments/"), 0);
}

TEST(change_of_the_proplet_is_rolled_out)
{
    pods_put_proplet(IMAGE("i:2"), PODS_KEY_REF);
    stage_run();
    ck_assert_str_eq(pods_image(), "i:2");
    ck_assert_uint_eq(stage_requests("PATCH", "/deployments/"), 1);
}

TEST(scaled_to_zero_it_is_offline_and_comes_back)
{
    pods_report(true);
    stage_run();
    pods_put_proplet(IMAGE("i:1") "\"replicas\":0,", PODS_KEY_REF);
    run_and_expect("Offline False ScaledToZero");
    ck_assert_int_eq(pods_replicas(), 0);
    pods_put_proplet(IMAGE("i:1") "\"replicas\":1,", PODS_KEY_REF);
    run_and_expect("Offline False PodsNotReady");
    ck_assert_int_eq(pods_replicas(), 1);
    pods_report(true);
    run_and_expect("Running True PodsReady");
}

/* members: of the spec, with a comma before each. */
static void put_closed(const char *image, const char *members)
{
    stage_put_proplet("alpha",
                      arena_printf(stage.arena,
                                   "{\"type\":\"k8s\",\"k8s\":{\"image\":\"%s\"},"
                                   "\"connectionConfig\":{\"mqttAddress\":\"tcp://broker\","
                                   "\"domainId\":\"d\",\"channelId\":\"c\",\"clientId\":"
                                   "\"device-1\"," PODS_KEY_REF "}%s}",
                                   image, members));
}

#define OVERRIDE                                                                                   \
    ",\"availability\":{\"override\":{\"state\":\"Closed\",\"until\":\"2026-01-01T00:30:00Z\"}}"

static void pass_minutes(int minutes)
{
    for (int i = 0; i < minutes * 6; i++) {
        stage_wait_ms(10000);
        stage_run();
    }
}

TEST(closed_proplet_has_no_pods_and_they_come_back)
{
    pods_report(true);
    run_and_expect("Running True PodsReady");
    put_closed("i:1", OVERRIDE);
    run_and_expect("Offline False Closed");
    ck_assert_int_eq(pods_replicas(), 0);

    put_closed("i:2", OVERRIDE); /* it is kept up */
    run_and_expect("Offline False Closed");
    ck_assert_str_eq(pods_image(), "i:2");
    ck_assert_int_eq(pods_replicas(), 0);
    pass_minutes(31);
    ck_assert_int_eq(pods_replicas(), 1);
    ck_assert_str_eq(pods_told(), "Offline False PodsNotReady");
    pods_report(true);
    run_and_expect("Running True PodsReady");
    stage_write_events();
    ck_assert_str_eq(events, " Online Online");
}

/* 0: as long as a Task runs; 1: its owner, or the kill switch, does not wait. */
TEST_TIMES(pods_stay_while_a_task_runs_unless_it_is_stopped_at_once, 2)
{
    pods_report(true);
    stage_put_task("{\"name\":\"one\",\"file\":\"AGFzbQEAAAA=\","
                   "\"monitoringProfile\":{\"enabled\":false},"
                   "\"propletSelector\":{\"propletId\":\"alpha\"}}");
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "running");
    put_closed("i:1", _i ? ",\"killSwitch\":true" : OVERRIDE);
    stage_run();
    ck_assert_int_eq(pods_replicas(), _i ? 0 : 1);
    ck_assert_str_eq(pods_told(), _i ? "Offline False Closed" : "Running True PodsReady");
    ck_assert_str_eq(stage_task_string("phase"), _i ? "pending" : "running");
    pass_minutes(6);
    ck_assert_str_eq(stage_task_string("phase"), "pending");
    ck_assert_int_eq(pods_replicas(), 0);
    ck_assert_str_eq(pods_told(), "Offline False Closed");
}

/* The generation stays, as when a user scales the pods by hand, which is corrected later each time. */
TEST(pods_follow_the_owner_at_once_each_time)
{
    pods_report(true);
    stage_run();
    for (int i = 0; i < 6; i++) {
        stage_annotate(&KIND_PROPLET, "alpha", ANNOTATION_RECLAIM, i % 2 ? "" : "true");
        stage_run();
        ck_assert_int_eq(pods_replicas(), i % 2);
    }
}

/* It never ran, so one write takes its Proplet; the counts follow in the next reconcile of the Task. */
TEST(proplet_is_closed_once_its_last_task_is_gone)
{
    pods_report(true);
    stage_put_task("{\"name\":\"one\",\"imageUrl\":\"reg.example/run:1\",\"daemon\":true,"
                   "\"propletSelector\":{\"propletId\":\"alpha\"}}");
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "scheduled");
    ck_assert_str_eq(stage_task_string("assignedProplet"), "alpha");
    put_closed("i:1", OVERRIDE);
    stage_run();
    ck_assert_str_eq(stage_task_string("assignedProplet"), "");
    ck_assert_str_eq(pods_told(), "Offline False Closed");
}

TEST(key_is_in_its_secret_and_nowhere_else)
{
    pods_put_proplet(IMAGE("i:1"), PODS_KEY("open sesame"));
    stage_run();
    ck_assert_str_eq(json_text(stage.arena, json_get(pods_secret(), "data"), NULL),
                     "{\"clientKey\":\"b3BlbiBzZXNhbWU=\"}");
    ck_assert_str_eq(
        kube_controller_uid(pods_secret()),
        json_string(json_path(stage_get(&KIND_PROPLET, "alpha"), "metadata", "uid", NULL), "?"));
    ck_assert_ptr_null(strstr(json_text(stage.arena, pods_deployment(), NULL), "sesame"));
    ck_assert_uint_eq(stage_requests("GET", "/secrets"), 0);
}

TEST(new_key_starts_new_pods_and_another_change_does_not)
{
    pods_put_proplet(IMAGE("i:1"), PODS_KEY("one"));
    stage_run();
    const char *version = deployment_key_version(pods_deployment());
    ck_assert_ptr_nonnull(version);

    pods_put_proplet(IMAGE("i:1") "\"replicas\":0,", PODS_KEY("one"));
    stage_run();
    ck_assert_str_eq(deployment_key_version(pods_deployment()), version);

    pods_put_proplet(IMAGE("i:1") "\"replicas\":0,", PODS_KEY("two"));
    stage_run();
    ck_assert_str_ne(deployment_key_version(pods_deployment()), version);
    ck_assert_str_eq(json_text(stage.arena, json_get(pods_secret(), "data"), NULL),
                     "{\"clientKey\":\"dHdv\"}");
}

TEST(secret_that_was_deleted_is_made_again_when_a_pod_lacks_it)
{
    pods_put_proplet(IMAGE("i:1"), PODS_KEY("one"));
    stage_run();
    stage_delete(&KIND_SECRET, "alpha-client-key");
    pods_waiting("CreateContainerConfigError");
    stage_run();
    ck_assert_ptr_nonnull(pods_secret());
}

/* Its device is not heard any more, and that is told: nothing of it wakes the Proplet. */
static void fall_silent(void)
{
    stage.silent = "device-1";
    for (int i = 0; i < 3; i++) {
        stage_wait_ms(61000);
        stage_run();
    }
}

TEST(secret_of_somebody_else_is_not_touched)
{
    fake_api_put(stage.api, &KIND_SECRET,
                 parsed(stage.arena,
                        "{\"kind\":\"Secret\",\"metadata\":{\"namespace\":\"default\",\"name\":"
                        "\"alpha-client-key\",\"ownerReferences\":[{\"controller\":true,"
                        "\"uid\":\"other\"}]},\"data\":{\"mine\":\"eA==\"}}"));
    stage_delete(&KIND_DEPLOYMENT, "alpha-proplet");
    pods_put_proplet(IMAGE("i:1"), PODS_KEY("one"));
    run_and_expect("Initializing False SecretNameTaken");
    ck_assert_str_eq(json_text(stage.arena, json_get(pods_secret(), "data"), NULL),
                     "{\"mine\":\"eA==\"}");
    ck_assert_int_eq(pods_replicas(), -1);

    fall_silent();
    stage_delete(&KIND_SECRET, "alpha-client-key");
    stage_wait_ms(WORKLOAD_BACKSTOP_MS);
    run_and_expect("Initializing False PodsNotReady");
    ck_assert_int_eq(pods_replicas(), 1);
}

static void put_deployment(const char *labels, const char *owner)
{
    fake_api_put(stage.api, &KIND_DEPLOYMENT,
                 parsed(stage.arena,
                        arena_printf(stage.arena,
                                     "{\"kind\":\"Deployment\",\"metadata\":{\"namespace\":"
                                     "\"default\",\"name\":\"alpha-proplet\",\"labels\":{%s},"
                                     "\"ownerReferences\":[{\"controller\":true,\"uid\":\"%s\"}"
                                     "]},\"spec\":{\"replicas\":7,\"selector\":{\"matchLabels\":{"
                                     "\"" LABEL_PROPLET_SELECTOR "\":\"alpha\"}},"
                                     "\"template\":{\"spec\":{\"containers\":[{\"name\":\"x\","
                                     "\"image\":\"theirs\"}]}}}}",
                                     labels, owner)));
}

TEST(deployment_of_somebody_else_is_left_alone_and_said)
{
    stage_delete(&KIND_DEPLOYMENT, "alpha-proplet");
    put_deployment("\"x\":\"y\"", "somebody");
    pods_put_proplet(IMAGE("i:2"), PODS_KEY_REF);
    run_and_expect("Initializing False NameTaken");
    ck_assert_str_eq(pods_image(), "theirs");
    ck_assert_int_eq(pods_replicas(), 7);

    unsigned before = stage_requests(NULL, "");
    stage_wait_ms(1000);
    stage_run();
    ck_assert_uint_eq(stage_requests(NULL, ""), before); /* not hot */

    fall_silent();
    stage_delete(&KIND_DEPLOYMENT, "alpha-proplet");
    stage_wait_ms(WORKLOAD_BACKSTOP_MS);
    run_and_expect("Initializing False PodsNotReady");
    ck_assert_str_eq(pods_image(), "i:2");
}

TEST(deployment_of_somebody_else_stays_beside_a_stateful_set)
{
    stage_delete(&KIND_DEPLOYMENT, "alpha-proplet");
    put_deployment("\"" LABEL_MANAGED_BY "\":\"" LABEL_MANAGED_BY_VALUE "\"", "somebody");
    pods_put_proplet(IMAGE("i:1") "\"indexedClientIds\":true,", PODS_KEY_REF);
    stage_run();
    ck_assert_ptr_nonnull(stage_get(&KIND_STATEFULSET, "alpha-proplet"));
    ck_assert_str_eq(pods_image(), "theirs");
    ck_assert_uint_eq(stage_requests("DELETE", ""), 0);
}

TEST(deployment_of_another_operator_for_this_proplet_is_taken_over)
{
    const char *uid =
        json_string(json_path(stage_get(&KIND_PROPLET, "alpha"), "metadata", "uid", NULL), "");

    stage_delete(&KIND_DEPLOYMENT, "alpha-proplet");
    put_deployment("\"x\":\"y\"", uid);
    pods_put_proplet(IMAGE("i:2"), PODS_KEY_REF);
    run_and_expect("Initializing False PodsNotReady");
    ck_assert_str_eq(pods_image(), "i:2");
    ck_assert_int_eq(pods_replicas(), 1);
    ck_assert_uint_eq(stage_requests("DELETE", "/deployments/"), 0);
    ck_assert_str_eq(json_string(json_path(pods_deployment(), "metadata", "labels", "x", NULL), ""),
                     "y");
}

TEST(deployment_that_somebody_deletes_or_changes_is_put_back)
{
    stage_delete(&KIND_DEPLOYMENT, "alpha-proplet");
    stage_run();
    ck_assert_int_eq(pods_replicas(), 1);

    cJSON *changed = arena_own(stage.arena, json_copy(pods_deployment()), json_free);
    json_set_int((cJSON *)json_get(changed, "spec"), "replicas", 9);
    fake_api_put(stage.api, &KIND_DEPLOYMENT, changed);
    stage_run();
    ck_assert_int_eq(pods_replicas(), 9); /* not at once: two who disagree would never stop */
    stage_wait_ms(PUT_BACK_MS);
    stage_run();
    ck_assert_int_eq(pods_replicas(), 1);
}

static const struct {
    int status;
    const char *message;
    const char *told;
} REFUSALS[] = {
    { 422, "exceeded quota: q", "Initializing False QuotaExceeded" },
    { 403, "exceeded quota: q", "Initializing False QuotaExceeded" },
    { 403, "no", "Initializing False Refused" },
    { 500, "Internal error occurred: failed calling webhook w: timeout",
      "Initializing False WebhookUnavailable" },
};

TEST_EACH(refusal_of_the_api_server_is_said_and_not_repeated_at_once, REFUSALS)
{
    refuse_with = REFUSALS[_i].status;
    refusal = REFUSALS[_i].message;
    pods_put_proplet(IMAGE("i:2"), PODS_KEY_REF);
    run_and_expect(REFUSALS[_i].told);
    unsigned before = outside.steps;
    stage_wait_ms(PODS_REFUSED_RETRY_MS / 2);
    stage_run();
    ck_assert_uint_eq(outside.steps, before);

    refuse_with = 0;
    stage_wait_ms(PODS_REFUSED_RETRY_MS);
    run_and_expect("Initializing False PodsNotReady");
    ck_assert_str_eq(pods_image(), "i:2");
}

/* The back-off of an error is five minutes at last. */
TEST(proplet_is_woken_at_the_change_of_its_windows_although_its_pods_fail)
{
    struct kube_name name;

    put_closed("i:1", ",\"availability\":{\"schedule\":{\"windows\":[{\"days\":[\"mon-sun\"],"
                      "\"from\":\"00:00\",\"until\":\"00:37\"}]}}");
    stage_run();
    refuse_with = 500;
    refusal = "broken";
    put_closed("i:2", ",\"availability\":{\"schedule\":{\"windows\":[{\"days\":[\"mon-sun\"],"
                      "\"from\":\"00:00\",\"until\":\"00:37\"}]}}");
    stage_turns(20);
    ck_assert_uint_gt(stage.errors, 0);
    fake_clock_advance(&stage.clock, INT64_C(37) * 60 * 1000);
    ck_assert_uint_eq(workqueue_len(stage.proplet.queue), 1);
    ck_assert(workqueue_get(stage.proplet.queue, &name));
    ck_assert_str_eq(name.name, "alpha");
    workqueue_done(stage.proplet.queue, &name);
}

static bool is_connected(void)
{
    const cJSON *status = json_get(stage_get(&KIND_PROPLET, "alpha"), "status");

    return condition_is(json_get(status, "conditions"), "Connected", CONDITION_TRUE);
}

/* While an error lasts there is no rest. */
#define OUTAGE_TURNS 20
static const struct {
    int status;
    const char *message;
} OUTAGES[] = {
    { 500, "etcdserver: leader changed" },
    { 500, "Internal error occurred: failed calling webhook w: timeout" },
    { 503, "later" },
    { 504, "took too long" },
};

TEST_EACH(silence_of_a_device_is_told_also_while_its_pods_cannot_be_changed, OUTAGES)
{
    pods_report(true);
    stage_run();
    ck_assert(is_connected());
    refuse_with = OUTAGES[_i].status;
    refusal = OUTAGES[_i].message;
    pods_put_proplet(IMAGE("i:2"), PODS_KEY_REF);
    stage_turns(OUTAGE_TURNS);
    ck_assert(is_connected());
    ck_assert_str_eq(pods_image(), "i:1");
    for (int i = 0; i < 20 && is_connected(); i++) { /* nobody is heard meanwhile */
        stage_wait_ms(10000);
        stage_turns(OUTAGE_TURNS);
    }
    ck_assert(!is_connected());
    ck_assert_str_eq(pods_image(), "i:1");

    refuse_with = 0;
    stage_wait_ms(PODS_REFUSED_RETRY_MS);
    stage_run();
    ck_assert_str_eq(pods_image(), "i:2");
}

TEST_EACH(key_that_could_not_be_written_is_written_later, OUTAGES)
{
    pods_put_proplet(IMAGE("i:1"), PODS_KEY("first"));
    stage_run();
    pods_report(true);
    stage_run();
    refused_path = "/secrets";
    refuse_with = OUTAGES[_i].status;
    refusal = OUTAGES[_i].message;
    pods_put_proplet(IMAGE("i:1"), PODS_KEY("second"));
    stage_turns(OUTAGE_TURNS);
    refuse_with = 0;
    stage_wait_ms(PODS_REFUSED_RETRY_MS);
    stage_run();
    ck_assert_str_eq(json_string(json_path(pods_secret(), "data", "clientKey", NULL), ""),
                     "c2Vjb25k");
}

TEST(trouble_of_a_pod_is_said_and_goes)
{
    pods_waiting("ErrImagePull");
    run_and_expect("Initializing False ImagePullBackOff");
    pods_waiting("ContainerCreating");
    run_and_expect("Initializing False PodsNotReady");
}

TEST(second_proplet_of_an_identity_has_no_pods)
{
    stage_put_proplet("beta", "{\"type\":\"k8s\",\"k8s\":{\"image\":\"i\"},\"connectionConfig\":{"
                              "\"mqttAddress\":\"tcp://broker\",\"domainId\":\"d\",\"channelId\":"
                              "\"c\",\"clientId\":\"device-1\"," PODS_KEY_REF "}}");
    stage_run();
    const cJSON *second = stage_get(&KIND_DEPLOYMENT, "beta-proplet");
    ck_assert_int_eq(json_int(json_path(second, "spec", "replicas", NULL), -1), 0);
    ck_assert_int_eq(pods_replicas(), 1);
}

TEST(pods_with_identities_of_their_own_are_a_stateful_set)
{
    pods_put_proplet(IMAGE("i:1") "\"replicas\":3,\"indexedClientIds\":true,", PODS_KEY_REF);
    stage_run();
    ck_assert_ptr_null(pods_deployment());
    ck_assert_int_eq(
        json_int(json_path(stage_get(&KIND_STATEFULSET, "alpha-proplet"), "spec", "replicas", NULL),
                 -1),
        3);
    pods_put_proplet(IMAGE("i:1"), PODS_KEY_REF);
    stage_run();
    ck_assert_ptr_null(stage_get(&KIND_STATEFULSET, "alpha-proplet"));
    ck_assert_int_eq(pods_replicas(), 1);
}
