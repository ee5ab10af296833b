/* Before every connect, publish, acknowledgement and goodbye it is asked whether it may act. Each of
 * the questions alone, where the others say yes or are not put. */
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/net/mqtt_internal.h"
#include "common/tests/mqtt_probe.h"
#include "common/tests/process.h"
#include "common/tests/suite.h"

#define PATIENCE_MS 60000

static struct broker *broker;
static struct probe *probe;

static void set_up(void)
{
    broker = broker_create();
    broker_start(broker);
}

static void tear_down(void)
{
    probe_destroy(probe);
    broker_destroy(broker);
}

TEST_GROUP("guards", set_up, tear_down);

static void connect_probe(bool with_settle)
{
    struct mqtt_options options = probe_options(broker, "guarded");

    probe = probe_create(&options, with_settle);
    probe_start(probe);
}

static void ck_not_logged(const char *line)
{
    char *log = temp_file_read(broker_dir(broker), "log");

    ck_assert_msg(!strstr(log, line), "'%s' in %s", line, log);
    free(log);
}

TEST(who_may_not_act_does_not_even_try_to_connect)
{
    struct mqtt_options options = probe_options(broker, "guarded");
    struct error err = { 0 };
    char why[256];

    probe = probe_create(&options, false);
    probe_set_may_act(probe, false);
    ck_assert_int_eq(mqtt_start(probe_mqtt(probe), &err), 0);
    probe_wait_asked_to_act(probe, 3);
    ck_assert(!mqtt_connected(probe_mqtt(probe), why, sizeof(why)));
    ck_assert_str_eq(why, "connecting"); /* no attempt has ended */
}

TEST(who_may_not_act_leaves_although_messages_are_unsettled)
{
    connect_probe(true);
    probe_subscribe(probe, "topic", 1);

    struct mqtt_options options = probe_options(broker, "sender");
    struct probe *sender = probe_create(&options, false);

    probe_start(sender);
    probe_publish(sender, "topic", "not settled");
    probe_wait_asked_to_settle(probe, 1);
    probe_set_may_act(probe, false);
    probe_wait_disconnected(probe);
    probe_wait_why(probe, "not allowed any more");
    probe_destroy(sender);
}

TEST(who_may_not_act_when_it_stops_says_no_goodbye)
{
    connect_probe(false);
    probe_set_may_act(probe, false);
    mqtt_stop(probe_mqtt(probe));
    probe_set_may_act(probe, true);
    probe_start(probe); /* the broker has read all of the first connection */
    ck_not_logged("Received DISCONNECT from guarded");
    mqtt_stop(probe_mqtt(probe));
    broker_wait_logged(broker, "Received DISCONNECT from guarded");
}

static bool never(void *ctx UNUSED)
{
    return false;
}

static void ignore(void *ctx UNUSED, const char *topic UNUSED, const void *payload UNUSED,
                   size_t len UNUSED, bool duplicate UNUSED)
{
}

static void *publish(void *ctx)
{
    struct error err = { 0 };

    return (void *)(intptr_t)mqtt_publish(ctx, "topic", "", 0, 1, PATIENCE_MS, &err);
}

static bool waits(struct mqtt *mqtt)
{
    pthread_mutex_lock(&mqtt->lock);

    bool queued = !TAILQ_EMPTY(&mqtt->queue);

    pthread_mutex_unlock(&mqtt->lock);
    return queued;
}

/* So its sender can be told that it was surely not sent. */
TEST(what_is_queued_is_not_handed_over_by_who_may_not_act)
{
    struct mqtt_options options = { .host = "127.0.0.1", .client_id = "c", .may_act = never };
    struct mqtt *mqtt = mqtt_create(&options, &(struct mqtt_handlers){ .message = ignore });
    struct connection connection = { .mqtt = mqtt };
    pthread_t thread;
    void *result;

    mqtt->connected = true;
    ck_assert_int_eq(pthread_create(&thread, NULL, publish, mqtt), 0);
    while (!waits(mqtt))
        (void)poll(NULL, 0, 1);
    ck_assert(!mqtt_publish_hand_over(&connection));
    ck_assert_int_eq(pthread_join(thread, &result), 0);
    ck_assert_int_eq((intptr_t)result, -ERROR_CANCELED);
    mqtt_destroy(mqtt);
}
