/* Proplets that open and close at random under Tasks of random lengths: no start to one that is closed or has too little
 * room, and no Task waits while there is one with room. The model is of the test, from the text of the spec alone. */
#include <inttypes.h>

#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/str.h"
#include "common/tests/parsed.h"
#include "controller/tests/fake_bridge.h"

#define TASKS 8
#define STEPS 150
#define SEEDS 4
#define US INT64_C(1000000)

static const char *const PROPLETS[] = { "alpha", "beta" };

/* A Proplet is open until this time; 0: it is closed; INT64_MAX: it does not close by time. closed_until_us: it opens
 * then; 0: it does not by time. */
static struct {
    int64_t open_until_us, closed_until_us;
} model[2];
static int64_t deadline_s[TASKS];
static const char *pinned_to[TASKS]; /* NULL: to none */
static uint64_t chance;
static unsigned starts, waits;

static unsigned draw(unsigned below)
{
    chance = chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(chance >> 33) % below;
}

static int64_t now_us(void)
{
    return timeline_now_us(stage.task.timeline, NULL);
}

/* How long the Proplet is open from now on; 0: it is closed. */
static int64_t open_for_us(size_t proplet)
{
    int64_t now = now_us();

    if (model[proplet].closed_until_us && model[proplet].closed_until_us <= now)
        return INT64_MAX;
    return model[proplet].open_until_us == INT64_MAX ? INT64_MAX
           : model[proplet].open_until_us > now      ? model[proplet].open_until_us - now
                                                     : 0;
}

static void edit(size_t proplet)
{
    /* of a schedule that is not open in the hours of this test */
    static const char never[] = "\"schedule\":{\"windows\":[{\"days\":[\"mon\"],\"from\":\"01:00\","
                                "\"until\":\"01:01\"}]}";
    int64_t until_us = (now_us() / US + 5 + draw(600)) * US;
    char until[RFC3339_LEN];
    const char *members = "";

    rfc3339_format(until_us, until);
    model[proplet].open_until_us = 0;
    model[proplet].closed_until_us = 0;
    switch (draw(5)) {
    case 0:
        members = ",\"killSwitch\":true";
        break;
    case 1:
        members = arena_printf(stage.arena,
                               ",\"availability\":{\"gracefulShutdownTimeout\":\"%us\","
                               "\"override\":{\"state\":\"Closed\",\"until\":\"%s\"}}",
                               draw(60), until);
        model[proplet].closed_until_us = until_us;
        break;
    case 2:
    case 3:
        members = arena_printf(stage.arena,
                               ",\"availability\":{\"gracefulShutdownTimeout\":\"%us\",%s,"
                               "\"override\":{\"state\":\"Open\",\"until\":\"%s\"}}",
                               draw(60), never, until);
        model[proplet].open_until_us = until_us;
        break;
    default:
        model[proplet].open_until_us = INT64_MAX;
        break;
    }
    stage_put_proplet(PROPLETS[proplet],
                      arena_printf(stage.arena,
                                   "{\"type\":\"external\"%s,\"connectionConfig\":{"
                                   "\"mqttAddress\":\"tcp://broker\",\"domainId\":\"d\","
                                   "\"channelId\":\"c\",\"clientId\":\"device-%zu\"}}",
                                   members, proplet + 1));
}

static const char *name_of(size_t task)
{
    return arena_printf(stage.arena, "task-%zu", task);
}

static int64_t need_s(size_t task)
{
    const cJSON *status = json_get(stage_get(&KIND_TASK, name_of(task)), "status");
    const cJSON *cut = json_get(status, "cutAfterSeconds");
    int64_t cut_s = cut ? json_int(cut, 0) + 1 : 0;

    return cut_s > deadline_s[task] ? cut_s : deadline_s[task];
}

static bool has_room(size_t proplet, size_t task, int64_t spare_us)
{
    int64_t left_us = open_for_us(proplet);

    return left_us > spare_us && (!need_s(task) || need_s(task) * US + spare_us <= left_us);
}

