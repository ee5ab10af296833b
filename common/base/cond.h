/* Condition variables on the monotonic clock, with a deadline. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

void cond_init(pthread_cond_t *cond); /* freed by pthread_cond_destroy */

struct timespec cond_deadline(uint32_t timeout_ms);
/* False: the deadline has passed. As with any wait, the caller looks at its condition again. */
bool cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, const struct timespec *deadline);
