#include "standalone/moving/manifest.h"

#include <string.h>

#include "common/api/names.h"
#include "common/api/task.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"

#define NAMESPACE_LABEL "kubernetes.io/metadata.name"
#define LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"

const char *const MANIFEST_WORDS[MANIFEST_VERDICTS + 1] = {
    [MANIFEST_OPEN] = "taken",
    [MANIFEST_FINISHED] = "finished",
    [MANIFEST_CHILD] = "made by controllers",
    [MANIFEST_DELETED] = "being deleted",
    [MANIFEST_OF_CLUSTER] = "of the cluster itself",
};

static bool is_kind(const struct kube_kind *kind, const char *group, const char *name)
{
    return str_equal(kind->group, group) && str_equal(kind->kind, name);
}

/* --- whether it goes along --- */

/* "default" goes along if it has labels or annotations of a user. */
static bool is_plain_default(const cJSON *metadata)
{
    const cJSON *labels = json_get(metadata, "labels");
    const cJSON *annotations = json_get(metadata, "annotations");

    return str_equal(json_get_string(metadata, "name"), "default") &&
           json_len(labels) == (json_get(labels, NAMESPACE_LABEL) ? 1 : 0) &&
           json_len(annotations) == (json_get(annotations, LAST_APPLIED) ? 1 : 0);
}

static bool is_of_cluster(const struct kube_kind *kind, const cJSON *object)
{
    static const char *const SPACES[] = { "kube-system", "kube-public", "kube-node-lease", NULL };
    const cJSON *metadata = json_get(object, "metadata");
    const char *name = json_get_string(metadata, "name");

    if (str_equal(kind->kind, "Lease") || str_equal(kind->kind, "Event"))
        return true;
    if (is_kind(kind, "", "Namespace"))
        return str_is_one_of(name, SPACES) || is_plain_default(metadata);
    if (str_is_one_of(json_get_string(metadata, "namespace"), SPACES))
        return true;
    if (is_kind(kind, "", "ConfigMap"))
        return str_equal(name, "kube-root-ca.crt");
    if (is_kind(kind, "", "ServiceAccount"))
        return str_equal(name, "default");
    return is_kind(kind, "", "Secret") &&
           str_equal(json_get_string(object, "type"), "kubernetes.io/service-account-token");
}

/* A failure of a Task with retries left is none, and a recurring Task waits for its next run. */
static bool is_finished(const struct kube_kind *kind, const cJSON *object)
{
    const cJSON *status = json_get(object, "status");
    const char *phase = json_get_string(status, "phase");

    if (is_kind(kind, VMAFX_GROUP, "VmafxJob"))
        return str_equal(phase, "Succeeded") || str_equal(phase, "Failed");
    if (!str_equal(kind->group, API_GROUP) || is_kind(kind, API_GROUP, "Proplet"))
        return false;
    if (!is_kind(kind, API_GROUP, "Task"))
        return str_equal(phase, "Completed") || str_equal(phase, "Failed");
    if (json_bool(json_path(object, "spec", "isRecurring", NULL), false))
        return false;
    if (str_equal(phase, TASK_PHASE_NAMES[TASK_FAILED]))
        return !condition_is(json_get(status, "conditions"), "Failed", CONDITION_FALSE);
    return str_equal(phase, TASK_PHASE_NAMES[TASK_COMPLETED]) ||
           str_equal(phase, TASK_PHASE_NAMES[TASK_SKIPPED]);
}

enum manifest_verdict manifest_judge(const struct kube_kind *kind, const cJSON *object)
{
    if (is_of_cluster(kind, object))
        return MANIFEST_OF_CLUSTER;
    if (kube_is_deleting(object))
        return MANIFEST_DELETED;
    if (kube_controller_reference(object))
        return MANIFEST_CHILD;
    return is_finished(kind, object) ? MANIFEST_FINISHED : MANIFEST_OPEN;
}

