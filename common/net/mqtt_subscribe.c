#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/net/mqtt_internal.h"

/* SUBACK's answer for a filter that the broker does not accept. */
#define SUBACK_REFUSED 0x80

/* Until refused filters are asked for again, all together. Jitter takes up to a half off. */
#define MAX_RETRY_MS 30000

/*
 *  mqtt_subscribe --> WANTED --SUBSCRIBE--> ASKED --SUBACK--> SETTLED
 *                        ^                    |                  |
 *                        |                  0x80                 |
 *                        +---- later ---- REFUSED                |
 *                        +----- new connection, other QoS -------+
 *
 *  mqtt_unsubscribe --> UNWANTED --UNSUBSCRIBE--> LEAVING --UNSUBACK--> forgotten
 */
enum filter_state { WANTED, ASKED, SETTLED, REFUSED, UNWANTED, LEAVING };

struct filter {
    enum filter_state state;
    int qos;
    bool invalid; /* MQTT knows no such filter: never sent, told as refused */
    bool told;    /* that it is refused, on this connection */
};

static bool is_invalid(const char *filter)
{
    size_t len = strlen(filter);

    return len == 0 || len > UINT16_MAX || mosquitto_sub_topic_check(filter) != MOSQ_ERR_SUCCESS ||
           mosquitto_validate_utf8(filter, (int)len) != MOSQ_ERR_SUCCESS;
}

void mqtt_subscribe(struct mqtt *mqtt, const char *name, int qos)
{
    /* A QoS 2 message is ours before it is handed over: with settle it could be lost. */
    if (mqtt->options.settle && qos > 1)
        qos = 1;

    pthread_mutex_lock(&mqtt->lock);

    struct filter *filter = map_get(mqtt->filters, name);
    bool as_before =
        filter && filter->qos == qos && filter->state != UNWANTED && filter->state != LEAVING;

    if (!filter) {
        filter = xcalloc(1, sizeof(*filter));
        filter->invalid = is_invalid(name);
        map_set(mqtt->filters, name, filter);
    }
    if (!as_before) {
        filter->qos = qos;
        filter->state = WANTED;
        mqtt->filters_changed = true;
        mqtt->retry_backoff_ms = mqtt->options.backoff_ms;
    }
    mqtt_wake(mqtt);
    pthread_mutex_unlock(&mqtt->lock);
}

void mqtt_unsubscribe(struct mqtt *mqtt, const char *name)
{
    pthread_mutex_lock(&mqtt->lock);

    struct filter *filter = map_get(mqtt->filters, name);

    /* A persistent session remembers the subscription even while nobody is connected. */
    if (filter && (filter->invalid || (!mqtt->connected && mqtt->options.clean_session))) {
        map_remove(mqtt->filters, name);
    } else if (filter && filter->state != LEAVING) {
        filter->state = UNWANTED;
        mqtt->filters_changed = true;
    }
    mqtt_wake(mqtt);
    pthread_mutex_unlock(&mqtt->lock);
}

void mqtt_filters_reset(struct connection *connection, bool session_present)
{
    struct mqtt *mqtt = connection->mqtt;
    struct map *filters = map_create(free);
    const char *name;
    void *value;

    pthread_mutex_lock(&mqtt->lock);

    struct map *old = mqtt->filters;

    for (size_t i = 0; map_next(old, &i, &name, &value);) {
        struct filter filter = *(struct filter *)value;
        bool unwanted = filter.state == UNWANTED || filter.state == LEAVING;

        if (unwanted && !session_present)
            continue;
        filter.state = unwanted ? UNWANTED : WANTED;
        filter.told = false;
        map_set(filters, name, memcpy(xmalloc(sizeof(filter)), &filter, sizeof(filter)));
    }
    mqtt->filters = filters;
    mqtt->filters_changed = true;
    mqtt->retry_at_ms = 0;
    mqtt->retry_backoff_ms = mqtt->options.backoff_ms;
    pthread_mutex_unlock(&mqtt->lock);

    map_destroy(old);
}

/* What one packet may hold: filters of one state and one QoS; an invalid one goes nowhere, alone.
 */
static bool goes_with(const struct filter *filter, const struct filter *first)
{
    return filter->state == first->state && filter->qos == first->qos && !filter->invalid &&
           !first->invalid;
}

/* Collects a packet of the filters in this state; returns a copy of its first filter as it was. */
static bool collect_those(struct connection *connection, enum filter_state state,
                          struct filter *ret_first)
{
    const char *name;
    void *value;
    bool found = false;

    for (size_t i = 0; connection->asked_count < MQTT_FILTERS_AT_ONCE &&
                       map_next(connection->mqtt->filters, &i, &name, &value);) {
        struct filter *filter = value;

        if (filter->state != state || (found && !goes_with(filter, ret_first)))
            continue;
        if (!found)
            *ret_first = *filter;
        found = true;
        filter->state = state == WANTED ? ASKED : LEAVING;
        connection->asked[connection->asked_count++] = xstrdup(name);
    }
    return found;
}

