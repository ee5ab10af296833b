/* An MQTT connection for tests that remembers what it was told. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/net/mqtt.h"
#include "common/tests/broker.h"

struct probe_message {
    char topic[64];
    char payload[64]; /* cut */
    size_t len;
    bool duplicate;
};

/* Every wait fails the test after a minute. */
struct probe;

/* Options for this broker: what is 0 in them can be filled in. */
struct mqtt_options probe_options(const struct broker *broker, const char *client_id);
/* Adds may_act, which is true first. with_settle: adds settle, which is false first. */
struct probe *probe_create(const struct mqtt_options *options, bool with_settle);
void probe_destroy(struct probe *probe);
struct mqtt *probe_mqtt(struct probe *probe);
void probe_start(struct probe *probe); /* and waits for the connection */
struct probe *probe_connect(const struct broker *broker, const char *client_id); /* all of these */

void probe_set_may_act(struct probe *probe, bool yes);
void probe_wait_asked_to_act(struct probe *probe, size_t times); /* since the beginning */
/* The next message is held in its callback until false: what comes meanwhile is read in one go. */
void probe_hold(struct probe *probe, bool hold);
/* So is the next answer to a subscription: nothing that was not sent before it is sent meanwhile. */
void probe_hold_granted(struct probe *probe, bool hold);
void probe_set_settled(struct probe *probe, bool settled);
/* Waits until settle() was asked with so many messages read. */
void probe_wait_asked_to_settle(struct probe *probe, size_t messages);

void probe_wait_connected(struct probe *probe);
void probe_wait_disconnected(struct probe *probe);
void probe_wait_why(struct probe *probe, const char *part); /* not connected, and this is in why */
void probe_wait_messages(struct probe *probe, size_t count);
void probe_wait_retained(struct probe *probe, size_t count);

/* What subscribed() said about the filter; waits for it. */
int probe_granted(struct probe *probe, const char *filter);
void probe_subscribe(struct probe *probe, const char *filter,
                     int qos); /* and waits until granted */

size_t probe_count(struct probe *probe);
size_t probe_retained(struct probe *probe);
struct probe_message probe_message(struct probe *probe, size_t index);
bool probe_session_present(struct probe *probe);
size_t probe_connections(struct probe *probe);   /* CONNACKs so far */
size_t probe_largest_batch(struct probe *probe); /* most messages between two true settle() */
void probe_forget_messages(struct probe *probe);

/* Publishes at QoS 1 and waits for the acknowledgement. */
void probe_publish(struct probe *probe, const char *topic, const char *payload);
/* The same with the retain flag, on a connection of its own. */
void probe_publish_retained(const struct broker *broker, const char *topic, const char *payload);
/* "<prefix><n>" for n from first up to and without end. */
void probe_publish_numbers(struct probe *probe, const char *topic, int first, int end);