bool manifest_loses_owners(const cJSON *object)
{
    return json_len(json_path(object, "metadata", "ownerReferences", NULL)) &&
           !kube_controller_reference(object);
}

/* --- what of it --- */

static cJSON *member(cJSON *object, const char *key)
{
    return (cJSON *)(uintptr_t)json_get(object, key);
}

static void remove_if_empty(cJSON *object, const char *key)
{
    const cJSON *value = json_get(object, key);

    if (cJSON_IsNull(value) || (value && !value->child && !cJSON_IsString(value)))
        json_remove(object, key);
}

/* Without those of this project's controllers and of the garbage collector, which set them there again. */
static void clean_finalizers(cJSON *object)
{
    static const char *const OWN[] = { "foregroundDeletion", "orphan", "kubernetes", NULL };
    cJSON *finalizers = member(object, "finalizers");

    for (cJSON *item = finalizers ? finalizers->child : NULL, *next; item; item = next) {
        const char *name = json_string(item, "");

        next = item->next;
        if (str_has_prefix(name, API_GROUP "/") || str_is_one_of(name, OWN))
            json_free(cJSON_DetachItemViaPointer(finalizers, item));
    }
    remove_if_empty(object, "finalizers");
}

static void clean_metadata(const struct kube_kind *kind, cJSON *metadata)
{
    static const char *const SERVERS[] = { "uid",
                                           "resourceVersion",
                                           "generation",
                                           "creationTimestamp",
                                           "deletionTimestamp",
                                           "deletionGracePeriodSeconds",
                                           "managedFields",
                                           "selfLink",
                                           "ownerReferences" };

    for (size_t i = 0; i < ARRAY_LEN(SERVERS); i++)
        json_remove(metadata, SERVERS[i]);
    if (!kind->namespaced)
        json_remove(metadata, "namespace");
    else if (!*json_get_string(metadata, "namespace"))
        json_set_string(metadata, "namespace", "default");
    if (json_get(metadata, "annotations"))
        json_remove(member(metadata, "annotations"), LAST_APPLIED);
    if (is_kind(kind, "", "Namespace") && json_get(metadata, "labels"))
        json_remove(member(metadata, "labels"), NAMESPACE_LABEL);
    clean_finalizers(metadata);
    remove_if_empty(metadata, "annotations");
    remove_if_empty(metadata, "labels");
}

cJSON *manifest_of(struct arena *arena, const struct kube_kind *kind, const cJSON *object,
                   bool with_status)
{
    cJSON *manifest = arena_own(arena, json_copy(object), json_free);
    cJSON *status = member(manifest, "status");

    if (cJSON_IsObject(json_get(manifest, "metadata")))
        clean_metadata(kind, member(manifest, "metadata"));
    if (with_status && cJSON_IsObject(status) &&
        manifest_judge(kind, object) == MANIFEST_FINISHED) {
        json_remove(status, "observedGeneration"); /* generations are counted again */
        json_remove_path(status, "conditions.observedGeneration");
    } else {
        json_remove(manifest, "status");
    }
    if (is_kind(kind, "", "Namespace") && json_get(manifest, "spec")) {
        clean_finalizers(member(manifest, "spec"));
        remove_if_empty(manifest, "spec");
    }
    return manifest;
}

/* --- differences --- */

/* Lists are one value. */
const char *manifest_difference(struct arena *arena, const cJSON *one, const cJSON *other)
{
    if (json_equal(one, other))
        return NULL;
    if (!cJSON_IsObject(one) || !cJSON_IsObject(other))
        return "";
    for (int i = 0; i < 2; i++) {
        json_for_each (value, i ? other : one) {
            const char *rest = manifest_difference(arena, json_get(one, value->string),
                                                   json_get(other, value->string));
            if (rest)
                return arena_printf(arena, "%s%s%s", value->string, *rest ? "." : "", rest);
        }
    }
    return "";
}
