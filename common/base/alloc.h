/*
 * This module wraps malloc so that it cannot fail: out of memory ends the process with one line on
 * standard error.
 *
 * The caller owns the memory and frees it with free. Sizes are in bytes. Any thread.
 */
#pragma once

#include <stddef.h>

/* Makes all threads use one heap. Called before other threads exist. With several heaps, memory
 * that a burst leaves free in one of them could not be used by threads of another. */
void alloc_init(void);
/* Returns free memory to the system. It walks over the heap, so it is for idle moments. */
void alloc_give_back(void);

/* Unmaps the code and constants of the program and its libraries. A start touches much more of them than later work.
 * Pages that are used again come back from the page cache. Breakpoints that a debugger has set are lost. */
void alloc_give_back_code(void);

void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size); /* zeroed */
void *xrealloc(void *pointer, size_t size);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t len);
/* Overwrites the string before it frees it; NULL is fine. */
void free_secret(char *secret);
