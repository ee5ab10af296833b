/* Properties that hold on every way through the plans: random walks of a Task through what may
 * happen to it. */
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "common/tests/power.h"
#include "controller/tests/task_world.h"

#define WALKS ((int)power_count(100, 300, 4000))
#define STEPS 60
/* A Task comes to rest after at most so many plans, if nothing new happens. */
#define MAX_PLANS 10
#define MAX_ATTEMPTS (STEPS * MAX_PLANS)

static const char *const CHANNELS[] = { WORLD_CHANNEL, "dom-1/chan-2" };
static const char *const CLIENTS[WORLD_CANDIDATES] = { WORLD_CLIENT, "device-2", "device-3",
                                                       "device-4" };

/* What the plans do not see of the world. */
static struct {
    uint64_t random;
    bool exists[WORLD_CANDIDATES];
    bool broker_away;
    bool conflict; /* the next status write fails */
    struct monitoring_profile profile;
    const char *started_on[MAX_ATTEMPTS]; /* by attempt */
    int starts;                           /* of this attempt by this leader */
    int64_t failures;                     /* of this run, as the walk counts them */
    int64_t runs;
} hidden;

static uint64_t random_below(uint64_t limit)
{
    hidden.random ^= hidden.random << 13;
    hidden.random ^= hidden.random >> 7;
    hidden.random ^= hidden.random << 17;
    return (hidden.random >> 11) % limit;
}

static bool maybe(void)
{
    return random_below(2);
}

static size_t index_of(const char *proplet)
{
    for (size_t i = 0; i < WORLD_CANDIDATES; i++) {
        if (str_equal(world.candidates[i].name, proplet))
            return i;
    }
    return WORLD_CANDIDATES;
}

/* The candidates that exist, in name order as ever, and the one that is assigned. */
static void observe(void)
{
    static struct candidate existing[WORLD_CANDIDATES];
    struct observed_proplet *proplet = &world.observed.proplet;
    size_t assigned = index_of(world.status->assigned_proplet);
    size_t len = 0;

    for (size_t i = 0; i < WORLD_CANDIDATES; i++) {
        if (hidden.exists[i])
            existing[len++] = world.candidates[i];
    }
    world.observed.candidates.candidates = existing;
    world.observed.candidates.len = len;

    int64_t heard_since_ms = proplet->heard_since_ms;
    *proplet = (struct observed_proplet){ 0 };
    if (assigned == WORLD_CANDIDATES || !hidden.exists[assigned])
        return;
    *proplet = (struct observed_proplet){
        .exists = true,
        .ready = world.candidates[assigned].ready,
        .reachable = true,
        .client_id = CLIENTS[assigned],
        .dialect = world.externals[assigned].dialect,
        .heard_since_ms = heard_since_ms,
    };
    ck_assert(str_copy(proplet->channel, sizeof(proplet->channel), CHANNELS[assigned % 2]));
}

static void hear_somebody(void)
{
    static const char *const ERRORS[] = { "null", "\"\"", "\"trap\"" };
    int64_t attempt = world.status->attempt + (int64_t)random_below(3) - 1;
    const char *id = message_id(world.arena, WORLD_UID, attempt < 1 ? 1 : attempt);

    if (world.observed.result_count < WORLD_RESULTS)
        world_result(CHANNELS[maybe()],
                     "{\"task_id\":\"%s\",\"results\":\"42\"%s%s%s,\"error\":%s}", id,
                     maybe() ? ",\"proplet_id\":\"" : ",\"nobody\":\"",
                     CLIENTS[random_below(WORLD_CANDIDATES)], "\"", ERRORS[random_below(3)]);
}

static void change_a_proplet(void)
{
    size_t i = random_below(WORLD_CANDIDATES);

    switch (random_below(5)) {
    case 0:
        hidden.exists[i] = !hidden.exists[i];
        return;
    case 1:
        world.proplets[i].spec.unschedulable = maybe();
        return;
    case 2:
        world.externals[i].max_tasks = (struct json_opt_int){ maybe(), 1 };
        world.candidates[i].active = maybe();
        return;
    default:
        world.candidates[i].ready = !world.candidates[i].ready;
    }
}

static void change_the_spec(void)
{
    static const char *const ASKED[] = { NULL, "once", "twice", "thrice" };

    world.observed.generation++;
    switch (random_below(6)) {
    case 2:
        world.spec->backoff_limit = (struct json_opt_int){ maybe(), (int64_t)random_below(4) };
        return;
    case 3:
        world.observed.rerun = ASKED[random_below(ARRAY_LEN(ASKED))];
        return;
    case 0:
        world.spec->active_deadline_seconds =
            (struct json_opt_int){ maybe(), (int64_t)random_below(100) };
        return;
    case 1:
        world.spec->ttl_seconds_after_finished =
            (struct json_opt_int){ maybe(), (int64_t)random_below(1000) };
        return;
    default:
        world.spec->suspend = !world.spec->suspend;
    }
}

