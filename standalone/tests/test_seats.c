/* Seats of requests: who may begin, and in which order. No times: a request that came either has a seat or waits. */
#include <check.h>
#include <poll.h>
#include <pthread.h>

#include "common/base/compiler.h"
#include "common/tests/suite.h"
#include "standalone/server/seats.h"

#define ROOM 1000u
#define HALF (ROOM / 2)
#define SMALL 10u

static struct seats seats;

struct guest {
    const char *who;
    enum seat_use use;
    struct arena *arena; /* of the request */
    struct seat *seat;
    pthread_t thread;
    bool is_let_in;
};

static struct seat *join(struct guest *guest)
{
    static uint64_t last_id;

    guest->arena = arena_create();
    return guest->seat = seat_join(&seats, guest->arena, ++last_id, guest->who);
}

static void *take(void *data)
{
    struct guest *guest = data;

    guest->is_let_in = seat_take(guest->seat, guest->use);
    return NULL;
}

static enum seat_state state_of(const struct guest *guest)
{
    pthread_mutex_lock(&seats.lock);

    enum seat_state state = guest->seat->state;

    pthread_mutex_unlock(&seats.lock);
    return state;
}

/* When it returns the guest has a seat, or waits for one. */
static void come(struct guest *guest)
{
    ck_assert_ptr_nonnull(join(guest));
    ck_assert_int_eq(pthread_create(&guest->thread, NULL, take, guest), 0);
    while (state_of(guest) == SEAT_NONE)
        poll(NULL, 0, 1);
}

static bool is_in_work(const struct guest *guest)
{
    return state_of(guest) == SEAT_WORKS;
}

static size_t count_in_work(const struct guest *guests, size_t len)
{
    size_t count = 0;

    for (size_t i = 0; i < len; i++)
        count += is_in_work(&guests[i]);
    return count;
}

/* Its answer is made, and not sent yet. */
static void answer(struct guest *guest, size_t len)
{
    ck_assert(is_in_work(guest));
    ck_assert_int_eq(pthread_join(guest->thread, NULL), 0);
    ck_assert(guest->is_let_in);
    seat_leave(guest->seat, len);
}

static void leave(struct guest *guest)
{
    answer(guest, 0);
    arena_destroy(guest->arena);
}

/* In any order in which they may. */
static void all_leave(struct guest *guests, size_t len)
{
    bool has_left[64] = { 0 };

    ck_assert_uint_le(len, ARRAY_LEN(has_left));
    for (size_t left = 0; left < len;) {
        size_t before = left;

        for (size_t i = 0; i < len; i++) {
            if (has_left[i] || !is_in_work(&guests[i]))
                continue;
            leave(&guests[i]);
            has_left[i] = true;
            left++;
        }
        ck_assert_uint_gt(left, before); /* a free seat is given to a request that waits */
    }
}

static void set_up(void)
{
    seats = (struct seats){ .max_requests = 50, .max_answers = ROOM, .small_answer = SMALL };
    seats_init(&seats);
}

static void tear_down(void)
{
    seats_release(&seats);
}

TEST_GROUP("all", set_up, tear_down);

TEST(long_requests_of_many_users_leave_the_other_seats_to_short_ones)
{
    struct guest lists[] = {
        { .who = "a", .use = SEAT_LONG }, { .who = "b", .use = SEAT_LONG },
        { .who = "c", .use = SEAT_LONG }, { .who = "d", .use = SEAT_LONG },
        { .who = "e", .use = SEAT_LONG }, { .who = "a", .use = SEAT_LONG },
        { .who = "b", .use = SEAT_LONG }, { .who = "c", .use = SEAT_LONG },
        { .who = "d", .use = SEAT_LONG }, { .who = "e", .use = SEAT_LONG },
    };
    struct guest others[] = { { .who = "u" }, { .who = "v" }, { .who = "w" },
                              { .who = "x" }, { .who = "y" }, { .who = "z" } };

    ck_assert_uint_eq(ARRAY_LEN(others), SEATS - SEATS_LONG);
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        come(&lists[i]);
    ck_assert_uint_eq(count_in_work(lists, ARRAY_LEN(lists)), SEATS_LONG);
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        come(&others[i]);
        ck_assert(is_in_work(&others[i]));
    }
    ck_assert_uint_eq(count_in_work(lists, ARRAY_LEN(lists)), SEATS_LONG);
    all_leave(others, ARRAY_LEN(others));
    ck_assert_uint_eq(count_in_work(lists, ARRAY_LEN(lists)), SEATS_LONG);
    all_leave(lists, ARRAY_LEN(lists));
}

