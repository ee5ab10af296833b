/* Whose turn it is to write an object that several requests want to write. For this folder only. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/compiler.h"

/*
 * Of writers that read a key, change it and write it, the store lets one win with each sync; the others would read
 * and lose again, and the slowest never ends. So a writer that has lost once waits for its turn, in the order of
 * coming, and so does one that comes while another one waits. The writer that has the turn can lose only against those
 * that were under way before: it tries for API_RETRY_MS. Nothing is kept for a key that nobody waits for.
 */
struct turns {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct turn
        *first; /* of all keys, in the order of coming: as many as there are requests at most */
};

void turns_init(struct turns *turns);
void turns_release(struct turns *turns); /* nobody waits */

/* Of one writer. Begin with { .turns, .key }; it stays where it is. */
struct turn {
    struct turns *turns;
    const char *key;
    bool taken;
    int64_t end_ms; /* when it is taken: */
    struct turn *next;
};

/* Somebody has a turn for this key. */
bool turn_is_due(struct turn *turn);
/* Waits for it. Once it is taken: whether there is time for one more try. */
bool turn_take(struct turn *turn);
void turn_end(struct turn *turn); /* also if it was never taken */
DEFINE_CLEANUP_OF(struct turn, turn_end)
