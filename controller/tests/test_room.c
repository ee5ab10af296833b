/* Many Tasks and little room, with the reconcilers: who is woken, in which order, and that nobody
 * waits beside a Proplet that would take it. */
#include "common/api/kinds.h"
#include "common/base/str.h"
#include "common/tests/observe.h"
#include "common/tests/parsed.h"
#include "common/tests/power.h"
#include "common/tests/random.h"
#include "controller/task/task_placement.h"
#include "controller/task/task_room.h"
#include "controller/tests/fake_bridge.h"

#define PROPLET(client, external, more)                                                            \
    "{\"type\":\"external\",\"external\":{" external "}" more                                      \
    ",\"connectionConfig\":{\"mqttAddress\":\"tcp://broker\",\"domainId\":\"d\","                  \
    "\"channelId\":\"c\",\"clientId\":\"" client "\"}}"
#define CORDONED ",\"unschedulable\":true"
#define TASK(more) "{\"name\":\"n\",\"file\":\"AGFzbQEAAAA=\"" more "}"
/* Turns of a Task from its creation to its end, whatever the others do: an upper bound. */
#define TURNS_PER_TASK 12

static void set_up(void)
{
    outside_set_up();
    stage_put_proplet("beta", PROPLET("device-2", "", CORDONED));
}

TEST_GROUP("room", set_up, stage_tear_down);

static const char *task_name(int i)
{
    return arena_printf(stage.arena, "task-%03d", i);
}

static const char *status_of(const char *task, const char *key)
{
    return json_string(json_path(stage_get(&KIND_TASK, task), "status", key, NULL), "");
}

static int count(const char *phase)
{
    struct object_list list = store_list(informer_store(stage.task.tasks), stage.arena, NULL);
    int ret = 0;

    for (size_t i = 0; i < list.len; i++)
        ret += str_equal(status_of(list.items[i]->name, "phase"), phase);
    return ret;
}

static bool finish(const char *task)
{
    return outside_answer_one(
        json_string(json_path(stage_get(&KIND_TASK, task), "metadata", "uid", NULL), ""));
}

static int decoded(void)
{
    return (int)metric_said("propeller_candidates_decoded_total");
}

TEST(freed_place_wakes_one_task_however_many_wait)
{
    enum { TASKS = 200 };

    stage_put_proplet("alpha", PROPLET("device-1", "\"maxTasks\":1", ""));
    for (int i = 0; i < TASKS; i++)
        stage_put(&KIND_TASK, task_name(i), TASK(""));
    stage_run();
    ck_assert_int_eq(count("running"), 1);
    ck_assert_int_eq(count("pending"), TASKS - 1);

    outside.answers = true;
    outside_answer("\"results\":\"1\",\"error\":null");
    stage_run();
    ck_assert_int_eq(count("completed"), TASKS);
    ck_assert_uint_eq(outside.starts, TASKS);
    ck_assert_uint_lt(stage.task_turns, TASKS * TURNS_PER_TASK);
    /* Two Proplets, and what was changed and written of them; not what was chosen. */
    ck_assert_int_lt(decoded(), TASKS / 4);
}

TEST(room_for_five_wakes_five)
{
    enum { TASKS = 100 }; /* too many to be told at once */

    stage_put_proplet("alpha", PROPLET("device-1", "\"maxTasks\":1", ""));
    for (int i = 0; i < TASKS; i++)
        stage_put(&KIND_TASK, task_name(i), TASK(""));
    stage_run();
    stage_put_proplet("gamma", PROPLET("device-3", "", CORDONED)); /* all are told, and not again */
    stage_run();
    stage_put_proplet("alpha", PROPLET("device-1", "\"maxTasks\":6", ""));
    stage_run();
    ck_assert_int_eq(count("running"), 6);
    ck_assert_int_eq(count("pending"), TASKS - 6);
}

TEST(priority_orders_those_who_wait)
{
    static const int PRIORITIES[] = { 10, 90, 50, 0, 100, 50 };
    static const char *const ORDER[] = { "task-004", "task-001", "task-002",
                                         "task-005", "task-000", "task-003" };

    stage_put_proplet("alpha", PROPLET("device-1", "\"maxTasks\":1", ""));
    stage_put_task(TASK(""));
    stage_run();
    for (int i = 0; i < (int)ARRAY_LEN(PRIORITIES); i++)
        stage_put(&KIND_TASK, task_name(i),
                  arena_printf(stage.arena, TASK(",\"priority\":%d"), PRIORITIES[i]));
    stage_run();

    const char *last = "one";
    for (size_t i = 0; i < ARRAY_LEN(ORDER); i++) {
        ck_assert(finish(last));
        stage_run();
        ck_assert_str_eq(status_of(ORDER[i], "phase"), "running");
        ck_assert_int_eq(count("running"), 1);
        last = ORDER[i];
    }
}