static void change_the_broker(void)
{
    hidden.broker_away = !hidden.broker_away;
    world.observed.proplet.heard_since_ms = hidden.broker_away ? 0 : world.observed.now_ms;
}

static void change_the_leader(void)
{
    world_new_leader();
    world.observed.mqtt_configured = random_below(8) != 0;
    hidden.starts = 0;
}

static void happen(void)
{
    switch (random_below(16)) {
    case 0:
    case 1:
    case 2:
        hear_somebody();
        return;
    case 3:
    case 4:
    case 5:
        change_a_proplet();
        return;
    case 6:
    case 7:
        change_the_spec();
        return;
    case 8:
        change_the_broker();
        return;
    case 9:
        change_the_leader();
        return;
    case 10:
        world.observed.backlog_drained = true;
        return;
    case 11:
        if (world.observed.attempt.published_ms)
            world.observed.attempt.confirmed_ms = world.observed.now_ms;
        return;
    case 12:
        hidden.conflict = true;
        return;
    case 13:
        if (!random_below(8) && !world.observed.deleted_us) {
            world.observed.deleted_us = world.observed.now_us;
            world.observed.attempt.deleting_ms = world.observed.now_ms;
        }
        return;
    default:
        world_wait_ms((int64_t)random_below(40000));
    }
}

/* The rule of the contract, without its order. */
static bool may_count(const struct observed_result *result)
{
    const struct observed_proplet *proplet = &world.observed.proplet;
    bool active = world.status->phase == TASK_SCHEDULED || world.status->phase == TASK_RUNNING;

    return active && proplet->exists &&
           str_equal(result->message.task_id,
                     message_id(world.arena, WORLD_UID, world.status->attempt)) &&
           str_equal(result->channel, proplet->channel) &&
           (!result->message.proplet_id ||
            str_equal(result->message.proplet_id, proplet->client_id));
}

static void check_result(const struct task_plan *plan)
{
    size_t count = 0;

    for (size_t i = 0; i < world.observed.result_count; i++)
        count += may_count(&world.results[i]);
    if (plan->status.phase == TASK_COMPLETED && world.status->phase != TASK_COMPLETED)
        ck_assert_uint_gt(count, 0);
    if (count && !world.observed.deleted_us && !world.spec->daemon && !world.spec->suspend)
        ck_assert(plan->status.phase == TASK_COMPLETED || plan->status.phase == TASK_FAILED);
    if (world.observed.result_count)
        ck_assert_uint_eq(plan->ack_up_to, world.results[world.observed.result_count - 1].sequence);
}

static void check_start(const struct task_plan *plan)
{
    int64_t attempt = world.status->attempt;
    const char *proplet = world.status->assigned_proplet;

    ck_assert(world.observed.proplet.ready);
    ck_assert(!world.observed.deleted_us && !world.spec->suspend);
    ck_assert_int_ge(attempt, 1);
    ck_assert_int_lt(attempt, MAX_ATTEMPTS);
    ck_assert_int_eq(plan->status.attempt, attempt); /* written before it is published */
    if (hidden.started_on[attempt])
        ck_assert_str_eq(hidden.started_on[attempt], proplet); /* no attempt on two Proplets */
    hidden.started_on[attempt] = proplet;
    ck_assert_int_le(++hidden.starts, 4);
}

/* Completed, or failed for good. */
static bool is_over(void)
{
    return world.status->phase == TASK_COMPLETED ||
           (world.status->phase == TASK_FAILED &&
            condition_is(world.status->conditions, "Failed", CONDITION_TRUE));
}

/* It stays so, but for a retry at its time, and for a run that was asked for. */
static void check_after_the_end(const struct task_plan *plan)
{
    if (plan->run_end) {
        ck_assert(world.observed.rerun);
        ck_assert(!str_equal(world.observed.rerun, world.status->observed_restart));
        ck_assert_int_eq(plan->status.phase, TASK_PENDING);
    } else if (plan->status.phase == TASK_PENDING) {
        ck_assert(!is_over() && !world.spec->suspend);
        ck_assert_int_le(world.status->next_retry_us, world.observed.now_us);
        ck_assert_int_le(world.status->failures, task_backoff_limit(world.spec));
    } else {
        ck_assert_int_eq(plan->status.phase, world.status->phase);
    }
}

/* Counted by what is stored, and by nothing that the plans remember. */
static void check_counts(const struct task_plan *plan)
{
    if (plan->run_end) {
        hidden.failures = 0;
        hidden.runs++;
    } else if (plan->status.phase == TASK_FAILED && world.status->phase != TASK_FAILED) {
        hidden.failures++;
    }
    ck_assert_int_eq(plan->status.failures, hidden.failures);
    ck_assert_int_eq(plan->status.run, hidden.runs);
    ck_assert_int_le(plan->status.failures,
                     plan->status.attempt - plan->status.prior_attempts.value);
}

