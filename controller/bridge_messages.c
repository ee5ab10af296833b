#include "controller/bridge_messages.h"

#include <string.h>

#include "common/base/log.h"
#include "common/base/str.h"
#include "common/runtime/metrics.h"
#include "controller/indexes.h"

static struct metric REJECTED = { .type = METRIC_COUNTER,
                                  .name = "propeller_results_rejected_total",
                                  .help = "Results that were acknowledged and dropped.",
                                  .labels = { "reason" } };
static struct metric MALFORMED = { .type = METRIC_COUNTER,
                                   .name = "propeller_mqtt_malformed_total",
                                   .help = "Messages that are not of the contract.",
                                   .labels = { "kind" } };
static struct metric MESSAGES = { .type = METRIC_COUNTER,
                                  .name = "propeller_mqtt_messages_total",
                                  .help = "Messages from the broker.",
                                  .labels = { "kind" } };

static const char *const KIND_NAMES[] = {
    [MESSAGE_UNKNOWN] = "unknown", [MESSAGE_ALIVE] = "alive",
    [MESSAGE_CREATE] = "create",   [MESSAGE_METRICS] = "metrics",
    [MESSAGE_RESULT] = "results",  [MESSAGE_TASK_METRICS] = "task_metrics",
    [MESSAGE_MARKER] = "marker",
};

void bridge_count_rejected(const char *reason, size_t count)
{
    if (count)
        metric_add(&REJECTED, (double)count, reason, NULL);
}

static void malformed(enum message_kind kind, const struct error *err)
{
    metric_add(&MALFORMED, 1, KIND_NAMES[kind], NULL);
    log_debug("message dropped", "kind", KIND_NAMES[kind], "error", err->message, NULL);
}

static void wake_proplets(struct bridge_sink *sink, struct arena *arena, const char *key)
{
    struct object_list list = store_find(sink->proplets, arena, "identity", key);

    for (size_t i = 0; i < list.len; i++)
        workqueue_add(sink->proplet_queue, &list.items[i]->name);
}

static void on_alive(struct bridge_sink *sink, struct arena *arena, const char *channel,
                     const char *text, size_t len)
{
    struct alive_message message;
    struct error err = { 0 };
    char key[FLEET_KEY_LEN];

    if (message_alive_parse(arena, text, len, &message, &err) < 0) {
        malformed(MESSAGE_ALIVE, &err);
        return;
    }
    /* Managers and proxies put their last wills here too: only known Proplets live and die. */
    if (!fleet_key(channel, message.proplet_id, key) ||
        !store_count(sink->proplets, "identity", key))
        return;

    int64_t now_ms = clock_monotonic_ms(sink->clock);
    bool news = message.alive
                    ? fleet_heartbeat(sink->fleet, key, now_ms, clock_wall_us(sink->clock))
                    : fleet_will(sink->fleet, key);
    if (news)
        wake_proplets(sink, arena, key);
}

static void on_create(struct bridge_sink *sink, struct arena *arena, const char *channel,
                      const char *text, size_t len)
{
    struct create_message message;
    struct error err = { 0 };
    char key[FLEET_KEY_LEN];

    if (message_create_parse(arena, text, len, &message, &err) < 0) {
        malformed(MESSAGE_CREATE, &err);
        return;
    }
    if (!message.metadata || !fleet_key(channel, message.proplet_id, key))
        return;

    bool known = store_count(sink->proplets, "identity", key) > 0;
    const char *metadata = json_text(arena, message.metadata, NULL);
    if (fleet_metadata(sink->fleet, key, metadata, known, clock_monotonic_ms(sink->clock)) && known)
        wake_proplets(sink, arena, key);
}

