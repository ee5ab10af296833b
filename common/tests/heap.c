#include "common/tests/heap.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/compiler.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#endif

static atomic_llong in_use, most, before;
static atomic_bool paused;
static long long in_use_when_paused;

static void given(size_t size)
{
    long long now = atomic_fetch_add(&in_use, (long long)size) + (long long)size;
    long long old = atomic_load(&most);

    while (now > old && !atomic_load(&paused) && !atomic_compare_exchange_weak(&most, &old, now))
        ;
}

static void taken_back(size_t size)
{
    (void)atomic_fetch_sub(&in_use, (long long)size);
}

void heap_pause(void)
{
    in_use_when_paused = atomic_load(&in_use);
    atomic_store(&paused, true);
}

void heap_resume(void)
{
    long long more = atomic_load(&in_use) - in_use_when_paused;

    (void)atomic_fetch_add(&before, more);
    (void)atomic_fetch_add(&most, more);
    atomic_store(&paused, false);
}

size_t heap_peak(void)
{
    return (size_t)(atomic_load(&most) - atomic_load(&before));
}

static void begin(void)
{
    atomic_store(&paused, false);
    atomic_store(&before, atomic_load(&in_use));
    atomic_store(&most, atomic_load(&in_use));
}

/* The symbols have other names in C: theirs are reserved, or declared with other parameters. */
#ifdef SANITIZED
int install_hooks(void (*on_malloc)(const volatile void *block, size_t size),
                  void (*on_free)(const volatile void
                                      *block)) __asm__("__sanitizer_install_malloc_and_free_hooks");
size_t allocated_size(const volatile void *block) __asm__("__sanitizer_get_allocated_size");

static void on_malloc(const volatile void *block UNUSED, size_t size)
{
    given(size);
}

static void on_free(const volatile void *block)
{
    if (block)
        taken_back(allocated_size(block));
}

void heap_watch(void)
{
    static bool installed;

    if (!installed)
        installed = install_hooks(on_malloc, on_free) > 0;
    begin();
}

#else
void *libc_malloc(size_t size) __asm__("__libc_malloc");
void *libc_calloc(size_t count, size_t size) __asm__("__libc_calloc");
void *libc_realloc(void *block, size_t size) __asm__("__libc_realloc");
void *libc_memalign(size_t align, size_t size) __asm__("__libc_memalign");
void libc_free(void *block) __asm__("__libc_free");

void *own_malloc(size_t size) __asm__("malloc");
void *own_calloc(size_t count, size_t size) __asm__("calloc");
void *own_realloc(void *block, size_t size) __asm__("realloc");
void *own_memalign(size_t align, size_t size) __asm__("memalign");
void *own_aligned_alloc(size_t align, size_t size) __asm__("aligned_alloc");
int own_posix_memalign(void **ret, size_t align, size_t size) __asm__("posix_memalign");
void own_free(void *block) __asm__("free");

void heap_watch(void)
{
    begin();
}

static void *counted(void *block)
{
    if (block)
        given(malloc_usable_size(block));
    return block;
}

void *own_malloc(size_t size)
{
    return counted(libc_malloc(size));
}

void *own_calloc(size_t count, size_t size)
{
    return counted(libc_calloc(count, size));
}

void *own_realloc(void *block, size_t size)
{
    size_t old = block ? malloc_usable_size(block) : 0;
    void *moved = libc_realloc(block, size);

    if (moved || !size)
        taken_back(old);
    return counted(moved);
}

void *own_memalign(size_t align, size_t size)
{
    return counted(libc_memalign(align, size));
}

void *own_aligned_alloc(size_t align, size_t size)
{
    return counted(libc_memalign(align, size));
}

int own_posix_memalign(void **ret, size_t align, size_t size)
{
    void *block = counted(libc_memalign(align, size));

    if (!block)
        return ENOMEM;
    *ret = block;
    return 0;
}

void own_free(void *block)
{
    if (block)
        taken_back(malloc_usable_size(block));
    libc_free(block);
}
#endif
