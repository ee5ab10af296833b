/* Who the targets of a broadcast are, their starts, and what their answers make of it. */
#include "controller/task/plan/broadcast_plan.h"

#include <string.h>

#include "common/base/str.h"
#include "controller/tests/broadcast_world.h"

/* ---- the choice ---- */

TEST_GROUP("choice and starts", broadcast_set_up, world_tear_down);

TEST(targets_are_written_before_anything_is_sent)
{
    struct task_plan plan = broadcast_plan_all();

    ck_assert(plan.action == TASK_ASSIGN);
    ck_assert_ptr_null(plan.targets);
    ck_assert_int_eq(plan.status.phase, TASK_SCHEDULED);
    ck_assert_int_eq(plan.status.attempt, 1);
    ck_assert_ptr_null(plan.status.assigned_proplet);
    ck_assert_str_eq(broadcast_phases(&plan.status), "scheduled scheduled scheduled");
    ck_assert_str_eq(world_condition(&plan, "Scheduled"), "True Assigned: assigned to 3 Proplets");
    ck_assert_int_eq(plan.status.targets->total, 3);
    const struct task_target *list = plan.status.broadcast_results.items;
    for (size_t i = 0; i < 3; i++) {
        ck_assert_str_eq(list[i].proplet, broadcast_name_of(i));
        ck_assert_int_eq(list[i].index, (int64_t)i);
    }
}

static void no_proplets(void)
{
    broadcast_make_fleet(0);
}
static void none_ready(void)
{
    for (size_t i = 0; i < 3; i++)
        all.fleet[i].ready = false;
}
static void one_full(void)
{
    all.externals[1].max_tasks = (struct json_opt_int){ true, 1 };
    all.fleet[1].active = 1;
}
static void quorum_of_four(void)
{
    world.spec->broadcast_quorum = (struct json_opt_int){ true, 4 };
}
static void pods_only(void)
{
    world.spec->image_url = "registry.example/add";
    for (size_t i = 0; i < 3; i++)
        all.proplets[i].spec.type = PROPLET_K8S;
}

static const struct {
    void (*set_up)(void);
    const char *reason;
    const char *message;
} WAITS[] = {
    { no_proplets, "NoProplet", "the namespace has no Proplet" },
    { none_ready, "NoCandidates", "none of 3 Proplets fits: 3 are not ready" },
    { one_full, "InsufficientCapacity", "1 of the 3 Proplets that match are at maxTasks" },
    { quorum_of_four, "TooFewTargets", "3 Proplets match, broadcastQuorum is 4" },
    { pods_only, "NoCandidates", "no Proplet matches that is told over MQTT" },
};

TEST_EACH(broadcast_that_cannot_begin_says_why_it_waits, WAITS)
{
    WAITS[_i].set_up();
    struct task_plan plan = broadcast_plan_all();

    world_expect_waiting(&plan, WAITS[_i].reason, WAITS[_i].message);
    ck_assert(plan.action == TASK_AWAIT_CAPACITY);
}

TEST(not_ready_and_cordoned_proplets_are_left_out)
{
    broadcast_make_fleet(4);
    all.fleet[0].ready = false;
    all.proplets[2].spec.unschedulable = true;
    struct task_plan plan = broadcast_plan_all();
    const struct task_target *list = plan.status.broadcast_results.items;

    ck_assert_uint_eq(plan.status.broadcast_results.len, 2);
    ck_assert_str_eq(list[0].proplet, broadcast_name_of(1));
    ck_assert_str_eq(list[1].proplet, broadcast_name_of(3));
    ck_assert_int_eq(list[1].index, 1);
}

