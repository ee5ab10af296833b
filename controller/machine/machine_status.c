/* Says in the status what was observed and planned. */
#include "common/api/kinds.h"
#include "common/api/reasons.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "common/kube/guarded_patch.h"
#include "controller/machine/machine.h"

/* Texts of others are cut. */
#define MAX_TEXT "256"

static const char *time_text(struct arena *arena, int64_t at_us)
{
    char text[RFC3339_LEN];

    return at_us ? arena_strdup(arena, rfc3339_format(at_us, text)) : NULL;
}

static struct machine_reference *reference_to(struct machine_turn *turn,
                                              const struct machine_object *object,
                                              struct machine_reference *was)
{
    const struct kube_kind *kind = object->kind;
    struct arena *arena = turn->rc->arena;

    if (object->presence == MACHINE_HIDDEN)
        return was;
    if (!kind || (object->presence != MACHINE_PRESENT && object->presence != MACHINE_GOING))
        return NULL;
    struct machine_reference *ret = arena_new(arena, struct machine_reference);
    *ret = (struct machine_reference){
        .api_version = arena_printf(arena, "%s/%s", kind->group, kind->version),
        .kind = kind->kind,
        .name = turn->rc->name.name,
        .ns = turn->rc->name.ns,
    };
    return ret;
}

/* In an emergency the Node stays, until its annotations are removed. */
static void set_references(struct machine_turn *turn)
{
    struct scheduledmachine_status *is = &turn->is;
    const char *provider_id =
        json_string(json_path(turn->machine.json, "spec", "providerID", NULL), NULL);
    struct machine_reference *node = NULL;

    is->machine = reference_to(turn, &turn->machine, NULL);
    is->bootstrap = reference_to(turn, &turn->parts[PART_BOOTSTRAP], turn->was.bootstrap);
    is->infrastructure =
        reference_to(turn, &turn->parts[PART_INFRASTRUCTURE], turn->was.infrastructure);
    is->provider_id = is->machine && !str_is_empty(provider_id) ? provider_id : NULL;
    if (is->machine && machine_node_name(turn->machine.json)) {
        node = arena_new(turn->rc->arena, struct machine_reference);
        *node = (struct machine_reference){ .api_version = "v1",
                                            .kind = "Node",
                                            .name = machine_node_name(turn->machine.json),
                                            .uid = turn->node ? kube_uid(turn->node) : NULL };
    }
    if (node || turn->observed.phase != MACHINE_EMERGENCY_REMOVE || turn->observed.deleted_us)
        is->node = node;
    if (!turn->node)
        is->applied_node_taints = (struct json_objects){ 0 };
}

/* --- conditions -------------------------------------------------------------------------------- */

static void say(struct machine_turn *turn, const char *type, enum condition_status status,
                const char *reason, const char *message)
{
    const struct condition condition = { type, status, reason, message, 0 };

    (void)condition_set(turn->conditions, &condition, turn->observed.now_us);
}

/* Of a condition that is not True: without a message it has the meaning of the reason. */
static void say_not(struct machine_turn *turn, const char *type, enum condition_status status,
                    enum reason reason, const char *message)
{
    say(turn, type, status, reason_text(reason), reason_message(reason, false, message));
}

static void say_scheduled(struct machine_turn *turn)
{
    if (turn->times.problem)
        say_not(turn, "Scheduled", CONDITION_FALSE, REASON_BAD_SCHEDULE, turn->times.problem);
    else if (!turn->times.enabled)
        say_not(turn, "Scheduled", CONDITION_FALSE, REASON_SCHEDULE_DISABLED, NULL);
    else if (turn->observed.window.inside)
        say(turn, "Scheduled", CONDITION_TRUE, "ScheduleActive", "the schedule is open");
    else
        say_not(turn, "Scheduled", CONDITION_FALSE, REASON_OUTSIDE_SCHEDULE, NULL);
}

static void say_machine_ready(struct machine_turn *turn)
{
    const cJSON *ready =
        condition_get(json_path(turn->machine.json, "status", "conditions", NULL), "Ready");
    const char *status = json_string(json_get(ready, "status"), "");
    const char *reason = json_string(json_get(ready, "reason"), "");
    enum condition_status is = CONDITION_UNKNOWN;

    if (turn->machine.presence != MACHINE_PRESENT && turn->machine.presence != MACHINE_GOING) {
        say_not(turn, "MachineReady", CONDITION_FALSE, REASON_NO_MACHINE, NULL);
        return;
    }
    if (str_equal(status, "True"))
        is = CONDITION_TRUE;
    else if (str_equal(status, "False"))
        is = CONDITION_FALSE;
    say(turn, "MachineReady", is,
        *reason ? arena_printf(turn->rc->arena, "%.128s", reason) : "MachineReady",
        arena_printf(turn->rc->arena, "%." MAX_TEXT "s",
                     json_string(json_get(ready, "message"), "")));
}

