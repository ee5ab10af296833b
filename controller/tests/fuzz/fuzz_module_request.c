/* The request of a device for a module. */
#include "common/tests/fuzz/target.h"
#include "controller/device/messages.h"

void fuzz_input(const uint8_t *bytes, size_t len)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *name = NULL;
    struct error err = { 0 };
    int r = message_module_parse(arena, (const char *)bytes, len, &name, &err);

    if (r < 0)
        REQUIRE(err.message[0]);
    else
        REQUIRE(name && *name && len <= MODULE_REQUEST_MAX_BYTES);
}
