/* When the brake holds, for fleets of every shape, and that what is counted one by one says the same. */
#include "controller/device/fleet_brake.h"

#include <stdio.h>

#include "common/base/str.h"
#include "common/tests/suite.h"

#define SECOND_US INT64_C(1000000)
#define NOW_US (INT64_C(1795255200) * SECOND_US)
#define HOURS(n) ((n)*3600)

static const struct {
    size_t running;
    struct {
        int ago_s; /* the earliest first */
        size_t count;
    } bursts[4];
    bool holds;
    size_t offline, fleet;
} FLEETS[] = {
    { 12, { { 0, 0 } }, false, 0, 0 },
    { 4, { { 60, 8 } }, true, 8, 12 },
    { 10, { { 60, 2 } }, false, 0, 0 },
    /* more than 55 %, and not 55 % */
    { 9, { { 60, 11 } }, false, 0, 0 },
    { 44, { { 60, 56 } }, true, 56, 100 },
    { 45, { { 60, 55 } }, false, 0, 0 },
    /* a fleet of at least 10 */
    { 0, { { 60, 9 } }, false, 0, 0 },
    { 0, { { 60, 10 } }, true, 10, 10 },
    { 1, { { 60, 9 } }, true, 9, 10 },
    /* at once: within five minutes, seen in parts or not */
    { 4, { { 300, 4 }, { 0, 4 } }, true, 8, 12 },
    { 4, { { 301, 4 }, { 0, 4 } }, false, 0, 0 },
    { 4, { { 400, 1 }, { 300, 3 }, { 200, 2 }, { 100, 2 } }, true, 8, 12 },
    /* who was gone before is no part of the fleet */
    { 5, { { HOURS(2), 8 }, { 60, 7 } }, true, 7, 12 },
    { 20, { { HOURS(2), 35 }, { 60, 7 } }, true, 35, 62 },
    { 100, { { HOURS(2), 30 }, { 60, 7 } }, false, 0, 0 },
    /* not for ever */
    { 4, { { HOURS(24) - 1, 8 } }, true, 8, 12 },
    { 4, { { HOURS(24), 8 } }, false, 0, 0 },
};

static struct brake_plan plan_of(size_t i)
{
    struct brake_burst bursts[4];
    struct brake_observed observed = { .running = FLEETS[i].running,
                                       .bursts = bursts,
                                       .now_us = NOW_US };

    for (size_t j = 0; j < 4 && FLEETS[i].bursts[j].count; j++)
        bursts[observed.len++] = (struct brake_burst){
            .since_us = NOW_US - FLEETS[i].bursts[j].ago_s * SECOND_US,
            .count = FLEETS[i].bursts[j].count,
        };
    return brake_plan(&observed);
}

TEST_GROUP("plan", NULL, NULL);

TEST_EACH(brake_holds_when_most_of_a_fleet_goes_at_once, FLEETS)
{
    struct brake_plan plan = plan_of((size_t)_i);

    ck_assert_msg(plan.holds == FLEETS[_i].holds, "fleet %d", _i);
    ck_assert_uint_eq(plan.offline, FLEETS[_i].offline);
    ck_assert_uint_eq(plan.fleet, FLEETS[_i].fleet);
}

TEST(brake_says_until_when_it_holds)
{
    struct brake_plan plan = plan_of(1);

    ck_assert_int_eq(plan.until_us, NOW_US + (HOURS(24) - 60) * SECOND_US);
}

static struct fleet_brake *brake;

static void set_up(void)
{
    brake = fleet_brake_create();
}

static void tear_down(void)
{
    fleet_brake_destroy(brake);
}

/* true: released. now_ms: as now_us. */
static bool note(unsigned number, enum brake_member member, int64_t since_us, int64_t now_us)
{
    struct kube_name name;
    char text[32];

    snprintf(text, sizeof(text), "worker-%u", number);
    ck_assert(kube_name_set(&name, number % 2 ? "odd" : "even", text));
    return fleet_brake_note(brake, &name, member, since_us, now_us, now_us / 1000);
}

static bool holds(int64_t now_us)
{
    return fleet_brake_state(brake, now_us, now_us / 1000).plan.holds;
}

static void make_fleet(unsigned running, unsigned offline)
{
    for (unsigned i = 0; i < running + offline; i++)
        note(i, i < running ? BRAKE_RUNNING : BRAKE_OFFLINE, NOW_US, NOW_US);
}

