#include "common/base/str.h"
#include "controller/tests/task_world.h"

static void change_nothing(void)
{
}

static void suspend(void)
{
    world.spec->suspend = true;
}

static void set_depends_on(void)
{
    static const struct dependency OTHER = { "other", OUTCOME_OPEN };

    world.observed.dependencies = (struct dependencies){ .items = &OTHER, .len = 1 };
}

static void configure_no_mqtt(void)
{
    world.observed.mqtt_configured = false;
}

static void remove_candidates(void)
{
    world.observed.candidates.len = 0;
}

static void pin(const char *name)
{
    static struct proplet_selector selector;

    selector = (struct proplet_selector){ .proplet_id = name };
    world.spec->proplet_selector = &selector;
}

static void pin_missing(void)
{
    pin("omega");
}

static void pin_offline(void)
{
    pin(WORLD_PROPLET);
    world.candidates[0].ready = false;
    world.candidates[0].absence = "Proplet 'alpha' is not ready";
}

static void fill_capacity(void)
{
    world.externals[0].max_tasks = (struct json_opt_int){ true, 2 };
    world.candidates[0].active = 2;
}

static void cordon(void)
{
    world.proplets[0].spec.unschedulable = true;
}

static void fit_none_of_three(void)
{
    world.observed.candidates.len = 3;
    world.spec->preferred_proplet_type = PREFER_EXTERNAL;
    world.proplets[0].spec.type = PROPLET_K8S;
    world.candidates[1].ready = false;
    world.candidates[2].ready = false;
}

static const struct {
    void (*set_up)(void);
    const char *reason;
    const char *message;
} WAITS[] = {
    { suspend, "Suspended", "spec.suspend is true" },
    { set_depends_on, "WaitingForDependencies", "Task 'other' has not finished" },
    { configure_no_mqtt, "MQTTNotConfigured", "the controller was started without --mqtt-address" },
    { remove_candidates, "NoProplet", "the namespace has no Proplet" },
    { pin_missing, "NoProplet", "Proplet 'omega' does not exist" },
    { pin_offline, "PropletOffline", "Proplet 'alpha' is not ready" },
    { fill_capacity, "InsufficientCapacity", "the only Proplet does not fit: it is at maxTasks" },
    { cordon, "NoCandidates", "the only Proplet does not fit: it is cordoned" },
    { fit_none_of_three, "NoCandidates",
      "none of 3 Proplets fits: 1 is not of type external, 2 are not ready" },
};

TEST_GROUP("choice", world_set_up, world_tear_down);

TEST_EACH(pending_task_says_why_it_waits, WAITS)
{
    WAITS[_i].set_up();
    struct task_plan plan = world_plan();

    world_expect_waiting(&plan, WAITS[_i].reason, WAITS[_i].message);
    ck_assert_uint_eq(plan.requeue_after_ms, 0);
    ck_assert(!plan.stop);

    world_do(&plan);
    world_wait_ms(3600000);
    plan = world_plan();
    world_expect_rest(&plan);
    ck_assert_uint_eq(plan.requeue_after_ms, 0);
}

TEST(what_kept_it_waiting_is_forgotten_at_the_assignment)
{
    suspend();
    struct task_plan plan = world_plan();
    world_do(&plan);
    world.spec->suspend = false;
    plan = world_plan();

    ck_assert_ptr_null(plan.status.reason);
    ck_assert_str_eq(world_condition(&plan, "Scheduled"),
                     "True Assigned: assigned to Proplet 'alpha'");
}

TEST(first_status_says_what_it_was_decided_on)
{
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.status.created_at_us, world.observed.created_us);
    ck_assert_int_eq(plan.status.observed_generation, world.observed.generation);
}

TEST(finalizer_comes_before_the_choice)
{
    world.observed.has_finalizer = false;
    struct task_plan plan = world_plan();

    ck_assert(plan.action == TASK_ADD_FINALIZER);
    ck_assert(plan.action != TASK_ASSIGN);
    ck_assert_int_eq(plan.status.phase, TASK_PENDING);
    world_do(&plan);
    plan = world_plan();
    ck_assert(plan.action != TASK_ADD_FINALIZER);
    ck_assert(plan.action == TASK_ASSIGN);
}

