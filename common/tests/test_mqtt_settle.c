/* Acknowledgement after the write, against a real broker. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/prctl.h>

#include "common/base/str.h"
#include "common/tests/mqtt_probe.h"
#include "common/tests/process.h"
#include "common/tests/suite.h"

static struct broker *broker;
static struct probe *sender;
static struct probe *events;

static struct mqtt_options events_options(void)
{
    struct mqtt_options options = probe_options(broker, "events");

    options.clean_session = false;
    return options;
}

static void connect_events(void)
{
    struct mqtt_options options = events_options();

    events = probe_create(&options, true);
    mqtt_subscribe(probe_mqtt(events), "results", 1);
    probe_start(events);
}

/* The session exists when this returns: what is published from now on is for it. */
static void make_session(void)
{
    connect_events();
    ck_assert_int_eq(probe_granted(events, "results"), 1);
}

static void set_up(void)
{
    broker = broker_create();
    broker_start(broker);
}

static void tear_down(void)
{
    probe_destroy(events);
    probe_destroy(sender);
    broker_destroy(broker);
}

TEST_GROUP("settle", set_up, tear_down);

/* Five messages are read in one go, and wait to be settled. */
static void have_five_unsettled(void)
{
    probe_hold(events, true);
    probe_publish_numbers(sender, "results", 0, 5);
    probe_hold(events, false);
    probe_wait_asked_to_settle(events, 5);
}

static void check_numbers(size_t from, int first, int end, bool duplicate)
{
    probe_wait_messages(events, from + (size_t)(end - first));
    for (int i = first; i < end; i++) {
        struct probe_message message = probe_message(events, from + (size_t)(i - first));

        ck_assert_int_eq(strtol(message.payload, NULL, 10), i);
        ck_assert_int_eq(message.duplicate, duplicate);
    }
}

TEST(unsettled_messages_come_again_to_the_next_process)
{
    make_session();
    sender = probe_connect(broker, "sender");
    have_five_unsettled();
    check_numbers(0, 0, 5, false);
    probe_destroy(events); /* settle() is false: nothing is acknowledged on the way out */

    connect_events();
    ck_assert(probe_session_present(events));
    probe_set_settled(events, true);
    check_numbers(0, 0, 5, true);
}

/* One byte for each message; this process waits to be killed. */
static void tell_parent(void *ctx, const char *topic, const void *payload, size_t len,
                        bool duplicate)
{
    (void)topic;
    (void)payload;
    (void)len;
    (void)duplicate;
    ck_assert_int_eq(write(*(int *)ctx, "", 1), 1);
}

static bool never(void *ctx, uint32_t timeout_ms)
{
    (void)ctx;
    poll(NULL, 0, (int)timeout_ms); /* real time: as settling takes that does not succeed */
    return false;
}

static pid_t fork_events(int *ret_pipe)
{
    static int pipe_fds[2];

    ck_assert_int_eq(pipe(pipe_fds), 0);

    pid_t pid = fork();

    if (pid == 0) {
        struct mqtt_options options = events_options();
        struct mqtt_handlers handlers = { .ctx = &pipe_fds[1], .message = tell_parent };

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        options.settle = never;

        struct mqtt *mqtt = mqtt_create(&options, &handlers);
        struct error err;

        mqtt_subscribe(mqtt, "results", 1);
        if (mqtt_start(mqtt, &err) == 0)
            pause();
        _exit(1);
    }
    close(pipe_fds[1]);
    *ret_pipe = pipe_fds[0];
    return pid;
}

TEST(messages_of_a_process_that_was_killed_come_again)
{
    int from_child;
    char byte;

    make_session();
    probe_destroy(events);
    events = NULL;

    pid_t pid = fork_events(&from_child);

    sender = probe_connect(broker, "sender");
    probe_publish_numbers(sender, "results", 0, 1);
    ck_assert_int_eq(read(from_child, &byte, 1), 1);
    probe_publish_numbers(sender, "results", 1, 5); /* it is connected: sent when acknowledged */
    (void)process_end(pid, SIGKILL);
    close(from_child);

    connect_events();
    probe_set_settled(events, true);
    check_numbers(0, 0, 5, true);
}

TEST(settled_messages_do_not_come_again)
{
    make_session();
    sender = probe_connect(broker, "sender");
    have_five_unsettled();
    probe_set_settled(events, true);
    probe_destroy(events);

    probe_publish(sender, "results", "third"); /* a session is one ordered queue */
    connect_events();
    probe_wait_messages(events, 1);
    ck_assert_str_eq(probe_message(events, 0).payload, "third");
    ck_assert(!probe_message(events, 0).duplicate);
}

