/* Merge patches (RFC 7396), applied as the API server does, for tests. */
#pragma once

#include "common/json/json.h"

/* Takes document and returns the patched one, which the caller owns. */
cJSON *apply_merge_patch(cJSON *document, const cJSON *patch);
