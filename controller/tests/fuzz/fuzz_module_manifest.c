/* module_manifest_choose: a choice is a digest and a size, an error has a message. */
#include "common/api/module_reference.h"
#include "common/tests/fuzz/target.h"
#include "controller/registry/manifest.h"

void fuzz_input(const uint8_t *bytes, size_t len)
{
    static const char *const TYPES[] = { "application/vnd.oci.image.manifest.v1+json",
                                         "application/vnd.oci.image.index.v1+json", NULL };
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    for (size_t i = 0; i < ARRAY_LEN(TYPES); i++) {
        struct module_choice choice;
        struct error err = { 0 };

        if (module_manifest_choose(arena, TYPES[i], (const char *)bytes, len, &choice, &err) == 0)
            REQUIRE(module_digest_is_valid(choice.digest) && choice.bytes >= 0);
        else
            REQUIRE(err.code == ERROR_INVALID && *err.message);
    }
}
