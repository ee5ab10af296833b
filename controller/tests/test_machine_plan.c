/* The phases of a ScheduledMachine: the table of transitions, the order of acts, and random walks. */
#include "common/base/str.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/random.h"
#include "common/tests/suite.h"
#include "controller/machine/machine_plan.h"

#define S INT64_C(1000000)
#define NOW_US (INT64_C(1700000000) * S)
#define CLOSED_US (NOW_US - 100 * S)
#define NEXT_US (NOW_US + 3600 * S)

static const struct machine_times READABLE = { .enabled = true };
static const struct machine_times DISABLED = { .enabled = false };
static const struct machine_times UNREADABLE = { .problem = "no such day", .enabled = true };

static struct machine_observed in_phase(enum machine_phase phase)
{
    return (struct machine_observed){
        .phase = phase,
        .has_finalizer = true,
        .times = &READABLE,
        .window = { .closed_us = CLOSED_US,
                    .next_us = NEXT_US,
                    .next_open_us = NEXT_US,
                    .look_us = NEXT_US },
        .grace_ms = 300000,
        .drain_ms = 60000,
        .now_us = NOW_US,
    };
}

/* --- the table --------------------------------------------------------------------------------- */

enum when { OUTSIDE, INSIDE, OFF, BAD };
enum left { NOTHING, SOME, ALL };

static const struct {
    enum machine_phase from;
    enum when when;
    enum left left;
    enum machine_phase to;
    const char *event; /* NULL: no change of phase */
    enum machine_act act;
} ROWS[] = {
    { MACHINE_NEW, INSIDE, NOTHING, MACHINE_PENDING, "Accepted", 0 },
    { MACHINE_PENDING, BAD, SOME, MACHINE_ERROR, "InvalidSchedule", 0 },
    { MACHINE_ACTIVE, BAD, ALL, MACHINE_ERROR, "InvalidSchedule", 0 },
    { MACHINE_INACTIVE, BAD, NOTHING, MACHINE_ERROR, "InvalidSchedule", 0 },
    { MACHINE_DISABLED, BAD, NOTHING, MACHINE_ERROR, "InvalidSchedule", 0 },
    { MACHINE_SHUTTING_DOWN, BAD, ALL, MACHINE_SHUTTING_DOWN, NULL, MACHINE_ACT_CORDON },
    { MACHINE_ERROR, BAD, ALL, MACHINE_ERROR, NULL, MACHINE_ACT_NONE },
    { MACHINE_ERROR, INSIDE, ALL, MACHINE_ACTIVE, "ScheduleActive", 0 },
    { MACHINE_ERROR, INSIDE, SOME, MACHINE_PENDING, "Retrying", 0 },
    { MACHINE_ERROR, OUTSIDE, SOME, MACHINE_SHUTTING_DOWN, "GracePeriodActive", 0 },
    { MACHINE_ERROR, OFF, ALL, MACHINE_SHUTTING_DOWN, "ScheduleDisabled", 0 },
    { MACHINE_ERROR, OUTSIDE, NOTHING, MACHINE_PENDING, "Retrying", 0 },
    { MACHINE_PENDING, OFF, NOTHING, MACHINE_DISABLED, "ScheduleDisabled", 0 },
    { MACHINE_PENDING, OUTSIDE, NOTHING, MACHINE_INACTIVE, "OutsideSchedule", 0 },
    { MACHINE_PENDING, OFF, SOME, MACHINE_PENDING, NULL, MACHINE_ACT_REMOVE },
    { MACHINE_PENDING, OUTSIDE, ALL, MACHINE_PENDING, NULL, MACHINE_ACT_REMOVE },
    { MACHINE_PENDING, INSIDE, NOTHING, MACHINE_PENDING, NULL, MACHINE_ACT_CREATE },
    { MACHINE_PENDING, INSIDE, SOME, MACHINE_PENDING, NULL, MACHINE_ACT_CREATE },
    { MACHINE_PENDING, INSIDE, ALL, MACHINE_ACTIVE, "MachineCreated", 0 },
    { MACHINE_ACTIVE, OUTSIDE, ALL, MACHINE_SHUTTING_DOWN, "GracePeriodActive", 0 },
    { MACHINE_ACTIVE, OFF, ALL, MACHINE_SHUTTING_DOWN, "ScheduleDisabled", 0 },
    { MACHINE_ACTIVE, INSIDE, ALL, MACHINE_ACTIVE, NULL, MACHINE_ACT_KEEP },
    { MACHINE_ACTIVE, INSIDE, SOME, MACHINE_ACTIVE, NULL, MACHINE_ACT_CREATE },
    { MACHINE_SHUTTING_DOWN, INSIDE, ALL, MACHINE_ACTIVE, "ScheduleActive", 0 },
    { MACHINE_SHUTTING_DOWN, OUTSIDE, ALL, MACHINE_SHUTTING_DOWN, NULL, MACHINE_ACT_CORDON },
    { MACHINE_SHUTTING_DOWN, OUTSIDE, NOTHING, MACHINE_INACTIVE, "MachineDeleted", 0 },
    { MACHINE_SHUTTING_DOWN, OFF, NOTHING, MACHINE_DISABLED, "MachineDeleted", 0 },
    { MACHINE_INACTIVE, OUTSIDE, NOTHING, MACHINE_INACTIVE, NULL, MACHINE_ACT_NONE },
    { MACHINE_INACTIVE, INSIDE, NOTHING, MACHINE_PENDING, "ScheduleActive", 0 },
    { MACHINE_INACTIVE, OFF, NOTHING, MACHINE_DISABLED, "ScheduleDisabled", 0 },
    { MACHINE_DISABLED, OFF, NOTHING, MACHINE_DISABLED, NULL, MACHINE_ACT_NONE },
    { MACHINE_DISABLED, OUTSIDE, NOTHING, MACHINE_PENDING, "ScheduleEnabled", 0 },
    { MACHINE_TERMINATED, INSIDE, ALL, MACHINE_TERMINATED, NULL, MACHINE_ACT_REMOVE_NOW },
    { MACHINE_TERMINATED, INSIDE, NOTHING, MACHINE_PENDING, "KillSwitchReleased", 0 },
};

