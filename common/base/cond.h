/*
 * This module waits on condition variables until a deadline of the monotonic clock.
 *
 * The caller owns the condition variable and its lock. No function fails: an error of the system is
 * a bug.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

void cond_init(pthread_cond_t *cond); /* released by pthread_cond_destroy */

struct timespec cond_deadline(uint32_t timeout_ms); /* from now on */
/* Blocks, without the lock, until a signal or the deadline; called and left with the lock. Returns
 * false if the deadline has passed. It may wake without a signal: the caller checks its condition
 * again. */
bool cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, const struct timespec *deadline);
