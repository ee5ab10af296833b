/* Proplets that are Offline, cordoned; stops whose confirmation comes late. */
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "controller/task/plan/task_recovery_plan.h"
#include "controller/tests/task_world.h"

#define LOST_MS 120000
#define THRESHOLD_MS 30000
#define CANCELLED                                                                                  \
    "{\"task_id\":\"" WORLD_UID "\",\"results\":\"\",\"error\":\"Task was cancelled\"}"

/* Now; heard for long. */
static void go_offline(void)
{
    world.candidates[0].ready = false;
    world.observed.proplet.ready = false;
    world.observed.proplet.offline_since_us = world.observed.now_us;
    world.observed.proplet.absent_from_ms = world.observed.now_ms - 1;
}

static void come_back(void)
{
    world.candidates[0].ready = true;
    world.observed.proplet.ready = true;
    world.observed.proplet.offline_since_us = 0;
}

static void let_all_fit(void)
{
    world.observed.candidates.len = WORLD_CANDIDATES;
}

static void pin(void)
{
    static struct proplet_selector selector = { .proplet_id = WORLD_PROPLET };

    world.spec->proplet_selector = &selector;
}

static void choose(enum lost_policy policy)
{
    world.spec->proplet_lost_policy = policy;
    if (policy == LOST_UNSET)
        pin();
}

static const struct {
    enum lost_policy policy; /* unset: of a pinned Task */
    enum task_phase phase;
    const char *reason;
} RUNNING[] = {
    { LOST_RESCHEDULE, TASK_INTERRUPTED, "PropletLost" },
    { LOST_FAIL, TASK_FAILED, "PropletLost" },
    { LOST_WAIT, TASK_RUNNING, "PropletOffline" },
    { LOST_UNSET, TASK_RUNNING, "PropletOffline" },
};

TEST_GROUP("lost", world_set_up, world_tear_down);

TEST_EACH(running_task_is_lost_with_its_proplet, RUNNING)
{
    bool ends = RUNNING[_i].phase != TASK_RUNNING;

    world_running();
    choose(RUNNING[_i].policy);
    go_offline();
    struct task_plan plan = world_plan();
    world_expect_rest(&plan);
    ck_assert_uint_eq(plan.requeue_after_ms, LOST_MS);

    world_wait_ms(LOST_MS - 1);
    plan = world_plan();
    world_expect_rest(&plan);
    ck_assert_uint_eq(plan.requeue_after_ms, 1);

    world_wait_ms(1);
    plan = world_plan();
    ck_assert_int_eq(plan.status.phase, RUNNING[_i].phase);
    ck_assert_str_eq(plan.status.reason, RUNNING[_i].reason);
    ck_assert_int_eq(plan.stop, ends);
    ck_assert_int_eq(plan.answer, ends ? ANSWER_MISSED : ANSWER_PENDING);
}

TEST(waiting_task_says_so_once_and_goes_on_when_the_device_is_back)
{
    world_running();
    choose(LOST_WAIT);
    go_offline();
    world_wait_ms(LOST_MS);
    struct task_plan plan = world_plan();
    world_do(&plan);
    plan = world_plan();
    world_expect_rest(&plan);

    come_back();
    plan = world_plan();
    ck_assert_int_eq(plan.status.phase, TASK_RUNNING);
    ck_assert_ptr_null(plan.status.reason);
}

/* Offline since long ago, says the API; this process has just begun to listen. */
TEST(nobody_is_lost_who_had_no_time_to_be_heard)
{
    world_running();
    go_offline();
    world_wait_ms(100 * LOST_MS);
    world.observed.proplet.absent_from_ms = 0; /* the broker is away */
    struct task_plan plan = world_plan();
    world_expect_rest(&plan);

    world.observed.proplet.absent_from_ms = world.observed.now_ms + THRESHOLD_MS;
    plan = world_plan();
    world_expect_rest(&plan);
    ck_assert_uint_eq(plan.requeue_after_ms, THRESHOLD_MS);

    world_wait_ms(THRESHOLD_MS);
    plan = world_plan();
    ck_assert_int_eq(plan.status.phase, TASK_INTERRUPTED);
}

static const struct {
    bool started; /* its start may be out */
    enum lost_policy policy;
    enum task_phase phase;
    bool moves;
} SCHEDULED[] = {
    { false, LOST_RESCHEDULE, TASK_SCHEDULED, true },
    { false, LOST_FAIL, TASK_SCHEDULED, true },
    { false, LOST_WAIT, TASK_SCHEDULED, false },
    { true, LOST_RESCHEDULE, TASK_SCHEDULED, true },
    { true, LOST_FAIL, TASK_FAILED, false },
    { true, LOST_WAIT, TASK_SCHEDULED, false },
};

