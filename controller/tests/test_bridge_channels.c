/* Many channels on the two connections of one bridge, against a real broker. */
#include "controller/bridge/bridge.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "common/tests/fake_clock.h"
#include "common/tests/mqtt_probe.h"
#include "common/tests/observe.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "controller/bridge/bridge_fence.h"
#include "controller/cache/indexes.h"
#include "controller/tests/bridge_rig.h"

/* Polls of 10 ms: two minutes, for a busy machine. */
#define MAX_POLLS 12000

static struct arena *arena;
static struct broker *broker;
static struct bridge_options options;
static struct bridge *bridge;
static struct workqueue *task_queue;
static struct workqueue *proplet_queue;

/* Of the bridge alone: how long a marker may take. */
static struct fake_clock fence_clock;

/* Whoever may not publish on a topic is acknowledged nevertheless, or disconnected (MQTT 3.1.1,
 * 3.3.5). */
static void forbid_markers(void)
{
    const char *path = arena_printf(arena, "%s/acl", broker_dir(broker));
    FILE *file = fopen(path, "we");

    ck_assert_ptr_nonnull(file);
    fputs("topic readwrite m/d/c/+/control/proplet/#\n"
          "topic readwrite m/d/c/+/control/controller/quarantine/#\n"
          "topic read m/d/c/+/control/controller/marker\n"
          "topic write m/d/c/open/control/controller/marker\n",
          file);
    ck_assert_int_eq(fclose(file), 0);
    broker_configure(broker, arena_printf(arena, "acl_file %s", path));
}

static void set_up(void)
{
    static const struct mailbox_limits LIMITS = { 16, 64, 1 << 20 };
    struct error err = { 0 };

    json_init();
    arena = arena_create();
    broker = broker_create();
    forbid_markers();
    broker_start(broker);
    fake_clock_init(&fence_clock);
    options = (struct bridge_options){
        .connection = probe_options(broker, NULL),
        .client_id = "controller",
        .qos = 1,
        .timeout_ms = 10000,
        .tasks = store_create(),
        .proplets = store_create(),
        .fleet = fleet_create(),
        .attempts = attempts_create(),
        .mailbox = mailbox_create(&LIMITS),
        .clock = &fence_clock.clock,
    };
    indexes_add_task(options.tasks);
    indexes_add_proplet(options.proplets);
    task_queue = workqueue_create("task", &CLOCK_SYSTEM);
    proplet_queue = workqueue_create("proplet", &CLOCK_SYSTEM);
    bridge = bridge_create(&options);
    bridge_set_queues(bridge, task_queue, proplet_queue);
    ck_assert_int_eq(bridge_start(bridge, &err), 0);
}

static void tear_down(void)
{
    bridge_stop(bridge);
    bridge_destroy(bridge);
    workqueue_destroy(task_queue);
    workqueue_destroy(proplet_queue);
    mailbox_destroy(options.mailbox);
    attempts_destroy(options.attempts);
    fleet_destroy(options.fleet);
    store_destroy(options.tasks);
    store_destroy(options.proplets);
    broker_destroy(broker);
    arena_destroy(arena);
}

TEST_GROUP("channels", set_up, tear_down);

TEST(channel_is_heard_as_long_as_a_proplet_is_on_it)
{
    bridge_channel_add(bridge, "d/other");
    for (int i = 0; !bridge_channel_state(bridge, "d/other").since_ms; i++) {
        ck_assert(i < MAX_POLLS);
        (void)poll(NULL, 0, 10);
    }
    ck_assert(!bridge_channel_state(bridge, "d/other").refused);
    bridge_channel_remove(bridge, "d/other");
    ck_assert_int_eq(bridge_channel_state(bridge, "d/other").since_ms, 0);
}

