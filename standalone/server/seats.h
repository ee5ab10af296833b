/* Limits how many requests are in work at once, in total and of one user: a small form of the API server's priority
 * and fairness. A request has its seat while its handler runs, not while its client reads the answer; a watch has one
 * only while it is opened. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "common/base/compiler.h"

#define SEATS 8
#define SEATS_EACH 2      /* of one user */
#define SEATS_LONG 2      /* for long requests; the other seats are kept for short ones */
#define SEATS_LONG_EACH 1 /* of one user */
#define SEATS_QUEUE 32u   /* requests of one user that wait, longer queues are refused */

/*
 *  1. At most SEATS requests are in work, and at most SEATS_EACH of one user.
 *  2. At most SEATS_LONG long requests are in work, and at most SEATS_LONG_EACH of one user. So lists of any number of
 *     users do not delay reads and writes of one object. And each list that is being made may need half of the memory
 *     for answers (server.h, 4): two of one user would refuse each other, and so would three of three users.
 *  3. A free seat goes to a user who has the fewest, and among these to the request that came first. A long request
 *     that may not have it is passed over.
 *  4. At most SEATS_QUEUE requests of one user wait.
 */
struct seats {
    pthread_mutex_t lock;
    struct seat *first,
        *last; /* in the order of coming: as many as there are connections at most */
};

void seats_init(struct seats *seats);
void seats_release(struct seats *seats); /* no request has a seat, or waits */

enum seat_use { SEAT_SHORT, SEAT_LONG };

/* Of one request. It stays where it is until seat_leave. */
struct seat {
    struct seats *seats;
    const char *who;
    enum seat_use use;
    bool is_in_work;
    struct seat *next;
    pthread_cond_t changed;
};

/* Blocks until the request may be worked on. false: the user's queue is full, and nothing has to be left. who NULL: it
 * counts for no user and waits for nothing. */
bool seat_take(struct seats *seats, const char *who, enum seat_use use,
               struct seat *ret) MUST_CHECK;
void seat_leave(struct seat *seat);
