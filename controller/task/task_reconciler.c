#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/kube/finalizer.h"
#include "controller/bridge/bridge_messages.h"
#include "controller/shared/status_writer.h"
#include "controller/task/owner.h"
#include "controller/task/plan/broadcast_plan.h"
#include "controller/task/plan/owed_stops_plan.h"
#include "controller/task/plan/task_bringing_plan.h"
#include "controller/task/plan/task_run_plan.h"
#include "controller/task/plan/task_transition.h"
#include "controller/task/task.h"
#include "controller/task/task_dispatch.h"
#include "controller/task/task_metrics.h"
#include "controller/task/task_observe.h"
#include "controller/task/task_room.h"
#include "controller/task/task_workload.h"

/* ---- latestMetrics: written with whatever is written; alone it waits for the refresh budget ---- */

static bool has_sample(const struct task_observed *observed, const struct task_plan *plan)
{
    return observed->attempt.sample_us && plan->status.phase != TASK_PENDING;
}

/* Whether the sample may be written though nothing else changed. If not yet, the plan asks for another turn then. */
static bool task_sample_is_due(const struct task_deps *deps, const struct task_observed *observed,
                               struct task_plan *plan)
{
    if (!has_sample(observed, plan))
        return false;

    int64_t slot_ms = refresh_budget_reserve(deps->budget, observed->uid, false,
                                             &deps->settings->refresh, observed->now_ms);
    if (slot_ms <= observed->now_ms)
        return true;

    int64_t delay_ms = slot_ms - observed->now_ms;
    if (delay_ms > UINT32_MAX)
        delay_ms = UINT32_MAX;
    if (!plan->requeue_after_ms || delay_ms < plan->requeue_after_ms)
        plan->requeue_after_ms = (uint32_t)delay_ms;
    return false;
}

static void task_sample_add(struct arena *arena, const struct task_observed *observed,
                            struct task_plan *plan)
{
    if (has_sample(observed, plan))
        plan->status.latest_metrics =
            sample_json(arena, &observed->attempt.sample, observed->attempt.sample_us);
}

static void task_sample_done(const struct task_deps *deps, const struct task_observed *observed)
{
    attempts_sample_written(deps->attempts, observed->uid, observed->attempt.sample_us);
    refresh_budget_release(deps->budget, observed->uid);
}

/* ---- */

/* A choice that others overtook is made again; so many times, then the Task waits its turn in the
 * queue. */
#define MAX_CHOICES 16
/* How long the watch may take to tell a deletion. */
#define GONE_RETRY_MS 2000
/* A right that is missing comes back: asked for at this steady pace, so that a long outage does not
 * make the first write after it late. */
#define FORBIDDEN_RETRY_MS 10000
/* What the API server refuses for good may be mended by whoever made it so. */
#define REFUSED_RETRY_MS 60000

static bool assume(const struct task_deps *deps, struct reconcile *rc, const struct task_plan *plan,
                   uint64_t sequence)
{
    struct freed_list freed;
    const struct json_objects *targets = &plan->status.broadcast_results;
    struct placed *places = arena_array(rc->arena, struct placed, targets->len + 1);
    const struct placement placement = {
        .on = { plan->status.assigned_proplet, plan->status.assigned_client_id },
        .active = true,
        .chosen_us = plan->status.scheduled_at_us,
        .targets = places,
        .target_count = targets->len,
    };

    for (size_t i = 0; i < targets->len; i++) {
        const struct task_target *target = &((const struct task_target *)targets->items)[i];
        places[i] = (struct placed){ target->proplet, target->client_id };
    }
    bool assumed =
        placements_assume(deps->placements, rc->arena, sequence, &rc->name, &placement, &freed);
    task_room_offer_all(deps, rc->arena, &freed);
    return assumed;
}

