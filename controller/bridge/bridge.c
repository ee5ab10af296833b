#include "controller/bridge/bridge.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/log.h"
#include "common/base/map.h"
#include "common/base/str.h"
#include "common/runtime/metrics.h"
#include "controller/bridge/bridge_fence.h"
#include "controller/bridge/bridge_messages.h"
#include "controller/bridge/quarantine.h"
#include "controller/cache/indexes.h"

#define MARKER_SUFFIX "controller/marker"
static const char *const EVENTS_SUFFIXES[] = { "proplet/results", "proplet/invoke_results",
                                               "proplet/create", "proplet/reclaim", MARKER_SUFFIX };
static const char *const CONTROL_SUFFIXES[] = { "proplet/alive", "proplet/metrics",
                                                "proplet/task_metrics" };

static const char *const EACH_SUFFIXES[] = { "proplet/create", "proplet/alive" };

/* What makes heartbeats be heard. */
#define ALIVE_SUFFIX "proplet/alive"

/* A broker that does not let this process publish the end of the copies sends it no copies of its own
 * either; those of others have come by then. */
#define COPIES_PATIENCE_MS 10000

#define KIND_BIT(kind) (1U << (kind))
#define CONTROL_KINDS                                                                              \
    (KIND_BIT(MESSAGE_ALIVE) | KIND_BIT(MESSAGE_METRICS) | KIND_BIT(MESSAGE_TASK_METRICS))

struct channel {
    size_t users;                       /* Proplets and Enrollments */
    unsigned refused;                   /* KIND_BIT of each subscription that is refused */
    bool marker;                        /* a marker published here comes back */
    bool deaf_to_reclaims;              /* the broker refuses that subscription */
    bool results, create;               /* what is published here is kept for us */
    int64_t since_ms, results_since_ms; /* see struct channel_state */
};

struct bridge {
    struct bridge_options options;
    struct bridge_sink sink;
    char *events_id;
    struct mqtt *events;
    struct mqtt *control;
    struct quarantine *quarantine;

    pthread_mutex_t lock; /* leaf: guards what follows */
    struct map *channels;
    struct fence fence;
    char marker_channel[CHANNEL_KEY_LEN]; /* where the last marker went */
    struct map *waiters;     /* kube_name_key -> struct kube_name: Tasks that wait for a marker */
    int64_t events_since_ms; /* results come in since then; 0: not now */
    bool copies_asked; /* copies that the broker holds come before any marker sent from now on */
    int64_t copies_heard_ms; /* the control connection's subscription to them was granted; 0: not */
    char copies_end[UUID_LEN]; /* published behind it; "": not */
};

static struct metric CONNECTS = { .type = METRIC_COUNTER,
                                  .name = "propeller_mqtt_connects_total",
                                  .help = "Number of connections that the broker accepted.",
                                  .labels = { "connection" } };
static struct metric PUBLISHED = {
    .type = METRIC_HISTOGRAM,
    .name = "propeller_mqtt_publish_seconds",
    .help = "Time from the publication of a message to a device to the broker's acknowledgement.",
};
static struct metric RECLAIM_REFUSED = {
    .type = METRIC_COUNTER,
    .name = "propeller_reclaim_subscriptions_refused_total",
    .help = "Number of channels on which the broker refused the subscription to reclaims.",
};
static struct metric CONNECTED = { .type = METRIC_GAUGE,
                                   .name = "propeller_mqtt_connected",
                                   .help = "1 while the connection to the broker stands.",
                                   .labels = { "connection" } };

/* Whoever waits for a marker asks again: it is back, or has to be sent anew. */
static void wake_waiters(struct bridge *bridge)
{
    struct map *fresh = map_create(free);
    const char *key;
    void *value;

    pthread_mutex_lock(&bridge->lock);
    struct map *waiters = bridge->waiters;
    bridge->waiters = fresh;
    pthread_mutex_unlock(&bridge->lock);
    for (size_t i = 0; map_next(waiters, &i, &key, &value);)
        workqueue_add(bridge->sink.task_queue, value);
    map_destroy(waiters);
}

/* Locked. The last marker that came back was sent on the present connection, which may be in the millisecond in which
 * it was made. */
static bool is_of_connection(const struct bridge *bridge)
{
    return bridge->events_since_ms && fence_passed(&bridge->fence, bridge->events_since_ms - 1);
}

