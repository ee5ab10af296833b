/* Slots: kept, in order, within the rate, news first. */
#include "controller/shared/refresh_budget.h"

#include "common/base/arena.h"
#include "common/tests/suite.h"

#define KEY "d/c/device-1"
#define NOW_MS 1000000

static struct arena *arena;
static struct refresh_budget *budget;
static struct refresh_limits limits;

static void set_up(void)
{
    arena = arena_create();
    budget = refresh_budget_create();
    limits = (struct refresh_limits){ .interval_ms = 60000, .qps = 10 };
}

static void tear_down(void)
{
    refresh_budget_destroy(budget);
    arena_destroy(arena);
}

TEST_GROUP("slots", set_up, tear_down);

static int64_t reserve(const char *key, bool news, int64_t now_ms)
{
    return refresh_budget_reserve(budget, key, news, &limits, now_ms);
}

TEST(slot_is_kept_until_it_is_used)
{
    int64_t slot = reserve(KEY, false, NOW_MS);

    ck_assert_int_eq(slot, NOW_MS + 60000);
    ck_assert_int_eq(reserve(KEY, false, NOW_MS + 30000), slot);
    ck_assert_int_eq(reserve(KEY, false, slot), slot);
    ck_assert_int_eq(reserve(KEY, false, slot + 5000), slot); /* the write is tried again */

    refresh_budget_release(budget, KEY);
    ck_assert_int_eq(reserve(KEY, false, slot + 5000), slot + 65000);
}

TEST(key_that_waits_for_nothing_is_released_in_vain)
{
    refresh_budget_release(budget, KEY);
    ck_assert_int_eq(reserve(KEY, false, NOW_MS), NOW_MS + 60000);
}

/* So many objects wait for a mere refresh. */
static const char *waiting(size_t i)
{
    return arena_printf(arena, "d/c/waiting-%zu", i);
}

static void let_wait(size_t count)
{
    for (size_t i = 0; i < count; i++)
        reserve(waiting(i), false, NOW_MS);
}

TEST(news_go_before_all_refreshes_that_wait)
{
    let_wait(1000);
    ck_assert_int_ge(reserve("refresh", false, NOW_MS), NOW_MS + 60000 + 1000 * 100);
    ck_assert_int_eq(reserve("news", true, NOW_MS), NOW_MS + 60000);
    ck_assert_int_le(reserve("more news", true, NOW_MS), NOW_MS + 60101);
}

/* Workers that were busy for ten seconds: so many are written at once when they go on. */
static const struct {
    int64_t catch_up_ms;
    size_t most;
} PAUSES[] = { { 0, 11 }, { 500, 6 }, { 100, 2 } };

TEST_EACH(only_a_part_of_a_pause_is_made_up_for, PAUSES)
{
    int64_t now_ms = NOW_MS + 60000 + 10000;
    size_t granted = 0;

    limits.catch_up_ms = PAUSES[_i].catch_up_ms;
    let_wait(100);
    for (size_t i = 0; i < 100; i++)
        granted += reserve(waiting(i), false, now_ms) <= now_ms;
    ck_assert_uint_le(granted, PAUSES[_i].most);
    ck_assert_uint_ge(granted, PAUSES[_i].most - 1);
}

TEST(refresh_that_becomes_news_moves_forward)
{
    let_wait(1000);
    int64_t slot = reserve(KEY, false, NOW_MS);

    ck_assert_int_ge(slot, NOW_MS + 160000);
    ck_assert_int_eq(reserve(KEY, true, NOW_MS + 1000), NOW_MS + 61000);
    ck_assert_int_eq(reserve(KEY, false, NOW_MS + 2000), NOW_MS + 61000);
}

TEST(news_never_come_later_than_the_refresh_would_have)
{
    int64_t slot = reserve(KEY, false, NOW_MS);

    ck_assert_int_eq(reserve(KEY, true, NOW_MS + 30000), slot);
}

