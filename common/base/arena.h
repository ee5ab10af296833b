/*
 * An arena holds the memory of one unit of work (a reconcile, an admission request, a watch event)
 * and frees all of it at once.
 *
 * Ownership. Everything that is allocated in an arena belongs to it and lives until arena_destroy.
 * Errors. No function fails: out of memory ends the process.
 * Threads. Not thread-safe: one thread uses an arena at a time. Sizes are in bytes.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>

#include "common/base/compiler.h"

struct arena;

struct arena *arena_create(void);
/* Releases what the arena adopted, newest first, then its memory. NULL is fine. */
void arena_destroy(struct arena *arena);
DEFINE_CLEANUP(struct arena *, arena_destroy)

/* Returns count * size zeroed bytes, aligned for any type. Never NULL, also for no bytes. */
void *arena_alloc(struct arena *arena, size_t count, size_t size);
#define arena_new(arena, type) ((type *)arena_alloc((arena), 1, sizeof(type)))
#define arena_array(arena, type, count) ((type *)arena_alloc((arena), (count), sizeof(type)))

char *arena_strdup(struct arena *arena, const char *s);              /* NULL gives NULL */
char *arena_strndup(struct arena *arena, const char *s, size_t len); /* at most len bytes */
char *arena_printf(struct arena *arena, const char *format, ...) PRINTF_LIKE(2, 3);
char *arena_vprintf(struct arena *arena, const char *format, va_list args) PRINTF_LIKE(2, 0);

/* Adopts what another library allocated: release(ptr) is called by arena_destroy. Returns ptr; NULL
 * is returned and not adopted. */
void *arena_own(struct arena *arena, void *ptr, void (*release)(void *ptr));
/* Adopts the other arena, which is destroyed with this one. */
void arena_adopt(struct arena *arena, struct arena *other);
