/* Declarations that the files of one MQTT connection share. */
#pragma once

#include <pthread.h>

#include <sys/queue.h>

#include <mosquitto.h>

#include "common/base/map.h"
#include "common/net/mqtt.h"

/* The number of publishes in the library that are not finished: mosquitto takes as many at once
 * without queueing. */
#define MQTT_IN_FLIGHT 20

/* Filters asked for in one SUBSCRIBE: some kilobytes. */
#define MQTT_FILTERS_AT_ONCE 64

enum publish_state { PUBLISH_QUEUED, PUBLISH_HANDED_OVER, PUBLISH_SENT, PUBLISH_DONE };

/* On the stack of the thread that waits in mqtt_publish. */
struct publish {
    TAILQ_ENTRY(publish) entry;
    const char *topic;
    const void *payload;
    size_t len;
    int qos;
    bool retain;
    enum publish_state state;
    struct error result;
    pthread_cond_t changed;
};
TAILQ_HEAD(publish_queue, publish);

struct flight {
    int mid;                 /* 0: free */
    struct publish *publish; /* NULL: its thread has stopped waiting */
    int64_t since_ms;
};

struct mqtt {
    struct mqtt_options options; /* with strings of its own */
    struct mqtt_handlers handlers;
    char *broker; /* "host:port", for messages */
    int wake_fd;  /* eventfd: look at the queue, the filters and stopping */
    pthread_t thread;
    bool unsettled; /* of the connection's thread: messages were handed over since settle() was true
                     */
    size_t batch_bytes; /* of its thread, too: payloads read since it was settled */

    pthread_mutex_t lock; /* for everything below */
    bool running, stopping, connected;
    bool canceled; /* mqtt_publish has stopped waiting */
    char why[240];
    struct publish_queue queue;
    size_t waiting; /* threads in mqtt_publish */
    struct flight flights[MQTT_IN_FLIGHT];
    struct map *filters; /* filter -> struct filter */
    bool filters_changed;
    int64_t retry_at_ms;      /* the time to ask again for refused filters; 0: there are none */
    int64_t retry_backoff_ms; /* until the time after that, without jitter */
};

/* One handle of the library, from connect to close. Everything here is the connection's thread's.
 */
struct connection {
    struct mqtt *mqtt;
    struct mosquitto *handle;
    bool accepted;        /* CONNACK 0 came */
    int refused;          /* any other code of a CONNACK */
    bool duplicate;       /* flag of the PUBLISH that is being read */
    char tls_problem[96]; /* the first thing that was wrong with TLS */

    int asked_mid; /* of the SUBSCRIBE or UNSUBSCRIBE that waits for its answer; 0: none */
    size_t asked_count;
    char *asked[MQTT_FILTERS_AT_ONCE];
};

/* mqtt_connect.c: one attempt, over all addresses of the host, until CONNACK, refusal, or stop. */
int mqtt_connection_open(struct connection *connection, struct error *err) MUST_CHECK;
/* Closes the socket as it is: nothing queued leaves any more. */
void mqtt_connection_close(struct connection *connection);
const char *mqtt_reason(const struct connection *connection, int rc); /* of the library's code */

/* mqtt_tls.c */
struct ssl_ctx_st;
/* Refers to the connection as long as it lives: an error of a handshake goes to tls_problem. */
int mqtt_tls_context(struct connection *connection, struct ssl_ctx_st **ret,
                     struct error *err) MUST_CHECK;

/* mqtt_publish.c */
/* Gives what is queued to the library while it has room; false: not allowed to act any more. */
bool mqtt_publish_hand_over(struct connection *connection);
void mqtt_published(struct mqtt *mqtt, int mid);
bool mqtt_publish_oldest(struct mqtt *mqtt, int64_t *ret_since_ms); /* false: none in flight */
/* Not connected from now on: publishes in flight end with ERROR_TIMEOUT, queued ones as the
 * caller says. */
void mqtt_publish_end(struct mqtt *mqtt, enum error_code unsent, const char *why);

/* mqtt_subscribe.c */
void mqtt_filters_reset(struct connection *connection,
                        bool session_present); /* after a new connection */
/* Sends the next SUBSCRIBE or UNSUBSCRIBE, if one is due; a code of the library. */
int mqtt_filters_ask(struct connection *connection);
void mqtt_filters_granted(struct connection *connection, int mid, int count, const int *granted);
void mqtt_filters_removed(struct connection *connection, int mid);
void mqtt_filters_forget(struct connection *connection); /* the filters that were asked for */

/* mqtt_serve.c: runs until the connection ends, and returns why. NULL: mqtt_stop was called, and
 * DISCONNECT was sent. */
const char *mqtt_serve(struct connection *connection);

/* mqtt.c */
bool mqtt_is_stopping(struct mqtt *mqtt);
bool mqtt_may_act(const struct mqtt *mqtt);
bool mqtt_is_settled(struct mqtt *mqtt);        /* all that was handed over is durable */
void mqtt_pause(struct mqtt *mqtt, int64_t ms); /* mqtt_stop ends it */
int64_t mqtt_jittered(int64_t ms);              /* takes up to a half off */
void mqtt_wake(struct mqtt *mqtt);
void mqtt_drain_wakes(struct mqtt *mqtt);