TEST(more_targets_than_a_status_can_hold_fail_it)
{
    broadcast_make_fleet(1000);
    struct task_plan plan = broadcast_plan_all();

    ck_assert_int_eq(plan.status.phase, TASK_FAILED);
    ck_assert_str_eq(plan.status.reason, "TooManyTargets");
    ck_assert_str_eq(plan.status.error, "1000 Proplets match, a broadcast has at most 500");
    ck_assert_uint_eq(plan.status.broadcast_results.len, 0);

    broadcast_make_fleet(BROADCAST_MAX_TARGETS);
    plan = broadcast_plan_all();
    ck_assert(plan.action == TASK_ASSIGN);
    ck_assert_uint_eq(plan.status.broadcast_results.len, BROADCAST_MAX_TARGETS);
}

/* They will have room, and then they are too many. */
TEST(targets_that_are_busy_count_among_too_many)
{
    const size_t half = BROADCAST_MAX_TARGETS / 2;

    broadcast_make_fleet(BROADCAST_MAX_TARGETS + 1);
    for (size_t i = 0; i <= half; i++) {
        all.externals[i].max_tasks = (struct json_opt_int){ true, 1 };
        all.fleet[i].active = 1;
    }
    struct task_plan plan = broadcast_plan_all();
    ck_assert_str_eq(plan.status.reason, "TooManyTargets");

    broadcast_make_fleet(BROADCAST_MAX_TARGETS);
    for (size_t i = 0; i <= half; i++)
        all.fleet[i].active = 1;
    plan = broadcast_plan_all();
    world_expect_waiting(&plan, "InsufficientCapacity",
                         "251 of the 500 Proplets that match are at maxTasks");
}

/* ---- starts ---- */

TEST(each_target_is_started_once_and_so_many_a_turn)
{
    size_t started = 0;

    broadcast_make_fleet(BROADCAST_MAX_TARGETS);
    broadcast_turn();
    for (int turns = 0; turns < 20; turns++) {
        struct task_plan plan = broadcast_plan_all();
        size_t now = 0;
        for (size_t i = 0; i < BROADCAST_MAX_TARGETS; i++)
            now += plan.targets[i].action == TASK_START;
        ck_assert_uint_le(now, BROADCAST_STARTS_A_TURN);
        started += now;
        ck_assert_int_eq(plan.requeue_after_ms == 1, started < BROADCAST_MAX_TARGETS);
        broadcast_write(&plan);
    }
    ck_assert_uint_eq(started, BROADCAST_MAX_TARGETS);
    for (size_t i = 0; i < BROADCAST_MAX_TARGETS; i++)
        ck_assert_int_eq(all.memory[i].publishes, 1);
}

TEST(task_stays_scheduled_as_long_as_no_start_is_out)
{
    broadcast_make_fleet(1);
    broadcast_turn();
    struct task_plan plan = broadcast_plan_refusing(0);

    ck_assert_int_eq(plan.status.phase, TASK_SCHEDULED);
    ck_assert_str_eq(broadcast_phases(&plan.status), "scheduled");
}

/* ---- answers ---- */

static const struct {
    int quorum;          /* 0: not said */
    const char *answers; /* g: good, b: bad, -: none yet */
    enum task_phase phase;
    const char *targets;
    const char *error;
} ENDS[] = {
    { 0, "ggg", TASK_COMPLETED, "completed completed completed", NULL },
    { 0, "gg-", TASK_RUNNING, "completed completed running", NULL },
    { 0, "gb-", TASK_RUNNING, "completed failed:DeviceError running", NULL },
    { 0, "gbg", TASK_FAILED, "completed failed:DeviceError completed",
      "1 of 3 Proplets failed, 2 answered, 3 answers are needed: worker-0001 (DeviceError)" },
    { 0, "bbb", TASK_FAILED, "failed:DeviceError failed:DeviceError failed:DeviceError",
      "3 of 3 Proplets failed, 0 answered, 3 answers are needed: worker-0000 (DeviceError), "
      "worker-0001 (DeviceError), worker-0002 (DeviceError)" },
    { 2, "g--", TASK_RUNNING, "completed running running", NULL },
    { 2, "g-g", TASK_COMPLETED, "completed interrupted completed", NULL },
    { 2, "gbg", TASK_COMPLETED, "completed failed:DeviceError completed", NULL },
    { 2, "ggg", TASK_COMPLETED, "completed completed completed", NULL },
    { 2, "bb-", TASK_RUNNING, "failed:DeviceError failed:DeviceError running", NULL },
    { 2, "bbg", TASK_FAILED, "failed:DeviceError failed:DeviceError completed",
      "2 of 3 Proplets failed, 1 answered, 2 answers are needed: worker-0000 (DeviceError), "
      "worker-0001 (DeviceError)" },
    { 1, "-b-", TASK_RUNNING, "running failed:DeviceError running", NULL },
    { 1, "-g-", TASK_COMPLETED, "interrupted completed interrupted", NULL },
};

