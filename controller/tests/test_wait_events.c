/* Which waiting Tasks get an Event: after a time, once for each reason, and within the rate. */
#include "controller/task/wait_events.h"

#include "common/base/arena.h"
#include "common/tests/suite.h"

#define BEGIN_MS INT64_C(1000000)

static struct arena *arena;
static struct wait_events *events;
static bool early; /* of the last note */

static void set_up(void)
{
    arena = arena_create();
    events = wait_events_create();
}

static void tear_down(void)
{
    wait_events_destroy(events);
    arena_destroy(arena);
}

TEST_GROUP("wait_events", set_up, tear_down);

/* After so many seconds. */
static void note(const char *uid, enum reason reason, int64_t seconds)
{
    early = wait_events_note(events, uid, reason, BEGIN_MS + seconds * 1000);
}

/* "a:NoProplet b:NoProplet; 290000": what is taken after so many seconds, and when to look again. */
static const char *take(int64_t seconds)
{
    struct wait_event due[WAIT_EVENTS_PER_SECOND];
    uint32_t next_ms;
    size_t len = wait_events_take(events, BEGIN_MS + seconds * 1000, due, &next_ms);
    const char *text = "";

    for (size_t i = 0; i < len; i++)
        text = arena_printf(arena, "%s%s:%s ", text, due[i].uid, reason_text(due[i].reason));
    return arena_printf(arena, "%s%u", text, (unsigned)next_ms);
}

TEST(task_gets_one_event_after_ten_seconds)
{
    note("a", REASON_NO_PROPLET, 0);
    ck_assert(early);
    note("a", REASON_NO_PROPLET, 9);
    ck_assert(!early); /* it is announced already */
    ck_assert_str_eq(take(9), "1000");
    ck_assert_str_eq(take(10), "a:NoProplet 0");
    note("a", REASON_NO_PROPLET, 11);
    ck_assert(!early);
    ck_assert_str_eq(take(1000), "0");
}

TEST(another_reason_begins_the_time_again)
{
    note("a", REASON_NO_PROPLET, 0);
    note("a", REASON_NO_CANDIDATES, 9);
    ck_assert_str_eq(take(10), "9000");
    ck_assert_str_eq(take(18), "1000");
    ck_assert_str_eq(take(19), "a:NoCandidates 0");
}

TEST(another_reason_has_its_event_five_minutes_after_the_last_one)
{
    note("a", REASON_NO_PROPLET, 0);
    ck_assert_str_eq(take(10), "a:NoProplet 0");
    note("a", REASON_NO_CANDIDATES, 20);
    ck_assert(early);
    ck_assert_str_eq(take(309), "1000");
    ck_assert_str_eq(take(310), "a:NoCandidates 0");
}

/* It got a Proplet in between, and lost it: the pause is kept all the same. */
TEST(task_that_did_not_wait_for_a_while_keeps_its_pause)
{
    note("a", REASON_NO_CAPACITY, 0);
    ck_assert_str_eq(take(10), "a:InsufficientCapacity 0");
    note("a", REASON_NONE, 20);
    ck_assert(!early);
    note("a", REASON_NO_PROPLET, 30);
    ck_assert_str_eq(take(30), "280000");
    note("a", REASON_NONE, 400);
    ck_assert_str_eq(take(400), "0");
    note("a", REASON_NO_CAPACITY, 500); /* nothing is known of it any more */
    ck_assert_str_eq(take(510), "a:InsufficientCapacity 0");
}

TEST(forgotten_task_begins_again)
{
    note("a", REASON_NO_CAPACITY, 0);
    ck_assert_str_eq(take(10), "a:InsufficientCapacity 0");
    wait_events_forget(events, "a");
    wait_events_forget(events, "a");
    note("a", REASON_NO_CAPACITY, 11);
    ck_assert_str_eq(take(21), "a:InsufficientCapacity 0");
}

static void note_all(unsigned tasks, enum reason reason, int64_t seconds)
{
    for (unsigned i = 0; i < tasks; i++)
        note(arena_printf(arena, "%u", i), reason, seconds);
}

TEST(all_tasks_together_have_five_events_a_second_the_longest_due_first)
{
    note("first", REASON_NO_PROPLET, 0);
    note_all(11, REASON_NO_CAPACITY, 1);
    size_t taken[] = { 5, 5, 2, 0 };

    for (size_t i = 0; i < ARRAY_LEN(taken); i++) {
        struct wait_event due[WAIT_EVENTS_PER_SECOND];
        uint32_t next_ms;
        int64_t now_ms = BEGIN_MS + 11000 + (int64_t)i * 1000;
        ck_assert_uint_eq(wait_events_take(events, now_ms, due, &next_ms), taken[i]);
        ck_assert_uint_eq(next_ms, i < 2 ? 1000 / WAIT_EVENTS_PER_SECOND : 0);
        if (i == 0)
            ck_assert_str_eq(due[0].uid, "first");
        ck_assert_uint_eq(wait_events_take(events, now_ms + 100, due, &next_ms), 0);
    }
}

TEST(tasks_beyond_the_limit_are_not_followed_until_others_go)
{
    note_all(WAIT_EVENTS_TASKS, REASON_NO_CAPACITY, 0);
    note("last", REASON_NO_CAPACITY, 0);
    ck_assert_str_eq(take(0), "10000");
    note("0", REASON_NONE, 5);
    note("last", REASON_NO_CAPACITY, 6);
    ck_assert_str_eq(take(6), "4000");
}

/* Returns when the last Event was taken. */
static int64_t take_all(int64_t second)
{
    while (*take(second) != '0')
        second++;
    return second;
}

/* They stay known for the time of their pause, although they do not wait, and make room then. */
TEST(table_full_of_pauses_makes_room_when_they_are_over)
{
    note_all(WAIT_EVENTS_TASKS, REASON_NO_CAPACITY, 0);
    int64_t second = take_all(10);
    note_all(WAIT_EVENTS_TASKS, REASON_NONE, second); /* the pauses of the first ones are over */
    for (unsigned i = 0; i < WAIT_EVENTS_TASKS; i++)
        note(arena_printf(arena, "more-%u", i), REASON_NO_CAPACITY, second);
    second = take_all(second + 10);
    note("end", REASON_NO_CAPACITY, second);
    ck_assert(early);
}
