/* The two connections of the bridge against a real broker: what is acknowledged when, the marker.
 */
#include "controller/bridge/bridge.h"

#include <check.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/tests/mqtt_probe.h"
#include "common/tests/parse_json.h"
#include "common/tests/process.h"
#include "common/tests/suite.h"
#include "controller/cache/indexes.h"

#define RESULTS "m/d/c/c/control/proplet/results"
#define RESULT "{\"task_id\":\"uid-one\",\"proplet_id\":\"device-1\",\"results\":\"42\"}"
/* Polls of 10 ms: half a minute, for a busy machine. */
#define MAX_POLLS 3000

static const struct kube_name TASK = { .ns = "ns", .name = "one" };
static struct arena *arena;
static struct broker *broker;
static struct probe *device;
static struct bridge_options options;
static struct bridge *bridge;

/* The Lease, as the connections ask for it. */
static atomic_bool holds_lease;
static atomic_uint asked;

static bool may_act(void *ctx)
{
    ck_assert_ptr_eq(ctx, &asked);
    atomic_fetch_add(&asked, 1);
    return atomic_load(&holds_lease);
}

static void put_task(void)
{
    const char *text = "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"one\",\"uid\":\"uid-one\","
                       "\"resourceVersion\":\"5\"},\"status\":{\"phase\":\"running\","
                       "\"assignedProplet\":\"p\"}}";
    struct kube_object *object;
    struct error err = { 0 };

    ck_assert_int_eq(kube_object_create(parse_json(arena, text), &object, &err), 0);
    ck_assert(store_put(options.tasks, object, NULL));
    kube_object_unref(object);
}

static struct workqueue *task_queue;
static struct workqueue *proplet_queue;

/* As a process that starts: an empty mailbox, the broker's session as it was left. */
static void begin(void)
{
    static const struct mailbox_limits LIMITS = { 16, 64, 1 << 20 };
    struct error err = { 0 };

    options.mailbox = mailbox_create(&LIMITS);
    bridge = bridge_create(&options);
    bridge_set_queues(bridge, task_queue, proplet_queue);
    ck_assert_int_eq(bridge_start(bridge, &err), 0);
}