/* at_once: all answers in one turn; otherwise a turn each. */
static void play(size_t i, bool at_once)
{
    if (ENDS[i].quorum)
        world.spec->broadcast_quorum = (struct json_opt_int){ true, ENDS[i].quorum };
    broadcast_dispatch(3);
    for (size_t target = 0; target < 3; target++) {
        char kind = ENDS[i].answers[target];
        if (kind == '-')
            continue;
        if (target_is_open(&broadcast_targets()[target]))
            broadcast_answer(target, kind == 'g' ? GOOD : BAD);
        if (!at_once)
            broadcast_turn();
    }
    broadcast_turn();
    ck_assert_int_eq(world.status->phase, ENDS[i].phase);
    if (ENDS[i].error)
        ck_assert_str_eq(world.status->error, ENDS[i].error);
}

TEST_GROUP("answers", broadcast_set_up, world_tear_down);

TEST_EACH(quorum_decides_what_becomes_of_it, ENDS)
{
    play((size_t)_i, true);
    ck_assert_str_eq(broadcast_phases(world.status), ENDS[_i].targets);
    const struct task_target *list = broadcast_targets();
    int64_t completed = 0, failed = 0;
    for (size_t i = 0; i < 3; i++) {
        completed += list[i].phase == TARGET_COMPLETED;
        failed += list[i].phase == TARGET_FAILED;
        ck_assert_int_eq(list[i].finished_at_us != 0, !target_is_open(&list[i]));
    }
    ck_assert_int_eq(world.status->targets->total, 3);
    ck_assert_int_eq(world.status->targets->completed, completed);
    ck_assert_int_eq(world.status->targets->failed, failed);
}

TEST_EACH(order_of_the_answers_does_not_matter, ENDS)
{
    play((size_t)_i, false);
}

TEST(those_that_are_not_waited_for_are_told_to_stop)
{
    world.spec->broadcast_quorum = (struct json_opt_int){ true, 1 };
    broadcast_dispatch(3);
    broadcast_answer(1, GOOD);
    struct task_plan plan = broadcast_plan_refusing(2);
    ck_assert_int_eq(plan.status.phase, TASK_RUNNING); /* not before all of them are told */
    ck_assert_str_eq(broadcast_phases(&plan.status), "running completed running");
    broadcast_write(&plan);

    plan = broadcast_plan_all();
    ck_assert(!plan.targets[0].stop && plan.targets[2].stop);
    ck_assert_int_eq(plan.status.phase, TASK_COMPLETED);
    ck_assert_str_eq(broadcast_phases(&plan.status), "interrupted completed interrupted");
}

static const struct {
    const char *id, *client;
    enum result_verdict verdict;
} FOREIGN[] = {
    { WORLD_UID ".1.0", "device-1", RESULT_OTHER_PROPLET },
    { WORLD_UID ".1.7", "device-0", RESULT_NOT_RUNNING },
    { WORLD_UID ".2.0", "device-0", RESULT_OTHER_ATTEMPT },
    { WORLD_UID, "device-0", RESULT_OTHER_ATTEMPT },
    { WORLD_UID ".1", "device-0", RESULT_OTHER_ATTEMPT },
    { WORLD_UID ".1.0.0", "device-0", RESULT_OTHER_ATTEMPT },
};

