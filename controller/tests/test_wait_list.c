#include "controller/scheduler/wait_list.h"

#include <pthread.h>

#include "common/base/str.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

#define MINUTE_US (60 * INT64_C(1000000))
#define ANY "{\"spec\":{}}"
#define OF_TYPE(type)                                                                              \
    "{\"spec\":{\"propletSelector\":{\"matchDeviceTypes\":[\"" type "\"]},\"file\":\"x\"}}"

static struct arena *arena;
static struct wait_list *list;
static struct proplet proplet;
static struct proplet_external external;
static struct candidate alpha; /* ready, of type "a", with room for two */
static struct wait_release release;
static const struct wait_told TOLD = { { REASON_NO_CAPACITY, "the only Proplet does not fit" }, 7 };

static void set_up(void)
{
    json_init();
    arena = arena_create();
    list = wait_list_create();
    external = (struct proplet_external){ .device_type = "a", .max_tasks = { true, 2 } };
    proplet = (struct proplet){ .spec = { .type = PROPLET_EXTERNAL, .external = &external } };
    alpha = (struct candidate){ .name = "alpha", .proplet = &proplet, .ready = true };
}

static void tear_down(void)
{
    wait_list_destroy(list);
    arena_destroy(arena);
}

TEST_GROUP("wait_list", set_up, tear_down);

static struct kube_name name_of(const char *ns, const char *name)
{
    struct kube_name ret;

    ck_assert(kube_name_set(&ret, ns, name));
    return ret;
}

static bool enter_as_of(uint64_t sequence, const char *name, const char *task, int64_t rank)
{
    const struct kube_name key = name_of("ns", name);
    const struct wait_seeker seeker = { &key, parsed(arena, task), rank, 0 };

    return wait_list_enter(list, &seeker, &TOLD, sequence, &release);
}

static void enter(const char *name, const char *task, int64_t rank)
{
    ck_assert(enter_as_of(wait_list_sequence(list), name, task, rank));
}

static void leave(const char *name)
{
    const struct kube_name key = name_of("ns", name);

    wait_list_leave(list, &key, &release);
}

/* The names, with a blank behind each. */
static const char *call_except(uint64_t except)
{
    struct kube_name *called;
    size_t len = wait_list_call(list, arena, "ns", &alpha, except, &called);
    const char *text = "";

    for (size_t i = 0; i < len; i++) {
        ck_assert_str_eq(called[i].ns, "ns");
        text = arena_printf(arena, "%s%s ", text, called[i].name);
    }
    return text;
}

static const char *call(void)
{
    return call_except(0);
}

static int64_t kept_for_others(const char *name)
{
    const struct kube_name key = name_of("ns", name);

    return wait_list_kept(list, "alpha", &key);
}

TEST(call_where_nobody_waits_is_not_missed_by_whoever_is_about_to)
{
    uint64_t sequence = wait_list_sequence(list);

    ck_assert(wait_list_call_nobody(list, "ns"));
    ck_assert(!enter_as_of(sequence, "one", ANY, 1));

    enter("one", ANY, 1);
    sequence = wait_list_sequence(list);
    ck_assert(!wait_list_call_nobody(list, "ns"));
    ck_assert_uint_eq(wait_list_sequence(list), sequence);
    ck_assert(wait_list_call_nobody(list, "other"));
}

TEST(lowest_rank_is_called_first_and_no_more_than_there_is_room_for)
{
    enter("c", ANY, 30);
    enter("a", ANY, 20);
    enter("b", ANY, 10);
    enter("d", ANY, 5);
    ck_assert_uint_eq(wait_list_len(list, "ns"), 4);
    ck_assert_str_eq(call(), "d b ");
    ck_assert_uint_eq(wait_list_len(list, "ns"), 2);
    ck_assert_str_eq(call(), ""); /* both places are kept */
}

TEST(microcontroller_calls_who_it_can_run_whoever_is_before)
{
    external.dialect = DIALECT_EMBEDDED;
    enter("a", "{\"spec\":{\"inputs\":[-1]}}", 1);
    enter("b", "{\"spec\":{\"inputs\":[\"x\"]}}", 2);
    enter("c", "{\"spec\":{\"inputs\":[1]}}", 3);
    ck_assert_str_eq(call(), "c ");
    external.dialect = DIALECT_STANDARD;
    ck_assert_str_eq(call(), "a ");
}

