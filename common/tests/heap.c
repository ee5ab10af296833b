#include "common/tests/heap.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/compiler.h"
#include <string.h>

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

#ifdef SANITIZED
/* Of the runtimes of both compilers, of which only clang has the header. */
extern int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void *block,
                                                                       size_t size),
                                                     void (*on_free)(const volatile void *block));
extern size_t __sanitizer_get_allocated_size(const volatile void *block);

static void on_malloc(const volatile void *block UNUSED, size_t size)
{
    given(size);
}

static void on_free(const volatile void *block)
{
    if (block)
        taken_back(__sanitizer_get_allocated_size(block));
}

void heap_watch(void)
{
    static bool installed;

    if (!installed)
        installed = __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free) > 0;
    begin();
}

#else
/* What glibc calls its own. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t align, size_t size);
extern void __libc_free(void *block);

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

void *malloc(size_t size)
{
    return counted(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
    return counted(__libc_calloc(count, size));
}

void *realloc(void *block, size_t size)
{
    size_t old = block ? malloc_usable_size(block) : 0;
    void *moved = __libc_realloc(block, size);

    if (moved || !size)
        taken_back(old);
    return counted(moved);
}

void *memalign(size_t align, size_t size)
{
    return counted(__libc_memalign(align, size));
}

void *aligned_alloc(size_t align, size_t size)
{
    return counted(__libc_memalign(align, size));
}

int posix_memalign(void **ret, size_t align, size_t size)
{
    void *block = counted(__libc_memalign(align, size));

    if (!block)
        return ENOMEM;
    *ret = block;
    return 0;
}

void free(void *block)
{
    if (block)
        taken_back(malloc_usable_size(block));
    __libc_free(block);
}
#endif