TEST_EACH(scheduled_task_of_a_lost_proplet_moves_in_one_write, SCHEDULED)
{
    world_assigned();
    if (SCHEDULED[_i].started)
        world_new_leader();
    world.observed.backlog_drained = true;
    choose(SCHEDULED[_i].policy);
    let_all_fit();
    go_offline();
    world_wait_ms(LOST_MS);
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.status.phase, SCHEDULED[_i].phase);
    ck_assert_int_eq(plan.action == TASK_ASSIGN, SCHEDULED[_i].moves);
    ck_assert_int_eq(plan.status.attempt, SCHEDULED[_i].moves ? 2 : 1);
    ck_assert_int_eq(str_equal(plan.status.assigned_proplet, WORLD_PROPLET), !SCHEDULED[_i].moves);
    ck_assert_int_eq(plan.stop, SCHEDULED[_i].started && SCHEDULED[_i].policy != LOST_WAIT);
    ck_assert(plan.action != TASK_START);
}

/* --- lost attempts --- */

#define NONE (-1) /* no limit, no count */

enum loss { LOSS_OFFLINE, LOSS_DELETED, LOSS_SCALED, LOSS_OFFLINE_STARTED, LOSS_DELETED_STARTED };

static const struct {
    enum loss loss;
    enum lost_policy policy;
    int64_t limit, count, new_count;
    bool fails;
} LOSSES[] = {
    { LOSS_OFFLINE, LOST_RESCHEDULE, NONE, NONE, 1, false },
    { LOSS_OFFLINE, LOST_RESCHEDULE, NONE, 7, 8, false },
    { LOSS_OFFLINE, LOST_RESCHEDULE, 2, 1, 2, false },
    { LOSS_OFFLINE, LOST_RESCHEDULE, 2, 2, 2, true },
    { LOSS_OFFLINE, LOST_RESCHEDULE, 0, NONE, NONE, true },
    { LOSS_OFFLINE, LOST_FAIL, 2, NONE, NONE, true },
    { LOSS_OFFLINE, LOST_WAIT, 0, NONE, NONE, false },
    { LOSS_DELETED, LOST_RESCHEDULE, 2, 1, 2, false },
    { LOSS_DELETED, LOST_RESCHEDULE, 2, 2, 2, true },
    { LOSS_SCALED, LOST_RESCHEDULE, 2, 2, 2, true },
    { LOSS_OFFLINE_STARTED, LOST_RESCHEDULE, 2, 1, 2, false },
    { LOSS_OFFLINE_STARTED, LOST_RESCHEDULE, 2, 2, 2, true },
    { LOSS_DELETED_STARTED, LOST_RESCHEDULE, 2, 1, 2, false },
    { LOSS_DELETED_STARTED, LOST_RESCHEDULE, 2, 2, 2, true },
};

static void lose(enum loss loss)
{
    if (loss == LOSS_OFFLINE_STARTED || loss == LOSS_DELETED_STARTED) {
        world_assigned();
        world_new_leader();
        world.observed.backlog_drained = true;
        let_all_fit();
    } else {
        world_running();
    }
    if (loss == LOSS_OFFLINE || loss == LOSS_OFFLINE_STARTED) {
        go_offline();
        world_wait_ms(LOST_MS);
    } else {
        world.observed.proplet.exists = false;
        world.observed.proplet.withdrawn = loss == LOSS_SCALED;
    }
}

static struct json_opt_int opt(int64_t value)
{
    return (struct json_opt_int){ .set = value != NONE, .value = value == NONE ? 0 : value };
}

TEST_EACH(a_lost_attempt_counts_and_the_limit_is_final, LOSSES)
{
    world.spec->lost_attempts_limit = opt(LOSSES[_i].limit);
    world.spec->backoff_limit = opt(5); /* it is not asked */
    world.status->lost_attempt_count = opt(LOSSES[_i].count);
    lose(LOSSES[_i].loss);
    choose(LOSSES[_i].policy);
    struct task_plan plan = world_plan();
    const struct json_opt_int *count = &plan.status.lost_attempt_count;

    ck_assert_int_eq(count->set ? count->value : NONE, LOSSES[_i].new_count);
    ck_assert_int_eq(plan.status.phase == TASK_FAILED, LOSSES[_i].fails);
    if (!LOSSES[_i].fails || LOSSES[_i].policy != LOST_RESCHEDULE)
        return;
    ck_assert_str_eq(plan.status.reason, "LostAttemptsExceeded");
    ck_assert_int_eq(plan.status.failures, 0);
    ck_assert_int_eq(plan.status.next_retry_us, 0);
    ck_assert(condition_is(plan.status.conditions, "Failed", CONDITION_TRUE));
}