TEST(choice_is_written_before_anything_is_published)
{
    struct task_plan plan = world_plan();

    ck_assert(plan.action == TASK_ASSIGN);
    ck_assert(plan.action != TASK_START && !plan.stop);
    ck_assert_int_eq(plan.status.phase, TASK_SCHEDULED);
    ck_assert_str_eq(plan.status.assigned_proplet, WORLD_PROPLET);
    ck_assert_int_eq(plan.status.attempt, 1);
    ck_assert_int_eq(plan.status.scheduled_at_us, world.observed.now_us);
    ck_assert_str_eq(plan.event->reason, "Scheduled");
    ck_assert_int_eq(plan.event->type, EVENT_NORMAL);
}

TEST_GROUP("dispatch", world_set_up, world_tear_down);

TEST(start_is_published_to_what_was_written)
{
    world_assigned();
    world_wait_ms(5);
    struct task_plan plan = world_plan();

    ck_assert(plan.action == TASK_START);
    ck_assert(plan.action != TASK_ASSIGN);
    ck_assert_int_eq(plan.status.phase, TASK_RUNNING);
    ck_assert_str_eq(plan.status.assigned_proplet, WORLD_PROPLET);
    ck_assert_int_eq(plan.status.attempt, 1);
    ck_assert_int_eq(plan.status.started_at_us, world.observed.now_us);
    ck_assert_str_eq(world_condition(&plan, "Started"),
                     "True StartPublished: the broker has the start");
    ck_assert_str_eq(plan.event->reason, "Started");
}

TEST(running_is_written_when_the_task_has_not_ended_soon)
{
    world_assigned();
    world.observed.running_write_delay_ms = 500;
    struct task_plan plan = world_plan();

    ck_assert(plan.action == TASK_START);
    ck_assert_int_eq(plan.status.phase, TASK_SCHEDULED);
    ck_assert_uint_eq(plan.requeue_after_ms, 500);
    world_do(&plan);
    int64_t started_us = world.observed.now_us;

    world_wait_ms(200);
    plan = world_plan();
    world_expect_rest(&plan);
    ck_assert_uint_eq(plan.requeue_after_ms, 300);

    world_wait_ms(300);
    plan = world_plan();
    ck_assert(plan.action != TASK_START);
    ck_assert_int_eq(plan.status.phase, TASK_RUNNING);
    ck_assert_int_eq(plan.status.started_at_us, started_us);
    ck_assert_str_eq(plan.event->reason, "Started");
}

static void make_daemon(void)
{
    world.spec->daemon = true;
}

/* A device that keeps no ids would run the start of another leader again. */
static void make_embedded(void)
{
    world.observed.proplet.dialect = DIALECT_EMBEDDED;
}

static void change_spec(void)
{
    world.observed.generation++;
}

static void have_waited(void)
{
    world.status->reason = "BacklogUnknown";
}

/* It runs long by its nature, or there is something to write anyhow. */
static void (*const AT_ONCE[])(void) = { make_daemon, make_embedded, change_spec, have_waited };

TEST_EACH(running_is_written_at_once_where_that_saves_nothing, AT_ONCE)
{
    world_assigned();
    world.observed.running_write_delay_ms = 500;
    AT_ONCE[_i]();
    struct task_plan plan = world_plan();

    ck_assert(plan.action == TASK_START);
    ck_assert_int_eq(plan.status.phase, TASK_RUNNING);
}

TEST(the_end_that_comes_before_running_is_written_tells_the_start)
{
    world_assigned();
    world.observed.running_write_delay_ms = 500;
    struct task_plan plan = world_plan();
    world_do(&plan);
    int64_t started_us = world.observed.now_us;

    world_wait_ms(20);
    world_result(WORLD_CHANNEL, "{\"task_id\":\"%s\",\"results\":\"42\"}",
                 task_message_id(world.arena, &world.observed));
    plan = world_plan();
    ck_assert_int_eq(plan.status.phase, TASK_COMPLETED);
    ck_assert_int_eq(plan.status.started_at_us, started_us);
    ck_assert_int_eq(plan.status.finished_at_us, world.observed.now_us);
    ck_assert(plan.earlier);
    ck_assert_str_eq(plan.event->reason, "Completed");
}

