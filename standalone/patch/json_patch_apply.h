/* JSON Patch, RFC 6902, with the words and the leniency of the library that the API server uses. */
#pragma once

#include "common/json/json.h"

/* As the API server allows. */
#define JSON_PATCH_MAX_OPERATIONS 10000
/* Bytes of JSON in all that the operations "copy" of one patch copy: AccumulatedCopySizeLimit. */
#define JSON_PATCH_MAX_COPIED (3u << 20)
/* A value is a hundred times as large in memory as in "0,". */
#define JSON_PATCH_MAX_COPIED_VALUES 20000u

/*
 * A new tree, owned by the arena; document stays as it is. All operations or none.
 * ERROR_INVALID: operations are no patch (the API server answers 400 BadRequest); ERROR_TOO_LARGE: too
 * many (413); ERROR_CONFLICT: one does not fit the document, a failed test included, or they copy too much,
 * or nest deeper than JSON_MAX_DEPTH (422 Invalid with the reply "the server rejected our request due to an
 * error in our request").
 */
int json_patch_apply(struct arena *arena, const cJSON *document, const cJSON *operations,
                     cJSON **ret, struct error *err) MUST_CHECK;
