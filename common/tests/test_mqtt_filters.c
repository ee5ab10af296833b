/* Subscriptions of the connection, against a real broker. */
#include <stdio.h>

#include "common/tests/mqtt_probe.h"
#include "common/tests/suite.h"

static struct broker *broker;
static struct probe *sender;
static struct probe *receiver;

static void set_up(void)
{
    broker = broker_create();
    broker_start(broker);
    receiver = probe_connect(broker, "receiver");
    sender = probe_connect(broker, "sender");
}

static void tear_down(void)
{
    probe_destroy(receiver);
    probe_destroy(sender);
    broker_destroy(broker);
}

TEST_GROUP("filters", set_up, tear_down);

TEST(filters_beyond_one_packet_are_all_subscribed)
{
    enum { FILTERS = 200 };
    char filter[32];

    for (int i = 0; i < FILTERS; i++) {
        (void)snprintf(filter, sizeof(filter), "f/%d", i);
        mqtt_subscribe(probe_mqtt(receiver), filter, i % 2);
    }
    for (int i = 0; i < FILTERS; i++) {
        (void)snprintf(filter, sizeof(filter), "f/%d", i);
        ck_assert_int_eq(probe_granted(receiver, filter), i % 2);
        probe_publish(sender, filter, filter);
    }
    probe_wait_messages(receiver, FILTERS);
}

TEST(a_filter_that_was_left_gets_nothing_more)
{
    probe_subscribe(receiver, "left", 1);
    probe_subscribe(receiver, "kept", 1);
    mqtt_unsubscribe(probe_mqtt(receiver), "left");
    probe_subscribe(receiver, "later", 1); /* asked for after the UNSUBSCRIBE */
    probe_publish(sender, "left", "no");
    probe_publish(sender, "kept", "yes");
    probe_wait_messages(receiver, 1);
    ck_assert_str_eq(probe_message(receiver, 0).payload, "yes");

    mqtt_unsubscribe(probe_mqtt(receiver), "left"); /* unknown by now */
    probe_subscribe(receiver, "left", 0);
    probe_publish(sender, "left", "again");
    probe_wait_messages(receiver, 2);
}

/* Which of the two the set of filters names first depends on their names: so there are many. */
TEST(what_is_not_wanted_is_left_before_more_is_asked_for)
{
    enum { TIMES = 20 };
    char left[16];
    char more[16];

    probe_subscribe(receiver, "kept", 1);
    for (size_t i = 0; i < TIMES; i++) {
        (void)snprintf(left, sizeof(left), "left/%zu", i);
        (void)snprintf(more, sizeof(more), "more/%zu", i);
        probe_subscribe(receiver, left, 1);
        probe_hold(receiver, true);
        probe_publish(sender, "kept", "yes");
        probe_wait_messages(receiver, i + 1); /* its thread stands still, and finds both */
        mqtt_subscribe(probe_mqtt(receiver), more, 1);
        mqtt_unsubscribe(probe_mqtt(receiver), left);
        probe_hold_granted(receiver, true);
        probe_hold(receiver, false);
        ck_assert_int_eq(probe_granted(receiver, more), 1);
        probe_publish(sender, left, "no"); /* nothing that was not sent by now is sent before */
        probe_hold_granted(receiver, false);
    }
    probe_publish(sender, "kept", "yes");
    probe_wait_messages(receiver, TIMES + 1);
    for (size_t i = 0; i <= TIMES; i++)
        ck_assert_str_eq(probe_message(receiver, i).payload, "yes");
}

TEST(a_changed_mind_wins_whatever_is_under_way)
{
    for (int i = 0; i < 20; i++) {
        mqtt_subscribe(probe_mqtt(receiver), "topic", 1);
        mqtt_unsubscribe(probe_mqtt(receiver), "topic");
    }
    mqtt_subscribe(probe_mqtt(receiver), "topic", 1);
    probe_subscribe(receiver, "last", 1);
    probe_publish(sender, "topic", "hello");
    probe_wait_messages(receiver, 1);
}

TEST(a_filter_that_mqtt_does_not_know_is_told_as_refused)
{
    mqtt_subscribe(probe_mqtt(receiver), "a/#/b", 1);
    mqtt_subscribe(probe_mqtt(receiver), "good", 1);
    ck_assert_int_eq(probe_granted(receiver, "a/#/b"), -1);
    ck_assert_int_eq(probe_granted(receiver, "good"), 1);
    mqtt_unsubscribe(probe_mqtt(receiver), "a/#/b");
    probe_subscribe(receiver, "still alive", 1);
}
