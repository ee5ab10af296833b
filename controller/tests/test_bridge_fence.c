#include "controller/bridge/bridge_fence.h"

#include <string.h>

#include "common/tests/suite.h"

static struct fence fence;
static char text[FENCE_TEXT_LEN];

static void set_up(void)
{
    fence_init(&fence);
    text[0] = '\0';
}

TEST_GROUP("markers", set_up, NULL);

static bool come_back(const char *marker)
{
    return fence_returned(&fence, marker, strlen(marker));
}

TEST(nothing_has_passed_before_a_marker_is_back)
{
    ck_assert(!fence_passed(&fence, 0));
    ck_assert(fence_send(&fence, 1000, text));
    ck_assert(!fence_passed(&fence, 0));
    ck_assert(come_back(text));
    ck_assert(fence_passed(&fence, 0));
}

TEST(marker_tells_of_what_was_before_it_was_sent)
{
    ck_assert(fence_send(&fence, 1000, text));
    ck_assert(come_back(text));
    ck_assert(fence_passed(&fence, 999));
    ck_assert(!fence_passed(&fence, 1000)); /* in the same millisecond either may be first */
    ck_assert(!fence_passed(&fence, 5000));
}

TEST(however_many_wait_one_marker_is_on_its_way)
{
    ck_assert(fence_send(&fence, 1000, text));
    for (int64_t now_ms = 1001; now_ms < 1000 + FENCE_TIMEOUT_MS; now_ms += 500)
        ck_assert(!fence_send(&fence, now_ms, text));
    ck_assert(come_back(text));
    ck_assert(fence_send(&fence, 3000, text));
}

TEST(marker_that_is_lost_is_sent_again)
{
    char first[FENCE_TEXT_LEN];

    ck_assert(fence_send(&fence, 1000, first));
    ck_assert(!fence.overdue);
    ck_assert(fence_send(&fence, 1000 + FENCE_TIMEOUT_MS, text));
    ck_assert(fence.overdue);
    ck_assert_uint_eq(fence.lost, 1);
    ck_assert(come_back(first)); /* late, and true nevertheless */
    ck_assert(!fence.overdue);
    ck_assert(!fence_send(&fence, 1001 + FENCE_TIMEOUT_MS, first));
    ck_assert(come_back(text));
    ck_assert(fence_passed(&fence, 999 + FENCE_TIMEOUT_MS));
}

TEST(marker_of_a_connection_that_ended_is_sent_again)
{
    ck_assert(fence_send(&fence, 1000, text));
    fence_forget(&fence);
    fence_forget(&fence);
    ck_assert_uint_eq(fence.lost, 1);
    ck_assert(fence_send(&fence, 1001, text));
}

/* Who became due in the millisecond in which another's marker came and went. */
TEST(two_markers_in_one_millisecond_are_two)
{
    char first[FENCE_TEXT_LEN];

    ck_assert(fence_send(&fence, 1000, first));
    ck_assert(come_back(first));
    ck_assert(!fence_passed(&fence, 1000));
    ck_assert(fence_send(&fence, 1000, text));
    ck_assert(come_back(text));
    ck_assert(fence_send(&fence, 1001, text)); /* none is on its way */
    ck_assert(come_back(text));
    ck_assert(fence_passed(&fence, 1000));
    ck_assert_uint_eq(fence.lost, 0);
}

TEST(doubled_marker_is_no_news)
{
    ck_assert(fence_send(&fence, 1000, text));
    ck_assert(come_back(text));
    ck_assert(!come_back(text));
}

TEST(marker_of_anybody_else_is_nothing)
{
    char other[FENCE_TEXT_LEN];
    struct fence former;

    fence_init(&former);
    ck_assert(fence_send(&former, 9000, other));
    ck_assert(fence_send(&fence, 1000, text));
    ck_assert(!come_back(other));
    ck_assert(!come_back(""));
    ck_assert(!come_back(fence.nonce));
    text[strlen(fence.nonce) + 1] = '\0';
    ck_assert(!come_back(text));
    text[strlen(fence.nonce) + 1] = 'x';
    ck_assert(!fence_returned(&fence, text, strlen(fence.nonce) + 2));
    memset(other, '7', sizeof(other));
    ck_assert(!fence_returned(&fence, other, sizeof(other)));
    ck_assert(!fence_passed(&fence, 0));
}
