#include "controller/task_observe.h"

#include "common/api/names.h"
#include "common/api/proplet.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "common/kube/finalizer.h"
#include "controller/indexes.h"
#include "controller/task_dependencies.h"

/* Since both connections, or since the device is back. */
static int64_t heard_since(struct shared *shared, struct reconcile *rc,
                           const struct observed_proplet *proplet)
{
    struct fleet_device device;
    char key[FLEET_KEY_LEN];

    if (!shared->bridge || !fleet_key(proplet->channel, proplet->client_id, key))
        return 0;

    struct channel_state channel = bridge_channel_state(shared->bridge, proplet->channel);
    if (!channel.since_ms || !channel.results_since_ms)
        return 0;

    fleet_get(shared->fleet, rc->arena, key, &device);
    int64_t since_ms = device.alive_since_ms;
    if (since_ms < channel.since_ms)
        since_ms = channel.since_ms;
    if (since_ms < channel.results_since_ms)
        since_ms = channel.results_since_ms;
    return since_ms;
}

static void observe_proplet(struct shared *shared, struct reconcile *rc, const struct task *task,
                            struct observed_proplet *ret)
{
    struct kube_name name;
    struct proplet proplet = { 0 };

    *ret = (struct observed_proplet){ 0 };
    if (str_is_empty(task->status.assigned_proplet) ||
        !kube_name_set(&name, rc->name.ns, task->status.assigned_proplet))
        return;

    struct kube_object *object = store_get(informer_store(shared->proplets), &name);
    if (!object)
        return;

    const cJSON *json = kube_object_json(rc->arena, object);
    bool usable = proplet_channel_of(json, ret->channel) &&
                  proplet_decode(rc->arena, json, &proplet, NULL) == 0;
    bool deleting = object->deleting;
    kube_object_unref(object);
    if (!usable)
        return;

    ret->exists = !deleting; /* a deleted Proplet is lost at once for its Tasks */
    ret->ready = !deleting && condition_is(proplet.status.conditions, "Ready", CONDITION_TRUE);
    ret->reachable = shared->bridge && proplet.spec.type == PROPLET_EXTERNAL;
    ret->client_id = proplet.spec.connection_config->client_id;
    ret->dialect = proplet_dialect(&proplet.spec);
    ret->qos = proplet_mqtt_qos(&proplet.spec);
    ret->heard_since_ms = heard_since(shared, rc, ret);
}

static void observe_results(struct shared *shared, struct reconcile *rc,
                            const struct kube_object *object, struct task_observed *ret)
{
    struct mail *mail;
    size_t count = mailbox_peek(shared->mailbox, rc->arena, object->uid, &mail);
    struct observed_result *results =
        arena_array(rc->arena, struct observed_result, count ? count : 1);

    for (size_t i = 0; i < count; i++) {
        results[i] =
            (struct observed_result){ .sequence = mail[i].sequence, .channel = mail[i].source };
        if (message_result_parse(rc->arena, mail[i].body, mail[i].body_len, &results[i].message,
                                 NULL) < 0)
            results[i].message.task_id =
                ""; /* was read once before it came here: matches no attempt */
    }
    ret->results = results;
    ret->result_count = count;
}

void task_observe_candidates(struct shared *shared, struct reconcile *rc, struct task_observed *ret)
{
    struct object_list list = store_list(informer_store(shared->proplets), rc->arena, rc->name.ns);
    struct candidate *candidates =
        arena_array(rc->arena, struct candidate, list.len ? list.len : 1);
    char *last = arena_alloc(rc->arena, 1, sizeof(rc->name.name));
    size_t len = 0;

    for (size_t i = 0; i < list.len; i++) {
        const cJSON *json = kube_object_json(rc->arena, list.items[i]);
        struct proplet *proplet = arena_new(rc->arena, struct proplet);
        if (list.items[i]->deleting || proplet_decode(rc->arena, json, proplet, NULL) < 0)
            continue;
        const char *name = list.items[i]->name.name;
        candidates[len++] = (struct candidate){
            .name = name,
            .proplet = proplet,
            .labels = json_path(json, "metadata", "labels", NULL),
            .ready = condition_is(proplet->status.conditions, "Ready", CONDITION_TRUE),
            .active = placements_count(shared->placements, rc->name.ns, name).active,
        };
    }
    placements_last(shared->placements, rc->name.ns, last);
    ret->candidates =
        (struct schedule_context){ .candidates = candidates, .len = len, .last_selected = last };
}

/* What this process chose cannot be in an earlier one's backlog. */
static bool is_backlog_drained(struct shared *shared, const struct task_observed *observed)
{
    return !shared->bridge || !observed->proplet.exists || observed->attempt.chosen_here ||
           bridge_backlog_drained(shared->bridge);
}

int task_observe(struct shared *shared, struct reconcile *rc, const struct kube_object *object,
                 const cJSON *json, struct task_observed *ret, struct error *err)
{
    const cJSON *metadata = json_get(json, "metadata");

    *ret = (struct task_observed){
        .uid = object->uid,
        .name = object->name.name,
        .generation = object->generation,
        .has_finalizer = finalizer_has(json, FINALIZER_TASK),
        .scheduler = shared->scheduler,
        .mqtt_configured = shared->bridge != NULL,
        .max_result_bytes = (size_t)shared->settings->max_result_bytes,
        .stop_timeout_ms = shared->settings->stop_timeout_ms,
        .start_confirm_ms = shared->settings->start_confirm_ms,
        .now_ms = clock_monotonic_ms(rc->clock),
        .now_us = clock_wall_us(rc->clock),
    };
    rfc3339_parse(json_string(json_get(metadata, "creationTimestamp"), ""), &ret->created_us);
    rfc3339_parse(json_string(json_get(metadata, "deletionTimestamp"), ""), &ret->deleted_us);

    int r = task_decode(rc->arena, json, &ret->task, err);
    if (r < 0)
        return r;

    int64_t attempt = ret->task.status.attempt;
    if (object->deleting)
        attempts_deleting(shared->attempts, object->uid, attempt, ret->now_ms);
    ret->attempt = attempts_get(shared->attempts, object->uid, attempt, ret->now_ms);
    observe_proplet(shared, rc, &ret->task, &ret->proplet);
    ret->backlog_drained = is_backlog_drained(shared, ret);
    observe_results(shared, rc, object, ret); /* after the marker: what came before it is there */
    if (task_awaits_dependencies(&ret->task))
        ret->dependencies = dependencies_observe(informer_store(shared->tasks), rc->arena,
                                                 &rc->name, json, &ret->task);
    if (task_needs_candidates(ret))
        task_observe_candidates(shared, rc, ret);
    return 0;
}
