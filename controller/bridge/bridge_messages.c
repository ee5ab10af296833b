#include "controller/bridge/bridge_messages.h"

#include <inttypes.h>
#include <string.h>

#include "common/api/task.h"
#include "common/base/log.h"
#include "common/base/map.h"
#include "common/base/str.h"
#include "common/runtime/metrics.h"
#include "controller/bridge/quarantine.h"
#include "controller/bridge/update_mail.h"
#include "controller/cache/indexes.h"
#include "controller/device/samples.h"

static struct metric REJECTED = { .type = METRIC_COUNTER,
                                  .name = "propeller_results_rejected_total",
                                  .help = "Number of results that were rejected, by reason.",
                                  .labels = { "reason" } };
static struct metric SAMPLES_REJECTED = {
    .type = METRIC_COUNTER,
    .name = "propeller_samples_rejected_total",
    .help = "Number of samples of devices and Tasks that were rejected, by reason.",
    .labels = { "reason" }
};
static struct metric MALFORMED = { .type = METRIC_COUNTER,
                                   .name = "propeller_mqtt_malformed_total",
                                   .help = "Number of messages that could not be decoded.",
                                   .labels = { "kind" } };
static struct metric MESSAGES = { .type = METRIC_COUNTER,
                                  .name = "propeller_mqtt_messages_total",
                                  .help = "Number of messages received from the broker.",
                                  .labels = { "kind" } };

static struct metric RETAINED = { .type = METRIC_COUNTER,
                                  .name = "propeller_mqtt_retained_total",
                                  .help = "Number of retained messages that were dropped.",
                                  .labels = { "kind" } };

static struct metric RECLAIMS_REJECTED = {
    .type = METRIC_COUNTER,
    .name = "propeller_reclaims_rejected_total",
    .help = "Number of reclaims of devices that were rejected, by reason.",
    .labels = { "reason" }
};

static const char *const KIND_NAMES[] = {
    [MESSAGE_UNKNOWN] = "unknown", [MESSAGE_ALIVE] = "alive",
    [MESSAGE_CREATE] = "create",   [MESSAGE_METRICS] = "metrics",
    [MESSAGE_RESULT] = "results",  [MESSAGE_TASK_METRICS] = "task_metrics",
    [MESSAGE_MARKER] = "marker",   [MESSAGE_INVOKE_RESULT] = "invoke_results",
    [MESSAGE_COPY] = "quarantine", [MESSAGE_RECLAIM] = "reclaim",
    [MESSAGE_MODULE] = "module",
};

void bridge_count_rejected(const char *reason, size_t count)
{
    if (count)
        metric_add(&REJECTED, (double)count, reason, NULL);
}

static void reject_reclaim(const char *reason)
{
    metric_add(&RECLAIMS_REJECTED, 1, reason, NULL);
}

void bridge_reclaims_begin(void)
{
    static const char *const REASONS[] = { "malformed", "too_large", "unknown_proplet",
                                           "not_external", "retained" };

    for (size_t i = 0; i < ARRAY_LEN(REASONS); i++)
        metric_add(&RECLAIMS_REJECTED, 0, REASONS[i], NULL);
}

static void malformed(enum message_kind kind, const struct error *err)
{
    metric_add(&MALFORMED, 1, KIND_NAMES[kind], NULL);
    log_debug("message dropped", "kind", KIND_NAMES[kind], "error", ERROR_TEXT(err), NULL);
}

static void wake_proplets(struct bridge_sink *sink, struct arena *arena, const char *key)
{
    struct object_list list = store_find(sink->proplets, arena, "identity", key);

    for (size_t i = 0; i < list.len; i++)
        workqueue_add_object(sink->proplet_queue, list.items[i]);
}

/* Many strangers may come at once: an Enrollment looks at them together. */
#define ENROLLMENT_DELAY_MS 1000