static void check(const struct task_plan *plan)
{
    enum task_phase before = world.status->phase;

    check_result(plan);
    if (plan->action == TASK_START)
        check_start(plan);
    ck_assert_int_eq(plan->status.attempt, world.status->attempt + (plan->action == TASK_ASSIGN));
    if (plan->action == TASK_ASSIGN) {
        ck_assert(plan->action != TASK_START && world.observed.has_finalizer &&
                  !world.spec->suspend);
        hidden.starts = 0;
    }
    if (before == TASK_COMPLETED || before == TASK_FAILED)
        check_after_the_end(plan);
    if (plan->action == TASK_DELETE)
        ck_assert(is_over());
    if (plan->action >= TASK_RELEASE)
        ck_assert(world.observed.deleted_us && world.observed.has_finalizer);
}

static bool is_waiting(const struct task_plan *plan)
{
    return !str_is_empty(plan->status.reason) &&
           condition_is(plan->status.conditions, "Scheduled", CONDITION_FALSE);
}

/* Every Task that is not at its end says why it waits, or will be woken by what must happen next.
 */
static void check_rest(const struct task_plan *plan)
{
    const struct observed_proplet *proplet = &world.observed.proplet;
    bool sign_expected = !world.spec->daemon && proplet->dialect == DIALECT_STANDARD &&
                         !world.spec->monitoring_profile;

    if (world.observed.deleted_us)
        return;
    switch (plan->status.phase) {
    case TASK_PENDING:
        ck_assert(is_waiting(plan));
        return;
    case TASK_SCHEDULED:
        ck_assert(is_waiting(plan) || !world.observed.backlog_drained || hidden.broker_away);
        return;
    case TASK_RUNNING:
        ck_assert(proplet->exists);
        ck_assert(plan->requeue_after_ms || !proplet->ready || !world.observed.backlog_drained ||
                  !sign_expected);
        return;
    case TASK_INTERRUPTED:
        ck_assert(world.spec->suspend);
        return;
    case TASK_FAILED:
        ck_assert(is_over() || is_waiting(plan));
        ck_assert(is_over() || plan->requeue_after_ms || world.spec->suspend);
        return;
    default:
        ck_assert(!str_is_empty(world_condition(plan, "Completed")));
    }
}

static bool is_rest(const struct task_plan *plan)
{
    bool acts = plan->action == TASK_ADD_FINALIZER || plan->action == TASK_START || plan->stop ||
                plan->action >= TASK_RELEASE;

    return !acts && (world.observed.deleted_us || /* no status is written any more */
                     json_equal(task_status_encode(world.arena, &plan->status),
                                task_status_encode(world.arena, world.status)));
}

/* The reconciler with a broker and an API server that may fail it. Returns true when the Task is at
 * rest. */
static bool reconcile(void)
{
    observe();
    struct task_plan plan = world_plan();
    check(&plan);
    if (is_rest(&plan) && !world.observed.result_count) {
        check_rest(&plan);
        return true;
    }

    if (hidden.broker_away && (plan.action == TASK_START || world.observed.deleted_us)) {
        hidden.starts -= plan.action == TASK_START;
        world.observed.result_count = 0;
        return true; /* woken by the reconnect */
    }
    plan.stop &= !hidden.broker_away;
    if (hidden.conflict) {
        hidden.conflict = false;
        world_act(&plan);
    } else {
        check_counts(&plan);
        world_do(&plan);
    }
    return false;
}

static void settle(void)
{
    for (int i = 0; i < MAX_PLANS; i++) {
        if (reconcile())
            return;
    }
    ck_abort_msg("still %s after %d plans", TASK_PHASE_NAMES[world.status->phase], MAX_PLANS);
}

TEST_GROUP("walks", world_set_up, world_tear_down);

TEST_TIMES(every_walk_is_legal_ends_at_rest_and_starts_no_attempt_twice, WALKS)
{
    memset(&hidden, 0, sizeof(hidden));
    hidden.random = (uint64_t)_i * 0x9e3779b97f4a7c15 + 1;
    for (size_t i = 0; i < WORLD_CANDIDATES; i++)
        hidden.exists[i] = maybe();
    world.externals[3].dialect = DIALECT_EMBEDDED;
    world.spec->daemon = !random_below(4);
    if (!random_below(4))
        world.spec->monitoring_profile = &hidden.profile;
    hidden.profile.enabled = (struct json_opt_bool){ true, false };
    world.observed.has_finalizer = maybe();
    world.observed.proplet.heard_since_ms = world.observed.now_ms;

    for (int step = 0; step < STEPS; step++) {
        settle();
        happen();
    }
}