static void put_proplet(const char *name, const char *channel)
{
    struct error err = { 0 };
    struct kube_object *object;
    const char *text = arena_printf(
        arena,
        "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"%s\",\"uid\":\"uid-%s\","
        "\"resourceVersion\":\"5\"},\"spec\":{\"connectionConfig\":{\"domainId\":\"d\","
        "\"channelId\":\"%s\",\"clientId\":\"%s\"}}}",
        name, name, channel, name);

    ck_assert_int_eq(kube_object_create(parsed(arena, text), &object, &err), 0);
    ck_assert(store_put(options.proplets, object, NULL));
    kube_object_unref(object);
}

static void wait_until_woken(const char *const *names, size_t count)
{
    struct kube_name name;

    for (size_t seen = 0, i = 0; seen < count; i++) {
        ck_assert_msg(i < MAX_POLLS, "'%s' was not woken", names[seen]);
        while (workqueue_len(proplet_queue)) { /* in the order in which they were added */
            ck_assert(workqueue_get(proplet_queue, &name));
            workqueue_done(proplet_queue, &name);
            seen += seen < count && !strcmp(name.name, names[seen]);
        }
        (void)poll(NULL, 0, 10);
    }
}

/* No broker grants a filter with '#' in the middle. */
TEST(refused_channel_wakes_all_its_proplets_and_fifty_others_are_heard)
{
    enum { CHANNELS = 50 };
    static const char *const FORBIDDEN[] = { "forbidden-1", "forbidden-2" };
    char why[256];

    put_proplet(FORBIDDEN[0], "#");
    put_proplet(FORBIDDEN[1], "#");
    for (int i = 0; !bridge_connected(bridge, why, sizeof(why)); i++) {
        ck_assert_msg(i < MAX_POLLS, "not connected: %s", why);
        (void)poll(NULL, 0, 10);
    }
    bridge_channel_add(bridge, "d/#");
    wait_until_woken(FORBIDDEN, ARRAY_LEN(FORBIDDEN));
    for (int i = 0; !bridge_channel_state(bridge, "d/#").refused; i++) {
        ck_assert(i < MAX_POLLS);
        (void)poll(NULL, 0, 10);
    }
    ck_assert_int_eq(bridge_channel_state(bridge, "d/#").since_ms, 0);

    for (int n = 0; n < CHANNELS; n++)
        bridge_channel_add(bridge, arena_printf(arena, "d/%d", n));
    for (int n = 0; n < CHANNELS; n++) {
        const char *channel = arena_printf(arena, "d/%d", n);
        for (int i = 0; !bridge_channel_state(bridge, channel).since_ms; i++) {
            ck_assert(i < MAX_POLLS);
            (void)poll(NULL, 0, 10);
        }
        ck_assert(!bridge_channel_state(bridge, channel).refused);
    }
    ck_metric("propeller_mqtt_connects_total{connection=\"control\"} 1");
    ck_metric("propeller_mqtt_connects_total{connection=\"events\"} 1");
    ck_metric("propeller_reclaim_subscriptions_refused_total 1");
}

static void put_task(const char *proplet)
{
    struct error err = { 0 };
    struct kube_object *object;
    const char *text = arena_printf(
        arena,
        "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"on-%s\",\"uid\":\"uid-%s\","
        "\"resourceVersion\":\"5\"},\"status\":{\"phase\":\"running\",\"assignedProplet\":\"%s\"}}",
        proplet, proplet, proplet);

    ck_assert_int_eq(kube_object_create(parsed(arena, text), &object, &err), 0);
    ck_assert(store_put(options.tasks, object, NULL));
    kube_object_unref(object);
}

static void wait_until_connected(void)
{
    char why[256];

    for (int i = 0; !bridge_connected(bridge, why, sizeof(why)); i++) {
        ck_assert_msg(i < MAX_POLLS, "not connected: %s", why);
        (void)poll(NULL, 0, 10);
    }
}