static void wake_listeners(struct bridge_sink *sink, struct arena *arena, const char *channel,
                           uint32_t delay_ms)
{
    struct object_list list = store_find(sink->enrollments, arena, INDEX_LISTEN, channel);

    for (size_t i = 0; i < list.len; i++) {
        const struct kube_name name = kube_object_name(list.items[i]);
        workqueue_add_after(sink->enrollment_queue, &name, delay_ms);
    }
}

void bridge_wake_enrollments(struct bridge_sink *sink, const char *channel)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    if (!sink->enrollments)
        return;
    if (channel) {
        wake_listeners(sink, arena, channel, 0);
        return;
    }
    struct object_list list = store_list(sink->enrollments, arena, NULL);
    for (size_t i = 0; i < list.len; i++)
        workqueue_add_object(sink->enrollment_queue, list.items[i]);
}

static const char *each_channel_of(struct arena *arena, const char *channel)
{
    return arena_printf(arena, "%.*s" CHANNEL_EACH, (int)strcspn(channel, "/"), channel);
}

/* There is something new about a device without a Proplet. */
static void wake_enrollments_of(struct bridge_sink *sink, struct arena *arena, const char *channel)
{
    if (!sink->enrollments || !store_count(sink->enrollments, NULL, NULL))
        return;
    wake_listeners(sink, arena, channel, ENROLLMENT_DELAY_MS);
    wake_listeners(sink, arena, each_channel_of(arena, channel), ENROLLMENT_DELAY_MS);
}

static bool is_own_channel(const char *channel, const char *client_id)
{
    return str_equal(channel + strcspn(channel, "/") + 1, client_id);
}

/* A subscription to every channel brings all devices of the domain, also those that are none of ours. */
static bool is_stray(struct bridge_sink *sink, const char *channel, const char *client_id)
{
    return atomic_load(&sink->wildcards) && !is_own_channel(channel, client_id) &&
           !store_count(sink->proplets, INDEX_CHANNEL, channel) &&
           !store_count(sink->enrollments, INDEX_LISTEN, channel);
}

/* A device without a Proplet sends heartbeats: Proplets of its channel that were never heard name
 * it. */
static void on_stranger(struct bridge_sink *sink, struct arena *arena, const char *channel,
                        const char *client_id)
{
    const struct stranger_news news = strangers_heard(fleet_strangers(sink->fleet), channel,
                                                      client_id, clock_monotonic_ms(sink->clock));

    if (news.fresh)
        wake_enrollments_of(sink, arena, channel);
    if (news.log)
        log_info("a device without a Proplet sends heartbeats", "channel", channel, "client_id",
                 news.name, NULL);
    if (!news.shown)
        return;
    struct object_list list = store_find(sink->proplets, arena, "unheard", channel);
    for (size_t i = 0; i < list.len; i++)
        workqueue_add_object(sink->proplet_queue, list.items[i]);
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
    if (!fleet_key(channel, message.proplet_id, key))
        return;
    if (!store_count(sink->proplets, "identity", key)) {
        if (message.alive && !is_stray(sink, channel, message.proplet_id))
            on_stranger(sink, arena, channel, message.proplet_id);
        return;
    }

    if (!message.alive) /* the next heartbeat is no repetition of one before the will */
        sink->repeats = (struct repeats){ 0 };

    int64_t now_ms = clock_monotonic_ms(sink->clock);
    bool news = message.alive
                    ? fleet_heartbeat(sink->fleet, key, now_ms, clock_wall_us(sink->clock))
                    : fleet_will(sink->fleet, key);
    if (!news)
        return;
    strangers_forget(fleet_strangers(sink->fleet), channel, message.proplet_id);
    wake_proplets(sink, arena, key);
}

/* As the API server makes them; anything else can be refused at once. */
static bool is_uid(const char *uid)
{
    size_t len = strspn(uid, "0123456789abcdefghijklmnopqrstuvwxyz-");

    return len && len <= 63 && !uid[len];
}

/* A namespace that does not exist is never listed, and anybody may make up uids: no more messages of
 * one channel wait for Tasks that are not known. */
#define MAX_FOR_UNKNOWN 256