static void on_marker(void *ctx, const char *text, size_t len)
{
    struct bridge *bridge = ctx;

    pthread_mutex_lock(&bridge->lock);
    bool news = fence_returned(&bridge->fence, text, len);
    bool caught_up = is_of_connection(bridge);
    pthread_mutex_unlock(&bridge->lock);
    bridge->sink.caught_up = caught_up;
    if (news)
        wake_waiters(bridge);
}

static void on_message(void *ctx, const char *topic, const void *payload, size_t len,
                       bool duplicate UNUSED)
{
    struct bridge *bridge = ctx;

    bridge_message(&bridge->sink, topic, payload, len);
}

/* Nothing of an earlier process is to come any more. */
static void copies_came(struct bridge *bridge)
{
    mailbox_expect_copies(bridge->options.mailbox, false);
    bridge_wake_active(&bridge->sink);
}

static bool is_end_of_copies(struct bridge *bridge, const char *topic)
{
    const char *end = strstr(topic, "/" QUARANTINE_END);

    if (!end)
        return false;
    pthread_mutex_lock(&bridge->lock);
    bool ret = str_equal(end + strlen("/" QUARANTINE_END), bridge->copies_end);
    pthread_mutex_unlock(&bridge->lock);
    return ret;
}

static void on_control_message(void *ctx, const char *topic, const void *payload, size_t len,
                               bool duplicate UNUSED)
{
    struct bridge *bridge = ctx;

    if (is_end_of_copies(ctx, topic))
        copies_came(ctx);
    else
        bridge_control_message(&bridge->sink, topic, payload, len);
}

static void on_retained(void *ctx UNUSED, const char *topic)
{
    bridge_count_retained(topic);
}

static void wake_tasks(struct bridge *bridge, struct arena *arena,
                       const struct kube_object *proplet)
{
    char key[KUBE_KEY_LEN];
    struct object_list list =
        store_find(bridge->options.tasks, arena, INDEX_ASSIGNED, kube_object_key(proplet, key));

    for (size_t i = 0; i < list.len; i++)
        workqueue_add_object(bridge->sink.task_queue, list.items[i]);
}

/* The Proplets whose channel this is look at it again, and the Tasks that are assigned to them. */
static void wake_channel(struct bridge *bridge, const char *channel, bool tasks)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct object_list list = store_find(bridge->options.proplets, arena, "channel", channel);

    for (size_t i = 0; i < list.len; i++) {
        workqueue_add_object(bridge->sink.proplet_queue, list.items[i]);
        if (tasks)
            wake_tasks(bridge, arena, list.items[i]);
    }
    bridge_wake_enrollments(&bridge->sink, channel);
}

/* true: its results are heard from now on. */
static bool channel_granted(struct channel *channel, enum message_kind kind, int64_t now_ms)
{
    channel->refused &= ~KIND_BIT(kind);
    if (kind == MESSAGE_ALIVE)
        channel->since_ms = now_ms;
    else if (kind == MESSAGE_MARKER)
        channel->marker = true;
    else if (kind == MESSAGE_RESULT)
        channel->results = true;
    else if (kind == MESSAGE_CREATE)
        channel->create = true;
    if (!channel->results || !channel->create || channel->results_since_ms)
        return false;

    channel->results_since_ms = now_ms;
    return true;
}

/* Everything else works without: a broker whose rules are older than this topic costs one line a connection. */
static void reclaim_subscribed(struct bridge *bridge, const char *key, const char *filter,
                               int granted)
{
    pthread_mutex_lock(&bridge->lock);
    struct channel *channel = map_get(bridge->channels, key);
    bool news = channel && channel->deaf_to_reclaims != (granted < 0);
    if (channel)
        channel->deaf_to_reclaims = granted < 0;
    pthread_mutex_unlock(&bridge->lock);
    if (!news || granted >= 0)
        return;
    metric_add(&RECLAIM_REFUSED, 1, NULL);
    log_warn("the broker refused a subscription, devices of this channel cannot reclaim their "
             "Proplets",
             "filter", filter, NULL);
}