/* Neither a start that did not go out nor one that the device began again is lost. */
TEST(moves_that_lose_nothing_do_not_count)
{
    world_assigned();
    let_all_fit();
    go_offline();
    world_wait_ms(LOST_MS);
    struct task_plan plan = world_plan();
    ck_assert_int_eq(plan.action, TASK_ASSIGN);
    ck_assert(!plan.status.lost_attempt_count.set);
}

TEST(a_fleet_that_is_away_together_loses_nothing)
{
    world_running();
    go_offline();
    world_wait_ms(LOST_MS);
    world.observed.proplet.held_until_ms = world.observed.now_ms + 1000;
    struct task_plan plan = world_plan();
    ck_assert_int_eq(plan.status.phase, TASK_RUNNING);
    ck_assert(!plan.status.lost_attempt_count.set);
}

TEST_GROUP("before and behind the start", world_set_up, world_tear_down);

static const struct {
    bool closed, others_fit;
} SHUT[] = { { false, false }, { false, true }, { true, false }, { true, true } };

TEST_EACH(cordon_or_close_before_the_start_moves_the_task, SHUT)
{
    bool closed = SHUT[_i].closed;

    world_assigned();
    world.proplets[0].spec.unschedulable = world.observed.proplet.cordoned = !closed;
    world.candidates[0].closed = world.observed.proplet.closed = closed;
    if (SHUT[_i].others_fit)
        let_all_fit();
    ck_assert(task_needs_candidates(&world.observed));
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.status.phase, TASK_SCHEDULED);
    ck_assert(plan.action != TASK_START && !plan.stop);
    ck_assert_int_eq(plan.action == TASK_ASSIGN, SHUT[_i].others_fit);
    if (SHUT[_i].others_fit) {
        ck_assert_str_ne(plan.status.assigned_proplet, WORLD_PROPLET);
        ck_assert_int_eq(plan.status.attempt, 2);
    } else {
        ck_assert_ptr_null(plan.status.assigned_proplet);
        ck_assert_str_eq(world_condition(&plan, "Scheduled"),
                         closed
                             ? "False NoCandidates: the only Proplet does not fit: it is closed"
                             : "False NoCandidates: the only Proplet does not fit: it is cordoned");
    }
}

static void start_without_the_write(void)
{
    struct task_plan plan = world_plan();

    world_act(&plan);
}

static void start_without_acknowledgement(void)
{
    world.observed.attempt.began_ms = world.observed.now_ms;
    world.observed.attempt.publishes = 1;
}

/* Another one may run it: the same start to the same Proplet is what is safe. */
TEST_TIMES(cordon_behind_the_start_changes_nothing, 3)
{
    static void (*const STARTED[])(void) = { start_without_the_write, start_without_acknowledgement,
                                             world_new_leader };

    world_assigned();
    STARTED[_i]();
    world.proplets[0].spec.unschedulable = true;
    world.observed.proplet.cordoned = true;
    world.observed.backlog_drained = true;
    let_all_fit();
    struct task_plan plan = world_plan();

    ck_assert(plan.action != TASK_ASSIGN);
    ck_assert_str_eq(plan.status.assigned_proplet, WORLD_PROPLET);
    ck_assert_int_eq(plan.status.phase, TASK_RUNNING);
}

TEST(what_nothing_confirms_waits_for_the_backlog)
{
    world_assigned();
    world.spec->daemon = true;
    world.observed.backlog_drained = false;
    struct task_plan plan = world_plan();
    world_expect_rest(&plan);

    world.spec->daemon = false;
    plan = world_plan();
    ck_assert(plan.action == TASK_START);
}

static void suspend(void)
{
    world_suspended();
}

static void miss_the_deadline(void)
{
    world.spec->active_deadline_seconds = (struct json_opt_int){ true, 1 };
}

static void lose_the_proplet(void)
{
    go_offline();
    world_wait_ms(LOST_MS);
}

