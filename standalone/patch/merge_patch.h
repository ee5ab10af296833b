/* JSON Merge Patch, RFC 7386. */
#pragma once

#include "common/json/json.h"

/* A new tree, owned by the arena; document and patch stay as they are. Objects in lists lose their nulls,
 * as in the library that the API server uses. */
cJSON *merge_patch_apply(struct arena *arena, const cJSON *document, const cJSON *patch);