TEST(equal_ranks_are_called_in_the_order_of_their_names)
{
    external.max_tasks.set = false;
    enter("c", ANY, 1);
    enter("a", OF_TYPE("a"), 1);
    enter("b", ANY, 1);
    ck_assert_str_eq(call(), "a b c ");
}

TEST(tasks_that_the_proplet_does_not_fit_are_passed_over)
{
    enter("first", OF_TYPE("b"), 1);
    enter("second", OF_TYPE("a"), 2);
    enter("third", ANY, 3);
    alpha.active = 1;
    ck_assert_str_eq(call(), "second ");
    alpha.active = 0;
    alpha.ready = false;
    ck_assert_str_eq(call(), "");
    alpha.ready = true;
    ck_assert_str_eq(call(), "third ");
    ck_assert_uint_eq(wait_list_len(list, "ns"), 1);
}

TEST(place_is_kept_against_others_and_not_against_who_was_called)
{
    enter("one", ANY, 1);
    enter("two", ANY, 2);
    ck_assert_str_eq(call(), "one two ");
    ck_assert_int_eq(kept_for_others("one"), 1);
    ck_assert_int_eq(kept_for_others("two"), 1);
    ck_assert_int_eq(kept_for_others("three"), 2);
    leave("one");
    ck_assert(release.any);
    ck_assert_str_eq(release.proplet.ns, "ns");
    ck_assert_str_eq(release.proplet.name, "alpha");
    ck_assert_int_eq(kept_for_others("three"), 1);
    ck_assert_int_eq(kept_for_others("two"), 0);
}

TEST(who_only_waited_releases_nothing)
{
    enter("one", ANY, 1);
    leave("one");
    ck_assert(!release.any);
    leave("never there");
    ck_assert(!release.any);
    ck_assert_str_eq(call(), "");
    ck_assert_uint_eq(wait_list_len(list, "ns"), 0);
}

TEST(who_looked_before_a_call_has_to_look_again)
{
    uint64_t before = wait_list_sequence(list);

    ck_assert_str_eq(call(), ""); /* for nobody, and so for nobody who was about to enter */
    ck_assert(!enter_as_of(before, "one", ANY, 1));
    ck_assert_uint_eq(wait_list_len(list, "ns"), 0);
    enter("one", ANY, 1);
    ck_assert_str_eq(call(), "one ");
}

TEST(place_that_is_kept_stays_so_as_long_as_its_task_may_not_enter)
{
    enter("one", ANY, 1);
    ck_assert_str_eq(call(), "one ");
    uint64_t before = wait_list_sequence(list);
    (void)call();
    ck_assert(!enter_as_of(before, "one", ANY, 1));
    ck_assert(!release.any);
    ck_assert_int_eq(kept_for_others("two"), 1);
}

/* What does not fit the one who was called fits none of its group, and they are not asked. */
TEST(who_enters_again_gives_its_place_to_another_group)
{
    external.max_tasks.value = 1;
    enter("a1", OF_TYPE("a"), 1);
    enter("a2", OF_TYPE("a"), 2);
    enter("any", ANY, 3);
    ck_assert_str_eq(call(), "a1 ");
    enter("a1", OF_TYPE("a"), 1);
    ck_assert(release.any);
    ck_assert_str_eq(call_except(release.group), "any ");
}

static bool join(const char *name, const char *task, int64_t rank, uint64_t version)
{
    const struct kube_name key = name_of("ns", name);
    const struct wait_seeker seeker = { &key, parsed(arena, task), rank, 0 };
    struct schedule_refusal refusal;

    if (!wait_list_join(list, &seeker, version, arena, &refusal))
        return false;
    ck_assert_int_eq(refusal.reason, TOLD.refusal.reason);
    ck_assert_str_eq(refusal.message, TOLD.refusal.message);
    return true;
}

