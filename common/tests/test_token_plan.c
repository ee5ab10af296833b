#include "common/runtime/token_plan.h"

#include "common/tests/suite.h"

#define NOW 1000000
#define HOUR_MS 3600000

/* Asked for at NOW, good for an hour, to be renewed after 80 % of it. */
static struct token_state fresh(void)
{
    struct token_state state = { 0 };

    token_received(&state, NOW, HOUR_MS, 80);
    return state;
}

TEST(without_a_token_one_is_asked_for_at_once)
{
    const struct token_state state = { 0 };

    ck_assert_int_eq(token_decide(&state, NOW), TOKEN_RENEW);
}

TEST(a_token_is_renewed_at_its_time_while_it_goes_on_being_used)
{
    const struct token_state state = fresh();

    ck_assert_int_eq(token_decide(&state, NOW), TOKEN_USE);
    ck_assert_int_eq(token_decide(&state, NOW + HOUR_MS / 10 * 8 - 1), TOKEN_USE);
    ck_assert_int_eq(token_decide(&state, NOW + HOUR_MS / 10 * 8), TOKEN_USE_AND_RENEW);
    ck_assert_int_eq(token_decide(&state, NOW + HOUR_MS - 1), TOKEN_USE_AND_RENEW);
    ck_assert_int_eq(token_decide(&state, NOW + HOUR_MS), TOKEN_RENEW);
}

TEST(failed_renewals_back_off_and_the_token_is_used_to_its_end)
{
    struct token_state state = fresh();
    int64_t due = state.renew_ms;

    token_failed(&state, due, 0, 100);
    ck_assert_int_eq(token_decide(&state, due), TOKEN_USE);
    ck_assert_int_eq(token_decide(&state, due + TOKEN_BACKOFF_MIN_MS), TOKEN_USE_AND_RENEW);

    for (int i = 0; i < 20; i++)
        token_failed(&state, due, 0, 100);
    ck_assert_int_eq(state.not_before_ms, due + TOKEN_BACKOFF_MAX_MS);

    int64_t last = NOW + HOUR_MS - 1;
    token_failed(&state, last, 0, 100);
    ck_assert_int_eq(token_decide(&state, last), TOKEN_USE);
    ck_assert_int_eq(token_decide(&state, NOW + HOUR_MS), TOKEN_WAIT);
    ck_assert_int_eq(token_decide(&state, last + TOKEN_BACKOFF_MAX_MS), TOKEN_RENEW);
}

TEST(the_back_off_has_jitter_and_respects_what_the_server_asks_for)
{
    struct token_state state = { 0 };

    token_failed(&state, NOW, 0, 50);
    ck_assert_int_eq(state.not_before_ms, NOW + TOKEN_BACKOFF_MIN_MS / 2);
    token_failed(&state, NOW, 60000, 50);
    ck_assert_int_eq(state.not_before_ms, NOW + 60000);
}

TEST(a_new_token_ends_the_back_off)
{
    struct token_state state = { 0 };

    token_failed(&state, NOW, 300000, 100);
    token_received(&state, NOW + 1, HOUR_MS, 80);
    ck_assert_uint_eq(state.failures, 0);
    ck_assert_int_eq(token_decide(&state, state.renew_ms), TOKEN_USE_AND_RENEW);
}

TEST(a_revoked_token_is_replaced_at_once)
{
    struct token_state state = fresh();
    int64_t later = NOW + HOUR_MS / 2;

    token_refused(&state, later, 100);
    ck_assert_int_eq(token_decide(&state, later), TOKEN_RENEW);
}

TEST(a_server_that_refuses_every_new_token_is_asked_less_and_less)
{
    struct token_state state = fresh();
    int64_t now = NOW;
    int64_t waited = 0;

    for (int i = 0; i < 10; i++) {
        token_refused(&state, now, 100);
        ck_assert_int_eq(token_decide(&state, now), TOKEN_WAIT);
        ck_assert_int_ge(state.not_before_ms - now, waited);
        waited = state.not_before_ms - now;
        now = state.not_before_ms;
        token_received(&state, now, HOUR_MS, 80);
    }
    ck_assert_int_eq(waited, TOKEN_BACKOFF_MAX_MS);

    /* one that was accepted for a while is another matter */
    now += TOKEN_FRESH_MS;
    token_refused(&state, now, 100);
    ck_assert_int_eq(token_decide(&state, now), TOKEN_RENEW);
    token_received(&state, now, HOUR_MS, 80);
    token_refused(&state, now, 100);
    ck_assert_int_eq(state.not_before_ms, now + TOKEN_BACKOFF_MIN_MS);
}

TEST(a_longer_life_than_the_longest_is_not_made_use_of)
{
    struct token_state state = { 0 };

    token_received(&state, NOW, UINT32_MAX, 80);
    ck_assert_int_eq(state.expires_ms, NOW + TOKEN_MAX_LIFETIME_MS);
}
