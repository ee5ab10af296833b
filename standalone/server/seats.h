/* Limits what one user may take of the server: a small form of the API server's priority and fairness. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <sys/queue.h>

#include "common/base/arena.h"

#define SEATS 8
#define SEATS_EACH 2      /* of one user */
#define SEATS_LONG 2      /* for long requests; the other seats are kept for short ones */
#define SEATS_LONG_EACH 1 /* of one user */
#define SEATS_QUEUE 32u   /* requests of one user that wait; longer queues are refused */

/*
 *  1. A user has requests in progress on at most max_requests connections, max_watches of them watches.
 *  2. At most SEATS requests are in work, and at most SEATS_EACH of one user.
 *  3. At most SEATS_LONG long requests are in work, and at most SEATS_LONG_EACH of one user, so that lists of any
 *     number of users do not delay reads and writes of one object.
 *  4. A free seat goes to a user who has the fewest, and among these to the request that came first. A long request
 *     that may not have it is passed over. At most SEATS_QUEUE requests of one user wait.
 *  5. A request with an answer of more than small_answer bytes keeps its seat, for its own user alone, until the answer
 *     is sent or the connection has ended. So SEATS_EACH such answers of one user are unread at most.
 *  6. These answers have max_answers bytes in all, from when they are made; each counts as half of
 *     that at most, so that one may be larger. An answer that is owed, because something has
 *     changed, is always sent and counts.
 */
TAILQ_HEAD(seat_list, seat);
struct seats {
    size_t max_requests, max_watches, max_answers, small_answer; /* set before seats_init */
    pthread_mutex_t lock;
    struct seat_list all; /* in the order of coming */
    bool is_closed;
};

void seats_init(struct seats *seats);
/* The server stops: no request that waits, or comes, gets a seat. */
void seats_close(struct seats *seats);
void seats_release(struct seats *seats); /* no request is in progress */

enum seat_use { SEAT_SHORT, SEAT_LONG };

enum seat_state {
    SEAT_NONE, /* not taken yet, or its answer is small */
    SEAT_WAITS,
    SEAT_WORKS,
    SEAT_UNREAD, /* the answer is being sent */
};

/* Of one request, for as long as its arena; with the lock of the seats. The functions below take NULL for a request
 * whose user is not known: nothing limits it. */
struct seat {
    struct seats *seats;
    TAILQ_ENTRY(seat) in_all;
    uint64_t request_id;
    const char *who;
    enum seat_use use;
    enum seat_state state;
    bool is_watch;
    size_t bytes; /* of its answer that count */
    pthread_cond_t changed;
};

/* A second call for the same request (http_server_request.id) returns the first one's. NULL: the user has as many
 * requests in progress as one may have. */
struct seat *seat_join(struct seats *seats, struct arena *arena, uint64_t request_id,
                       const char *who);
/* Blocks until the request may be worked on. false: the user's queue is full, or the seats are closed. */
bool seat_take(struct seat *seat, enum seat_use use) MUST_CHECK;
/* The answer is a watch, for as long as the request. false: the user has as many as one may have. */
bool seat_watch(struct seat *seat) MUST_CHECK;
/* The answer has len bytes by now. false: there is no room for them, and the answer is to be refused. */
bool seat_has_room(struct seat *seat, size_t len) MUST_CHECK;
/* The answer is made: the work has ended. */
void seat_leave(struct seat *seat, size_t answer_len);