TEST(changed_priority_counts_at_once)
{
    stage_put_proplet("alpha", PROPLET("device-1", "\"maxTasks\":1", ""));
    stage_put_task(TASK(""));
    stage_run();
    stage_put(&KIND_TASK, "first", TASK(",\"priority\":60"));
    stage_put(&KIND_TASK, "second", TASK(",\"priority\":40"));
    stage_run();
    stage_put(&KIND_TASK, "second", TASK(",\"priority\":80"));
    stage_run();
    ck_assert(finish("one"));
    stage_run();
    ck_assert_str_eq(status_of("second", "phase"), "running");
    ck_assert_str_eq(status_of("first", "phase"), "pending");
}

#define LAST_RUN ",\"lastRun\":\"2026-01-01T00:00:00Z\""

/* A month old, priority 50: in its first run before everybody who is younger, in a later one behind
 * whoever waited when it lost its Proplet. */
TEST_TIMES(later_run_waits_from_its_beginning, 6)
{
    static const char FORMAT[] = "{\"spec\":{},\"status\":{\"run\":%d%s,\"conditions\":[{\"type\":"
                                 "\"Scheduled\",\"status\":\"%s\",\"lastTransitionTime\":"
                                 "\"2026-02-01T00:00:00Z\"}]}}";
    static const struct {
        int run;
        const char *more;
        const char *scheduled;
        int64_t since_us;
    } CASES[] = { { 0, "", "False", 1000 },
                  { 1, "", "False", 1000 },
                  { 2, "", "False", INT64_C(1769904000000000) },
                  { 2, "", "True", 5000 },
                  { 1, LAST_RUN, "False", INT64_C(1767225600000000) },
                  { 7, LAST_RUN, "False", INT64_C(1767225600000000) } };
    struct task task = { 0 };
    const cJSON *json = parsed(stage.arena, arena_printf(stage.arena, FORMAT, CASES[_i].run,
                                                         CASES[_i].more, CASES[_i].scheduled));

    ck_assert_int_eq(task_decode(stage.arena, json, &task, NULL), 0);
    ck_assert_int_eq(task_wait_rank(&task, 1000, 5000), wait_rank(CASES[_i].since_us, 50));
}

TEST(a_task_that_lost_a_proplet_goes_before_others_of_its_priority)
{
    struct task task = { .status = { .lost_attempt_count = { true, 1 } } };

    ck_assert_int_eq(task_wait_rank(&task, 1000, 5000), wait_rank(1000, 150));
    task.spec.priority = (struct json_opt_int){ true, 0 };
    ck_assert_int_eq(task_wait_rank(&task, 1000, 5000), wait_rank(1000, 100));
}

static const char *message_of(const char *task)
{
    const cJSON *conditions = json_path(stage_get(&KIND_TASK, task), "status", "conditions", NULL);

    return json_string(json_get(condition_get(conditions, "Scheduled"), "message"), "");
}

/* 0: few wait; 1: many, who are told at once, and then not again for a while. */
TEST_TIMES(who_waits_is_told_that_the_reason_has_changed, 2)
{
    static const int TASKS[] = { 3, 100 };

    stage_put_proplet("alpha", PROPLET("device-1", "\"maxTasks\":1", ""));
    for (int i = 0; i < TASKS[_i]; i++)
        stage_put(&KIND_TASK, task_name(i), TASK(""));
    stage_run();
    ck_assert_str_eq(message_of("task-002"),
                     "none of 2 Proplets fits: 1 is cordoned, 1 is at maxTasks");
    stage_put_proplet("gamma", PROPLET("device-3", "", CORDONED));
    stage_run();
    ck_assert_str_eq(message_of("task-002"),
                     "none of 3 Proplets fits: 2 are cordoned, 1 is at maxTasks");

    unsigned turns = stage.task_turns;
    for (int i = 0; i < 10; i++) {
        stage_put_proplet("gamma", PROPLET("device-3", "", ""));
        stage_run();
        stage_put_proplet("gamma", PROPLET("device-3", "", CORDONED));
        stage_run();
    }
    if (_i)
        ck_assert_uint_lt(stage.task_turns - turns, 100);
    stage_put_proplet("gamma", PROPLET("device-3", "", ""));
    stage_run();
    stage_wait_ms(30000);
    stage_run();
    ck_assert_str_eq(message_of("task-002"), "none of 3 Proplets fits: 1 is cordoned, 1 is not "
                                             "ready, 1 is at maxTasks");
}