/* Its namespace cannot be listed yet: the Task wakes by itself when it can, and what is of no Task
 * is forgotten then (task_module.c). */
static bool may_be_known_later(const struct bridge_sink *sink, const char *uid, const char *source)
{
    return sink->knows_all && !sink->knows_all(sink->knows_all_ctx) && is_uid(uid) &&
           mailbox_len_of_source(sink->mailbox, source, uid) < MAX_FOR_UNKNOWN;
}

/* Puts it into the mailbox of an object of this store, where it keeps its place behind the messages before it. false: the
 * object does not exist. */
static bool put_mail_for(struct bridge_sink *sink, struct store *store, struct workqueue *queue,
                         const char *uid, const struct mail *what)
{
    struct mail mail = *what;
    struct kube_name name;
    bool known = store_name_of_uid(store, uid, &name);

    mail.came_ms = clock_monotonic_ms(sink->clock);
    if (!known && !may_be_known_later(sink, uid, mail.source))
        return false;
    switch (mailbox_put(sink->mailbox, uid, &mail, NULL)) {
    case MAILBOX_TOO_MANY: /* no device of this Task sends so many */
        bridge_count_rejected("too_many", 1);
        return true;
    case MAILBOX_FULL:
        atomic_store(&sink->overflow, true);
        log_warn("mailbox full, the broker keeps the message", NULL);
        return true;
    case MAILBOX_TAKEN:
        break;
    }
    if (known)
        workqueue_add(queue, &name);
    if (known && !store_name_of_uid(store, uid, &name)) /* deleted meanwhile */
        mailbox_ack(sink->mailbox, uid, UINT64_MAX);
    return true;
}

static bool put_mail(struct bridge_sink *sink, const char *uid, const struct mail *what)
{
    return put_mail_for(sink, sink->tasks, sink->task_queue, uid, what);
}

/* On another device of the same Proplet; of a broadcast that may be so of some targets only. */
static bool is_elsewhere(struct arena *arena, const struct kube_object *task, const char *client_id)
{
    const char *own = json_string(
        json_path(kube_object_json(arena, task), "status", "assignedClientId", NULL), NULL);

    return own && !str_equal(own, client_id);
}

/* Whatever ran on the device is gone: its Tasks are told, and the message is acknowledged when that
 * is written. */
static void on_restart(struct bridge_sink *sink, struct arena *arena, const char *client_id,
                       const char *identity, int64_t now_ms)
{
    struct object_list proplets = store_find(sink->proplets, arena, INDEX_IDENTITY, identity);
    const char *body = arena_printf(arena, "%" PRId64, now_ms);
    const struct mail mail = { .kind = sink->caught_up ? MAIL_RESTART : MAIL_STORED_RESTART,
                               .source = identity,
                               .body = body,
                               .body_len = strlen(body),
                               .supersedes = true };
    char key[KUBE_KEY_LEN];

    for (size_t i = 0; i < proplets.len; i++) {
        struct object_list tasks =
            store_find(sink->tasks, arena, INDEX_ASSIGNED, kube_object_key(proplets.items[i], key));
        for (size_t j = 0; j < tasks.len; j++) {
            if (!is_elsewhere(arena, tasks.items[j], client_id))
                (void)put_mail(sink, tasks.items[j]->uid, &mail);
        }
    }
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
    if (!fleet_key(channel, message.proplet_id, key))
        return;

    int64_t now_ms = clock_monotonic_ms(sink->clock);
    fleet_fresh(sink->fleet, key, now_ms);
    on_restart(sink, arena, message.proplet_id, key, now_ms);
    if (!message.metadata)
        return;

    bool known = store_count(sink->proplets, INDEX_IDENTITY, key) > 0;
    const char *metadata = json_text(arena, message.metadata, NULL);
    if (!fleet_metadata(sink->fleet, key, metadata, known, now_ms))
        return;
    if (known)
        wake_proplets(sink, arena, key);
    else
        wake_enrollments_of(sink, arena, channel);
}

