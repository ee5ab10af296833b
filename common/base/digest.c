#include "common/base/digest.h"

#include <assert.h>
#include <limits.h>
#include <stdint.h>

#include <openssl/evp.h>
#include <openssl/rand.h>

#include "common/base/alloc.h"
#include "common/base/arena.h"
#include "common/base/compiler.h"

static const char HEX[] = "0123456789abcdef";

static const char *write_hex(const unsigned char *digest, unsigned len,
                             char ret[static SHA256_HEX_LEN])
{
    assert(len == (SHA256_HEX_LEN - 1) / 2);
    for (size_t i = 0; i < len; i++) {
        ret[2 * i] = HEX[digest[i] >> 4];
        ret[2 * i + 1] = HEX[digest[i] & 15];
    }
    ret[SHA256_HEX_LEN - 1] = '\0';
    return ret;
}

const char *sha256_hex(const void *bytes, size_t len, char ret[static SHA256_HEX_LEN])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned digest_len = 0;
    int ok = EVP_Digest(bytes, len, digest, &digest_len, EVP_sha256(), NULL);

    assert(ok == 1); /* built-in, cannot fail */
    (void)ok;
    return write_hex(digest, digest_len, ret);
}

struct sha256 {
    EVP_MD_CTX *context;
};

static void sha256_begin(struct sha256 *sha256)
{
    int ok = EVP_DigestInit_ex(sha256->context, EVP_sha256(), NULL);

    assert(ok == 1);
    (void)ok;
}

struct sha256 *sha256_create(void)
{
    struct sha256 *sha256 = xcalloc(1, sizeof(*sha256));

    sha256->context = EVP_MD_CTX_new();
    assert(sha256->context); /* out of memory, and nothing else */
    sha256_begin(sha256);
    return sha256;
}

void sha256_destroy(struct sha256 *sha256)
{
    if (!sha256)
        return;
    EVP_MD_CTX_free(sha256->context);
    free(sha256);
}

void sha256_add(struct sha256 *sha256, const void *bytes, size_t len)
{
    int ok = EVP_DigestUpdate(sha256->context, bytes, len);

    assert(ok == 1);
    (void)ok;
}

const char *sha256_finish(struct sha256 *sha256, char ret[static SHA256_HEX_LEN])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    int ok = EVP_DigestFinal_ex(sha256->context, digest, &len);

    assert(ok == 1);
    (void)ok;
    sha256_begin(sha256);
    return write_hex(digest, len, ret);
}

/* OpenSSL counts in int: whole groups at a time that are far below its limit. */
#define GROUPS_AT_ONCE ((size_t)1 << 20)

char *base64_encode(struct arena *arena, const void *bytes, size_t len)
{
    const unsigned char *from = bytes;
    unsigned char *text = arena_alloc(arena, (len + 2) / 3 + 1, 4);
    unsigned char *to = text;

    while (len) {
        size_t step = len < 3 * GROUPS_AT_ONCE ? len : 3 * GROUPS_AT_ONCE;

        to += EVP_EncodeBlock(to, from, (int)step);
        from += step;
        len -= step;
    }
    return (char *)text;
}

static bool in_alphabet(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '/';
}

char *base64_decode(struct arena *arena, const char *text, size_t len, size_t *ret_len)
{
    size_t padding = 0;

    if (len % 4)
        return NULL;
    while (padding < 2 && padding < len && text[len - 1 - padding] == '=')
        padding++;
    for (size_t i = 0; i < len - padding; i++) {
        if (!in_alphabet(text[i]))
            return NULL;
    }

    unsigned char *bytes = arena_alloc(arena, len / 4 * 3 + 1, 1);
    for (size_t at = 0; at < len;) {
        size_t left = len - at;
        size_t step = left < 4 * GROUPS_AT_ONCE ? left : 4 * GROUPS_AT_ONCE;
        int decoded =
            EVP_DecodeBlock(bytes + at / 4 * 3, (const unsigned char *)text + at, (int)step);

        if (decoded < 0)
            return NULL;
        at += step;
    }

    size_t used = len / 4 * 3 - padding;
    bytes[used] = '\0'; /* OpenSSL writes zeros for the padding */
    if (ret_len)
        *ret_len = used;
    return (char *)bytes;
}

void random_bytes(void *ret, size_t len)
{
    assert(len <= INT_MAX);
    if (RAND_bytes(ret, (int)len) == 1)
        return;
    (void)fputs("no random numbers from the system\n", stderr);
    abort(); /* an id that is not unique, or a key that can be guessed, is worse */
}

void pbkdf2_sha512(const char *password, const void *salt, size_t salt_len, int iterations,
                   unsigned char ret[static SHA512_BYTES])
{
    assert(salt_len <= INT_MAX);
    int ok = PKCS5_PBKDF2_HMAC(password, -1, salt, (int)salt_len, iterations, EVP_sha512(),
                               SHA512_BYTES, ret);

    assert(ok == 1); /* built-in, cannot fail */
    (void)ok;
}

const char *uuid_random(char ret[static UUID_LEN])
{
    unsigned char bytes[16];

    random_bytes(bytes, sizeof(bytes));
    bytes[6] = (unsigned char)((bytes[6] & 0x0f) | 0x40); /* version 4 */
    bytes[8] = (unsigned char)((bytes[8] & 0x3f) | 0x80); /* variant of RFC 4122 */

    char *to = ret;
    for (size_t i = 0; i < sizeof(bytes); i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *to++ = '-';
        *to++ = HEX[bytes[i] >> 4];
        *to++ = HEX[bytes[i] & 15];
    }
    *to = '\0';
    return ret;
}
