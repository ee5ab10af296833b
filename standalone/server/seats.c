#include "standalone/server/seats.h"

#include "common/base/cond.h"
#include "common/base/str.h"

void seats_init(struct seats *seats)
{
    *seats = (struct seats){ 0 };
    (void)pthread_mutex_init(&seats->lock, NULL);
}

void seats_release(struct seats *seats)
{
    (void)pthread_mutex_destroy(&seats->lock);
}

/* All below with the lock. */

/* who NULL: of all users. */
static unsigned count(const struct seats *seats, const char *who, bool in_work)
{
    unsigned len = 0;

    for (const struct seat *seat = seats->first; seat; seat = seat->next)
        len += seat->is_in_work == in_work && (!who || str_equal(seat->who, who));
    return len;
}

/* Long requests in work. who NULL: of all users. */
static unsigned count_long(const struct seats *seats, const char *who)
{
    unsigned len = 0;

    for (const struct seat *seat = seats->first; seat; seat = seat->next)
        len += seat->is_in_work && seat->use == SEAT_LONG && (!who || str_equal(seat->who, who));
    return len;
}

static bool may_begin(const struct seats *seats, const struct seat *seat)
{
    return !seat->is_in_work &&
           (seat->use == SEAT_SHORT || (count_long(seats, NULL) < SEATS_LONG &&
                                        count_long(seats, seat->who) < SEATS_LONG_EACH));
}

static void append(struct seats *seats, struct seat *seat)
{
    if (seats->last)
        seats->last->next = seat;
    else
        seats->first = seat;
    seats->last = seat;
}

static void take_out(struct seats *seats, const struct seat *seat)
{
    struct seat *before = NULL;

    for (struct seat *item = seats->first; item != seat; item = item->next)
        before = item;
    if (before)
        before->next = seat->next;
    else
        seats->first = seat->next;
    if (seats->last == seat)
        seats->last = before;
}

/* NULL: there is no seat, or no request that may have one. */
static struct seat *choose_next(const struct seats *seats)
{
    unsigned fewest = SEATS_EACH;
    struct seat *next = NULL;

    if (count(seats, NULL, true) >= SEATS)
        return NULL;
    for (struct seat *seat = seats->first; seat; seat = seat->next) {
        unsigned has = may_begin(seats, seat) ? count(seats, seat->who, true) : SEATS_EACH;

        if (has < fewest) {
            fewest = has;
            next = seat;
        }
    }
    return next;
}

static void give_out(struct seats *seats)
{
    struct seat *next;

    while ((next = choose_next(seats))) {
        next->is_in_work = true;
        (void)pthread_cond_signal(&next->changed);
    }
}

bool seat_take(struct seats *seats, const char *who, enum seat_use use, struct seat *ret)
{
    *ret = (struct seat){ .who = who, .use = use };
    if (!who)
        return true;
    cond_init(&ret->changed);
    (void)pthread_mutex_lock(&seats->lock);
    append(seats, ret);
    give_out(seats);

    bool fits = ret->is_in_work || count(seats, who, false) <= SEATS_QUEUE;

    if (!fits)
        take_out(seats, ret);
    while (fits && !ret->is_in_work)
        (void)pthread_cond_wait(&ret->changed, &seats->lock);
    (void)pthread_mutex_unlock(&seats->lock);
    if (fits)
        ret->seats = seats;
    else
        (void)pthread_cond_destroy(&ret->changed);
    return fits;
}

void seat_leave(struct seat *seat)
{
    struct seats *seats = seat->seats;

    if (!seats)
        return;
    (void)pthread_mutex_lock(&seats->lock);
    take_out(seats, seat);
    give_out(seats);
    (void)pthread_mutex_unlock(&seats->lock);
    (void)pthread_cond_destroy(&seat->changed);
}
