#include <stdalign.h>
#include <stdint.h>

#include "common/base/arena.h"
#include "common/tests/suite.h"

static char order[8];

static void note(void *ptr)
{
    size_t len = strlen(order);

    order[len] = *(char *)ptr;
    order[len + 1] = '\0';
}

TEST(memory_is_zeroed_aligned_and_disjoint)
{
    struct arena *arena = arena_create();
    unsigned char *blocks[300];

    for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {
        size_t size = i * 7 % 1000;

        blocks[i] = arena_alloc(arena, 1, size);
        ck_assert_uint_eq((uintptr_t)blocks[i] % alignof(max_align_t), 0);
        for (size_t k = 0; k < size; k++)
            ck_assert_uint_eq(blocks[i][k], 0);
        memset(blocks[i], (int)(i % 255) + 1, size);
    }
    for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {
        for (size_t k = 0; k < i * 7 % 1000; k++)
            ck_assert_uint_eq(blocks[i][k], i % 255 + 1);
    }
    arena_destroy(arena);
}

TEST(large_memory_stands_apart_and_small_goes_on_in_the_same_chunk)
{
    struct arena *arena = arena_create();
    char *before = arena_alloc(arena, 1, 8);
    char *large = arena_alloc(arena, 1, (size_t)10 << 20);
    char *after = arena_alloc(arena, 1, 8);

    large[((size_t)10 << 20) - 1] = 'x';
    ck_assert(after > before && after - before < 256);
    arena_destroy(arena);
}

TEST(first_allocation_may_be_large)
{
    struct arena *arena = arena_create();

    memset(arena_alloc(arena, 1000, 1000), 1, 1000000);
    memset(arena_alloc(arena, 1, 100), 1, 100);
    arena_destroy(arena);
}

TEST(owned_things_are_released_newest_first)
{
    struct arena *arena = arena_create();
    char names[] = "abc";

    order[0] = '\0';
    ck_assert_ptr_eq(arena_own(arena, names, note), names);
    (void)arena_own(arena, names + 1, note);
    ck_assert_ptr_null(arena_own(arena, NULL, note));
    (void)arena_own(arena, names + 2, note);
    ck_assert_str_eq(order, "");
    arena_destroy(arena);
    ck_assert_str_eq(order, "cba");
    arena_destroy(NULL);
}

TEST(an_adopted_arena_lives_as_long_as_the_other)
{
    struct arena *arena = arena_create(), *other = arena_create();
    char names[] = "ab";

    order[0] = '\0';
    (void)arena_own(other, names, note);
    (void)arena_own(arena, names + 1, note);
    arena_adopt(arena, other);
    ck_assert_str_eq(order, "");
    arena_destroy(arena);
    ck_assert_str_eq(order, "ab");
}

TEST(strings_are_copied)
{
    struct arena *arena = arena_create();
    char text[] = "abcdef";
    char *whole = arena_strdup(arena, text);
    char *part = arena_strndup(arena, text, 3);
    char *more = arena_strndup(arena, text, 100);

    text[0] = 'X';
    ck_assert_str_eq(whole, "abcdef");
    ck_assert_str_eq(part, "abc");
    ck_assert_str_eq(more, "abcdef");
    ck_assert_ptr_null(arena_strdup(arena, NULL));
    ck_assert_str_eq(arena_printf(arena, "%s-%d", "n", 42), "n-42");
    ck_assert_uint_eq(strlen(arena_printf(arena, "%20000d", 1)), 20000);
    arena_destroy(arena);
}

TEST_EXITS(a_count_that_overflows_ends_the_process, 1)
{
    struct arena *arena = arena_create();

    (void)arena_alloc(arena, SIZE_MAX / 2, 3);
}

#if defined(__SANITIZE_ADDRESS__)
TEST_EXITS(a_byte_behind_an_allocation_is_caught, 1)
{
    struct arena *arena = arena_create();
    volatile char *bytes = arena_alloc(arena, 1, 16);

    (void)arena_alloc(arena, 1, 16);
    bytes[16] = 1;
}
#endif
