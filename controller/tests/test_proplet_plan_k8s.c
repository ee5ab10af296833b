/* What is told of a Proplet of type k8s: its pods decide whether it is Ready, its device whether it is
 * Connected. */
#include <string.h>

#include "common/kube/conditions.h"
#include "common/tests/suite.h"
#include "controller/proplet/proplet_plan.h"

#define NOW_MS 1000000
#define NOW_US INT64_C(1795255200000000)
#define THRESHOLD_MS 30000

static struct arena *arena;
static struct proplet_k8s k8s;
static struct connection_config connection;
static struct proplet_pods pods;
static struct proplet_observed observed;

static void set_up(void)
{
    json_init();
    arena = arena_create();
    k8s = (struct proplet_k8s){ .image = "i" };
    connection = (struct connection_config){ .client_id = "alpha" };
    pods = (struct proplet_pods){ .reason = REASON_PODS_NOT_READY,
                                  .message = "0 of 1 pods are ready" };
    observed = (struct proplet_observed){
        .name = "alpha",
        .generation = 1,
        .proplet.spec = { .type = PROPLET_K8S, .k8s = &k8s, .connection_config = &connection },
        .pods = &pods,
        .mqtt_configured = true,
        .channel.since_ms = NOW_MS - 1000,
        .threshold_ms = THRESHOLD_MS,
        .now_ms = NOW_MS,
        .now_us = NOW_US,
    };
}

static void tear_down(void)
{
    arena_destroy(arena);
}

TEST_GROUP("plan", set_up, tear_down);

static struct proplet_plan done(void)
{
    struct proplet_plan plan = proplet_plan(arena, &observed);

    observed.proplet.status = plan.status;
    if (plan.device == DEVICE_SILENT)
        observed.device.alive = false;
    return plan;
}

static void get_ready(void)
{
    pods = (struct proplet_pods){ .ready = true,
                                  .ready_replicas = 1,
                                  .available_replicas = 1,
                                  .reason = REASON_PODS_READY,
                                  .message = "1 of 1 pods are ready" };
}

static void lose_pods(void)
{
    pods = (struct proplet_pods){ .trouble = true,
                                  .reason = REASON_IMAGE_PULL,
                                  .message = "pod 'p': image 'i' cannot be pulled" };
}

static void heartbeat(void)
{
    observed.device.alive = true;
    observed.device.last_seen_ms = observed.now_ms;
    observed.device.last_seen_us = observed.now_us;
}

static const char *condition(const struct proplet_plan *plan, const char *type)
{
    const cJSON *found = condition_get(plan->status.conditions, type);

    return arena_printf(arena, "%s %s", json_string(json_get(found, "status"), "?"),
                        json_string(json_get(found, "reason"), "?"));
}

static void expect(enum proplet_phase phase, const char *ready, const char *connected)
{
    struct proplet_plan plan = done();

    ck_assert_int_eq(plan.status.phase, phase);
    ck_assert_int_eq(plan.status.alive, phase == PROPLET_RUNNING);
    ck_assert_str_eq(condition(&plan, "Ready"), ready);
    ck_assert_str_eq(condition(&plan, "Connected"), connected);
    plan = done();
    ck_assert(plan.write != PROPLET_WRITE_NOW); /* once said it is said */
    ck_assert_ptr_null(plan.event);
}

TEST(pods_decide_on_ready_and_the_device_on_connected)
{
    expect(PROPLET_INITIALIZING, "False PodsNotReady", "False NoHeartbeat");
    get_ready();
    expect(PROPLET_RUNNING, "True PodsReady", "False NoHeartbeat");
    heartbeat();
    expect(PROPLET_RUNNING, "True PodsReady", "True Heartbeat");
    observed.now_ms += THRESHOLD_MS;
    expect(PROPLET_RUNNING, "True PodsReady", "False NoHeartbeat");
    lose_pods();
    expect(PROPLET_OFFLINE, "False ImagePullBackOff", "False NoHeartbeat");
    get_ready();
    heartbeat();
    expect(PROPLET_RUNNING, "True PodsReady", "True Heartbeat");
}

TEST(first_heartbeat_of_a_life_is_told_once)
{
    get_ready();
    ck_assert(done().device != DEVICE_HEARD);
    heartbeat();
    ck_assert(done().device == DEVICE_HEARD);
    ck_assert(done().device != DEVICE_HEARD);
    observed.now_ms += THRESHOLD_MS;
    ck_assert(done().device == DEVICE_SILENT);
    heartbeat();
    ck_assert(done().device == DEVICE_HEARD);
}

