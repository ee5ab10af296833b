#include <assert.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/str.h"
#include "common/net/mqtt_internal.h"

/* Threads that wait in mqtt_publish at once; workers are far fewer. */
#define MAX_WAITING 256

/* MQTT's "remaining length" is at most 2^28 - 1, of which the topic and 5 bytes are not payload. */
#define MAX_REMAINING 268435455

static int check(const char *topic, size_t len, int qos, struct error *err)
{
    size_t topic_len = strlen(topic);

    assert(qos >= 0 && qos <= 2);
    if (mosquitto_pub_topic_check(topic) != MOSQ_ERR_SUCCESS || topic_len == 0 ||
        mosquitto_validate_utf8(topic, (int)topic_len) != MOSQ_ERR_SUCCESS)
        return error_set(err, ERROR_INVALID, "topic '%s' cannot be published to", topic);
    if (len > MAX_REMAINING - 5 - topic_len)
        return error_set(err, ERROR_TOO_LARGE, "payload of %zu bytes for '%s' is over MQTT's limit",
                         len, topic);
    return 0;
}

/* With the lock. */
static int enqueue(struct mqtt *mqtt, struct publish *publish, struct error *err)
{
    assert(!mqtt->running || !pthread_equal(mqtt->thread, pthread_self()));
    if (mqtt->stopping || mqtt->canceled)
        return error_set(err, ERROR_CANCELED, "publish to '%s': shutting down", publish->topic);
    if (!mqtt->connected)
        return error_set(err, ERROR_UNAVAILABLE, "publish to '%s': not connected: %s",
                         publish->topic, mqtt->why);
    if (mqtt->waiting >= MAX_WAITING)
        return error_set(err, ERROR_UNAVAILABLE, "publish to '%s': %d others wait already",
                         publish->topic, MAX_WAITING);
    cond_init(&publish->changed);
    mqtt->waiting++;
    TAILQ_INSERT_TAIL(&mqtt->queue, publish, entry);
    return 0;
}

static struct flight *flight_of(struct mqtt *mqtt, const struct publish *publish)
{
    for (size_t i = 0; i < MQTT_IN_FLIGHT; i++)
        if (mqtt->flights[i].mid && mqtt->flights[i].publish == publish)
            return &mqtt->flights[i];
    return NULL;
}

/* The time is over, or the wait was canceled; with the lock. Returns false if the end is near all the same. */
static bool give_up(struct mqtt *mqtt, struct publish *publish)
{
    switch (publish->state) {
    case PUBLISH_QUEUED:
        TAILQ_REMOVE(&mqtt->queue, publish, entry);
        (void)error_set(&publish->result, mqtt->canceled ? ERROR_CANCELED : ERROR_UNAVAILABLE,
                        "publish to '%s': %s", publish->topic,
                        mqtt->canceled ? "shutting down" : "too many others are under way");
        return true;
    case PUBLISH_SENT:
        flight_of(mqtt, publish)->publish = NULL;
        (void)error_set(&publish->result, ERROR_TIMEOUT,
                        "publish to '%s': not acknowledged in time", publish->topic);
        return true;
    default: /* the library is copying it, or it is done */
        return false;
    }
}

static int wait_done(struct mqtt *mqtt, struct publish *publish, uint32_t timeout_ms,
                     struct error *err)
{
    struct timespec deadline = cond_deadline(timeout_ms);

    while (publish->state != PUBLISH_DONE) {
        if (mqtt->canceled && give_up(mqtt, publish))
            break;
        if (publish->state == PUBLISH_HANDED_OVER)
            pthread_cond_wait(&publish->changed, &mqtt->lock);
        else if (!cond_wait_until(&publish->changed, &mqtt->lock, &deadline) &&
                 give_up(mqtt, publish))
            break;
    }
    mqtt->waiting--;
    pthread_cond_destroy(&publish->changed);
    if (publish->result.code == ERROR_NONE)
        return 0;
    return error_set(err, publish->result.code, "%s", publish->result.message);
}

static int publish_and_wait(struct mqtt *mqtt, struct publish *publish, uint32_t timeout_ms,
                            struct error *err)
{
    int r = check(publish->topic, publish->len, publish->qos, err);

    if (r < 0)
        return r;
    pthread_mutex_lock(&mqtt->lock);
    r = enqueue(mqtt, publish, err);
    if (r == 0) {
        mqtt_wake(mqtt);
        r = wait_done(mqtt, publish, timeout_ms, err);
    }
    pthread_mutex_unlock(&mqtt->lock);
    return r;
}

int mqtt_publish(struct mqtt *mqtt, const char *topic, const void *payload, size_t len, int qos,
                 uint32_t timeout_ms, struct error *err)
{
    struct publish publish = { .topic = topic, .payload = payload, .len = len, .qos = qos };

    return publish_and_wait(mqtt, &publish, timeout_ms, err);
}

int mqtt_publish_retained(struct mqtt *mqtt, const char *topic, const void *payload, size_t len,
                          uint32_t timeout_ms, struct error *err)
{
    struct publish publish = {
        .topic = topic, .payload = payload, .len = len, .qos = 1, .retain = true
    };

    return publish_and_wait(mqtt, &publish, timeout_ms, err);
}