static void on_subscribed(void *ctx, const char *filter, int granted)
{
    struct bridge *bridge = ctx;
    char key[CHANNEL_KEY_LEN];
    enum message_kind kind = message_topic_parse(filter, key);
    bool heard = false;

    if (kind == MESSAGE_RECLAIM) {
        reclaim_subscribed(bridge, key, filter, granted);
        return;
    }
    if (granted < 0)
        log_warn("the broker refused a subscription, asking again", "filter", filter, NULL);
    if (kind == MESSAGE_UNKNOWN || kind == MESSAGE_MODULE) /* starts and results do without */
        return;

    pthread_mutex_lock(&bridge->lock);
    struct channel *channel = map_get(bridge->channels, key);
    if (channel && granted < 0)
        channel->refused |= KIND_BIT(kind);
    else if (channel)
        heard = channel_granted(channel, kind, clock_monotonic_ms(bridge->options.clock));
    bool may_send = kind == MESSAGE_MARKER && !bridge->fence.sent_ms;
    pthread_mutex_unlock(&bridge->lock);
    wake_channel(bridge, key, heard);
    if (may_send)
        wake_waiters(bridge);
}

static void on_events_subscribed(void *ctx, const char *filter, int granted)
{
    struct bridge *bridge = ctx;

    if (!str_equal(filter, QUARANTINE_FILTER)) {
        on_subscribed(ctx, filter, granted);
        return;
    }
    if (granted < 0)
        log_warn("the broker refused a subscription, a result that cannot be written holds up all "
                 "others",
                 "filter", filter, NULL);
    pthread_mutex_lock(&bridge->lock);
    bridge->copies_asked = true;
    pthread_mutex_unlock(&bridge->lock);
    wake_waiters(bridge);
}

static void on_control_subscribed(void *ctx, const char *filter, int granted)
{
    struct bridge *bridge = ctx;

    if (!str_equal(filter, QUARANTINE_FILTER)) {
        on_subscribed(ctx, filter, granted);
        return;
    }
    int64_t now_ms = clock_monotonic_ms(bridge->options.clock);

    mailbox_copies_come(bridge->options.mailbox, now_ms);
    pthread_mutex_lock(&bridge->lock);
    bridge->copies_heard_ms = granted < 0 ? 0 : now_ms;
    pthread_mutex_unlock(&bridge->lock);
    if (granted < 0)
        copies_came(bridge);
}

static void on_control_state(void *ctx, bool connected, bool session_present UNUSED,
                             const char *why)
{
    struct bridge *bridge = ctx;
    const char *key;
    void *value;

    metric_set(&CONNECTED, connected, "control", NULL);
    if (connected)
        metric_add(&CONNECTS, 1, "control", NULL);
    else if (why)
        log_warn("control connection to the broker ended, connecting again", "why", why, NULL);

    pthread_mutex_lock(&bridge->lock);
    bridge->copies_heard_ms = 0;
    bridge->copies_end[0] = '\0';
    if (!connected)
        fence_forget(&bridge->fence);
    for (size_t i = 0; map_next(bridge->channels, &i, &key, &value);) {
        struct channel *channel = value;
        channel->since_ms = 0;
        if (connected)
            channel->refused &= ~CONTROL_KINDS;
    }
    pthread_mutex_unlock(&bridge->lock);
    bridge_wake_enrollments(&bridge->sink, NULL);
    if (connected)
        bridge_wake_active(&bridge->sink); /* starts that could not be published */
}

static void on_events_state(void *ctx, bool connected, bool session_present, const char *why)
{
    struct bridge *bridge = ctx;

    const char *key;
    void *value;

    pthread_mutex_lock(&bridge->lock);
    for (size_t i = 0; map_next(bridge->channels, &i, &key, &value);) {
        struct channel *channel = value;
        channel->marker = channel->results = channel->create = false;
        channel->deaf_to_reclaims = channel->deaf_to_reclaims && !connected;
        channel->results_since_ms = 0;
        if (connected)
            channel->refused &= CONTROL_KINDS;
    }
    bridge->events_since_ms = connected ? clock_monotonic_ms(bridge->options.clock) : 0;
    bridge->copies_asked = false;
    fence_forget(&bridge->fence); /* a broker that lost the session lost the marker with it */
    pthread_mutex_unlock(&bridge->lock);
    bridge->sink.caught_up = false;
    metric_set(&CONNECTED, connected, "events", NULL);
    if (connected) {
        metric_add(&CONNECTS, 1, "events", NULL);
        log_info("connected to the broker", "session", session_present ? "resumed" : "new", NULL);
    } else if (why) {
        log_warn("events connection to the broker ended, connecting again", "why", why, NULL);
    }
    bridge_sink_reconnected(&bridge->sink);
}

