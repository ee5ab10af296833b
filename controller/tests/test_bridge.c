/* The two connections of the bridge against a real broker: what is acknowledged when, the marker.
 */
#include "controller/tests/bridge_rig.h"

static void wait_for_mail(size_t count)
{
    for (int i = 0; mailbox_len(rig.options.mailbox) != count; i++) {
        ck_assert_msg(i < MAX_POLLS, "%zu in the mailbox, not %zu",
                      mailbox_len(rig.options.mailbox), count);
        (void)poll(NULL, 0, 10);
    }
}

/* The marker has come back, so everything that the broker held before it has been handed over. */
static void wait_until_drained(void)
{
    for (int i = 0; !bridge_catches_up(rig.bridge, 0, &RIG_TASK); i++) {
        ck_assert_msg(i < MAX_POLLS, "the marker did not come back");
        (void)poll(NULL, 0, 10);
    }
}

static void wait_until_connected(bool connected)
{
    char why[256];

    for (int i = 0; bridge_connected(rig.bridge, why, sizeof(why)) != connected; i++) {
        ck_assert_msg(i < MAX_POLLS, "connected: %d, because %s", !connected, why);
        (void)poll(NULL, 0, 10);
    }
}

static bool broker_saw(const char *line)
{
    return rig_logged(line) > 0;
}

static size_t peek(struct mail **ret)
{
    return mailbox_peek(rig.options.mailbox, rig.arena, "uid-one", ret);
}

static size_t take_mail(void)
{
    struct mail *mail;
    size_t count = peek(&mail);

    if (count)
        mailbox_ack(rig.options.mailbox, "uid-one", mail[count - 1].sequence);
    return count;
}

TEST_GROUP("bridge", rig_set_up, rig_tear_down);

TEST(result_that_was_not_written_comes_again_to_the_next_process)
{
    struct mail *mail;

    rig_begin(&RIG_ROOMY);
    wait_until_drained();
    probe_publish(rig.device, RIG_RESULTS, RIG_RESULT);
    wait_for_mail(1);
    rig_end(); /* nothing was written, so nothing may have been acknowledged */

    rig_begin(&RIG_ROOMY);
    wait_for_mail(1);
    ck_assert_uint_eq(peek(&mail), 1);
    ck_assert_str_eq(mail->body, RIG_RESULT);
    ck_assert_str_eq(mail->source, "d/c");
    mailbox_ack(rig.options.mailbox, "uid-one", mail->sequence);
    probe_publish(rig.device, RIG_RESULTS,
                  RIG_RESULT); /* read only after the first was acknowledged */
    wait_for_mail(1);
    ck_assert_uint_eq(peek(&mail), 1);
    mailbox_ack(rig.options.mailbox, "uid-one", mail->sequence);
    rig_end();

    rig_begin(&RIG_ROOMY); /* both were written */
    wait_until_drained();
    ck_assert_uint_eq(mailbox_len(rig.options.mailbox), 0);
    rig_end();
}

static const char *const KEPT[] = { RIG_RESULTS, "m/d/c/c/control/proplet/invoke_results" };

TEST_EACH(broker_keeps_results_whatever_qos_is_chosen, KEPT)
{
    rig.options.qos = 0;
    rig_begin(&RIG_ROOMY);
    wait_until_drained();
    rig_end();
    probe_publish(rig.device, KEPT[_i], RIG_RESULT);

    rig_begin(&RIG_ROOMY);
    wait_for_mail(1);
    mailbox_ack(rig.options.mailbox, "uid-one", UINT64_MAX);
    rig_end();
}

TEST(marker_comes_behind_everything_that_waited_in_the_broker)
{
    enum { WAITING = 5 };
    size_t seen = 0;

    rig_begin(&RIG_ROOMY);
    wait_until_drained();
    rig_end();
    for (int i = 0; i < WAITING; i++)
        probe_publish(rig.device, RIG_RESULTS, RIG_RESULT);

    rig_begin(&RIG_ROOMY);
    for (int i = 0;
         !bridge_catches_up(rig.bridge, 0, &RIG_TASK) || mailbox_len(rig.options.mailbox); i++) {
        ck_assert_msg(i < MAX_POLLS, "the marker did not come back after %zu results", seen);
        seen += take_mail(); /* what is not acknowledged holds back what comes after it */
        (void)poll(NULL, 0, 10);
    }
    ck_assert_uint_eq(seen, WAITING);
    rig_end();
}

