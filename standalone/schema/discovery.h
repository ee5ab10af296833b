/* What is served, said in the documents of discovery. All are owned by the arena. */
#pragma once

#include "standalone/schema/resource.h"

/* GET /api: APIVersions. address: "127.0.0.1:6443", as clients see it. */
cJSON *discovery_api(struct arena *arena, const char *address);
/* GET /apis: APIGroupList. */
cJSON *discovery_groups(struct arena *arena, const struct resources *resources);
/* GET /apis/<group>: APIGroup. NULL: not served. */
cJSON *discovery_group(struct arena *arena, const struct resources *resources, const char *group);
/* GET /api/v1, /apis/<group>/<version>: APIResourceList. NULL: not served. */
cJSON *discovery_resources(struct arena *arena, const struct resources *resources,
                           const char *group, const char *version);

/*
 * GET /api (core) and /apis as the APIGroupDiscoveryList that Accept asks for: version "v2" or "v2beta1" of
 * apidiscovery.k8s.io. KEP-3352.
 */
cJSON *discovery_aggregated(struct arena *arena, const struct resources *resources, bool core,
                            const char *version);