static bool settle(void *ctx, uint32_t timeout_ms)
{
    struct bridge *bridge = ctx;

    return bridge_sink_settled(&bridge->sink) &&
           mailbox_wait_empty(bridge->options.mailbox, timeout_ms);
}

/* How many channels there are on which markers are heard, and the nth; one session is one queue, so
 * any of them will do. */
static size_t marker_channels(struct bridge *bridge, size_t nth, char ret[static CHANNEL_KEY_LEN])
{
    const char *key;
    void *value;
    size_t count = 0;

    for (size_t i = 0; map_next(bridge->channels, &i, &key, &value);) {
        const struct channel *channel = value;
        if (channel->marker && count++ == nth)
            (void)str_copy(ret, CHANNEL_KEY_LEN, key);
    }
    return count;
}

/* ---- copies of results: see quarantine.h ---- */

static bool retain(struct bridge *bridge, const char *topic, const char *payload, size_t len)
{
    struct error err = { 0 };
    int r = mqtt_publish_retained(bridge->control, topic, payload, len, bridge->options.timeout_ms,
                                  &err);

    if (r < 0)
        log_debug("copy not published", "topic", topic, "error", err.message, NULL);
    return r == 0;
}

/* Any channel for a Task without a Proplet: nothing will come of its result. */
static bool publish_copy(void *ctx, const char *channel, const char *uid, const char *suffix,
                         const char *payload, size_t len)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct bridge *bridge = ctx;
    char any[CHANNEL_KEY_LEN] = "";

    bool found = channel || bridge_channel_of_task(&bridge->sink, arena, uid, any);

    pthread_mutex_lock(&bridge->lock);
    found = found || marker_channels(bridge, 0, any);
    pthread_mutex_unlock(&bridge->lock);
    return found &&
           retain(bridge, message_topic(arena, channel ? channel : any, suffix), payload, len);
}

static bool remove_copy(void *ctx, const char *topic)
{
    return retain(ctx, topic, "", 0);
}

static bool hears_copies(void *ctx)
{
    struct bridge *bridge = ctx;

    pthread_mutex_lock(&bridge->lock);
    bool ret = bridge->copies_heard_ms;
    pthread_mutex_unlock(&bridge->lock);
    return ret;
}

static void recall_copies(void *ctx)
{
    struct bridge *bridge = ctx;

    pthread_mutex_lock(&bridge->lock);
    bridge->copies_heard_ms = 0;
    pthread_mutex_unlock(&bridge->lock);
    mqtt_unsubscribe(bridge->control, QUARANTINE_FILTER);
    mqtt_subscribe(bridge->control, QUARANTINE_FILTER, 1);
}

/* Locked. true: the end of the copies is to be published to this topic. */
static bool next_end(struct bridge *bridge, struct arena *arena, const char **ret_topic)
{
    const char *channel;
    void *value;
    size_t i = 0;

    if (!bridge->copies_heard_ms || bridge->copies_end[0])
        return false;
    do {
        if (!map_next(bridge->channels, &i, &channel, &value))
            return false;
    } while (str_has_suffix(channel, CHANNEL_EACH)); /* nothing can be published there */
    const char *suffix = arena_printf(arena, QUARANTINE_END "%s", uuid_random(bridge->copies_end));
    *ret_topic = message_topic(arena, channel, suffix);
    return true;
}

static void await_copies(void *ctx)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct bridge *bridge = ctx;
    int64_t now_ms = clock_monotonic_ms(bridge->options.clock);
    const char *topic;
    struct error err = { 0 };

    pthread_mutex_lock(&bridge->lock);
    bool late = bridge->copies_heard_ms && now_ms - bridge->copies_heard_ms >= COPIES_PATIENCE_MS;
    bool send = !late && next_end(bridge, arena, &topic);
    pthread_mutex_unlock(&bridge->lock);
    if (late) {
        log_warn("the marker behind the copies of results did not come back, going on without it",
                 NULL);
        copies_came(bridge);
    }
    if (!send)
        return;

    int r = mqtt_publish(bridge->control, topic, "", 0, 1, bridge->options.timeout_ms, &err);
    if (r == 0 || r == -ERROR_TIMEOUT)
        return;
    log_debug("end of copies not published", "error", err.message, NULL);
    pthread_mutex_lock(&bridge->lock);
    bridge->copies_end[0] = '\0';
    pthread_mutex_unlock(&bridge->lock);
}

