/* {"document":…,"patch":…}: no patch breaks anything; what it makes can be read again; what a merge patch made,
 * it makes again. */
#include <stdlib.h>

#include "common/tests/fuzz/target.h"
#include "standalone/patch/json_patch_apply.h"
#include "standalone/patch/merge_patch.h"
#include "standalone/patch/strategic_patch.h"
#include "standalone/schema/resource.h"

static const struct schema *account_schema(void)
{
    static struct resources *resources;

    if (!resources && resources_create(&resources, NULL) < 0)
        abort();
    return resources_find(resources, "", "v1", "serviceaccounts")->schema;
}

static void expect_readable(struct arena *arena, const cJSON *patched)
{
    const cJSON *again = NULL;
    size_t len;
    const char *text = json_text(arena, patched, &len);

    if (json_parse(arena, text, len, &again, NULL) < 0 || !json_equal(patched, again))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct error err = { 0 };
    const cJSON *input = NULL;
    cJSON *patched = NULL, *again;

    json_init();
    if (json_parse(arena, (const char *)bytes, len, &input, &err) < 0)
        return 0;

    const cJSON *document = json_get(input, "document"), *patch = json_get(input, "patch");
    if (!document || !patch)
        return 0;
    if (json_patch_apply(arena, document, patch, &patched, &err) == 0)
        expect_readable(arena, patched);
    else if (!err.message[0])
        abort();
    patched = merge_patch_apply(arena, document, patch);
    again = merge_patch_apply(arena, patched, patch);
    if (!json_equal(patched, again))
        abort();
    expect_readable(arena, patched);
    if (strategic_patch_apply(arena, account_schema(), document, patch, &patched, &err) == 0)
        expect_readable(arena, patched);
    else if (!err.message[0])
        abort();
    return 0;
}
