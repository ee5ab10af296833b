/* malloc that cannot fail: out of memory ends the process with one line on stderr. */
#pragma once

#include <stddef.h>

void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *pointer, size_t size);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t len);