static const struct {
    int64_t delay_ms, wait_ms;
} STOPPED[] = { { 0, 10 }, { 500, 10 }, { 500, 1000 } };

/* It was suspended, and resumed before that was written; the device confirms the stop. */
TEST_EACH(stop_that_comes_before_running_is_written_leaves_nothing_that_runs, STOPPED)
{
    world_assigned();
    world.observed.running_write_delay_ms = STOPPED[_i].delay_ms;
    struct task_plan plan = world_plan();
    world_act(&plan);
    world_wait_ms(20);
    world_suspended();
    plan = world_plan();
    ck_assert(plan.stop);
    world_act(&plan);

    world.spec->suspend = false;
    world.observed.generation++;
    world_wait_ms(STOPPED[_i].wait_ms);
    world_result(WORLD_CHANNEL, "{\"task_id\":\"%s\",\"results\":\"\",\"error\":\"cancelled\"}",
                 task_message_id(world.arena, &world.observed));
    plan = world_plan();
    ck_assert_int_eq(plan.action, TASK_ASSIGN);
    ck_assert_int_eq(plan.status.phase, TASK_SCHEDULED);
    ck_assert_int_eq(plan.status.attempt, 2);
    ck_assert_int_eq(plan.status.started_at_us, 0);
    ck_assert_str_eq(world_condition(&plan, "Started"), "");
}

TEST(workload_that_cannot_be_made_holds_up_no_mail_and_no_stop_of_another_attempt)
{
    static struct lost_attempt owed[1] = { { WORLD_PROPLET, WORLD_CLIENT, "earlier" } };
    static struct observed_proplet back[1];

    world_assigned();
    back[0] = world.observed.proplet;
    world.status->lost_attempts = (struct json_objects){ owed, 1 };
    world.observed.owed = back;
    world.observed.workload.selected = true;
    world.observed.workload.state.step = WORKLOAD_ABSENT;
    world_result(WORLD_CHANNEL, "{\"task_id\":\"odd\",\"results\":\"1\"}");
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.action, TASK_CREATE_WORKLOAD);
    plan = world_conclude(&plan, SETBACK_HELD_UP, REASON_NAME_TAKEN, "taken");
    ck_assert(plan.owed_due && plan.owed_due[0]);
    ck_assert_uint_ne(plan.ack_up_to, 0);
    ck_assert_uint_eq(plan.rejected[RESULT_OTHER_ATTEMPT], 1);
}

TEST(scheduled_task_waits_for_its_proplet_and_keeps_it)
{
    world_assigned();
    world.observed.proplet.ready = false;
    struct task_plan plan = world_plan();

    world_expect_waiting(&plan, "PropletOffline", "Proplet 'alpha' is not ready");
    ck_assert_str_eq(plan.status.assigned_proplet, WORLD_PROPLET);
    ck_assert_uint_eq(plan.requeue_after_ms, 0);
    world_do(&plan);

    world.observed.proplet.ready = true;
    plan = world_plan();
    ck_assert(plan.action == TASK_START);
    ck_assert_int_eq(plan.status.attempt, 1);
    ck_assert_ptr_null(plan.status.reason);
    ck_assert_str_eq(world_condition(&plan, "Scheduled"),
                     "True Assigned: assigned to Proplet 'alpha'");
}

TEST(scheduled_task_whose_proplet_was_deleted_is_chosen_for_again)
{
    world_assigned();
    world.observed.proplet.exists = false;
    struct task_plan plan = world_plan();

    world_expect_waiting(&plan, "PropletOffline", "Proplet 'alpha' was deleted");
    ck_assert_ptr_null(plan.status.assigned_proplet);
    world_do(&plan);

    world.candidates[0].name = "beta";
    plan = world_plan();
    ck_assert(plan.action == TASK_ASSIGN);
    ck_assert_str_eq(plan.status.assigned_proplet, "beta");
    ck_assert_int_eq(plan.status.attempt, 2);
}