static void end(void)
{
    bridge_stop(bridge);
    bridge_destroy(bridge);
    mailbox_destroy(options.mailbox);
    bridge = NULL;
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
    options.connection.may_act_ctx = &asked;
    indexes_add_task(options.tasks);
    indexes_add_proplet(options.proplets);
    put_task();
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

static void wait_for_mail(size_t count)
{
    for (int i = 0; mailbox_len(options.mailbox) != count; i++) {
        ck_assert_msg(i < MAX_POLLS, "%zu in the mailbox, not %zu", mailbox_len(options.mailbox),
                      count);
        (void)poll(NULL, 0, 10);
    }
}

/* The marker has come back, so everything that the broker held before it has been handed over. */
static void wait_until_drained(void)
{
    for (int i = 0; !bridge_fence_passed(bridge, 0, &TASK); i++) {
        ck_assert_msg(i < MAX_POLLS, "the marker did not come back");
        (void)poll(NULL, 0, 10);
    }
}

static void wait_until_connected(bool connected)
{
    char why[256];

    for (int i = 0; bridge_connected(bridge, why, sizeof(why)) != connected; i++) {
        ck_assert_msg(i < MAX_POLLS, "connected: %d, because %s", !connected, why);
        (void)poll(NULL, 0, 10);
    }
}

/* Both connections have asked for the Lease again, and several times. */
static void wait_until_asked(void)
{
    unsigned before = atomic_load(&asked);

    for (int i = 0; atomic_load(&asked) - before < 10; i++) {
        ck_assert_msg(i < MAX_POLLS, "nobody asks for the Lease");
        (void)poll(NULL, 0, 10);
    }
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

static bool broker_saw(const char *line)
{
    return broker_count(line) > 0;
}

static size_t peek(struct mail **ret)
{
    return mailbox_peek(options.mailbox, arena, "uid-one", ret);
}

static size_t take_mail(void)
{
    struct mail *mail;
    size_t count = peek(&mail);

    if (count)
        mailbox_ack(options.mailbox, "uid-one", mail[count - 1].sequence);
    return count;
}

START_TEST(result_that_was_not_written_comes_again_to_the_next_process)
{
    struct mail *mail;

    begin();
    wait_until_drained();
    probe_publish(device, RESULTS, RESULT);
    wait_for_mail(1);
    end(); /* nothing was written, so nothing may have been acknowledged */

    begin();
    wait_for_mail(1);
    ck_assert_uint_eq(peek(&mail), 1);
    ck_assert_str_eq(mail->body, RESULT);
    ck_assert_str_eq(mail->source, "d/c");
    mailbox_ack(options.mailbox, "uid-one", mail->sequence);
    probe_publish(device, RESULTS, RESULT); /* read only after the first was acknowledged */
    wait_for_mail(1);
    ck_assert_uint_eq(peek(&mail), 1);
    mailbox_ack(options.mailbox, "uid-one", mail->sequence);
    end();

    begin(); /* both were written */
    wait_until_drained();
    ck_assert_uint_eq(mailbox_len(options.mailbox), 0);
    end();
}
END_TEST

START_TEST(broker_keeps_results_whatever_qos_is_chosen)
{
    options.qos = 0;
    begin();
    wait_until_drained();
    end();
    probe_publish(device, RESULTS, RESULT);

    begin();
    wait_for_mail(1);
    mailbox_ack(options.mailbox, "uid-one", UINT64_MAX);
    end();
}
END_TEST

START_TEST(marker_comes_behind_everything_that_waited_in_the_broker)
{
    enum { WAITING = 5 };
    size_t seen = 0;

    begin();
    wait_until_drained();
    end();
    for (int i = 0; i < WAITING; i++)
        probe_publish(device, RESULTS, RESULT);

    begin();
    for (int i = 0; !bridge_fence_passed(bridge, 0, &TASK) || mailbox_len(options.mailbox); i++) {
        ck_assert_msg(i < MAX_POLLS, "the marker did not come back after %zu results", seen);
        seen += take_mail(); /* what is not acknowledged holds back what comes after it */
        (void)poll(NULL, 0, 10);
    }
    ck_assert_uint_eq(seen, WAITING);
    end();
}
END_TEST

#define WAITERS 50

static bool ask(int number, int64_t since_ms)
{
    struct kube_name name;

    ck_assert(kube_name_set(&name, "ns", arena_printf(arena, "task-%d", number)));
    return bridge_fence_passed(bridge, since_ms, &name);
}

/* A result that is not written yet holds everything behind it back. */
static int64_t hold_back(void)
{
    begin();
    wait_until_drained();
    probe_publish(device, RESULTS, RESULT);
    wait_for_mail(1);
    int64_t since_ms = clock_monotonic_ms(&CLOCK_SYSTEM);
    while (clock_monotonic_ms(&CLOCK_SYSTEM) == since_ms)
        (void)poll(NULL, 0, 1);
    return since_ms;
}

START_TEST(all_that_wait_share_a_marker_and_are_woken_by_it)
{
    probe_subscribe(device, "m/d/c/c/control/controller/marker", 1);
    int64_t since_ms = hold_back();
    for (int i = 0; i < WAITERS; i++)
        ck_assert(!ask(i, since_ms));
    ck_assert_uint_lt(workqueue_len(task_queue), WAITERS);

    (void)take_mail();
    for (int i = 0; workqueue_len(task_queue) < WAITERS; i++) {
        ck_assert_msg(i < MAX_POLLS, "%zu woken", workqueue_len(task_queue));
        (void)poll(NULL, 0, 10);
    }
    for (int i = 0; i < WAITERS; i++)
        ck_assert(ask(i, since_ms));
    ck_assert_uint_ge(probe_count(device), 1);
    ck_assert_uint_le(probe_count(device), 4); /* of the beginning, and this one */
    end();
}
END_TEST

START_TEST(marker_that_died_with_the_broker_is_sent_again)
{
    int64_t since_ms = hold_back();
    ck_assert(!ask(1, since_ms));
    broker_kill(broker);
    wait_until_connected(false);
    mailbox_ack(options.mailbox, "uid-one", UINT64_MAX);
    broker_start(broker);
    for (int i = 0; !ask(1, since_ms); i++) {
        ck_assert_msg(i < MAX_POLLS, "no marker came back");
        mailbox_ack(options.mailbox, "uid-one", UINT64_MAX);
        (void)poll(NULL, 0, 10);
    }
    end();
}
END_TEST

/* Nothing is written on the events connection while the mailbox holds anything. */
START_TEST(results_of_a_channel_are_heard_when_they_are_subscribed_to_and_not_when_heartbeats_are)
{
    (void)hold_back();
    bridge_channel_add(bridge, "d/other");
    for (int i = 0; !bridge_channel_state(bridge, "d/other").since_ms; i++) {
        ck_assert_msg(i < MAX_POLLS, "heartbeats are not heard");
        (void)poll(NULL, 0, 10);
    }
    ck_assert_int_eq(bridge_channel_state(bridge, "d/other").results_since_ms, 0);

    mailbox_ack(options.mailbox, "uid-one", UINT64_MAX);
    for (int i = 0; !bridge_channel_state(bridge, "d/other").results_since_ms; i++) {
        ck_assert_msg(i < MAX_POLLS, "results are not heard");
        (void)poll(NULL, 0, 10);
    }
    end();
}
END_TEST

START_TEST(result_of_an_unknown_task_is_acknowledged_and_holds_up_nobody)
{
    begin();
    wait_until_drained();
    probe_publish(device, RESULTS, "{\"task_id\":\"uid-other\",\"results\":\"1\"}");
    probe_publish(device, RESULTS, "not JSON");
    probe_publish(device, RESULTS, RESULT);
    wait_for_mail(1);
    mailbox_ack(options.mailbox, "uid-one", UINT64_MAX);
    end();

    begin();
    wait_until_drained();
    ck_assert_uint_eq(mailbox_len(options.mailbox), 0);
    end();
}
END_TEST

/* A connection would take over the sessions of whoever leads. */
START_TEST(without_the_lease_neither_connection_is_made)
{
    size_t connections = broker_count("New connection from");

    atomic_store(&holds_lease, false);
    begin();
    wait_until_asked();
    probe_publish(device, "any", "the broker is up to date"); /* with what came before, too */
    ck_assert_uint_eq(broker_count("New connection from"), connections);

    atomic_store(&holds_lease, true);
    wait_until_drained();
    ck_assert(broker_saw(" as controller "));
    ck_assert(broker_saw(" as controller-results "));
    end();
}
END_TEST

START_TEST(lease_that_is_lost_ends_both_connections_without_a_word)
{
    begin();
    wait_until_drained();
    atomic_store(&holds_lease, false);
    for (int i = 0; !broker_saw("Client controller closed its connection") ||
                    !broker_saw("Client controller-results closed its connection");
         i++) {
        ck_assert_msg(i < MAX_POLLS, "a connection is still there");
        (void)poll(NULL, 0, 10);
    }
    ck_assert(!broker_saw("Received DISCONNECT from controller"));
    atomic_store(&holds_lease, true);
    wait_until_connected(true);
    end();
}
END_TEST

/* Its DISCONNECT would take the acknowledgements along. */
START_TEST(lease_that_is_lost_while_stopping_allows_no_goodbye)
{
    begin();
    wait_until_drained();
    atomic_store(&holds_lease, false);
    end();
    probe_publish(device, "any", "the broker is up to date");
    ck_assert(!broker_saw("Received DISCONNECT from controller"));
}
END_TEST

START_TEST(lease_that_is_lost_while_connecting_ends_the_attempt)
{
    char why[256];

    broker_freeze(broker); /* it accepts, and says nothing */
    begin();
    wait_until_asked();
    atomic_store(&holds_lease, false);
    for (int i = 0; bridge_connected(bridge, why, sizeof(why)) || !strstr(why, "not allowed");
         i++) {
        ck_assert_msg(i < MAX_POLLS, "the attempt goes on: %s", why);
        (void)poll(NULL, 0, 10);
    }
    end();
    broker_thaw(broker);
}
END_TEST

START_TEST(without_the_lease_nothing_is_published)
{
    struct error err = { 0 };

    probe_subscribe(device, "m/d/c/c/control/manager/start", 1);
    begin();
    wait_until_drained();
    atomic_store(&holds_lease, false);
    int r = bridge_publish(bridge, "d/c", "manager/start", "forbidden", 9, 1, &err);
    ck_assert_msg(r == -ERROR_CANCELED || r == -ERROR_UNAVAILABLE, "%d: %s", r, err.message);

    atomic_store(&holds_lease, true);
    wait_until_connected(true);
    ck_assert_int_eq(bridge_publish(bridge, "d/c", "manager/start", "allowed", 7, 1, &err), 0);
    probe_wait_messages(device, 1);
    ck_assert_str_eq(probe_message(device, 0).payload, "allowed");
    end();
}
END_TEST

/* Written by the last breath of a leader, acknowledged by nobody: the next one sees it again. */
START_TEST(without_the_lease_nothing_is_acknowledged)
{
    begin();
    wait_until_drained();
    probe_publish(device, RESULTS, RESULT);
    wait_for_mail(1);
    atomic_store(&holds_lease, false);
    mailbox_ack(options.mailbox, "uid-one", UINT64_MAX);
    wait_until_connected(false);
    wait_until_asked();
    end();

    atomic_store(&holds_lease, true);
    begin();
    wait_for_mail(1);
    mailbox_ack(options.mailbox, "uid-one", UINT64_MAX);
    end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bridge");
    TCase *tcase = tcase_create("bridge");

    tcase_set_timeout(tcase, 90);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, result_that_was_not_written_comes_again_to_the_next_process);
    tcase_add_test(tcase, broker_keeps_results_whatever_qos_is_chosen);
    tcase_add_test(tcase, marker_comes_behind_everything_that_waited_in_the_broker);
    tcase_add_test(tcase, all_that_wait_share_a_marker_and_are_woken_by_it);
    tcase_add_test(tcase, marker_that_died_with_the_broker_is_sent_again);
    tcase_add_test(
        tcase,
        results_of_a_channel_are_heard_when_they_are_subscribed_to_and_not_when_heartbeats_are);
    tcase_add_test(tcase, result_of_an_unknown_task_is_acknowledged_and_holds_up_nobody);
    tcase_add_test(tcase, without_the_lease_neither_connection_is_made);
    tcase_add_test(tcase, lease_that_is_lost_ends_both_connections_without_a_word);
    tcase_add_test(tcase, lease_that_is_lost_while_stopping_allows_no_goodbye);
    tcase_add_test(tcase, lease_that_is_lost_while_connecting_ends_the_attempt);
    tcase_add_test(tcase, without_the_lease_nothing_is_published);
    tcase_add_test(tcase, without_the_lease_nothing_is_acknowledged);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