static void set_when(struct machine_observed *observed, enum when when)
{
    observed->window.inside = when == INSIDE;
    if (when == OFF)
        observed->times = &DISABLED;
    if (when == BAD) {
        observed->times = &UNREADABLE;
        observed->window = (struct machine_window){ .inside = false };
    }
}

TEST_EACH(each_row_of_the_table_holds, ROWS)
{
    struct machine_observed observed = in_phase(ROWS[_i].from);

    set_when(&observed, ROWS[_i].when);
    observed.any_left = ROWS[_i].left != NOTHING;
    observed.all_exist = ROWS[_i].left == ALL;
    const struct machine_plan plan = machine_plan(&observed);

    ck_assert_int_eq(plan.phase, ROWS[_i].to);
    ck_assert_int_eq(plan.act, ROWS[_i].act);
    ck_assert_int_eq(plan.event != NULL, ROWS[_i].event != NULL);
    if (plan.event)
        ck_assert_str_eq(plan.event->reason, ROWS[_i].event);
}

/* --- kill switch and emergency ----------------------------------------------------------------- */

TEST_TIMES(kill_switch_ends_every_phase_without_a_drain, MACHINE_PHASES)
{
    struct machine_observed observed = in_phase((enum machine_phase)_i);

    observed.kill_switch = observed.any_left = observed.all_exist = observed.drains = true;
    observed.window.inside = true;
    if (_i == MACHINE_EMERGENCY_REMOVE)
        observed.times = &DISABLED;
    struct machine_plan plan = machine_plan(&observed);

    ck_assert_int_eq(plan.phase, MACHINE_TERMINATED);
    observed.phase = plan.phase;
    ck_assert_int_eq(machine_plan(&observed).act, MACHINE_ACT_REMOVE_NOW);
    observed.any_left = observed.all_exist = false;
    ck_assert_int_eq(machine_plan(&observed).act, MACHINE_ACT_NONE);
    ck_assert_int_eq(machine_plan(&observed).phase, MACHINE_TERMINATED);
}

TEST_TIMES(emergency_ends_every_phase_but_two, MACHINE_PHASES)
{
    struct machine_observed observed = in_phase((enum machine_phase)_i);

    observed.reclaimed = observed.any_left = observed.all_exist = true;
    observed.window.inside = true;
    const struct machine_plan plan = machine_plan(&observed);

    if (_i == MACHINE_TERMINATED || _i == MACHINE_DISABLED)
        ck_assert_int_ne(plan.phase, MACHINE_EMERGENCY_REMOVE);
    else
        ck_assert_int_eq(plan.phase, MACHINE_EMERGENCY_REMOVE);
}

