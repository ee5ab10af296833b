/* {"document":…,"patch":…}: no patch breaks anything; what it makes can be read again; what a merge patch made,
 * it makes again. */
#include <stdlib.h>

#include "common/json/jsonpatch.h"
#include "common/tests/fuzz/target.h"
#include "common/tests/heap.h"
#include "standalone/patch/patches.h"
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
    const struct json_reading own = { .own = true };
    const cJSON *again = NULL;
    size_t len;

    heap_pause();
    const char *text = json_text(arena, patched, &len);
    if (json_parse_with(arena, text, len, &own, &again, NULL) < 0 || !json_equal(patched, again))
        abort();
    heap_resume();
}

static void json_patch(struct arena *arena, const cJSON *document, const cJSON *patch)
{
    struct error err = { 0 };
    cJSON *patched = NULL;

    if (json_patch_apply(arena, document, patch, &patched, &err) == 0)
        expect_readable(arena, patched);
    else if (!err.message[0])
        abort();
}

static void merge_patch(struct arena *arena, const cJSON *document, const cJSON *patch)
{
    cJSON *patched = merge_patch_apply(arena, document, patch);

    heap_pause();
    if (!json_equal(patched, merge_patch_apply(arena, patched, patch)))
        abort();
    heap_resume();
    expect_readable(arena, patched);
}

static void strategic_patch(struct arena *arena, const cJSON *document, const cJSON *patch)
{
    struct error err = { 0 };
    cJSON *patched = NULL;

    if (strategic_patch_apply(arena, account_schema(), document, patch, &patched, &err) == 0)
        expect_readable(arena, patched);
    else if (!err.message[0])
        abort();
}

typedef void patch_fn(struct arena *arena, const cJSON *document, const cJSON *patch);
static patch_fn *const PATCHES[] = { json_patch, merge_patch, strategic_patch };

void fuzz_input(const uint8_t *bytes, size_t len)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct error err = { 0 };
    const cJSON *input = NULL;

    json_init();
    if (json_parse(arena, (const char *)bytes, len, &input, &err) < 0)
        return;

    const cJSON *document = json_get(input, "document"), *patch = json_get(input, "patch");
    if (!document || !patch)
        return;
    for (size_t i = 0; i < ARRAY_LEN(PATCHES); i++) {
        CLEANUP(arena_destroyp) struct arena *own = arena_create();
        PATCHES[i](own, document, patch);
    }
}
