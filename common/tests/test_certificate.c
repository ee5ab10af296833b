#include "common/base/certificate.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/tests/certs.h"
#include "common/tests/process.h"
#include "common/tests/suite.h"

#define DAY_US INT64_C(86400000000)
#define MINUTE_US (INT64_C(60) * 1000000)

static char *dir;

static void make(void)
{
    dir = temp_dir_create();
    certs_make_ca(dir, "ca"); /* two days from now */
}

static void clear(void)
{
    temp_dir_destroy(dir);
}

TEST_GROUP_ONCE("certificate", make, clear, NULL, NULL);

TEST(a_certificate_says_from_when_to_when)
{
    char *pem = temp_file_read(dir, "ca.crt");
    int64_t now_us = clock_wall_us(&CLOCK_SYSTEM);
    struct certificate_times times;
    struct error err = { 0 };

    ck_assert_int_eq(certificate_read_times(pem, &times, &err), 0);
    ck_assert_int_ge(times.not_after_us - times.not_before_us, 2 * DAY_US);
    ck_assert_int_lt(times.not_after_us - times.not_before_us,
                     2 * DAY_US + MINUTE_US); /* openssl asks the clock for each */
    ck_assert(times.not_before_us <= now_us && times.not_before_us > now_us - DAY_US);
    free(pem);
}

TEST(the_first_of_several_counts_whatever_stands_around_it)
{
    char *pem = temp_file_read(dir, "ca.crt");
    char text[8192];
    struct certificate_times times;
    struct certificate_times first;
    struct error err = { 0 };

    ck_assert_int_eq(certificate_read_times(pem, &first, &err), 0);
    (void)snprintf(text, sizeof(text), "a word before\n%s%s", pem, "rest");
    ck_assert_int_eq(certificate_read_times(text, &times, &err), 0);
    ck_assert_int_eq(times.not_after_us, first.not_after_us);
    free(pem);
}

TEST(what_is_no_certificate_is_refused)
{
    char *key = temp_file_read(dir, "ca.key");
    char *pem = temp_file_read(dir, "ca.crt");
    struct certificate_times times = { .not_after_us = 42 };
    const char *const texts[] = {
        "",
        "text",
        "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        key,
    };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct error err = { 0 };

        ck_assert_int_eq(certificate_read_times(texts[i], &times, &err), -ERROR_INVALID);
        ck_assert_str_eq(err.message, "not a PEM certificate");
    }
    for (size_t cut = strlen(pem) - 30; cut > 0; cut -= cut < 7 ? cut : 7) {
        pem[cut] = '\0';
        ck_assert_int_eq(certificate_read_times(pem, &times, NULL), -ERROR_INVALID);
    }
    ck_assert_int_eq(times.not_after_us, 42);
    free(key);
    free(pem);
}