TEST(another_leader_leaves_the_connection_as_it_was_until_it_has_heard)
{
    get_ready();
    heartbeat();
    done();
    observed.device = (struct fleet_device){ 0 };
    observed.channel = (struct channel_state){ 0 };
    struct proplet_plan plan = done();
    ck_assert(plan.write != PROPLET_WRITE_NOW);
    ck_assert(plan.device != DEVICE_HEARD);
    ck_assert_str_eq(condition(&plan, "Connected"), "True Heartbeat");
}

TEST(field_that_the_api_server_left_out_is_said_until_the_pods_are_written_again)
{
    pods.left_out = ".spec.tolerationz";
    struct proplet_plan plan = done();
    ck_assert_str_eq(condition(&plan, "PodTemplateApplied"), "False UnknownField");
    pods.left_out = NULL;
    plan = done();
    ck_assert_str_eq(condition(&plan, "PodTemplateApplied"), "False UnknownField");
    ck_assert(plan.write != PROPLET_WRITE_NOW);
    pods.left_out = "";
    plan = done();
    ck_assert_str_eq(condition(&plan, "PodTemplateApplied"), "? ?");
    ck_assert(plan.write == PROPLET_WRITE_NOW);
    plan = done();
    ck_assert(plan.write != PROPLET_WRITE_NOW);
}

TEST(trouble_of_pods_is_a_condition_and_readiness_an_event)
{
    done();
    lose_pods();
    struct proplet_plan plan = done();
    ck_assert_str_eq(condition(&plan, "Ready"), "False ImagePullBackOff");
    ck_assert_ptr_null(plan.event);
    get_ready();
    plan = done();
    ck_assert_str_eq(plan.event->reason, "Online");
    pods = (struct proplet_pods){ .reason = REASON_SCALED_TO_ZERO,
                                  .message = "spec.k8s.replicas is 0" };
    plan = done();
    ck_assert_str_eq(plan.event->reason, "Offline");
    ck_assert_int_eq(plan.status.offline_since_us, NOW_US);
}

static void no_mqtt(void)
{
    observed.mqtt_configured = false;
}

static void share_channel(void)
{
    observed.channel_taken_by = "other/chip";
}

static void refuse(void)
{
    observed.channel.refused = true;
}

static void share_id(void)
{
    k8s.replicas = (struct json_opt_int){ true, 2 };
}

static void will(void)
{
    observed.device.will = true;
}

static const struct {
    void (*set_up)(void);
    const char *connected;
} OBSTACLES[] = {
    { no_mqtt, "False MQTTNotConfigured" },
    { share_channel, "False SharedChannel" },
    { refuse, "False SubscriptionRefused" },
    { share_id, "False SharedClientId" },
    { will, "False LastWill" },
};

TEST_EACH(what_keeps_messages_away_keeps_no_jobs_away, OBSTACLES)
{
    get_ready();
    heartbeat();
    OBSTACLES[_i].set_up();
    expect(PROPLET_RUNNING, "True PodsReady", OBSTACLES[_i].connected);
}

TEST(identity_of_an_older_proplet_is_no_worker)
{
    get_ready();
    heartbeat();
    observed.claimed_by = "default/beta";
    expect(PROPLET_INITIALIZING, "False DuplicateClientId", "False DuplicateClientId");
}

/* ---- a device in each pod ---- */

static struct fleet_device devices[2];

static void index_ids(void)
{
    memset(devices, 0, sizeof(devices));
    k8s.replicas = (struct json_opt_int){ true, 2 };
    k8s.indexed_client_ids = true;
    observed.pod_devices = devices;
    observed.pod_device_count = 2;
}

static void heartbeat_of(size_t i)
{
    devices[i].alive = true;
    devices[i].last_seen_ms = observed.now_ms;
    devices[i].last_seen_us = observed.now_us;
}

static const char *devices_of(const struct proplet_plan *plan)
{
    const struct json_objects *list = &plan->status.k8s_status->devices;
    const struct proplet_device *items = list->items;
    const char *text = "";

    for (size_t i = 0; i < list->len; i++)
        text = arena_printf(arena, "%s%s %s%s", text, items[i].client_id,
                            items[i].connected ? "connected" : "offline",
                            i + 1 < list->len ? ", " : "");
    return text;
}

