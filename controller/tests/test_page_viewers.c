/* Access to the page: hosts and sites, logins, rights, and when they end. */
#include <string.h>

#include "common/api/kinds.h"
#include "common/base/str.h"
#include "controller/page/guard.h"
#include "controller/tests/page_fixture.h"

static struct error err;

TEST_GROUP("guard", arena_set_up, arena_tear_down);

static const struct {
    const char *host;
    bool is_known;
} HOSTS[] = {
    { "localhost", true },
    { "LocalHost:8082", true },
    { "127.0.0.1:8082", true },
    { "[::1]:8082", true },
    { "fleet.example:443", true },
    { NULL, false },
    { "", false },
    { "evil.example", false },
    { "localhost.evil.example", false },
    { "127.0.0.1.evil.example:8082", false },
    { "[::1].evil.example", false },
    { "[::1", false },
    { "::1", false },
};

TEST_EACH(only_names_of_this_server_are_answered, HOSTS)
{
    static const char *const FURTHER[] = { "fleet.example" };

    ck_assert_int_eq(page_host_is_known(HOSTS[_i].host, FURTHER, 1), HOSTS[_i].is_known);
}

TEST(pages_of_other_sites_may_not_ask)
{
    ck_assert(page_site_is_own(NULL));
    ck_assert(page_site_is_own("same-origin"));
    ck_assert(page_site_is_own("none"));
    ck_assert(!page_site_is_own("same-site"));
    ck_assert(!page_site_is_own("cross-site"));
}

TEST_GROUP("viewers", page_set_up, page_tear_down);

TEST(the_api_server_says_who_has_a_token)
{
    char cookie[VIEWER_COOKIE_LEN];
    struct viewer *viewer = page_login("good");

    ck_assert_str_eq(viewer_name(viewer), "user-good");
    viewer_unref(viewer);
    ck_assert_int_eq(viewers_login(page_fixture.viewers, "bad", cookie, &err), -ERROR_FORBIDDEN);
    ck_assert_ptr_null(strstr(err.message, "bad"));
    ck_assert_ptr_null(viewers_find(page_fixture.viewers, "guessed"));
}

TEST(ten_failed_logins_in_a_minute_stop_further_ones)
{
    char cookie[VIEWER_COOKIE_LEN];

    for (int i = 0; i < VIEWERS_FAILED_LOGINS; i++)
        ck_assert_int_eq(viewers_login(page_fixture.viewers, "bad", cookie, &err),
                         -ERROR_FORBIDDEN);
    ck_assert_int_eq(viewers_login(page_fixture.viewers, "good", cookie, &err), -ERROR_UNAVAILABLE);
    ck_assert_uint_eq(err.retry_after_ms, VIEWERS_FAILED_MS);
    fake_clock_advance(&page_fixture.clock, VIEWERS_FAILED_MS);
    ck_assert_int_eq(viewers_login(page_fixture.viewers, "good", cookie, &err), 0);
}

static const struct {
    const char *what;
    int64_t idle_ms, steps;
    bool ends;
} LIVES[] = {
    { "idle for too long", VIEWER_IDLE_MS, 1, true },
    { "used again and again", VIEWER_IDLE_MS - 1, 3, false },
    { "older than its life", VIEWER_IDLE_MS / 2, 2 * VIEWER_LIFE_MS / VIEWER_IDLE_MS, true },
};

TEST_EACH(a_login_ends_by_itself, LIVES)
{
    struct viewer *viewer = page_login("good");
    bool has_ended = false;

    for (int64_t i = 0; i < LIVES[_i].steps; i++) {
        fake_clock_advance(&page_fixture.clock, LIVES[_i].idle_ms);
        has_ended = viewer_has_ended(viewer);
    }
    ck_assert_msg(has_ended == LIVES[_i].ends, "%s", LIVES[_i].what);
    viewer_unref(viewer);
}

TEST(a_login_ends_when_its_token_does_not_count_any_more)
{
    struct viewer *viewer = page_login("good");
    bool may = false;

    page_fixture.is_revoked = true;
    ck_assert_int_lt(viewer_may(viewer, &KIND_TASK, NULL, &may, &err), 0);
    ck_assert(viewer_has_ended(viewer));
    viewer_unref(viewer);
}

TEST(a_logout_ends_the_login)
{
    struct viewer *viewer = page_login("good");

    viewers_logout(page_fixture.viewers, viewer);
    ck_assert(viewer_has_ended(viewer));
    viewer_unref(viewer);
}

