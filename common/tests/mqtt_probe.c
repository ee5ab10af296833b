#include "common/tests/mqtt_probe.h"

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mosquitto.h>

#include "common/base/alloc.h"
#include "common/base/cond.h"
#include "common/base/map.h"
#include "common/base/str.h"

#define PATIENCE_MS 60000
#define MAX_MESSAGES 8192

/* Messages that were refused by nobody: what map holds for a granted QoS is QoS + 2, never NULL. */
#define GRANT_OFFSET 2

struct probe {
    struct mqtt *mqtt;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct probe_message *messages;
    size_t count, retained, connections;
    size_t unsettled, largest_batch, asked_with, asked_to_act;
    bool may_act, settled, asked, hold, hold_granted;
    bool connected, session_present;
    char why[256];
    struct map *granted;
};

static void on_message(void *ctx, const char *topic, const void *payload, size_t len,
                       bool duplicate)
{
    struct probe *probe = ctx;

    pthread_mutex_lock(&probe->lock);
    ck_assert_uint_lt(probe->count, MAX_MESSAGES);

    struct probe_message *message = &probe->messages[probe->count++];

    *message = (struct probe_message){ .len = len, .duplicate = duplicate };
    (void)snprintf(message->topic, sizeof(message->topic), "%s", topic);
    (void)snprintf(message->payload, sizeof(message->payload), "%.*s", (int)(len < 60 ? len : 60),
                   (const char *)payload);
    probe->unsettled++;
    if (probe->unsettled > probe->largest_batch)
        probe->largest_batch = probe->unsettled;
    pthread_cond_broadcast(&probe->changed);
    while (probe->hold)
        pthread_cond_wait(&probe->changed, &probe->lock);
    pthread_mutex_unlock(&probe->lock);
}

static void on_subscribed(void *ctx, const char *filter, int granted)
{
    struct probe *probe = ctx;

    pthread_mutex_lock(&probe->lock);
    map_set(probe->granted, filter, (void *)(uintptr_t)(granted + GRANT_OFFSET));
    pthread_cond_broadcast(&probe->changed);
    while (probe->hold_granted)
        pthread_cond_wait(&probe->changed, &probe->lock);
    pthread_mutex_unlock(&probe->lock);
}

static void on_state(void *ctx, bool connected, bool session_present, const char *why)
{
    struct probe *probe = ctx;

    pthread_mutex_lock(&probe->lock);
    probe->connected = connected;
    probe->connections += connected;
    if (connected)
        probe->session_present = session_present;
    (void)snprintf(probe->why, sizeof(probe->why), "%s", why ? why : "");
    pthread_cond_broadcast(&probe->changed);
    pthread_mutex_unlock(&probe->lock);
}

static void on_retained(void *ctx, const char *topic)
{
    struct probe *probe = ctx;

    (void)topic;
    pthread_mutex_lock(&probe->lock);
    probe->retained++;
    pthread_cond_broadcast(&probe->changed);
    pthread_mutex_unlock(&probe->lock);
}

static bool may_act(void *ctx)
{
    struct probe *probe = ctx;

    pthread_mutex_lock(&probe->lock);

    bool yes = probe->may_act;

    probe->asked_to_act++;
    pthread_cond_broadcast(&probe->changed);
    pthread_mutex_unlock(&probe->lock);
    return yes;
}

static bool settle(void *ctx, uint32_t timeout_ms)
{
    struct probe *probe = ctx;
    struct timespec deadline = cond_deadline(timeout_ms);

    pthread_mutex_lock(&probe->lock);
    probe->asked = true;
    probe->asked_with = probe->count;
    pthread_cond_broadcast(&probe->changed);
    while (!probe->settled && cond_wait_until(&probe->changed, &probe->lock, &deadline))
        ;

    bool yes = probe->settled;

    if (yes)
        probe->unsettled = 0;
    pthread_mutex_unlock(&probe->lock);
    return yes;
}

struct mqtt_options probe_options(const struct broker *broker, const char *client_id)
{
    return (struct mqtt_options){ .host = "127.0.0.1",
                                  .port = broker_port(broker),
                                  .client_id = client_id,
                                  .clean_session = true,
                                  .keep_alive_s = 60,
                                  .backoff_ms = 20 };
}

