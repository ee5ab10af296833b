/* malloc that cannot fail: out of memory ends the process with one line on stderr. */
#pragma once

#include <stddef.h>

/* Before other threads are there. One heap for all of them: with one for every two threads, as is
 * usual, what a burst leaves free in each can be used by no other. */
void alloc_init(void);
/* What is free goes back to the system. Walks over the heap: not in a hurry. */
void alloc_give_back(void);

void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *pointer, size_t size);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t len);
