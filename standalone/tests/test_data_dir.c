/* A data directory keeps its data with any clock, and a start reports what one has lost. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "certs/make.h"
#include "common/base/certificate.h"
#include "common/base/file.h"
#include "common/base/str.h"
#include "common/tests/fake_clock.h"
#include "common/tests/observe.h"
#include "common/tests/suite.h"
#include "common/tests/temp_dir.h"
#include "standalone/process/data_dir.h"

#define DAY_US (INT64_C(24) * 60 * 60 * 1000000)
#define NOW_US FAKE_CLOCK_WALL_US

static struct arena *arena;
static const char *dir;

static void setup(void)
{
    arena = arena_create();
    dir = temp_dir(arena);
}

static void teardown(void)
{
    arena_destroy(arena);
}

TEST_GROUP("all", setup, teardown);

static int64_t wall_us(void *ctx)
{
    return *(const int64_t *)ctx;
}

/* At that time, with a second name if that is wanted. */
static int keep_at(int64_t now_us, bool other_names, bool may_begin, struct error *err)
{
    const struct clock clock = { .ctx = &now_us, .wall_us = wall_us };
    const char *items[] = { "127.0.0.1", "gateway" };
    const struct cert_names names = { items, other_names ? 2 : 1 };

    return data_dir_keep_certificates(arena, dir, &names, may_begin, &clock, err);
}

static void keep(int64_t now_us)
{
    struct error err = { 0 };

    ck_assert_msg(keep_at(now_us, false, true, &err) == 0, "%s", err.message);
}

static const char *text_of(const char *name)
{
    struct error err = { 0 };
    const char *text;

    ck_assert_msg(data_dir_read(arena, dir, name, &text, &err) == 0, "%s", err.message);
    return text;
}

static void put(const char *name, const char *text)
{
    struct error err;

    ck_assert_int_eq(file_replace(data_dir_path(arena, dir, name), text, &err), 0);
}

static struct certificate_times times_of(const char *name)
{
    struct certificate_times times;

    ck_assert_int_eq(certificate_read_times(text_of(name), &times, NULL), 0);
    return times;
}

static const char *message(const char *format)
{
    const char *mark = strstr(format, "%s");

    return arena_printf(arena, "%.*s%s%s", (int)(mark - format), format, dir, mark + 2);
}

TEST(a_file_with_a_nul_is_damaged)
{
    static const char TEXT[] = "one\n\0two\n";
    int fd = open(data_dir_path(arena, dir, "file"), O_WRONLY | O_CREAT, 0600);
    struct error err = { 0 };
    const char *text;

    ck_assert_int_eq(write(fd, TEXT, sizeof(TEXT) - 1), sizeof(TEXT) - 1);
    close(fd);
    ck_assert_int_eq(data_dir_read(arena, dir, "file", &text, &err), -ERROR_INVALID);
    ck_assert_str_eq(err.message, message("'%s/file': line 2 holds a NUL: it is damaged, restore "
                                          "it from a copy"));
}

/* --- clocks ----------------------------------------------------------------------------------- */

static const int64_t OTHER_TIMES[] = {
    NOW_US - INT64_C(600) * 1000000,
    NOW_US - DAY_US,
    NOW_US - 20 * 365 * DAY_US,
    0,
    NOW_US + DAY_US,
    NOW_US + 365 * DAY_US,
};

TEST_EACH(another_clock_changes_neither_the_authority_nor_what_is_served, OTHER_TIMES)
{
    keep(NOW_US);

    const char *ca = text_of("ca/ca.crt"), *key = text_of("ca/ca.key");
    const char *leaf = text_of("tls/tls.crt");

    keep(OTHER_TIMES[_i]);
    ck_assert_str_eq(text_of("ca/ca.crt"), ca);
    ck_assert_str_eq(text_of("ca/ca.key"), key);
    ck_assert_str_eq(text_of("tls/tls.crt"), leaf);
    keep(NOW_US + DAY_US);
    ck_assert_str_eq(text_of("tls/tls.crt"), leaf);
}

static const char *log_at(int64_t now_us)
{
    capture_start(STDERR_FILENO);
    keep(now_us);
    const char *text = capture_text(arena);
    capture_stop();
    return text;
}

TEST(a_clock_that_is_behind_and_an_authority_that_ends_are_told)
{
    keep(NOW_US);
    ck_assert_str_eq(log_at(NOW_US), "");

    const char *behind = log_at(NOW_US - DAY_US);

    ck_assert_msg(strstr(behind, "the clock is behind") && strstr(behind, "ca/ca.crt"), "%s",
                  behind);
    ck_assert_str_eq(log_at(NOW_US + 25 * 365 * DAY_US), "");

    const char *late = log_at(NOW_US + 28 * 365 * DAY_US);

    ck_assert_msg(strstr(late, "the certificate authority expires") && strstr(late, "ca/ca.crt"),
                  "%s", late);
}

TEST(a_certificate_that_is_made_while_the_clock_is_behind_holds_when_it_is_right)
{
    struct error err = { 0 };

    keep(NOW_US);
    ck_assert_msg(keep_at(0, true, true, &err) == 0, "%s", err.message);
    ck_assert_int_ge(times_of("tls/tls.crt").not_after_us, NOW_US + 2 * 365 * DAY_US);
}

