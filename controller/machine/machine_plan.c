#include "controller/machine/machine_plan.h"

#include "common/base/compiler.h"

#define US_PER_MS INT64_C(1000)
/* Between two tries of a clean-up that is late. */
#define LATE_AGAIN_US INT64_C(60000000)

static struct machine_plan act_of(const struct machine_observed *observed, enum machine_act act)
{
    return (struct machine_plan){ .phase = observed->phase,
                                  .act = act,
                                  .next_cleanup_us = observed->next_cleanup_us };
}

static struct machine_plan change(enum machine_phase phase, const struct event *event)
{
    return (struct machine_plan){ .phase = phase, .event = event };
}

static bool is_disabled(const struct machine_observed *observed)
{
    return !observed->times->problem && !observed->times->enabled;
}

static bool is_wanted(const struct machine_observed *observed)
{
    return !observed->times->problem && observed->times->enabled && observed->window.inside;
}

/* A window that has closed by time did so however late it is noticed; an edit closes it now. */
static struct machine_plan begin_shutdown(const struct machine_observed *observed)
{
    int64_t closed_us = observed->window.closed_us;
    bool by_time = !is_disabled(observed) && !observed->edited && closed_us;
    struct machine_plan plan =
        change(MACHINE_SHUTTING_DOWN,
               is_disabled(observed) ? &MACHINE_EVENT_DISABLED : &MACHINE_EVENT_GRACE);

    plan.next_cleanup_us =
        (by_time ? closed_us : observed->now_us) + observed->grace_ms * US_PER_MS;
    return plan;
}

/* --- deletion, kill switch, emergency ---------------------------------------------------------- */

static struct machine_plan plan_deletion(const struct machine_observed *observed)
{
    int64_t late_us = observed->deleted_us + MACHINE_CLEANUP_MS * US_PER_MS;
    bool late = observed->now_us >= late_us;
    struct machine_plan plan = act_of(observed, MACHINE_ACT_NONE);

    if (!observed->has_finalizer)
        return plan;
    plan.act = MACHINE_ACT_REMOVE;
    if (!observed->any_left || (late && observed->force_release))
        plan.act = MACHINE_ACT_RELEASE;
    plan.cleanup_late = late && observed->any_left;
    plan.again_us = late ? observed->now_us + LATE_AGAIN_US : late_us;
    return plan;
}

static struct machine_plan plan_terminated(const struct machine_observed *observed)
{
    if (observed->any_left)
        return act_of(observed, MACHINE_ACT_REMOVE_NOW);
    if (observed->kill_switch)
        return act_of(observed, MACHINE_ACT_NONE);
    return change(MACHINE_PENDING, &MACHINE_EVENT_KILL_SWITCH_OFF);
}

/* The schedule is disabled before anything is deleted, since the annotation goes with the Node. */
static struct machine_plan plan_emergency(const struct machine_observed *observed)
{
    if (observed->times->enabled)
        return act_of(observed, MACHINE_ACT_DISABLE);
    if (observed->kill_switch)
        return change(MACHINE_TERMINATED, &MACHINE_EVENT_KILL_SWITCH);
    if (observed->drains)
        return act_of(observed, MACHINE_ACT_CLEAR_PODS);
    if (observed->any_left)
        return act_of(observed, MACHINE_ACT_REMOVE_NOW);
    if (observed->has_annotations)
        return act_of(observed, MACHINE_ACT_CLEAR_NODE);
    return change(MACHINE_DISABLED, &MACHINE_EVENT_EMERGENCY_DISABLED);
}

/* --- phases of the schedule ------------------------------------------------------------------- */

static struct machine_plan plan_error(const struct machine_observed *observed)
{
    if (observed->times->problem)
        return act_of(observed, MACHINE_ACT_NONE);
    if (!is_wanted(observed))
        return observed->any_left ? begin_shutdown(observed)
                                  : change(MACHINE_PENDING, &MACHINE_EVENT_RETRYING);
    if (observed->all_exist)
        return change(MACHINE_ACTIVE, &MACHINE_EVENT_ACTIVE);
    if (!observed->edited && observed->now_us < observed->retry_us) {
        struct machine_plan plan = act_of(observed, MACHINE_ACT_NONE);
        plan.again_us = observed->retry_us;
        return plan;
    }
    return change(MACHINE_PENDING, &MACHINE_EVENT_RETRYING);
}

static struct machine_plan plan_pending(const struct machine_observed *observed)
{
    if (is_wanted(observed)) {
        if (observed->all_exist)
            return change(MACHINE_ACTIVE, &MACHINE_EVENT_CREATED);
        if (observed->refused)
            return change(MACHINE_ERROR, &MACHINE_EVENT_CREATION_FAILED);
        return act_of(observed, MACHINE_ACT_CREATE);
    }
    if (observed->any_left)
        return act_of(observed, MACHINE_ACT_REMOVE);
    return is_disabled(observed) ? change(MACHINE_DISABLED, &MACHINE_EVENT_DISABLED)
                                 : change(MACHINE_INACTIVE, &MACHINE_EVENT_OUTSIDE);
}

