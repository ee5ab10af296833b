/* JSON patch, merge patch and strategic merge patch. */
#pragma once

#include "common/json/json.h"

struct schema;

/* As the API server allows. */
#define JSON_PATCH_MAX_OPERATIONS 10000
/* Bytes of JSON that all "copy" operations of one patch may copy together. */
#define JSON_PATCH_MAX_COPIED (3u << 20)
/* A value needs a hundred times as much memory as it needs text ("0,"). */
#define JSON_PATCH_MAX_COPIED_VALUES 16000u
/* Values that all operations of one patch may look at together: some tenths of a second of work. */
#define JSON_PATCH_MAX_STEPS 20000000u

/*
 * JSON Patch (RFC 6902). Two things are as kube-apiserver has them: an index may be negative and then counts from
 * the end, and "replace" adds a member that is not there. Either all operations are carried out or none. *ret is a
 * new tree in the arena; document is not changed.
 * ERROR_INVALID: operations is not a list of objects.
 * ERROR_TOO_LARGE: too many operations, or they look at too many values.
 * ERROR_CONFLICT: an operation does not fit the document (a failed test included), the operations copy too much, or
 * the result would nest deeper than JSON_MAX_DEPTH.
 */
int json_patch_apply(struct arena *arena, const cJSON *document, const cJSON *operations,
                     cJSON **ret, struct error *err) MUST_CHECK;

/* JSON Merge Patch (RFC 7386). Returns a new tree in the arena; document and patch are not changed. Objects in the
 * lists of a patch lose their nulls too. */
cJSON *merge_patch_apply(struct arena *arena, const cJSON *document, const cJSON *patch);

/*
 * Strategic merge patch, for built-in kinds: a merge patch that also merges the lists that the schema declares with
 * x-kubernetes-patch-strategy "merge", by their x-kubernetes-patch-merge-key or, without a key, as sets, whose new items
 * come last. Directives: $patch (replace and delete) and $deleteFromPrimitiveList/<field>; other members that begin with $ are ignored, as
 * none of these lists has a meaning in its order. *ret is a new tree in the arena.
 * ERROR_INVALID: patch is not an object. ERROR_INTERNAL: an unknown $patch, or an item without its key.
 */
int strategic_patch_apply(struct arena *arena, const struct schema *schema, const cJSON *document,
                          const cJSON *patch, cJSON **ret, struct error *err) MUST_CHECK;
