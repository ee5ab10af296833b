#include "standalone/server/shares.h"

#include <check.h>

#include "common/base/compiler.h"
#include "common/tests/suite.h"

#define REQUESTS 3
#define ROOM ((size_t)1000)
#define HALF (ROOM / 2)
#define SMALL ((size_t)10)

static struct shares shares;
static struct arena *requests[16]; /* the arena of each request that is in progress */

static void setup(void)
{
    shares =
        (struct shares){ .max_requests = REQUESTS, .max_answers = ROOM, .small_answer = SMALL };
    shares_init(&shares);
    for (size_t i = 0; i < ARRAY_LEN(requests); i++)
        requests[i] = arena_create();
}

static void end(size_t id)
{
    arena_destroy(requests[id]);
    requests[id] = NULL;
}

static void teardown(void)
{
    for (size_t i = 0; i < ARRAY_LEN(requests); i++)
        end(i);
    ck_assert_ptr_null(shares.first);
    shares_release(&shares);
}

TEST_GROUP("shares", setup, teardown);

static struct share *begin(size_t id, const char *who)
{
    return share_take(&shares, requests[id], id, who);
}

/* --- requests --------------------------------------------------------------------------------- */

TEST(a_user_has_so_many_requests_in_progress_and_others_have_as_many)
{
    for (size_t i = 0; i < REQUESTS; i++) {
        ck_assert_ptr_nonnull(begin(i, "eve"));
        ck_assert_ptr_nonnull(begin(8 + i, "bob"));
    }
    ck_assert_ptr_null(begin(REQUESTS, "eve"));
    ck_assert_ptr_nonnull(begin(1, "eve")); /* it has its share already */
    end(0);
    ck_assert_ptr_nonnull(begin(REQUESTS, "eve"));
}

TEST(requests_that_are_unlimited_are_never_too_many)
{
    for (size_t i = 0; i < ARRAY_LEN(requests); i++)
        ck_assert_ptr_nonnull(begin(i, NULL));
}

TEST(a_request_has_one_share)
{
    ck_assert_ptr_eq(begin(0, "eve"), begin(0, "eve"));
}

/* --- bytes of answers ------------------------------------------------------------------------- */

TEST(a_user_has_half_of_the_room_until_the_request_ends)
{
    struct share *first = begin(0, "eve"), *second = begin(1, "eve"), *other = begin(2, "bob");

    ck_assert(share_has_room(first, HALF));
    ck_assert(!share_has_room(second, SMALL + 1));
    ck_assert(!share_may_answer(second));
    ck_assert(share_may_answer(first)); /* no other one is made */
    ck_assert(share_has_room(second, SMALL));
    ck_assert(share_may_answer(other));
    ck_assert(share_has_room(other, HALF));
    end(0);
    ck_assert(share_has_room(second, HALF));
    ck_assert(share_may_answer(second));
}

TEST(all_have_no_more_than_the_room_but_an_unlimited_request)
{
    struct share *eve = begin(0, "eve"), *bob = begin(1, "bob"), *ann = begin(2, "ann");
    struct share *unlimited = begin(3, NULL);

    ck_assert(share_has_room(eve, HALF));
    ck_assert(share_has_room(bob, HALF));
    ck_assert(!share_has_room(ann, SMALL + 1));
    ck_assert(share_may_answer(ann));
    ck_assert(share_has_room(unlimited, HALF));
    end(0);
    ck_assert(!share_has_room(ann, SMALL + 1)); /* the unlimited one counts */
    end(3);
    ck_assert(share_has_room(ann, HALF));
}

TEST(unlimited_requests_are_not_one_user)
{
    ck_assert(share_has_room(begin(0, NULL), ROOM));
    ck_assert(share_may_answer(begin(1, NULL)));
    ck_assert(share_has_room(begin(2, "eve"), HALF));
}

TEST(one_answer_may_be_larger_than_the_room_and_leaves_half_of_it)
{
    struct share *eve = begin(0, "eve"), *bob = begin(1, "bob"), *ann = begin(2, "ann");

    ck_assert(share_has_room(eve, 3 * ROOM));
    ck_assert(!share_has_room(bob, HALF + 1));
    ck_assert(share_has_room(bob, HALF));
    ck_assert(!share_has_room(ann, SMALL + 1));
    end(0);
    ck_assert(share_has_room(ann, 3 * ROOM));
}

TEST(an_answer_that_grows_counts_once_and_may_shrink)
{
    struct share *first = begin(0, "eve"), *second = begin(1, "eve");

    ck_assert(share_has_room(first, HALF / 2));
    ck_assert(share_has_room(first, HALF));
    ck_assert(!share_has_room(second, HALF));
    ck_assert(share_has_room(first, HALF / 2));
    ck_assert(share_has_room(second, HALF / 2));
    ck_assert(!share_has_room(first, HALF));
}

TEST(an_answer_that_is_owed_counts)
{
    struct share *first = begin(0, "eve"), *second = begin(1, "eve"), *bob = begin(2, "bob");

    share_set_owed(first, HALF);
    share_set_owed(second, HALF);
    ck_assert(!share_has_room(bob, SMALL + 1));
    share_set_owed(second, 0);
    ck_assert(share_has_room(bob, HALF));
}

TEST(a_request_of_nobody_known_has_room)
{
    ck_assert(share_has_room(NULL, ROOM));
    ck_assert(share_may_answer(NULL));
    share_set_owed(NULL, ROOM);
    ck_assert(share_has_room(begin(0, "eve"), HALF));
}
