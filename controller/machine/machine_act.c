/* Does what the plan says. Every act may be repeated, and every request names the uid that was read. */
#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/api/reasons.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "common/kube/finalizer.h"
#include "common/kube/guarded_patch.h"
#include "common/kube/kinds.h"
#include "common/runtime/metrics.h"
#include "controller/events/transitions.h"
#include "controller/machine/machine.h"

#define EXCLUDE_DRAINING "machine.cluster.x-k8s.io/exclude-node-draining"
/* Of an object that no watch covers: an eighth of the time that its deletion has taken, within these limits. */
#define LOOK_AGAIN_MS 2000
#define MAX_LOOK_AGAIN_MS 60000
#define MAX_NODE_TRIES 3

bool machine_is_refusal(int r)
{
    return r == -ERROR_FORBIDDEN || r == -ERROR_INVALID || r == -ERROR_NOT_FOUND;
}

static void refuse(struct machine_turn *turn, enum reason reason, const char *message)
{
    turn->refusal_reason = reason_text(reason);
    turn->refusal = message;
}

static void look_again(struct machine_turn *turn, const struct machine_object *object)
{
    const char *text =
        json_string(json_path(object->json, "metadata", "deletionTimestamp", NULL), "");
    int64_t since_us = turn->observed.now_us;

    (void)rfc3339_parse(text, &since_us);

    int64_t delay_ms = (turn->observed.now_us - since_us) / 1000 / 8;
    if (delay_ms > MAX_LOOK_AGAIN_MS)
        delay_ms = MAX_LOOK_AGAIN_MS;
    reconcile_again_after(turn->rc, delay_ms > LOOK_AGAIN_MS ? delay_ms : LOOK_AGAIN_MS);
}

/* --- creation ---------------------------------------------------------------------------------- */

static void refuse_name(struct machine_turn *turn, const struct kube_kind *kind)
{
    refuse(turn, REASON_NAME_TAKEN,
           arena_printf(turn->rc->arena, "NameTaken: %s '%s' belongs to another owner", kind->kind,
                        turn->rc->name.name));
}

/* 1: it exists and is ours. 0: not yet, or it was refused. < 0: the turn is repeated, and looks whose it is. */
static int create(struct machine_turn *turn, struct machine_object *object, const cJSON *json,
                  struct error *err)
{
    cJSON *reply = NULL;
    struct error failure = { 0 };

    if (object->presence == MACHINE_PRESENT)
        return 1;
    if (object->presence == MACHINE_GOING) {
        look_again(turn, object);
        return 0;
    }
    if (object->denied) {
        refuse(turn, REASON_MACHINE_CREATION_FAILED, object->denied);
        return 0;
    }
    if (object->presence == MACHINE_FOREIGN) {
        refuse_name(turn, object->kind);
        return 0;
    }
    int r = kube_create(turn->rc->client, turn->rc->arena, object->kind, json, &reply, &failure);
    if (r == 0) {
        object->presence = MACHINE_PRESENT;
        object->json = reply;
        return 1;
    }
    if (machine_is_refusal(r)) {
        refuse(turn, REASON_MACHINE_CREATION_FAILED,
               arena_strdup(turn->rc->arena, failure.message));
        return 0;
    }
    *err = failure;
    return r;
}

static int create_part(struct machine_turn *turn, size_t index, const struct machine_part *part,
                       struct error *err)
{
    struct machine_object *object = &turn->parts[index];

    if (!object->kind) {
        refuse(turn, REASON_MACHINE_CREATION_FAILED,
               arena_printf(turn->rc->arena, "the API server does not have the kind %s of %s",
                            part->kind, part->api_version));
        return 0;
    }
    return create(turn, object, machine_make_part(turn->rc->arena, turn->json, &turn->spec, part),
                  err);
}

static void tell_reserved(struct machine_turn *turn, const char *keys)
{
    events_emit_note(
        turn->rc->events, &KIND_SCHEDULEDMACHINE, turn->object, &MACHINE_EVENT_RESERVED_KEYS,
        arena_printf(turn->rc->arena, "%s: %.512s", MACHINE_EVENT_RESERVED_KEYS.note, keys));
}