TEST(who_wants_what_others_wait_for_joins_them_without_looking)
{
    external.max_tasks.value = 1;
    ck_assert(!join("b", ANY, 2, TOLD.version)); /* nobody waits */
    enter("b", ANY, 2);
    ck_assert(!join("b", ANY, 2, TOLD.version));     /* nobody else */
    ck_assert(!join("a", ANY, 1, TOLD.version + 1)); /* the Proplets are not what they were */
    ck_assert(!join("a", OF_TYPE("a"), 1, TOLD.version));
    ck_assert(join("a", ANY, 1, TOLD.version));
    ck_assert_uint_eq(wait_list_len(list, "ns"), 2);
    ck_assert(join("b", ANY, 3, TOLD.version)); /* again, with another rank */
    ck_assert_uint_eq(wait_list_len(list, "ns"), 2);
    ck_assert_str_eq(call(), "a ");
}

/* The larger of its deadline and one second more than the longest attempt that was cut. */
#define NEED(deadline, cut)                                                                        \
    "{\"spec\":{\"activeDeadlineSeconds\":" deadline "},\"status\":{\"cutAfterSeconds\":" cut "}}"

TEST(task_that_needs_the_same_time_joins_whatever_it_needs_it_for)
{
    enter("a", NEED("60", "7"), 1);
    ck_assert(join("b", NEED("60", "8"), 2, TOLD.version));
    ck_assert(join("c", NEED("7", "59"), 3, TOLD.version));
    ck_assert(join("d", "{\"spec\":{\"activeDeadlineSeconds\":60}}", 4, TOLD.version));
    ck_assert(!join("e", NEED("60", "60"), 5, TOLD.version));
    ck_assert(!join("f", ANY, 6, TOLD.version));
}

/* It closes in 60 s: what needs more is passed over, also if it is first. */
TEST(task_that_needs_more_time_is_passed_over)
{
    enter("a", NEED("61", "1"), 1);
    enter("b", NEED("60", "1"), 2);
    enter("c", ANY, 3);
    alpha.now_us = MINUTE_US;
    alpha.close_us = 2 * MINUTE_US;
    ck_assert_str_eq(call(), "b c ");
}

TEST(who_is_called_looks_at_its_place_and_does_not_join)
{
    const struct kube_name a = name_of("ns", "a");
    const struct kube_name b = name_of("ns", "b");
    struct kube_name on;

    external.max_tasks.value = 1;
    enter("a", ANY, 1);
    enter("b", ANY, 2);
    ck_assert(!wait_list_called(list, &a, &on));
    ck_assert_str_eq(call(), "a ");
    ck_assert(!join("a", ANY, 1, TOLD.version));
    ck_assert(wait_list_called(list, &a, &on));
    ck_assert_str_eq(on.ns, "ns");
    ck_assert_str_eq(on.name, "alpha");
    ck_assert(!wait_list_called(list, &b, &on));
}

TEST(who_waited_before_this_process_is_called_and_joined_by_nobody)
{
    const struct kube_name old = name_of("ns", "old");
    const struct wait_seeker seeker = { &old, parsed(arena, ANY), 1, 0 };

    ck_assert(wait_list_enter(list, &seeker, NULL, wait_list_sequence(list), &release));
    ck_assert(!join("new", ANY, 2, 0));
    ck_assert_str_eq(call(), "old ");
}

#define PINNED(proplet) "{\"spec\":{\"propletSelector\":{\"propletId\":\"" proplet "\"}}}"

TEST(who_is_pinned_is_called_in_its_turn_and_only_where_it_is_pinned_to)
{
    enter("elsewhere", PINNED("beta"), 1);
    enter("third", ANY, 4);
    enter("second", PINNED("alpha"), 3);
    enter("first", ANY, 2);
    external.max_tasks.value = 3;
    ck_assert_str_eq(call(), "first second third ");
    leave("second");
    ck_assert_uint_eq(wait_list_len(list, "ns"), 1);
}

TEST(changed_wishes_and_ranks_count_from_the_next_entry)
{
    external.max_tasks.value = 1;
    enter("one", OF_TYPE("b"), 1);
    enter("two", ANY, 5);
    enter("one", ANY, 9);
    ck_assert_uint_eq(wait_list_len(list, "ns"), 2);
    ck_assert_str_eq(call(), "two ");
    leave("two");
    ck_assert_str_eq(call(), "one ");
}

TEST(namespaces_do_not_know_each_other)
{
    const struct kube_name other = name_of("other", "one");
    struct kube_name *called;

    const struct wait_seeker seeker = { &other, parsed(arena, ANY), 1, 0 };
    ck_assert(wait_list_enter(list, &seeker, &TOLD, wait_list_sequence(list), &release));
    ck_assert_str_eq(call(), "");
    ck_assert_uint_eq(wait_list_len(list, "ns"), 0);
    ck_assert_uint_eq(wait_list_call(list, arena, "other", &alpha, 0, &called), 1);
    ck_assert_int_eq(kept_for_others("one"), 0); /* of ns/alpha */
}