/* The reconciler saw the marker pending, and it came back before the request. */
TEST(request_for_a_marker_that_has_come_back_wakes_its_task_at_once)
{
    struct kube_name name;

    rig_begin(&RIG_ROOMY);
    wait_until_drained();
    while (workqueue_len(rig.task_queue)) {
        ck_assert(workqueue_get(rig.task_queue, &name));
        workqueue_done(rig.task_queue, &name);
    }
    bridge_fence_request(rig.bridge, 0, &RIG_TASK);
    ck_assert_uint_eq(workqueue_len(rig.task_queue), 1);
    rig_end();
}

#define WAITERS 50

static bool ask(int number, int64_t since_ms)
{
    struct kube_name name;

    ck_assert(kube_name_set(&name, "ns", arena_printf(rig.arena, "task-%d", number)));
    return bridge_catches_up(rig.bridge, since_ms, &name);
}

/* A result that is not written yet holds everything behind it back. */
static int64_t hold_back(void)
{
    rig_begin(&RIG_ROOMY);
    wait_until_drained();
    probe_publish(rig.device, RIG_RESULTS, RIG_RESULT);
    wait_for_mail(1);
    int64_t since_ms = clock_monotonic_ms(&CLOCK_SYSTEM);
    while (clock_monotonic_ms(&CLOCK_SYSTEM) == since_ms)
        (void)poll(NULL, 0, 1);
    return since_ms;
}

TEST(all_that_wait_share_a_marker_and_are_woken_by_it)
{
    probe_subscribe(rig.device, "m/d/c/c/control/controller/marker", 1);
    int64_t since_ms = hold_back();
    for (int i = 0; i < WAITERS; i++)
        ck_assert(!ask(i, since_ms));
    ck_assert_uint_lt(workqueue_len(rig.task_queue), WAITERS);

    (void)take_mail();
    for (int i = 0; workqueue_len(rig.task_queue) < WAITERS; i++) {
        ck_assert_msg(i < MAX_POLLS, "%zu woken", workqueue_len(rig.task_queue));
        (void)poll(NULL, 0, 10);
    }
    for (int i = 0; i < WAITERS; i++)
        ck_assert(ask(i, since_ms));
    ck_assert_uint_ge(probe_count(rig.device), 1);
    ck_assert_uint_le(probe_count(rig.device), 4); /* of the beginning, and this one */
    rig_end();
}

TEST(marker_that_died_with_the_broker_is_sent_again)
{
    int64_t since_ms = hold_back();
    ck_assert(!ask(1, since_ms));
    broker_kill(rig.broker);
    wait_until_connected(false);
    mailbox_ack(rig.options.mailbox, "uid-one", UINT64_MAX);
    broker_start(rig.broker);
    for (int i = 0; !ask(1, since_ms); i++) {
        ck_assert_msg(i < MAX_POLLS, "no marker came back");
        mailbox_ack(rig.options.mailbox, "uid-one", UINT64_MAX);
        (void)poll(NULL, 0, 10);
    }
    rig_end();
}

/* Nothing is written on the events connection while the mailbox holds anything. */
TEST(results_of_a_channel_are_heard_when_they_are_subscribed_to_and_not_when_heartbeats_are)
{
    (void)hold_back();
    bridge_channel_add(rig.bridge, "d/other");
    for (int i = 0; !bridge_channel_state(rig.bridge, "d/other").since_ms; i++) {
        ck_assert_msg(i < MAX_POLLS, "heartbeats are not heard");
        (void)poll(NULL, 0, 10);
    }
    ck_assert_int_eq(bridge_channel_state(rig.bridge, "d/other").results_since_ms, 0);

    mailbox_ack(rig.options.mailbox, "uid-one", UINT64_MAX);
    for (int i = 0; !bridge_channel_state(rig.bridge, "d/other").results_since_ms; i++) {
        ck_assert_msg(i < MAX_POLLS, "results are not heard");
        (void)poll(NULL, 0, 10);
    }
    rig_end();
}

TEST(result_of_an_unknown_task_is_acknowledged_and_holds_up_nobody)
{
    rig_begin(&RIG_ROOMY);
    wait_until_drained();
    probe_publish(rig.device, RIG_RESULTS, "{\"task_id\":\"uid-other\",\"results\":\"1\"}");
    probe_publish(rig.device, RIG_RESULTS, "not JSON");
    probe_publish(rig.device, RIG_RESULTS, RIG_RESULT);
    wait_for_mail(1);
    mailbox_ack(rig.options.mailbox, "uid-one", UINT64_MAX);
    rig_end();

    rig_begin(&RIG_ROOMY);
    wait_until_drained();
    ck_assert_uint_eq(mailbox_len(rig.options.mailbox), 0);
    rig_end();
}

