#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/net/mqtt_internal.h"

/* SUBACK's answer for a filter that the broker does not accept. */
#define REFUSED 0x80

/*
 *  mqtt_subscribe --> WANTED --SUBSCRIBE--> ASKED --SUBACK--> SETTLED
 *                        ^                                       |
 *                        +----- new connection, other QoS -------+
 *
 *  mqtt_unsubscribe --> UNWANTED --UNSUBSCRIBE--> LEAVING --UNSUBACK--> forgotten
 */
enum filter_state { WANTED, ASKED, SETTLED, UNWANTED, LEAVING };

struct filter {
    enum filter_state state;
    int qos;
    bool invalid; /* MQTT knows no such filter: never sent, told as refused */
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
        map_set(filters, name, memcpy(xmalloc(sizeof(filter)), &filter, sizeof(filter)));
    }
    mqtt->filters = filters;
    mqtt->filters_changed = true;
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

/* Collects the next packet. What is not wanted is left before more is asked for: a caller who is
 * granted a filter that he asked for after he left another knows that the broker has heard both. */
static bool collect(struct connection *connection, struct filter *ret_first)
{
    struct mqtt *mqtt = connection->mqtt;

    pthread_mutex_lock(&mqtt->lock);

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
            static const int REFUSAL[] = { REFUSED };

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

/* Moves an answered filter on; false: the caller has changed its mind meanwhile. */
static bool answered(struct mqtt *mqtt, const char *name, enum filter_state from)
{
    pthread_mutex_lock(&mqtt->lock);

    struct filter *filter = map_get(mqtt->filters, name);
    bool as_asked = filter && filter->state == from;

    if (as_asked && from == ASKED)
        filter->state = SETTLED;
    else if (as_asked)
        map_remove(mqtt->filters, name);
    pthread_mutex_unlock(&mqtt->lock);
    return as_asked;
}

void mqtt_filters_granted(struct connection *connection, int mid, int count, const int *granted)
{
    struct mqtt *mqtt = connection->mqtt;

    if (mid != connection->asked_mid)
        return;
    for (int i = 0; i < count && (size_t)i < connection->asked_count; i++)
        if (answered(mqtt, connection->asked[i], ASKED) && mqtt->handlers.subscribed)
            mqtt->handlers.subscribed(mqtt->handlers.ctx, connection->asked[i],
                                      granted[i] >= REFUSED ? -1 : granted[i]);
    mqtt_filters_forget(connection);
}

void mqtt_filters_removed(struct connection *connection, int mid)
{
    if (mid != connection->asked_mid)
        return;
    for (size_t i = 0; i < connection->asked_count; i++)
        (void)answered(connection->mqtt, connection->asked[i], LEAVING);
    mqtt_filters_forget(connection);
}
