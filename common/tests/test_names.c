#include <string.h>

#include "common/api/names.h"
#include "common/base/str.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/suite.h"

static const struct {
    const char *text;
    const char *name; /* what child_name makes of it; ends in '-' where a hash follows */
} NAMES[] = {
    { "job-first", "job-first" },
    { "job-1.2.x", "job-1.2.x" },
    { "job-My Task_1", "job-my-task-1-" },
    { "job-a.-b", "job-a--b-" },
    { "job-a..b", "job-a--b-" },
    { "-job-", "job-" },
    { "job.", "job-" },
    { "job-\xc3\xa9t\xc3\xa9", "job---t-" },
    { "___", "x-" },
    { "", "x-" },
};

TEST_GROUP("names", arena_set_up, arena_tear_down);

TEST_EACH(a_child_name_is_a_valid_name_of_an_object, NAMES)
{
    const char *name = child_name(arena, NAME_MAX_POD_OWNER, "%s", NAMES[_i].text);
    size_t len = strlen(NAMES[_i].name);
    bool hashed = len == 0 || NAMES[_i].name[len - 1] == '-';

    ck_assert_msg(str_is_dns_subdomain(name), "%s", name);
    ck_assert_int_eq(strncmp(name, NAMES[_i].name, len), 0);
    ck_assert_uint_eq(strlen(name), hashed ? len + 10 : len);
}

TEST(texts_that_would_become_one_name_stay_two)
{
    static const char *const ALIKE[] = { "job-a-b", "job-a_b", "job-A-b", "job-a b", "job-a-b-" };

    for (size_t i = 0; i < ARRAY_LEN(ALIKE); i++) {
        for (size_t j = 0; j < i; j++)
            ck_assert_str_ne(child_name(arena, 63, "%s", ALIKE[i]),
                             child_name(arena, 63, "%s", ALIKE[j]));
    }
}

TEST(a_child_name_is_the_same_for_ever)
{
    ck_assert_str_eq(child_name(arena, 63, "round-%d-%s", 3, "My Job"),
                     "round-3-my-job-e5b6427a87");
}

TEST(a_long_child_name_is_cut_and_still_tells_its_ends_apart)
{
    char a[301];
    char b[301];

    memset(a, 'a', 300);
    a[300] = '\0';
    memcpy(b, a, 301);
    b[299] = 'b';
    for (size_t max = 16; max <= NAME_MAX_OBJECT; max++) {
        const char *of_a = child_name(arena, max, "%s", a);

        ck_assert_uint_eq(strlen(of_a), max);
        ck_assert(str_is_dns_subdomain(of_a));
        ck_assert_str_ne(of_a, child_name(arena, max, "%s", b));
    }
}

TEST(a_name_that_fits_exactly_is_left_alone)
{
    const char *text = "a23456789-123456789-123456789-123456789-123456789-123456789-123";

    ck_assert_str_eq(child_name(arena, 63, "%s", text), text);
    ck_assert_str_eq(label_value(arena, text), text);
    ck_assert_str_ne(child_name(arena, 62, "%s", text), text);
}

TEST(a_label_value_keeps_what_labels_may_hold)
{
    ck_assert_str_eq(label_value(arena, "My_Task.1"), "My_Task.1");
    ck_assert_str_eq(label_value(arena, ""), "");
    ck_assert_int_eq(strncmp(label_value(arena, "a b/c"), "a-b-c-", 6), 0);
    ck_assert_uint_eq(strlen(label_value(arena, "_a_")), strlen("a-0123456789"));
}
