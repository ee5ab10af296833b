/* The connection that acknowledges at once, against a real broker. */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>

#include "common/net/mqtt_internal.h"
#include "common/tests/mqtt_probe.h"
#include "common/tests/process.h"
#include "common/tests/suite.h"

#define PATIENCE_MS 60000

static struct broker *broker;
static struct probe *sender;
static struct probe *receiver;

static void set_up(void)
{
    broker = broker_create();
    broker_start(broker);
}

static void tear_down(void)
{
    probe_destroy(receiver);
    probe_destroy(sender);
    broker_destroy(broker);
}

TEST_GROUP("mqtt", set_up, tear_down);

static int publish(struct probe *probe, const char *payload, uint32_t timeout_ms, struct error *err)
{
    return mqtt_publish(probe_mqtt(probe), "topic", payload, strlen(payload), 1, timeout_ms, err);
}

TEST_TIMES(a_message_arrives_with_its_bytes_at_every_qos, 3)
{
    static const char PAYLOAD[] = "a\0b";
    struct error err = { 0 };

    receiver = probe_connect(broker, "receiver");
    sender = probe_connect(broker, "sender");
    probe_subscribe(receiver, "a/+/c", _i);
    for (int qos = 0; qos <= 2; qos++) {
        int r = mqtt_publish(probe_mqtt(sender), "a/b/c", PAYLOAD, 3, qos, PATIENCE_MS, &err);

        ck_assert_msg(r == 0, "%s", err.message);
        probe_wait_messages(receiver, (size_t)qos + 1); /* QoS 2 takes longer than the next one */
    }
    ck_assert_int_eq(mqtt_publish(probe_mqtt(sender), "a/b/c", NULL, 0, 1, PATIENCE_MS, &err), 0);
    probe_wait_messages(receiver, 4);
    ck_assert_str_eq(probe_message(receiver, 0).topic, "a/b/c");
    ck_assert_uint_eq(probe_message(receiver, 2).len, 3);
    ck_assert_uint_eq(probe_message(receiver, 3).len, 0);
    ck_assert(!probe_message(receiver, 0).duplicate);
}

TEST_TIMES(a_topic_that_cannot_be_published_to_is_invalid, 4)
{
    static const char *const TOPICS[] = { "", "a/+", "a/#", "\xff" };
    struct error err = { 0 };

    sender = probe_connect(broker, "sender");
    ck_assert_int_eq(mqtt_publish(probe_mqtt(sender), TOPICS[_i], "", 0, 1, PATIENCE_MS, &err),
                     -ERROR_INVALID);
}

TEST(a_payload_over_the_protocols_limit_is_too_large)
{
    struct error err = { 0 };

    sender = probe_connect(broker, "sender");
    ck_assert_int_eq(mqtt_publish(probe_mqtt(sender), "a", "", 268435455, 1, PATIENCE_MS, &err),
                     -ERROR_TOO_LARGE);
}

TEST(what_cannot_be_sent_is_refused_at_once)
{
    struct mqtt_options options = probe_options(broker, "sender");
    struct error err = { 0 };
    char why[200];

    sender = probe_create(&options, false);
    ck_assert_int_eq(publish(sender, "", PATIENCE_MS, &err), -ERROR_UNAVAILABLE);
    ck_assert(!mqtt_connected(probe_mqtt(sender), why, sizeof(why)));
    ck_assert_str_eq(why, "not started");

    probe_start(sender);
    ck_assert(mqtt_connected(probe_mqtt(sender), why, sizeof(why)));
    ck_assert_str_eq(why, "");
    broker_kill(broker);
    probe_wait_disconnected(sender);
    ck_assert_int_eq(publish(sender, "", PATIENCE_MS, &err), -ERROR_UNAVAILABLE);
    ck_assert(!mqtt_connected(probe_mqtt(sender), why, sizeof(why)));
    ck_assert_str_ne(why, "");

    mqtt_stop(probe_mqtt(sender));
    ck_assert_int_eq(publish(sender, "", PATIENCE_MS, &err), -ERROR_CANCELED);
}

TEST(everything_works_again_after_a_restart_of_the_broker)
{
    receiver = probe_connect(broker, "receiver");
    sender = probe_connect(broker, "sender");
    probe_subscribe(receiver, "topic", 1);
    broker_stop(broker);
    probe_wait_disconnected(receiver);
    probe_wait_disconnected(sender);
    broker_start(broker);
    ck_assert_int_eq(probe_granted(receiver, "topic"), 1); /* subscribed again by itself */
    probe_wait_connected(sender);
    probe_publish(sender, "topic", "hello");
    probe_wait_messages(receiver, 1);
    ck_assert_uint_eq(probe_connections(receiver), 2);
}

TEST(it_can_be_stopped_and_started_again)
{
    receiver = probe_connect(broker, "receiver");
    sender = probe_connect(broker, "sender");
    probe_subscribe(receiver, "topic", 1);
    mqtt_stop(probe_mqtt(receiver));
    mqtt_stop(probe_mqtt(receiver));
    probe_start(receiver);
    ck_assert_int_eq(probe_granted(receiver, "topic"), 1);
    probe_publish(sender, "topic", "hello");
    probe_wait_messages(receiver, 1);
}

