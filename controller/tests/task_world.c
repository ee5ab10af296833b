#include "controller/tests/task_world.h"

#include <stdarg.h>

#include "common/base/str.h"
#include "common/kube/conditions.h"

#define NOW_MS 1000000
#define NOW_US INT64_C(1795255200000000)
#define CREATED_US (NOW_US - 60 * INT64_C(1000000))

struct task_world world;

static const char *const NAMES[WORLD_CANDIDATES] = { WORLD_PROPLET, "beta", "gamma", "delta" };

static void set_up_candidates(void)
{
    for (size_t i = 0; i < WORLD_CANDIDATES; i++) {
        world.proplets[i].spec.type = PROPLET_EXTERNAL;
        world.proplets[i].spec.external = &world.externals[i];
        world.candidates[i] = (struct candidate){
            .name = NAMES[i],
            .proplet = &world.proplets[i],
            .ready = true,
        };
    }
    world.observed.candidates = (struct schedule_context){
        .candidates = world.candidates,
        .len = 1,
        .last_selected = "",
    };
}

void world_set_up(void)
{
    json_init();
    world = (struct task_world){ .arena = arena_create() };
    world.observed = (struct task_observed){
        .uid = WORLD_UID,
        .name = "add",
        .generation = 3,
        .created_us = CREATED_US,
        .has_finalizer = true,
        .results = world.results,
        .order_message = "its owner has ended",
        .attempt = { .first_seen_ms = NOW_MS },
        .scheduler = &SCHEDULER_ROUND_ROBIN,
        .mqtt_configured = true,
        .backlog_drained = true,
        .may_start = true,
        .max_result_bytes = 64,
        .stop_timeout_ms = 30000,
        .start_confirm_ms = 30000,
        .now_ms = NOW_MS,
        .now_us = NOW_US,
    };
    world.spec = &world.observed.task.spec;
    world.status = &world.observed.task.status;
    set_up_candidates();
}

void world_tear_down(void)
{
    arena_destroy(world.arena);
}

static void proplet_of_status(void)
{
    world.observed.proplet = (struct observed_proplet){
        .exists = true,
        .ready = true,
        .reachable = true,
        .client_id = WORLD_CLIENT,
        .channel = WORLD_CHANNEL,
        .qos = 1,
        .heard_since_ms = NOW_MS / 2,
    };
}

void world_assigned(void)
{
    struct task_plan plan = world_plan();

    ck_assert(plan.action == TASK_ASSIGN);
    world_do(&plan);
    proplet_of_status();
}

void world_running(void)
{
    world_assigned();

    struct task_plan plan = world_plan();
    ck_assert(plan.action == TASK_START);
    world_do(&plan);
    world_wait_ms(1000);
}

void world_finished(enum task_phase phase)
{
    world_running();
    if (phase == TASK_INTERRUPTED) {
        world_suspended();
    } else {
        world_result(WORLD_CHANNEL,
                     "{\"task_id\":\"" WORLD_UID "\",\"results\":\"42\",\"error\":%s}",
                     phase == TASK_FAILED ? "\"trap\"" : "null");
    }
    struct task_plan plan = world_plan();
    world_do(&plan);
    ck_assert_int_eq(world.status->phase, phase);
}

void world_suspended(void)
{
    world.spec->suspend = true;
    world.observed.generation++;
}

void world_new_leader(void)
{
    world.observed.attempt = (struct attempt){
        .number = world.status->attempt,
        .first_seen_ms = world.observed.now_ms,
    };
    world.observed.backlog_drained = false;
}

void world_wait_ms(int64_t ms)
{
    world.observed.now_ms += ms;
    world.observed.now_us += ms * 1000;
}

void world_result(const char *channel, const char *format, ...)
{
    size_t i = world.observed.result_count++;
    struct error err = { 0 };
    va_list args;

    ck_assert_uint_lt(i, WORLD_RESULTS);
    va_start(args, format);
    const char *text = arena_vprintf(world.arena, format, args);
    va_end(args);
    world.results[i] = (struct observed_result){ .sequence = 100 + i, .channel = channel };
    int r = message_result_parse(world.arena, text, strlen(text), &world.results[i].message, &err);
    ck_assert_msg(r == 0, "%s: %s", text, err.message);
}