TEST(choice_of_an_earlier_leader_waits_until_the_backlog_is_drained)
{
    world_assigned();
    world_new_leader();
    struct task_plan plan = world_plan();
    world_expect_rest(&plan);

    world.observed.backlog_drained = true;
    plan = world_plan();
    ck_assert(plan.action == TASK_START);
    ck_assert_int_eq(plan.status.attempt, 1);
}

TEST(start_is_not_published_twice_when_the_write_after_it_failed)
{
    world_assigned();
    struct task_plan plan = world_plan();
    world_act(&plan);
    plan = world_plan();

    ck_assert(plan.action != TASK_START);
    ck_assert_int_eq(plan.status.phase, TASK_RUNNING);
    ck_assert_int_eq(plan.status.started_at_us, world.observed.now_us);
}

static void publish_but_do_not_write(void)
{
    struct task_plan plan = world_plan();

    world_act(&plan);
}

static void lose_readiness(void)
{
    publish_but_do_not_write();
    world.observed.proplet.ready = false;
}

static const struct {
    void (*happened)(void);
    bool stop;
} SUSPENDS[] = {
    { change_nothing, false },
    { publish_but_do_not_write, true },
    { world_new_leader, true },
    { lose_readiness, true },
};

TEST_EACH(suspended_while_scheduled_gives_its_proplet_back, SUSPENDS)
{
    world_assigned();
    SUSPENDS[_i].happened();
    world_suspended();
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.stop, SUSPENDS[_i].stop);
    world_expect_waiting(&plan, "Suspended", "spec.suspend is true");
    ck_assert_ptr_null(plan.status.assigned_proplet);
    world_do(&plan);
    plan = world_plan();
    world_expect_rest(&plan);

    world.spec->suspend = false;
    plan = world_plan();
    ck_assert(plan.action == TASK_ASSIGN);
    ck_assert_int_eq(plan.status.attempt, 2);
}

static const struct {
    enum task_phase phase;
    const char *proplet;
    int64_t deleted_us;
    bool needs;
} CANDIDATES_NEEDED[] = {
    { TASK_PENDING, NULL, 0, true },     { TASK_SCHEDULED, NULL, 0, true },
    { TASK_SCHEDULED, "", 0, true },     { TASK_SCHEDULED, "alpha", 0, false },
    { TASK_RUNNING, "alpha", 0, false }, { TASK_COMPLETED, "alpha", 0, false },
    { TASK_PENDING, NULL, 1, false },
};

TEST_GROUP("choice", world_set_up, world_tear_down);

TEST_EACH(candidates_are_gathered_for_whoever_may_be_assigned, CANDIDATES_NEEDED)
{
    world.status->phase = CANDIDATES_NEEDED[_i].phase;
    world.status->assigned_proplet = CANDIDATES_NEEDED[_i].proplet;
    world.observed.deleted_us = CANDIDATES_NEEDED[_i].deleted_us;

    ck_assert_int_eq(task_needs_candidates(&world.observed), CANDIDATES_NEEDED[_i].needs);
}

TEST_GROUP("dispatch", world_set_up, world_tear_down);

TEST(start_that_can_never_be_sent_fails_the_task_that_never_started)
{
    world_assigned();
    struct task_plan start = world_plan();
    struct task_plan plan =
        world_conclude(&start, SETBACK_FAILED, REASON_PAYLOAD_TOO_LARGE, "1024 bytes");

    ck_assert_int_eq(plan.status.phase, TASK_FAILED);
    ck_assert_str_eq(plan.status.reason, "PayloadTooLarge");
    ck_assert_str_eq(plan.status.error, "1024 bytes");
    ck_assert_str_eq(world_condition(&plan, "Failed"), "True PayloadTooLarge: 1024 bytes");
    ck_assert_str_eq(world_condition(&plan, "Started"), "");
    ck_assert_int_eq(plan.status.started_at_us, 0);
    ck_assert_int_eq(plan.status.finished_at_us, world.observed.now_us);
    ck_assert_int_eq(plan.status.failures, 1);
    ck_assert(plan.action != TASK_START);
}
