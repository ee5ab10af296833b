#include "common/base/str.h"
#include "controller/task/plan/task_recovery_plan.h"
#include "controller/tests/task_world.h"

#define RESULT "{\"task_id\":\"" WORLD_UID "\",\"results\":\"42\",\"error\":null}"

static struct monitoring_profile profile = { .enabled = { true, false } };

static void as_it_is(void)
{
}

static void do_not_monitor(void)
{
    world.spec->monitoring_profile = &profile;
}

static void make_daemon(void)
{
    world.spec->daemon = true;
}

/* A create that came so long after the start; negative: before it. */
static void restart(int64_t after_ms)
{
    world.observed.restart = (struct observed_restart){
        .sequence = 50,
        .came_ms = world.observed.attempt.began_ms + after_ms,
    };
}

static void let_all_fit(void)
{
    world.observed.candidates.len = WORLD_CANDIDATES;
}

TEST_GROUP("restart", world_set_up, world_tear_down);

TEST(restart_ends_an_attempt_and_the_next_is_on_the_same_proplet)
{
    world_running();
    let_all_fit();
    restart(500);
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.status.phase, TASK_INTERRUPTED);
    ck_assert_str_eq(plan.status.reason, "DeviceRestarted");
    ck_assert(plan.stop && plan.action != TASK_START);
    ck_assert_int_eq(plan.answer, ANSWER_MISSED);
    ck_assert_uint_eq(plan.ack_up_to, 50);
    ck_assert_int_eq(plan.status.device_restarts.value, 1);
    ck_assert_int_eq(plan.status.failures, 0);

    world_do(&plan);
    plan = world_plan();
    ck_assert_int_eq(plan.status.phase, TASK_PENDING);
    world_do(&plan);
    world.observed.candidates.last_selected = WORLD_PROPLET; /* beta's turn, but for this */
    plan = world_plan();
    ck_assert(plan.action == TASK_ASSIGN);
    ck_assert_str_eq(plan.status.assigned_proplet, WORLD_PROPLET);
    ck_assert_int_eq(plan.status.attempt, 2);
    ck_assert_ptr_null(plan.status.reason);
}

TEST(proplet_that_does_not_fit_any_more_is_not_chosen_again)
{
    world_running();
    let_all_fit();
    restart(500);
    for (int i = 0; i < 2; i++) {
        struct task_plan plan = world_plan();
        world_do(&plan);
    }
    world.proplets[0].spec.unschedulable = true;
    struct task_plan plan = world_plan();

    ck_assert(plan.action == TASK_ASSIGN);
    ck_assert_str_ne(plan.status.assigned_proplet, WORLD_PROPLET);
}

static void become_leader(void)
{
    world_new_leader();
}

static void become_leader_and_start_again(void)
{
    world_new_leader();
    world.observed.attempt.began_ms = world.observed.attempt.published_ms = world.observed.now_ms;
}

/* Whether a create ends the attempt. */
static const struct {
    const char *what;
    void (*set_up)(void);
    void (*happen)(void);
    int64_t after_ms;
    bool stored;
    bool ends;
} RESTARTS[] = {
    { "after the start", as_it_is, as_it_is, 1, false, true },
    { "at the same time", as_it_is, as_it_is, 0, false, true },
    { "before the start", as_it_is, as_it_is, -1, false, false },
    { "held by the broker, silence will tell", as_it_is, as_it_is, 1, true, false },
    { "held by the broker, nothing else will tell", do_not_monitor, as_it_is, 1, true, true },
    { "held by the broker, daemon", make_daemon, as_it_is, 1, true, true },
    { "of an earlier leader's attempt", as_it_is, become_leader, 1, false, true },
    { "held for the next leader", as_it_is, become_leader, 1, true, true },
    { "before the next leader's repeat", as_it_is, become_leader_and_start_again, -1, false,
      false },
    { "after the next leader's repeat", as_it_is, become_leader_and_start_again, 1, false, true },
    { "daemon", make_daemon, as_it_is, 1, false, true },
    { "nothing to expect", do_not_monitor, as_it_is, 1, false, true },
};

TEST_EACH(restart_ends_what_was_started_before_it, RESTARTS)
{
    RESTARTS[_i].set_up();
    world_running();
    RESTARTS[_i].happen();
    restart(RESTARTS[_i].after_ms);
    world.observed.restart.stored = RESTARTS[_i].stored;
    struct task_plan plan = world_plan();

    ck_assert_msg((plan.status.phase == TASK_INTERRUPTED) == RESTARTS[_i].ends, "%s",
                  RESTARTS[_i].what);
    ck_assert_uint_eq(plan.ack_up_to, 50);
}

