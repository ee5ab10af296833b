#include "standalone/api/turns.h"

#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/str.h"
#include "standalone/api/api.h"

void turns_init(struct turns *turns)
{
    *turns = (struct turns){ 0 };
    (void)pthread_mutex_init(&turns->lock, NULL);
}

void turns_release(struct turns *turns)
{
    (void)pthread_mutex_destroy(&turns->lock);
}

/* The lock is held. */
static struct turn *first_of(const struct turns *turns, const char *key)
{
    struct turn *turn = turns->first;

    while (turn && !str_equal(turn->key, key))
        turn = turn->next;
    return turn;
}

bool turn_is_due(struct turn *turn)
{
    (void)pthread_mutex_lock(&turn->turns->lock);

    bool due = first_of(turn->turns, turn->key);

    (void)pthread_mutex_unlock(&turn->turns->lock);
    return due;
}

static void append(struct turns *turns, struct turn *turn)
{
    turn->next = NULL;
    if (turns->last)
        turns->last->next = turn;
    else
        turns->first = turn;
    turns->last = turn;
}

static void take_out(struct turns *turns, struct turn *turn)
{
    struct turn *before = NULL;

    for (struct turn *item = turns->first; item != turn; item = item->next)
        before = item;
    if (before)
        before->next = turn->next;
    else
        turns->first = turn->next;
    if (turns->last == turn)
        turns->last = before;
}

bool turn_take(struct turn *turn)
{
    struct turns *turns = turn->turns;

    if (turn->taken)
        return clock_monotonic_ms(&CLOCK_SYSTEM) < turn->end_ms;
    cond_init(&turn->changed);
    (void)pthread_mutex_lock(&turns->lock);
    append(turns, turn);
    while (first_of(turns, turn->key) != turn)
        (void)pthread_cond_wait(&turn->changed, &turns->lock);
    (void)pthread_mutex_unlock(&turns->lock);
    turn->taken = true;
    turn->end_ms = clock_monotonic_ms(&CLOCK_SYSTEM) + API_RETRY_MS;
    return true;
}

void turn_end(struct turn *turn)
{
    struct turns *turns = turn->turns;

    if (!turn->taken)
        return;
    (void)pthread_mutex_lock(&turns->lock);
    take_out(turns, turn);

    struct turn *next = first_of(turns, turn->key);

    if (next)
        (void)pthread_cond_signal(&next->changed);
    (void)pthread_mutex_unlock(&turns->lock);
    (void)pthread_cond_destroy(&turn->changed);
    turn->taken = false;
}
