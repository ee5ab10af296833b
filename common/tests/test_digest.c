#include <ctype.h>
#include <stdint.h>

#include "common/base/arena.h"
#include "common/base/digest.h"
#include "common/base/map.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/suite.h"

TEST_GROUP("digest", arena_set_up, arena_tear_down);

TEST(sha256_is_that_of_fips_180)
{
    char hex[SHA256_HEX_LEN];

    ck_assert_str_eq(sha256_hex("", 0, hex),
                     "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    ck_assert_str_eq(sha256_hex("abc", 3, hex),
                     "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

/* RFC 4648, section 10, and bytes that need + and /. */
static const struct {
    const char *bytes;
    const char *text;
} PAIRS[] = {
    { "", "" },
    { "f", "Zg==" },
    { "fo", "Zm8=" },
    { "foo", "Zm9v" },
    { "foob", "Zm9vYg==" },
    { "fooba", "Zm9vYmE=" },
    { "foobar", "Zm9vYmFy" },
    { "\xfb\xff\xbf", "+/+/" },
};

TEST_EACH(base64_is_that_of_rfc_4648, PAIRS)
{
    size_t len = 99;
    size_t expected = strlen(PAIRS[_i].bytes);

    ck_assert_str_eq(base64_encode(arena, PAIRS[_i].bytes, expected), PAIRS[_i].text);
    ck_assert_str_eq(base64_decode(arena, PAIRS[_i].text, strlen(PAIRS[_i].text), &len),
                     PAIRS[_i].bytes);
    ck_assert_uint_eq(len, expected);
    ck_assert_ptr_nonnull(base64_decode(arena, PAIRS[_i].text, strlen(PAIRS[_i].text), NULL));
}

static const char *const REFUSED[] = {
    "Z",        "Zg",     "Zg=",      "Zg===",      "=",          "==",   "====",
    "Z===",     "Zm9v\n", " Zm9v",    "Zm9v Zm9v",  "Zm9vZg==\n", "Zm-v", "Zm_v",
    "Zg==Zm9v", "Z=g=",   "Zm9v====", "\xc3\xa4==", "Zm\n9",
};

TEST_EACH(what_is_no_base64_is_refused, REFUSED)
{
    size_t len = 99;

    ck_assert_ptr_null(base64_decode(arena, REFUSED[_i], strlen(REFUSED[_i]), &len));
    ck_assert_uint_eq(len, 99);
}

TEST(only_len_bytes_of_the_text_are_decoded)
{
    size_t len;

    ck_assert_str_eq(base64_decode(arena, "Zm9vYmFy", 4, &len), "foo");
    ck_assert_uint_eq(len, 3);
    ck_assert_ptr_null(base64_decode(arena, "Zm\0v", 4, &len));
}

/* Longer than what is handed to OpenSSL at once. */
TEST(megabytes_come_back_as_they_were)
{
    enum { LEN = (13 << 20) + 1 };
    uint8_t *bytes = arena_alloc(arena, LEN, 1);
    size_t len = 0;

    for (size_t i = 0; i < LEN; i++)
        bytes[i] = (uint8_t)(i * 31 + (i >> 8));

    const char *text = base64_encode(arena, bytes, LEN);
    ck_assert_uint_eq(strlen(text) / 4, (LEN + 2) / 3);
    const char *again = base64_decode(arena, text, strlen(text), &len);
    ck_assert_uint_eq(len, LEN);
    ck_assert(memcmp(again, bytes, LEN) == 0);
}

TEST(ids_are_of_version_4_and_never_the_same)
{
    struct map *seen = map_create(NULL);
    char id[UUID_LEN];

    for (int i = 0; i < 1000; i++) {
        ck_assert_ptr_eq(uuid_random(id), id);
        ck_assert_uint_eq(strlen(id), 36);
        for (int k = 0; k < 36; k++) {
            if (k == 8 || k == 13 || k == 18 || k == 23)
                ck_assert_int_eq(id[k], '-');
            else
                ck_assert(isdigit((unsigned char)id[k]) || (id[k] >= 'a' && id[k] <= 'f'));
        }
        ck_assert_int_eq(id[14], '4');
        ck_assert_ptr_nonnull(strchr("89ab", id[19]));
        ck_assert_ptr_null(map_get(seen, id));
        map_set(seen, id, seen);
    }
    map_destroy(seen);
}