/* Looks and chooses again as long as another worker was faster: see placements.h and wait_list.h. */
static struct task_plan choose(const struct task_deps *deps, struct reconcile *rc,
                               struct task_observed *observed, const cJSON *json)
{
    for (int i = 0; i < MAX_CHOICES; i++) {
        uint64_t choices = placements_sequence(deps->placements);
        uint64_t calls = wait_list_sequence(deps->waiting);
        /* orders the choices, also after a restart */
        observed->now_us = timeline_now_us(deps->timeline, &observed->time);
        if (task_needs_candidates(observed))
            task_room_look(deps, rc, json, observed);

        struct task_plan plan = task_plan(rc->arena, observed);
        if (plan.action == TASK_ASSIGN ? assume(deps, rc, &plan, choices)
                                       : plan.action != TASK_AWAIT_CAPACITY ||
                                             task_room_wait(deps, rc, json, observed, &plan, calls))
            return plan;
    }
    /* nothing is lost: the next reconcile chooses */
    return (struct task_plan){ .status = observed->task.status, .requeue_after_ms = 1 };
}

/* It may make its Proplet healthy or not. */
static void note_answer(const struct task_deps *deps, const struct kube_name *task,
                        const struct task_observed *observed, enum task_answer answer)
{
    const struct observed_proplet *proplet = &observed->proplet;
    struct kube_name name;
    char key[FLEET_KEY_LEN];

    if (answer != ANSWER_PENDING && proplet->exists &&
        fleet_key(proplet->channel, proplet->client_id, key) &&
        fleet_note_outcome(deps->fleet, key, answer == ANSWER_CAME) &&
        kube_name_set(&name, task->ns, observed->task.status.assigned_proplet))
        workqueue_add(deps->proplet_queue, &name);
}

static void announce(struct reconcile *rc, const struct kube_object *object,
                     const struct task_plan *plan)
{
    if (plan->earlier)
        events_emit(rc->events, &KIND_TASK, object, plan->earlier);
    if (plan->checkpoint_note)
        events_emit_note(rc->events, &KIND_TASK, object, &TASK_EVENT_CHECKPOINT,
                         plan->checkpoint_note);
    if (!plan->event)
        return;

    log_info("task changed", "uid", object->uid, "attempt", LOG_INT(plan->status.attempt), "event",
             plan->event->reason, "reason", plan->status.reason, "proplet",
             plan->status.assigned_proplet, "missed_runs",
             plan->missed ? LOG_INT((int64_t)plan->missed) : NULL, NULL);
    events_emit(rc->events, &KIND_TASK, object,
                plan->event == &TASK_EVENT_FAILED ? event_of_failure(reason_of(plan->status.reason))
                                                  : plan->event);
}

/* Why the status says that the Task waits; REASON_NONE: it does not. */
static enum reason waiting_reason(const struct task_status *status)
{
    return status->phase == TASK_PENDING || status->phase == TASK_SCHEDULED
               ? reason_of(status->reason)
               : REASON_NONE;
}

/* The queue has this name for the Events of all Tasks that wait; no object has it. */
static const struct kube_name WAIT_EVENTS = { .name = ":wait-events" };

static void note_waiting(const struct task_deps *deps, const struct task_observed *observed,
                         const struct task_plan *plan)
{
    if (wait_events_note(deps->wait_events, observed->uid, waiting_reason(&plan->status),
                         observed->now_ms))
        workqueue_add(deps->task_queue, &WAIT_EVENTS);
}

static void tell_waiting(const struct task_deps *deps, struct reconcile *rc)
{
    struct wait_event due[WAIT_EVENTS_PER_SECOND];
    size_t len = wait_events_take(deps->wait_events, clock_monotonic_ms(rc->clock), due,
                                  &rc->requeue_after_ms);

    for (size_t i = 0; i < len; i++) {
        struct kube_name name;
        if (!event_of_waiting(due[i].reason) ||
            !store_name_of_uid(informer_store(deps->tasks), due[i].uid, &name))
            continue;

        CLEANUP(kube_object_unrefp)
        struct kube_object *object = store_get(informer_store(deps->tasks), &name);
        if (object && str_equal(object->uid, due[i].uid))
            events_emit(rc->events, &KIND_TASK, object, event_of_waiting(due[i].reason));
    }
}

