/* JSON patch, merge patch and strategic merge patch. */
#pragma once

#include "common/json/json.h"

struct schema;

/* As the API server allows. A body has values for a third of them, so that the lists and objects which these go through
 * cost some tenths of a second at most. */
#define JSON_PATCH_MAX_OPERATIONS 10000
/* All copies of one patch together. */
#define JSON_PATCH_MAX_COPIED_VALUES 16000u
#define JSON_PATCH_MAX_COPIED_BYTES (3u << 20)

/*
 * JSON Patch (RFC 6902). As kube-apiserver has it, "replace" adds a member that is not there. Either all operations
 * are carried out or none. *ret is a new tree in the arena; document is not changed.
 * ERROR_INVALID: operations is not a list of objects.
 * ERROR_TOO_LARGE: too many operations, or they copy too much.
 * ERROR_CONFLICT: an operation does not fit the document (a failed test included), or the result would nest deeper
 * than JSON_MAX_DEPTH.
 */
int json_patch_apply(struct arena *arena, const cJSON *document, const cJSON *operations,
                     cJSON **ret, struct error *err) MUST_CHECK;

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
