/* Certificates as other people's programs see them, and what is said of bad ones. */
#include <stdlib.h>

#include "certs/inspect.h"
#include "common/base/certificate.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/tests/fake_clock.h"
#include "common/tests/process.h"
#include "common/tests/suite.h"

#define NOW FAKE_CLOCK_WALL_US
#define SECOND INT64_C(1000000)
#define DAY (86400 * SECOND)

static struct arena *arena;
static struct cert_names names;
static struct cert_pair ca;
static struct cert_pair leaf;

static void setup(void)
{
    static const char *const EXTRA[] = { "hooks.example.org", "192.0.2.7", "2001:db8::1" };

    arena = arena_create();
    names = cert_names_of(arena, "hook", "system", EXTRA, ARRAY_LEN(EXTRA));
    ck_assert_int_eq(cert_make_ca(arena, NOW, 3650 * DAY, &ca, NULL), 0);
    ck_assert_int_eq(cert_make_leaf(arena, &ca, &names, NOW, 90 * DAY, &leaf, NULL), 0);
}

static void teardown(void)
{
    arena_destroy(arena);
}

TEST_GROUP("cert_make", setup, teardown);

static bool names_address(const char *name)
{
    return strspn(name, "0123456789.") == strlen(name) || strchr(name, ':');
}

static char *show(const char *dir, const char *file)
{
    const char *const argv[] = { "sh", "-c", "openssl x509 -in \"$0\" -noout -text >shown", file,
                                 NULL };

    process_run(dir, argv);
    return temp_file_read(dir, "shown");
}

TEST(openssl_accepts_the_chain_for_each_name)
{
    char *dir = temp_dir_create();

    free(temp_file_write(dir, "ca.crt", ca.cert));
    free(temp_file_write(dir, "tls.crt", leaf.cert));
    for (size_t i = 0; i < names.len; i++) {
        bool is_address = names_address(names.items[i]);
        const char *const argv[] = { "openssl",
                                     "verify",
                                     "-x509_strict",
                                     "-purpose",
                                     "sslserver",
                                     "-attime",
                                     arena_printf(arena, "%lld", (long long)(NOW / SECOND)),
                                     "-CAfile",
                                     "ca.crt",
                                     is_address ? "-verify_ip" : "-verify_hostname",
                                     names.items[i],
                                     "tls.crt",
                                     NULL };

        process_run(dir, argv);
    }
    temp_dir_destroy(dir);
}

TEST(a_certificate_says_what_it_is_for)
{
    static const char *const LEAF[] = {
        "Version: 3 (0x2)",
        "ecdsa-with-SHA256",
        "CA:FALSE",
        "X509v3 Key Usage: critical\n                Digital Signature\n",
        "TLS Web Server Authentication\n",
        "X509v3 Subject Key Identifier",
        "X509v3 Authority Key Identifier",
        "DNS:hook, DNS:hook.system, DNS:hook.system.svc, DNS:hook.system.svc.cluster.local,",
        "DNS:hooks.example.org, IP Address:192.0.2.7, IP Address:2001:DB8:0:0:0:0:0:1\n",
        "Not Before: Nov 21 09:55:00 2026 GMT",
        "Not After : Feb 19 10:00:00 2027 GMT",
    };
    static const char *const CA[] = { "CA:TRUE, pathlen:0",
                                      "Key Usage: critical\n                Certificate Sign, CRL",
                                      "X509v3 Subject Key Identifier",
                                      "Not After : Nov 18 10:00:00 2036 GMT" };
    char *dir = temp_dir_create();

    free(temp_file_write(dir, "ca.crt", ca.cert));
    free(temp_file_write(dir, "tls.crt", leaf.cert));
    char *text = show(dir, "tls.crt");
    for (size_t i = 0; i < ARRAY_LEN(LEAF); i++)
        ck_assert_msg(strstr(text, LEAF[i]), "'%s' is not in %s", LEAF[i], text);
    free(text);
    text = show(dir, "ca.crt");
    for (size_t i = 0; i < ARRAY_LEN(CA); i++)
        ck_assert_msg(strstr(text, CA[i]), "'%s' is not in %s", CA[i], text);
    free(text);
    temp_dir_destroy(dir);
}

