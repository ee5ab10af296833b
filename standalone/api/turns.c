#include "standalone/api/turns.h"

#include "common/base/str.h"

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
static const struct turn *turns_first_of(const struct turns *turns, const char *key)
{
    const struct turn *turn = turns->first;

    while (!str_equal(turn->key, key))
        turn = turn->next;
    return turn;
}

void turn_begin(struct turn *turn, struct turns *turns, const char *key)
{
    struct turn **end = &turns->first;

    *turn = (struct turn){ .turns = turns, .key = key };
    (void)pthread_mutex_lock(&turns->lock);
    while (*end)
        end = &(*end)->next;
    *end = turn;
    while (turns_first_of(turns, key) != turn)
        (void)pthread_cond_wait(&turns->changed, &turns->lock);
    (void)pthread_mutex_unlock(&turns->lock);
}

void turn_end(struct turn *turn)
{
    struct turns *turns = turn->turns;
    struct turn **at;

    if (!turns)
        return;
    (void)pthread_mutex_lock(&turns->lock);
    for (at = &turns->first; *at != turn; at = &(*at)->next)
        ;
    *at = turn->next;
    (void)pthread_cond_broadcast(&turns->changed);
    (void)pthread_mutex_unlock(&turns->lock);
}