/* News and refreshes together, each written as soon as it may be; how many in each second. */
TEST(news_do_not_raise_the_rate)
{
    size_t written = 0;

    limits.interval_ms = 0;
    let_wait(300);
    for (size_t i = 0; i < 100; i++)
        reserve(arena_printf(arena, "d/c/news-%zu", i), true, NOW_MS);
    for (int64_t now_ms = NOW_MS; now_ms < NOW_MS + 30000; now_ms += 10) {
        for (size_t i = 0; i < 400; i++) {
            const char *key = i < 300 ? waiting(i) : arena_printf(arena, "d/c/news-%zu", i - 300);
            bool news = i >= 300;
            static bool done[400];
            if (done[i] || reserve(key, news, now_ms) > now_ms)
                continue;
            done[i] = true;
            refresh_budget_release(budget, key);
            written++;
        }
        /* a second's worth at once at first, since nothing was written for long */
        ck_assert_uint_le(written, 11 + (size_t)(now_ms - NOW_MS) / 100);
    }
    ck_assert_uint_ge(written, 299);
}

/* Devices that always have something to refresh, for so long. A slot is never before one that was
 * given out earlier, so they come in the order in which they asked. Returns the refreshes. */
static int64_t refreshes(size_t devices, int64_t duration_ms)
{
    ck_assert_uint_gt(devices, 0);
    const char **keys = arena_array(arena, const char *, devices);
    int64_t *slots = arena_array(arena, int64_t, devices);
    int64_t count = 0;

    for (size_t i = 0; i < devices; i++) {
        keys[i] = arena_printf(arena, "d/c/%zu", i);
        slots[i] = reserve(keys[i], false, 0);
    }
    for (size_t i = 0; slots[i] < duration_ms; i = (i + 1) % devices) {
        int64_t now_ms = slots[i];
        slots[i] = reserve(keys[i], false, now_ms);
        if (slots[i] > now_ms) /* the one before used it up */
            continue;
        refresh_budget_release(budget, keys[i]);
        slots[i] = reserve(keys[i], false, now_ms);
        ck_assert_int_ge(slots[i], now_ms + limits.interval_ms);
        count++;
    }
    return count;
}

/* The budget is interval and rate, whichever is less; the first interval brings nothing. */
static const struct {
    size_t devices;
    int64_t duration_ms;
    int64_t interval_ms;
    double qps;
    int64_t least, most; /* refreshes */
} BUDGETS[] = {
    { 10000, 3600000, 60000, 10, 35000, 35400 }, /* each about every 17 minutes */
    { 100, 3600000, 60000, 10, 5800, 5900 },     /* each every minute */
    { 1, 3600000, 60000, 10, 59, 59 },           { 10, 3600000, 60000, 1, 590, 590 },
    { 1000, 61000, 1000, 300, 17900, 18000 },    { 2000, 61000, 1000, 1500, 89000, 90000 },
};

TEST_EACH(refreshes_keep_within_the_budget, BUDGETS)
{
    limits =
        (struct refresh_limits){ .interval_ms = BUDGETS[_i].interval_ms, .qps = BUDGETS[_i].qps };
    int64_t count = refreshes(BUDGETS[_i].devices, BUDGETS[_i].duration_ms);

    ck_assert_int_ge(count, BUDGETS[_i].least);
    ck_assert_int_le(count, BUDGETS[_i].most);
}

/* All of them change again and again, before it is their turn. */
TEST(who_is_written_for_another_reason_gives_the_slot_back)
{
    int64_t now_ms = NOW_MS;

    for (int round = 0; round < 50; round++, now_ms += 10000) {
        int64_t last_ms = 0;

        for (size_t i = 0; i < 1000; i++) {
            refresh_budget_release(budget, waiting(i));
            int64_t slot_ms = reserve(waiting(i), i % 3 == 0, now_ms);

            ck_assert_int_ge(slot_ms, now_ms + 60000);
            last_ms = slot_ms > last_ms ? slot_ms : last_ms;
        }
        ck_assert_int_le(last_ms, now_ms + 60000 + 1000 * 100 + 1000);
    }
}

TEST(refresh_that_becomes_news_gives_its_slot_back)
{
    int64_t slot;

    let_wait(1000);
    slot = reserve(KEY, false, NOW_MS);
    reserve(KEY, true, NOW_MS);
    ck_assert_int_eq(reserve("another", false, NOW_MS), slot);
}

TEST(news_that_keep_the_slot_of_a_refresh_give_theirs_back)
{
    reserve(KEY, false, NOW_MS);
    reserve(KEY, true, NOW_MS + 30000);
    ck_assert_int_eq(reserve("news", true, NOW_MS + 30000), NOW_MS + 90000);
}