void mqtt_publish_cancel(struct mqtt *mqtt)
{
    pthread_mutex_lock(&mqtt->lock);
    mqtt->canceled = true;
    for (struct publish *next = TAILQ_FIRST(&mqtt->queue); next; next = TAILQ_NEXT(next, entry))
        pthread_cond_signal(&next->changed);
    for (size_t i = 0; i < MQTT_IN_FLIGHT; i++)
        if (mqtt->flights[i].mid && mqtt->flights[i].publish)
            pthread_cond_signal(&mqtt->flights[i].publish->changed);
    pthread_mutex_unlock(&mqtt->lock);
}

/* With the lock; the publish may be gone when it is released. */
static void finish(struct publish *publish, enum error_code code, const char *why)
{
    if (code != ERROR_NONE)
        (void)error_set(&publish->result, code, "publish to '%s': %s", publish->topic, why);
    publish->state = PUBLISH_DONE;
    pthread_cond_signal(&publish->changed);
}

static struct flight *free_flight(struct mqtt *mqtt)
{
    for (size_t i = 0; i < MQTT_IN_FLIGHT; i++)
        if (!mqtt->flights[i].mid)
            return &mqtt->flights[i];
    return NULL;
}

static struct publish *take_queued(struct mqtt *mqtt)
{
    struct publish *publish = NULL;

    pthread_mutex_lock(&mqtt->lock);
    if (free_flight(mqtt) && !TAILQ_EMPTY(&mqtt->queue)) {
        publish = TAILQ_FIRST(&mqtt->queue);
        TAILQ_REMOVE(&mqtt->queue, publish, entry);
        publish->state = PUBLISH_HANDED_OVER;
    }
    pthread_mutex_unlock(&mqtt->lock);
    return publish;
}

/* While it is copied its thread waits, so it need not be copied twice. */
static void hand_over(struct mqtt *mqtt, struct mosquitto *handle, struct publish *publish)
{
    int mid = 0;
    int rc = mosquitto_publish(handle, &mid, publish->topic, (int)publish->len, publish->payload,
                               publish->qos, publish->retain);

    pthread_mutex_lock(&mqtt->lock);
    if (rc == MOSQ_ERR_SUCCESS) {
        *free_flight(mqtt) = (struct flight){ .mid = mid,
                                              .publish = publish,
                                              .since_ms = clock_monotonic_ms(&CLOCK_SYSTEM) };
        publish->state = PUBLISH_SENT;
        pthread_cond_signal(&publish->changed); /* from now on its deadline counts */
    } else {
        finish(publish, ERROR_UNAVAILABLE, mosquitto_strerror(rc));
    }
    pthread_mutex_unlock(&mqtt->lock);
}

static void cancel(struct mqtt *mqtt, struct publish *publish)
{
    pthread_mutex_lock(&mqtt->lock);
    finish(publish, ERROR_CANCELED, "not allowed any more");
    pthread_mutex_unlock(&mqtt->lock);
}

bool mqtt_publish_hand_over(struct connection *connection)
{
    struct mqtt *mqtt = connection->mqtt;

    for (;;) {
        struct publish *publish = take_queued(mqtt);

        if (!publish)
            return true;
        if (!mqtt_may_act(mqtt)) {
            cancel(mqtt, publish);
            return false;
        }
        hand_over(mqtt, connection->handle, publish);
    }
}

void mqtt_published(struct mqtt *mqtt, int mid)
{
    pthread_mutex_lock(&mqtt->lock);
    for (size_t i = 0; i < MQTT_IN_FLIGHT; i++) {
        struct flight *flight = &mqtt->flights[i];

        if (flight->mid != mid)
            continue;
        if (flight->publish)
            finish(flight->publish, ERROR_NONE, NULL);
        *flight = (struct flight){ 0 };
    }
    pthread_mutex_unlock(&mqtt->lock);
}

bool mqtt_publish_oldest(struct mqtt *mqtt, int64_t *ret_since_ms)
{
    bool any = false;

    pthread_mutex_lock(&mqtt->lock);
    for (size_t i = 0; i < MQTT_IN_FLIGHT; i++) {
        const struct flight *flight = &mqtt->flights[i];

        if (flight->mid && (!any || flight->since_ms < *ret_since_ms)) {
            *ret_since_ms = flight->since_ms;
            any = true;
        }
    }
    pthread_mutex_unlock(&mqtt->lock);
    return any;
}

void mqtt_publish_end(struct mqtt *mqtt, enum error_code unsent, const char *why)
{
    pthread_mutex_lock(&mqtt->lock);
    mqtt->connected = false;
    (void)str_copy(mqtt->why, sizeof(mqtt->why), why);
    for (size_t i = 0; i < MQTT_IN_FLIGHT; i++) {
        if (mqtt->flights[i].mid && mqtt->flights[i].publish)
            finish(mqtt->flights[i].publish, ERROR_TIMEOUT, why);
        mqtt->flights[i] = (struct flight){ 0 };
    }
    while (!TAILQ_EMPTY(&mqtt->queue)) {
        struct publish *publish = TAILQ_FIRST(&mqtt->queue);

        TAILQ_REMOVE(&mqtt->queue, publish, entry);
        finish(publish, unsent, why);
    }
    pthread_mutex_unlock(&mqtt->lock);
}