static void say_node(struct machine_turn *turn)
{
    if (turn->where == MACHINE_NODE_ELSEWHERE)
        say_not(turn, "NodeReachable", CONDITION_FALSE, REASON_NODE_ELSEWHERE, NULL);
    else if (turn->where == MACHINE_NODE_HERE)
        say(turn, "NodeReachable", CONDITION_TRUE, "NodeFound", "the Node is in this cluster");
    else
        say_not(turn, "NodeReachable", CONDITION_UNKNOWN, REASON_NO_NODE, NULL);
}

static void say_ready(struct machine_turn *turn, const struct machine_plan *plan)
{
    bool ready = condition_is(turn->conditions, "MachineReady", CONDITION_TRUE);
    const char *reason =
        json_string(json_get(condition_get(turn->conditions, "Ready"), "reason"), "Pending");

    if (turn->refusal && plan->phase != MACHINE_ERROR)
        say(turn, "Ready", CONDITION_FALSE, turn->refusal_reason, turn->refusal);
    else if (plan->phase == MACHINE_ACTIVE && ready)
        say(turn, "Ready", CONDITION_TRUE, "MachineReady", "the Machine is ready");
    else if (plan->phase == MACHINE_ACTIVE)
        say_not(turn, "Ready", CONDITION_FALSE, REASON_MACHINE_NOT_READY, NULL);
    else if (plan->event)
        say(turn, "Ready", CONDITION_FALSE, plan->event->reason,
            turn->is.message ? turn->is.message : "");
    else if (condition_is(turn->conditions, "Ready", CONDITION_TRUE) ||
             !condition_get(turn->conditions, "Ready"))
        say(turn, "Ready", CONDITION_FALSE, reason, "");
}

static void set_conditions(struct machine_turn *turn, const struct machine_plan *plan)
{
    const char *problem = machine_spec_problem(turn->rc->arena, &turn->spec);
    bool draining = plan->act == MACHINE_ACT_SAY_DRAINING ||
                    (turn->observed.draining && plan->phase == MACHINE_SHUTTING_DOWN);

    say_scheduled(turn);
    say_machine_ready(turn);
    if (problem)
        say_not(turn, "ReferencesValid", CONDITION_FALSE, REASON_BAD_REFERENCE, problem);
    else
        say(turn, "ReferencesValid", CONDITION_TRUE, "ReferencesValid", "");
    say_node(turn);
    if (draining)
        say(turn, "Draining", CONDITION_TRUE, "Draining",
            "the Node is drained, then the Machine is removed");
    else
        say_not(turn, "Draining", CONDITION_FALSE, REASON_NOT_DRAINING, NULL);
    say_ready(turn, plan);
}

/* --- all of it --------------------------------------------------------------------------------- */

static void set_message(struct machine_turn *turn, const struct machine_plan *plan)
{
    if (turn->refusal)
        turn->is.message = turn->refusal;
    else if (plan->phase == MACHINE_ERROR && turn->times.problem)
        turn->is.message = turn->times.problem;
    else if (plan->event)
        turn->is.message = plan->event->note;
}

static void set_status(struct machine_turn *turn, const struct machine_plan *plan)
{
    struct scheduledmachine_status *is = &turn->is;
    struct arena *arena = turn->rc->arena;

    is->phase = MACHINE_PHASE_NAMES[plan->phase];
    is->in_schedule = !turn->times.problem && turn->times.enabled && turn->observed.window.inside;
    is->next_activation = time_text(arena, plan->next_activation_us);
    is->next_cleanup = time_text(arena, plan->next_cleanup_us);
    if (plan->event == &MACHINE_EVENT_CREATED)
        is->last_scheduled_time = time_text(arena, turn->observed.now_us);
    is->observed_generation = (struct json_opt_int){ true, turn->object->generation };
    set_references(turn);
    set_message(turn, plan);
    set_conditions(turn, plan);
    is->conditions = turn->conditions;
}

int machine_status_write(struct machine_turn *turn, const struct machine_plan *plan,
                         struct error *err)
{
    struct arena *arena = turn->rc->arena;
    cJSON *reply = NULL;

    set_status(turn, plan);
    const cJSON *was = json_encode(arena, &SCHEDULEDMACHINE_STATUS, &turn->was);
    const cJSON *is = json_encode(arena, &SCHEDULEDMACHINE_STATUS, &turn->is);
    if (json_equal(was, is))
        return 0;

    struct json_patch *patch = guarded_patch_create(arena, turn->json, "status");
    json_patch_members(patch, "/status", was, is);
    int r = kube_patch(turn->rc->client, arena, &KIND_SCHEDULEDMACHINE, &turn->rc->name,
                       KUBE_STATUS, KUBE_PATCH_JSON, json_patch_operations(patch), &reply, err);
    if (r < 0)
        return error_wrap(err, "write status");
    informer_observed(turn->deps->objects, reply);
    return 0;
}