TEST(the_oldest_is_the_one_that_waits_longest_whatever_its_rank)
{
    struct kube_name names[] = { name_of("ns", "one"), name_of("other", "two") };
    const struct wait_seeker seekers[] = { { &names[0], parsed(arena, ANY), 1, 900 },
                                           { &names[1], parsed(arena, ANY), 2, 300 } };

    ck_assert_int_eq(wait_list_oldest_us(list), 0);
    for (size_t i = 0; i < ARRAY_LEN(seekers); i++)
        ck_assert(wait_list_enter(list, &seekers[i], &TOLD, wait_list_sequence(list), &release));
    ck_assert_int_eq(wait_list_oldest_us(list), 300);
    wait_list_leave(list, &names[1], &release);
    ck_assert_int_eq(wait_list_oldest_us(list), 900);
}

TEST(proplet_without_a_limit_calls_all_in_some_calls)
{
    enum { TASKS = 1000 };
    size_t count = 0;

    external.max_tasks.set = false;
    for (int i = 0; i < TASKS; i++)
        enter(arena_printf(arena, "t-%d", i), ANY, i);
    for (int i = 0; wait_list_len(list, "ns"); i++) {
        struct kube_name *called;
        ck_assert_int_lt(i, 10);
        count += wait_list_call(list, arena, "ns", &alpha, 0, &called);
    }
    ck_assert_uint_eq(count, TASKS);
}

TEST(age_outweighs_priority_in_the_end)
{
    int64_t lowest = wait_rank(0, 0);

    ck_assert(wait_rank(0, 1) < lowest);
    ck_assert(wait_rank(49 * MINUTE_US, 100) < lowest);
    ck_assert(wait_rank(51 * MINUTE_US, 100) > lowest);
    ck_assert(wait_rank(1, 50) > wait_rank(0, 50));
}

/* A stream of the highest priority, one a minute, and room for one a minute. */
TEST(lowest_priority_does_not_starve)
{
    external.max_tasks.value = 1;
    enter("low", ANY, wait_rank(0, 0));
    for (int minute = 1;; minute++) {
        ck_assert_int_le(minute, 60);
        const char *high = arena_printf(arena, "high-%d", minute);
        enter(high, ANY, wait_rank(minute * MINUTE_US, 100));
        const char *called = call();
        if (str_equal(called, "low "))
            break;
        ck_assert_str_eq(called, arena_printf(arena, "%s ", high));
        leave(high);
    }
}

/* Every Task is called once, whoever enters, leaves and calls meanwhile. */

#define THREADS 4
#define TASKS_EACH 500

static void *work(void *arg)
{
    const char *prefix = arg;
    CLEANUP(arena_destroyp) struct arena *own = arena_create();
    struct wait_release ignored;
    struct kube_name *called;

    for (int i = 0; i < TASKS_EACH; i++) {
        const struct kube_name key = name_of("ns", arena_printf(own, "%s-%d", prefix, i));
        const struct wait_seeker seeker = { &key, parsed(own, ANY), i, 0 };
        struct schedule_refusal said;
        while (!wait_list_join(list, &seeker, TOLD.version, own, &said) &&
               !wait_list_enter(list, &seeker, &TOLD, wait_list_sequence(list), &ignored))
            ;
        size_t len = wait_list_call(list, own, "ns", &alpha, 0, &called);
        for (size_t j = 0; j < len; j++)
            wait_list_leave(list, &called[j], &ignored);
    }
    return NULL;
}

TEST(threads_that_enter_and_call_at_once_lose_nobody)
{
    static char names[THREADS][2] = { "a", "b", "c", "d" };
    pthread_t threads[THREADS];

    for (size_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, names[i]), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(kept_for_others("nobody"), 0);
    while (wait_list_len(list, "ns")) {
        struct kube_name *called;
        size_t len = wait_list_call(list, arena, "ns", &alpha, 0, &called);
        ck_assert_uint_gt(len, 0);
        for (size_t i = 0; i < len; i++)
            leave(called[i].name);
    }
}
