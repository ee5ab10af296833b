#include "controller/tests/sim/sim_broker.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/str.h"
#include "common/net/mqtt.h"
#include "controller/tests/sim/sim_api.h"

#define MAX_FILTERS 64
#define MAX_STORED 16384
#define MAX_SESSIONS 8
#define MAX_RETAINED 4096
#define WINDOW 20
#define SETTLE_US 100000
#define RETRY_MIN_US 1000000
#define RETRY_MAX_US 30000000
#define NEVER INT64_MAX

struct sim_broker_faults sim_broker_faults;

struct message {
    char *topic;
    char *payload;
    int qos;
    bool sent_before;
};

/* The session of one client id. */
struct session {
    char *client_id;
    bool persistent;
    struct mqtt *connection; /* NULL: away */
    char *filters[MAX_FILTERS];
    size_t filter_count;
    struct message stored[MAX_STORED];
    size_t count;
};

static struct {
    struct session sessions[MAX_SESSIONS];
    size_t count;
    struct message retained[MAX_RETAINED];
    size_t retained_count;
    unsigned connects;
    int64_t slow_us; /* it last delivered slowly */
    sim_publish_fn *on_publish, *on_forgotten;
} broker;

struct wish {
    char *filter;
    bool granted;
};

struct mqtt {
    struct mqtt_options options;
    struct mqtt_handlers handlers;
    char *client_id;
    struct wish wishes[MAX_FILTERS];
    size_t wish_count;
    struct session *session; /* NULL: not connected */
    bool started, stopping, publish_cancelled;
    pthread_t thread;
    struct replica *replica;
    unsigned connects; /* tells an old connection from a new one */
};

/* ---- the broker ---- */

/* MQTT 3.1.1 §4.7: + is one level, # all that follow. */
static bool matches(const char *filter, const char *topic)
{
    while (*filter && *filter != '#') {
        if (*filter == '+') {
            filter++;
            topic += strcspn(topic, "/");
        } else if (*filter++ != *topic++) {
            return false;
        }
    }
    return *filter == '#' || *topic == '\0';
}

static bool subscribed(const struct session *session, const char *topic)
{
    for (size_t i = 0; i < session->filter_count; i++) {
        if (matches(session->filters[i], topic))
            return true;
    }
    return false;
}

static void store(struct session *session, const char *topic, const char *payload, int qos)
{
    if (!session->connection && (qos == 0 || !session->persistent))
        return;
    if (session->count == MAX_STORED)
        sim_fail("more than %d messages wait for '%s'", MAX_STORED, session->client_id);
    session->stored[session->count++] =
        (struct message){ .topic = xstrdup(topic), .payload = xstrdup(payload), .qos = qos };
    sim_wake(session->connection);
}

static void route(const char *topic, const char *payload, int qos)
{
    for (size_t i = 0; i < broker.count; i++) {
        if (subscribed(&broker.sessions[i], topic))
            store(&broker.sessions[i], topic, payload, qos);
    }
}

/* A retained message replaces that of its topic; an empty one removes it (MQTT 3.1.1, 3.3.1.3). */
static void retain(const char *topic, const char *payload)
{
    size_t at = 0;

    while (at < broker.retained_count && !str_equal(broker.retained[at].topic, topic))
        at++;
    if (at == MAX_RETAINED)
        sim_fail("more than %d retained messages", MAX_RETAINED);
    if (at < broker.retained_count) {
        free(broker.retained[at].topic);
        free(broker.retained[at].payload);
        broker.retained[at] = broker.retained[--broker.retained_count];
    }
    if (*payload)
        broker.retained[broker.retained_count++] =
            (struct message){ .topic = xstrdup(topic), .payload = xstrdup(payload), .qos = 1 };
}

static void acknowledge(struct session *session, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(session->stored[i].topic);
        free(session->stored[i].payload);
    }
    session->count -= count;
    memmove(session->stored, session->stored + count, session->count * sizeof(*session->stored));
}

static void disconnect(struct session *session)
{
    if (!session->connection)
        return;
    session->connection->session = NULL;
    sim_wake(session->connection);
    session->connection = NULL;
    if (!session->persistent) {
        acknowledge(session, session->count);
        session->filter_count = 0;
        return;
    }
    size_t kept = 0;
    for (size_t i = 0; i < session->count; i++) {
        if (session->stored[i].qos > 0)
            session->stored[kept++] = session->stored[i];
    }
    session->count = kept;
}