static void create(size_t task)
{
    if (stage_get(&KIND_TASK, name_of(task))) {
        stage_delete(&KIND_TASK, name_of(task));
        return;
    }
    deadline_s[task] = draw(2) ? 10 + draw(400) : 0;
    pinned_to[task] = draw(3) ? NULL : PROPLETS[draw(2)];
    stage_put(
        &KIND_TASK, name_of(task),
        arena_printf(
            stage.arena,
            "{\"name\":\"one\",\"file\":\"AGFzbQEAAAA=\",\"monitoringProfile\":{\"enabled\":"
            "false}%s%s}",
            deadline_s[task]
                ? arena_printf(stage.arena, ",\"activeDeadlineSeconds\":%" PRId64, deadline_s[task])
                : "",
            pinned_to[task]
                ? arena_printf(stage.arena, ",\"propletSelector\":{\"propletId\":\"%s\"}",
                               pinned_to[task])
                : ""));
}

/* The last start that was published. */
static void judge_start(void)
{
    const cJSON *message = parsed(stage.arena, outside.published);
    const char *id = json_string(json_get(message, "id"), "");
    size_t proplet = str_equal(json_string(json_get(message, "proplet_id"), ""), "device-2");

    starts++;
    for (size_t i = 0; i < TASKS; i++) {
        const cJSON *task = stage_get(&KIND_TASK, name_of(i));
        const char *uid = json_string(json_path(task, "metadata", "uid", NULL), "-");

        if (!task || !str_has_prefix(id, uid))
            continue;
        ck_assert_msg(has_room(proplet, i, 0), "seed state %" PRIu64 ": %s started on %s", chance,
                      name_of(i), PROPLETS[proplet]);
        return;
    }
}

static void turn_judged(void)
{
    for (int i = 0; i < 400; i++) {
        unsigned steps = outside.steps, before = outside.starts;

        stage_turns(1);
        if (outside.starts != before)
            judge_start();
        if (outside.steps == steps && i > 40)
            return;
    }
}

/* A Task that waits says so, and there is no Proplet for it. */
static void judge_waits(void)
{
    for (size_t i = 0; i < TASKS; i++) {
        const cJSON *status = json_get(stage_get(&KIND_TASK, name_of(i)), "status");
        const char *phase = json_string(json_get(status, "phase"), "");

        if (!str_equal(phase, "pending") && !str_equal(phase, "interrupted"))
            continue;
        waits++;
        ck_assert_str_ne(json_string(json_get(status, "reason"), ""), "");
        for (size_t p = 0; p < 2; p++) {
            if (!pinned_to[i] || str_equal(pinned_to[i], PROPLETS[p]))
                ck_assert_msg(!has_room(p, i, 30 * US),
                              "seed state %" PRIu64 ": %s waits, %s has room", chance, name_of(i),
                              PROPLETS[p]);
        }
    }
}

static void beat(void)
{
    stage_receive("proplet/alive", "{\"proplet_id\":\"device-1\",\"status\":\"alive\"}");
    stage_receive("proplet/alive", "{\"proplet_id\":\"device-2\",\"status\":\"alive\"}");
}

static void set_up(void)
{
    outside_set_up();
    for (size_t i = 0; i < 2; i++)
        model[i].open_until_us = INT64_MAX, model[i].closed_until_us = 0;
}

TEST_GROUP("closing_random", set_up, stage_tear_down);

TEST_TIMES(no_start_without_room_and_no_wait_with_room, SEEDS)
{
    chance = (uint64_t)_i * 7919 + 7;
    starts = waits = 0;
    for (int step = 0; step < STEPS; step++) {
        switch (draw(5)) {
        case 0:
            edit(draw(2));
            break;
        case 1:
        case 2:
            create(draw(TASKS));
            break;
        case 3:
            outside_answer("\"results\":42,\"error\":null");
            break;
        default:
            stage_wait_ms(1000 * (1 + draw(20)));
            break;
        }
        beat();
        turn_judged();
        if (step % 5 == 4) {
            for (int i = 0; i < 8; i++) {
                stage_wait_ms(1000);
                beat();
                turn_judged();
            }
            judge_waits();
        }
    }
    ck_assert_uint_gt(starts, 10);
    ck_assert_uint_gt(waits, 3);
}