static void check(const struct task_plan *plan, unsigned may_have)
{
    unsigned surplus = task_plan_companions(&world.observed, plan) & ~may_have;

    ck_assert_msg(task_may_become(world.status->phase, plan->status.phase), "from %s to %s",
                  TASK_PHASE_NAMES[world.status->phase], TASK_PHASE_NAMES[plan->status.phase]);
    ck_assert_msg(!surplus, "action %d must not have %#x", (int)plan->action, surplus);
}

struct task_plan world_plan(void)
{
    struct task_plan plan = task_plan(world.arena, &world.observed);

    check(&plan, TASK_PLAN_MAY_HAVE[plan.action]);
    return plan;
}

struct task_plan world_conclude(const struct task_plan *plan, enum task_setback_kind kind,
                                enum reason reason, const char *message)
{
    const struct task_setback setback = { .kind = kind, .reason = reason, .message = message };

    struct task_plan ret = task_plan_conclude(world.arena, &world.observed, plan, &setback);
    bool told = ret.action == TASK_TELL_TARGETS; /* what is left is the status of the whole */

    check(&ret, WITH_TARGETS | TASK_PLAN_MAY_HAVE[told ? TASK_WRITE : ret.action]);
    return ret;
}

/* The order is the reconciler's. */
void world_act(const struct task_plan *plan)
{
    struct attempt *attempt = &world.observed.attempt;

    if (plan->action == TASK_ADD_FINALIZER) {
        world.observed.has_finalizer = true;
        return;
    }
    if (plan->stop)
        attempt->stop_sent_ms = world.observed.now_ms;
    if (plan->action == TASK_START) {
        attempt->began_ms = world.observed.now_ms;
        attempt->published_ms = world.observed.now_ms;
        attempt->stop_sent_ms = 0;
        attempt->publishes++;
    }
    if (plan->action == TASK_RELEASE || plan->action == TASK_RELEASE_UNCONFIRMED)
        world.observed.has_finalizer = false;
}

void world_do(const struct task_plan *plan)
{
    world_act(plan);
    if (plan->action == TASK_ADD_FINALIZER)
        return;
    if (plan->ack_up_to) {
        world.observed.result_count = 0;
        world.observed.restart = (struct observed_restart){ 0 };
    }
    if (world.observed.deleted_us)
        return;

    *world.status = plan->status;
    if (world.observed.attempt.number != plan->status.attempt)
        world.observed.attempt = (struct attempt){
            .number = plan->status.attempt,
            .chosen_here = plan->action == TASK_ASSIGN,
            .first_seen_ms = world.observed.now_ms,
        };
}

const char *world_condition(const struct task_plan *plan, const char *type)
{
    const cJSON *condition = condition_get(plan->status.conditions, type);

    if (!condition)
        return "";
    return arena_printf(world.arena, "%s %s: %s", json_string(json_get(condition, "status"), "?"),
                        json_string(json_get(condition, "reason"), "?"),
                        json_string(json_get(condition, "message"), ""));
}

static const char *status_text(const struct task_status *status)
{
    return json_text(world.arena, task_status_encode(world.arena, status), NULL);
}

void world_expect_rest(const struct task_plan *plan)
{
    ck_assert_str_eq(status_text(&plan->status), status_text(world.status));
    ck_assert(plan->action == TASK_WRITE || plan->action == TASK_AWAIT_CAPACITY ||
              plan->action == TASK_CREATE_WORKLOAD || plan->action == TASK_HOLD);
    ck_assert(!plan->stop);
    ck_assert_ptr_null(plan->event);
}

void world_expect_waiting(const struct task_plan *plan, const char *reason, const char *message)
{
    ck_assert_str_eq(world_condition(plan, "Scheduled"),
                     arena_printf(world.arena, "False %s: %s", reason, message));
    ck_assert_str_eq(plan->status.reason, reason);
    ck_assert_int_eq(plan->status.phase, world.status->phase);
    ck_assert_int_eq(plan->status.attempt, world.status->attempt);
    ck_assert(plan->action == TASK_WRITE || plan->action == TASK_AWAIT_CAPACITY);
    ck_assert_ptr_null(plan->event);
}
