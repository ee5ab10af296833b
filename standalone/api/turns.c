#include "standalone/api/turns.h"

#include "common/base/map.h"

void turns_init(struct turns *turns)
{
    for (size_t i = 0; i < TURNS; i++)
        (void)pthread_mutex_init(&turns->locks[i], NULL);
}

void turns_release(struct turns *turns)
{
    for (size_t i = 0; i < TURNS; i++)
        (void)pthread_mutex_destroy(&turns->locks[i]);
}

pthread_mutex_t *turn_begin(struct turns *turns, const char *key)
{
    pthread_mutex_t *turn = &turns->locks[map_hash(key) % TURNS];

    (void)pthread_mutex_lock(turn);
    return turn;
}

void turn_end(pthread_mutex_t *turn)
{
    (void)pthread_mutex_unlock(turn);
}