TEST(emergency_goes_before_a_schedule_that_cannot_be_read)
{
    struct machine_observed observed = in_phase(MACHINE_ACTIVE);

    observed.times = &UNREADABLE;
    observed.reclaimed = true;
    ck_assert_int_eq(machine_plan(&observed).phase, MACHINE_EMERGENCY_REMOVE);
}

TEST(emergency_disables_the_schedule_before_it_touches_anything)
{
    struct machine_observed observed = in_phase(MACHINE_EMERGENCY_REMOVE);

    observed.window.inside = observed.any_left = observed.all_exist = observed.drains = true;
    observed.has_annotations = true;
    ck_assert_int_eq(machine_plan(&observed).act, MACHINE_ACT_DISABLE);
    observed.kill_switch = true;
    ck_assert_int_eq(machine_plan(&observed).act, MACHINE_ACT_DISABLE);

    observed.kill_switch = false;
    observed.times = &DISABLED;
    ck_assert_int_eq(machine_plan(&observed).act, MACHINE_ACT_CLEAR_PODS);
    observed.drains = false;
    ck_assert_int_eq(machine_plan(&observed).act, MACHINE_ACT_REMOVE_NOW);
    observed.any_left = observed.all_exist = false;
    ck_assert_int_eq(machine_plan(&observed).act, MACHINE_ACT_CLEAR_NODE);
    observed.has_annotations = false;
    ck_assert_int_eq(machine_plan(&observed).phase, MACHINE_DISABLED);
}

/* --- deletion ---------------------------------------------------------------------------------- */

TEST_TIMES(deletion_removes_what_is_left_in_every_phase, MACHINE_PHASES)
{
    struct machine_observed observed = in_phase((enum machine_phase)_i);

    observed.deleted_us = NOW_US - 5 * S;
    observed.any_left = observed.reclaimed = observed.kill_switch = true;
    ck_assert_int_eq(machine_plan(&observed).act, MACHINE_ACT_REMOVE);
    ck_assert_int_eq(machine_plan(&observed).phase, _i);
    observed.any_left = false;
    ck_assert_int_eq(machine_plan(&observed).act, MACHINE_ACT_RELEASE);
    observed.has_finalizer = false;
    ck_assert_int_eq(machine_plan(&observed).act, MACHINE_ACT_NONE);
}

TEST(late_cleanup_goes_on_and_gives_up_only_where_it_may)
{
    struct machine_observed observed = in_phase(MACHINE_ACTIVE);

    observed.any_left = observed.force_release = true;
    observed.deleted_us = NOW_US - 600 * S + 1;
    struct machine_plan plan = machine_plan(&observed);
    ck_assert(plan.act == MACHINE_ACT_REMOVE && !plan.cleanup_late);
    ck_assert_int_eq(plan.again_us, NOW_US + 1);

    observed.deleted_us = NOW_US - 600 * S;
    plan = machine_plan(&observed);
    ck_assert(plan.act == MACHINE_ACT_RELEASE && plan.cleanup_late);
    observed.force_release = false;
    plan = machine_plan(&observed);
    ck_assert(plan.act == MACHINE_ACT_REMOVE && plan.cleanup_late);
    ck_assert_int_eq(plan.again_us, NOW_US + 60 * S);
}

TEST(finalizer_is_added_before_anything_else)
{
    struct machine_observed observed = in_phase(MACHINE_PENDING);

    observed.has_finalizer = false;
    observed.kill_switch = observed.window.inside = true;
    ck_assert_int_eq(machine_plan(&observed).act, MACHINE_ACT_ADD_FINALIZER);
}

/* --- times ------------------------------------------------------------------------------------- */

TEST(close_by_time_counts_from_the_change_and_an_edit_from_now)
{
    struct machine_observed observed = in_phase(MACHINE_ACTIVE);

    observed.any_left = observed.all_exist = true;
    ck_assert_int_eq(machine_plan(&observed).next_cleanup_us, CLOSED_US + 300 * S);
    observed.edited = true;
    ck_assert_int_eq(machine_plan(&observed).next_cleanup_us, NOW_US + 300 * S);
    observed.edited = false;
    observed.times = &DISABLED;
    ck_assert_int_eq(machine_plan(&observed).next_cleanup_us, NOW_US + 300 * S);
}

TEST(active_machine_says_when_it_would_be_cleaned_up)
{
    struct machine_observed observed = in_phase(MACHINE_ACTIVE);

    observed.all_exist = observed.any_left = observed.window.inside = true;
    const struct machine_plan plan = machine_plan(&observed);
    ck_assert_int_eq(plan.next_cleanup_us, NEXT_US + 300 * S);
    ck_assert_int_eq(plan.next_activation_us, 0);
    ck_assert_int_eq(plan.again_us, NEXT_US);
}

