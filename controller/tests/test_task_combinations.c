/* What may be combined in a plan: the table of actions and what comes with them, held against plans of many observed
 * states. Plans of all other tests are held against it too (task_world.c). */
#include "common/tests/parsed.h"
#include "common/tests/power.h"
#include "controller/task/plan/broadcast_plan.h"
#include "controller/task/plan/task_run_plan.h"
#include "controller/tests/task_world.h"

#define SEEDS 40
#define STATES ((int)power_count(800, 800, 8000)) /* of each seed */
#define TARGETS 3

/* Across all seeds, which the table in turn has to have: what no state leads to is no part of it. */
static unsigned seen[TASK_ACTIONS];
static uint64_t state;

static uint64_t below(uint64_t limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 11) % limit;
}

static bool maybe(void)
{
    return below(2);
}

static bool rarely(void)
{
    return !below(8);
}

static int64_t some_ms(void)
{
    static const int64_t AGES[] = { 0, 1, 100, 5000, 40000, 100000, 400000 };
    int64_t age = AGES[below(ARRAY_LEN(AGES))];

    return age ? world.observed.now_ms - age : 0;
}

static int64_t some_us(void)
{
    int64_t ms = some_ms();

    return ms ? world.observed.now_us - (world.observed.now_ms - ms) * 1000 : 0;
}

static struct observed_proplet some_proplet(void)
{
    struct observed_proplet proplet = {
        .type = PROPLET_EXTERNAL,
        .exists = !rarely(),
        .ready = maybe(),
        .reachable = !rarely(),
        .client_id = WORLD_CLIENT,
        .channel = WORLD_CHANNEL,
        .dialect = rarely() ? DIALECT_EMBEDDED : DIALECT_STANDARD,
        .results_heard = !rarely(),
        .heard_since_ms = some_ms(),
        .cordoned = rarely(),
        .closed = rarely(),
        .short_time = rarely(),
        .offline_since_us = maybe() ? some_us() : 0,
        .absent_from_ms = some_ms(),
        .fresh_since_ms = some_ms(),
        .held_until_ms = rarely() ? world.observed.now_ms + 5 : 0,
    };

    proplet.withdrawn = !proplet.exists && maybe();
    return proplet;
}

static struct attempt some_attempt(void)
{
    struct attempt attempt = {
        .number = 1,
        .chosen_here = maybe(),
        .first_seen_ms = some_ms(),
        .began_ms = some_ms(),
        .publishes = (int64_t)below(5),
        .confirmed_ms = maybe() ? some_ms() : 0,
        .stop_sent_ms = maybe() ? some_ms() : 0,
        .ended = rarely(),
        .deleting_ms = some_ms(),
        .ordered_ms = rarely() ? some_ms() : 0,
    };

    if (attempt.began_ms && maybe())
        attempt.published_ms = attempt.began_ms;
    return attempt;
}

static void some_messages(struct task_observed *observed)
{
    struct observed_restart restart = { .sequence = 200, .came_ms = some_ms(), .stored = rarely() };

    if (rarely() && restart.came_ms)
        observed->restart = restart;
    observed->result_count = below(3);
    for (size_t i = 0; i < observed->result_count; i++)
        world.results[i] = (struct observed_result){
            .sequence = 100 + i,
            .channel = WORLD_CHANNEL,
            .message = { .task_id = rarely() ? "odd" : task_message_id(world.arena, observed),
                         .error = maybe() ? "trap" : NULL,
                         .results = parsed(world.arena, rarely() ? "\"long\"" : "4") },
        };
}

static const cJSON *some_conditions(enum task_phase phase)
{
    const char *final = phase == TASK_FAILED && maybe() ? "False" : "True";

    return parsed(world.arena,
                  arena_printf(world.arena,
                               "[{\"type\":\"Scheduled\",\"status\":\"True\",\"reason\":\"%s\"},"
                               "{\"type\":\"Failed\",\"status\":\"%s\",\"reason\":\"BackingOff\"}]",
                               maybe() ? "Assigned" : "Restarted", final));
}

