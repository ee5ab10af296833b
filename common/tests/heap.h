/* How much this program has allocated: for tests that say what an input may cost. */
#pragma once

#include <stddef.h>

/*
 * Counts what malloc and its kin give out and take back, of every thread and every library, from the
 * first call on. A program that is linked with this file has its own malloc, which asks that of the C
 * library; under a sanitizer, which has one too, its hooks are used.
 */
void heap_watch(void);
/* The most bytes that were in use at once since heap_watch, beyond those in use then. */
size_t heap_peak(void);
/* Memory of the test itself, between these two calls, is not counted. Not thread-safe. */
void heap_pause(void);
void heap_resume(void);
