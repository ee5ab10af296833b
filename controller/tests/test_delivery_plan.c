/* The part that is sent next, and the devices that have all of them. */
#include "controller/registry/delivery_plan.h"

#include "common/tests/suite.h"

#define NOW INT64_C(1000000)
#define NONE DELIVERY_NONE

TEST_GROUP("delivery_plan", NULL, NULL);

static const struct {
    int64_t sent[4];
    size_t parts;
    int64_t floors[3];
    size_t floor_count;
    size_t next;
} NEXT[] = {
    { { 0, 0, 0 }, 3, { 0 }, 0, NONE },         /* no device waits */
    { { 0, 0, 0 }, 3, { 10 }, 1, 0 },           /* the lowest of equals */
    { { 20, 0, 0 }, 3, { 10 }, 1, 1 },          /* one that was never sent */
    { { 20, 21, 22 }, 3, { 10 }, 1, NONE },     /* all are there */
    { { 20, 21, 22 }, 3, { 21 }, 1, 0 },        /* the oldest, and not one since the floor */
    { { 30, 21, 22 }, 3, { 25 }, 1, 1 },        /* it joined in the middle: the rest of the pass */
    { { 30, 31, 32 }, 3, { 25, 10 }, 2, NONE }, /* one pass for both */
    { { 30, 31, 12 }, 3, { 25, 10 }, 2, 2 },    /* one of them lacks it */
    { { 30, 31, 32 }, 3, { 25, 40 }, 2, 0 },    /* likewise */
    { { 30, 31, 32 }, 3, { 25, NOW + 5 }, 2, NONE }, /* its floor has not come */
    { { 30, 31, 32 }, 3, { NOW }, 1, NONE },         /* nor has this one passed */
    { { 25, 31, 32 }, 3, { 25 }, 1, 0 },             /* in the same millisecond: before it */
    { { 0 }, 1, { NOW - 1 }, 1, 0 },
};

TEST_EACH(next_part_is_the_oldest_that_anyone_lacks, NEXT)
{
    const struct delivery_observed observed = { NEXT[_i].sent, NEXT[_i].parts, NEXT[_i].floors,
                                                NEXT[_i].floor_count, NOW };

    ck_assert_uint_eq(delivery_next(&observed), NEXT[_i].next);
}

static const struct {
    int64_t sent[3];
    int64_t floor;
    bool reached;
} REACHED[] = {
    { { 0, 0, 0 }, -5, false },   { { 11, 12, 13 }, 10, true },  { { 10, 12, 13 }, 10, false },
    { { 11, 12, 0 }, 10, false }, { { 11, 12, 13 }, 12, false }, { { 31, 32, 33 }, 30, true },
};

TEST_EACH(device_is_reached_by_every_part_since_its_floor, REACHED)
{
    ck_assert_int_eq(delivery_reached(REACHED[_i].sent, 3, REACHED[_i].floor), REACHED[_i].reached);
}

static const struct {
    int64_t started, fresh, floor;
} FLOORS[] = {
    { 0, 0, NOW - DELIVERY_KEPT_MS },
    { NOW - 100, 0, NOW - 100 },
    { NOW - 100, NOW - 50, NOW - 50 + DELIVERY_SUBSCRIBED_MS },
    { NOW - 100, NOW - 5000, NOW - 100 },
    { NOW - 5000, NOW - 3000, NOW - 3000 + DELIVERY_SUBSCRIBED_MS },
    { NOW - 2 * DELIVERY_KEPT_MS, NOW - 2 * DELIVERY_KEPT_MS, NOW - DELIVERY_KEPT_MS },
};

TEST_EACH(floor_is_the_latest_of_start_life_and_memory, FLOORS)
{
    ck_assert_int_eq(delivery_floor(FLOORS[_i].started, FLOORS[_i].fresh, NOW), FLOORS[_i].floor);
}

TEST(rate_spaces_the_parts_of_a_channel)
{
    ck_assert_int_eq(delivery_rate_ms(NOW, 512000, 512000), NOW + 1000);
    ck_assert_int_eq(delivery_rate_ms(NOW, 512000, 16 << 20), NOW + 31);
    ck_assert_int_eq(delivery_rate_ms(NOW, 1, 1 << 30), NOW + 1);
    ck_assert_int_eq(delivery_rate_ms(NOW, 0, 1024), NOW);
}

TEST(pass_that_outlives_the_memory_of_devices_is_too_slow)
{
    ck_assert(!delivery_is_too_slow(0, NOW));
    ck_assert(!delivery_is_too_slow(NOW - DELIVERY_KEPT_MS, NOW));
    ck_assert(delivery_is_too_slow(NOW - DELIVERY_KEPT_MS - 1, NOW));
}

/* Any devices that join at any time during a pass: none waits for more than the parts twice, and none is sent twice
 * for one that had it since its floor. */
TEST_TIMES(pass_serves_whoever_joins_it, 8)
{
    enum { PARTS = 8 };
    int64_t sent[PARTS] = { 0 }, floors[2] = { 1, 0 };
    size_t publishes = 0, count = 1;

    for (int64_t now = 2; now < 100; now++) {
        const struct delivery_observed observed = { sent, PARTS, floors, count, now };
        size_t part = delivery_next(&observed);

        if (part == NONE)
            break;
        sent[part] = now;
        publishes++;
        if (publishes == (size_t)_i + 1) { /* another device, which has heard nothing so far */
            floors[1] = now;
            count = 2;
        }
    }
    ck_assert(delivery_reached(sent, PARTS, floors[0]));
    ck_assert(delivery_reached(sent, PARTS, floors[1]));
    ck_assert_uint_eq(publishes, PARTS + (size_t)_i + 1);
}
