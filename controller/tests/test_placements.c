#include "controller/scheduler/placements.h"

#include <pthread.h>

#include "common/base/str.h"
#include "common/tests/suite.h"

static struct placements *placements;
static _Thread_local struct kube_name freed; /* by the last call that said so */

static void set_up(void)
{
    placements = placements_create();
}

static void tear_down(void)
{
    placements_destroy(placements);
}

TEST_GROUP("counts", set_up, tear_down);

static struct kube_name task(const char *name)
{
    struct kube_name ret;

    ck_assert(kube_name_set(&ret, "default", name));
    return ret;
}

static bool keep(const struct freed_list *list)
{
    freed = list->len ? list->items[0] : (struct kube_name){ 0 };
    return list->len > 0;
}

static bool note_placement(const char *name, const struct placement *placement)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct kube_name key = task(name);
    struct freed_list list = placements_note(placements, arena, &key, placement);

    return keep(&list);
}

static bool note(const char *name, const char *proplet, bool active, int64_t chosen_us)
{
    const struct placement placement = { .on.proplet = proplet,
                                         .active = active,
                                         .chosen_us = chosen_us };

    return note_placement(name, &placement);
}

static bool gone(const char *name)
{
    return note_placement(name, NULL);
}

static bool forget(const char *name)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct kube_name key = task(name);
    struct freed_list list = placements_forget(placements, arena, &key);

    return keep(&list);
}

static bool assume(uint64_t sequence, const char *name, const char *proplet, int64_t chosen_us)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct kube_name key = task(name);
    const struct placement placement = { .on.proplet = proplet,
                                         .active = true,
                                         .chosen_us = chosen_us };
    struct freed_list list;

    if (!placements_assume(placements, arena, sequence, &key, &placement, &list))
        return false;
    (void)keep(&list);
    return true;
}

static bool assume_now(const char *name, const char *proplet, int64_t chosen_us)
{
    return assume(placements_sequence(placements), name, proplet, chosen_us);
}

static void expect(const char *proplet, int64_t total, int64_t active)
{
    struct placement_count count = placements_count(placements, "default", proplet);

    ck_assert_int_eq(count.total, total);
    ck_assert_int_eq(count.active, active);
}

static void expect_device(const char *proplet, const char *client_id, int64_t total, int64_t active)
{
    struct placement_count count =
        placements_device_count(placements, "default", proplet, client_id);

    ck_assert_int_eq(count.total, total);
    ck_assert_int_eq(count.active, active);
}

static void expect_last(const char *proplet)
{
    char last[254];

    placements_last(placements, "default", last);
    ck_assert_str_eq(last, proplet);
}

TEST(task_counts_where_it_is_and_is_active_until_it_ends)
{
    expect("alpha", 0, 0);
    note("one", NULL, false, 0);
    expect("alpha", 0, 0);
    note("one", "alpha", true, 1);
    note("two", "alpha", true, 2);
    note("three", "beta", true, 3);
    expect("alpha", 2, 2);
    expect("beta", 1, 1);
    note("one", "alpha", false, 1);
    expect("alpha", 2, 1);
    gone("one");
    gone("two");
    expect("alpha", 0, 0);
    expect("beta", 1, 1);
}

TEST(task_noted_again_counts_once)
{
    for (int i = 0; i < 3; i++)
        note("one", "alpha", true, 1);
    expect("alpha", 1, 1);
    note("one", "beta", true, 2);
    expect("alpha", 0, 0);
    expect("beta", 1, 1);
}

TEST(namespaces_are_told_apart)
{
    note("one", "alpha", true, 1);
    ck_assert_int_eq(placements_count(placements, "other", "alpha").total, 0);

    char last[254];
    placements_last(placements, "other", last);
    ck_assert_str_eq(last, "");
}

