/*
 * This module starts threads with small stacks.
 *
 * The caller owns the thread and joins it. thread_start fails with ERROR_INTERNAL if the system
 * gives no thread; function gets ctx, which outlives the thread.
 */
#pragma once

#include <pthread.h>

#include "common/base/error.h"

/* Bytes of a stack: several times what a request with TLS and a name look-up needs. The default of
 * 8 MiB counts against limits of address space. */
#define THREAD_STACK (512u << 10)

/* name is for ps and gdb, which keep 15 characters. */
int thread_start(pthread_t *ret, const char *name, void *(*function)(void *ctx), void *ctx,
                 struct error *err) MUST_CHECK;
void thread_join(pthread_t thread);
