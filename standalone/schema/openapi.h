/* OpenAPI documents, as far as kubectl explain, apply, diff and validation read them. */
#pragma once

#include "standalone/schema/resource.h"

/* All are owned by the arena. They depend on the resources alone: make them once. */

/* GET /openapi/v3: the paths with the hash of each document in serverRelativeURL. */
cJSON *openapi_v3_index(struct arena *arena, const struct resources *resources);
/* GET /openapi/v3/api/v1, /openapi/v3/apis/<group>/<version>. NULL: not served. */
cJSON *openapi_v3(struct arena *arena, const struct resources *resources, const char *group,
                  const char *version);
/* GET /openapi/v2. */
cJSON *openapi_v2(struct arena *arena, const struct resources *resources);

/* The protobuf of gnostic's openapi.v2.Document (application/com.github.proto-openapi.spec.v2@v1.0+protobuf),
 * which kubectl before 1.27 asks for and cannot do without. document: of openapi_v2. In the arena;
 * NULL: it is too large, which a document of these resources is not. */
const char *openapi_v2_protobuf(struct arena *arena, const cJSON *document, size_t *ret_len);