static void make_connections(struct bridge *bridge)
{
    const struct bridge_options *options = &bridge->options;
    size_t size = strlen(options->client_id) + sizeof("-results");
    bridge->events_id = xmalloc(size);
    snprintf(bridge->events_id, size, "%s-results", options->client_id);

    struct mqtt_options connection = options->connection;
    connection.client_id = options->client_id;
    connection.clean_session = true;
    connection.retained = QUARANTINE_FILTER;
    const struct mqtt_handlers control = {
        .ctx = bridge,
        .message = on_control_message,
        .subscribed = on_control_subscribed,
        .state = on_control_state,
        .retained = on_retained,
    };
    bridge->control = mqtt_create(&connection, &control);

    connection.client_id = bridge->events_id;
    connection.clean_session = false;
    connection.settle = settle;
    connection.settle_ctx = bridge;
    const struct mqtt_handlers events = {
        .ctx = bridge,
        .message = on_message,
        .subscribed = on_events_subscribed,
        .state = on_events_state,
        .retained = on_retained,
    };
    bridge->events = mqtt_create(&connection, &events);

    /* By the events connection they come before a marker; by the other one also while it waits. */
    mqtt_subscribe(bridge->events, QUARANTINE_FILTER, 1);
    mqtt_subscribe(bridge->control, QUARANTINE_FILTER, 1);
    mqtt_subscribe(bridge->events, UPDATE_FILTER, 1);
}

struct bridge *bridge_create(const struct bridge_options *options)
{
    struct bridge *bridge = xcalloc(1, sizeof(*bridge));

    metric_set(&CONNECTED, 0, "control", NULL);
    metric_add(&CONNECTS, 0, "control", NULL);
    metric_add(&CONNECTS, 0, "events", NULL);
    metric_add(&PUBLISHED, 0, NULL);
    metric_set(&CONNECTED, 0, "events", NULL);
    metric_add(&RECLAIM_REFUSED, 0, NULL);
    bridge_reclaims_begin();
    bridge->options = *options;
    bridge->channels = map_create(free);
    bridge->waiters = map_create(free);
    fence_init(&bridge->fence);
    pthread_mutex_init(&bridge->lock, NULL);
    bridge->sink = (struct bridge_sink){
        .tasks = options->tasks,
        .proplets = options->proplets,
        .fleet = options->fleet,
        .attempts = options->attempts,
        .mailbox = options->mailbox,
        .clock = options->clock,
        .knows_all = options->knows_all,
        .knows_all_ctx = options->knows_all_ctx,
        .marker = on_marker,
        .marker_ctx = bridge,
    };

    make_connections(bridge);
    const struct quarantine_options quarantine = {
        .mailbox = options->mailbox,
        .clock = options->clock,
        .ctx = bridge,
        .publish = publish_copy,
        .remove = remove_copy,
        .hears_copies = hears_copies,
        .recall = recall_copies,
        .await_copies = await_copies,
    };
    bridge->quarantine = quarantine_create(&quarantine);
    if (options->own_channel)
        bridge_channel_add(bridge, options->own_channel);
    return bridge;
}

void bridge_destroy(struct bridge *bridge)
{
    if (!bridge)
        return;

    quarantine_destroy(bridge->quarantine);
    mqtt_destroy(bridge->events);
    mqtt_destroy(bridge->control);
    map_destroy(bridge->channels);
    map_destroy(bridge->waiters);
    pthread_mutex_destroy(&bridge->lock);
    free(bridge->events_id);
    free(bridge);
}

void bridge_set_queues(struct bridge *bridge, struct workqueue *tasks, struct workqueue *proplets)
{
    bridge->sink.task_queue = tasks;
    bridge->sink.proplet_queue = proplets;
}

void bridge_set_enrollments(struct bridge *bridge, struct store *enrollments,
                            struct workqueue *queue)
{
    bridge->sink.enrollments = enrollments;
    bridge->sink.enrollment_queue = queue;
}

int bridge_start(struct bridge *bridge, struct error *err)
{
    mailbox_expect_copies(bridge->options.mailbox, true);

    int r = mqtt_start(bridge->control, err);
    if (r < 0)
        return r;

    r = mqtt_start(bridge->events, err);
    if (r < 0)
        return r;

    return quarantine_start(bridge->quarantine, err);
}

void bridge_stop(struct bridge *bridge)
{
    quarantine_stop(bridge->quarantine);
    mqtt_stop(bridge->events);
    mqtt_stop(bridge->control);
}