/* What was projected away must be there to be removed: a Task that starts over is read whole. */
static int whole_object(struct reconcile *rc, const struct task_observed *observed,
                        struct task_plan *plan, const cJSON **json, struct error *err)
{
    struct task task = { 0 };

    if (!plan->run_end &&
        (plan->status.phase != TASK_PENDING || observed->task.status.phase == TASK_PENDING))
        return 0;

    cJSON *whole = NULL;
    int r = kube_get(rc->client, rc->arena, &KIND_TASK, &rc->name, &whole, err);
    if (r < 0)
        return r;

    if (!json_equal(json_path(whole, "metadata", "resourceVersion", NULL),
                    json_path(*json, "metadata", "resourceVersion", NULL)))
        return error_set(err, ERROR_CONFLICT, "Task '%s' changed since it was read", rc->name.name);

    r = task_decode(rc->arena, whole, &task, err);
    if (r < 0)
        return r;

    plan->status.history = task.status.history;
    if (plan->run_end) {
        const struct task_status ended = task_ended(&task.status, plan->run_end, observed->now_us);
        plan->status.history = task_history_add(rc->arena, task.status.history, &ended,
                                                task_history_limit(&observed->task.spec));
    }
    plan->status.latest_metrics = task.status.latest_metrics;
    *json = whole;
    return 0;
}

static int write_status(const struct task_deps *deps, struct reconcile *rc, const cJSON *json,
                        const struct task_observed *observed, struct task_plan *plan,
                        bool *ret_written, struct error *err)
{
    *ret_written = false;
    if (json_equal(json_get(json, "status"), task_status_encode(rc->arena, &plan->status)) &&
        !task_sample_is_due(deps, observed, plan))
        return 0;

    int r = whole_object(rc, observed, plan, &json, err);
    if (r < 0)
        return r;

    plan->status.updated_at_us = observed->now_us;
    task_show_kstatus(rc->arena, observed, plan);
    task_sample_add(rc->arena, observed, plan);
    r = status_write(rc, deps->tasks, &KIND_TASK, json,
                     task_status_encode(rc->arena, &plan->status), ret_written, err);
    if (r == 0)
        task_sample_done(deps, observed);
    return r;
}

/* Answers of the API server that will be the same however often it is asked. */
static bool is_permanent(int r)
{
    return r == -ERROR_INVALID || r == -ERROR_TOO_LARGE;
}

/* The messages of the Task stay: see forbidden_check. */
static void wait_for_rights(const struct task_deps *deps, struct reconcile *rc,
                            const struct task_observed *observed, const struct error *err)
{
    attempts_forbidden(deps->attempts, observed->uid, observed->task.status.attempt,
                       observed->now_ms);
    log_warn("the controller lacks a right, keeping the messages of the Task and trying again",
             "uid", observed->uid, "error", ERROR_TEXT(err), NULL);
    task_owners_failed(&deps->owners, observed->uid);
    rc->requeue_after_ms = FORBIDDEN_RETRY_MS;
}

/* Not even the failure can be stored: the messages of the Task are counted and dropped. */
static void give_up(const struct task_deps *deps, struct reconcile *rc,
                    const struct kube_object *object, const struct task_plan *plan,
                    const struct error *err)
{
    log_error("status refused by the API server, trying again later", "uid", object->uid, "error",
              ERROR_TEXT(err), NULL);
    if (plan->ack_up_to) {
        mailbox_ack(deps->mailbox, object->uid, plan->ack_up_to);
        bridge_count_rejected("unstorable", 1);
        task_owners_forget(&deps->owners, object->uid);
    }
    rc->requeue_after_ms = REFUSED_RETRY_MS;
}

/* The map function of its deletion clears its mail; as long as that has not come it may be there.
 */