/* On the control connection, by a subscription to every channel: the metadata of a device without a Proplet counts,
 * and nothing else. The events connection has the create of every other device. */
static void on_create_of_stranger(struct bridge_sink *sink, struct arena *arena,
                                  const char *channel, const char *text, size_t len)
{
    struct create_message message;
    struct error err = { 0 };
    char key[FLEET_KEY_LEN];

    if (message_create_parse(arena, text, len, &message, &err) < 0) {
        malformed(MESSAGE_CREATE, &err);
        return;
    }
    if (!message.metadata || !is_own_channel(channel, message.proplet_id) ||
        !fleet_key(channel, message.proplet_id, key) ||
        store_count(sink->proplets, INDEX_IDENTITY, key))
        return;
    metric_add(&MESSAGES, 1, KIND_NAMES[MESSAGE_CREATE], NULL);
    if (fleet_metadata(sink->fleet, key, json_text(arena, message.metadata, NULL), false,
                       clock_monotonic_ms(sink->clock)))
        wake_enrollments_of(sink, arena, channel);
}

static bool has_mail(struct bridge_sink *sink, struct arena *arena, const char *uid)
{
    struct mail *mail;

    return mailbox_peek(sink->mailbox, arena, uid, &mail) > 0;
}

/* One message a Proplet is enough: those that come behind it ask for the same. */
static void on_reclaim(struct bridge_sink *sink, struct arena *arena, const char *channel,
                       const char *text, size_t len)
{
    struct reclaim_message message;
    struct error err = { 0 };
    char key[FLEET_KEY_LEN];
    size_t found = 0;

    int r = message_reclaim_parse(arena, text, len, &message, &err);
    if (r < 0) {
        malformed(MESSAGE_RECLAIM, &err);
        reject_reclaim(r == -ERROR_TOO_LARGE ? "too_large" : "malformed");
        return;
    }
    const struct mail mail = { .kind = MAIL_RECLAIM,
                               .source = channel,
                               .body = message.reason,
                               .body_len = strlen(message.reason) };
    struct object_list list = { 0 };
    if (fleet_key(channel, message.proplet_id, key))
        list = store_find(sink->proplets, arena, INDEX_IDENTITY, key);
    for (size_t i = 0; i < list.len; i++) {
        const cJSON *json = kube_object_json(arena, list.items[i]);
        const char *type = json_string(json_path(json, "spec", "type", NULL), "");

        if (!str_equal(type, PROPLET_TYPE_NAMES[PROPLET_EXTERNAL]))
            reject_reclaim("not_external");
        else if (!has_mail(sink, arena, list.items[i]->uid))
            (void)put_mail_for(sink, sink->proplets, sink->proplet_queue, list.items[i]->uid,
                               &mail);
        found++;
    }
    if (!found)
        reject_reclaim("unknown_proplet");
}

static void reject_sample(const char *reason)
{
    metric_add(&SAMPLES_REJECTED, 1, reason, NULL);
}

static void on_metrics(struct bridge_sink *sink, struct arena *arena, const char *channel,
                       const char *text, size_t len)
{
    struct metrics_message message;
    struct error err = { 0 };
    char key[FLEET_KEY_LEN];

    if (message_metrics_parse(arena, text, len, &message, &err) < 0)
        malformed(MESSAGE_METRICS, &err);
    else if (!fleet_key(channel, message.proplet_id, key) ||
             !store_count(sink->proplets, "identity", key))
        reject_sample("unknown_proplet");
    else if (message.verdict != SAMPLE_PLAUSIBLE)
        reject_sample(SAMPLE_VERDICT_NAMES[message.verdict]);
    else
        fleet_metrics(sink->fleet, key, &message.sample, clock_wall_us(sink->clock));
}

/* Where an attempt is to run. */
struct place {
    const char *proplet;
    const char *client_id; /* NULL: on its only device */
};

struct runner {
    const cJSON *proplet;  /* dies with the arena */
    const char *client_id; /* NULL: its only device */
};

