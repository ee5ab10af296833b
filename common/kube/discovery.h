/* Reads an APIResourceList (GET /apis/<group>/<version>): the path of a kind that no constant names. Pure. */
#pragma once

#include "common/json/json.h"

struct discovery_answer {
    const char *plural; /* borrowed from the list */
    bool namespaced;
};

/* Finds a kind by its exact name. false: this version does not have it. Subresources are not looked at, and an entry
 * without a plural is not one. */
bool discovery_find(const cJSON *list, const char *kind, struct discovery_answer *ret);
