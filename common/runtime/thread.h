/* Threads with small stacks. */
#pragma once

#include <pthread.h>

#include "common/base/error.h"

/* Room for a request with TLS and a name look-up several times over; the default of 8 MiB counts
 * against limits of address space. */
#define THREAD_STACK (512u << 10)

/* name: at most 15 characters are kept, for ps and gdb. */
int thread_start(pthread_t *ret, const char *name, void *(*function)(void *ctx), void *ctx,
                 struct error *err) MUST_CHECK;
void thread_join(pthread_t thread);
