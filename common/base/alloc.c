#include "common/base/alloc.h"

#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <unistd.h>

#include <sys/mman.h>

void alloc_init(void)
{
    (void)mallopt(M_ARENA_MAX, 1);
}

void alloc_give_back(void)
{
    (void)malloc_trim(0);
}

/* Of a segment that cannot be written nothing is lost: its pages are those of the file. */
static int unmap_segments(struct dl_phdr_info *object, size_t size, void *ctx)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

    (void)size;
    (void)ctx;
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        uintptr_t begin = (object->dlpi_addr + segment->p_vaddr) / page * page;
        uintptr_t end = object->dlpi_addr + segment->p_vaddr + segment->p_memsz;

        if (segment->p_type == PT_LOAD && !(segment->p_flags & PF_W))
            (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
    }
    return 0;
}

void alloc_give_back_code(void)
{
    (void)dl_iterate_phdr(unmap_segments, NULL);
}

static _Noreturn void out_of_memory(void)
{
    static const char LINE[] = "out of memory\n";
    ssize_t ignored = write(STDERR_FILENO, LINE, sizeof(LINE) - 1);

    (void)ignored;
    _exit(1);
}

static void *checked(void *pointer)
{
    if (!pointer)
        out_of_memory();
    return pointer;
}

void *xmalloc(size_t size)
{
    return checked(malloc(size ? size : 1));
}

void *xcalloc(size_t count, size_t size)
{
    size_t total;

    if (__builtin_mul_overflow(count, size, &total))
        out_of_memory();
    return checked(calloc(1, total ? total : 1));
}

void *xrealloc(void *pointer, size_t size)
{
    return checked(realloc(pointer, size ? size : 1));
}

char *xstrdup(const char *s)
{
    return xstrndup(s, strlen(s));
}

char *xstrndup(const char *s, size_t len)
{
    size_t used = strnlen(s, len);
    char *copy = xmalloc(used + 1);

    memcpy(copy, s, used);
    copy[used] = '\0';
    return copy;
}

void free_secret(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}
