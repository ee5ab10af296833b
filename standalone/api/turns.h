/* Whose turn it is to write an object that several requests want to write. For this folder only. */
#pragma once

#include <pthread.h>

#include "common/base/compiler.h"

/*
 * Requests that read an object, change it and write it have their turns at it, in the order of coming: else the store
 * lets one win with each sync, the others read and lose again, and the slowest never ends. Nothing is kept for a key
 * that no request holds.
 */
struct turns {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct turn
        *first; /* of all keys, in the order of coming: as many as there are requests at most */
};

void turns_init(struct turns *turns);
void turns_release(struct turns *turns); /* no caller waits */

/* Of one request; it stays where it is. */
struct turn {
    struct turns *turns;
    const char *key;
    struct turn *next;
};

/* Waits for the turn. A request has one at a time. */
void turn_begin(struct turn *turn, struct turns *turns, const char *key);
void turn_end(struct turn *turn);
DEFINE_CLEANUP_OF(struct turn, turn_end)
