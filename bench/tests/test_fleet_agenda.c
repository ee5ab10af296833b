#include "bench/fleet/agenda.h"

#include <stdlib.h>

#include "common/base/alloc.h"
#include "common/tests/random.h"
#include "common/tests/suite.h"

static struct agenda *agenda;

static void set_up(void)
{
    agenda = agenda_create();
}

static void tear_down(void)
{
    agenda_destroy(agenda);
}

TEST_GROUP("agenda", set_up, tear_down);

static void add(int64_t at_ms, uint32_t device)
{
    agenda_add(agenda, (struct due){ .at_ms = at_ms, .device = device, .id = xstrdup("id") });
}

static uint32_t take(int64_t now_ms)
{
    struct due due;

    if (!agenda_take(agenda, now_ms, &due))
        return 0;
    free(due.id);
    return due.device;
}

TEST(nothing_comes_before_its_time)
{
    ck_assert_int_eq(agenda_next_ms(agenda), INT64_MAX);
    add(10, 1);
    ck_assert_int_eq(agenda_next_ms(agenda), 10);
    ck_assert_uint_eq(take(9), 0);
    ck_assert_uint_eq(take(10), 1);
    ck_assert_uint_eq(take(10), 0);
}

TEST(what_is_due_at_one_time_comes_in_the_order_of_adding)
{
    for (uint32_t i = 1; i <= 100; i++)
        add(5, i);
    for (uint32_t i = 1; i <= 100; i++)
        ck_assert_uint_eq(take(5), i);
}

TEST(earlier_times_come_first_whatever_the_order_of_adding)
{
    enum { ITEMS = 5000 };
    uint64_t random = 3;
    int64_t last_ms = 0;

    for (uint32_t i = 1; i <= ITEMS; i++)
        add((int64_t)random_below(&random, 1000), i);
    for (size_t i = 0; i < ITEMS; i++) {
        ck_assert_int_ge(agenda_next_ms(agenda), last_ms);
        last_ms = agenda_next_ms(agenda);
        ck_assert_uint_ne(take(INT64_MAX), 0);
    }
    ck_assert_uint_eq(agenda_len(agenda), 0);
}