void bridge_cancel(struct bridge *bridge)
{
    mqtt_publish_cancel(bridge->control);
}

typedef void filter_fn(struct bridge *bridge, struct mqtt *mqtt, const char *filter);

static void subscribe(struct bridge *bridge, struct mqtt *mqtt, const char *filter)
{
    /* Below 1 the broker would keep nothing while we are away. */
    mqtt_subscribe(mqtt, filter, mqtt == bridge->events ? 1 : bridge->options.qos);
}

static void unsubscribe(struct bridge *bridge UNUSED, struct mqtt *mqtt, const char *filter)
{
    mqtt_unsubscribe(mqtt, filter);
}

static void for_each_filter(struct bridge *bridge, const char *channel, filter_fn *function)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    if (str_has_suffix(channel, CHANNEL_EACH)) {
        for (size_t i = 0; i < ARRAY_LEN(EACH_SUFFIXES); i++)
            function(bridge, bridge->control, message_topic(arena, channel, EACH_SUFFIXES[i]));
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(EVENTS_SUFFIXES); i++)
        function(bridge, bridge->events, message_topic(arena, channel, EVENTS_SUFFIXES[i]));
    for (size_t i = 0; i < ARRAY_LEN(CONTROL_SUFFIXES); i++)
        function(bridge, bridge->control, message_topic(arena, channel, CONTROL_SUFFIXES[i]));
    if (bridge->sink.module_request)
        function(bridge, bridge->control, message_registry_topic(arena, channel, "proplet"));
}

/* A channel that is subscribed to already is the one of the flags. */
void bridge_set_module_requests(struct bridge *bridge, module_request_fn *function, void *ctx)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *own = bridge->options.own_channel;

    bridge->sink.module_request = function;
    bridge->sink.module_request_ctx = ctx;
    if (own)
        subscribe(bridge, bridge->control, message_registry_topic(arena, own, "proplet"));
}

void bridge_channel_add(struct bridge *bridge, const char *channel)
{
    pthread_mutex_lock(&bridge->lock);
    struct channel *entry = map_get(bridge->channels, channel);
    bool fresh = !entry;
    if (fresh) {
        entry = xcalloc(1, sizeof(*entry));
        map_set(bridge->channels, channel, entry);
    }
    entry->users++;
    pthread_mutex_unlock(&bridge->lock);
    if (fresh && str_has_suffix(channel, CHANNEL_EACH))
        atomic_fetch_add(&bridge->sink.wildcards, 1);
    if (fresh)
        for_each_filter(bridge, channel, subscribe);
}

void bridge_channel_remove(struct bridge *bridge, const char *channel)
{
    pthread_mutex_lock(&bridge->lock);
    struct channel *entry = map_get(bridge->channels, channel);
    bool last = entry && --entry->users == 0;
    if (last)
        map_remove(bridge->channels, channel);
    pthread_mutex_unlock(&bridge->lock);
    if (last && str_has_suffix(channel, CHANNEL_EACH))
        atomic_fetch_sub(&bridge->sink.wildcards, 1);
    if (last)
        for_each_filter(bridge, channel, unsubscribe);
}

struct channel_state bridge_channel_state(struct bridge *bridge, const char *channel)
{
    struct channel_state ret = { 0 };

    pthread_mutex_lock(&bridge->lock);
    const struct channel *entry = map_get(bridge->channels, channel);
    if (entry)
        ret = (struct channel_state){ .refused = entry->refused != 0,
                                      .since_ms = entry->since_ms,
                                      .results_since_ms = entry->results_since_ms };
    pthread_mutex_unlock(&bridge->lock);
    return ret;
}

int bridge_publish_module(struct bridge *bridge, const char *channel, const void *payload,
                          size_t len, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    return mqtt_publish(bridge->control, message_registry_topic(arena, channel, "server"), payload,
                        len, 1, bridge->options.timeout_ms, err);
}

int bridge_publish(struct bridge *bridge, const char *channel, const char *suffix,
                   const void *payload, size_t len, int qos, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    int64_t begin_ms = clock_monotonic_ms(bridge->options.clock);
    int r = mqtt_publish(bridge->control, message_topic(arena, channel, suffix), payload, len, qos,
                         bridge->options.timeout_ms, err);

    if (r == 0)
        metric_observe(&PUBLISHED,
                       (double)(clock_monotonic_ms(bridge->options.clock) - begin_ms) / 1000, NULL);
    return r;
}