static void look_again_if_there(const struct task_deps *deps, struct reconcile *rc,
                                const struct kube_object *object)
{
    struct kube_name name;

    if (store_name_of_uid(informer_store(deps->tasks), object->uid, &name))
        rc->requeue_after_ms = GONE_RETRY_MS;
}

static void forget_choice(const struct task_deps *deps, struct reconcile *rc)
{
    struct freed_list freed = placements_forget(deps->placements, rc->arena, &rc->name);

    task_room_offer_all(deps, rc->arena, &freed);
}

/* The outcome could not be written; < 0: the reconcile fails. */
static int after_refusal(const struct task_deps *deps, struct reconcile *rc,
                         const struct kube_object *object, const struct task_observed *observed,
                         const struct task_plan *plan, struct error *err)
{
    int r = -(int)err->code;

    if (plan->action == TASK_ASSIGN)
        forget_choice(deps, rc);
    if (r == -ERROR_NOT_FOUND) /* deleted, or a starting API server does not know the kind yet */
        look_again_if_there(deps, rc, object);
    else if (r == -ERROR_FORBIDDEN)
        wait_for_rights(deps, rc, observed, err);
    else if (is_permanent(r))
        give_up(deps, rc, object, plan, err);
    else
        return error_wrap(err, "write status");
    return 0;
}

static void each_cut(const struct task_observed *observed, const struct task_plan *plan,
                     void (*each)(void *ctx, const struct task_observed *cut), void *ctx)
{
    if (plan->cut)
        each(ctx, observed);
    for (size_t i = 0; plan->targets && i < observed->task.status.broadcast_results.len; i++) {
        if (plan->targets[i].cut)
            each(ctx, &observed->parts[i]);
    }
}

static void add_cuts(const struct task_deps *deps, const char *proplet_uid, int64_t count)
{
    struct kube_name name;

    availabilities_cut(deps->availabilities, proplet_uid, count);
    if (!store_name_of_uid(informer_store(deps->proplets), proplet_uid, &name))
        availabilities_remove(deps->availabilities, proplet_uid); /* nothing may outlive it */
}

static void count_cut(void *ctx, const struct task_observed *cut)
{
    add_cuts(ctx, cut->proplet.uid, 1);
}

static void uncount_cut(void *ctx, const struct task_observed *cut)
{
    add_cuts(ctx, cut->proplet.uid, -1);
}

static void measure_cut(void *ctx UNUSED, const struct task_observed *cut)
{
    task_metrics_cut(reason_text(cut->attempt.cut_reason));
}

static int store_outcome(const struct task_deps *deps, struct reconcile *rc,
                         const struct kube_object *object, const cJSON *json,
                         const struct task_observed *observed, struct task_plan *plan,
                         struct error *err)
{
    bool written = false;

    /* Before, as its Proplet may be reconciled before the write returns. */
    each_cut(observed, plan, count_cut, (void *)deps);
    int r = write_status(deps, rc, json, observed, plan, &written, err);
    if (is_permanent(r) && plan->has_payload) {
        log_warn("result refused by the API server, storing the failure without it", "uid",
                 object->uid, "error", ERROR_TEXT(err), NULL);
        *plan = task_plan_conclude(rc->arena, observed, plan,
                                   &(struct task_setback){ .kind = SETBACK_UNSTORABLE });
        r = write_status(deps, rc, json, observed, plan, &written, err);
    }
    if (r < 0 || !written)
        each_cut(observed, plan, uncount_cut, (void *)deps);
    if (r < 0)
        return after_refusal(deps, rc, object, observed, plan, err);