static int create_machine(struct machine_turn *turn, struct error *err)
{
    const char *reserved = NULL;
    struct machine_object *machine = &turn->machine;
    bool is_new = machine->presence == MACHINE_ABSENT;

    if (!machine->kind) {
        refuse(turn, REASON_MACHINE_CREATION_FAILED,
               "the API server does not have Machines of Cluster API");
        return 0;
    }
    const cJSON *json =
        machine_make(turn->rc->arena, turn->json, &turn->spec, machine->kind->version, &reserved);
    int r = create(turn, machine, json, err);
    if (r == 1 && is_new) {
        cJSON *copy = json_copy(machine->json);

        informer_observed(turn->deps->machines, copy);
        json_free(copy);
        if (reserved)
            tell_reserved(turn, reserved);
    }
    return r;
}

static int act_create(struct machine_turn *turn, struct error *err)
{
    const char *problem = machine_spec_problem(turn->rc->arena, &turn->spec);

    if (!turn->observed.edited && turn->observed.now_us < turn->observed.retry_us) {
        reconcile_again_after(turn->rc, (turn->observed.retry_us - turn->observed.now_us) / 1000);
        return 0;
    }
    if (problem) {
        refuse(turn, REASON_MACHINE_CREATION_FAILED, problem);
        return 0;
    }
    if (turn->machine.presence == MACHINE_GOING) {
        /* Cluster API deletes the other two before it lets go of the Machine, and new ones as well. */
        look_again(turn, &turn->machine);
        return 0;
    }
    int r = create_part(turn, PART_BOOTSTRAP, turn->spec.bootstrap, err);
    if (r == 1)
        r = create_part(turn, PART_INFRASTRUCTURE, turn->spec.infrastructure, err);
    if (r == 1)
        r = create_machine(turn, err);
    if (r == 1) { /* the next turn says so */
        machine_note_success(turn->note);
        reconcile_again_after(turn->rc, 0);
        return 0;
    }
    return r;
}

/* --- the Machine and its Node ------------------------------------------------------------------ */

/* A merge patch that names the uid is refused for any other object. */
static int patch_machine(struct machine_turn *turn, const char *map, const char *key,
                         const char *value, struct error *err)
{
    cJSON *patch = json_object(turn->rc->arena), *metadata = json_set_object(patch, "metadata");
    cJSON *reply = NULL;

    json_set_string(metadata, "uid", kube_uid(turn->machine.json));
    json_set_string(json_set_object(metadata, map), key, value);
    int r = kube_patch(turn->rc->client, turn->rc->arena, turn->machine.kind, &turn->rc->name,
                       KUBE_MAIN, KUBE_PATCH_MERGE, patch, &reply, err);
    if (r == 0)
        informer_observed(turn->deps->machines, reply);
    return r;
}

int machine_patch_node(struct machine_turn *turn, const cJSON *operations, struct error *err)
{
    cJSON *reply = NULL;
    struct kube_name name;

    if (!turn->node || !operations || !kube_name_of(turn->node, &name))
        return 0;
    int r = kube_patch(turn->rc->client, turn->rc->arena, &KIND_NODE, &name, KUBE_MAIN,
                       KUBE_PATCH_JSON, operations, &reply, err);
    if (r == -ERROR_NOT_FOUND) /* the Node went */
        return 0;
    if (r == -ERROR_INVALID) /* also said of another version; no change need wake this one */
        return error_set(err, ERROR_CONFLICT, "Node '%s' is not the one that was read", name.name);
    if (r == 0)
        informer_observed(turn->deps->nodes, reply);
    return r;
}

static void say_tainted(struct machine_turn *turn, enum reason reason, const char *message)
{
    enum condition_status status = reason == REASON_NO_NODE ? CONDITION_UNKNOWN : CONDITION_FALSE;
    const struct condition condition = { "NodeTainted", status, reason_text(reason),
                                         reason_message(reason, false, message), 0 };

    (void)condition_set(turn->conditions, &condition, turn->observed.now_us);
}