static struct machine_plan plan_active(const struct machine_observed *observed)
{
    if (!is_wanted(observed))
        return begin_shutdown(observed);

    struct machine_plan plan =
        act_of(observed, observed->all_exist ? MACHINE_ACT_KEEP : MACHINE_ACT_CREATE);

    plan.next_cleanup_us =
        observed->window.next_us ? observed->window.next_us + observed->grace_ms * US_PER_MS : 0;
    return plan;
}

static struct machine_plan plan_shutting_down(const struct machine_observed *observed)
{
    struct machine_plan plan = act_of(observed, MACHINE_ACT_CORDON);

    if (!observed->draining && is_wanted(observed))
        return change(MACHINE_ACTIVE, &MACHINE_EVENT_ACTIVE);
    if (!observed->any_left)
        return is_disabled(observed) ? change(MACHINE_DISABLED, &MACHINE_EVENT_DELETED)
                                     : change(MACHINE_INACTIVE, &MACHINE_EVENT_DELETED);
    if (!plan.next_cleanup_us) /* lost, with the rest of the status */
        plan.next_cleanup_us = observed->now_us + observed->grace_ms * US_PER_MS;

    int64_t begin_us = plan.next_cleanup_us + observed->stepped_us;
    int64_t end_us = begin_us + observed->drain_ms * US_PER_MS;

    if (!observed->draining && observed->now_us < begin_us) {
        plan.again_us = begin_us;
    } else if (!observed->draining) {
        plan.act = MACHINE_ACT_SAY_DRAINING;
    } else if (observed->drains && observed->now_us < end_us) {
        plan.act = MACHINE_ACT_DRAIN;
        plan.again_us = plan.drain_end_us = end_us;
    } else {
        plan.act = MACHINE_ACT_REMOVE;
    }
    return plan;
}

static struct machine_plan plan_idle(const struct machine_observed *observed)
{
    bool was_disabled = observed->phase == MACHINE_DISABLED;

    if (is_disabled(observed))
        return was_disabled ? act_of(observed, MACHINE_ACT_NONE)
                            : change(MACHINE_DISABLED, &MACHINE_EVENT_DISABLED);
    if (was_disabled)
        return change(MACHINE_PENDING, &MACHINE_EVENT_ENABLED);
    return is_wanted(observed) ? change(MACHINE_PENDING, &MACHINE_EVENT_ACTIVE)
                               : act_of(observed, MACHINE_ACT_NONE);
}

static bool needs_schedule(enum machine_phase phase)
{
    return phase == MACHINE_PENDING || phase == MACHINE_ACTIVE || phase == MACHINE_INACTIVE ||
           phase == MACHINE_DISABLED;
}

static struct machine_plan plan_schedule(const struct machine_observed *observed)
{
    if (observed->times->problem && needs_schedule(observed->phase))
        return change(MACHINE_ERROR, &MACHINE_EVENT_BAD_SCHEDULE);
    switch (observed->phase) {
    case MACHINE_PENDING:
        return plan_pending(observed);
    case MACHINE_ACTIVE:
        return plan_active(observed);
    case MACHINE_SHUTTING_DOWN:
        return plan_shutting_down(observed);
    case MACHINE_INACTIVE:
    case MACHINE_DISABLED:
        return plan_idle(observed);
    case MACHINE_ERROR:
        return plan_error(observed);
    case MACHINE_TERMINATED:
    case MACHINE_EMERGENCY_REMOVE:
    case MACHINE_NEW:
    case MACHINE_PHASES:
        break;
    }
    return change(MACHINE_PENDING, &MACHINE_EVENT_ACCEPTED);
}

static bool takes_emergency(enum machine_phase phase)
{
    return phase != MACHINE_TERMINATED && phase != MACHINE_DISABLED;
}

static struct machine_plan decide(const struct machine_observed *observed)
{
    if (observed->deleted_us)
        return plan_deletion(observed);
    if (!observed->has_finalizer)
        return act_of(observed, MACHINE_ACT_ADD_FINALIZER);
    if (observed->phase == MACHINE_EMERGENCY_REMOVE)
        return plan_emergency(observed);
    if (observed->phase == MACHINE_TERMINATED)
        return plan_terminated(observed);
    if (observed->kill_switch)
        return change(MACHINE_TERMINATED, &MACHINE_EVENT_KILL_SWITCH);
    if (observed->reclaimed && takes_emergency(observed->phase))
        return change(MACHINE_EMERGENCY_REMOVE, &MACHINE_EVENT_EMERGENCY);
    return plan_schedule(observed);
}

struct machine_plan machine_plan(const struct machine_observed *observed)
{
    struct machine_plan plan = decide(observed);
    const struct machine_window *window = &observed->window;

    if (observed->deleted_us || observed->times->problem || !observed->times->enabled)
        return plan;
    if (plan.phase != MACHINE_ACTIVE)
        plan.next_activation_us = window->next_open_us;
    if (window->look_us && (!plan.again_us || window->look_us < plan.again_us))
        plan.again_us = window->look_us;
    return plan;
}
