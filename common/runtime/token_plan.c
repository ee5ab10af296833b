#include "common/runtime/token_plan.h"

#include "common/runtime/backoff.h"

enum token_action token_decide(const struct token_state *state, int64_t now_ms)
{
    bool is_good = state->has_token && now_ms < state->expires_ms;
    bool may_ask = now_ms >= state->not_before_ms;

    if (is_good)
        return now_ms >= state->renew_ms && may_ask ? TOKEN_USE_AND_RENEW : TOKEN_USE;
    return may_ask ? TOKEN_RENEW : TOKEN_WAIT;
}

static int64_t back_off(int64_t now_ms, uint32_t times, unsigned percent)
{
    uint32_t whole_ms = backoff_ms(TOKEN_BACKOFF_MIN_MS, TOKEN_BACKOFF_MAX_MS, times);

    return now_ms + (int64_t)whole_ms * percent / 100;
}

void token_received(struct token_state *state, int64_t asked_ms, uint32_t lifetime_ms,
                    unsigned renew_percent)
{
    if (lifetime_ms > TOKEN_MAX_LIFETIME_MS)
        lifetime_ms = TOKEN_MAX_LIFETIME_MS;
    state->has_token = true;
    state->asked_ms = asked_ms;
    state->renew_ms = asked_ms + (int64_t)lifetime_ms * renew_percent / 100;
    state->expires_ms = asked_ms + lifetime_ms;
    state->failures = 0;
    state->not_before_ms = asked_ms;
}

void token_failed(struct token_state *state, int64_t now_ms, uint32_t retry_after_ms,
                  unsigned percent)
{
    state->failures++;
    state->not_before_ms = back_off(now_ms, state->failures, percent);
    if (state->not_before_ms < now_ms + retry_after_ms)
        state->not_before_ms = now_ms + retry_after_ms;
}

void token_refused(struct token_state *state, int64_t now_ms, unsigned percent)
{
    bool was_fresh = state->has_token && now_ms < state->asked_ms + TOKEN_FRESH_MS;

    state->has_token = false;
    if (!was_fresh) {
        state->refusals = 0;
        return;
    }
    state->refusals++;
    state->not_before_ms = back_off(now_ms, state->refusals, percent);
}