/* What becomes of the one who was called, before its turn. */
static void change_its_mind(int how)
{
    if (how == 0)
        stage_delete(&KIND_TASK, "task-000");
    else if (how == 1)
        stage_put(&KIND_TASK, "task-000", TASK(",\"suspend\":true"));
    else
        stage_put(&KIND_TASK, "task-000",
                  TASK(",\"propletSelector\":{\"matchDeviceTypes\":[\"other\"]}"));
}

TEST_TIMES(place_that_is_not_taken_goes_to_the_next, 3)
{
    const struct kube_name other = { .ns = "default", .name = "other" };

    stage_put_proplet("alpha", PROPLET("device-1", "\"maxTasks\":1", ""));
    stage_put_task(TASK(""));
    stage_run();
    for (int i = 0; i < 3; i++)
        stage_put(&KIND_TASK, task_name(i), TASK(""));
    stage_run();
    ck_assert(finish("one"));
    for (int i = 0; !wait_list_kept(stage.task.waiting, "alpha", &other); i++) {
        ck_assert_int_lt(i, 100);
        stage_turns(1);
    }
    change_its_mind(_i);
    stage_run();
    ck_assert_str_eq(status_of("task-001", "phase"), "running");
    ck_assert_str_eq(status_of("task-002", "phase"), "pending");
    ck_assert_int_eq(wait_list_kept(stage.task.waiting, "alpha", &other), 0);
}

TEST(place_that_is_kept_is_not_taken_by_who_comes_first)
{
    stage_put_proplet("alpha", PROPLET("device-1", "\"maxTasks\":1", ""));
    stage_put_task(TASK(""));
    stage_run();
    stage_put(&KIND_TASK, "newcomer", TASK(""));
    stage_run();
    stage_put(&KIND_TASK, "newcomer", TASK(",\"suspend\":true"));
    stage_put(&KIND_TASK, "waiter", TASK(""));
    stage_run();
    ck_assert(finish("one"));
    for (int i = 0; !str_equal(status_of("one", "phase"), "completed"); i++) {
        ck_assert_int_lt(i, 100);
        stage_turns(1);
    }
    /* the next turn calls the waiter, whose own turn comes behind this one's */
    stage_put(&KIND_TASK, "newcomer", TASK(""));
    stage_run();
    ck_assert_str_eq(status_of("waiter", "phase"), "running");
    ck_assert_str_eq(status_of("newcomer", "phase"), "pending");
}

TEST_TIMES(write_that_fails_costs_nobody_the_room, 20 * FAULT_CRASH_BEFORE)
{
    stage_put_proplet("alpha", PROPLET("device-1", "\"maxTasks\":1", ""));
    stage_put_task(TASK(""));
    stage_run();
    for (int i = 0; i < 5; i++)
        stage_put(&KIND_TASK, task_name(i), TASK(""));
    stage_run();
    outside.answers = true;
    outside.fault = (enum fault)(_i % FAULT_CRASH_BEFORE);
    outside.steps = 0;
    outside.fail_at = (unsigned)(1 + _i / FAULT_CRASH_BEFORE);
    ck_assert(finish("one"));
    stage_run();
    ck_assert_int_eq(count("completed"), 6);
}

/* Random clusters. */

static uint64_t random_state;

static int below(int end)
{
    return (int)random_below(&random_state, (uint64_t)end);
}

static const char *const TYPES[] = { "", "\"deviceType\":\"a\"", "\"deviceType\":\"b\"" };
static const char *const WISHES[] = {
    "",
    ",\"propletSelector\":{\"matchDeviceTypes\":[\"a\"]}",
    ",\"propletSelector\":{\"matchDeviceTypes\":[\"a\",\"b\"]}",
    ",\"propletSelector\":{\"propletId\":\"alpha\"}",
    ",\"propletSelector\":{\"propletId\":\"gamma\"}",
    ",\"preferredPropletType\":\"k8s\"",
};
static const char *const PROPLETS[][2] = { { "alpha", "device-1" },
                                           { "beta", "device-2" },
                                           { "gamma", "device-3" } };