static void say_applied(struct machine_turn *turn)
{
    static const struct condition applied = { "NodeTainted", CONDITION_TRUE, "Applied",
                                              "the Node has the taints of the spec", 0 };

    (void)condition_set(turn->conditions, &applied, turn->observed.now_us);
}

static int keep_taints(struct machine_turn *turn, struct error *err)
{
    struct arena *arena = turn->rc->arena;
    const struct machine_taints wanted = { turn->spec.node_taints.items,
                                           turn->spec.node_taints.len };
    const char *problem = taints_problem(arena, &wanted);

    if (problem)
        say_tainted(turn, REASON_BAD_TAINTS, problem);
    else if (turn->where == MACHINE_NODE_ELSEWHERE)
        say_tainted(turn, REASON_NODE_ELSEWHERE, NULL);
    else if (!turn->node)
        say_tainted(turn, REASON_NO_NODE, NULL);
    else if (!node_is_ready(turn->node))
        say_tainted(turn, REASON_NODE_NOT_READY, NULL);
    if (problem || !turn->node || !node_is_ready(turn->node))
        return 0;

    const struct machine_taints applied = taints_read(
        arena,
        json_string(json_path(turn->node, "metadata", "annotations", NODE_ANNOTATION_TAINTS, NULL),
                    NULL));
    const struct taint_plan plan =
        taint_plan(arena, json_path(turn->node, "spec", "taints", NULL), &wanted, &applied);
    if (plan.conflicts) {
        say_tainted(turn, REASON_TAINT_CONFLICT,
                    arena_printf(arena, "others hold %.512s", plan.conflicts));
        return 0;
    }
    int r = machine_patch_node(turn, node_set_taints(arena, turn->node, &plan), err);
    if (r < 0)
        return r;
    turn->is.applied_node_taints =
        (struct json_objects){ (void *)(uintptr_t)plan.applied.items, plan.applied.len };
    say_applied(turn);
    return 0;
}

/* A patch of the Node makes another version of it, which the next turn has. */
static int keep_node(struct machine_turn *turn, struct error *err)
{
    const cJSON *patch = turn->node ? node_uncordon(turn->rc->arena, turn->node) : NULL;
    int r = patch ? machine_patch_node(turn, patch, err) : 0;

    if (r == 0 && turn->node && !patch)
        r = machine_keep_agent(turn, turn->spec.kill_if_commands.len > 0, &patch, err);
    if (r < 0)
        return r;
    if (!patch)
        return keep_taints(turn, err);
    reconcile_again_after(turn->rc, 0);
    return 0;
}

static int act_keep(struct machine_turn *turn, struct error *err)
{
    const cJSON *label = json_path(turn->machine.json, "metadata", "labels", MACHINE_LABEL, NULL);
    int r = 0;

    machine_note_success(turn->note);
    if (!label)
        r = patch_machine(turn, "labels", MACHINE_LABEL,
                          label_value(turn->rc->arena, turn->rc->name.name), err);
    return r < 0 ? r : keep_node(turn, err);
}

/* --- removal ----------------------------------------------------------------------------------- */

/* r: of a change of the Node. A Node that refuses each change holds up no removal. */
static int try_node(struct machine_turn *turn, int r, const struct error *failure,
                    struct error *err)
{
    if (r == 0) {
        turn->note->node_failures = 0;
        return 0;
    }
    if (r == -ERROR_CANCELED || ++turn->note->node_failures < MAX_NODE_TRIES) {
        *err = *failure;
        return r;
    }
    log_warn("Node not changed, going on without", "uid", turn->object->uid, "error",
             ERROR_TEXT(failure), NULL);
    return 0;
}

/* A grace period may be over before the Node was cordoned. */
static int act_say_draining(struct machine_turn *turn, struct error *err)
{
    struct error failure = { 0 };
    int r = machine_patch_node(turn, turn->node ? node_cordon(turn->rc->arena, turn->node) : NULL,
                               &failure);

    return try_node(turn, r, &failure, err); /* the status says so */
}

