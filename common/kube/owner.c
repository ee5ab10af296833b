#include "common/kube/owner.h"

#include <stdio.h>

/* "<group>/<version>" of any kind of this project and of Kubernetes. */
#define API_VERSION_LEN 128

void owner_set_controller(cJSON *metadata, const struct kube_kind *kind, const cJSON *owner)
{
    const cJSON *from = json_get(owner, "metadata");
    cJSON *reference = json_add_object(json_set_array(metadata, "ownerReferences"));
    char version[API_VERSION_LEN];

    snprintf(version, sizeof(version), "%s%s%s", kind->group, *kind->group ? "/" : "",
             kind->version);
    json_set_string(reference, "apiVersion", version);
    json_set_string(reference, "kind", kind->kind);
    json_set_string(reference, "name", json_string(json_get(from, "name"), ""));
    json_set_string(reference, "uid", json_string(json_get(from, "uid"), ""));
    json_set_bool(reference, "controller", true);
    json_set_bool(reference, "blockOwnerDeletion", true);
}