    task_owners_after_write(&deps->owners, observed, plan);
    attempts_not_forbidden(deps->attempts, object->uid);
    if (plan->action == TASK_ASSIGN)
        attempts_chosen(deps->attempts, object->uid, plan->status.attempt, observed->now_ms);
    task_broadcast_chosen(deps, rc, observed, plan);
    if (plan->ack_up_to)
        mailbox_ack(deps->mailbox, object->uid, plan->ack_up_to);
    for (size_t i = 0; i < RESULT_VERDICTS; i++)
        bridge_count_rejected(RESULT_VERDICT_NAMES[i], plan->rejected[i]);
    if (written) {
        note_answer(deps, &rc->name, observed, plan->answer);
        for (size_t i = 0; plan->targets && i < plan->status.broadcast_results.len; i++) {
            if (plan->targets[i].answer)
                note_answer(deps, &rc->name, &observed->parts[i], plan->targets[i].answer);
        }
        announce(rc, object, plan);
        each_cut(observed, plan, measure_cut, NULL);
        task_metrics_written(&observed->task.status, &plan->status, observed->created_us);
    }
    note_waiting(deps, observed, plan);
    rc->requeue_after_ms = plan->requeue_after_ms;
    return 0;
}

/* The status may be writable where the object is not. */
static void tell_forbidden(const struct task_deps *deps, struct reconcile *rc, const cJSON *json,
                           const struct task_observed *observed)
{
    struct task_plan plan = { .status = observed->task.status };
    struct error err = { 0 };
    bool written;

    task_condition(rc->arena, observed, &plan, "Scheduled", CONDITION_FALSE, REASON_FORBIDDEN,
                   "the controller may not patch Tasks in this namespace");
    if (write_status(deps, rc, json, observed, &plan, &written, &err) < 0)
        log_debug("condition not written", "error", ERROR_TEXT(&err), NULL);
}

static int add_finalizer(const struct task_deps *deps, struct reconcile *rc, const cJSON *json,
                         const struct task_observed *observed, struct error *err)
{
    cJSON *reply = NULL;
    int r = finalizer_add(rc->client, rc->arena, &KIND_TASK, json, FINALIZER_TASK, &reply, err);
    if (r == -ERROR_FORBIDDEN) {
        tell_forbidden(deps, rc, json, observed);
        wait_for_rights(deps, rc, observed, err);
        return 0;
    }
    if (r < 0)
        return error_wrap(err, "add finalizer");
    attempts_not_forbidden(deps->attempts, observed->uid);
    if (reply)
        informer_observed(deps->tasks, reply);
    return 0;
}

static int release(const struct task_deps *deps, struct reconcile *rc,
                   const struct kube_object *object, const cJSON *json,
                   const struct task_plan *plan, struct error *err)
{
    int r = finalizer_remove(rc->client, &KIND_TASK, json, FINALIZER_TASK, err);
    if (r < 0 && r != -ERROR_NOT_FOUND)
        return error_wrap(err, "remove finalizer");

    mailbox_ack(deps->mailbox, object->uid, UINT64_MAX);
    if (plan->action == TASK_RELEASE_UNCONFIRMED)
        log_warn("deleted although its device did not confirm the stop in time", "uid", object->uid,
                 "proplet", plan->status.assigned_proplet, NULL);
    look_again_if_there(deps, rc, object);
    return 0;
}

/* An action waits for the stop before it; only a deletion has a time limit. *ret_stopped: the stop is out. */
static int publish_stop(const struct task_deps *deps, struct reconcile *rc,
                        const struct task_observed *observed, const struct task_plan *plan,
                        bool *ret_stopped)
{
    *ret_stopped = plan->stop && task_publish_stop(deps, rc, observed);
    return plan->stop && !*ret_stopped && !observed->deleted_us ? TASK_NOT_PUBLISHED : 0;
}

/* Does what is outside of the Task's own object. TASK_NOT_PUBLISHED: nothing more is done in this turn. */
static int perform(const struct task_deps *deps, struct reconcile *rc,
                   const struct task_observed *observed, struct task_plan *plan,
                   struct task_setback *ret, struct error *err)
{
    switch (plan->action) {
    case TASK_TELL_TARGETS:
        return task_broadcast_publish(deps, rc, observed, plan, err);
    case TASK_CREATE_WORKLOAD:
        return task_workload_create(deps, rc, observed, ret, err);
    case TASK_START:
        return task_publish_start(deps, rc, observed, ret, err);
    default:
        return 0;
    }
}