TEST(nothing_more_is_read_until_it_is_settled)
{
    make_session();
    sender = probe_connect(broker, "sender");
    probe_publish(sender, "results", "0");
    probe_wait_asked_to_settle(events, 1);
    probe_publish_numbers(sender, "results", 1, 100);

    /* Asked again and again: the messages that have come since are not read. */
    for (int i = 0; i < 3; i++)
        probe_wait_asked_to_settle(events, 1);
    probe_set_settled(events, true);
    check_numbers(0, 0, 100, false);
    ck_assert_uint_eq(probe_connections(events), 1);
}

TEST(messages_that_need_no_acknowledgement_are_settled_in_bounded_batches)
{
    struct error err;

    make_session();
    sender = probe_connect(broker, "sender");
    probe_hold(events, true);
    for (int i = 0; i < 300; i++)
        ck_assert_int_eq(mqtt_publish(probe_mqtt(sender), "results", "", 0, 0, 60000, &err), 0);
    probe_publish(sender, "results", "last");
    probe_set_settled(events, true);
    probe_hold(events, false);
    probe_wait_messages(events, 301);
    ck_assert_uint_ge(probe_largest_batch(events), 2);
    ck_assert_uint_le(probe_largest_batch(events), 64);
}

TEST(who_cannot_settle_loses_the_connection_and_gets_everything_again_when_he_can)
{
    struct mqtt_options options = events_options();

    options.keep_alive_s =
        5; /* real time: the broker's patience with him passes; it knows no shorter one */
    events = probe_create(&options, true);
    mqtt_subscribe(probe_mqtt(events), "results", 1);
    probe_start(events);
    ck_assert_int_eq(probe_granted(events, "results"), 1);
    sender = probe_connect(broker, "sender");
    have_five_unsettled();
    probe_wait_disconnected(events); /* by the broker: no ping came */

    /* Not connected again before it is settled: he would hold everything twice. */
    probe_wait_asked_to_settle(events, 5);
    probe_wait_asked_to_settle(events, 5);
    ck_assert_uint_eq(probe_connections(events), 1);

    probe_set_settled(events, true);
    check_numbers(5, 0, 5, true);
    probe_publish(sender, "results", "5");
    check_numbers(10, 5, 6, false);
}

TEST(a_broker_that_goes_while_unsettled_is_noticed)
{
    make_session();
    sender = probe_connect(broker, "sender");
    have_five_unsettled();
    broker_stop(broker);
    probe_wait_disconnected(events);
    broker_start(broker);
    probe_set_settled(events, true);
    check_numbers(5, 0, 5, true);
}

TEST(who_may_not_act_acknowledges_nothing)
{
    make_session();
    sender = probe_connect(broker, "sender");
    have_five_unsettled();
    probe_set_may_act(events, false); /* the write has come through, the lease has not */
    probe_set_settled(events, true);
    probe_wait_disconnected(events);
    probe_forget_messages(events);
    probe_set_may_act(events, true);
    check_numbers(0, 0, 5, true);
}

/* First as the broker's copy for the new subscription, then as a message that is published now. */
TEST(retained_message_is_dropped_and_acknowledged_and_a_live_one_is_handed_over)
{
    probe_publish_retained(broker, "results", "old");
    connect_events();
    probe_set_settled(events, true);
    probe_wait_retained(events, 1);
    probe_publish_retained(broker, "results", "new");
    probe_wait_messages(events, 1);
    ck_assert_str_eq(probe_message(events, 0).payload, "new");
    mqtt_stop(probe_mqtt(events));
    probe_publish_retained(broker, "results", "");
    probe_start(events);
    sender = probe_connect(broker, "sender");
    probe_publish(sender, "results", "last");
    probe_wait_messages(events, 3);
    ck_assert_str_eq(probe_message(events, 1).payload, ""); /* takes back what is retained */
    ck_assert_str_eq(probe_message(events, 2).payload, "last");
    ck_assert_uint_eq(probe_retained(events), 1); /* unacknowledged, it came again */
}

TEST(qos_2_is_not_granted_where_messages_are_settled)
{
    connect_events();
    mqtt_subscribe(probe_mqtt(events), "other", 2);
    ck_assert_int_eq(probe_granted(events, "other"), 1);
}

TEST(a_filter_left_while_disconnected_is_left_in_the_session_too)
{
    make_session();
    sender = probe_connect(broker, "sender");
    probe_subscribe(events, "other", 1);
    probe_set_settled(events, true);
    broker_stop(broker);
    probe_wait_disconnected(events);
    probe_wait_disconnected(sender);
    mqtt_unsubscribe(probe_mqtt(events), "other");
    mqtt_subscribe(probe_mqtt(events), "third", 1);
    broker_start(broker);
    ck_assert_int_eq(probe_granted(events, "third"), 1); /* so "other" has been left before */
    probe_wait_connected(sender);
    probe_publish(sender, "other", "not wanted");
    probe_publish(sender, "results", "wanted");
    probe_wait_messages(events, 1);
    ck_assert_str_eq(probe_message(events, 0).payload, "wanted");
}