static void random_proplet(void)
{
    int i = below(3);
    const char *type = TYPES[below(3)];
    const char *limit =
        arena_printf(stage.arena, "%s\"maxTasks\":%d", *type ? "," : "", 1 + below(3));

    if (below(8) == 0) {
        stage_delete(&KIND_PROPLET, PROPLETS[i][0]);
        return;
    }
    stage_put_proplet(PROPLETS[i][0], arena_printf(stage.arena, PROPLET("%s", "%s%s", "%s"), type,
                                                   below(8) ? limit : "", below(5) ? "" : CORDONED,
                                                   PROPLETS[i][1]));
    stage_run();
    stage_receive("proplet/alive",
                  arena_printf(stage.arena, "{\"proplet_id\":\"%s\",\"status\":\"%s\"}",
                               PROPLETS[i][1], below(4) ? "alive" : "offline"));
}

static void random_task(int *tasks)
{
    const char *name = task_name(*tasks ? below(*tasks) : 0);

    switch (below(4)) {
    case 0:
        if (*tasks < 60)
            stage_put(&KIND_TASK, task_name((*tasks)++),
                      arena_printf(stage.arena, TASK("%s,\"priority\":%d"), WISHES[below(6)],
                                   below(101)));
        return;
    case 1:
        if (below(4) == 0)
            stage_delete(&KIND_TASK, name);
        return;
    default:
        (void)finish(name);
    }
}

/* By itself, without what the controller keeps of it. */
static bool candidate_of(const struct kube_object *object, struct candidate *ret)
{
    const cJSON *json = kube_object_json(stage.arena, object);
    struct proplet *proplet = arena_new(stage.arena, struct proplet);

    *ret = (struct candidate){ .name = object->name, .proplet = proplet };
    if (object->deleting || proplet_decode(stage.arena, json, proplet, NULL) < 0)
        return false;

    ret->labels = json_path(json, "metadata", "labels", NULL);
    ret->ready = condition_is(proplet->status.conditions, "Ready", CONDITION_TRUE);
    ret->active = placements_count(stage.task.placements, "default", ret->name).active;
    return true;
}

/* The naive oracle: every Task that waits against every Proplet. */
static void expect_nobody_waits_in_vain(void)
{
    struct object_list tasks = store_list(informer_store(stage.task.tasks), stage.arena, NULL);
    struct object_list proplets =
        store_list(informer_store(stage.task.proplets), stage.arena, NULL);

    for (size_t i = 0; i < tasks.len; i++) {
        const cJSON *json = kube_object_json(stage.arena, tasks.items[i]);
        struct task task = { 0 };
        ck_assert_int_eq(task_decode(stage.arena, json, &task, NULL), 0);
        if (task.status.phase != TASK_PENDING || tasks.items[i]->deleting)
            continue;
        for (size_t j = 0; j < proplets.len; j++) {
            struct candidate candidate;
            if (!candidate_of(proplets.items[j], &candidate))
                continue;
            ck_assert_msg(schedule_filter(&task.spec, &candidate) != FILTER_PASSED,
                          "'%s' waits, and '%s' would take it", tasks.items[i]->name,
                          candidate.name);
        }
    }
}

static void expect_no_proplet_is_overbooked(void)
{
    struct object_list proplets =
        store_list(informer_store(stage.task.proplets), stage.arena, NULL);

    for (size_t i = 0; i < proplets.len; i++) {
        const struct kube_name name = kube_object_name(proplets.items[i]);

        ck_assert_int_eq(wait_list_kept(stage.task.waiting, name.name, &name), 0);
    }
}

TEST_TIMES(nobody_waits_beside_a_proplet_that_would_take_it, power_count(8, 20, 100))
{
    int tasks = 0;

    random_state = (uint64_t)_i * 2654435761u + 1;
    if (_i % 2)
        stage.task.scheduler = &SCHEDULER_PRIORITY;
    for (int round = 0; round < 40; round++) {
        for (int i = below(4); i >= 0; i--) {
            random_task(&tasks);
            if (below(6) == 0)
                random_proplet();
        }
        stage_run();
        expect_nobody_waits_in_vain();
        expect_no_proplet_is_overbooked();
    }
}
