/*
 * The tests of a program, each named once, where it is written:
 *
 *     TEST_GROUP("answers", set_up, tear_down);
 *     TEST(a_page_answers_with_its_query) { ... }
 *     TEST_EACH(verbose_is_a_part_of_the_query, QUERIES) { ... QUERIES[_i] ... }
 *     TEST_TIMES(every_walk_ends_at_rest, WALKS) { ... _i is 0, 1 and so on ... }
 *     TEST_EXITS(a_count_that_overflows_ends_the_process, 1) { ... }
 *
 * A test runs in a process of its own. TEST_GROUP says what runs there before and after each of the tests that follow,
 * up to the next group; TEST_GROUP_ONCE also what runs once for all of them, in the process of which theirs are copies.
 * Each of these may be NULL. CK_RUN_CASE=answers runs the group of this name alone. The program's main is that of
 * suite_main.c, unless it has its own, which calls suite_run_tests, or suite_run with a suite that it made itself.
 */
#pragma once

#include <check.h>

#include "common/base/compiler.h"

#define TEST(name) TEST_ADDED(name, 1, 0)
#define TEST_EACH(name, table) TEST_ADDED(name, ARRAY_LEN(table), 0)
#define TEST_TIMES(name, times) TEST_ADDED(name, times, 0)
#define TEST_EXITS(name, status) TEST_ADDED(name, 1, status)

#define TEST_GROUP(name, set_up, tear_down) TEST_GROUP_ONCE(name, NULL, NULL, set_up, tear_down)
#define TEST_GROUP_ONCE(name, begin, end, set_up, tear_down)                                       \
    SUITE_ADDS(SUITE_JOIN(group_at_, __LINE__),                                                    \
               ((struct suite_entry){ .line = __LINE__,                                            \
                                      .group = (name),                                             \
                                      .once = { begin, end },                                      \
                                      .each = { set_up, tear_down } }))                            \
    _Static_assert(__LINE__, "for the semicolon")

/* The parts of these macros. */
struct suite_entry {
    int line;          /* entries are in the order of their lines */
    const TTest *test; /* NULL: this begins a group */
    int times, exit_status;
    const char *group;
    SFun once[2], each[2]; /* before and after */
};
#define TEST_ADDED(name, count, status)                                                            \
    static void name(int _i);                                                                      \
    static const TTest name##_test = { #name, name, __FILE__, __LINE__ };                          \
    SUITE_ADDS(name##_is_added, ((struct suite_entry){ .line = __LINE__,                           \
                                                       .test = &name##_test,                       \
                                                       .times = (int)(count),                      \
                                                       .exit_status = (status) }))                 \
    static void name(int _i UNUSED)
#define SUITE_ADDS(function, entry)                                                                \
    __attribute__((constructor)) static void function(void)                                        \
    {                                                                                              \
        suite_add(entry);                                                                          \
    }
#define SUITE_JOIN(a, b) SUITE_JOIN_AGAIN(a, b)
#define SUITE_JOIN_AGAIN(a, b) a##b
void suite_add(struct suite_entry entry);

/* Run what was added, or the suite, which is freed; return what main returns: 0 when all passed. */
int suite_run_tests(void);
int suite_run(Suite *suite);