static void some_status(void)
{
    struct task_status *status = world.status;
    enum reason reason = (enum reason)below(REASON_OTHER);

    *status = (struct task_status){
        .phase = (enum task_phase)below(TASK_PHASES),
        .attempt = 1,
        .prior_attempts = { true, maybe() },
        .observed_generation = maybe() ? 3 : 2,
        .reason = maybe() ? reason_text(reason) : NULL,
        .failures = (int64_t)below(3),
        .device_restarts = { true, (int64_t)below(5) },
        .unconfirmed_attempts = { true, (int64_t)below(4) },
        .lost_attempt_count = { true, (int64_t)below(3) },
        .created_at_us = world.observed.created_us,
        .scheduled_at_us = some_us(),
        .started_at_us = some_us(),
        .finished_at_us = some_us(),
        .next_retry_us = some_us() + 50000000,
        .last_run_us = some_us(),
        .next_run_us = some_us(),
        .run = 1,
    };
    if (status->phase == TASK_RUNNING && !status->started_at_us)
        status->started_at_us = world.observed.now_us - 1000;
    status->conditions = some_conditions(status->phase);
    if (status->phase != TASK_PENDING && !rarely()) {
        status->assigned_proplet = WORLD_PROPLET;
        status->assigned_client_id = maybe() ? WORLD_CLIENT : NULL;
    }
}

static void some_owed(void)
{
    static struct lost_attempt owed[1];
    static struct observed_proplet proplets[1];

    if (!rarely())
        return;
    owed[0] = (struct lost_attempt){ WORLD_PROPLET, WORLD_CLIENT, "earlier" };
    proplets[0] = some_proplet();
    world.status->lost_attempts = (struct json_objects){ owed, 1 };
    world.observed.owed = proplets;
}

static void some_spec(void)
{
    static struct monitoring_profile quiet = { .enabled = { true, false } };
    static const char *const ASKED[] = { NULL, NULL, "once" };
    struct task_spec *spec = world.spec;
    struct error err = { 0 };

    spec->daemon = rarely();
    spec->suspend = rarely();
    spec->monitoring_profile = maybe() ? NULL : &quiet;
    spec->active_deadline_seconds = (struct json_opt_int){ rarely(), 50 };
    spec->ttl_seconds_after_finished = (struct json_opt_int){ maybe(), (int64_t)below(200) };
    spec->backoff_limit = (struct json_opt_int){ maybe(), (int64_t)below(4) };
    spec->proplet_lost_policy = (enum lost_policy)below(LOST_FAIL + 1);
    spec->concurrency_policy = (enum concurrency_policy)below(CONCURRENCY_REPLACE + 1);
    spec->starting_deadline_seconds = (struct json_opt_int){ rarely(), 60 };
    spec->run_if = (enum run_if)below(RUN_IF_FAILURE + 1);
    spec->is_recurring = maybe();
    if (!rarely())
        return;
    spec->schedule = "30 * * * *";
    ck_assert_int_eq(cron_parse(spec->schedule, &world.observed.schedule.timetable.cron, &err), 0);
    world.observed.schedule.problem = rarely() ? REASON_UNKNOWN_ZONE : REASON_NONE;
    world.observed.schedule.message = "none";
    world.observed.rerun = ASKED[below(ARRAY_LEN(ASKED))];
}

static void some_surroundings(void)
{
    static struct dependency needs[1] = { { "other", OUTCOME_MISSING } };
    struct task_observed *observed = &world.observed;

    observed->has_finalizer = !rarely();
    observed->deleted_us = rarely() ? observed->now_us - 5000000 : 0;
    observed->order = rarely() ? (enum task_order)below(TASK_ORDER_STOP + 1) : TASK_ORDER_NONE;
    observed->rerun = rarely() ? "again" : NULL;
    observed->mqtt_configured = !rarely();
    observed->backlog_drained = !rarely();
    observed->answer_awaited = rarely();
    observed->may_start = !rarely();
    observed->marker_overdue = rarely();
    observed->running_write_delay_ms = maybe() ? 500 : 0;
    observed->candidates.len = below(3);
    world.candidates[0].ready = maybe();
    if (rarely()) {
        needs[0].outcome = (enum task_outcome)below(OUTCOME_SKIPPED + 1);
        observed->dependencies = (struct dependencies){ needs, 1, NULL };
    }
    if (!rarely())
        return;
    observed->workload.selected = true;
    observed->workload.state = (struct task_workload_state){
        .step = (enum task_workload_step)below(WORKLOAD_DISRUPTED + 1),
        .reason = maybe() ? REASON_OTHER : REASON_POD_DELETED,
        .word = "Evicted",
        .message = "gone",
        .stuck = maybe(),
    };
}

