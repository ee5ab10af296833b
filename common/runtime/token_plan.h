/* When a token is used, renewed and waited for: the decision, without clock and I/O. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 *            received                 from renew_ms on
 *   (none) ------------> USE ------------------------------> USE_AND_RENEW
 *     ^ ^                 ^ |                                   | | expired or refused
 *     | |        received | | refused                           | |
 *     | +-----------------|-+-----------------------------------|-+
 *     v                   +-------------------------------------+
 *   RENEW <---- the back-off is over ---- WAIT <---- failed, or refused while it was fresh
 */
struct token_state {
    bool has_token;
    int64_t asked_ms; /* of the present token; boot clock, like all times here */
    int64_t renew_ms;
    int64_t expires_ms;
    uint32_t failures;     /* requests in a row that brought none */
    uint32_t refusals;     /* tokens in a row that the API server refused while they were fresh */
    int64_t not_before_ms; /* of the next request */
};

enum token_action {
    TOKEN_USE,
    TOKEN_USE_AND_RENEW, /* good for now: one request asks for the next, and none waits for it */
    TOKEN_RENEW,         /* there is none: everybody waits for the request */
    TOKEN_WAIT,          /* there is none, and it is too early to ask: state.not_before_ms */
};
enum token_action token_decide(const struct token_state *state, int64_t now_ms);

/* A longer life than this is not made use of. */
#define TOKEN_MAX_LIFETIME_MS (24u * 60 * 60 * 1000)
/* A token is renewed at a random time between these percents of its life, so that those of one
 * process, and of several, do not come due together. */
#define TOKEN_RENEW_LOW_PERCENT 75
#define TOKEN_RENEW_HIGH_PERCENT 80
/* A token that is refused so soon will not be better the next time: back-off. */
#define TOKEN_FRESH_MS 10000
#define TOKEN_BACKOFF_MIN_MS 500u
#define TOKEN_BACKOFF_MAX_MS 30000u

/* asked_ms: before the request was made, so that its life is rather taken for shorter than it is.
 * renew_percent: where in its life it is renewed. */
void token_received(struct token_state *state, int64_t asked_ms, uint32_t lifetime_ms,
                    unsigned renew_percent);
/* The request brought none. retry_after_ms: the server's Retry-After, or 0; percent: of the
 * back-off, 50 to 100. */
void token_failed(struct token_state *state, int64_t now_ms, uint32_t retry_after_ms,
                  unsigned percent);
/* The API server does not accept the present token. */
void token_refused(struct token_state *state, int64_t now_ms, unsigned percent);