TEST_GROUP("counts", set_up, tear_down);

TEST(fleet_of_all_namespaces_is_one)
{
    make_fleet(4, 7);
    ck_assert(holds(NOW_US));
}

TEST(brake_is_released_once_when_enough_are_back)
{
    make_fleet(4, 8);
    ck_assert(!note(4, BRAKE_RUNNING, 0, NOW_US + SECOND_US));
    ck_assert(holds(NOW_US + SECOND_US));
    ck_assert(note(5, BRAKE_RUNNING, 0, NOW_US + 2 * SECOND_US));
    ck_assert(!holds(NOW_US + 2 * SECOND_US));
    ck_assert(!note(6, BRAKE_RUNNING, 0, NOW_US + 3 * SECOND_US));
    ck_assert_int_eq(fleet_brake_state(brake, NOW_US, 0).released_ms,
                     (NOW_US + 2 * SECOND_US) / 1000);
}

TEST(deleted_proplets_release_it)
{
    make_fleet(4, 8);
    for (unsigned i = 4; i < 6; i++)
        ck_assert(!note(i, BRAKE_NO_MEMBER, 0, NOW_US));
    ck_assert(note(6, BRAKE_NO_MEMBER, 0, NOW_US)); /* nine are too few to tell */
}

TEST(time_releases_it)
{
    make_fleet(4, 8);
    ck_assert(holds(NOW_US + (HOURS(24) - 11) * SECOND_US));
    ck_assert(!holds(NOW_US + HOURS(24) * SECOND_US));
    ck_assert_int_ne(fleet_brake_state(brake, NOW_US, 0).released_ms, 0);
}

TEST(beginning_and_end_are_news_once)
{
    struct brake_plan plan;

    ck_assert(!fleet_brake_news(brake, NOW_US, 0, &plan));
    make_fleet(4, 8);
    ck_assert(fleet_brake_news(brake, NOW_US, 0, &plan));
    ck_assert(plan.holds && plan.offline == 8 && plan.fleet == 12);
    note(12, BRAKE_OFFLINE, NOW_US, NOW_US);
    ck_assert(!fleet_brake_news(brake, NOW_US, 0, &plan));
    for (unsigned i = 4; i < 12; i++)
        note(i, BRAKE_RUNNING, 0, NOW_US);
    ck_assert(fleet_brake_news(brake, NOW_US, 0, &plan));
    ck_assert(!plan.holds);
    ck_assert(!fleet_brake_news(brake, NOW_US, 0, &plan));
}

/* What is counted as it changes is what counting all at once gives. */
#define MEMBERS 40
TEST_TIMES(counting_one_by_one_equals_counting_all, 5)
{
    struct {
        enum brake_member member;
        int64_t since_us;
    } all[MEMBERS] = { 0 };
    unsigned random = (unsigned)_i + 1;
    size_t held = 0;

    for (int step = 0; step < 2000; step++) {
        random = random * 1103515245u + 12345u;
        unsigned who = (random >> 16) % MEMBERS;
        enum brake_member member = (random >> 8) % 8 < 5 ? BRAKE_OFFLINE : (random >> 8) % 3;
        int64_t now_us = NOW_US + step * 7 * SECOND_US;
        all[who].member = member;
        all[who].since_us = now_us - now_us % (10 * SECOND_US);
        note(who, member, now_us, now_us);

        struct brake_burst bursts[MEMBERS] = { 0 };
        struct brake_observed observed = { .bursts = bursts, .now_us = now_us };
        for (size_t i = 0; i < MEMBERS; i++) {
            size_t at = observed.len;
            observed.running += all[i].member == BRAKE_RUNNING;
            if (all[i].member != BRAKE_OFFLINE)
                continue;
            for (; at > 0 && bursts[at - 1].since_us > all[i].since_us; at--)
                bursts[at] = bursts[at - 1];
            bursts[at] = (struct brake_burst){ .since_us = all[i].since_us, .count = 1 };
            observed.len++;
        }
        ck_assert_int_eq(holds(now_us), brake_plan(&observed).holds);
        held += holds(now_us);
    }
    ck_assert_uint_gt(held, 0);
    ck_assert_uint_lt(held, 2000);
}