/* The Task as a broadcast: its targets, and how each of them is observed. */
static void some_targets(void)
{
    static struct task_target targets[TARGETS];
    static struct task_observed parts[TARGETS];

    world.spec->broadcast = true;
    for (size_t i = 0; i < TARGETS; i++) {
        enum target_phase phase = (enum target_phase)below(TARGET_INTERRUPTED + 1);
        targets[i] = (struct task_target){ .proplet = WORLD_PROPLET,
                                           .phase = phase,
                                           .index = (int64_t)i,
                                           .started_at_us = some_us() };
        parts[i] = world.observed;
        parts[i].target_id = message_id_of_target(world.arena, WORLD_UID, 1, (int64_t)i);
        parts[i].task.status = (struct task_status){
            .phase = phase == TARGET_RUNNING ? TASK_RUNNING : TASK_SCHEDULED,
            .assigned_proplet = WORLD_PROPLET,
            .attempt = 1,
        };
        parts[i].proplet = some_proplet();
        parts[i].attempt = some_attempt();
        parts[i].result_count = 0;
    }
    world.status->assigned_proplet = NULL;
    world.status->broadcast_results = (struct json_objects){ targets, TARGETS };
    world.observed.parts = parts;
}

static void check(const struct task_plan *plan)
{
    unsigned has = task_plan_companions(&world.observed, plan);

    seen[plan->action] |= has;
    ck_assert_int_eq(plan->action == TASK_TELL_TARGETS, plan->targets != NULL);
    ck_assert_int_eq(plan->action == TASK_AWAIT_CAPACITY, plan->refusal.reason != REASON_NONE);
    ck_assert_int_eq(plan->action == TASK_ASSIGN, plan->status.attempt != world.status->attempt);
    if (plan->action == TASK_RELEASE_IF_STOPPED)
        ck_assert(plan->stop);
    if (world.observed.deleted_us)
        ck_assert(plan->action >= TASK_TELL_TARGETS);
    else
        ck_assert(plan->action <= TASK_TELL_TARGETS);
}

/* It is acted on, and not all of that succeeds. */
static void conclude(const struct task_plan *plan)
{
    for (size_t i = 0; plan->targets && i < TARGETS; i++) {
        struct target_action *target = &plan->targets[i];
        target->undone |= (target->action == TASK_START || target->stop) && maybe();
        if (target->action == TASK_START && !target->undone && maybe())
            target->unsendable = REASON_PAYLOAD_INVALID;
        target->message = "no";
    }
    (void)world_conclude(plan, SETBACK_NONE, REASON_NONE, NULL);
    if (plan->action == TASK_START || plan->action == TASK_CREATE_WORKLOAD)
        (void)world_conclude(plan, maybe() ? SETBACK_FAILED : SETBACK_HELD_UP, REASON_NAME_TAKEN,
                             "no");
    if (plan->has_payload)
        (void)world_conclude(plan, SETBACK_UNSTORABLE, REASON_NONE, NULL);
}

static void enumerate(uint64_t seed)
{
    for (int i = 0; i < STATES; i++) {
        world_tear_down();
        world_set_up();
        state = (seed * 1000003 + (uint64_t)i + 1) * 0x9e3779b97f4a7c15;
        some_spec();
        some_status();
        some_owed();
        some_surroundings();
        world.observed.proplet = some_proplet();
        world.observed.attempt = some_attempt();
        some_messages(&world.observed);
        if (rarely())
            some_targets();
        struct task_plan plan = world_plan();
        check(&plan);
        conclude(&plan);
    }
}

TEST_GROUP("states", world_set_up, world_tear_down);

TEST(plan_has_what_its_action_may_have_and_nothing_more)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        enumerate(seed);
    for (int action = 0; action < TASK_ACTIONS; action++)
        ck_assert_msg(seen[action] == TASK_PLAN_MAY_HAVE[action],
                      "action %d may have %#x, states led to %#x", action,
                      TASK_PLAN_MAY_HAVE[action], seen[action]);
}
