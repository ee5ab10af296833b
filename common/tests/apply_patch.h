/* What the API server does with a patch, for tests: RFC 6902 (add, replace, remove, test) and RFC
 * 7396. */
#pragma once

#include "common/json/json.h"

/* Both take document (a tree of its own) and return the patched one. NULL: the operations do not
 * fit, *ret_problem says why. */
cJSON *apply_json_patch(cJSON *document, const cJSON *operations, const char **ret_problem);
cJSON *apply_merge_patch(cJSON *document, const cJSON *patch);
