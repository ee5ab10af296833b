/* Who gets a place, and which one: the reconcilers against an oracle that compares every Task with
 * every Proplet at each event. */
#include <string.h>

#include "common/api/kinds.h"
#include "common/base/str.h"
#include "common/tests/power.h"
#include "common/tests/random.h"
#include "controller/tests/fake_bridge.h"

#define PROPLET(client, external, more)                                                            \
    "{\"type\":\"external\",\"external\":{" external "}" more                                      \
    ",\"connectionConfig\":{\"mqttAddress\":\"tcp://broker\",\"domainId\":\"d\","                  \
    "\"channelId\":\"c\",\"clientId\":\"" client "\"}}"
/* Nothing confirms it, so that nothing is repeated. */
#define TASK(more)                                                                                 \
    "{\"name\":\"n\",\"file\":\"AGFzbQEAAAA=\",\"monitoringProfile\":{\"enabled\":false}" more "}"

#define BEGIN_US INT64_C(1767225600000000) /* 2026-01-01T00:00:00Z */
#define SECOND_US INT64_C(1000000)
#define POINT_US (30 * SECOND_US) /* what a point of priority is worth */
#define TASKS 120
#define PROPLETS 2

enum where { ABSENT, WAITING, PLACED, GONE };
enum wish { WISH_ANY, WISH_A, WISH_A_OR_B, WISH_ALPHA, WISH_BETA, WISHES };

static const char *const WISH_TEXT[WISHES] = {
    [WISH_ANY] = "",
    [WISH_A] = ",\"propletSelector\":{\"matchDeviceTypes\":[\"a\"]}",
    [WISH_A_OR_B] = ",\"propletSelector\":{\"matchDeviceTypes\":[\"a\",\"b\"]}",
    [WISH_ALPHA] = ",\"propletSelector\":{\"propletId\":\"alpha\"}",
    [WISH_BETA] = ",\"propletSelector\":{\"propletId\":\"beta\"}",
};

static struct {
    struct {
        const char *name, *client;
        char type; /* 'a', 'b' or 'c' */
        int max, active;
        bool cordoned, closed;
    } proplets[PROPLETS];
    struct {
        enum where where;
        enum wish wish;
        int priority, on;
        int64_t created_us;
    } tasks[TASKS];
    int count, last; /* last: the Proplet of the last choice, -1 before */
    uint64_t random;
} world;

static int below(int end)
{
    return (int)random_below(&world.random, (uint64_t)end);
}

static const char *task_name(int i)
{
    return arena_printf(stage.arena, "task-%03d", i);
}

/* The oracle. */

static bool wants(enum wish wish, int proplet)
{
    char type = world.proplets[proplet].type;

    switch (wish) {
    case WISH_A:
        return type == 'a';
    case WISH_A_OR_B:
        return type == 'a' || type == 'b';
    case WISH_ALPHA:
        return proplet == 0;
    case WISH_BETA:
        return proplet == 1;
    default:
        return true;
    }
}

static bool takes(int proplet, int task)
{
    return wants(world.tasks[task].wish, proplet) && !world.proplets[proplet].cordoned &&
           !world.proplets[proplet].closed &&
           world.proplets[proplet].active < world.proplets[proplet].max;
}

static void place(int task, int proplet)
{
    world.tasks[task].where = PLACED;
    world.tasks[task].on = proplet;
    world.proplets[proplet].active++;
    world.last = proplet;
}

static double score(int proplet)
{
    if (stage.task.scheduler == &SCHEDULER_ROUND_ROBIN)
        return world.last < 0 ? proplet : (proplet - world.last - 1 + PROPLETS) % PROPLETS;
    return (double)world.proplets[proplet].active / world.proplets[proplet].max;
}

static void arrive(int task)
{
    int best = -1;

    world.tasks[task].where = WAITING;
    for (int i = 0; i < PROPLETS; i++) {
        if (takes(i, task) && (best < 0 || score(i) < score(best)))
            best = i;
    }
    if (best >= 0)
        place(task, best);
}

static bool is_before(int a, int b)
{
    int64_t left = world.tasks[a].created_us - world.tasks[a].priority * POINT_US;
    int64_t right = world.tasks[b].created_us - world.tasks[b].priority * POINT_US;

    return left != right ? left < right : strcmp(task_name(a), task_name(b)) < 0;
}

static void fill(int proplet)
{
    for (int best = 0; best >= 0;) {
        best = -1;
        for (int i = 0; i < world.count; i++) {
            if (world.tasks[i].where == WAITING && takes(proplet, i) &&
                (best < 0 || is_before(i, best)))
                best = i;
        }
        if (best >= 0)
            place(best, proplet);
    }
}

/* What happens, to both. */

static void put_task(int i)
{
    char created[RFC3339_LEN];

    stage_put(&KIND_TASK, task_name(i),
              arena_printf(stage.arena, TASK("%s,\"priority\":%d"), WISH_TEXT[world.tasks[i].wish],
                           world.tasks[i].priority));

    const cJSON *put = stage_get(&KIND_TASK, task_name(i));
    cJSON *object = json_object(stage.arena);
    cJSON *metadata = json_object(stage.arena);
    json_for_each (member, json_get(put, "metadata"))
        json_set_copy(metadata, member->string, member);
    json_set_string(metadata, "creationTimestamp",
                    rfc3339_format(world.tasks[i].created_us, created));
    json_set_copy(object, "metadata", metadata);
    json_set_copy(object, "spec", json_get(put, "spec"));
    json_set_copy(object, "status", json_get(put, "status"));
    fake_api_put(stage.api, &KIND_TASK, object);
}