/* index -1: of no broadcast. */
static struct place place_of(const cJSON *status, int64_t index)
{
    if (index < 0)
        return (struct place){ json_string(json_get(status, "assignedProplet"), ""),
                               json_string(json_get(status, "assignedClientId"), NULL) };
    json_for_each (target, json_get(status, "broadcastResults")) {
        if (json_int(json_get(target, "index"), -1) == index)
            return (struct place){ json_string(json_get(target, "proplet"), ""),
                                   json_string(json_get(target, "clientId"), NULL) };
    }
    return (struct place){ "", NULL };
}

/* Finds the Proplet that runs this attempt, as far as the cache says; otherwise returns why not. */
static const char *find_runner(struct bridge_sink *sink, struct arena *arena,
                               const struct kube_name *task_name, int64_t attempt, int64_t index,
                               struct runner *ret)
{
    CLEANUP(kube_object_unrefp) struct kube_object *task = store_get(sink->tasks, task_name);
    struct kube_name name;

    if (!task)
        return "unknown_task";

    const cJSON *status = json_get(kube_object_json(arena, task), "status");
    const char *phase = json_string(json_get(status, "phase"), "");
    if (!str_equal(phase, TASK_PHASE_NAMES[TASK_SCHEDULED]) &&
        !str_equal(phase, TASK_PHASE_NAMES[TASK_RUNNING]))
        return "not_running";
    if (json_int(json_get(status, "attempt"), 1) != attempt)
        return "other_attempt";
    const struct place place = place_of(status, index);
    if (!kube_name_set(&name, task->ns, place.proplet))
        return "other_proplet";

    CLEANUP(kube_object_unrefp) struct kube_object *proplet = store_get(sink->proplets, &name);
    if (!proplet)
        return "other_proplet";

    *ret = (struct runner){ kube_object_json(arena, proplet), place.client_id };
    return NULL;
}

/* Why what a device says of an attempt does not count, or NULL: then it is the Task's device. */
static const char *objection(struct bridge_sink *sink, struct arena *arena,
                             const struct kube_name *task_name, int64_t attempt, int64_t index,
                             const char *identity, enum proplet_dialect *ret)
{
    struct runner runner;
    char key[FLEET_KEY_LEN];

    const char *reason = find_runner(sink, arena, task_name, attempt, index, &runner);
    if (reason)
        return reason;
    if (!proplet_identity_of(runner.proplet, runner.client_id, key) || !str_equal(key, identity))
        return "other_proplet";

    *ret = proplet_dialect_of(runner.proplet);
    return NULL;
}

/*
 * This channel is certainly not that of the attempt: its reconciler would come to the same verdict,
 * so the message need not take capacity that the attempt's own result needs. Everything else is left
 * to the reconciler, since the cache may be older than the message.
 */
static bool is_of_other_channel(struct bridge_sink *sink, struct arena *arena, const char *task_id,
                                const char *channel)
{
    struct kube_name name;
    int64_t attempt, index;
    struct runner runner;
    char own[CHANNEL_KEY_LEN];

    return message_id_numbers(task_id, &attempt, &index) &&
           store_name_of_uid(sink->tasks, message_id_uid(arena, task_id), &name) &&
           !find_runner(sink, arena, &name, attempt, index, &runner) &&
           proplet_channel_of(runner.proplet, own) && !str_equal(own, channel);
}