TEST(drain_begins_at_the_stored_time_is_said_first_and_ends_by_its_timeout)
{
    struct machine_observed observed = in_phase(MACHINE_SHUTTING_DOWN);
    int64_t stop_us = NOW_US + 10 * S;

    observed.next_cleanup_us = stop_us;
    observed.any_left = observed.all_exist = observed.drains = true;
    struct machine_plan plan = machine_plan(&observed);
    ck_assert_int_eq(plan.act, MACHINE_ACT_CORDON);
    ck_assert_int_eq(plan.again_us, stop_us);
    ck_assert_int_eq(plan.next_cleanup_us, stop_us);

    observed.now_us = stop_us;
    ck_assert_int_eq(machine_plan(&observed).act, MACHINE_ACT_SAY_DRAINING);
    observed.draining = true;
    ck_assert_int_eq(machine_plan(&observed).act, MACHINE_ACT_DRAIN);
    observed.window.inside = true; /* too late: the removal ends first */
    ck_assert_int_eq(machine_plan(&observed).act, MACHINE_ACT_DRAIN);
    observed.now_us = stop_us + 60 * S - 1;
    ck_assert_int_eq(machine_plan(&observed).act, MACHINE_ACT_DRAIN);
    observed.now_us = stop_us + 60 * S;
    ck_assert_int_eq(machine_plan(&observed).act, MACHINE_ACT_REMOVE);
    observed.now_us = stop_us + 1 * S;
    observed.drains = false;
    ck_assert_int_eq(machine_plan(&observed).act, MACHINE_ACT_REMOVE);
}

TEST(step_of_the_clock_moves_the_drain_and_not_what_is_written)
{
    struct machine_observed observed = in_phase(MACHINE_SHUTTING_DOWN);

    observed.next_cleanup_us = NOW_US;
    observed.stepped_us = 3600 * S;
    observed.any_left = observed.drains = true;
    struct machine_plan plan = machine_plan(&observed);
    ck_assert_int_eq(plan.act, MACHINE_ACT_CORDON);
    ck_assert_int_eq(plan.again_us, NOW_US + 3600 * S);
    ck_assert_int_eq(plan.next_cleanup_us, NOW_US);
    observed.draining = true;
    observed.now_us += 3660 * S - 1;
    plan = machine_plan(&observed);
    ck_assert_int_eq(plan.act, MACHINE_ACT_DRAIN);
    ck_assert_int_eq(plan.drain_end_us, NOW_US + 3660 * S);
    observed.now_us++;
    ck_assert_int_eq(machine_plan(&observed).act, MACHINE_ACT_REMOVE);
}

TEST(lost_time_of_the_stop_gives_the_grace_once_more)
{
    struct machine_observed observed = in_phase(MACHINE_SHUTTING_DOWN);

    observed.any_left = true;
    const struct machine_plan plan = machine_plan(&observed);
    ck_assert_int_eq(plan.act, MACHINE_ACT_CORDON);
    ck_assert_int_eq(plan.next_cleanup_us, NOW_US + 300 * S);
}

TEST(refused_creation_is_tried_again_at_its_time_or_after_an_edit)
{
    struct machine_observed observed = in_phase(MACHINE_PENDING);

    observed.window.inside = observed.refused = true;
    ck_assert_int_eq(machine_plan(&observed).phase, MACHINE_ERROR);

    observed = in_phase(MACHINE_ERROR);
    observed.window.inside = true;
    observed.retry_us = NOW_US + 30 * S;
    ck_assert_int_eq(machine_plan(&observed).phase, MACHINE_ERROR);
    ck_assert_int_eq(machine_plan(&observed).again_us, NOW_US + 30 * S);
    observed.edited = true;
    ck_assert_int_eq(machine_plan(&observed).phase, MACHINE_PENDING);
    observed.edited = false;
    observed.now_us = observed.retry_us;
    ck_assert_int_eq(machine_plan(&observed).phase, MACHINE_PENDING);
}

/* --- walks -------------------------------------------------------------------------------------- */

#define WALKS 2000
#define STEPS 200

/* Objects, a Node and a user, on which acts have their effect or are lost. */
struct world {
    struct machine_observed observed;
    bool enabled;
    bool latched; /* an emergency began, and the user has not enabled the schedule since */
    int left;     /* of the three objects */
};

static bool one_in(uint64_t *seed, uint64_t n)
{
    return random_below(seed, n) == 0;
}