/* A connection would take over the sessions of whoever leads. */
TEST(without_the_lease_neither_connection_is_made)
{
    size_t connections = rig_logged("New connection from");

    atomic_store(&rig.holds_lease, false);
    rig_begin(&RIG_ROOMY);
    rig_wait_asked();
    probe_publish(rig.device, "any", "the broker is up to date"); /* with what came before, too */
    ck_assert_uint_eq(rig_logged("New connection from"), connections);

    atomic_store(&rig.holds_lease, true);
    wait_until_drained();
    ck_assert(broker_saw(" as controller "));
    ck_assert(broker_saw(" as controller-results "));
    rig_end();
}

TEST(lease_that_is_lost_ends_both_connections_without_a_word)
{
    rig_begin(&RIG_ROOMY);
    wait_until_drained();
    atomic_store(&rig.holds_lease, false);
    for (int i = 0; !broker_saw("Client controller closed its connection") ||
                    !broker_saw("Client controller-results closed its connection");
         i++) {
        ck_assert_msg(i < MAX_POLLS, "a connection is still there");
        (void)poll(NULL, 0, 10);
    }
    ck_assert(!broker_saw("Received DISCONNECT from controller"));
    atomic_store(&rig.holds_lease, true);
    wait_until_connected(true);
    rig_end();
}

/* Its DISCONNECT would take the acknowledgements along. */
TEST(lease_that_is_lost_while_stopping_allows_no_goodbye)
{
    rig_begin(&RIG_ROOMY);
    wait_until_drained();
    atomic_store(&rig.holds_lease, false);
    rig_end();
    probe_publish(rig.device, "any", "the broker is up to date");
    ck_assert(!broker_saw("Received DISCONNECT from controller"));
}

TEST(lease_that_is_lost_while_connecting_ends_the_attempt)
{
    char why[256];

    broker_freeze(rig.broker); /* it accepts, and says nothing */
    rig_begin(&RIG_ROOMY);
    rig_wait_asked();
    atomic_store(&rig.holds_lease, false);
    for (int i = 0; bridge_connected(rig.bridge, why, sizeof(why)) || !strstr(why, "not allowed");
         i++) {
        ck_assert_msg(i < MAX_POLLS, "the attempt goes on: %s", why);
        (void)poll(NULL, 0, 10);
    }
    rig_end();
    broker_thaw(rig.broker);
}

TEST(without_the_lease_nothing_is_published)
{
    struct error err = { 0 };

    probe_subscribe(rig.device, "m/d/c/c/control/manager/start", 1);
    rig_begin(&RIG_ROOMY);
    wait_until_drained();
    atomic_store(&rig.holds_lease, false);
    int r = bridge_publish(rig.bridge, "d/c", "manager/start", "forbidden", 9, 1, &err);
    ck_assert_msg(r == -ERROR_CANCELED || r == -ERROR_UNAVAILABLE, "%d: %s", r, err.message);

    atomic_store(&rig.holds_lease, true);
    do { /* the connection that may not be used any more may not have ended yet */
        wait_until_connected(true);
        r = bridge_publish(rig.bridge, "d/c", "manager/start", "allowed", 7, 1, &err);
    } while (r == -ERROR_CANCELED || r == -ERROR_UNAVAILABLE);
    ck_assert_msg(r == 0, "%d: %s", r, err.message);
    probe_wait_messages(rig.device, 1);
    ck_assert_str_eq(probe_message(rig.device, 0).payload, "allowed");
    rig_end();
}

/* Written by the last breath of a leader, acknowledged by nobody: the next one sees it again. */
TEST(without_the_lease_nothing_is_acknowledged)
{
    rig_begin(&RIG_ROOMY);
    wait_until_drained();
    probe_publish(rig.device, RIG_RESULTS, RIG_RESULT);
    wait_for_mail(1);
    atomic_store(&rig.holds_lease, false);
    mailbox_ack(rig.options.mailbox, "uid-one", UINT64_MAX);
    wait_until_connected(false);
    rig_wait_asked();
    rig_end();

    atomic_store(&rig.holds_lease, true);
    rig_begin(&RIG_ROOMY);
    wait_for_mail(1);
    mailbox_ack(rig.options.mailbox, "uid-one", UINT64_MAX);
    rig_end();
}