/* The device with this identity is the one that the Task is assigned to. */
static bool is_assigned_to(struct bridge_sink *sink, struct arena *arena, const char *uid,
                           const char *identity)
{
    struct kube_name name;
    char key[FLEET_KEY_LEN];

    if (!store_name_of_uid(sink->tasks, uid, &name))
        return false;

    CLEANUP(kube_object_unrefp) struct kube_object *task = store_get(sink->tasks, &name);
    if (!task)
        return false;

    const cJSON *status = json_get(kube_object_json(arena, task), "status");
    if (!kube_name_set(&name, task->name.ns, json_string(json_get(status, "assignedProplet"), "")))
        return false;

    CLEANUP(kube_object_unrefp) struct kube_object *proplet = store_get(sink->proplets, &name);
    return proplet && proplet_identity_of(kube_object_json(arena, proplet), key) &&
           str_equal(key, identity);
}

static void on_task_metrics(struct bridge_sink *sink, struct arena *arena, const char *channel,
                            const char *text, size_t len)
{
    char key[FLEET_KEY_LEN];
    struct task_metrics_message message;
    struct error err = { 0 };
    int64_t number = 1;

    if (message_task_metrics_parse(arena, text, len, &message, &err) < 0) {
        malformed(MESSAGE_TASK_METRICS, &err);
        return;
    }
    const char *dot = strchr(message.task_id, '.');
    if (dot && !str_to_int64(dot + 1, &number))
        return;

    const char *uid = message_id_uid(arena, message.task_id);
    if (message.proplet_id && fleet_key(channel, message.proplet_id, key) &&
        is_assigned_to(sink, arena, uid, key))
        attempts_confirmed(sink->attempts, uid, number, clock_monotonic_ms(sink->clock));
}

static void on_result(struct bridge_sink *sink, struct arena *arena, const char *channel,
                      const char *text, size_t len)
{
    struct result_message message;
    struct error err = { 0 };
    struct kube_name name;

    if (message_result_parse(arena, text, len, &message, &err) < 0) {
        malformed(MESSAGE_RESULT, &err);
        bridge_count_rejected("malformed", 1);
        return;
    }
    const char *uid = message_id_uid(arena, message.task_id);
    if (!store_name_of_uid(sink->tasks, uid, &name)) {
        bridge_count_rejected("unknown_task", 1);
        return;
    }

    const struct mail mail = { .kind = "result", .source = channel, .body = text, .body_len = len };
    if (!mailbox_put(sink->mailbox, uid, &mail, NULL)) {
        atomic_store(&sink->overflow, true);
        log_warn("mailbox full, the broker keeps the message", NULL);
        return;
    }
    workqueue_add(sink->task_queue, &name);
    if (!store_name_of_uid(sink->tasks, uid,
                           &name)) /* deleted meanwhile, its mail would be nobody's */
        mailbox_ack(sink->mailbox, uid, UINT64_MAX);
}

void bridge_message(struct bridge_sink *sink, const char *topic, const void *payload, size_t len)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    char channel[CHANNEL_KEY_LEN];
    enum message_kind kind = message_topic_parse(topic, channel);

    metric_add(&MESSAGES, 1, KIND_NAMES[kind], NULL);
    switch (kind) {
    case MESSAGE_ALIVE:
        on_alive(sink, arena, channel, payload, len);
        return;
    case MESSAGE_CREATE:
        on_create(sink, arena, channel, payload, len);
        return;
    case MESSAGE_TASK_METRICS:
        on_task_metrics(sink, arena, channel, payload, len);
        return;
    case MESSAGE_RESULT:
        on_result(sink, arena, channel, payload, len);
        return;
    case MESSAGE_MARKER:
        sink->marker(sink->marker_ctx, payload, len);
        return;
    case MESSAGE_METRICS:
    case MESSAGE_UNKNOWN:
        return;
    }
}

void bridge_wake_active(struct bridge_sink *sink)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct object_list list = store_find(sink->tasks, arena, "active", "");

    for (size_t i = 0; i < list.len; i++)
        workqueue_add(sink->task_queue, &list.items[i]->name);
}

void bridge_sink_reconnected(struct bridge_sink *sink)
{
    atomic_store(&sink->overflow, false);
}

bool bridge_sink_settled(struct bridge_sink *sink)
{
    return !atomic_load(&sink->overflow);
}