TEST_EACH(foreign_results_end_nothing_and_are_counted, FOREIGN)
{
    broadcast_dispatch(3);
    broadcast_say(FOREIGN[_i].id, FOREIGN[_i].client, GOOD);
    struct task_plan plan = broadcast_plan_all();

    ck_assert_str_eq(broadcast_phases(&plan.status), "running running running");
    ck_assert_uint_eq(plan.rejected[FOREIGN[_i].verdict], 1);
    ck_assert_uint_eq(plan.ack_up_to, 100);
}

TEST(second_and_late_results_change_nothing)
{
    broadcast_dispatch(3);
    broadcast_answer(0, GOOD);
    broadcast_answer(0, BAD);
    struct task_plan plan = broadcast_plan_all();
    ck_assert_str_eq(broadcast_phases(&plan.status), "completed running running");
    ck_assert_uint_eq(plan.rejected[RESULT_NOT_RUNNING], 1);
    broadcast_write(&plan);

    broadcast_answer(0, BAD);
    plan = broadcast_plan_all();
    ck_assert_str_eq(broadcast_phases(&plan.status), "completed running running");
    ck_assert_uint_eq(plan.rejected[RESULT_NOT_RUNNING], 1);
}

static const struct task_target *ended(const char *rest)
{
    broadcast_answer(0, rest);
    broadcast_turn();
    return &broadcast_targets()[0];
}

TEST(answer_is_kept_with_its_size)
{
    broadcast_dispatch(3);
    const struct task_target *target = ended("\"results\":{\"a\":1.50}");

    ck_assert_str_eq(json_text(world.arena, target->results, NULL), "{\"a\":1.50}");
    ck_assert_int_eq(target->result_bytes.value, 10);
    ck_assert(!target->omitted);
}

TEST(answers_beyond_the_limit_leave_name_and_outcome)
{
    broadcast_dispatch(200);
    world.observed.result_count = 0;
    for (size_t i = 0; i < 150; i++)
        broadcast_answer(i, GOOD);
    broadcast_turn();
    size_t kept = 0;
    for (size_t i = 0; i < 150; i++) {
        ck_assert_int_eq(broadcast_targets()[i].phase, TARGET_COMPLETED);
        ck_assert_int_eq(broadcast_targets()[i].omitted, broadcast_targets()[i].results == NULL);
        kept += broadcast_targets()[i].results != NULL;
    }
    ck_assert_uint_eq(kept, BROADCAST_KEPT_ANSWERS);

    broadcast_answer(160, GOOD); /* the cache knows sizes, no answers */
    broadcast_turn();
    ck_assert(broadcast_targets()[160].omitted);
}

TEST(bytes_of_all_answers_have_a_limit)
{
    char *text = arena_alloc(world.arena, 1, 100001);

    memset(text, 'x', 100000);
    world.observed.max_result_bytes = 200000;
    broadcast_dispatch(4);
    for (size_t i = 0; i < 3; i++)
        broadcast_answer(i, arena_printf(world.arena, "\"results\":\"%s\"", text));
    broadcast_answer(3, GOOD);
    broadcast_turn();
    ck_assert(!broadcast_targets()[0].omitted && !broadcast_targets()[1].omitted);
    ck_assert(broadcast_targets()[2].omitted && !broadcast_targets()[3].omitted);
    ck_assert_int_eq(broadcast_targets()[2].result_bytes.value, 100002);
}

TEST(refused_payload_leaves_the_outcomes)
{
    broadcast_dispatch(3);
    broadcast_answer(0, GOOD);
    struct task_plan plan = broadcast_plan_all();
    ck_assert(plan.has_payload);
    plan = world_conclude(&plan, SETBACK_UNSTORABLE, REASON_NONE, NULL);
    const struct task_target *list = plan.status.broadcast_results.items;

    ck_assert_str_eq(broadcast_phases(&plan.status), "completed running running");
    ck_assert(list[0].omitted && !list[0].results && !plan.has_payload);
    ck_assert_uint_eq(plan.ack_up_to, 100);
}