static void on_task_metrics(struct bridge_sink *sink, struct arena *arena, const char *channel,
                            const char *text, size_t len)
{
    char key[FLEET_KEY_LEN] = "";
    struct task_metrics_message message;
    struct error err = { 0 };
    struct kube_name name;
    int64_t number, index;
    enum proplet_dialect dialect;

    if (message_task_metrics_parse(arena, text, len, &message, &err) < 0) {
        malformed(MESSAGE_TASK_METRICS, &err);
        return;
    }
    const char *uid = message_id_uid(arena, message.task_id);
    if (!message_id_numbers(message.task_id, &number, &index) ||
        !store_name_of_uid(sink->tasks, uid, &name)) {
        reject_sample("unknown_task");
        return;
    }
    if (message.proplet_id && !fleet_key(channel, message.proplet_id, key))
        str_copy(key, sizeof(key), "");
    const char *reason = objection(sink, arena, &name, number, index, key, &dialect);
    if (reason) {
        reject_sample(reason);
        return;
    }

    if (index >= 0) { /* its sample has no place in the status, but it is a sign of life */
        attempts_confirmed(sink->attempts, attempts_key(arena, uid, index), number,
                           clock_monotonic_ms(sink->clock));
        return;
    }
    attempts_confirmed(sink->attempts, uid, number, clock_monotonic_ms(sink->clock));
    if (message.verdict != SAMPLE_PLAUSIBLE) {
        reject_sample(SAMPLE_VERDICT_NAMES[message.verdict]);
        return;
    }
    sample_correct(&message.sample, dialect);
    if (attempts_sampled(sink->attempts, uid, number, &message.sample, clock_wall_us(sink->clock)))
        workqueue_add(sink->task_queue, &name);
}

/* Longer messages are not kept as they came. */
#define MAX_RESULT_AS_IT_CAME ((size_t)64 << 10)

static const char *const MAIL_OF_RESULT[RESULT_REFUSALS] = {
    [RESULT_STORABLE] = MAIL_RESULT,
    [RESULT_TOO_LARGE] = MAIL_TOO_LARGE,
    [RESULT_UNREADABLE] = MAIL_UNREADABLE,
};

bool mail_is_result(const char *kind, enum result_refusal *ret)
{
    for (size_t i = 0; i < RESULT_REFUSALS; i++) {
        if (!str_equal(kind, MAIL_OF_RESULT[i]))
            continue;
        *ret = (enum result_refusal)i;
        return true;
    }
    return false;
}

static void on_result(struct bridge_sink *sink, struct arena *arena, enum message_kind kind,
                      const char *channel, const char *text, size_t len)
{
    struct short_result result;
    struct error err = { 0 };

    if (message_result_shorten(arena, text, len, &result, &err) < 0) {
        malformed(kind, &err);
        bridge_count_rejected("malformed", 1);
        return;
    }
    if (is_of_other_channel(sink, arena, result.task_id, channel)) {
        bridge_count_rejected("other_channel", 1);
        return;
    }
    bool as_it_came = len <= MAX_RESULT_AS_IT_CAME && result.refusal == RESULT_STORABLE;
    const struct mail mail = { .kind = MAIL_OF_RESULT[result.refusal],
                               .source = channel,
                               .body = as_it_came ? text : result.text,
                               .body_len = as_it_came ? len : result.len };
    if (!put_mail(sink, message_id_uid(arena, result.task_id), &mail))
        bridge_count_rejected("unknown_task", 1);
}

bool bridge_channel_of_task(struct bridge_sink *sink, struct arena *arena, const char *uid,
                            char ret[static CHANNEL_KEY_LEN])
{
    struct kube_name name, proplet_name;

    if (!store_name_of_uid(sink->tasks, uid, &name))
        return false;

    CLEANUP(kube_object_unrefp) struct kube_object *task = store_get(sink->tasks, &name);
    const cJSON *status = task ? json_get(kube_object_json(arena, task), "status") : NULL;
    if (!kube_name_set(&proplet_name, name.ns,
                       json_string(json_get(status, "assignedProplet"), "")))
        return false;

    CLEANUP(kube_object_unrefp)
    struct kube_object *proplet = store_get(sink->proplets, &proplet_name);
    return proplet && proplet_channel_of(kube_object_json(arena, proplet), ret);
}

/* An update names no channel: its copy is on that of its Task. */
static bool is_foreign_update(struct bridge_sink *sink, struct arena *arena, const char *channel,
                              const char *kind, const char *uid)
{
    char own[CHANNEL_KEY_LEN];

    return str_equal(kind, MAIL_UPDATE) && bridge_channel_of_task(sink, arena, uid, own) &&
           !str_equal(own, channel);
}

