#include "bench/fleet/ledger.h"
#include "common/base/arena.h"
#include "common/tests/random.h"
#include "common/tests/suite.h"

static struct ledger *ledger;
static struct arena *arena;
static uint32_t run;

static void set_up(void)
{
    ledger = ledger_create(100000);
    arena = arena_create();
}

static void tear_down(void)
{
    ledger_destroy(ledger);
    arena_destroy(arena);
}

TEST_GROUP("ledger", set_up, tear_down);

TEST(id_that_runs_is_ignored_and_a_finished_one_runs_again)
{
    ck_assert_int_eq(ledger_start(ledger, "a", 1, &run), LEDGER_RUN);
    ck_assert_int_eq(ledger_start(ledger, "a", 1, &run), LEDGER_IGNORE);
    ck_assert(ledger_runs(ledger, "a", run));
    ck_assert(ledger_finish(ledger, "a", false));
    ck_assert(!ledger_finish(ledger, "a", false));
    ck_assert(!ledger_runs(ledger, "a", run));
    uint32_t first = run;
    ck_assert_int_eq(ledger_start(ledger, "a", 1, &run), LEDGER_RUN);
    ck_assert(!ledger_runs(ledger, "a", first));

    struct ledger_counts counts = ledger_counts(ledger);
    ck_assert_uint_eq(counts.starts, 3);
    ck_assert_uint_eq(counts.ids, 1);
    ck_assert_uint_eq(counts.ignored, 1);
    ck_assert_uint_eq(counts.repeated, 1);
    ck_assert_uint_eq(counts.running, 1);
    ck_assert_uint_eq(counts.elsewhere, 0);
}

TEST(id_on_a_second_device_is_told)
{
    ck_assert_int_eq(ledger_start(ledger, "a", 1, &run), LEDGER_RUN);
    ck_assert_int_eq(ledger_start(ledger, "a", 2, &run), LEDGER_IGNORE);
    ck_assert_uint_eq(ledger_counts(ledger).elsewhere, 1);
    ck_assert(ledger_finish(ledger, "a", false));
    ck_assert_int_eq(ledger_start(ledger, "a", 2, &run), LEDGER_RUN);
    ck_assert_uint_eq(ledger_counts(ledger).elsewhere, 2);
    ck_assert_uint_eq(ledger_counts(ledger).repeated, 0);
}

TEST(second_answer_of_an_id_counts_as_an_answer_only)
{
    ck_assert_int_eq(ledger_start(ledger, "a", 1, &run), LEDGER_RUN);
    ledger_answer(ledger, "a");
    ledger_answer(ledger, "a");
    ledger_answer(ledger, "nobody asked");
    ck_assert_uint_eq(ledger_counts(ledger).answered, 1);
    ck_assert_uint_eq(ledger_counts(ledger).answers, 3);
}

TEST(lost_start_does_not_run_and_may_come_again)
{
    ck_assert_int_eq(ledger_start(ledger, "a", 1, &run), LEDGER_RUN);
    ledger_lose(ledger, "a");
    ck_assert(!ledger_runs(ledger, "a", run));
    ck_assert_int_eq(ledger_start(ledger, "a", 1, &run), LEDGER_RUN);
    ck_assert_uint_eq(run, 2);
    ck_assert_uint_eq(ledger_counts(ledger).lost, 1);
}

TEST(no_more_ids_than_allowed_and_the_known_ones_go_on)
{
    struct ledger *small = ledger_create(2);

    ck_assert_int_eq(ledger_start(small, "a", 1, &run), LEDGER_RUN);
    ck_assert_int_eq(ledger_start(small, "b", 1, &run), LEDGER_RUN);
    ck_assert_int_eq(ledger_start(small, "c", 1, &run), LEDGER_FULL);
    ck_assert_uint_eq(ledger_counts(small).starts, 2);
    ck_assert(ledger_finish(small, "a", true));
    ck_assert_int_eq(ledger_start(small, "a", 1, &run), LEDGER_RUN);
    ck_assert_uint_eq(ledger_counts(small).stopped, 1);
    ledger_destroy(small);
}

/* Against a plain array, through several growths. */
TEST(same_as_an_array_that_is_searched)
{
    enum { IDS = 3000 };
    static struct {
        uint32_t device;
        bool known, running;
    } model[IDS];
    uint64_t random = 7;

    for (int step = 0; step < 20000; step++) {
        size_t i = random_below(&random, IDS);
        uint32_t device = 1 + (uint32_t)random_below(&random, 3);
        const char *id = arena_printf(arena, "id-%zu", i);
        if (random_below(&random, 3) == 0) {
            ck_assert_int_eq(ledger_finish(ledger, id, false), model[i].running);
            model[i].running = false;
            continue;
        }
        ck_assert_int_eq(ledger_start(ledger, id, device, &run),
                         model[i].running ? LEDGER_IGNORE : LEDGER_RUN);
        model[i].known = model[i].running = true;
    }

    uint64_t known = 0;
    uint64_t running = 0;
    for (size_t i = 0; i < IDS; i++) {
        known += model[i].known;
        running += model[i].running;
    }
    ck_assert_uint_eq(ledger_counts(ledger).ids, known);
    ck_assert_uint_eq(ledger_counts(ledger).running, running);
}