static struct session *session_of(const char *client_id)
{
    for (size_t i = 0; i < broker.count; i++) {
        if (str_equal(broker.sessions[i].client_id, client_id))
            return &broker.sessions[i];
    }
    if (broker.count == MAX_SESSIONS)
        sim_fail("more than %d client ids", MAX_SESSIONS);
    broker.sessions[broker.count].client_id = xstrdup(client_id);
    return &broker.sessions[broker.count++];
}

void sim_broker_begin(sim_publish_fn *on_publish, sim_publish_fn *on_forgotten)
{
    broker.on_publish = on_publish;
    broker.on_forgotten = on_forgotten;
}

bool sim_broker_publish(const char *topic, const char *payload, int qos)
{
    if (sim_broker_faults.away)
        return false;
    sim_trace("device: %s %s", topic, payload);
    route(topic, payload, qos);
    if (sim_broker_faults.retains && sim_chance(sim_broker_faults.retains))
        retain(topic, payload);
    return true;
}

void sim_broker_drop(const struct replica *replica)
{
    for (size_t i = 0; i < broker.count; i++) {
        if (broker.sessions[i].connection && broker.sessions[i].connection->replica == replica)
            disconnect(&broker.sessions[i]);
    }
}

/* Mosquitto 2.0.11 does not save what is in flight to a connected client when it is killed. */
static void forget(struct session *session)
{
    size_t count = 0;

    while (count < session->count && session->stored[count].sent_before) {
        const struct message *message = &session->stored[count++];

        broker.on_forgotten(message->topic, message->payload, message->qos);
    }
    acknowledge(session, count);
}

void sim_broker_restart(bool forgets)
{
    for (size_t i = 0; i < broker.count; i++) {
        if (forgets && broker.sessions[i].connection && broker.sessions[i].persistent)
            forget(&broker.sessions[i]);
        disconnect(&broker.sessions[i]);
    }
}

unsigned sim_broker_connects(void)
{
    return broker.connects;
}

int64_t sim_broker_slow_us(void)
{
    return broker.slow_us;
}

size_t sim_broker_stored(void)
{
    size_t count = 0;

    for (size_t i = 0; i < broker.count; i++)
        count += broker.sessions[i].count;
    return count;
}

/* ---- the connection ---- */

static bool reachable(void)
{
    return !sim_broker_faults.away && !sim_replica()->no_broker;
}

static bool may_act(const struct mqtt *mqtt)
{
    return !mqtt->options.may_act || mqtt->options.may_act(mqtt->options.may_act_ctx);
}

static int64_t latency_us(void)
{
    return 100 + (int64_t)sim_random(sim_chance(50) ? 500000 : 3000);
}

struct mqtt *mqtt_create(const struct mqtt_options *options, const struct mqtt_handlers *handlers)
{
    struct mqtt *mqtt = xcalloc(1, sizeof(*mqtt));

    mqtt->options = *options;
    mqtt->replica = sim_replica();
    mqtt->client_id = xstrdup(options->client_id);
    mqtt->handlers = *handlers;
    return mqtt;
}

void mqtt_destroy(struct mqtt *mqtt)
{
    if (!mqtt)
        return;
    for (size_t i = 0; i < mqtt->wish_count; i++)
        free(mqtt->wishes[i].filter);
    free(mqtt->client_id);
    free(mqtt);
}

static void connect_session(struct mqtt *mqtt)
{
    struct session *session = session_of(mqtt->client_id);

    if (sim_api_holder() && sim_api_holder() != sim_replica())
        sim_fail("controller %u connects to the broker while controller %u holds the Lease",
                 sim_replica()->number, sim_api_holder()->number);
    disconnect(session); /* MQTT-3.1.4-2: the older connection with this client id ends */
    session->persistent = !mqtt->options.clean_session;
    session->connection = mqtt;
    mqtt->session = session;
    mqtt->connects++;
    broker.connects++;
    sim_trace("connected: %s", mqtt->client_id);
}

/* Each subscription brings the retained messages again (3.8.4); a client of this contract drops those
 * that it has not asked for. */
static void deliver_retained(struct mqtt *mqtt, const char *filter)
{
    const char *wanted = mqtt->options.retained;

    for (size_t i = 0; i < broker.retained_count; i++) {
        const struct message *message = &broker.retained[i];

        if (wanted && matches(filter, message->topic) && matches(wanted, message->topic))
            store(mqtt->session, message->topic, message->payload, message->qos);
    }
}