struct probe *probe_create(const struct mqtt_options *options, bool with_settle)
{
    struct probe *probe = xcalloc(1, sizeof(*probe));
    struct mqtt_options own = *options;
    struct mqtt_handlers handlers = { .ctx = probe,
                                      .message = on_message,
                                      .subscribed = on_subscribed,
                                      .state = on_state,
                                      .retained = on_retained };

    probe->messages = xcalloc(MAX_MESSAGES, sizeof(*probe->messages));
    probe->granted = map_create(NULL);
    probe->may_act = true;
    pthread_mutex_init(&probe->lock, NULL);
    cond_init(&probe->changed);
    own.may_act = may_act;
    own.may_act_ctx = probe;
    own.settle = with_settle ? settle : NULL;
    own.settle_ctx = probe;
    probe->mqtt = mqtt_create(&own, &handlers);
    return probe;
}

void probe_destroy(struct probe *probe)
{
    if (!probe)
        return;
    mqtt_destroy(probe->mqtt);
    map_destroy(probe->granted);
    free(probe->messages);
    pthread_cond_destroy(&probe->changed);
    pthread_mutex_destroy(&probe->lock);
    free(probe);
}

struct mqtt *probe_mqtt(struct probe *probe)
{
    return probe->mqtt;
}

void probe_start(struct probe *probe)
{
    struct error err = { 0 };

    ck_assert_msg(mqtt_start(probe->mqtt, &err) == 0, "%s", err.message);
    probe_wait_connected(probe);
}

struct probe *probe_connect(const struct broker *broker, const char *client_id)
{
    struct mqtt_options options = probe_options(broker, client_id);
    struct probe *probe = probe_create(&options, false);

    probe_start(probe);
    return probe;
}

/* Sets one of the probe's flags, and lets those who wait look again. */
static void set_flag(struct probe *probe, bool *flag, bool value)
{
    pthread_mutex_lock(&probe->lock);
    *flag = value;
    pthread_cond_broadcast(&probe->changed);
    pthread_mutex_unlock(&probe->lock);
}

void probe_set_may_act(struct probe *probe, bool yes)
{
    set_flag(probe, &probe->may_act, yes);
}

void probe_hold(struct probe *probe, bool hold)
{
    set_flag(probe, &probe->hold, hold);
}

void probe_hold_granted(struct probe *probe, bool hold)
{
    set_flag(probe, &probe->hold_granted, hold);
}

void probe_set_settled(struct probe *probe, bool settled)
{
    set_flag(probe, &probe->settled, settled);
}

typedef bool wanted_fn(struct probe *probe, size_t number, const char *text);

static void wait_until(struct probe *probe, wanted_fn *wanted, size_t number, const char *text,
                       const char *what)
{
    struct timespec deadline = cond_deadline(PATIENCE_MS);
    bool in_time = true;

    pthread_mutex_lock(&probe->lock);
    while (!wanted(probe, number, text) && in_time)
        in_time = cond_wait_until(&probe->changed, &probe->lock, &deadline);

    bool met = wanted(probe, number, text);

    pthread_mutex_unlock(&probe->lock);
    ck_assert_msg(met, "%s: %zu '%s' did not come; messages %zu, connected %d, '%s'", what, number,
                  text, probe->count, probe->connected, probe->why);
}

static bool is_connected(struct probe *probe, size_t number, const char *text)
{
    (void)text;
    return probe->connected == (number == 1);
}

static bool has_why(struct probe *probe, size_t number, const char *text)
{
    (void)number;
    return !probe->connected && strstr(probe->why, text);
}

static bool has_messages(struct probe *probe, size_t number, const char *text)
{
    (void)text;
    return probe->count >= number;
}

static bool has_retained(struct probe *probe, size_t number, const char *text)
{
    (void)text;
    return probe->retained >= number;
}

static bool was_asked(struct probe *probe, size_t number, const char *text)
{
    (void)text;
    return probe->asked && probe->asked_with == number;
}

static bool was_asked_to_act(struct probe *probe, size_t number, const char *text)
{
    (void)text;
    return probe->asked_to_act >= number;
}

static bool was_granted(struct probe *probe, size_t number, const char *text)
{
    (void)number;
    return map_get(probe->granted, text);
}

void probe_wait_connected(struct probe *probe)
{
    wait_until(probe, is_connected, 1, "", "connected");
}

