/* One turn of a ScheduledMachine: observe, plan, act, and say so. */
#include "common/api/kinds.h"
#include "common/base/log.h"
#include "common/runtime/metrics.h"
#include "controller/machine/machine.h"

#define SYNC_AGAIN_MS 1000
#define RESYNC_MS 300000
/* If several open at one second, the higher priority is first. */
#define MAX_PRIORITY 255

static const char *phase_name(enum machine_phase phase)
{
    return phase == MACHINE_NEW ? "New" : MACHINE_PHASE_NAMES[phase];
}

/* Of the person or the agent that annotated the Node; NULL: none. */
static const char *reclaim_reason(const struct machine_turn *turn, const struct event *event)
{
    const cJSON *annotations = json_path(turn->node, "metadata", "annotations", NULL);

    return event == &MACHINE_EVENT_EMERGENCY
               ? json_string(json_get(annotations, NODE_ANNOTATION_RECLAIM_REASON), NULL)
               : NULL;
}

static void tell(struct machine_turn *turn, const struct machine_plan *plan)
{
    static struct metric kills = { .type = METRIC_COUNTER,
                                   .name = "fivespot_kill_switch_activations_total",
                                   .help = "Number of machines that a kill switch ended." };
    const char *note =
        arena_printf(turn->rc->arena, "%s -> %s: %.900s", phase_name(turn->observed.phase),
                     phase_name(plan->phase), plan->event->note);

    const char *reason = reclaim_reason(turn, plan->event);

    if (reason)
        note = arena_printf(turn->rc->arena, "%s; reason: %.256s", note, reason);
    if (plan->event == &MACHINE_EVENT_KILL_SWITCH)
        metric_add(&kills, 1, NULL);
    log_info("phase of a machine", "uid", turn->object->uid, "phase", phase_name(plan->phase),
             "reason", plan->event->reason, NULL);
    events_emit_note(turn->rc->events, &KIND_SCHEDULEDMACHINE, turn->object, plan->event, note);
}

static void tell_late(struct machine_turn *turn)
{
    static struct metric timeouts = { .type = METRIC_COUNTER,
                                      .name = "fivespot_finalizer_cleanup_timeouts_total",
                                      .help = "Number of deletions that took over 10 minutes." };

    if (turn->note->told_late)
        return;
    turn->note->told_late = true;
    metric_add(&timeouts, 1, NULL);
    events_emit(turn->rc->events, &KIND_SCHEDULEDMACHINE, turn->object, &MACHINE_EVENT_LATE);
}

static void come_again(const struct machine_turn *turn, const struct machine_plan *plan)
{
    int64_t delay_ms = (plan->again_us - turn->observed.now_us + 999) / 1000;

    if (plan->again_us && plan->again_us == turn->observed.window.next_us &&
        !turn->observed.window.inside)
        delay_ms += MAX_PRIORITY - (turn->spec.priority.set ? turn->spec.priority.value : 50);
    if (plan->again_us && delay_ms < RESYNC_MS)
        reconcile_again_after(turn->rc, delay_ms);
    else
        reconcile_again_after(turn->rc, RESYNC_MS);
}

static int do_act(struct machine_turn *turn, struct machine_plan *plan, struct error *err)
{
    int r = machine_act(turn, plan, err);

    if (r < 0 || !turn->refusal)
        return r;
    log_warn("a machine is held up", "uid", turn->object->uid, "reason", turn->refusal_reason,
             NULL);
    if (plan->act != MACHINE_ACT_DRAIN) {
        machine_note_refusal(turn->note, plan->act == MACHINE_ACT_CREATE,
                             clock_monotonic_ms(turn->rc->clock));
        reconcile_again_after(turn->rc, turn->note->wait_ms);
    }
    if (plan->act == MACHINE_ACT_CREATE) {
        turn->observed.refused = true;
        *plan = machine_plan(&turn->observed);
    }
    return 0;
}

/* An object that is released is not written any more. */
static bool is_written(const struct machine_plan *plan)
{
    return plan->act != MACHINE_ACT_RELEASE && plan->act != MACHINE_ACT_ADD_FINALIZER &&
           plan->act != MACHINE_ACT_DISABLE && plan->phase != MACHINE_NEW;
}

static int take_turn(struct machine_turn *turn, struct error *err)
{
    int r = machine_observe(turn, err);
    if (r == -ERROR_CANCELED || (r < 0 && !turn->observed.deleted_us))
        return r;
    if (r <
        0) /* a deletion may be late, and is then released, although its objects cannot be read */
        turn->observed.any_left = true;

    struct machine_plan plan = machine_plan(&turn->observed);
    if (plan.cleanup_late)
        tell_late(turn);
    if (r < 0 && plan.act != MACHINE_ACT_RELEASE)
        return r;
    r = 0;
    turn->is = turn->was;
    turn->conditions = json_array(turn->rc->arena);
    json_for_each (condition, turn->was.conditions)
        json_add(turn->conditions, json_copy(condition));
    if (plan.phase == turn->observed.phase)
        r = do_act(turn, &plan, err);
    if (r == 0 && is_written(&plan))
        r = machine_status_write(turn, &plan, err);
    if (r < 0)
        return r;
    if (plan.event)
        tell(turn, &plan);
    come_again(turn, &plan);
    return 0;
}

/* A cache that is not complete has no Node, and then nothing would be drained. A deletion does not drain, and reads a
 * Machine that no cache has: it ends also where Cluster API is gone. */
static bool has_caches(const struct machine_deps *deps, const struct kube_object *object)
{
    return informer_synced(deps->objects) && informer_synced(deps->nodes) &&
           (informer_synced(deps->machines) || object->deleting);
}

int machine_reconcile(void *self, struct reconcile *rc, struct error *err)
{
    const struct machine_deps *deps = self;

    CLEANUP(kube_object_unrefp)
    struct kube_object *object = store_get(informer_store(deps->objects), &rc->name);
    if (!object && informer_synced(deps->objects)) {
        machine_notes_drop(deps->notes, &rc->name);
        return 0;
    }
    if (!object || !has_caches(deps, object)) {
        reconcile_again_after(rc, SYNC_AGAIN_MS);
        return 0;
    }
    struct machine_turn turn = { .deps = deps, .rc = rc, .object = object };
    return take_turn(&turn, err);
}