/* Its Tasks stay for longer than the test takes. */
#define CLOSED                                                                                     \
    ",\"availability\":{\"gracefulShutdownTimeout\":\"24h\",\"override\":{\"state\":\"Closed\","   \
    "\"until\":\"2030-01-01T00:00:00Z\"}}"

static void put_proplet(int i)
{
    const char *more = arena_printf(stage.arena, "%s%s",
                                    world.proplets[i].cordoned ? ",\"unschedulable\":true" : "",
                                    world.proplets[i].closed ? CLOSED : "");

    stage_put_proplet(world.proplets[i].name,
                      arena_printf(stage.arena,
                                   PROPLET("%s", "\"deviceType\":\"%c\",\"maxTasks\":%d", "%s"),
                                   world.proplets[i].type, world.proplets[i].max, more,
                                   world.proplets[i].client));
}

static void new_task(void)
{
    int i = world.count;

    if (i == TASKS)
        return;
    world.count++;
    world.tasks[i].wish = (enum wish)below(WISHES);
    world.tasks[i].priority = below(101);
    /* An hour in all: more than the lowest priority is worth less than the highest. */
    world.tasks[i].created_us = BEGIN_US + below(120) * POINT_US;
    put_task(i);
    arrive(i);
}

static int any_in(enum where where)
{
    int start = world.count ? below(world.count) : 0;

    for (int i = 0; i < world.count; i++) {
        if (world.tasks[(start + i) % world.count].where == where)
            return (start + i) % world.count;
    }
    return -1;
}

static void finish_task(void)
{
    int i = any_in(PLACED);

    if (i < 0)
        return;
    const cJSON *uid = json_path(stage_get(&KIND_TASK, task_name(i)), "metadata", "uid", NULL);
    ck_assert(outside_answer_one(json_string(uid, "")));
    world.tasks[i].where = GONE;
    world.proplets[world.tasks[i].on].active--;
    fill(world.tasks[i].on);
}

static void change_waiting_task(void)
{
    int i = any_in(WAITING);

    if (i < 0)
        return;
    if (below(3) == 0) {
        stage_delete(&KIND_TASK, task_name(i));
        world.tasks[i].where = GONE;
        return;
    }
    world.tasks[i].priority = below(101);
    put_task(i);
}

static void change_proplet(void)
{
    int i = below(PROPLETS);

    world.proplets[i].type = (char)('a' + below(3));
    world.proplets[i].max = 1 + below(4);
    world.proplets[i].cordoned = below(4) == 0;
    world.proplets[i].closed = below(4) == 0;
    put_proplet(i);
    fill(i);
}

/* The next process finds in the statuses who waits; while there is none there may be more room. */
static void die(void)
{
    stage.dead = true;
    if (below(2))
        change_proplet();
}

static const char *event(void)
{
    int kind = below(20);

    if (kind < 8)
        new_task();
    else if (kind < 15)
        finish_task();
    else if (kind < 17)
        change_waiting_task();
    else if (kind < 19)
        change_proplet();
    else
        die();
    return arena_printf(stage.arena, "event %d", kind);
}

static void expect_the_same(const char *after)
{
    for (int i = 0; i < world.count; i++) {
        const cJSON *task = stage_get(&KIND_TASK, task_name(i));
        if (world.tasks[i].where != WAITING && world.tasks[i].where != PLACED)
            continue;
        const char *on = json_string(json_path(task, "status", "assignedProplet", NULL), "nowhere");
        const char *expected =
            world.tasks[i].where == PLACED ? world.proplets[world.tasks[i].on].name : "nowhere";
        ck_assert_msg(str_equal(on, expected), "'%s' is on '%s' after %s, expected '%s'",
                      task_name(i), on, after, expected);
    }
}

static void set_up(void)
{
    outside_reset();
    stage_set_up(outside_roundtrip, outside_between);
    memset(&world, 0, sizeof(world));
    world.last = -1;
    for (int i = 0; i < PROPLETS; i++) {
        world.proplets[i].name = i ? "beta" : "alpha";
        world.proplets[i].client = i ? "device-2" : "device-1";
        world.proplets[i].type = 'a';
        world.proplets[i].max = 2;
        put_proplet(i);
    }
    stage_run();
}

TEST_GROUP("room: order", set_up, stage_tear_down);

TEST_TIMES(same_choices_as_an_oracle_that_compares_all_with_all, power_count(6, 12, 60))
{
    static const struct scheduler *const SCHEDULERS[] = { &SCHEDULER_ROUND_ROBIN,
                                                          &SCHEDULER_LEAST_LOADED,
                                                          &SCHEDULER_PRIORITY };

    stage.task.scheduler = SCHEDULERS[_i % 3];
    world.random = (uint64_t)_i * 2654435761u + 1;
    for (int i = 0; i < 120; i++) {
        const char *what = event();
        stage_wait_ms(1); /* no two choices at one time, as in the world */
        stage_run();
        expect_the_same(what);
    }
}
