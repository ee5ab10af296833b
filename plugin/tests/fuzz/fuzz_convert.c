/* convert_manifest: a manifest of any content is refused, or becomes one of this operator that is converted already. */
#include "common/base/str.h"
#include "common/tests/fuzz/target.h"
#include "plugin/commands/convert_manifest.h"

/* The schema of a kind is read from its CRD. */
size_t fuzz_base(void)
{
    return 32u << 20;
}

static bool is_part(const cJSON *notes)
{
    json_for_each (note, notes) {
        if (json_bool(json_get(note, "lost"), false))
            return true;
    }
    return false;
}

void fuzz_input(const uint8_t *bytes, size_t len)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct convert_schemas schemas = { .arena = arena };
    cJSON *notes = json_array(arena), *none = json_array(arena);
    const cJSON *read;
    struct error err = { 0 };

    if (json_parse(arena, (const char *)bytes, len, &read, &err) < 0)
        return;
    cJSON *object = (cJSON *)read;
    int r = convert_manifest(&schemas, arena, object, notes, &err);

    REQUIRE(r >= 0 || r == -ERROR_INVALID);
    REQUIRE(json_len(notes) <= 201);
    if (r == CONVERT_UNCHANGED)
        REQUIRE(!is_part(notes));
    if (r == CONVERT_DONE)
        REQUIRE(convert_manifest(&schemas, arena, object, none, &err) == CONVERT_UNCHANGED &&
                !json_first(none));
}