void probe_wait_disconnected(struct probe *probe)
{
    wait_until(probe, is_connected, 0, "", "disconnected");
}

void probe_wait_why(struct probe *probe, const char *part)
{
    wait_until(probe, has_why, 0, part, "why");
}

void probe_wait_messages(struct probe *probe, size_t count)
{
    wait_until(probe, has_messages, count, "", "messages");
}

void probe_wait_retained(struct probe *probe, size_t count)
{
    wait_until(probe, has_retained, count, "", "retained messages");
}

void probe_wait_asked_to_settle(struct probe *probe, size_t messages)
{
    pthread_mutex_lock(&probe->lock);
    probe->asked = false;
    pthread_mutex_unlock(&probe->lock);
    wait_until(probe, was_asked, messages, "", "asked to settle");
}

void probe_wait_asked_to_act(struct probe *probe, size_t times)
{
    wait_until(probe, was_asked_to_act, times, "", "asked to act");
}

int probe_granted(struct probe *probe, const char *filter)
{
    wait_until(probe, was_granted, 0, filter, "granted");
    pthread_mutex_lock(&probe->lock);

    int granted = (int)(uintptr_t)map_take(probe->granted, filter) - GRANT_OFFSET;

    pthread_mutex_unlock(&probe->lock);
    return granted;
}

void probe_subscribe(struct probe *probe, const char *filter, int qos)
{
    mqtt_subscribe(probe->mqtt, filter, qos);
    ck_assert_int_eq(probe_granted(probe, filter), qos);
}

/* A number of the probe, read with its lock. */
static size_t read_number(struct probe *probe, const size_t *number)
{
    pthread_mutex_lock(&probe->lock);

    size_t value = *number;

    pthread_mutex_unlock(&probe->lock);
    return value;
}

size_t probe_count(struct probe *probe)
{
    return read_number(probe, &probe->count);
}

size_t probe_retained(struct probe *probe)
{
    return read_number(probe, &probe->retained);
}

size_t probe_connections(struct probe *probe)
{
    return read_number(probe, &probe->connections);
}

size_t probe_largest_batch(struct probe *probe)
{
    return read_number(probe, &probe->largest_batch);
}

struct probe_message probe_message(struct probe *probe, size_t index)
{
    pthread_mutex_lock(&probe->lock);
    ck_assert_uint_lt(index, probe->count);

    struct probe_message message = probe->messages[index];

    pthread_mutex_unlock(&probe->lock);
    return message;
}

bool probe_session_present(struct probe *probe)
{
    pthread_mutex_lock(&probe->lock);

    bool present = probe->session_present;

    pthread_mutex_unlock(&probe->lock);
    return present;
}

void probe_forget_messages(struct probe *probe)
{
    pthread_mutex_lock(&probe->lock);
    probe->count = 0;
    pthread_mutex_unlock(&probe->lock);
}

void probe_publish(struct probe *probe, const char *topic, const char *payload)
{
    struct error err = { 0 };

    ck_assert_msg(
        mqtt_publish(probe->mqtt, topic, payload, strlen(payload), 1, PATIENCE_MS, &err) == 0, "%s",
        err.message);
}

static void on_acknowledged(struct mosquitto *handle, void *data, int mid)
{
    (void)handle;
    (void)mid;
    *(bool *)data = true;
}

void probe_publish_retained(const struct broker *broker, const char *topic, const char *payload)
{
    bool acknowledged = false;
    struct mosquitto *handle = mosquitto_new(NULL, true, &acknowledged);

    ck_assert_ptr_nonnull(handle);
    mosquitto_publish_callback_set(handle, on_acknowledged);
    ck_assert_int_eq(mosquitto_connect(handle, "127.0.0.1", broker_port(broker), 60), 0);
    ck_assert_int_eq(mosquitto_publish(handle, NULL, topic, (int)strlen(payload), payload, 1, true),
                     0);
    while (!acknowledged)
        ck_assert_int_eq(mosquitto_loop(handle, PATIENCE_MS, 1), 0);
    mosquitto_disconnect(handle);
    mosquitto_destroy(handle);
}

void probe_publish_numbers(struct probe *probe, const char *topic, int first, int end)
{
    for (int i = first; i < end; i++) {
        char payload[16];

        (void)snprintf(payload, sizeof(payload), "%d", i);
        probe_publish(probe, topic, payload);
    }
}
