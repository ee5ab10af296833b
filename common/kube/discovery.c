#include "common/kube/discovery.h"

#include <string.h>

#include "common/base/str.h"

bool discovery_find(const cJSON *list, const char *kind, struct discovery_answer *ret)
{
    json_for_each (resource, json_get(list, "resources")) {
        const char *plural = json_string(json_get(resource, "name"), "");

        if (!*plural || strchr(plural, '/') ||
            !str_equal(json_string(json_get(resource, "kind"), ""), kind))
            continue;
        *ret =
            (struct discovery_answer){ plural, json_bool(json_get(resource, "namespaced"), false) };
        return true;
    }
    return false;
}