/* SUBACK for each filter that was not granted yet. */
static void subscribe_all(struct mqtt *mqtt)
{
    for (size_t i = 0; i < mqtt->wish_count && mqtt->session; i++) {
        struct wish *wish = &mqtt->wishes[i];
        struct session *session = mqtt->session;
        bool known = false;

        if (wish->granted)
            continue;
        wish->granted = true;
        for (size_t j = 0; j < session->filter_count; j++)
            known = known || str_equal(session->filters[j], wish->filter);
        if (!known && session->filter_count == MAX_FILTERS)
            sim_fail("more than %d filters of '%s'", MAX_FILTERS, mqtt->client_id);
        if (!known)
            session->filters[session->filter_count++] = xstrdup(wish->filter);
        deliver_retained(mqtt, wish->filter);
        if (mqtt->handlers.subscribed)
            mqtt->handlers.subscribed(mqtt->handlers.ctx, wish->filter, 1);
    }
}

static bool is_settled(struct mqtt *mqtt)
{
    return !mqtt->options.settle || mqtt->options.settle(mqtt->options.settle_ctx, 0);
}

/* Hands over what is in the window, and acknowledges it when all of it is settled. */
static const char *deliver(struct mqtt *mqtt)
{
    struct session *session = mqtt->session;
    size_t count = session->count < WINDOW ? session->count : WINDOW;
    int64_t end_us = sim_now_us() + (int64_t)mqtt->options.keep_alive_s * 1500000;

    for (size_t i = 0; i < count; i++) {
        struct message *message = &session->stored[i];

        if (sim_broker_faults.slow_us) {
            sim_sleep_us((int64_t)sim_random((uint64_t)sim_broker_faults.slow_us));
            broker.slow_us = sim_now_us();
        }
        if (mqtt->session != session)
            return "the connection was taken over";
        if (mqtt->stopping) /* the real client reads no further either */
            return "stopped while messages arrive: the broker sends them again";
        mqtt->handlers.message(mqtt->handlers.ctx, message->topic, message->payload,
                               strlen(message->payload), message->sent_before);
        if (mqtt->session != session)
            return "the connection was taken over";
        message->sent_before = true;
    }
    if (sim_broker_faults.cut && sim_chance(sim_broker_faults.cut))
        return "connection reset";
    while (!is_settled(mqtt)) {
        (void)sim_wait(mqtt, sim_now_us() + SETTLE_US);
        if (mqtt->session != session)
            return "the connection ended while its messages were written";
        if (!may_act(mqtt) || mqtt->stopping)
            return "stopped, or not allowed to act: the broker keeps what is not written";
        if (sim_now_us() > end_us)
            return "the keep-alive passed";
    }
    if (!may_act(mqtt))
        return "not allowed to act";
    acknowledge(session, count);
    return NULL;
}

/* Until the connection ends; says why. NULL: stopped. */
static const char *serve(struct mqtt *mqtt)
{
    for (;;) {
        const char *why = NULL;

        if (!mqtt->session)
            return "connection lost";
        if (!reachable() || !may_act(mqtt))
            return "the broker cannot be reached, or the lease is not held";
        subscribe_all(mqtt);
        if (mqtt->session && mqtt->session->count)
            why = deliver(mqtt);
        if (why)
            return why;
        if (mqtt->stopping)
            return NULL;
        if (mqtt->session && mqtt->session->count == 0)
            (void)sim_wait(mqtt, sim_now_us() + 1000000);
    }
}

static void end_connection(struct mqtt *mqtt, const char *why)
{
    if (mqtt->session)
        disconnect(mqtt->session);
    for (size_t i = 0; i < mqtt->wish_count; i++)
        mqtt->wishes[i].granted = false;
    sim_trace("disconnected: %s: %s", mqtt->client_id, why ? why : "stopped");
    if (mqtt->handlers.state)
        mqtt->handlers.state(mqtt->handlers.ctx, false, false, why);
}

