#include <poll.h>
#include <unistd.h>

#include <openssl/ssl.h>
#include <sys/socket.h>

#include "common/base/clock.h"
#include "common/net/mqtt_internal.h"

/* How long a connection can be idle before it asks whether it may still be there. */
#define IDLE_MS 500

/* For a settle() that does not use its time. */
#define SETTLE_PAUSE_MS 5

/* Messages read before they are settled, where the broker's window does not bound them (QoS 0). */
#define MAX_BATCH 64

/* A broker that acknowledges a publish so late is taken for dead. */
#define MAX_FLIGHT_MS 60000

/* After mqtt_stop: for acknowledgements of what is in flight, and for the last bytes to leave. */
#define STOP_FLIGHTS_MS 1000
#define STOP_FLUSH_MS 1000

static const char NOT_ALLOWED[] = "not allowed any more";

static bool peer_has_gone(const struct connection *connection)
{
    struct pollfd socket = { .fd = mosquitto_socket(connection->handle), .events = POLLRDHUP };

    return poll(&socket, 1, 0) > 0;
}

static bool tls_holds_more(const struct connection *connection)
{
    const SSL *ssl = mosquitto_ssl_get(connection->handle);

    return ssl && SSL_pending(ssl) > 0;
}

static bool has_more(const struct connection *connection)
{
    struct pollfd socket = { .fd = mosquitto_socket(connection->handle), .events = POLLIN };

    return tls_holds_more(connection) || poll(&socket, 1, 0) > 0;
}

/* Everything that is there: the broker stops by itself at its window of unacknowledged messages. */
static int read_batch(struct connection *connection)
{
    struct mqtt *mqtt = connection->mqtt;
    int rc = MOSQ_ERR_SUCCESS;

    mqtt->batch_bytes = 0;
    for (int i = 0; i < MAX_BATCH && mqtt->batch_bytes < MQTT_BATCH_BYTES &&
                    rc == MOSQ_ERR_SUCCESS && has_more(connection);
         i++)
        rc = mosquitto_loop_read(connection->handle, 1);
    return rc;
}

/* The only place where anything leaves. Asks first, because time has passed since the last answer:
 * acknowledgements may have waited. */
static const char *write_queued(struct connection *connection)
{
    if (!mosquitto_want_write(connection->handle))
        return NULL;
    if (!mqtt_may_act(connection->mqtt))
        return NOT_ALLOWED;

    int rc = mosquitto_loop_write(connection->handle, 1);

    return rc == MOSQ_ERR_SUCCESS ? NULL : mqtt_reason(connection, rc);
}

static void wait_for_work(const struct connection *connection)
{
    struct mqtt *mqtt = connection->mqtt;
    bool writes = mosquitto_want_write(connection->handle);
    struct pollfd fds[] = { { .fd = mosquitto_socket(connection->handle),
                              .events = writes ? POLLIN | POLLOUT : POLLIN },
                            { .fd = mqtt->wake_fd, .events = POLLIN } };

    if (poll(fds, ARRAY_LEN(fds), tls_holds_more(connection) ? 0 : IDLE_MS) > 0 && fds[1].revents)
        mqtt_drain_wakes(mqtt);
}

static bool publish_is_overdue(struct mqtt *mqtt)
{
    int64_t oldest_ms;

    return mqtt_publish_oldest(mqtt, &oldest_ms) &&
           clock_monotonic_ms(&CLOCK_SYSTEM) - oldest_ms > MAX_FLIGHT_MS;
}

/* Settled: publishes, asks, pings, and lets everything queued leave, the acknowledgements too. */
static const char *speak(struct connection *connection, bool stopping)
{
    struct mqtt *mqtt = connection->mqtt;

    if (!stopping && !mqtt_publish_hand_over(connection))
        return NOT_ALLOWED;
    if (publish_is_overdue(mqtt))
        return "a publish was not acknowledged";

    int rc = mqtt_filters_ask(connection);

    if (rc == MOSQ_ERR_SUCCESS)
        rc = mosquitto_loop_misc(connection->handle);
    return rc == MOSQ_ERR_SUCCESS ? write_queued(connection) : mqtt_reason(connection, rc);
}

/* Nothing more is started; what is in flight may still be answered. */
static bool may_end(struct mqtt *mqtt, int64_t *end_ms)
{
    int64_t now_ms = clock_monotonic_ms(&CLOCK_SYSTEM);
    int64_t oldest_ms;

    if (*end_ms == 0)
        *end_ms = now_ms + STOP_FLIGHTS_MS;
    return !mqtt_publish_oldest(mqtt, &oldest_ms) || now_ms >= *end_ms;
}

/* One round; says why it was the last one. */
static const char *serve_once(struct connection *connection, bool stopping)
{
    struct mqtt *mqtt = connection->mqtt;

    if (!mqtt_may_act(mqtt))
        return NOT_ALLOWED;
    if (!mqtt_is_settled(mqtt)) {
        mqtt_pause(mqtt, SETTLE_PAUSE_MS);
        return peer_has_gone(connection) ? mqtt_reason(connection, MOSQ_ERR_CONN_LOST) : NULL;
    }

    const char *why = speak(connection, stopping);

    if (why)
        return why;
    wait_for_work(connection);

    int rc = read_batch(connection);

    return rc == MOSQ_ERR_SUCCESS ? NULL : mqtt_reason(connection, rc);
}

/* Everything that was queued; false: the time is over, or it may not leave. */
static bool flush(struct connection *connection, int64_t end_ms)
{
    while (mosquitto_want_write(connection->handle)) {
        struct pollfd socket = { .fd = mosquitto_socket(connection->handle), .events = POLLOUT };
        int64_t left_ms = end_ms - clock_monotonic_ms(&CLOCK_SYSTEM);

        if (left_ms <= 0 || poll(&socket, 1, (int)left_ms) <= 0 || write_queued(connection))
            return false;
    }
    return true;
}

/* Until the broker has closed, too: a packet from it to a closed socket would be answered with a
 * reset, and that throws away what it has not read yet, the acknowledgements. */
static void linger(int socket, int64_t end_ms)
{
    struct pollfd readable = { .fd = socket, .events = POLLIN };
    int64_t left_ms;
    char ignored[4096];

    do {
        left_ms = end_ms - clock_monotonic_ms(&CLOCK_SYSTEM);
    } while (left_ms > 0 && poll(&readable, 1, (int)left_ms) > 0 &&
             recv(socket, ignored, sizeof(ignored), MSG_DONTWAIT) > 0);
}

/* What is settled is acknowledged before the DISCONNECT; the rest the broker delivers again. */
static void say_goodbye(struct connection *connection)
{
    int64_t end_ms = clock_monotonic_ms(&CLOCK_SYSTEM) + STOP_FLUSH_MS;

    if (!mqtt_is_settled(connection->mqtt))
        return;

    int socket =
        dup(mosquitto_socket(connection->handle)); /* the library closes after DISCONNECT */

    mosquitto_disconnect(connection->handle); /* queues it */
    if (flush(connection, end_ms) && socket >= 0)
        linger(socket, end_ms);
    if (socket >= 0)
        close(socket);
}

const char *mqtt_serve(struct connection *connection)
{
    int64_t end_ms = 0;

    for (;;) {
        bool stopping = mqtt_is_stopping(connection->mqtt);

        if (stopping && may_end(connection->mqtt, &end_ms)) {
            say_goodbye(connection);
            return NULL;
        }

        const char *why = serve_once(connection, stopping);

        if (why)
            return why;
    }
}
