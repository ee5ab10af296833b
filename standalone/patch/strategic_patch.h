/* Strategic merge patch of built-in kinds: lists merge by x-kubernetes-patch-merge-key. */
#pragma once

#include "common/json/json.h"

struct schema;

/*
 * A new tree, owned by the arena; document stays as it is. $patch (replace, merge, delete), $retainKeys,
 * $deleteFromPrimitiveList/<field>, $setElementOrder/<field>. Custom kinds have no such patch (415).
 * ERROR_INVALID: no object; ERROR_INTERNAL, as the API server answers then with 500 and these words: a
 * directive that is none, an item without its key.
 */
int strategic_patch_apply(struct arena *arena, const struct schema *schema, const cJSON *document,
                          const cJSON *patch, cJSON **ret, struct error *err) MUST_CHECK;
