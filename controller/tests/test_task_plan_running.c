#include "common/base/str.h"
#include "controller/tests/task_world.h"

#define CONFIRM_MS 30000

static struct monitoring_profile profile;

static void set_profile(const char *interval, struct json_opt_bool enabled,
                        struct json_opt_bool export_to_mqtt)
{
    profile = (struct monitoring_profile){
        .interval = interval,
        .enabled = enabled,
        .export_to_mqtt = export_to_mqtt,
    };
    world.spec->monitoring_profile = &profile;
}

static void as_it_is(void)
{
}

static void monitor_every_second(void)
{
    set_profile("1s", (struct json_opt_bool){ 0 }, (struct json_opt_bool){ 0 });
}

static void monitor_every_15_seconds(void)
{
    set_profile("15s", (struct json_opt_bool){ 0 }, (struct json_opt_bool){ 0 });
}

static void monitor_every_minute(void)
{
    set_profile("1m", (struct json_opt_bool){ true, true }, (struct json_opt_bool){ true, true });
}

static void do_not_monitor(void)
{
    set_profile(NULL, (struct json_opt_bool){ true, false }, (struct json_opt_bool){ 0 });
}

static void do_not_export(void)
{
    set_profile(NULL, (struct json_opt_bool){ 0 }, (struct json_opt_bool){ true, false });
}

static void make_daemon(void)
{
    world.spec->daemon = true;
}

static void make_embedded(void)
{
    world.observed.proplet.dialect = DIALECT_EMBEDDED;
}

/* What is silent for so long is started again; 0: never. */
static const struct {
    void (*set_up)(void);
    int64_t unconfirmed_ms; /* published by this process */
    int64_t inherited_ms;   /* or by an earlier one */
    int64_t confirmed_ms;   /* after a sign of it */
} TIMEOUTS[] = {
    { as_it_is, CONFIRM_MS, CONFIRM_MS, CONFIRM_MS },
    { monitor_every_second, CONFIRM_MS, CONFIRM_MS, CONFIRM_MS },
    { monitor_every_15_seconds, CONFIRM_MS, 45000, 45000 },
    { monitor_every_minute, CONFIRM_MS, 3 * 60000, 3 * 60000 },
    { do_not_monitor, 0, 0, 0 },
    { do_not_export, 0, 0, 0 },
    { make_daemon, 0, 0, 0 },
    { make_embedded, 0, 0, 0 },
};

/* The wake-up is at the end of the time, not before and not after, and then it is started again. */
static void expect_repeat_after(int64_t timeout_ms)
{
    struct task_plan plan = world_plan();

    world_expect_rest(&plan);
    ck_assert_int_eq(plan.requeue_after_ms, timeout_ms);
    if (!timeout_ms) {
        world_wait_ms(INT64_C(365) * 24 * 3600 * 1000);
        plan = world_plan();
        world_expect_rest(&plan);
        return;
    }

    world_wait_ms(timeout_ms - 1);
    plan = world_plan();
    world_expect_rest(&plan);
    ck_assert_uint_eq(plan.requeue_after_ms, 1);

    world_wait_ms(1);
    plan = world_plan();
    ck_assert(plan.action == TASK_START);
    ck_assert(!plan.stop && plan.action != TASK_ASSIGN);
    ck_assert_int_eq(plan.status.phase, TASK_RUNNING);
    ck_assert_int_eq(plan.status.attempt, 1);
    ck_assert_int_eq(plan.requeue_after_ms, timeout_ms);
}

TEST_GROUP("confirmation", world_set_up, world_tear_down);

TEST_EACH(start_without_a_sign_is_published_again, TIMEOUTS)
{
    world_running();
    world.observed.attempt.published_ms = world.observed.now_ms;
    TIMEOUTS[_i].set_up();
    expect_repeat_after(TIMEOUTS[_i].unconfirmed_ms);
}

TEST_EACH(start_of_an_earlier_leader_has_three_samples_time, TIMEOUTS)
{
    world_running();
    world_new_leader();
    world.observed.backlog_drained = true;
    TIMEOUTS[_i].set_up();
    expect_repeat_after(TIMEOUTS[_i].inherited_ms);
}

TEST(start_that_stays_without_a_sign_fails_after_three_repeats)
{
    world_running();
    for (int i = 0; i < 3; i++) {
        world_wait_ms(CONFIRM_MS);
        struct task_plan plan = world_plan();
        ck_assert(plan.action == TASK_START);
        world_do(&plan);
    }
    world_wait_ms(CONFIRM_MS);
    struct task_plan plan = world_plan();

    ck_assert(plan.action != TASK_START);
    ck_assert(plan.stop);
    ck_assert_int_eq(plan.status.phase, TASK_FAILED);
    ck_assert_str_eq(plan.status.reason, "StartNotConfirmed");
    ck_assert_int_eq(plan.answer, ANSWER_MISSED);
    ck_assert_str_eq(plan.status.error, "Proplet 'alpha' gave no sign of it after 4 starts");
    ck_assert_str_eq(plan.event->reason, "Failed");
    ck_assert_int_eq(plan.event->type, EVENT_WARNING);
}