static bool is_on_channel(struct bridge_sink *sink, struct arena *arena,
                          const struct kube_name *proplet, const char *channel)
{
    CLEANUP(kube_object_unrefp) struct kube_object *object = store_get(sink->proplets, proplet);
    char own[CHANNEL_KEY_LEN];

    return object && proplet_channel_of(kube_object_json(arena, object), own) &&
           str_equal(own, channel);
}

/* Why this copy does not count, or NULL. Only the controller makes copies, but every client that may
 * write to the channel can. name: the object that it is for; NULL: it is not known. */
static const char *copy_objection(struct bridge_sink *sink, struct arena *arena,
                                  const char *channel, const char *uid,
                                  const struct kube_name *name, const struct mail *mail)
{
    struct error err = { 0 };
    struct result_message result;
    enum result_refusal refusal;

    if (mail_is_result(mail->kind, &refusal)) {
        if (message_result_parse(arena, mail->body, mail->body_len, &result, &err) < 0)
            return "malformed";
        if (is_of_other_channel(sink, arena, result.task_id, channel))
            return "other_channel";
    }
    if (name && str_equal(mail->kind, MAIL_RECLAIM) && !is_on_channel(sink, arena, name, channel))
        return "other_channel";
    return name || may_be_known_later(sink, uid, mail->source) ? NULL : "unknown_task";
}

/* A message that this process, or an earlier one, has copied to the broker: see quarantine.h. */
static void on_copy(struct bridge_sink *sink, struct arena *arena, const char *channel,
                    const char *topic, const char *body, size_t len)
{
    const char *kind, *id;
    struct kube_name name;

    if (!len || !quarantine_topic_parse(arena, topic, &kind, &id))
        return; /* it was removed */

    const char *uid = message_id_uid(arena, id);
    if (is_foreign_update(sink, arena, channel, kind, uid)) {
        bridge_count_rejected("other_channel", 1);
        return;
    }
    bool is_reclaim = str_equal(kind, MAIL_RECLAIM);
    struct store *store = is_reclaim ? sink->proplets : sink->tasks;
    const struct mail mail = { .kind = kind,
                               .source = str_equal(kind, MAIL_UPDATE) ? id : channel,
                               .body = body,
                               .body_len = len,
                               .came_ms = clock_monotonic_ms(sink->clock) };
    bool known = store_name_of_uid(store, uid, &name);
    const char *reason = copy_objection(sink, arena, channel, uid, known ? &name : NULL, &mail);
    if (reason) {
        bridge_count_rejected(reason, 1);
        mailbox_release(sink->mailbox, topic);
        return;
    }
    mailbox_put_copy(sink->mailbox, uid, &mail, topic);
    if (!known)
        return;
    workqueue_add(is_reclaim ? sink->proplet_queue : sink->task_queue, &name);
    if (!store_name_of_uid(store, uid, &name)) { /* deleted meanwhile */
        mailbox_ack(sink->mailbox, uid, UINT64_MAX);
        mailbox_release(sink->mailbox, topic);
    }
}

/* The participant's Task, by round and device. */
static void on_update(struct bridge_sink *sink, struct arena *arena, const char *round,
                      const char *identity, const char *body, size_t len)
{
    const char *id, *uid;
    const char *reason =
        len > UPDATE_MAX_MQTT
            ? "too_large"
            : update_find_task(sink->tasks, sink->proplets, arena, round, identity, &uid, &id);
    if (reason) {
        bridge_count_rejected(reason, 1);
        return;
    }
    const struct mail mail = { .kind = MAIL_UPDATE, .source = id, .body = body, .body_len = len };
    if (!put_mail(sink, uid, &mail))
        bridge_count_rejected("unknown_task", 1);
}

