/* Limits for one user of the server: connections with a request in progress, and bytes of answers. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/arena.h"

/*
 *  1. A user has requests in progress on at most max_requests connections.
 *  2. The answers of all users have at most max_answers bytes, those of one user at most half of that. One answer at
 *     a time may be larger than that half, however large, and counts as the half.
 *  3. Bytes count from when they are made (share_has_room) until they are sent or their connection has ended. An
 *     answer of at most small_answer bytes does not count.
 *  4. An answer that is owed, because the request has changed something, is sent in any case, and counts.
 *  5. A request that is unlimited is never refused; its answer counts.
 *
 * Not counted: streams, of which each holds a chunk, and what is needed beside an answer to make it.
 */
struct shares {
    size_t max_requests, max_answers, small_answer; /* set before the first request */
    pthread_mutex_t lock;
    struct share *first; /* one for each request in progress whose user is known */
};

void shares_init(struct shares *shares);
void shares_release(struct shares *shares); /* no request is in progress */

/* Of one request. */
struct share;

/* The share of this request (http_server_request.id) lives as long as the request's arena; a second call returns the
 * first one's. NULL: the user has as many requests in progress as one may have. who NULL: the request is unlimited. */
struct share *share_take(struct shares *shares, struct arena *arena, uint64_t request_id,
                         const char *who);

/* The answer has len bytes by now. false: there is no room for them, and the answer is to be refused. share NULL, of
 * a request whose user is not known: always true, because its answers are small. */
bool share_has_room(struct share *share, size_t len) MUST_CHECK;
void share_set_owed(struct share *share, size_t len); /* the same, of an answer that is owed */
/* Before anything is done whose answer is owed: false if the user's other answers have all the bytes that one user
 * may have. share NULL: true. */
bool share_may_answer(const struct share *share) MUST_CHECK;