TEST(no_authority_is_made_by_a_clock_that_was_never_set)
{
    struct error err = { 0 };

    ck_assert_int_eq(keep_at(INT64_C(3600) * 1000000, false, true, &err), -ERROR_INVALID);
    ck_assert_msg(str_has_prefix(err.message, "the clock says 1970-01-01T01:00:00"), "%s",
                  err.message);
    keep(NOW_US);
}

/* Clients with the right clock accept what was made by a clock that was ahead. */
TEST(a_clock_that_was_ahead_leaves_certificates_that_hold_when_it_is_set_back)
{
    const char *leaf;

    keep(NOW_US + 10 * 365 * DAY_US);
    ck_assert_int_lt(times_of("ca/ca.crt").not_before_us, NOW_US);
    ck_assert_int_lt(times_of("tls/tls.crt").not_before_us, NOW_US);
    leaf = text_of("tls/tls.crt");
    keep(NOW_US);
    keep(NOW_US + 10 * 365 * DAY_US);
    ck_assert_str_eq(text_of("tls/tls.crt"), leaf);
}

TEST(the_authority_stays_to_its_end_and_then_nothing_is_served)
{
    struct error err = { 0 };
    const char *ca, *leaf;

    keep(NOW_US);
    ca = text_of("ca/ca.crt");
    for (int64_t year = 0; year < 30; year++) {
        struct certificate_times times;

        keep(NOW_US + year * 365 * DAY_US);
        times = times_of("tls/tls.crt");
        ck_assert_int_gt(times.not_after_us, NOW_US + year * 365 * DAY_US);
        ck_assert_str_eq(text_of("ca/ca.crt"), ca);
    }
    leaf = text_of("tls/tls.crt");
    keep(NOW_US + (30 * 365 - 1) * DAY_US);
    ck_assert_str_eq(text_of("tls/tls.crt"), leaf); /* another one would end at the same time */
    ck_assert_int_eq(keep_at(NOW_US + 31 * 365 * DAY_US, false, true, &err), -ERROR_INVALID);
    ck_assert_msg(str_has_prefix(err.message, message("'%s/ca/ca.crt' ended at 2056-")) &&
                      strstr(err.message, ": set the clock; if it is right, remove it and "
                                          "admin.kubeconfig and run init"),
                  "%s", err.message);
    ck_assert_str_eq(text_of("ca/ca.crt"), ca);
}

/* --- what is lost ----------------------------------------------------------------------------- */

static void lose(const char *name)
{
    ck_assert_int_eq(unlink(data_dir_path(arena, dir, name)), 0);
}

#define LOST                                                                                       \
    "is missing and admin.kubeconfig trusts no other: restore it, or remove admin.kubeconfig and " \
    "run init"

TEST(a_lost_authority_is_not_replaced_where_a_kubeconfig_trusts_it)
{
    static const char *const FILES[] = { "ca/ca.crt", "ca/ca.key" };
    struct error err = { 0 };

    for (size_t i = 0; i < ARRAY_LEN(FILES); i++) {
        keep(NOW_US);
        put("admin.kubeconfig", "");
        lose(FILES[i]);
        for (int may_begin = 0; may_begin < 2; may_begin++) {
            ck_assert_int_eq(keep_at(NOW_US, false, may_begin, &err), -ERROR_INVALID);
            ck_assert_str_eq(err.message, message(arena_printf(arena, "'%%s/%s' " LOST, FILES[i])));
        }
        lose("admin.kubeconfig");
    }
}

TEST(only_init_makes_an_authority)
{
    struct error err = { 0 };

    ck_assert_int_eq(keep_at(NOW_US, false, false, &err), -ERROR_INVALID);
    ck_assert_str_eq(err.message, message("'%s/ca/ca.crt' is missing: restore it, or run "
                                          "'propeller-standalone init'"));
    keep(NOW_US);
    ck_assert_int_eq(keep_at(NOW_US, false, false, &err), 0);
    lose("ca/ca.key"); /* init was killed */
    keep(NOW_US);
}

TEST(a_damaged_authority_stays_and_is_named)
{
    struct error err = { 0 };
    struct cert_pair other;

    keep(NOW_US);
    ck_assert_int_eq(cert_make_ca(arena, NOW_US, DAY_US, &other, &err), 0);
    put("ca/ca.key", other.key);
    ck_assert_int_eq(keep_at(NOW_US, false, true, &err), -ERROR_INVALID);
    ck_assert_str_eq(err.message, message("the authority in '%s/ca' has the key of another one: "
                                          "restore ca.crt and ca.key from a copy"));
    put("ca/ca.crt", "junk\n");
    ck_assert_int_eq(keep_at(NOW_US, false, true, &err), -ERROR_INVALID);
    ck_assert_str_eq(err.message, message("'%s/ca/ca.crt' cannot be read as a certificate: "
                                          "restore it from a copy"));
    ck_assert_str_eq(text_of("ca/ca.crt"), "junk\n");
}
