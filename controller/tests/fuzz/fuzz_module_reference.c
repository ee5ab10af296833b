/* module_reference_parse: the parts of a reference are a reference again, with the same parts. */
#include <string.h>

#include "common/api/module_reference.h"
#include "common/base/str.h"
#include "common/tests/fuzz/target.h"

void fuzz_input(const uint8_t *bytes, size_t len)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *text = arena_strndup(arena, (const char *)bytes, len);
    struct module_reference reference, again;
    struct error err = { 0 };

    if (module_reference_parse(arena, text, &reference, &err) < 0) {
        REQUIRE(err.code == ERROR_INVALID && *err.message);
        return;
    }
    REQUIRE(!reference.tag != !reference.digest);
    REQUIRE(!strpbrk(reference.repository, "@?#% \\\"<>") && !strstr(reference.path, ".."));

    const char *whole = reference.digest
                            ? arena_printf(arena, "%s@%s", reference.repository, reference.digest)
                            : arena_printf(arena, "%s:%s", reference.repository, reference.tag);

    if (strlen(whole) > MODULE_REFERENCE_MAX)
        return; /* with the tag that was not written */
    REQUIRE(module_reference_parse(arena, whole, &again, NULL) == 0);
    REQUIRE(str_equal(again.host, reference.host) && str_equal(again.path, reference.path) &&
            str_equal(again.tag, reference.tag) && str_equal(again.digest, reference.digest));
}