static void be_told_to_stop(void)
{
    world.observed.attempt.stop_sent_ms = world.observed.now_ms;
}

static const struct {
    void (*stop)(void);
    enum task_phase phase;
    const char *reason;
} STOPS[] = {
    { suspend, TASK_INTERRUPTED, "Suspended" },
    { miss_the_deadline, TASK_FAILED, "DeadlineExceeded" },
    { lose_the_proplet, TASK_INTERRUPTED, "PropletLost" },
    { be_told_to_stop, TASK_INTERRUPTED, "Stopped" }, /* resumed before the write succeeded */
};

TEST_GROUP("stopped", world_set_up, world_tear_down);

/* The stop is out, the write behind it failed, and perhaps the process with it. */
TEST_EACH(word_on_a_stop_is_not_taken_for_a_failure, STOPS)
{
    world_running();
    STOPS[_i].stop();
    world_result(WORLD_CHANNEL, CANCELLED);
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.status.phase, STOPS[_i].phase);
    ck_assert_str_eq(plan.status.reason, STOPS[_i].reason);
    ck_assert(!plan.stop && plan.action != TASK_START);
    ck_assert_uint_eq(plan.ack_up_to, 100);
}

TEST_EACH(result_that_a_stop_crossed_counts, STOPS)
{
    world_running();
    STOPS[_i].stop();
    world_result(WORLD_CHANNEL, "{\"task_id\":\"" WORLD_UID "\",\"results\":\"42\"}");
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.status.phase, TASK_COMPLETED);
}

TEST(stop_of_a_start_whose_write_failed_begins_anew)
{
    world_assigned();
    start_without_the_write();
    be_told_to_stop();
    world.observed.attempt.published_ms = 0;
    world.observed.may_start = false;
    world_result(WORLD_CHANNEL, CANCELLED);
    struct task_plan plan = world_plan();

    ck_assert(plan.action == TASK_ASSIGN);
    ck_assert_int_eq(plan.status.phase, TASK_SCHEDULED);
    ck_assert_int_eq(plan.status.attempt, 2);
}

/* ---- most of the fleet went at once ---- */

#define HOUR_MS 3600000

static void hold(void)
{
    world.observed.proplet.held_until_ms = world.observed.now_ms + HOUR_MS;
}

TEST_GROUP("brake", world_set_up, world_tear_down);

TEST_EACH(nobody_is_lost_while_the_brake_holds, RUNNING)
{
    world_running();
    choose(RUNNING[_i].policy);
    go_offline();
    hold();
    struct task_plan plan = world_plan();
    world_expect_rest(&plan);
    ck_assert_uint_eq(plan.requeue_after_ms, LOST_MS);

    world_wait_ms(LOST_MS);
    plan = world_plan();
    ck_assert_int_eq(plan.status.phase, TASK_RUNNING);
    ck_assert_str_eq(plan.status.reason, "FleetOffline");
    ck_assert(!plan.stop);
    ck_assert_uint_eq(plan.requeue_after_ms, HOUR_MS - LOST_MS);
    world_do(&plan);
    plan = world_plan();
    world_expect_rest(&plan);

    world.observed.proplet.held_until_ms = 0;
    plan = world_plan();
    ck_assert_int_eq(plan.status.phase, RUNNING[_i].phase);
    ck_assert_str_eq(plan.status.reason, RUNNING[_i].reason);
}

TEST(held_task_goes_on_when_its_device_is_back)
{
    world_running();
    go_offline();
    hold();
    world_wait_ms(LOST_MS);
    struct task_plan plan = world_plan();
    world_do(&plan);

    come_back();
    plan = world_plan();
    ck_assert_int_eq(plan.status.phase, TASK_RUNNING);
    ck_assert_ptr_null(plan.status.reason);
}

TEST(scheduled_task_stays_while_the_brake_holds)
{
    world_assigned();
    let_all_fit();
    go_offline();
    hold();
    world_wait_ms(LOST_MS);
    struct task_plan plan = world_plan();
    ck_assert_str_eq(plan.status.assigned_proplet, WORLD_PROPLET);
    ck_assert_str_eq(plan.status.reason, "FleetOffline");
    ck_assert_uint_eq(plan.requeue_after_ms, HOUR_MS - LOST_MS);

    world.observed.proplet.held_until_ms = 0;
    plan = world_plan();
    ck_assert(plan.action == TASK_ASSIGN);
    ck_assert_str_ne(plan.status.assigned_proplet, WORLD_PROPLET);
}
