#include "standalone/api/turns.h"

#include "common/base/clock.h"
#include "common/base/str.h"
#include "standalone/api/api.h"

void turns_init(struct turns *turns)
{
    *turns = (struct turns){ 0 };
    (void)pthread_mutex_init(&turns->lock, NULL);
    (void)pthread_cond_init(&turns->changed, NULL);
}

void turns_release(struct turns *turns)
{
    (void)pthread_cond_destroy(&turns->changed);
    (void)pthread_mutex_destroy(&turns->lock);
}

/* The lock is held. */
static struct turn *turns_first_of(const struct turns *turns, const char *key)
{
    struct turn *turn = turns->first;

    while (turn && !str_equal(turn->key, key))
        turn = turn->next;
    return turn;
}

bool turn_is_due(struct turn *turn)
{
    (void)pthread_mutex_lock(&turn->turns->lock);

    bool due = turns_first_of(turn->turns, turn->key);

    (void)pthread_mutex_unlock(&turn->turns->lock);
    return due;
}

bool turn_take(struct turn *turn)
{
    struct turns *turns = turn->turns;
    struct turn **last = &turns->first;

    if (turn->taken)
        return clock_monotonic_ms(&CLOCK_SYSTEM) < turn->end_ms;
    (void)pthread_mutex_lock(&turns->lock);
    while (*last)
        last = &(*last)->next;
    *last = turn;
    while (turns_first_of(turns, turn->key) != turn)
        (void)pthread_cond_wait(&turns->changed, &turns->lock);
    (void)pthread_mutex_unlock(&turns->lock);
    turn->taken = true;
    turn->end_ms = clock_monotonic_ms(&CLOCK_SYSTEM) + API_RETRY_MS;
    return true;
}

void turn_end(struct turn *turn)
{
    struct turns *turns = turn->turns;
    struct turn **at = &turns->first;

    if (!turn->taken)
        return;
    (void)pthread_mutex_lock(&turns->lock);
    while (*at != turn)
        at = &(*at)->next;
    *at = turn->next;
    (void)pthread_cond_broadcast(&turns->changed);
    (void)pthread_mutex_unlock(&turns->lock);
    turn->taken = false;
}
