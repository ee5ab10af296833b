#include "controller/machine/machine_objects.h"

#include <string.h>

#include "common/api/names.h"
#include "common/base/str.h"
#include "common/kube/object.h"

#define V1BETA2 "v1beta2"
#define K0SMOTRON "k0smotron.io"

enum machine_claim machine_claim_of(const cJSON *object, const char *uid)
{
    json_for_each (owner, json_path(object, "metadata", "ownerReferences", NULL)) {
        if (*uid && str_equal(json_string(json_get(owner, "uid"), ""), uid))
            return kube_is_deleting(object) ? MACHINE_CLAIM_GOING : MACHINE_CLAIM_OURS;
    }
    return MACHINE_CLAIM_TAKEN;
}

/* --- rules of a spec -------------------------------------------------------------------------- */

/* The part before the slash; "" without one. */
static const char *group_of(struct arena *arena, const char *api_version)
{
    const char *slash = strchr(api_version, '/');

    return slash && slash[1] ? arena_strndup(arena, api_version, (size_t)(slash - api_version))
                             : "";
}

static const char *part_problem(struct arena *arena, const char *field,
                                const struct machine_part *part, const char *group)
{
    if (!part || str_is_empty(part->api_version) || str_is_empty(part->kind))
        return arena_printf(arena, "spec.%s: has no apiVersion or kind", field);

    const char *is = group_of(arena, part->api_version);
    if (!str_equal(is, group) && !str_equal(is, K0SMOTRON))
        return arena_printf(arena, "spec.%s.apiVersion: the group must be %s or " K0SMOTRON, field,
                            group);
    return NULL;
}

const char *machine_spec_problem(struct arena *arena, const struct scheduledmachine_spec *spec)
{
    const char *problem =
        part_problem(arena, "bootstrapSpec", spec->bootstrap, "bootstrap." MACHINE_API_GROUP);

    if (!problem)
        problem = part_problem(arena, "infrastructureSpec", spec->infrastructure,
                               "infrastructure." MACHINE_API_GROUP);
    if (!problem && str_is_empty(spec->cluster_name))
        problem = "spec.clusterName: is empty";
    return problem;
}

/* --- making ------------------------------------------------------------------------------------ */

static const char *meta(const cJSON *object, const char *member)
{
    return json_string(json_path(object, "metadata", member, NULL), "");
}

/* The Machine is the controller of the other two, and Cluster API says so in them. */
static void add_owner(cJSON *metadata, const cJSON *owner, bool is_controller)
{
    cJSON *reference = json_add_object(json_set_array(metadata, "ownerReferences"));

    json_set_string(reference, "apiVersion", json_string(json_get(owner, "apiVersion"), ""));
    json_set_string(reference, "kind", json_string(json_get(owner, "kind"), ""));
    json_set_string(reference, "name", meta(owner, "name"));
    json_set_string(reference, "uid", meta(owner, "uid"));
    if (is_controller) {
        json_set_bool(reference, "controller", true);
        json_set_bool(reference, "blockOwnerDeletion", true);
    }
}

/* Returns the metadata. */
static cJSON *begin(struct arena *arena, cJSON *object, const cJSON *owner,
                    const struct scheduledmachine_spec *spec, bool is_controller)
{
    cJSON *metadata = json_set_object(object, "metadata");
    cJSON *labels = json_set_object(metadata, "labels");

    json_set_string(metadata, "name", meta(owner, "name"));
    json_set_string(metadata, "namespace", meta(owner, "namespace"));
    json_set_string(labels, MACHINE_LABEL, label_value(arena, meta(owner, "name")));
    json_set_string(labels, MACHINE_LABEL_CLUSTER, spec->cluster_name);
    add_owner(metadata, owner, is_controller);
    return metadata;
}

cJSON *machine_make_part(struct arena *arena, const cJSON *owner,
                         const struct scheduledmachine_spec *spec, const struct machine_part *part)
{
    cJSON *object = json_object(arena);

    json_set_string(object, "apiVersion", part->api_version);
    json_set_string(object, "kind", part->kind);
    (void)begin(arena, object, owner, spec, false);
    if (part->spec)
        json_set_copy(object, "spec", part->spec);
    return object;
}

/* Also of a prefix such as node-role.kubernetes.io/. */
static bool is_reserved(const char *key)
{
    static const char *const DOMAINS[] = { "kubernetes.io", "k8s.io", MACHINE_API_GROUP,
                                           SCHEDULEDMACHINE_GROUP };
    const char *slash = strchr(key, '/');

    for (size_t i = 0; slash && i < ARRAY_LEN(DOMAINS); i++) {
        size_t len = strlen(DOMAINS[i]), prefix = (size_t)(slash - key);
        const char *end = slash - len;

        if (prefix >= len && memcmp(end, DOMAINS[i], len) == 0 && (prefix == len || end[-1] == '.'))
            return true;
    }
    return false;
}

static void add_keys(struct arena *arena, cJSON *to, const cJSON *from, const char **reserved)
{
    json_for_each (item, from) {
        if (!is_reserved(item->string))
            json_set_copy(to, item->string, item);
        else
            *reserved =
                *reserved ? arena_printf(arena, "%s, %s", *reserved, item->string) : item->string;
    }
}

static void add_reference(cJSON *to, const char *member, const struct machine_part *part,
                          const cJSON *owner, const char *group)
{
    cJSON *reference = json_set_object(to, member);

    if (group)
        json_set_string(reference, "apiGroup", group);
    else
        json_set_string(reference, "apiVersion", part->api_version);
    json_set_string(reference, "kind", part->kind);
    json_set_string(reference, "name", meta(owner, "name"));
    if (!group)
        json_set_string(reference, "namespace", meta(owner, "namespace"));
}

/* Zero would mean that Cluster API drains without an end. */
static int64_t drain_seconds(const struct scheduledmachine_spec *spec)
{
    int64_t seconds = machine_timeout_ms(spec->node_drain_timeout) / 1000;

    return seconds > 0 ? seconds : 1;
}

cJSON *machine_make(struct arena *arena, const cJSON *owner,
                    const struct scheduledmachine_spec *spec, const char *version,
                    const char **ret_reserved)
{
    bool newer = str_equal(version, V1BETA2);
    cJSON *object = json_object(arena);

    json_set_string(object, "apiVersion", arena_printf(arena, MACHINE_API_GROUP "/%s", version));
    json_set_string(object, "kind", "Machine");
    cJSON *metadata = begin(arena, object, owner, spec, true);
    *ret_reserved = NULL;
    if (spec->machine_template) {
        add_keys(arena, (cJSON *)(uintptr_t)json_get(metadata, "labels"),
                 spec->machine_template->labels, ret_reserved);
        add_keys(arena, json_set_object(metadata, "annotations"),
                 spec->machine_template->annotations, ret_reserved);
    }

    cJSON *to = json_set_object(object, "spec");
    json_set_string(to, "clusterName", spec->cluster_name);
    add_reference(json_set_object(to, "bootstrap"), "configRef", spec->bootstrap, owner,
                  newer ? group_of(arena, spec->bootstrap->api_version) : NULL);
    add_reference(to, "infrastructureRef", spec->infrastructure, owner,
                  newer ? group_of(arena, spec->infrastructure->api_version) : NULL);
    if (newer)
        json_set_int(json_set_object(to, "deletion"), "nodeDrainTimeoutSeconds",
                     drain_seconds(spec));
    else
        json_set_string(to, "nodeDrainTimeout",
                        arena_printf(arena, "%llds", (long long)drain_seconds(spec)));
    return object;
}