/* Heartbeats and results of d/open, or neither. */
static void wait_until_heard(bool heard)
{
    for (int i = 0;; i++) {
        struct channel_state state = bridge_channel_state(bridge, "d/open");
        if ((state.since_ms != 0) == heard && (state.results_since_ms != 0) == heard)
            return;
        ck_assert_msg(i < MAX_POLLS, "heard: %d, results %d", state.since_ms != 0,
                      state.results_since_ms != 0);
        (void)poll(NULL, 0, 10);
    }
}

/* Their start may have waited for it. */
TEST(tasks_are_woken_when_results_of_their_channel_are_heard)
{
    wait_until_connected();
    put_proplet("alpha", "open");
    put_task("alpha");

    bridge_channel_add(bridge, "d/open");
    for (int i = 0; !workqueue_len(task_queue); i++) {
        ck_assert_msg(i < MAX_POLLS, "the Task was not woken");
        (void)poll(NULL, 0, 10);
    }
}

static const struct kube_name WAITER = { .ns = "ns", .name = "one" };

TEST(marker_that_the_broker_does_not_take_goes_by_another_channel)
{
    static const char *const CHANNELS[] = { "d/mute", "d/open" };

    for (size_t n = 0; n < ARRAY_LEN(CHANNELS); n++)
        bridge_channel_add(bridge, CHANNELS[n]);
    for (size_t n = 0; n < ARRAY_LEN(CHANNELS); n++) {
        for (int i = 0; !bridge_channel_state(bridge, CHANNELS[n]).since_ms; i++) {
            ck_assert(i < MAX_POLLS);
            (void)poll(NULL, 0, 10);
        }
    }
    for (int i = 0; !bridge_catches_up(bridge, 0, &WAITER); i++) {
        ck_assert_msg(i < MAX_POLLS, "no marker came back");
        if (i % 200 == 0) /* a marker that is on its way gets its time */
            fake_clock_advance(&fence_clock, FENCE_TIMEOUT_MS);
        (void)poll(NULL, 0, 10);
    }
    ck_assert(!bridge_marker_overdue(bridge));
}

static void wait_until_task_is_woken(const char *wanted)
{
    struct kube_name name = { 0 };

    for (int i = 0; strcmp(name.name, wanted) != 0; i++) {
        ck_assert_msg(i < MAX_POLLS, "'%s' was not woken", wanted);
        for (; workqueue_len(task_queue) && strcmp(name.name, wanted) != 0;
             workqueue_done(task_queue, &name))
            ck_assert(workqueue_get(task_queue, &name));
        (void)poll(NULL, 0, 10);
    }
}

TEST(connection_that_ended_tells_nothing_any_more)
{
    struct mqtt_options sender = probe_options(broker, "alpha");
    struct mail *mail = NULL;

    bridge_channel_add(bridge, "d/open");
    wait_until_heard(true);
    fake_clock_advance(&fence_clock, 1); /* the marker is sent after the connection began */
    for (int i = 0; !bridge_catches_up(bridge, 0, &WAITER); i++) {
        ck_assert_msg(i < MAX_POLLS, "no marker came back");
        (void)poll(NULL, 0, 10);
    }

    broker_kill(broker);
    wait_until_heard(false);
    put_proplet("alpha", "open");
    put_task("alpha");
    put_task("unknown"); /* woken by nothing but the connection */
    broker_start(broker);
    wait_until_heard(true);
    wait_until_task_is_woken("on-unknown");

    struct probe *device = probe_create(&sender, false);
    probe_start(device);
    probe_publish(device, "m/d/c/open/control/proplet/create", "{\"proplet_id\":\"alpha\"}");
    for (int i = 0; !mailbox_peek(options.mailbox, arena, "uid-alpha", &mail); i++) {
        ck_assert_msg(i < MAX_POLLS, "the create did not come");
        (void)poll(NULL, 0, 10);
    }
    ck_assert_str_eq(mail->kind, "stored restart"); /* no marker of this connection is back */
    mailbox_ack(options.mailbox, "uid-alpha", UINT64_MAX);
    probe_destroy(device);
}
