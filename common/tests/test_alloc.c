#include <stdint.h>
#include <stdio.h>

#include "common/base/alloc.h"
#include "common/base/compiler.h"
#include "common/tests/process.h"
#include "common/tests/suite.h"

TEST(nothing_is_a_pointer_too)
{
    void *a = xmalloc(0);
    void *b = xcalloc(0, 8);
    void *c = xrealloc(NULL, 0);

    ck_assert(a && b && c);
    free(a);
    free(b);
    free(c);
}

TEST(calloc_gives_zeros_and_realloc_keeps)
{
    unsigned char *bytes = xcalloc(100, 3);

    for (int i = 0; i < 300; i++)
        ck_assert_uint_eq(bytes[i], 0);
    memset(bytes, 7, 300);
    bytes = xrealloc(bytes, 100000);
    for (int i = 0; i < 300; i++)
        ck_assert_uint_eq(bytes[i], 7);
    free(bytes);
}

TEST(strings_are_copied_up_to_a_length)
{
    static const struct {
        size_t len;
        const char *copy;
    } CASES[] = { { 0, "" }, { 3, "abc" }, { 6, "abcdef" }, { 100, "abcdef" } };

    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        char *copy = xstrndup("abcdef", CASES[i].len);

        ck_assert_str_eq(copy, CASES[i].copy);
        free(copy);
    }

    char *whole = xstrdup("abcdef");

    ck_assert_str_eq(whole, "abcdef");
    free(whole);
}

/* Pages of files that are mapped and present. */
static unsigned long file_pages(void)
{
    char *text = temp_file_read("/proc/self", "statm");
    unsigned long pages = 0;

    ck_assert_int_eq(sscanf(text, "%*u %*u %lu", &pages), 1);
    free(text);
    return pages;
}

TEST(what_the_program_only_reads_is_unmapped_until_it_is_used_again)
{
    static const char CONSTANTS[4 << 20] = { 1 };
    const volatile char *constants = CONSTANTS;
    int sum = 0;

    for (size_t i = 0; i < sizeof(CONSTANTS); i += 4096)
        sum += constants[i];
    unsigned long before = file_pages();
    alloc_give_back_code();
    ck_assert_uint_lt(file_pages(), before - before / 2);
    ck_assert_int_eq(constants[0], sum);
}

TEST_EXITS(a_product_that_overflows_ends_the_process, 1)
{
    free(xcalloc(SIZE_MAX / 2, 4));
}