/* What cannot be told now is owed on. */
static void tell_owed_stops(const struct task_deps *deps, struct reconcile *rc,
                            const struct task_observed *observed, struct task_plan *plan)
{
    const struct json_objects *list = &observed->task.status.lost_attempts;
    const struct lost_attempt *attempts = list->items;

    for (size_t i = 0; plan->owed_due && i < list->len; i++) {
        if (!plan->owed_due[i])
            continue;
        if (task_send_stop(deps, rc, observed, &observed->owed[i], attempts[i].id))
            owed_stop_done(&plan->status, attempts[i].id);
        else
            task_requeue_at(observed, plan, observed->now_ms + rc->requeue_after_ms);
    }
}

/* Of a deleted Task: nobody reads its status any more; results only confirm. */
static int let_go(const struct task_deps *deps, struct reconcile *rc,
                  const struct kube_object *object, const cJSON *json, const struct task_plan *plan,
                  bool stopped, struct error *err)
{
    if (plan->action == TASK_RELEASE || plan->action == TASK_RELEASE_UNCONFIRMED ||
        (plan->action == TASK_RELEASE_IF_STOPPED && stopped))
        return release(deps, rc, object, json, plan, err);
    if (plan->ack_up_to)
        mailbox_ack(deps->mailbox, object->uid, plan->ack_up_to);
    rc->requeue_after_ms = plan->requeue_after_ms;
    return 0;
}

/* Once: a start that is repeated waits for no pull. */
static void tell_bringing(struct reconcile *rc, const struct kube_object *object,
                          const struct task_observed *observed, const struct bringing *bringing)
{
    if (bringing && bringing->note && bringing->step == BRING_READY &&
        observed->task.status.phase == TASK_SCHEDULED)
        events_emit_note(rc->events, &KIND_TASK, object, &TASK_EVENT_MODULE_PULLED, bringing->note);
}

/* Whether this turn sends a start, or tries to. */
static bool has_start(const struct task_plan *plan)
{
    for (size_t i = 0; plan->targets && i < plan->status.broadcast_results.len; i++) {
        if (plan->targets[i].action == TASK_START)
            return true;
    }
    return plan->action == TASK_START;
}

static void rest(const struct task_deps *deps, const struct task_observed *observed,
                 struct task_plan *plan)
{
    int64_t ms = has_start(plan) ? 0 : task_owners_rest(&deps->owners, observed);

    if (ms)
        task_requeue_at(observed, plan, observed->now_ms + ms);
}

static int act(const struct task_deps *deps, struct reconcile *rc, const struct kube_object *object,
               const cJSON *json, const struct task_observed *observed, struct task_plan *plan,
               struct error *err)
{
    struct task_setback setback = { 0 };
    bool stopped;

    if (plan->action == TASK_ADD_FINALIZER)
        return add_finalizer(deps, rc, json, observed, err);
    if (plan->action == TASK_DELETE)
        return kube_delete(rc->client, &KIND_TASK, &rc->name, object->uid, object->resource_version,
                           err);

    int r = task_workload_clean(deps, rc, observed, plan, err);
    if (r == 0)
        r = publish_stop(deps, rc, observed, plan, &stopped);
    if (r == 0)
        r = perform(deps, rc, observed, plan, &setback, err);
    if (r != 0)
        return r == TASK_NOT_PUBLISHED ? 0 : r;
    tell_bringing(rc, object, observed, plan->bringing ? plan->bringing : setback.bringing);

    *plan = task_plan_conclude(rc->arena, observed, plan, &setback);
    if (observed->deleted_us)
        return let_go(deps, rc, object, json, plan, stopped, err);
    r = task_owners_before_write(&deps->owners, rc, json, observed, plan, err);
    if (r < 0)
        return r;
    tell_owed_stops(deps, rc, observed, plan);
    return store_outcome(deps, rc, object, json, observed, plan, err);
}