static int delete_object(struct machine_turn *turn, const struct machine_object *object,
                         struct error *err)
{
    struct error failure = { 0 };
    int r = kube_delete(turn->rc->client, object->kind, &turn->rc->name, kube_uid(object->json),
                        NULL, &failure);

    if (r == 0 || r == -ERROR_NOT_FOUND || r == -ERROR_CONFLICT) {
        reconcile_again_after(turn->rc, LOOK_AGAIN_MS);
        return 0;
    }
    if (r == -ERROR_FORBIDDEN || r == -ERROR_INVALID) {
        refuse(turn, REASON_MACHINE_DELETION_FAILED,
               arena_strdup(turn->rc->arena, failure.message));
        return 0;
    }
    *err = failure;
    return r;
}

/* A deletion of the object ends a drain of ours, and Cluster API drains. */
static bool has_drained(const struct machine_turn *turn)
{
    return turn->observed.phase == MACHINE_SHUTTING_DOWN && turn->observed.draining &&
           !turn->observed.deleted_us && turn->node;
}

static void end_drain(struct machine_turn *turn)
{
    static struct metric drains = { .type = METRIC_COUNTER,
                                    .name = "fivespot_node_drains_total",
                                    .help = "Number of drains that ended, by result.",
                                    .labels = { "result" } };

    if (!has_drained(turn))
        return;
    metric_add(&drains, 1, turn->pods_len ? "timed_out" : "done", NULL);
    if (!turn->pods_len)
        return;
    const struct drain_plan left = drain_plan(turn->rc->arena, turn->pods, turn->pods_len, 0, 0);
    events_emit_note(
        turn->rc->events, &KIND_SCHEDULEDMACHINE, turn->object, &MACHINE_EVENT_DRAIN_TIMED_OUT,
        arena_printf(turn->rc->arena, "%s: %.900s", MACHINE_EVENT_DRAIN_TIMED_OUT.note, left.left));
}

/* Its provider needs the infrastructure object until the Machine is gone. If another client deletes
 * the Machine, Cluster API drains it. */
static int remove_machine(struct machine_turn *turn, bool now, struct error *err)
{
    bool going = turn->machine.presence == MACHINE_GOING;
    bool excludes = now || (!going && has_drained(turn));
    int r = 0;

    if (excludes &&
        !json_path(turn->machine.json, "metadata", "annotations", EXCLUDE_DRAINING, NULL))
        r = patch_machine(turn, "annotations", EXCLUDE_DRAINING, "true", err);
    if (machine_is_refusal(r) || r == -ERROR_CONFLICT) /* the deletion says more of it */
        r = 0;
    if (r < 0 || going)
        return r;
    r = delete_object(turn, &turn->machine, err);
    if (r == 0 && !turn->refusal)
        end_drain(turn);
    return r;
}

static int act_remove(struct machine_turn *turn, bool now, struct error *err)
{
    int64_t wait_ms = machine_note_wait_ms(turn->note, false, clock_monotonic_ms(turn->rc->clock));
    struct error failure = { 0 };

    if (wait_ms && !turn->observed.edited) {
        reconcile_again_after(turn->rc, wait_ms);
        return 0;
    }
    int r = turn->node ? machine_keep_agent(turn, false, NULL, &failure) : 0;
    r = try_node(turn, r, &failure, err);
    if (r < 0)
        return r;
    if (turn->machine.presence == MACHINE_PRESENT || turn->machine.presence == MACHINE_GOING) {
        if (turn->machine.kind)
            return remove_machine(turn, now, err);
        refuse(turn, REASON_MACHINE_DELETION_FAILED,
               "the API server does not have Machines of Cluster API");
        return 0;
    }
    for (size_t i = 0; i < MACHINE_PARTS && r == 0; i++) {
        if (turn->parts[i].presence == MACHINE_PRESENT)
            r = delete_object(turn, &turn->parts[i], err);
        else if (turn->parts[i].presence == MACHINE_GOING)
            look_again(turn, &turn->parts[i]);
        else if (turn->parts[i].presence == MACHINE_HIDDEN)
            refuse(turn, REASON_MACHINE_DELETION_FAILED, turn->parts[i].denied);
    }
    return r;
}

