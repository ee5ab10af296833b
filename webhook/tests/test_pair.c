#include "webhook/pair.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "common/base/certificate.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/tests/certs.h"
#include "common/tests/process.h"
#include "common/tests/suite.h"
#include "common/tests/temp_dir.h"

#define YEAR_US INT64_C(31536000000000)

static char *certificates;
static struct arena *arena;
static const char *dir;

static void make(void)
{
    certificates = temp_dir_create();
    certs_make_ca(certificates, "a");
}

static void clear(void)
{
    temp_dir_destroy(certificates);
}

static void setup(void)
{
    arena = arena_create();
    dir = temp_dir(arena);
}

static void teardown(void)
{
    arena_destroy(arena);
}

TEST_GROUP_ONCE("pair", make, clear, setup, teardown);

static void put(const char *source, const char *name)
{
    char *text = temp_file_read(certificates, source);

    temp_file(arena, dir, name, text);
    free(text);
}

static int load(int64_t now_us, struct error *err)
{
    struct pair pair = { 0 };
    int r = pair_load(dir, now_us, &pair, err);

    if (r == 0)
        ck_assert(pair.cert && pair.key && pair.not_after_us > now_us);
    else
        ck_assert(!pair.cert && !pair.key);
    pair_release(&pair);
    return r;
}

TEST(both_files_are_read)
{
    struct pair pair = { 0 };
    struct error err = { 0 };
    char *cert = temp_file_read(certificates, "a.crt");
    char *key = temp_file_read(certificates, "a.key");

    put("a.crt", "tls.crt");
    put("a.key", "tls.key");
    ck_assert_int_eq(pair_load(dir, clock_wall_us(&CLOCK_SYSTEM), &pair, &err), 0);
    ck_assert_str_eq(pair.cert, cert);
    ck_assert_str_eq(pair.key, key);
    pair_release(&pair);
    ck_assert(!pair.cert && !pair.key);
    pair_release(&pair);
    free(cert);
    free(key);
}

TEST(a_missing_file_is_not_found_by_its_name)
{
    struct error err = { 0 };

    ck_assert_int_eq(load(0, &err), -ERROR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(err.message, "/tls.crt'"));
    put("a.crt", "tls.crt");
    ck_assert_int_eq(load(0, &err), -ERROR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(err.message, "/tls.key'"));
}

TEST(an_expired_certificate_is_refused)
{
    struct error err = { 0 };

    put("a.crt", "tls.crt");
    put("a.key", "tls.key");
    ck_assert_int_eq(load(100 * YEAR_US, &err), -ERROR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "'tls.crt' expired at "));
}

TEST(a_certificate_that_is_not_valid_yet_is_refused)
{
    struct error err = { 0 };

    put("a.crt", "tls.crt");
    put("a.key", "tls.key");
    ck_assert_int_eq(load(0, &err), -ERROR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "'tls.crt' is not valid before "));
}

/* Instead of the certificate. */
static const char *of_length(size_t len)
{
    char *text = arena_alloc(arena, len + 1, 1);

    memset(text, 'x', len);
    return text;
}

TEST(a_certificate_may_begin_as_much_later_as_clocks_differ)
{
    struct error err = { 0 };
    struct certificate_times times;
    char *cert = temp_file_read(certificates, "a.crt");

    ck_assert_int_eq(certificate_read_times(cert, &times, &err), 0);
    free(cert);
    put("a.crt", "tls.crt");
    put("a.key", "tls.key");
    ck_assert_int_eq(load(times.not_before_us - PAIR_MAX_SKEW_US, &err), 0);
    ck_assert_int_eq(load(times.not_before_us - PAIR_MAX_SKEW_US - 1, &err), -ERROR_INVALID);
}

TEST(what_is_no_pem_text_is_refused_and_nothing_waits)
{
    struct error err = { 0 };
    const char *path = arena_printf(arena, "%s/tls.crt", dir);

    put("a.key", "tls.key");
    temp_file(arena, dir, "tls.crt", "");
    ck_assert_int_eq(load(0, &err), -ERROR_INVALID);
    ck_assert_str_eq(err.message, "'tls.crt': not a PEM certificate");
    temp_file(arena, dir, "tls.crt", of_length(PAIR_MAX_PEM));
    ck_assert_int_eq(load(0, &err), -ERROR_INVALID);
    ck_assert_str_eq(err.message, "'tls.crt': not a PEM certificate");

    const char *no_text = arena_printf(arena, "'%s' is no text of at most 65536 bytes", path);
    temp_file(arena, dir, "tls.crt", of_length(PAIR_MAX_PEM + 1));
    ck_assert_int_eq(load(0, &err), -ERROR_INVALID);
    ck_assert_str_eq(err.message, no_text);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(load(0, &err), -ERROR_INVALID);
    ck_assert_str_eq(err.message, no_text);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    ck_assert_int_eq(load(0, &err), -ERROR_INVALID);
    ck_assert_str_eq(err.message, no_text);
}

TEST(bytes_that_end_a_string_early_are_refused)
{
    struct error err = { 0 };

    put("a.key", "tls.key");
    put("a.crt", "tls.crt");

    FILE *file = fopen(arena_printf(arena, "%s/tls.crt", dir), "ae");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite("\0x", 1, 2, file), 2);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(load(0, &err), -ERROR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "is no text"));
}

TEST(versions_differ_when_a_file_is_replaced_and_only_then)
{
    struct pair_version none = pair_version(dir);

    ck_assert(pair_version_equal(&none, &none));
    put("a.crt", "tls.crt");
    struct pair_version half = pair_version(dir);
    ck_assert(!pair_version_equal(&none, &half));
    put("a.key", "tls.key");
    struct pair_version both = pair_version(dir);
    struct pair_version again = pair_version(dir);
    ck_assert(!pair_version_equal(&half, &both));
    ck_assert(pair_version_equal(&both, &again));
    put("a.key", "tls.key"); /* the same text in a file of its own */
    struct pair_version other = pair_version(dir);
    ck_assert(!pair_version_equal(&both, &other));
}

TEST(versions_differ_when_the_rights_of_a_file_change)
{
    const char *path = arena_printf(arena, "%s/tls.key", dir);
    int tries = 0;

    put("a.crt", "tls.crt");
    put("a.key", "tls.key");
    struct pair_version before = pair_version(dir);
    struct pair_version after = before;
    while (pair_version_equal(&before, &after)) { /* until the file system's clock has moved */
        ck_assert_int_lt(tries++, 2000);
        poll(NULL, 0, 1);
        ck_assert_int_eq(chmod(path, 0400), 0);
        after = pair_version(dir);
    }
}