TEST(a_seat_for_a_long_request_goes_to_the_user_with_the_fewest_and_then_to_the_first)
{
    struct guest of_a = { .who = "a", .use = SEAT_LONG }, of_b = { .who = "b", .use = SEAT_LONG },
                 write_of_a = { .who = "a" };
    struct guest next_of_a = of_a, of_c = { .who = "c", .use = SEAT_LONG },
                 of_d = { .who = "d", .use = SEAT_LONG };

    come(&of_a);
    come(&of_b);
    come(&write_of_a);
    come(&next_of_a);
    come(&of_c);
    come(&of_d);
    ck_assert(!is_in_work(&next_of_a) && !is_in_work(&of_c) && !is_in_work(&of_d));
    leave(&of_a);
    ck_assert(!is_in_work(&next_of_a) && is_in_work(&of_c) && !is_in_work(&of_d));
    leave(&of_b);
    ck_assert(!is_in_work(&next_of_a) && is_in_work(&of_d));
    leave(&of_c);
    ck_assert(is_in_work(&next_of_a));
    leave(&next_of_a);
    leave(&of_d);
    leave(&write_of_a);
}

TEST(of_one_user_no_more_than_so_many_requests_are_in_progress)
{
    struct guest own[50], other = { .who = "b" }, next = { .who = "a" };

    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        own[i] = (struct guest){ .who = "a" };
        ck_assert_ptr_nonnull(join(&own[i]));
    }
    ck_assert_ptr_null(join(&next));
    arena_destroy(next.arena);
    ck_assert_ptr_eq(seat_join(&seats, own[0].arena, own[0].seat->request_id, "a"), own[0].seat);
    ck_assert_ptr_nonnull(join(&other));
    arena_destroy(own[0].arena);
    ck_assert_ptr_nonnull(join(&next));
    for (size_t i = 1; i < ARRAY_LEN(own); i++)
        arena_destroy(own[i].arena);
    arena_destroy(next.arena);
    arena_destroy(other.arena);
}

TEST(a_user_who_does_not_read_has_no_seats_and_others_do)
{
    struct guest unread[SEATS_EACH], next = { .who = "a" }, others[SEATS];

    for (size_t i = 0; i < ARRAY_LEN(unread); i++) {
        unread[i] = (struct guest){ .who = "a" };
        come(&unread[i]);
        answer(&unread[i], SMALL + 1);
    }
    come(&next);
    for (size_t i = 0; i < ARRAY_LEN(others); i++) { /* all seats of the server */
        others[i] = (struct guest){ .who = (const char *[]){ "b", "c", "d", "e" }[i % 4] };
        come(&others[i]);
        ck_assert(is_in_work(&others[i]));
    }
    all_leave(others, ARRAY_LEN(others));
    ck_assert(!is_in_work(&next));
    arena_destroy(unread[0].arena); /* it is sent */
    ck_assert(is_in_work(&next));
    answer(&next, SMALL); /* fits into what a connection takes at once */
    ck_assert_int_eq(state_of(&next), SEAT_NONE);
    arena_destroy(next.arena);
    for (size_t i = 1; i < ARRAY_LEN(unread); i++)
        arena_destroy(unread[i].arena);
}

TEST(who_waits_when_the_seats_are_closed_has_none)
{
    struct guest own[] = { { .who = "a" }, { .who = "a" }, { .who = "a" } }, late = { .who = "b" };

    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        come(&own[i]);
    seats_close(&seats);
    ck_assert_int_eq(pthread_join(own[2].thread, NULL), 0);
    ck_assert(!own[2].is_let_in);
    leave(&own[0]);
    leave(&own[1]);
    ck_assert(!seat_take(join(&late), SEAT_SHORT));
    arena_destroy(own[2].arena);
    arena_destroy(late.arena);
}

TEST(answers_have_so_many_bytes_in_all_and_one_may_be_larger_than_half)
{
    struct guest a = { .who = "a" }, b = { .who = "b" }, c = { .who = "c" };

    (void)join(&a);
    (void)join(&b);
    (void)join(&c);
    ck_assert(seat_has_room(a.seat, HALF - 1));
    ck_assert(seat_has_room(a.seat, 10 * ROOM));
    ck_assert(!seat_has_room(b.seat, HALF + 1) || b.seat->bytes == HALF);
    ck_assert(!seat_has_room(c.seat, SMALL + 1));
    ck_assert(seat_has_room(c.seat, SMALL));
    ck_assert(seat_has_room(NULL, ROOM));               /* without a user: the answers are small */
    ck_assert(seat_has_room(b.seat, HALF - SMALL - 1)); /* less than before */
    ck_assert(seat_has_room(c.seat, SMALL + 1));
    seat_leave(b.seat, 2 * ROOM); /* is owed */
    ck_assert(!seat_has_room(c.seat, SMALL + 2));
    arena_destroy(a.arena);
    ck_assert(seat_has_room(c.seat, HALF));
    arena_destroy(b.arena);
    arena_destroy(c.arena);
}
