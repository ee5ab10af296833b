/* What the bridge believes while its connections are away, and after that, against a real broker.
 */
#include "controller/bridge/bridge.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/tests/mqtt_probe.h"
#include "common/tests/parse_json.h"
#include "common/tests/process.h"
#include "common/tests/suite.h"
#include "controller/bridge/bridge_messages.h"
#include "controller/cache/indexes.h"

#define RESULTS "m/d/c/c/control/proplet/results"
#define RESULT "{\"task_id\":\"uid-one\",\"proplet_id\":\"device-1\",\"results\":\"42\"}"
#define SENT "Sending PUBLISH to controller-results"
#define CREATE "m/d/c/c/control/proplet/create"
#define CREATED "{\"proplet_id\":\"device-1\"}"

/* Half a minute, for a busy machine. */
#define POLL_MS 10
#define MAX_POLLS 3000
#define poll_until(condition)                                                                      \
    do {                                                                                           \
        for (int polls = 0; !(condition); polls++) {                                               \
            ck_assert_msg(polls < MAX_POLLS, "not in time: %s", #condition);                       \
            (void)poll(NULL, 0, POLL_MS);                                                          \
        }                                                                                          \
    } while (0)

static const struct kube_name TASK = { .ns = "ns", .name = "one" };
/* No result fits. */
static const struct mailbox_limits TINY = { 1, 1, 16 };
static const struct mailbox_limits ROOMY = { 16, 64, 1 << 20 };

static struct arena *arena;
static struct broker *broker;
static struct probe *device;
static struct bridge_options options;
static struct bridge *bridge;
static struct workqueue *task_queue;
static struct workqueue *proplet_queue;
static atomic_bool holds_lease;
static atomic_uint asked;

static bool may_act(void *ctx UNUSED)
{
    atomic_fetch_add(&asked, 1);
    return atomic_load(&holds_lease);
}

static void put(struct store *store, const char *text)
{
    struct kube_object *object;
    struct error err = { 0 };

    ck_assert_int_eq(kube_object_create(parse_json(arena, text), &object, &err), 0);
    ck_assert(store_put(store, object, NULL));
    kube_object_unref(object);
}

static void begin(const struct mailbox_limits *limits)
{
    struct error err = { 0 };

    options.mailbox = mailbox_create(limits);
    bridge = bridge_create(&options);
    bridge_set_queues(bridge, task_queue, proplet_queue);
    ck_assert_int_eq(bridge_start(bridge, &err), 0);
}

static void end(void)
{
    bridge_stop(bridge);
    bridge_destroy(bridge);
    mailbox_destroy(options.mailbox);
}

static void set_up(void)
{
    json_init();
    arena = arena_create();
    broker = broker_create();
    broker_start(broker);
    atomic_init(&holds_lease, true);
    options = (struct bridge_options){
        .connection = probe_options(broker, NULL),
        .client_id = "controller",
        .qos = 1,
        .timeout_ms = 10000,
        .own_channel = "d/c",
        .tasks = store_create(),
        .proplets = store_create(),
        .fleet = fleet_create(),
        .attempts = attempts_create(),
        .clock = &CLOCK_SYSTEM,
    };
    options.connection.may_act = may_act;
    indexes_add_task(options.tasks);
    indexes_add_proplet(options.proplets);
    put(options.tasks, "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"one\",\"uid\":\"uid-one\","
                       "\"resourceVersion\":\"5\"},\"status\":{\"phase\":\"running\","
                       "\"assignedProplet\":\"p\"}}");
    task_queue = workqueue_create("task", &CLOCK_SYSTEM);
    proplet_queue = workqueue_create("proplet", &CLOCK_SYSTEM);

    struct mqtt_options sender = probe_options(broker, "device-1");
    device = probe_create(&sender, false);
    probe_start(device);
}

static void tear_down(void)
{
    probe_destroy(device);
    workqueue_destroy(task_queue);
    workqueue_destroy(proplet_queue);
    attempts_destroy(options.attempts);
    fleet_destroy(options.fleet);
    store_destroy(options.tasks);
    store_destroy(options.proplets);
    broker_destroy(broker);
    arena_destroy(arena);
}

static size_t broker_count(const char *line)
{
    char *log = temp_file_read(broker_dir(broker), "log");
    size_t count = 0;

    for (const char *at = strstr(log, line); at; at = strstr(at + 1, line))
        count++;
    free(log);
    return count;
}

static struct channel_state state(void)
{
    return bridge_channel_state(bridge, "d/c");
}

static void expect_active_task_woken(void)
{
    struct kube_name name;

    ck_assert_uint_eq(workqueue_len(task_queue), 1);
    ck_assert(workqueue_get(task_queue, &name));
    ck_assert_str_eq(name.name, TASK.name);
    workqueue_done(task_queue, &name);
    ck_assert_uint_eq(workqueue_len(task_queue), 0);
}

/* A device is silent to whoever does not hear it, and that is no fault of the device. */
START_TEST(channel_is_heard_only_while_connected_and_active_tasks_look_again)
{
    begin(&ROOMY);
    poll_until(state().since_ms && state().results_since_ms);
    expect_active_task_woken();
    struct channel_state before = state();

    broker_kill(broker);
    poll_until(!state().since_ms);
    poll_until(!state().results_since_ms);
    ck_assert_uint_eq(workqueue_len(task_queue), 0);

    broker_start(broker);
    poll_until(state().since_ms && state().results_since_ms);
    ck_assert_int_gt(state().since_ms, before.since_ms);
    ck_assert_int_gt(state().results_since_ms, before.results_since_ms);
    expect_active_task_woken();
    end();
}
END_TEST

/* A marker of this connection has come back. */
static void wait_until_caught_up(void)
{
    poll_until(state().since_ms && state().results_since_ms);
    int64_t now_ms = clock_monotonic_ms(&CLOCK_SYSTEM);
    poll_until(bridge_fence_passed(bridge, now_ms, &TASK));
}

/* The oldest: what was written but not acknowledged in time comes again with the next. */
static void expect_mail(const char *kind)
{
    struct mail *mail;

    poll_until(mailbox_len(options.mailbox));
    ck_assert_uint_ge(mailbox_peek(options.mailbox, arena, "uid-one", &mail), 1);
    ck_assert_str_eq(mail->kind, kind);
    mailbox_ack(options.mailbox, "uid-one", mail->sequence);
}

START_TEST(result_that_does_not_fit_is_not_acknowledged_and_comes_again_to_the_next_process)
{
    begin(&TINY);
    wait_until_caught_up();
    size_t sent = broker_count(SENT);
    probe_publish(device, RESULTS, RESULT);
    poll_until(broker_count(SENT) > sent);
    unsigned before = atomic_load(&asked);
    poll_until(atomic_load(&asked) - before >= 10); /* time to read it, and to acknowledge it */
    ck_assert_uint_eq(mailbox_len(options.mailbox), 0);
    end();

    begin(&ROOMY);
    expect_mail(MAIL_RESULT);
    end();
}
END_TEST

START_TEST(restart_that_was_stored_while_the_connection_was_away_may_be_old)
{
    put(options.proplets, "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"p\",\"uid\":\"uid-p\","
                          "\"resourceVersion\":\"6\"},\"spec\":{\"connectionConfig\":{"
                          "\"domainId\":\"d\",\"channelId\":\"c\",\"clientId\":\"device-1\"}}}");
    begin(&ROOMY);
    wait_until_caught_up();
    probe_publish(device, CREATE, CREATED);
    expect_mail(MAIL_RESTART);

    atomic_store(&holds_lease, false);
    poll_until(broker_count("Client controller-results closed its connection"));
    probe_publish(device, CREATE, CREATED);
    atomic_store(&holds_lease, true);
    expect_mail(MAIL_STORED_RESTART); /* nobody has asked for a marker since */
    end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bridge: outages");
    TCase *tcase = tcase_create("outages");

    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, channel_is_heard_only_while_connected_and_active_tasks_look_again);
    tcase_add_test(
        tcase, result_that_does_not_fit_is_not_acknowledged_and_comes_again_to_the_next_process);
    tcase_add_test(tcase, restart_that_was_stored_while_the_connection_was_away_may_be_old);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