void bridge_message(struct bridge_sink *sink, const char *topic, const void *payload, size_t len)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    char channel[CHANNEL_KEY_LEN];
    enum message_kind kind = message_topic_parse(topic, channel);
    const char *round, *identity;

    if (kind == MESSAGE_UNKNOWN && message_update_topic(arena, topic, &round, &identity)) {
        metric_add(&MESSAGES, 1, "updates", NULL);
        on_update(sink, arena, round, identity, payload, len);
        return;
    }

    metric_add(&MESSAGES, 1, KIND_NAMES[kind], NULL);
    switch (kind) {
    case MESSAGE_ALIVE:
        on_alive(sink, arena, channel, payload, len);
        return;
    case MESSAGE_CREATE:
        on_create(sink, arena, channel, payload, len);
        return;
    case MESSAGE_RECLAIM:
        on_reclaim(sink, arena, channel, payload, len);
        return;
    case MESSAGE_TASK_METRICS:
        on_task_metrics(sink, arena, channel, payload, len);
        return;
    case MESSAGE_RESULT:
    case MESSAGE_INVOKE_RESULT:
        on_result(sink, arena, kind, channel, payload, len);
        return;
    case MESSAGE_MARKER:
        if (!atomic_load(&sink->overflow)) /* else what came before it is still to come again */
            sink->marker(sink->marker_ctx, payload, len);
        return;
    case MESSAGE_METRICS:
        on_metrics(sink, arena, channel, payload, len);
        return;
    case MESSAGE_MODULE:
        if (sink->module_request)
            sink->module_request(sink->module_request_ctx, channel, payload, len);
        return;
    case MESSAGE_COPY:
        on_copy(sink, arena, channel, topic, payload, len);
        return;
    case MESSAGE_UNKNOWN:
        return;
    }
}

static bool is_repeated(struct bridge_sink *sink, struct arena *arena, const char *topic,
                        const char *text, size_t len)
{
    struct repeats *repeats = &sink->repeats;
    int64_t now_ms = clock_monotonic_ms(sink->clock);
    uint64_t hash = map_hash(arena_printf(arena, "%s %.*s", topic, (int)len, text));

    for (size_t i = 0; i < REPEATS_KEPT; i++) {
        if (repeats->hashes[i] == hash && now_ms - repeats->came_ms[i] < REPEATS_MS)
            return true;
    }
    repeats->hashes[repeats->next] = hash;
    repeats->came_ms[repeats->next] = now_ms;
    repeats->next = (repeats->next + 1) % REPEATS_KEPT;
    return false;
}

void bridge_control_message(struct bridge_sink *sink, const char *topic, const void *payload,
                            size_t len)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    char channel[CHANNEL_KEY_LEN];
    enum message_kind kind = message_topic_parse(topic, channel);

    if (kind == MESSAGE_ALIVE && atomic_load(&sink->wildcards) && len <= MESSAGE_MAX_BYTES &&
        is_repeated(sink, arena, topic, payload, len))
        return;
    if (kind == MESSAGE_CREATE)
        on_create_of_stranger(sink, arena, channel, payload, len);
    else
        bridge_message(sink, topic, payload, len);
}

void bridge_count_retained(const char *topic)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    char channel[CHANNEL_KEY_LEN];
    const char *round, *identity;
    bool update = message_update_topic(arena, topic, &round, &identity);
    enum message_kind kind = message_topic_parse(topic, channel);

    metric_add(&RETAINED, 1, update ? "updates" : KIND_NAMES[kind], NULL);
    if (kind == MESSAGE_RECLAIM) /* it would reclaim again at every connect */
        reject_reclaim("retained");
}

void bridge_wake_active(struct bridge_sink *sink)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct object_list list = store_find(sink->tasks, arena, "active", "");

    for (size_t i = 0; i < list.len; i++)
        workqueue_add_object(sink->task_queue, list.items[i]);
}

void bridge_sink_reconnected(struct bridge_sink *sink)
{
    atomic_store(&sink->overflow, false);
}

bool bridge_sink_settled(struct bridge_sink *sink)
{
    return !atomic_load(&sink->overflow);
}