/* Nothing says any more where it may run. */
static int release_unreadable(struct reconcile *rc, const struct kube_object *object,
                              const cJSON *json, struct error *err)
{
    log_warn("deleted although it cannot be read, no stop is sent to its device", "uid",
             object->uid, "error", ERROR_TEXT(err), NULL);
    return finalizer_remove(rc->client, &KIND_TASK, json, FINALIZER_TASK, err);
}

static int reconcile_object(const struct task_deps *deps, struct reconcile *rc,
                            const struct kube_object *object, bool *ret_waits, bool *ret_assigned,
                            struct error *err)
{
    const cJSON *json = kube_object_json(rc->arena, object);
    struct task_observed observed;

    task_owners_constrain(&deps->owners, rc->arena, (cJSON *)(uintptr_t)json);
    int r = task_observe(deps, rc, object, json, &observed, err);
    if (r == -ERROR_INVALID && object->deleting)
        return release_unreadable(rc, object, json, err);
    if (r < 0)
        return r;
    if (observed.marker_wanted)
        bridge_fence_request(deps->bridge, observed.marker_since_ms,
                             observed.marker_awaited ? &rc->name : NULL);
    if (r == TASK_RESULTS_LATER)
        return 0;

    struct task_plan plan = choose(deps, rc, &observed, json);
    unsigned surplus = task_plan_companions(&observed, &plan) & ~TASK_PLAN_MAY_HAVE[plan.action];
    if (surplus) /* this Task alone waits for a mended controller */
        return error_set(err, ERROR_INTERNAL, "action %d of Task '%s' is planned with %#x",
                         (int)plan.action, rc->name.name, surplus);
    rest(deps, &observed, &plan);
    r = act(deps, rc, object, json, &observed, &plan, err);
    *ret_assigned = r == 0 && plan.action == TASK_ASSIGN;
    *ret_waits =
        r == 0 && plan.action == TASK_AWAIT_CAPACITY; /* after an error its own next turn is due */
    return r;
}

static int turn(const struct task_deps *deps, struct reconcile *rc,
                const struct kube_object *object, bool *ret_assigned, struct error *err)
{
    struct store *tasks = informer_store(deps->tasks);
    struct kube_name name;
    bool waits = false;
    int r = reconcile_object(deps, rc, object, &waits, ret_assigned, err);

    if (r < 0)
        task_owners_failed(&deps->owners, object->uid);
    if (!store_name_of_uid(tasks, object->uid, &name)) /* gone meanwhile: nothing may outlive it */
        task_forget(deps, object->uid);
    if (!waits)
        task_room_leave(deps, rc->arena, &rc->name);
    return r;
}

static int reconcile_stored(const struct task_deps *deps, struct reconcile *rc, bool *ret_assigned,
                            struct error *err)
{
    CLEANUP(kube_object_unrefp)
    struct kube_object *object = store_get(informer_store(deps->tasks), &rc->name);

    *ret_assigned = false;
    task_note_placement(deps, rc->arena, &rc->name, object);
    if (object)
        return turn(deps, rc, object, ret_assigned, err);

    task_room_leave(deps, rc->arena, &rc->name); /* its finalizer has run, nothing else is left */
    return 0;
}

int task_reconcile(void *self, struct reconcile *rc, struct error *err)
{
    const struct task_deps *deps = self;
    bool assigned;

    if (task_room_is_all(&rc->name)) {
        task_room_tell(deps, rc);
        return 0;
    }
    if (kube_name_equal(&rc->name, &WAIT_EVENTS)) {
        tell_waiting(deps, rc);
        return 0;
    }

    int r = reconcile_stored(deps, rc, &assigned, err);
    /* The start does not queue behind the choices of all Tasks that were woken together. */
    if (assigned)
        r = reconcile_stored(deps, rc, &assigned, err);
    return r;
}
