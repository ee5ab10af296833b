/* How many requests are in work at once, all together and of one user: a small form of the API server's priority and
 * fairness. Counts the time of the handler, not that of a client that reads of its answer, or a watch. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "common/base/compiler.h"

#define SEATS 8
#define SEATS_EACH 2    /* of one user */
#define SEATS_QUEUE 32u /* requests of one user that wait, longer queues are refused */

/*
 *  1. At most SEATS requests are in work, and at most SEATS_EACH of one user.
 *  2. A free seat goes to a user who has the fewest, and among these to the request that came first.
 *  3. At most SEATS_QUEUE requests of one user wait.
 */
struct seats {
    pthread_mutex_t lock;
    struct seat *first,
        *last; /* in the order of coming: as many as there are connections at most */
};

void seats_init(struct seats *seats);
void seats_release(struct seats *seats); /* no request has a seat, or waits */

/* Of one request. It stays where it is until seat_leave. */
struct seat {
    struct seats *seats;
    const char *who;
    bool is_in_work;
    struct seat *next;
    pthread_cond_t changed;
};

/* Blocks until the request may be worked on. false: the user's queue is full, and nothing has to be left. who NULL: it
 * counts for no user and waits for nothing. */
bool seat_take(struct seats *seats, const char *who, struct seat *ret) MUST_CHECK;
void seat_leave(struct seat *seat);