struct publisher {
    pthread_t thread;
    int first, end;
    uint32_t timeout_ms;
    int result;
    struct error err;
};

static atomic_int ended;

static void *publish_thread(void *data)
{
    struct publisher *publisher = data;

    for (int i = publisher->first; i < publisher->end && publisher->result == 0; i++) {
        char payload[16];

        (void)snprintf(payload, sizeof(payload), "%d", i);
        publisher->result = publish(sender, payload, publisher->timeout_ms, &publisher->err);
    }
    atomic_fetch_add(&ended, 1);
    return NULL;
}

static void start_publisher(struct publisher *publisher, int first, int end, uint32_t timeout_ms)
{
    *publisher = (struct publisher){ .first = first, .end = end, .timeout_ms = timeout_ms };
    ck_assert_int_eq(pthread_create(&publisher->thread, NULL, publish_thread, publisher), 0);
}

static int join(struct publisher *publisher)
{
    pthread_join(publisher->thread, NULL);
    return publisher->result;
}

static bool is_in_flight(struct mqtt *mqtt)
{
    bool found = false;

    pthread_mutex_lock(&mqtt->lock);
    for (size_t i = 0; i < ARRAY_LEN(mqtt->flights); i++)
        found |= mqtt->flights[i].publish != NULL;
    pthread_mutex_unlock(&mqtt->lock);
    return found;
}

/* What the sender's one publisher publishes has been handed to the library. */
static void wait_in_flight(void)
{
    while (!is_in_flight(probe_mqtt(sender)))
        (void)poll(NULL, 0, 1);
}

TEST(sixteen_threads_publish_at_once_and_each_message_arrives_once)
{
    enum { THREADS = 16, EACH = 100 };
    static struct publisher publishers[THREADS];
    static int seen[THREADS * EACH];

    receiver = probe_connect(broker, "receiver");
    sender = probe_connect(broker, "sender");
    probe_subscribe(receiver, "topic", 1);
    for (int i = 0; i < THREADS; i++)
        start_publisher(&publishers[i], i * EACH, (i + 1) * EACH, PATIENCE_MS);
    for (int i = 0; i < THREADS; i++)
        ck_assert_msg(join(&publishers[i]) == 0, "%s", publishers[i].err.message);
    probe_wait_messages(receiver, (size_t)THREADS * EACH);
    for (size_t i = 0; i < (size_t)THREADS * EACH; i++)
        seen[strtol(probe_message(receiver, i).payload, NULL, 10)]++;
    for (int i = 0; i < THREADS * EACH; i++)
        ck_assert_int_eq(seen[i], 1);
}

TEST(a_broker_that_does_not_answer_gives_a_timeout_and_the_next_publish_works)
{
    struct error err = { 0 };

    sender = probe_connect(broker, "sender");
    broker_freeze(broker);
    while (publish(sender, "lost?", 50, &err) == -ERROR_UNAVAILABLE)
        ; /* this process had no time to send it */
    ck_assert_int_eq(err.code, ERROR_TIMEOUT);
    broker_thaw(broker);
    ck_assert_msg(publish(sender, "", PATIENCE_MS, &err) == 0, "%s", err.message);
}

TEST(a_publish_in_flight_fails_when_the_connection_does)
{
    struct publisher publisher;

    sender = probe_connect(broker, "sender");
    broker_freeze(broker);
    start_publisher(&publisher, 0, 1,
                    UINT32_MAX); /* it waits for the connection to end, and no longer */
    wait_in_flight();
    broker_kill(broker);
    ck_assert_int_eq(join(&publisher), -ERROR_TIMEOUT);
}

TEST(beyond_the_window_a_publish_was_surely_not_sent)
{
    enum { WINDOW = 20 };
    static struct publisher publishers[WINDOW];
    struct error err = { 0 };

    sender = probe_connect(broker, "sender");
    broker_freeze(broker);
    for (int sent = 0; sent < WINDOW;)
        sent += publish(sender, "", 20, &err) == -ERROR_TIMEOUT;
    ck_assert_int_eq(publish(sender, "", 50, &err), -ERROR_UNAVAILABLE);

    /* What those who gave up left behind makes room when it is acknowledged. */
    start_publisher(&publishers[0], 0, 40, PATIENCE_MS);
    broker_thaw(broker);
    ck_assert_msg(join(&publishers[0]) == 0, "%s", publishers[0].err.message);
}

TEST(more_publishers_than_may_wait_are_refused)
{
    enum { WAITING = 256, TOO_MANY = 4 };
    static struct publisher publishers[WAITING + TOO_MANY];
    int refused = 0;

    sender = probe_connect(broker, "sender");
    broker_freeze(broker);
    for (int i = 0; i < WAITING + TOO_MANY; i++)
        start_publisher(&publishers[i], 0, 1, PATIENCE_MS);
    while (atomic_load(&ended) < TOO_MANY) /* nobody else can end before the broker answers */
        sched_yield();
    broker_thaw(broker);
    for (int i = 0; i < WAITING + TOO_MANY; i++) {
        if (join(&publishers[i]) == 0)
            continue;
        ck_assert_int_eq(publishers[i].result, -ERROR_UNAVAILABLE);
        ck_assert_ptr_nonnull(strstr(publishers[i].err.message, "others wait already"));
        refused++;
    }
    ck_assert_int_eq(refused, TOO_MANY);
}