static void look(struct world *world)
{
    world->observed.any_left = world->left > 0;
    world->observed.all_exist = world->left == 3;
    world->observed.times = world->enabled ? &READABLE : &DISABLED;
    if (!world->left) /* the Node went with its Machine */
        world->observed.drains = world->observed.reclaimed = world->observed.has_annotations =
            false;
}

/* As users, time and devices do. */
static void disturb(struct world *world, uint64_t *seed)
{
    struct machine_observed *observed = &world->observed;

    observed->now_us += (int64_t)random_below(seed, 200) * S;
    if (one_in(seed, 8)) {
        observed->window.inside = !observed->window.inside;
        observed->window.closed_us = observed->window.inside ? 0 : observed->now_us;
    }
    if (one_in(seed, 20))
        observed->kill_switch = !observed->kill_switch;
    if (one_in(seed, 20) && !world->latched)
        world->enabled = !world->enabled;
    if (world->latched && observed->phase == MACHINE_DISABLED && one_in(seed, 4)) {
        world->enabled = true;
        world->latched = false;
    }
    if (world->left && one_in(seed, 20))
        observed->reclaimed = observed->has_annotations = true;
    if (world->left)
        observed->drains = one_in(seed, 2);
}

static void have_effect(struct world *world, const struct machine_plan *plan)
{
    struct machine_observed *observed = &world->observed;

    switch (plan->act) {
    case MACHINE_ACT_CREATE:
        world->left += world->left < 3;
        break;
    case MACHINE_ACT_REMOVE:
    case MACHINE_ACT_REMOVE_NOW:
        world->left -= world->left > 0;
        break;
    case MACHINE_ACT_DISABLE:
        world->enabled = false;
        break;
    case MACHINE_ACT_CLEAR_PODS:
        observed->drains = false;
        break;
    case MACHINE_ACT_CLEAR_NODE:
        observed->has_annotations = observed->reclaimed = false;
        break;
    case MACHINE_ACT_SAY_DRAINING:
        observed->draining = true;
        break;
    case MACHINE_ACT_ADD_FINALIZER:
        observed->has_finalizer = true;
        break;
    case MACHINE_ACT_RELEASE:
        observed->has_finalizer = false;
        break;
    case MACHINE_ACT_NONE:
    case MACHINE_ACT_KEEP:
    case MACHINE_ACT_CORDON:
    case MACHINE_ACT_DRAIN:
        break;
    }
    observed->next_cleanup_us = plan->next_cleanup_us;
    if (plan->event && plan->phase != MACHINE_SHUTTING_DOWN)
        observed->draining = false;
    observed->phase = plan->phase;
}

/* An assertion that holds costs more than a step. */
static void check(const struct world *world, const struct machine_plan *plan)
{
    const struct machine_observed *observed = &world->observed;

    if (plan->event && plan->act != MACHINE_ACT_NONE)
        ck_abort_msg("one turn changes the phase and acts");
    if (world->latched && plan->act == MACHINE_ACT_CREATE)
        ck_abort_msg("a Machine comes back after an emergency");
    if (plan->act == MACHINE_ACT_CREATE && !observed->window.inside)
        ck_abort_msg("a Machine is made outside of its window");
    if (observed->kill_switch &&
        (plan->act == MACHINE_ACT_CREATE || plan->act == MACHINE_ACT_DRAIN))
        ck_abort_msg("the kill switch waits");
}

static void step(struct world *world, uint64_t *seed)
{
    look(world);
    const struct machine_plan plan = machine_plan(&world->observed);

    check(world, &plan);
    if (one_in(seed, 3))
        return; /* the process died, or the request failed */
    if (plan.event && plan.phase == MACHINE_EMERGENCY_REMOVE)
        world->latched = true;
    have_effect(world, &plan);
}

TEST(no_walk_brings_a_machine_back_after_an_emergency_and_deletion_leaves_nothing)
{
    for (uint64_t walk = 1; walk <= WALKS; walk++) {
        uint64_t seed = walk;
        struct world world = { .observed = in_phase(MACHINE_NEW), .enabled = true };

        for (int i = 0; i < STEPS; i++) {
            disturb(&world, &seed);
            step(&world, &seed);
        }
        world.observed.deleted_us = world.observed.now_us;
        for (int i = 0; i < STEPS && world.observed.has_finalizer; i++)
            step(&world, &seed);
        ck_assert(!world.observed.has_finalizer);
        ck_assert_int_eq(world.left, 0);
    }
}