TEST_TIMES(attempt_that_is_not_out_survives_a_restart, 2)
{
    world_assigned();
    if (_i)
        world_new_leader();
    world.observed.restart = (struct observed_restart){ 50, world.observed.now_ms, false };
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.status.attempt, 1);
    ck_assert(!plan.stop);
    ck_assert_uint_eq(plan.ack_up_to, 50);
}

TEST_TIMES(result_counts_whatever_side_of_the_restart_it_is_on, 2)
{
    world_running();
    world_result(WORLD_CHANNEL, RESULT);
    restart(500);
    world.observed.restart.sequence = _i ? 50 : 200;
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.status.phase, TASK_COMPLETED);
    ck_assert_uint_eq(plan.ack_up_to, _i ? 100 : 200);
    ck_assert(!plan.stop);
}

/* It says that it has started: before the restart that is nothing, behind it that it runs again. */
TEST_TIMES(word_of_a_daemon_counts_behind_the_restart, 2)
{
    static const enum task_phase PHASES[] = { TASK_INTERRUPTED, TASK_RUNNING };

    make_daemon();
    world_running();
    world_result(WORLD_CHANNEL, RESULT);
    restart(500);
    world.observed.restart.sequence = _i ? 50 : 200;
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.status.phase, PHASES[_i]);
}

/* The running write failed, so that its word would complete that. */
TEST(word_of_a_daemon_before_the_restart_does_not_hide_it)
{
    make_daemon();
    world_assigned();
    struct task_plan plan = world_plan();
    world_act(&plan);
    world_result(WORLD_CHANNEL, RESULT);
    restart(500);
    world.observed.restart.sequence = 200;
    plan = world_plan();

    ck_assert(plan.action == TASK_ASSIGN);
    ck_assert_int_eq(plan.status.phase, TASK_SCHEDULED);
    ck_assert_int_eq(plan.status.attempt, 2);
}

TEST(restart_fails_a_task_whose_policy_says_so)
{
    world_running();
    world.spec->proplet_lost_policy = LOST_FAIL;
    restart(500);
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.status.phase, TASK_FAILED);
    ck_assert_str_eq(plan.status.reason, "DeviceRestarted");
    ck_assert_int_eq(plan.answer, ANSWER_MISSED);
}

TEST(fourth_restart_of_a_run_fails_it)
{
    world_running();
    for (int i = 1; i <= 3; i++) {
        restart(500);
        for (int j = 0; j < 4; j++) { /* interrupted, pending, scheduled, running */
            struct task_plan plan = world_plan();
            world_do(&plan);
        }
        ck_assert_int_eq(world.status->phase, TASK_RUNNING);
        ck_assert_int_eq(world.status->attempt, i + 1);
        ck_assert_int_eq(world.status->device_restarts.value, i);
        ck_assert_int_eq(world.status->failures, 0);
    }
    restart(500);
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.status.phase, TASK_FAILED);
    ck_assert_str_eq(plan.status.reason, "DeviceRestarts");
    ck_assert_str_eq(plan.status.error, "devices were started anew 4 times while it ran");
}

TEST(restart_of_a_suspended_task_is_a_suspension)
{
    world_running();
    world_suspended();
    restart(500);
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.status.phase, TASK_INTERRUPTED);
    ck_assert_str_eq(plan.status.reason, "Suspended");
    ck_assert(!plan.status.device_restarts.set);
}

static void exhaust(void)
{
    for (int i = 0; i < 3; i++) {
        world_wait_ms(30000);
        struct task_plan plan = world_plan();
        ck_assert(plan.action == TASK_START);
        world_do(&plan);
    }
    world_wait_ms(30000);
}

TEST_GROUP("silence", world_set_up, world_tear_down);