struct marker {
    char channel[CHANNEL_KEY_LEN];
    char text[FENCE_TEXT_LEN];
    char lost[CHANNEL_KEY_LEN]; /* where the one before it went that did not come back; "": none */
};

/* Locked. true: it is to be published. Another channel after each that was lost: a broker may forbid
 * it on one and not on the next, without a word or by ending the connection. */
static bool next_marker(struct bridge *bridge, int64_t now_ms, struct marker *ret)
{
    bool late = bridge->fence.sent_ms;
    size_t count = 0;

    *ret = (struct marker){ 0 };
    if (bridge->copies_asked && fence_is_due(&bridge->fence, now_ms))
        count = marker_channels(bridge, 0, ret->channel);
    if (!count || !fence_send(&bridge->fence, now_ms, ret->text))
        return false;
    if (bridge->fence.lost)
        (void)marker_channels(bridge, bridge->fence.lost % count, ret->channel);
    if (late)
        (void)str_copy(ret->lost, sizeof(ret->lost), bridge->marker_channel);
    return str_copy(bridge->marker_channel, sizeof(bridge->marker_channel), ret->channel);
}

static void warn_of_lost_marker(const char *channel)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    log_warn("a marker did not come back, sending another: the broker has much to hand over, or "
             "does not let the controller publish on this topic, or its queue is full; no start "
             "that waits for it goes out",
             "topic", message_topic(arena, channel, MARKER_SUFFIX), "timeout_ms",
             LOG_INT(FENCE_TIMEOUT_MS), NULL);
}

static void send_marker(struct bridge *bridge, const struct marker *marker)
{
    struct error err = { 0 };

    if (*marker->lost)
        warn_of_lost_marker(marker->lost);

    int r = bridge_publish(bridge, marker->channel, MARKER_SUFFIX, marker->text,
                           strlen(marker->text), 1, &err);
    if (r == 0 || r == -ERROR_TIMEOUT)
        return;

    pthread_mutex_lock(&bridge->lock);
    fence_forget(&bridge->fence);
    pthread_mutex_unlock(&bridge->lock);
    log_debug("marker not published, the next connection tries again", "error", ERROR_TEXT(&err),
              NULL);
}

/* Locked. */
static enum fence_state state_of(const struct bridge *bridge, int64_t since_ms)
{
    if (!fence_passed(&bridge->fence, since_ms))
        return FENCE_PENDING;
    /* Once a connection in any case: a marker tells what was stored from what happens. */
    return is_of_connection(bridge) ? FENCE_PASSED : FENCE_PASSED_EARLIER;
}

enum fence_state bridge_fence_state(struct bridge *bridge, int64_t since_ms)
{
    pthread_mutex_lock(&bridge->lock);

    enum fence_state state = state_of(bridge, since_ms);

    pthread_mutex_unlock(&bridge->lock);
    return state;
}

/* Locked. */
static void add_waiter(struct bridge *bridge, const struct kube_name *waiter)
{
    char key[KUBE_KEY_LEN];

    if (map_get(bridge->waiters, kube_name_key(waiter, key)))
        return;

    struct kube_name *name = xmalloc(sizeof(*name));

    *name = *waiter;
    map_set(bridge->waiters, key, name);
}

void bridge_fence_request(struct bridge *bridge, int64_t since_ms, const struct kube_name *waiter)
{
    int64_t now_ms = clock_monotonic_ms(bridge->options.clock);
    struct marker marker;

    pthread_mutex_lock(&bridge->lock);

    enum fence_state state = state_of(bridge, since_ms);
    bool send = state != FENCE_PASSED && next_marker(bridge, now_ms, &marker);

    if (state == FENCE_PENDING && waiter)
        add_waiter(bridge, waiter);
    pthread_mutex_unlock(&bridge->lock);
    if (send)
        send_marker(bridge, &marker);
    if (state != FENCE_PENDING && waiter)
        workqueue_add(bridge->sink.task_queue, waiter);
}

bool bridge_marker_overdue(struct bridge *bridge)
{
    pthread_mutex_lock(&bridge->lock);
    bool ret = fence_is_overdue(&bridge->fence, clock_monotonic_ms(bridge->options.clock));
    pthread_mutex_unlock(&bridge->lock);
    return ret;
}

bool bridge_connected(struct bridge *bridge, char *why, size_t size)
{
    return mqtt_connected(bridge->control, why, size) && mqtt_connected(bridge->events, why, size);
}