static void *run(void *ctx)
{
    struct mqtt *mqtt = ctx;
    int64_t pause_us = RETRY_MIN_US;

    while (!mqtt->stopping) {
        const char *why = "connection refused";

        sim_sleep_us(latency_us());
        if (reachable() && may_act(mqtt)) {
            bool present = session_of(mqtt->client_id)->persistent;

            connect_session(mqtt);
            pause_us = RETRY_MIN_US;
            if (mqtt->handlers.state)
                mqtt->handlers.state(mqtt->handlers.ctx, true, present, NULL);
            why = serve(mqtt);
        }
        end_connection(mqtt, why);
        if (mqtt->stopping)
            break;
        (void)sim_wait(mqtt,
                       sim_now_us() + pause_us / 2 + (int64_t)sim_random((uint64_t)pause_us / 2));
        pause_us = 2 * pause_us < RETRY_MAX_US ? 2 * pause_us : RETRY_MAX_US;
    }
    return NULL;
}

int mqtt_start(struct mqtt *mqtt, struct error *err)
{
    mqtt->stopping = mqtt->publish_cancelled = false;
    if (pthread_create(&mqtt->thread, NULL, run, mqtt))
        return error_set(err, ERROR_INTERNAL, "mqtt thread");
    mqtt->started = true;
    return 0;
}

void mqtt_stop(struct mqtt *mqtt)
{
    if (!mqtt->started)
        return;
    mqtt->stopping = true;
    sim_wake(mqtt);
    (void)pthread_join(mqtt->thread, NULL);
    mqtt->started = false;
}

void mqtt_subscribe(struct mqtt *mqtt, const char *name, int qos UNUSED)
{
    for (size_t i = 0; i < mqtt->wish_count; i++) {
        if (str_equal(mqtt->wishes[i].filter, name))
            return;
    }
    if (mqtt->wish_count == MAX_FILTERS)
        sim_fail("more than %d filters", MAX_FILTERS);
    mqtt->wishes[mqtt->wish_count++].filter = xstrdup(name);
    sim_wake(mqtt);
}

void mqtt_unsubscribe(struct mqtt *mqtt, const char *name)
{
    for (size_t i = 0; i < mqtt->wish_count; i++) {
        if (!str_equal(mqtt->wishes[i].filter, name))
            continue;
        free(mqtt->wishes[i].filter);
        mqtt->wishes[i] = mqtt->wishes[--mqtt->wish_count];
        return;
    }
}

static int publish(struct mqtt *mqtt, const char *topic, const char *text, int qos, bool retained,
                   struct error *err)
{
    unsigned connection = mqtt->connects;

    if (mqtt->publish_cancelled)
        return error_set(err, ERROR_CANCELED, "canceled");
    if (!mqtt->session)
        return error_set(err, ERROR_UNAVAILABLE, "not connected");
    if (!may_act(mqtt))
        return error_set(err, ERROR_CANCELED, "the lease is not held");
    sim_sleep_us(latency_us());
    if (!mqtt->session || mqtt->connects != connection || !reachable())
        return error_set(err, ERROR_TIMEOUT, "the connection ended");

    sim_trace("publish %s %s", topic, text);
    if (retained)
        retain(topic, text);
    route(topic, text, qos);
    broker.on_publish(topic, text, qos);
    if (qos == 0)
        return 0;
    if (sim_broker_faults.lost_puback && sim_chance(sim_broker_faults.lost_puback)) {
        disconnect(mqtt->session); /* TCP loses no PUBACK but with its connection */
        sim_sleep_us(latency_us());
        return error_set(err, ERROR_TIMEOUT, "the connection ended");
    }
    sim_sleep_us(latency_us());
    return 0;
}

static int publish_bytes(struct mqtt *mqtt, const char *topic, const void *payload, size_t len,
                         int qos, bool retained, struct error *err)
{
    char *text = xcalloc(len + 1, 1);

    if (len)
        memcpy(text, payload, len);
    int r = publish(mqtt, topic, text, qos, retained, err);
    free(text);
    return r;
}

int mqtt_publish(struct mqtt *mqtt, const char *topic, const void *payload, size_t len, int qos,
                 uint32_t timeout_ms UNUSED, struct error *err)
{
    return publish_bytes(mqtt, topic, payload, len, qos, false, err);
}

int mqtt_publish_retained(struct mqtt *mqtt, const char *topic, const void *payload, size_t len,
                          uint32_t timeout_ms UNUSED, struct error *err)
{
    return publish_bytes(mqtt, topic, payload, len, 1, true, err);
}

void mqtt_publish_cancel(struct mqtt *mqtt)
{
    mqtt->publish_cancelled = true;
}

bool mqtt_connected(struct mqtt *mqtt, char *why, size_t size)
{
    (void)snprintf(why, size, "%s", mqtt->session ? "" : "not connected");
    return mqtt->session != NULL;
}