TEST(attempt_without_a_sign_is_given_up_for_another_proplet)
{
    world_running();
    let_all_fit();
    exhaust();
    ck_assert(task_needs_candidates(&world.observed));
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.status.phase, TASK_INTERRUPTED);
    ck_assert_str_eq(plan.status.reason, "StartNotConfirmed");
    ck_assert(plan.stop);
    ck_assert_int_eq(plan.answer, ANSWER_MISSED);
    ck_assert_int_eq(plan.status.failures, 0);
    for (int i = 0; i < 2; i++) {
        world_do(&plan);
        world.observed.candidates.last_selected = ""; /* alpha's turn, but for this */
        plan = world_plan();
    }
    ck_assert(plan.action == TASK_ASSIGN);
    ck_assert_str_ne(plan.status.assigned_proplet, WORLD_PROPLET);
    ck_assert_int_eq(plan.status.attempt, 2);
}

static void leave_no_other(void)
{
    world.observed.candidates.len = 1;
}

static void choose_wait(void)
{
    world.spec->proplet_lost_policy = LOST_WAIT;
}

static void choose_fail(void)
{
    world.spec->proplet_lost_policy = LOST_FAIL;
}

static void cordon_the_others(void)
{
    for (size_t i = 1; i < WORLD_CANDIDATES; i++)
        world.proplets[i].spec.unschedulable = true;
}

static void have_given_up_three_times(void)
{
    world.status->unconfirmed_attempts = (struct json_opt_int){ true, 3 };
}

static void (*const HOPELESS[])(void) = { leave_no_other, choose_wait, choose_fail,
                                          cordon_the_others, have_given_up_three_times };

TEST_EACH(attempt_without_a_sign_fails_where_nothing_else_is_left, HOPELESS)
{
    world_running();
    let_all_fit();
    exhaust();
    HOPELESS[_i]();
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.status.phase, TASK_FAILED);
    ck_assert_str_eq(plan.status.reason, "StartNotConfirmed");
    ck_assert(plan.stop);
}

TEST(start_of_an_earlier_leader_is_one_of_the_four)
{
    int starts = 0;

    world_running();
    world_new_leader();
    world.observed.backlog_drained = true;
    while (world.status->phase == TASK_RUNNING) {
        world_wait_ms(30000);
        struct task_plan plan = world_plan();
        starts += plan.action == TASK_START;
        world_do(&plan);
    }
    ck_assert_int_eq(starts, 3);
}

TEST(start_waits_until_the_device_has_settled)
{
    world_assigned();
    world.observed.may_start = false;
    world.observed.start_from_ms = world.observed.now_ms + 700;
    struct task_plan plan = world_plan();
    world_expect_rest(&plan);
    ck_assert_uint_eq(plan.requeue_after_ms, 700);

    world_wait_ms(700); /* the marker is on its way, and wakes it */
    plan = world_plan();
    world_expect_rest(&plan);
    ck_assert_uint_eq(plan.requeue_after_ms, 0);

    world.observed.may_start = true;
    plan = world_plan();
    ck_assert(plan.action == TASK_START);
}

TEST(repeat_waits_until_the_device_has_settled)
{
    world_running();
    world_wait_ms(60000);
    world.observed.may_start = false;
    world.observed.start_from_ms = world.observed.now_ms + 700;
    struct task_plan plan = world_plan();
    world_expect_rest(&plan);
    ck_assert_uint_eq(plan.requeue_after_ms, 700);

    world.observed.may_start = true;
    plan = world_plan();
    ck_assert(plan.action == TASK_START);
}

/* It is back, and may have been away when the start came. */
static void come_back(void)
{
    world_wait_ms(100000);
    world.observed.proplet.fresh_since_ms = world.observed.now_ms;
    world.observed.proplet.heard_since_ms = world.observed.now_ms;
}

static void be_confirmed(void)
{
    world.observed.attempt.confirmed_ms = world.observed.now_ms;
}

static const struct {
    void (*set_up)(void);
    int64_t repeat_ms; /* 0: never */
} BACK[] = {
    { as_it_is, 5000 },    { be_confirmed, 30000 }, { become_leader, 30000 },
    { do_not_monitor, 0 }, { make_daemon, 0 },
};

TEST_EACH(device_that_is_back_has_five_seconds_to_say_what_it_queued, BACK)
{
    world_running();
    BACK[_i].set_up();
    come_back();
    world.observed.backlog_drained = true;
    struct task_plan plan = world_plan();
    world_expect_rest(&plan);
    ck_assert_int_eq(plan.requeue_after_ms, BACK[_i].repeat_ms);

    world_wait_ms(BACK[_i].repeat_ms);
    plan = world_plan();
    ck_assert_int_eq(plan.action == TASK_START, BACK[_i].repeat_ms != 0);
    ck_assert_int_eq(plan.status.attempt, 1);
}
