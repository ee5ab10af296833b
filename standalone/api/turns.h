/* Whose turn it is to write an object that several requests want to write. For this folder only. */
#pragma once

#include <pthread.h>

#include "common/base/compiler.h"

#define TURNS 256

/*
 * Requests that read an object, change it and write it do so one after the other: else the store lets one win with
 * each sync, and the others read and lose again. Objects whose keys have the same hash wait for each other, too. The
 * seats of the server bound how many wait.
 */
struct turns {
    pthread_mutex_t locks[TURNS];
};

void turns_init(struct turns *turns);
void turns_release(struct turns *turns); /* no caller waits */

/* Waits for the turn. A request has one at a time. */
pthread_mutex_t *turn_begin(struct turns *turns, const char *key);
void turn_end(pthread_mutex_t *turn);
DEFINE_CLEANUP(pthread_mutex_t *, turn_end)
