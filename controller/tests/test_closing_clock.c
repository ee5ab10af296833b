/* The wall clock makes a step while a Task uses the grace period of its Proplet. */
#include "common/api/kinds.h"
#include "common/base/str.h"
#include "controller/tests/fake_bridge.h"
#include "controller/tests/opening_stage.h"
#include "controller/tests/staged.h"

#define DISABLED                                                                                   \
    ",\"availability\":{\"gracefulShutdownTimeout\":\"10m\",\"schedule\":{\"enabled\":false,"      \
    "\"daysOfWeek\":[\"mon-sun\"],\"hoursOfDay\":[\"0-23\"]}}"

static void set_up(void)
{
    outside_reset();
    stage_set_up(outside_roundtrip, outside_between);
    stage_run();
}

TEST_GROUP("closing_clock", set_up, stage_tear_down);

static const int64_t STEPS_MS[] = { -3600000, 3600000 };

TEST_EACH(step_of_the_clock_neither_ends_nor_prolongs_a_grace_period, STEPS_MS)
{
    const struct kube_name name = staged_name("one");
    const struct run *run = &outside.runs[0];

    stage_put_proplet("beta", PROPLET("device-2", ",\"killSwitch\":true"));
    stage_put_task("{\"name\":\"one\",\"file\":\"AGFzbQEAAAA=\"}");
    stage_run();
    ck_assert_uint_eq(outside.run_count, 1);
    stage_put_proplet("alpha", PROPLET("device-1", DISABLED));
    stage_run();
    opening_pass_minutes(2);
    fake_clock_step(&stage.clock, STEPS_MS[_i]);
    workqueue_add(stage.task.task_queue, &name); /* before its Proplet */
    opening_pass_minutes(7);
    ck_assert(run->running);
    ck_assert_str_eq(stage_task_string("phase"), "running");
    opening_pass_minutes(2);
    ck_assert(!run->running);
    ck_assert_str_eq(stage_task_string("phase"), "pending");
}

#define OPEN_UNTIL(time, more)                                                                     \
    more ",\"availability\":{\"gracefulShutdownTimeout\":\"10m\",\"schedule\":{\"windows\":["      \
         "{\"days\":[\"mon\"],\"from\":\"01:00\",\"until\":\"02:00\"}]},\"override\":{"            \
         "\"state\":\"Open\",\"until\":\"2026-01-01T00:" time ":00Z\"}}"

/* It closed at 00:05. By the clock that was set back to 00:06, and to which the edit looks, that is less time ago. */
TEST(edit_after_a_step_of_the_clock_prolongs_no_grace_period)
{
    const struct run *run = &outside.runs[0];

    stage_put_proplet("beta", PROPLET("device-2", ",\"killSwitch\":true"));
    stage_put_proplet("alpha", PROPLET("device-1", OPEN_UNTIL("05", "")));
    stage_put_task(
        "{\"name\":\"one\",\"file\":\"AGFzbQEAAAA=\",\"monitoringProfile\":{\"enabled\":false}}");
    opening_pass_minutes(9);
    fake_clock_step(&stage.clock, -180000);
    opening_pass_minutes(1);
    stage_put_proplet("alpha",
                      PROPLET("device-1", OPEN_UNTIL("05", ",\"external\":{\"maxTasks\":3}")));
    opening_pass_minutes(4);
    ck_assert(run->running);
    opening_pass_minutes(2);
    ck_assert(!run->running);
    ck_assert_str_eq(stage_task_string("phase"), "pending");
}