TEST(answers_about_rights_count_for_a_minute)
{
    struct viewer *viewer = page_login("lab");
    bool may = true;

    ck_assert_int_eq(viewer_may(viewer, &KIND_TASK, NULL, &may, &err), 0);
    ck_assert(!may);
    ck_assert_int_eq(viewer_may(viewer, &KIND_TASK, "lab", &may, &err), 0);
    ck_assert(may);
    ck_assert_uint_eq(page_fixture.reviews, 3); /* list; list and watch */
    fake_clock_advance(&page_fixture.clock, VIEWER_RIGHTS_MS - 1);
    ck_assert_int_eq(viewer_may(viewer, &KIND_TASK, "lab", &may, &err), 0);
    ck_assert_uint_eq(page_fixture.reviews, 3);
    fake_clock_advance(&page_fixture.clock, 1);
    ck_assert_int_eq(viewer_may(viewer, &KIND_TASK, "lab", &may, &err), 0);
    ck_assert_uint_eq(page_fixture.reviews, 5);
    viewer_unref(viewer);
}

TEST(one_login_more_than_there_is_room_for_ends_the_one_that_was_idle_longest)
{
    struct viewer *first = page_login("good"), *last = NULL;

    for (int i = 0; i < VIEWERS_MAX; i++) {
        fake_clock_advance(&page_fixture.clock, 1);
        viewer_unref(last);
        last = page_login(arena_printf(arena, "good-%d", i));
    }
    ck_assert(viewer_has_ended(first));
    ck_assert(!viewer_has_ended(last));
    viewer_unref(first);
    viewer_unref(last);
}

TEST(logins_of_one_user_do_not_end_those_of_others)
{
    struct viewer *other = page_login("good"), *first = page_login("lab"), *last = NULL;

    for (int i = 0; i < VIEWERS_OF_A_USER; i++) {
        fake_clock_advance(&page_fixture.clock, 1);
        viewer_unref(last);
        last = page_login("lab");
    }
    ck_assert(viewer_has_ended(first));
    ck_assert(!viewer_has_ended(last));
    ck_assert(!viewer_has_ended(other));
    viewer_unref(other);
    viewer_unref(first);
    viewer_unref(last);
}

/* Five kinds that are asked one after the other would keep a feed from its rows for most of a minute. */
TEST(after_a_question_without_an_answer_the_last_answers_count)
{
    struct viewer *viewer = page_login("good");
    bool may = false;

    ck_assert_int_eq(viewer_may(viewer, &KIND_TASK, NULL, &may, &err), 0);
    ck_assert_int_eq(viewer_may(viewer, &KIND_PROPLET, NULL, &may, &err), 0);
    fake_clock_advance(&page_fixture.clock, VIEWER_RIGHTS_MS);
    page_fixture.is_away = true;
    ck_assert_int_lt(viewer_may(viewer, &KIND_TASK, NULL, &may, &err), 0);
    may = false;
    ck_assert_int_eq(viewer_may(viewer, &KIND_PROPLET, NULL, &may, &err), 0);
    ck_assert(may);
    fake_clock_advance(&page_fixture.clock, VIEWER_RETRY_MS);
    ck_assert_int_lt(viewer_may(viewer, &KIND_PROPLET, NULL, &may, &err), 0);
    viewer_unref(viewer);
}

/* Neither the end of the process nor that of the login waits for an API server that is slow. */
TEST(a_login_under_way_is_canceled_too)
{
    bool may = false;

    page_fixture.cancels = true;
    struct viewer *viewer = page_login("good");
    ck_assert_int_eq(viewer_may(viewer, &KIND_TASK, NULL, &may, &err), -ERROR_CANCELED);
    viewer_unref(viewer);

    char cookie[VIEWER_COOKIE_LEN];
    ck_assert_int_eq(viewers_login(page_fixture.viewers, "good", cookie, &err), -ERROR_CANCELED);
}

TEST(a_login_that_is_over_and_still_asks_is_canceled_too)
{
    struct viewer *viewer = page_login("good");
    bool may = false;

    viewers_logout(page_fixture.viewers, viewer);
    viewers_cancel(page_fixture.viewers);
    ck_assert_int_eq(viewer_may(viewer, &KIND_TASK, NULL, &may, &err), -ERROR_CANCELED);
    viewer_unref(viewer);
}