/* What a Task was, what it becomes, and whether somebody else may have its capacity now. */
static const struct {
    struct placement before, after;
    bool freed;
} FREED[] = {
    { { .on.proplet = NULL }, { { "alpha", NULL }, true, 1, NULL, 0 }, false },
    { { { "alpha", NULL }, true, 1, NULL, 0 }, { { "alpha", NULL }, true, 1, NULL, 0 }, false },
    { { { "alpha", NULL }, true, 1, NULL, 0 }, { { "alpha", NULL }, false, 1, NULL, 0 }, true },
    { { { "alpha", NULL }, true, 1, NULL, 0 }, { { "beta", NULL }, true, 2, NULL, 0 }, true },
    { { { "alpha", NULL }, true, 1, NULL, 0 }, { .on.proplet = NULL }, true },
    /* scheduled without a Proplet */
    { { { "alpha", NULL }, true, 1, NULL, 0 }, { { NULL, NULL }, true, 1, NULL, 0 }, true },
    { { { "alpha", NULL }, false, 1, NULL, 0 }, { { "alpha", NULL }, false, 1, NULL, 0 }, false },
    { { { "alpha", NULL }, false, 1, NULL, 0 }, { .on.proplet = NULL }, false },
};

TEST_EACH(freed_capacity_is_told, FREED)
{
    note("one", FREED[_i].before.on.proplet, FREED[_i].before.active, FREED[_i].before.chosen_us);
    ck_assert_int_eq(
        note("one", FREED[_i].after.on.proplet, FREED[_i].after.active, FREED[_i].after.chosen_us),
        FREED[_i].freed);
}

TEST(deleted_task_frees_its_capacity_once)
{
    note("one", "alpha", true, 1);
    ck_assert(gone("one"));
    ck_assert(!gone("one"));
    note("two", "alpha", false, 1);
    ck_assert(!gone("two"));
}

static const struct placed ALL[] = { { "alpha", NULL }, { "beta", NULL }, { "gamma", NULL } };

static bool note_broadcast(const struct placed *targets, size_t count)
{
    const struct placement placement = {
        .active = true, .chosen_us = 1, .targets = targets, .target_count = count
    };

    return note_placement("all", &placement);
}

TEST(broadcast_counts_on_each_that_it_waits_for)
{
    ck_assert(!note_broadcast(ALL, 3));
    note("one", "beta", true, 1);
    expect("alpha", 1, 1);
    expect("beta", 2, 2);
    expect_last("beta"); /* a broadcast is no choice: the circle goes on from where it was */

    static const struct placed LEFT[] = { { "alpha", NULL }, { "gamma", NULL } };
    ck_assert(note_broadcast(LEFT, 2));
    ck_assert_str_eq(freed.name, "beta");
    expect("beta", 1, 1);
    expect("gamma", 1, 1);
    ck_assert(gone("all"));
    expect("alpha", 0, 0);
    expect("gamma", 0, 0);
}

TEST(device_has_its_own_count_beside_that_of_the_proplet)
{
    const struct placement first = { .on = { "alpha", "a-0" }, .active = true, .chosen_us = 1 };
    const struct placement second = { .on = { "alpha", "a-1" }, .active = false, .chosen_us = 2 };
    const struct placement moved = { .on = { "alpha", "a-1" }, .active = true, .chosen_us = 3 };

    note_placement("one", &first);
    note_placement("two", &second);
    expect("alpha", 2, 1);
    expect_device("alpha", "a-0", 1, 1);
    expect_device("alpha", "a-1", 1, 0);
    note_placement("one", &moved);
    expect("alpha", 2, 1);
    expect_device("alpha", "a-0", 0, 0);
    expect_device("alpha", "a-1", 2, 1);
    gone("one");
    gone("two");
    expect_device("alpha", "a-1", 0, 0);
}

TEST(broadcast_is_assumed_before_it_is_in_the_store)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct kube_name all = task("all");
    const struct placement placement = {
        .active = true, .chosen_us = 5, .targets = ALL, .target_count = 3
    };
    struct freed_list list;
    uint64_t sequence = placements_sequence(placements);

    ck_assert(placements_assume(placements, arena, sequence, &all, &placement, &list));
    ck_assert_uint_eq(list.len, 0);
    ck_assert(!assume(sequence, "one", "alpha", 6));
    note("all", NULL, false, 0);
    expect("alpha", 1, 1);
    list = placements_forget(placements, arena, &all);
    ck_assert_uint_eq(list.len, 3);
    expect("alpha", 0, 0);
}

TEST_GROUP("assumptions", set_up, tear_down);

TEST(choice_counts_before_it_is_in_the_store)
{
    ck_assert(assume_now("one", "alpha", 5));
    expect("alpha", 1, 1);
    expect_last("alpha");
    note("one", "alpha", true, 5);
    expect("alpha", 1, 1);
}

