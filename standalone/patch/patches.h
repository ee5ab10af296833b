/* Merge patch and strategic merge patch; JSON patches are in common/json/jsonpatch.h. */
#pragma once

#include "common/json/json.h"

struct schema;

/* JSON Merge Patch (RFC 7386). Returns a new tree in the arena; document and patch are not changed. Objects in the
 * lists of a patch lose their nulls too. */
cJSON *merge_patch_apply(struct arena *arena, const cJSON *document, const cJSON *patch);

/*
 * Strategic merge patch, for built-in kinds: a merge patch that also merges the lists that the schema declares with
 * x-kubernetes-patch-strategy "merge", by their x-kubernetes-patch-merge-key or, without a key, as sets, whose new
 * items come last. Directives: $patch (delete, in an item of a list) and $deleteFromPrimitiveList/<field>; other
 * members that begin with $ are ignored, as none of these lists has a meaning in its order. *ret is a new tree in the
 * arena. ERROR_INVALID: patch is not an object, has an unknown $patch, or an item without its key.
 */
int strategic_patch_apply(struct arena *arena, const struct schema *schema, const cJSON *document,
                          const cJSON *patch, cJSON **ret, struct error *err) MUST_CHECK;
