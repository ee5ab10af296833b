/* Seats of requests: who may begin, and in which order. No times: a request that came either has a seat or waits. */
#include <check.h>
#include <poll.h>
#include <pthread.h>

#include "common/base/compiler.h"
#include "common/tests/suite.h"
#include "standalone/server/seats.h"

static struct seats seats;

struct guest {
    const char *who;
    enum seat_use use;
    struct seat seat;
    pthread_t thread;
    bool is_let_in;
};

static void *take(void *data)
{
    struct guest *guest = data;

    guest->is_let_in = seat_take(&seats, guest->who, guest->use, &guest->seat);
    return NULL;
}

static bool is_listed(const struct guest *guest)
{
    bool found = false;

    pthread_mutex_lock(&seats.lock);
    for (const struct seat *seat = seats.first; seat; seat = seat->next)
        found = found || seat == &guest->seat;
    pthread_mutex_unlock(&seats.lock);
    return found;
}

/* When it returns the guest is listed: it has a seat, or waits for one. */
static void come(struct guest *guest)
{
    ck_assert_int_eq(pthread_create(&guest->thread, NULL, take, guest), 0);
    while (!is_listed(guest))
        poll(NULL, 0, 1);
}

static bool is_in_work(const struct guest *guest)
{
    pthread_mutex_lock(&seats.lock);

    bool is = guest->seat.is_in_work;

    pthread_mutex_unlock(&seats.lock);
    return is;
}

static size_t count_in_work(const struct guest *guests, size_t len)
{
    size_t count = 0;

    for (size_t i = 0; i < len; i++)
        count += is_in_work(&guests[i]);
    return count;
}

static void leave(struct guest *guest)
{
    ck_assert(is_in_work(guest));
    ck_assert_int_eq(pthread_join(guest->thread, NULL), 0);
    ck_assert(guest->is_let_in);
    seat_leave(&guest->seat);
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

TEST(a_long_request_waits_for_the_one_before_of_its_user_and_no_short_one_does)
{
    struct guest first = { .who = "a", .use = SEAT_LONG }, second = first, write = { .who = "a" };

    come(&first);
    come(&second);
    come(&write);
    ck_assert(is_in_work(&first));
    ck_assert(!is_in_work(&second));
    ck_assert(is_in_work(&write));
    leave(&first);
    ck_assert(is_in_work(&second));
    leave(&write);
    leave(&second);
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

TEST(of_one_user_a_queue_of_long_requests_is_as_short_as_any)
{
    struct guest lists[SEATS_LONG_EACH + SEATS_QUEUE];
    struct seat refused;

    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        lists[i] = (struct guest){ .who = "a", .use = SEAT_LONG };
        come(&lists[i]);
    }
    ck_assert_uint_eq(count_in_work(lists, ARRAY_LEN(lists)), SEATS_LONG_EACH);
    ck_assert(!seat_take(&seats, "a", SEAT_LONG, &refused));
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        leave(&lists[i]); /* each in its turn */
    ck_assert(seat_take(&seats, "a", SEAT_LONG, &refused));
    seat_leave(&refused);
}