TEST(two_certificates_have_neither_serial_nor_key_in_common)
{
    struct cert_pair other;

    ck_assert_int_eq(cert_make_leaf(arena, &ca, &names, NOW, 90 * DAY, &other, NULL), 0);
    ck_assert_str_ne(leaf.cert, other.cert);
    ck_assert_str_ne(leaf.key, other.key);
}

TEST(a_certificate_ends_with_its_authority)
{
    struct certificate_times of_ca;
    struct certificate_times of_leaf;

    ck_assert_int_eq(cert_make_leaf(arena, &ca, &names, NOW, 9999 * DAY, &leaf, NULL), 0);
    ck_assert_int_eq(certificate_read_times(ca.cert, &of_ca, NULL), 0);
    ck_assert_int_eq(certificate_read_times(leaf.cert, &of_leaf, NULL), 0);
    ck_assert_int_eq(of_ca.not_after_us, of_leaf.not_after_us);
}

TEST(a_bad_authority_or_name_is_refused)
{
    static const char *const NAMES[] = { "",   "two words", "a,DNS:b", "*.example.org",
                                         "-x", "1.2.3.4/8" };
    struct cert_pair other;
    struct error err = { 0 };

    ck_assert_int_eq(cert_make_ca(arena, NOW, DAY, &other, NULL), 0);
    const struct {
        struct cert_pair ca;
        int64_t now_us;
        const char *message;
    } bad[] = {
        { { NULL, ca.key }, NOW, "the certificate of the authority cannot be read" },
        { { ca.cert, NULL }, NOW, "the key of the authority cannot be read" },
        { { "text", ca.key }, NOW, "the certificate of the authority cannot be read" },
        { { ca.cert, other.key }, NOW, "the key of the authority is that of another one" },
        { other, NOW + DAY, "the authority has expired" },
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        ck_assert_int_eq(cert_make_leaf(arena, &bad[i].ca, &names, bad[i].now_us, DAY, &leaf, &err),
                         -ERROR_INVALID);
        ck_assert_str_eq(err.message, bad[i].message);
    }
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        const char *items[] = { NAMES[i] };
        const struct cert_names one = { .items = items, .len = 1 };

        ck_assert(!cert_name_is_valid(NAMES[i]));
        ck_assert_int_eq(cert_make_leaf(arena, &ca, &one, NOW, DAY, &leaf, &err), -ERROR_INVALID);
    }
    ck_assert_int_eq(cert_make_leaf(arena, &ca, &(struct cert_names){ 0 }, NOW, DAY, &leaf, &err),
                     -ERROR_INVALID);
    ck_assert_str_eq(err.message, "no name for the certificate");
}

