#include "common/base/arena.h"

#include <assert.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#include <sanitizer/asan_interface.h>

#include "common/base/alloc.h"

/* Chunks double from the first size to the last: a small reconcile costs one page. */
#define FIRST_CHUNK ((size_t)4 << 10)
#define LAST_CHUNK ((size_t)64 << 10)

/* Under the address sanitizer a poisoned gap follows each allocation; otherwise there is none. */
#if defined(__SANITIZE_ADDRESS__)
#define RED_ZONE 16
#else
#define RED_ZONE 0
#endif

struct chunk {
    struct chunk *next;
    size_t used;
    size_t size;
    alignas(max_align_t) char bytes[];
};

struct owned {
    struct owned *older;
    void *ptr;
    void (*release)(void *ptr);
};

struct arena {
    struct chunk *chunks; /* the first is the one being filled */
    struct owned *owned;  /* newest first */
    size_t next_size;
};

struct arena *arena_create(void)
{
    struct arena *arena = xcalloc(1, sizeof(*arena));

    arena->next_size = FIRST_CHUNK;
    return arena;
}

void arena_destroy(struct arena *arena)
{
    if (!arena)
        return;
    for (struct owned *owned = arena->owned; owned; owned = owned->older)
        owned->release(owned->ptr);

    while (arena->chunks) {
        struct chunk *chunk = arena->chunks;

        arena->chunks = chunk->next;
        ASAN_UNPOISON_MEMORY_REGION(chunk->bytes, chunk->size);
        free(chunk);
    }
    free(arena);
}

static struct chunk *chunk_create(size_t size)
{
    struct chunk *chunk = xcalloc(1, sizeof(*chunk) + size);

    chunk->size = size;
    ASAN_POISON_MEMORY_REGION(chunk->bytes, size);
    return chunk;
}

static void *take(struct chunk *chunk, size_t wanted, size_t step)
{
    char *bytes = chunk->bytes + chunk->used;

    chunk->used += step;
    ASAN_UNPOISON_MEMORY_REGION(bytes, wanted);
    (void)wanted;
    return bytes;
}

/* What does not fit well gets a chunk of its own behind the one being filled, which stays in use.
 */
static void *alloc_apart(struct arena *arena, size_t wanted, size_t step)
{
    struct chunk *chunk = chunk_create(step);

    if (arena->chunks) {
        chunk->next = arena->chunks->next;
        arena->chunks->next = chunk;
    } else {
        arena->chunks = chunk;
    }
    return take(chunk, wanted, step);
}

void *arena_alloc(struct arena *arena, size_t count, size_t size)
{
    const size_t align = alignof(max_align_t);
    size_t wanted;

    if (__builtin_mul_overflow(count, size, &wanted) || wanted > SIZE_MAX / 2)
        return xcalloc(SIZE_MAX, SIZE_MAX); /* does not return */

    size_t step = ((wanted ? wanted : 1) + RED_ZONE + align - 1) / align * align;
    struct chunk *chunk = arena->chunks;

    if (chunk && chunk->size - chunk->used >= step)
        return take(chunk, wanted, step);
    if (step > arena->next_size / 4)
        return alloc_apart(arena, wanted, step);

    chunk = chunk_create(arena->next_size);
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    if (arena->next_size < LAST_CHUNK)
        arena->next_size *= 2;
    return take(chunk, wanted, step);
}

char *arena_strdup(struct arena *arena, const char *s)
{
    return s ? arena_strndup(arena, s, strlen(s)) : NULL;
}

char *arena_strndup(struct arena *arena, const char *s, size_t len)
{
    size_t used = strnlen(s, len);
    char *copy = arena_alloc(arena, used + 1, 1);

    memcpy(copy, s, used);
    return copy;
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    char *text = arena_vprintf(arena, format, args);
    va_end(args);
    return text;
}

char *arena_vprintf(struct arena *arena, const char *format, va_list args)
{
    va_list again;

    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, again);
    va_end(again);
    assert(len >= 0); /* a format that C does not know: a bug at the caller */

    char *text = arena_alloc(arena, (size_t)len + 1, 1);
    (void)vsnprintf(text, (size_t)len + 1, format, args);
    return text;
}

void *arena_own(struct arena *arena, void *ptr, void (*release)(void *ptr))
{
    if (!ptr)
        return NULL;

    struct owned *owned = arena_new(arena, struct owned);

    *owned = (struct owned){ .older = arena->owned, .ptr = ptr, .release = release };
    arena->owned = owned;
    return ptr;
}

static void destroy(void *arena)
{
    arena_destroy(arena);
}

void arena_adopt(struct arena *arena, struct arena *other)
{
    (void)arena_own(arena, other, destroy);
}