TEST(nobody_is_silent_while_nobody_can_be_heard)
{
    world_running();
    world.observed.proplet.heard_since_ms = 0;
    world_wait_ms(100 * CONFIRM_MS);
    struct task_plan plan = world_plan();

    world_expect_rest(&plan);
    ck_assert_uint_eq(plan.requeue_after_ms, CONFIRM_MS);
}

static const struct {
    void (*set_up)(void);
    const char *started;
} STARTED[] = {
    { as_it_is, "True StartPublished: the broker has the start" },
    { monitor_every_second, "True StartPublished: the broker has the start" },
    { do_not_monitor, "Unknown StartPublished: the broker has the start" },
    { do_not_export, "Unknown StartPublished: the broker has the start" },
    { make_daemon, "Unknown StartPublished: the broker has the start" },
    { make_embedded, "Unknown StartPublished: the broker has the start" },
};

TEST_EACH(started_is_unknown_where_no_sign_of_it_will_come, STARTED)
{
    world_assigned();
    STARTED[_i].set_up();
    struct task_plan plan = world_plan();
    ck_assert_str_eq(world_condition(&plan, "Started"), STARTED[_i].started);

    world_act(&plan); /* the write failed: the next plan says the same */
    plan = world_plan();
    ck_assert_str_eq(world_condition(&plan, "Started"), STARTED[_i].started);
}

TEST_GROUP("ends", world_set_up, world_tear_down);

/* One whose heartbeats alone are lost still hears it. */
TEST(deadline_of_an_absent_device_passes_and_it_is_told)
{
    world_running();
    world.spec->active_deadline_seconds = (struct json_opt_int){ true, 0 };
    world.observed.proplet.ready = false;
    struct task_plan plan = world_plan();

    ck_assert(plan.stop);
    ck_assert_int_eq(plan.status.phase, TASK_FAILED);
}

/* It may have answered in time, while nobody led. */
TEST_TIMES(deadline_that_passed_under_nobody_waits_for_the_backlog, 3)
{
    world_running();
    world.spec->active_deadline_seconds = (struct json_opt_int){ true, 60 };
    world_wait_ms(3600000);
    world_new_leader();
    struct task_plan plan = world_plan();
    world_expect_rest(&plan);
    ck_assert_uint_eq(plan.requeue_after_ms, 0);

    if (_i == 0)
        world.observed.backlog_drained = true;
    else if (_i == 1)
        world.observed.marker_overdue = true;
    else
        world_result(WORLD_CHANNEL, "{\"task_id\":\"" WORLD_UID "\",\"error\":\"cancelled\"}");
    plan = world_plan();
    ck_assert_int_eq(plan.status.phase, TASK_FAILED);
    ck_assert_str_eq(plan.status.reason, "DeadlineExceeded");
}

TEST_TIMES(deadline_of_any_size_is_taken, 3)
{
    static const int64_t SECONDS[] = { INT64_C(1) << 33, INT64_MAX / 1000000, INT64_MAX };

    world_running();
    do_not_monitor();
    world.spec->active_deadline_seconds = (struct json_opt_int){ true, SECONDS[_i] };
    struct task_plan plan = world_plan();

    world_expect_rest(&plan);
    ck_assert_uint_eq(plan.requeue_after_ms, UINT32_MAX);
}

TEST_TIMES(earlier_of_deadline_and_confirmation_wakes_it, 2)
{
    static const struct {
        int64_t seconds;
        uint32_t wake_ms;
    } DEADLINES[] = { { 10, 9000 }, { 300, CONFIRM_MS - 1000 } };

    world_running();
    world.spec->active_deadline_seconds = (struct json_opt_int){ true, DEADLINES[_i].seconds };
    struct task_plan plan = world_plan();

    ck_assert_uint_eq(plan.requeue_after_ms, DEADLINES[_i].wake_ms);
}

TEST_TIMES(suspended_while_running_is_stopped_and_interrupted, 2)
{
    world_running();
    world_suspended();
    world.observed.proplet.ready = _i;
    struct task_plan plan = world_plan();

    ck_assert(plan.stop);
    ck_assert_int_eq(plan.status.phase, TASK_INTERRUPTED);
    ck_assert_str_eq(plan.status.reason, "Suspended");
    ck_assert_int_eq(plan.status.finished_at_us, world.observed.now_us);
    ck_assert_str_eq(world_condition(&plan, "Completed"), "False Suspended: spec.suspend is true");
    ck_assert_str_eq(plan.event->reason, "Interrupted");
}

static const struct {
    enum lost_policy policy;
    enum task_phase phase;
    const char *event;
} LOST[] = {
    { LOST_UNSET, TASK_INTERRUPTED, "Interrupted" },
    { LOST_RESCHEDULE, TASK_INTERRUPTED, "Interrupted" },
    { LOST_WAIT, TASK_INTERRUPTED, "Interrupted" },
    { LOST_FAIL, TASK_FAILED, "Failed" },
};

TEST_EACH(running_task_whose_proplet_was_deleted_does_not_wait_for_it, LOST)
{
    world_running();
    world.spec->proplet_lost_policy = LOST[_i].policy;
    world.observed.proplet = (struct observed_proplet){ 0 };
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.status.phase, LOST[_i].phase);
    ck_assert_str_eq(plan.status.reason, "PropletDeleted");
    ck_assert_str_eq(plan.event->reason, LOST[_i].event);
    ck_assert(!plan.stop && plan.action != TASK_START);
}