/* Asks for refused filters again when their time has come. Locked. */
static void retry_refused(struct mqtt *mqtt)
{
    const char *name;
    void *value;

    if (!mqtt->retry_at_ms || clock_monotonic_ms(&CLOCK_SYSTEM) < mqtt->retry_at_ms)
        return;
    mqtt->retry_at_ms = 0;
    for (size_t i = 0; map_next(mqtt->filters, &i, &name, &value);) {
        struct filter *filter = value;

        if (filter->state == REFUSED)
            filter->state = WANTED;
    }
    mqtt->filters_changed = true;
}

/* Collects the next packet. What is not wanted is left before more is asked for: a caller who is
 * granted a filter that he asked for after he left another knows that the broker has heard both. */
static bool collect(struct connection *connection, struct filter *ret_first)
{
    struct mqtt *mqtt = connection->mqtt;

    pthread_mutex_lock(&mqtt->lock);
    retry_refused(mqtt);

    bool found = mqtt->filters_changed && (collect_those(connection, UNWANTED, ret_first) ||
                                           collect_those(connection, WANTED, ret_first));

    if (!found)
        mqtt->filters_changed = false;
    pthread_mutex_unlock(&mqtt->lock);
    return found;
}

void mqtt_filters_forget(struct connection *connection)
{
    while (connection->asked_count)
        free(connection->asked[--connection->asked_count]);
    connection->asked_mid = 0;
}

int mqtt_filters_ask(struct connection *connection)
{
    struct filter first = { 0 };
    int rc = MOSQ_ERR_SUCCESS;

    while (!connection->asked_mid && rc == MOSQ_ERR_SUCCESS && collect(connection, &first)) {
        int count = (int)connection->asked_count;

        if (first.invalid) {
            static const int REFUSAL[] = { SUBACK_REFUSED };

            mqtt_filters_granted(connection, 0, 1, REFUSAL);
        } else if (first.state == WANTED) {
            rc = mosquitto_subscribe_multiple(connection->handle, &connection->asked_mid, count,
                                              connection->asked, first.qos, 0, NULL);
        } else {
            rc = mosquitto_unsubscribe_multiple(connection->handle, &connection->asked_mid, count,
                                                connection->asked, NULL);
        }
    }
    return rc;
}

/* Locked. */
static void schedule_retry(struct mqtt *mqtt)
{
    if (mqtt->retry_at_ms)
        return;
    mqtt->retry_at_ms = clock_monotonic_ms(&CLOCK_SYSTEM) + mqtt_jittered(mqtt->retry_backoff_ms);
    mqtt->retry_backoff_ms =
        mqtt->retry_backoff_ms * 2 > MAX_RETRY_MS ? MAX_RETRY_MS : mqtt->retry_backoff_ms * 2;
}

/* Moves a filter on that the broker granted or refused; false: the caller changed its mind
 * meanwhile, or was told of the refusal before. */
static bool answered(struct mqtt *mqtt, const char *name, bool refused)
{
    pthread_mutex_lock(&mqtt->lock);

    struct filter *filter = map_get(mqtt->filters, name);
    bool as_asked = filter && filter->state == ASKED;
    bool news = as_asked && !(refused && filter->told);

    if (as_asked) {
        filter->state = refused && !filter->invalid ? REFUSED : SETTLED;
        filter->told = refused;
        if (filter->state == REFUSED)
            schedule_retry(mqtt);
    }
    pthread_mutex_unlock(&mqtt->lock);
    return news;
}

void mqtt_filters_granted(struct connection *connection, int mid, int count, const int *granted)
{
    struct mqtt *mqtt = connection->mqtt;

    if (mid != connection->asked_mid)
        return;
    for (int i = 0; i < count && (size_t)i < connection->asked_count; i++) {
        bool refused = granted[i] >= SUBACK_REFUSED;

        if (answered(mqtt, connection->asked[i], refused) && mqtt->handlers.subscribed)
            mqtt->handlers.subscribed(mqtt->handlers.ctx, connection->asked[i],
                                      refused ? -1 : granted[i]);
    }
    mqtt_filters_forget(connection);
}

void mqtt_filters_removed(struct connection *connection, int mid)
{
    struct mqtt *mqtt = connection->mqtt;

    if (mid != connection->asked_mid)
        return;
    pthread_mutex_lock(&mqtt->lock);
    for (size_t i = 0; i < connection->asked_count; i++) {
        const struct filter *filter = map_get(mqtt->filters, connection->asked[i]);

        if (filter && filter->state == LEAVING)
            map_remove(mqtt->filters, connection->asked[i]);
    }
    pthread_mutex_unlock(&mqtt->lock);
    mqtt_filters_forget(connection);
}
