/* One MQTT 3.1.1 connection on libmosquitto with a loop of our own: acknowledging at once, or after
 * the write. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/compiler.h"
#include "common/base/error.h"

/*
 * Both drivers run libmosquitto's loop themselves (mosquitto_loop_start re-sends and reconnects on
 * its own). After a disconnect the guard is asked, a new handle is made (nothing queued in the old
 * one may leave later; unfinished publishes fail), then it connects, with jittered back-off
 * (backoff_ms). Each attempt goes through all addresses of the host; mqtt_stop waits for the name look-up
 * of an attempt, for nothing else longer than some seconds.
 *
 * settle == NULL: received messages are acknowledged as they are read.
 * settle != NULL: mosquitto_threaded_set queues PUBACKs until the next mosquitto_loop_write; that
 * is called only after settle() said that everything read so far is durable. Until then nothing
 * more is read, so the broker's in-flight window is the batch, and nothing is written: no ping, no
 * publish, no subscription. If the write takes longer than the keep-alive the broker ends the
 * connection; when it is settled at last, there is a new one, and all of it comes again: wanted.
 */
/* Payloads that are read before they are settled: at most this many bytes, and one message more.
 * A receiver that keeps them has room for that. */
#define MQTT_BATCH_BYTES ((size_t)16 << 20)

struct mqtt_options {
    const char *host;
    uint16_t port;
    const char *client_id;
    const char *user_name;            /* NULL: none */
    const char *password;             /* or */
    const char *password_file;        /* read at every connect */
    bool tls;                         /* 1.2 and later, the host's name is checked */
    const char *ca_file;              /* NULL: the system's */
    const char *cert_file, *key_file; /* all three are read at every connect */
    bool clean_session;
    uint16_t keep_alive_s; /* 0: 30; at least 5 */
    /* First pause before the next attempt to connect, and before a refused filter is asked for again; 0: 2000. It
     * doubles up to 30 s, and jitter takes up to half of it. */
    uint32_t backoff_ms;
    const char
        *retained; /* filter of the topics whose retained messages are handed over; NULL: none */
    /* Asked before connect, publish and acknowledgement; false ends the connection without a
     * DISCONNECT being owed. */
    bool (*may_act)(void *ctx);
    void *may_act_ctx;
    /* The connection's thread: true when all messages handed over are durable; waits at most
     * timeout_ms. */
    bool (*settle)(void *ctx, uint32_t timeout_ms);
    void *settle_ctx;
};

/* The connection's thread. Must not block, must not publish: store the message, enqueue a name,
 * return. Only the broker bounds len: a message is in memory, twice, before it can be looked at. duplicate: the broker says that it may have sent it before. */
typedef void mqtt_message_fn(void *ctx, const char *topic, const void *payload, size_t len,
                             bool duplicate);
/* The connection's thread. granted < 0: the broker refused this filter (SUBACK 0x80), which is
 * reported once a connection. It is asked for again, with jittered back-off (backoff_ms), until it is
 * granted. */
typedef void mqtt_subscribed_fn(void *ctx, const char *filter, int granted);
/* The connection's thread. A retained message is acknowledged and not handed over: the broker sent its
 * copy for a new subscription, of any age, and sends it with every connection. (The flag is not set on
 * what a client publishes now.) */
typedef void mqtt_retained_fn(void *ctx, const char *topic);
/* The connection's thread: CONNACK came (session_present), or the connection ended or could not be
 * made (why, one line, without secrets; NULL: mqtt_stop). */
typedef void mqtt_state_fn(void *ctx, bool connected, bool session_present, const char *why);

struct mqtt_handlers {
    void *ctx;
    mqtt_message_fn *message;
    mqtt_subscribed_fn *subscribed; /* may be NULL */
    mqtt_state_fn *state;           /* may be NULL */
    mqtt_retained_fn *retained;     /* may be NULL */
};

struct mqtt;
/* scheme tcp|mqtt|ssl|tls|mqtts, port optional (1883, 8883). "tcp://host:1883", "mqtts://[::1]".
 * host must be freed. */
int mqtt_address_parse(const char *address, char **ret_host, uint16_t *ret_port, bool *ret_tls,
                       struct error *err) MUST_CHECK;

struct mqtt *mqtt_create(const struct mqtt_options *options, const struct mqtt_handlers *handlers);
void mqtt_destroy(struct mqtt *mqtt);
int mqtt_start(struct mqtt *mqtt, struct error *err) MUST_CHECK; /* again after a stop, too */
/* Waits shortly for publishes in flight, flushes acknowledgements that are due, DISCONNECT, joins.
 */
void mqtt_stop(struct mqtt *mqtt);

/* Any thread. The set of filters is kept and subscribed again after every connect; at once if
 * connected. With settle the QoS is at most 1: of QoS 2 the broker keeps nothing to send again.
 * A filter is granted only after the broker has handled all earlier unsubscriptions of this
 * connection. */
void mqtt_subscribe(struct mqtt *mqtt, const char *name, int qos);
void mqtt_unsubscribe(struct mqtt *mqtt, const char *name);

/*
 * Any thread but the connection's. QoS 0: handed to the socket; QoS >= 1: waits for the
 * PUBACK/PUBCOMP. ERROR_UNAVAILABLE: surely not sent (not connected, or 256 others wait).
 * ERROR_TIMEOUT: may have been sent. ERROR_CANCELED: not sent, may_act said no or mqtt_stop was
 * called. ERROR_INVALID: not a topic. ERROR_TOO_LARGE: more than MQTT can carry.
 */
int mqtt_publish(struct mqtt *mqtt, const char *topic, const void *payload, size_t len, int qos,
                 uint32_t timeout_ms, struct error *err) MUST_CHECK;
/* The same at QoS 1 with the retain flag: the broker keeps the message until another one, or one of
 * no bytes, is published to its topic. */
int mqtt_publish_retained(struct mqtt *mqtt, const char *topic, const void *payload, size_t len,
                          uint32_t timeout_ms, struct error *err) MUST_CHECK;
/* Any thread: those that wait in mqtt_publish, and later ones until the next mqtt_start, wait no
 * longer: ERROR_TIMEOUT if it may have been sent, else ERROR_CANCELED. */
void mqtt_publish_cancel(struct mqtt *mqtt);
bool mqtt_connected(struct mqtt *mqtt, char *why,
                    size_t size); /* why: the last failure, "" if connected */