/* --- the object itself ------------------------------------------------------------------------- */

static int act_disable(struct machine_turn *turn, struct error *err)
{
    struct json_patch *patch = guarded_patch_create(turn->rc->arena, turn->json, "spec");
    cJSON *reply = NULL;

    json_patch_set(patch, "/spec/schedule/enabled", cJSON_CreateFalse());
    int r = kube_patch(turn->rc->client, turn->rc->arena, &KIND_SCHEDULEDMACHINE, &turn->rc->name,
                       KUBE_MAIN, KUBE_PATCH_JSON, json_patch_operations(patch), &reply, err);
    if (r < 0)
        return r;
    events_emit(turn->rc->events, &KIND_SCHEDULEDMACHINE, turn->object,
                &MACHINE_EVENT_EMERGENCY_DISABLED);
    informer_observed(turn->deps->objects, reply);
    return 0;
}

static int act_add_finalizer(struct machine_turn *turn, struct error *err)
{
    cJSON *reply = NULL;
    int r = finalizer_add(turn->rc->client, turn->rc->arena, &KIND_SCHEDULEDMACHINE, turn->json,
                          MACHINE_FINALIZER, &reply, err);

    if (r == 0 && reply)
        informer_observed(turn->deps->objects, reply);
    return r;
}

static int act_clear_pods(struct machine_turn *turn, struct error *err)
{
    int r =
        machine_patch_node(turn, turn->node ? node_cordon(turn->rc->arena, turn->node) : NULL, err);

    /* A conflict passes; a policy that refuses the cordon does not, and keeps no pod alive. */
    if (r < 0 && r != -ERROR_FORBIDDEN && turn->note->clears + 1 < MACHINE_MAX_CLEARS) {
        turn->note->clears++;
        return r;
    }
    return r == -ERROR_CANCELED ? r : machine_clear_pods(turn, err);
}

/* The Machine, by which a watch finds the Node, is gone: the next turn comes by itself. */
static int act_clear_node(struct machine_turn *turn, struct error *err)
{
    int r = machine_patch_node(
        turn, turn->node ? node_clear_reclaim(turn->rc->arena, turn->node) : NULL, err);

    if (r == 0)
        reconcile_again_after(turn->rc, 0);
    return r;
}

int machine_act(struct machine_turn *turn, const struct machine_plan *plan, struct error *err)
{
    struct arena *arena = turn->rc->arena;

    switch (plan->act) {
    case MACHINE_ACT_NONE:
        return 0;
    case MACHINE_ACT_SAY_DRAINING:
        return act_say_draining(turn, err);
    case MACHINE_ACT_ADD_FINALIZER:
        return act_add_finalizer(turn, err);
    case MACHINE_ACT_RELEASE:
        return finalizer_remove(turn->rc->client, &KIND_SCHEDULEDMACHINE, turn->json,
                                MACHINE_FINALIZER, err);
    case MACHINE_ACT_CREATE:
        return act_create(turn, err);
    case MACHINE_ACT_KEEP:
        return act_keep(turn, err);
    case MACHINE_ACT_CORDON:
        return machine_patch_node(turn, turn->node ? node_cordon(arena, turn->node) : NULL, err);
    case MACHINE_ACT_DRAIN:
        return machine_drain(turn, plan, err);
    case MACHINE_ACT_REMOVE:
        return act_remove(turn, false, err);
    case MACHINE_ACT_REMOVE_NOW:
        return act_remove(turn, true, err);
    case MACHINE_ACT_DISABLE:
        return act_disable(turn, err);
    case MACHINE_ACT_CLEAR_PODS:
        return act_clear_pods(turn, err);
    case MACHINE_ACT_CLEAR_NODE:
        return act_clear_node(turn, err);
    }
    return 0;
}