TEST(what_is_wrong_with_a_certificate_is_said)
{
    struct cert_pair other_ca;
    struct cert_pair other;
    struct cert_names fewer = names;
    struct cert_names more = cert_names_of(arena, "hook", "system", NULL, 0);

    ck_assert_int_eq(cert_make_ca(arena, NOW, 3650 * DAY, &other_ca, NULL), 0);
    ck_assert_int_eq(cert_make_leaf(arena, &other_ca, &names, NOW, 90 * DAY, &other, NULL), 0);
    fewer.len--;
    const char *cut = arena_strndup(arena, leaf.cert, strlen(leaf.cert) / 2);
    const char *both = arena_printf(arena, "%s%s", other_ca.cert, ca.cert);
    const struct {
        struct cert_pair leaf;
        const struct cert_names *names;
        const char *trust;
        int64_t now_us;
        const char *problem;
    } cases[] = {
        { leaf, &names, ca.cert, NOW, NULL },
        { leaf, &names, both, NOW, NULL },
        { leaf, &names, ca.cert, NOW + 90 * DAY - SECOND, NULL },
        { { NULL, NULL }, &names, ca.cert, NOW, "is missing" },
        { { "", "" }, &names, ca.cert, NOW, "is missing" },
        { { leaf.cert, NULL }, &names, ca.cert, NOW, "lacks one of its halves" },
        { { NULL, leaf.key }, &names, ca.cert, NOW, "lacks one of its halves" },
        { { cut, leaf.key }, &names, ca.cert, NOW, "cannot be read" },
        { { "text", leaf.key }, &names, ca.cert, NOW, "cannot be read" },
        { { leaf.cert, "text" }, &names, ca.cert, NOW, "has a key that cannot be read" },
        { { leaf.cert, other.key }, &names, ca.cert, NOW, "has the key of another one" },
        { leaf, &names, ca.cert, NOW + 90 * DAY, "has expired" },
        { leaf, &names, ca.cert, NOW - DAY, "is not valid yet" },
        { leaf, &fewer, ca.cert, NOW, "is for other names" },
        { leaf, &more, ca.cert, NOW, "is for other names" },
        { leaf, &names, other_ca.cert, NOW, "is of another authority" },
        { leaf, &names, "", NOW, "is of another authority" },
        { leaf, &names, NULL, NOW, "is of another authority" },
        { ca, &names, ca.cert, NOW, "is for other names" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        ck_assert_pstr_eq(
            cert_leaf_problem(&cases[i].leaf, cases[i].names, cases[i].trust, cases[i].now_us),
            cases[i].problem);
    ck_assert_pstr_eq(cert_ca_problem(&ca, NOW), NULL);
    ck_assert_pstr_eq(cert_ca_problem(&leaf, NOW), "may not sign certificates");
    ck_assert_pstr_eq(cert_ca_problem(&ca, NOW + 3650 * DAY), "has expired");
}

/* By the authority, for the names, with the key of leaf; from now on. */
static const char *signed_for(const char *usage)
{
    static const char SCRIPT[] =
        "openssl req -new -key tls.key -subj /CN=hook -out csr && "
        "openssl x509 -req -in csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 "
        "-extfile extensions -out signed";
    const char *const argv[] = { "sh", "-c", SCRIPT, NULL };
    const char *extensions = arena_printf(arena, "extendedKeyUsage=%s\nsubjectAltName=", usage);
    char *dir = temp_dir_create();

    for (size_t i = 0; i < names.len; i++) {
        bool is_address = names_address(names.items[i]);
        extensions = arena_printf(arena, "%s%s%s:%s", extensions, i ? "," : "",
                                  is_address ? "IP" : "DNS", names.items[i]);
    }
    free(temp_file_write(dir, "extensions", extensions));
    free(temp_file_write(dir, "ca.crt", ca.cert));
    free(temp_file_write(dir, "ca.key", ca.key));
    free(temp_file_write(dir, "tls.key", leaf.key));
    process_run(dir, argv);
    char *text = temp_file_read(dir, "signed");
    const char *copy = arena_strdup(arena, text);
    free(text);
    temp_dir_destroy(dir);
    return copy;
}

TEST(a_certificate_that_is_not_for_servers_is_of_no_use)
{
    const int64_t now_us = clock_wall_us(&CLOCK_SYSTEM);
    struct cert_pair now_ca;

    ck_assert_int_eq(cert_make_ca(arena, now_us, 3650 * DAY, &now_ca, NULL), 0);
    ca = now_ca;
    const struct cert_pair for_servers = { signed_for("serverAuth"), leaf.key };
    const struct cert_pair for_clients = { signed_for("clientAuth"), leaf.key };
    const int64_t later_us = now_us + DAY;

    ck_assert_pstr_eq(cert_leaf_problem(&for_servers, &names, ca.cert, later_us), NULL);
    ck_assert_pstr_eq(cert_leaf_problem(&for_clients, &names, ca.cert, later_us),
                      "is of another authority");
}

TEST(a_list_has_each_living_authority_once)
{
    struct cert_pair old;
    struct cert_list list = { .len = 0 };

    ck_assert_int_eq(cert_make_ca(arena, NOW - 2 * DAY, DAY, &old, NULL), 0);
    const char *text =
        arena_printf(arena, "a comment\n%s%s%s%sand dirt", ca.cert, leaf.cert, old.cert, ca.cert);

    cert_list_add(arena, &list, text, NOW);
    cert_list_add(arena, &list, NULL, NOW);
    cert_list_add(arena, &list, "", NOW);
    cert_list_add(arena, &list, "-----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----\n",
                  NOW);
    ck_assert_uint_eq(list.len, 1);
    ck_assert_str_eq(cert_list_text(arena, &list), ca.cert);

    for (size_t i = 0; i < 2 * CERT_MAX_LIST; i++) {
        ck_assert_int_eq(cert_make_ca(arena, NOW, DAY, &old, NULL), 0);
        cert_list_add(arena, &list, old.cert, NOW);
    }
    ck_assert_uint_eq(list.len, CERT_MAX_LIST);
    ck_assert_str_eq(cert_first(arena, text), ca.cert);
    ck_assert_pstr_eq(cert_first(arena, NULL), NULL);
}