TEST(choice_on_outdated_counts_is_refused)
{
    uint64_t sequence = placements_sequence(placements);

    ck_assert(assume(sequence, "one", "alpha", 5));
    ck_assert(!assume(sequence, "two", "alpha", 6));
    expect("alpha", 1, 1);
    ck_assert(assume_now("two", "beta", 7));
}

TEST(news_of_an_earlier_choice_does_not_undo_a_later_one)
{
    note("one", NULL, false, 0);
    assume_now("one", "alpha", 5);
    ck_assert(!note("one", NULL, false, 0)); /* the store has not seen it yet */
    expect("alpha", 1, 1);
    ck_assert(!note("one", "beta", true, 4));
    expect("alpha", 1, 1);
    expect("beta", 0, 0);
}

TEST(choice_that_is_in_the_store_may_be_taken_back_there)
{
    assume_now("one", "alpha", 5);
    note("one", "alpha", true, 5);
    ck_assert(note("one", NULL, false, 0)); /* started over */
    expect("alpha", 0, 0);
}

TEST(what_frees_room_says_on_which_proplet)
{
    ck_assert(assume_now("one", "alpha", 5));
    ck_assert_str_eq(freed.name, "");
    ck_assert(assume_now("one", "beta", 6)); /* chosen anew, without a word between */
    ck_assert_str_eq(freed.ns, "default");
    ck_assert_str_eq(freed.name, "alpha");
    ck_assert(forget("one"));
    ck_assert_str_eq(freed.name, "beta");
    note("one", "alpha", true, 7);
    ck_assert(note("one", "alpha", false, 7));
    ck_assert_str_eq(freed.name, "alpha");
    ck_assert(!gone("one"));
}

TEST(choice_that_was_not_written_counts_nowhere)
{
    assume_now("one", "alpha", 5);
    forget("one");
    expect("alpha", 0, 0);
    note("one", NULL, false, 0);
    expect("alpha", 0, 0);
    ck_assert(assume_now("one", "beta", 6));
    expect("beta", 1, 1);
}

TEST(deleted_task_takes_its_assumption_along)
{
    assume_now("one", "alpha", 5);
    ck_assert(gone("one"));
    expect("alpha", 0, 0);
}

TEST_GROUP("counts", set_up, tear_down);

TEST(last_selected_is_the_newest_choice_whatever_order_they_come_in)
{
    expect_last("");
    note("two", "beta", true, 20);
    note("one", "alpha", true, 10);
    expect_last("beta");
    note("three", "gamma", false, 30);
    expect_last("gamma");
    gone("three"); /* the circle goes on after it all the same */
    expect_last("gamma");
    assume_now("four", "delta", 40);
    expect_last("delta");
    assume_now("five", "alpha", 35); /* another worker, which read the time before */
    expect_last("alpha");
    note("four", "delta", true, 40);
    expect_last("alpha");
}

TEST(proplet_name_that_is_too_long_counts_nowhere)
{
    char name[300] = "";

    memset(name, 'a', 299);
    note("one", name, true, 1);
    expect(name, 0, 0);
    expect_last("");
}

#define THREADS 4
#define CHOICES 2000

static const char *const PROPLETS[] = {
    "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9"
};

/* A worker that always chooses the Proplet with the fewest Tasks, as the scheduler does. */
static void *choose(void *ctx)
{
    const char *worker = ctx;

    for (int i = 0; i < CHOICES; i++) {
        const char *best = NULL;
        char name[32];
        uint64_t sequence;

        snprintf(name, sizeof(name), "%s-%d", worker, i);
        do {
            int64_t fewest = INT64_MAX;

            sequence = placements_sequence(placements);
            for (size_t p = 0; p < ARRAY_LEN(PROPLETS); p++) {
                int64_t active = placements_count(placements, "default", PROPLETS[p]).active;
                if (active < fewest) {
                    fewest = active;
                    best = PROPLETS[p];
                }
            }
        } while (!assume(sequence, name, best, i + 1));
        note(name, best, true, i + 1);
    }
    return NULL;
}

TEST_GROUP("assumptions", set_up, tear_down);

TEST(workers_that_choose_at_once_spread_evenly)
{
    static const char *const WORKERS[THREADS] = { "a", "b", "c", "d" };
    pthread_t threads[THREADS];

    for (size_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, choose, (void *)WORKERS[i]), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);

    for (size_t p = 0; p < ARRAY_LEN(PROPLETS); p++)
        expect(PROPLETS[p], THREADS * CHOICES / 10, THREADS * CHOICES / 10);
}