TEST(one_pod_that_is_heard_connects_the_proplet)
{
    index_ids();
    struct proplet_plan plan = done();
    ck_assert_str_eq(devices_of(&plan), "alpha-0 offline, alpha-1 offline");
    ck_assert_str_eq(condition(&plan, "Connected"), "False NoHeartbeat");

    heartbeat_of(1);
    plan = done();
    ck_assert_str_eq(devices_of(&plan), "alpha-0 offline, alpha-1 connected");
    ck_assert_str_eq(condition(&plan, "Connected"), "True Heartbeat");
    ck_assert(plan.write == PROPLET_WRITE_NOW && plan.pod_devices[1] == DEVICE_HEARD &&
              plan.pod_devices[0] != DEVICE_HEARD);
    ck_assert(done().write != PROPLET_WRITE_NOW);

    heartbeat_of(0);
    plan = done();
    ck_assert(plan.write == PROPLET_WRITE_NOW && plan.pod_devices[0] == DEVICE_HEARD &&
              plan.pod_devices[1] != DEVICE_HEARD);
    const cJSON *connected = condition_get(plan.status.conditions, "Connected");
    ck_assert_str_eq(json_string(json_get(connected, "message"), ""), "2 of 2 pods are heard");
}

TEST(silence_of_one_pod_is_its_own)
{
    index_ids();
    heartbeat_of(0);
    heartbeat_of(1);
    done();
    observed.now_ms += THRESHOLD_MS - 1;
    observed.now_us += (THRESHOLD_MS - 1) * INT64_C(1000);
    heartbeat_of(0);
    ck_assert_int_eq(done().deadline_ms, NOW_MS + THRESHOLD_MS); /* of the other */
    observed.now_ms++;
    struct proplet_plan plan = done();
    ck_assert_str_eq(devices_of(&plan), "alpha-0 connected, alpha-1 offline");
    ck_assert(plan.pod_devices[1] == DEVICE_SILENT && plan.pod_devices[0] != DEVICE_SILENT);
    ck_assert_str_eq(condition(&plan, "Connected"), "True Heartbeat");

    const struct proplet_device *lost = proplet_device_find(&plan.status, "alpha-1");
    int64_t since_us = lost->offline_since_us;
    ck_assert_int_eq(since_us, observed.now_us);
    observed.now_us += 1000000;
    plan = done();
    ck_assert(plan.write != PROPLET_WRITE_NOW);
    ck_assert_int_eq(proplet_device_find(&plan.status, "alpha-1")->offline_since_us, since_us);
}

TEST(one_pod_that_comes_as_another_goes_is_told)
{
    index_ids();
    heartbeat_of(0);
    done();
    devices[0].will = true;
    devices[0].alive = false;
    heartbeat_of(1);
    struct proplet_plan plan = done();
    ck_assert(plan.write == PROPLET_WRITE_NOW);
    ck_assert_str_eq(devices_of(&plan), "alpha-0 offline, alpha-1 connected");
}

TEST(client_ids_are_told_anew_when_pods_get_their_own)
{
    done();
    index_ids();
    k8s.replicas.value = 1;
    observed.pod_device_count = 1;
    struct proplet_plan plan = done();
    ck_assert(plan.write == PROPLET_WRITE_NOW);
    ck_assert_str_eq(devices_of(&plan), "alpha-0 offline");
}

TEST(another_leader_leaves_each_pod_as_it_was_until_it_has_heard)
{
    index_ids();
    heartbeat_of(1);
    done();
    memset(devices, 0, sizeof(devices));
    observed.channel = (struct channel_state){ 0 };
    struct proplet_plan plan = done();
    ck_assert(plan.write != PROPLET_WRITE_NOW);
    ck_assert(plan.pod_devices[1] != DEVICE_HEARD);
    ck_assert_str_eq(devices_of(&plan), "alpha-0 offline, alpha-1 connected");
}

TEST(scaled_to_zero_no_device_is_left)
{
    index_ids();
    heartbeat_of(0);
    done();
    k8s.replicas.value = 0;
    observed.pod_device_count = 0;
    struct proplet_plan plan = done();
    ck_assert(plan.write == PROPLET_WRITE_NOW);
    ck_assert_str_eq(devices_of(&plan), "");
    ck_assert_str_eq(condition(&plan, "Connected"), "False NoHeartbeat");
}

TEST(first_pod_that_is_heard_speaks_for_all_and_the_worst_for_their_health)
{
    index_ids();
    devices[0].metadata = "{\"hostname\":\"zero\"}";
    devices[1].metadata = "{\"hostname\":\"one\"}";
    heartbeat_of(1);
    struct proplet_plan plan = done();
    ck_assert_str_eq(json_string(json_get(plan.status.metadata, "hostname"), ""), "one");
    heartbeat_of(0);
    plan = done();
    ck_assert_str_eq(json_string(json_get(plan.status.metadata, "hostname"), ""), "zero");
    ck_assert_str_eq(condition(&plan, "Healthy"), "Unknown NoTaskYet");
    devices[0].answered = true;
    plan = done();
    ck_assert_str_eq(condition(&plan, "Healthy"), "True Answers");
    devices[1].unanswered = FLEET_MAX_UNANSWERED;
    plan = done();
    ck_assert_str_eq(condition(&plan, "Healthy"), "False NoResults");
}
