#include <stdint.h>

#include "common/base/buf.h"
#include "common/tests/suite.h"

TEST(an_empty_buffer_is_the_empty_string)
{
    struct buf buf = BUF_INIT(10);

    ck_assert_str_eq(buf_string(&buf), "");
    ck_assert(buf_append(&buf, NULL, 0));
    ck_assert_str_eq(buf_string(&buf), "");
    ck_assert_uint_eq(buf.len, 0);
    buf_release(&buf);
}

TEST(what_is_appended_is_a_c_string)
{
    struct buf buf = BUF_INIT(1000);

    ck_assert(buf_append(&buf, "ab", 2));
    ck_assert(buf_append_string(&buf, "cd"));
    ck_assert(buf_printf(&buf, "-%d-%s", 7, "x"));
    ck_assert_str_eq(buf_string(&buf), "abcd-7-x");
    ck_assert_uint_eq(buf.len, 8);
    buf_release(&buf);
}

TEST(more_than_the_maximum_appends_nothing)
{
    struct buf buf = BUF_INIT(5);

    ck_assert(buf_append_string(&buf, "abc"));
    ck_assert(!buf_append_string(&buf, "def"));
    ck_assert(!buf_printf(&buf, "%d", 123));
    ck_assert_str_eq(buf_string(&buf), "abc");
    ck_assert(buf_append_string(&buf, "de"));
    ck_assert(!buf_append_string(&buf, "f"));
    ck_assert(!buf_append(&buf, "f", SIZE_MAX));
    ck_assert(buf_append_string(&buf, ""));
    ck_assert_str_eq(buf_string(&buf), "abcde");
    buf_release(&buf);

    struct buf none = BUF_INIT(0);

    ck_assert(!buf_append_string(&none, "a"));
    ck_assert(buf_append_string(&none, ""));
    buf_release(&none);
}

TEST(it_takes_no_more_memory_than_the_maximum)
{
    struct buf buf = BUF_INIT(100);

    while (buf_append_string(&buf, "1234567")) {
    }
    ck_assert_uint_eq(buf.len, 98);
    ck_assert_uint_le(buf.cap, 101);
    buf_release(&buf);
}

TEST(every_byte_comes_out_of_a_long_one)
{
    struct buf buf = BUF_INIT(SIZE_MAX);

    for (unsigned i = 0; i < 100000; i++) {
        unsigned char byte = (unsigned char)(i % 251);

        ck_assert(buf_append(&buf, &byte, 1));
    }
    for (unsigned i = 0; i < 100000; i++)
        ck_assert_uint_eq((unsigned char)buf.data[i], i % 251);
    buf_release(&buf);
}

TEST(what_is_prepended_comes_first)
{
    struct buf buf = BUF_INIT(6);

    ck_assert(buf_prepend(&buf, "ef", 2));
    ck_assert(buf_prepend(&buf, "abcd", 4));
    ck_assert_str_eq(buf_string(&buf), "abcdef");
    ck_assert(!buf_prepend(&buf, "x", 1));
    ck_assert_str_eq(buf_string(&buf), "abcdef");
    buf_release(&buf);
}

TEST(consume_drops_from_the_front)
{
    struct buf buf = BUF_INIT(10);

    buf_consume(&buf, 0);
    ck_assert(buf_append_string(&buf, "abcdef"));
    buf_consume(&buf, 2);
    ck_assert_str_eq(buf_string(&buf), "cdef");
    ck_assert(buf_append_string(&buf, "ghijkl"));
    ck_assert_str_eq(buf_string(&buf), "cdefghijkl");
    buf_consume(&buf, 10);
    ck_assert_str_eq(buf_string(&buf), "");
    buf_release(&buf);
}

TEST(cleared_or_released_it_can_be_used_again)
{
    struct buf buf = BUF_INIT(10);

    buf_clear(&buf);
    ck_assert(buf_append_string(&buf, "abc"));
    const char *data = buf.data;
    buf_clear(&buf);
    ck_assert_str_eq(buf_string(&buf), "");
    ck_assert_ptr_eq(buf.data, data); /* the memory is kept */
    ck_assert(buf_append_string(&buf, "x"));
    buf_release(&buf);
    ck_assert_uint_eq(buf.max, 10);
    ck_assert(buf_append_string(&buf, "y"));
    ck_assert_str_eq(buf_string(&buf), "y");
    buf_release(&buf);
}

TEST(a_nul_is_found_with_its_line)
{
    static const char TEXT[] = "a\nb\0\n\0";
    struct buf buf = BUF_INIT(100);

    ck_assert_uint_eq(buf_line_of_nul(&buf), 0);
    ck_assert(buf_append(&buf, TEXT, 3));
    ck_assert_uint_eq(buf_line_of_nul(&buf), 0);
    ck_assert(buf_append(&buf, TEXT + 3, sizeof(TEXT) - 3));
    ck_assert_uint_eq(buf_line_of_nul(&buf), 2);
    buf_release(&buf);
}
