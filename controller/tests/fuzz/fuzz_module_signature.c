/* Keys and signatures: nothing that is not signed by the key counts, and bytes of any kind are read. */
#include <string.h>

#include "common/tests/fuzz/target.h"
#include "controller/registry/signature.h"

#define DIGEST "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* Its private key was never kept. */
static const char KEY[] = "-----BEGIN PUBLIC KEY-----\n"
                          "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAErtP/7geqlrhk4wETf6YtrEj8VzI1\n"
                          "ehgZdovpXfVZpcLX+mEKN02buNyUB+2+fas23vFVRU21tnRP8E4Q7UFx5Q==\n"
                          "-----END PUBLIC KEY-----\n";

void fuzz_input(const uint8_t *bytes, size_t len)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    CLEANUP(public_keys_unrefp) struct public_keys *keys = NULL;
    CLEANUP(public_keys_unrefp) struct public_keys *read = NULL;
    const char *text = (const char *)bytes;

    REQUIRE(public_keys_parse(KEY, strlen(KEY), &keys, NULL) == 0);
    REQUIRE(!signature_check(arena, keys, DIGEST, SIGNATURE_BUNDLE, text, len, NULL));
    REQUIRE(!signature_check(arena, keys, DIGEST, SIGNATURE_SIMPLE, text, len,
                             arena_strndup(arena, text, len)));
    (void)!public_keys_parse(text, len, &read, NULL);
}
