/* Memory of one unit of work (a reconcile, an admission request, a watch event): freed all at once.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>

#include "common/base/compiler.h"

struct arena;

/* Not for sharing between threads. */
struct arena *arena_create(void);
void arena_destroy(struct arena *arena); /* runs owned releases, newest first; NULL is fine */
DEFINE_CLEANUP(struct arena *, arena_destroy)

void *arena_alloc(struct arena *arena, size_t count, size_t size); /* zeroed, aligned, never NULL */
#define arena_new(arena, type) ((type *)arena_alloc((arena), 1, sizeof(type)))
#define arena_array(arena, type, count) ((type *)arena_alloc((arena), (count), sizeof(type)))

char *arena_strdup(struct arena *arena, const char *s); /* NULL gives NULL */
char *arena_strndup(struct arena *arena, const char *s, size_t len);
char *arena_printf(struct arena *arena, const char *format, ...) PRINTF_LIKE(2, 3);
char *arena_vprintf(struct arena *arena, const char *format, va_list args) PRINTF_LIKE(2, 0);

/* Adopts what another library allocated; returns ptr. NULL is returned as it is. */
void *arena_own(struct arena *arena, void *ptr, void (*release)(void *ptr));
/* The other one lives as long as this one from now on. */
void arena_adopt(struct arena *arena, struct arena *other);
