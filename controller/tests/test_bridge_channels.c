/* Many channels on the two connections of one bridge, against a real broker. */
#include "controller/bridge.h"

#include <poll.h>
#include <string.h>

#include "common/tests/mqtt_probe.h"
#include "common/tests/observe.h"
#include "common/tests/parse_json.h"
#include "common/tests/suite.h"
#include "controller/indexes.h"

/* Polls of 10 ms: half a minute, for a busy machine. */
#define MAX_POLLS 3000

static struct arena *arena;
static struct broker *broker;
static struct bridge_options options;
static struct bridge *bridge;
static struct workqueue *task_queue;
static struct workqueue *proplet_queue;

static void set_up(void)
{
    static const struct mailbox_limits LIMITS = { 16, 64, 1 << 20 };
    struct error err = { 0 };

    json_init();
    arena = arena_create();
    broker = broker_create();
    broker_start(broker);
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
        .clock = &CLOCK_SYSTEM,
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

START_TEST(channel_is_heard_as_long_as_a_proplet_is_on_it)
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
END_TEST

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

    ck_assert_int_eq(kube_object_create(parse_json(arena, text), &object, &err), 0);
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
START_TEST(refused_channel_wakes_all_its_proplets_and_fifty_others_are_heard)
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
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bridge: channels");
    TCase *tcase = tcase_create("channels");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, channel_is_heard_as_long_as_a_proplet_is_on_it);
    tcase_add_test(tcase, refused_channel_wakes_all_its_proplets_and_fifty_others_are_heard);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