TEST(stop_lets_what_is_in_flight_end_and_cancels_the_rest)
{
    struct publisher publisher;
    struct error err = { 0 };

    sender = probe_connect(broker, "sender");
    broker_freeze(broker);
    start_publisher(&publisher, 0, 1, UINT32_MAX);
    wait_in_flight();
    mqtt_stop(probe_mqtt(sender));
    ck_assert_int_eq(join(&publisher), -ERROR_TIMEOUT);
    ck_assert_int_eq(publish(sender, "", 10, &err), -ERROR_CANCELED);
}

TEST(a_cancel_ends_all_who_wait_for_a_broker_that_does_not_answer)
{
    static struct publisher publishers[40]; /* half of them beyond the window of the library */
    sender = probe_connect(broker, "sender");
    broker_freeze(broker);
    for (int i = 0; i < 40; i++)
        start_publisher(&publishers[i], 0, 1, UINT32_MAX);
    while (publish(sender, "", 20, NULL) != -ERROR_UNAVAILABLE) /* until the window is full */
        ;
    mqtt_publish_cancel(probe_mqtt(sender));
    for (int i = 0; i < 40; i++)
        ck_assert(join(&publishers[i]) < 0);
    ck_assert_int_eq(publish(sender, "", UINT32_MAX, NULL), -ERROR_CANCELED);
}

TEST(who_may_not_act_publishes_nothing_and_leaves_without_a_word)
{
    struct error err = { 0 };

    receiver = probe_connect(broker, "receiver");
    sender = probe_connect(broker, "sender");
    probe_subscribe(receiver, "topic", 1);
    probe_set_may_act(sender, false);
    ck_assert_int_lt(publish(sender, "forbidden", PATIENCE_MS, &err), 0);
    ck_assert(err.code == ERROR_CANCELED || err.code == ERROR_UNAVAILABLE);
    probe_wait_disconnected(sender);
    probe_wait_why(sender, "not allowed any more");
    probe_set_may_act(sender, true);
    probe_wait_connected(sender);
    probe_publish(sender, "topic", "allowed");
    probe_wait_messages(receiver, 1);
    ck_assert_str_eq(probe_message(receiver, 0).payload, "allowed");

    char *log = temp_file_read(broker_dir(broker), "log");

    ck_assert_ptr_nonnull(strstr(log, "Client sender closed its connection"));
    ck_assert_ptr_null(strstr(log, "Received DISCONNECT from sender"));
    free(log);
    mqtt_stop(probe_mqtt(sender));
    broker_wait_logged(broker, "Received DISCONNECT from sender");
}

TEST(who_may_not_act_does_not_connect)
{
    struct mqtt_options options = probe_options(broker, "sender");
    struct error err = { 0 };

    sender = probe_create(&options, false);
    probe_set_may_act(sender, false);
    ck_assert_int_eq(mqtt_start(probe_mqtt(sender), &err), 0);
    receiver = probe_connect(broker, "receiver"); /* there was time enough */
    ck_assert_uint_eq(probe_connections(sender), 0);
    probe_set_may_act(sender, true);
    probe_wait_connected(sender);
}

/* Of a backlog that is full the kernel drops the next: it stays on its way. */
static int listen_full(uint16_t *ret_port, int *ret_first)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr = { .s_addr = htonl(INADDR_LOOPBACK) } };
    socklen_t len = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, len), 0);
    ck_assert_int_eq(listen(listener, 0), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &len), 0);
    *ret_port = ntohs(address.sin_port);
    *ret_first = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(*ret_first, (struct sockaddr *)&address, len), 0);
    return listener;
}

/* A CONNECT that leaves late would take over the session of whoever may act now. */
TEST(who_may_not_act_any_more_sends_nothing_on_a_connection_that_is_made_late)
{
    struct mqtt_options options = probe_options(broker, "sender");
    struct error err = { 0 };
    char byte;
    int first;
    int listener = listen_full(&options.port, &first);

    sender = probe_create(&options, false);
    ck_assert_int_eq(mqtt_start(probe_mqtt(sender), &err), 0);
    probe_wait_asked_to_act(sender, 2); /* when it began, and on the way */
    probe_set_may_act(sender, false);
    close(accept(listener, NULL, NULL)); /* now there is room */
    probe_wait_why(sender, "not allowed any more");
    mqtt_stop(probe_mqtt(sender));

    struct pollfd late = { .fd = listener, .events = POLLIN };
    while (poll(&late, 1, 0) > 0) {
        int fd = accept(listener, NULL, NULL);
        ck_assert_int_le(recv(fd, &byte, 1, 0), 0);
        close(fd);
    }
    close(first);
    close(listener);
}
