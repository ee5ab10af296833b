#include "controller/workload/workload.h"

#include <string.h>

#include "common/api/names.h"
#include "common/api/quantity.h"
#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "common/kube/owner.h"

static const char *api_version(struct arena *arena, const struct kube_kind *kind)
{
    return *kind->group ? arena_printf(arena, "%s/%s", kind->group, kind->version) : kind->version;
}

cJSON *workload_create(struct arena *arena, const struct kube_kind *kind, const char *name,
                       const struct kube_kind *owner_kind, const cJSON *owner)
{
    cJSON *object = json_object(arena);

    json_set_string(object, "apiVersion", api_version(arena, kind));
    json_set_string(object, "kind", kind->kind);

    cJSON *metadata = json_set_object(object, "metadata");
    json_set_string(metadata, "namespace",
                    json_string(json_path(owner, "metadata", "namespace", NULL), ""));
    json_set_string(metadata, "name", name);
    json_set_string(json_set_object(metadata, "labels"), LABEL_MANAGED_BY, LABEL_MANAGED_BY_VALUE);
    owner_set_controller(metadata, owner_kind, owner);
    return object;
}

bool workload_is_of(const cJSON *object, const char *owner_uid)
{
    const char *uid = kube_controller_uid(object);

    return uid && !str_is_empty(owner_uid) && str_equal(uid, owner_uid);
}

static void add_tmp(cJSON *pod_spec, cJSON *container)
{
    cJSON *mount = json_add_object(json_set_array(container, "volumeMounts"));
    cJSON *volume = json_add_object(json_set_array(pod_spec, "volumes"));

    json_set_string(mount, "name", "tmp");
    json_set_string(mount, "mountPath", "/tmp");
    json_set_string(volume, "name", "tmp");
    json_set_object(volume, "emptyDir");
}

void workload_secure(cJSON *pod_spec, cJSON *container)
{
    json_set_bool(pod_spec, "automountServiceAccountToken", false);
    json_set_bool(pod_spec, "enableServiceLinks", false);

    cJSON *pod = json_set_object(pod_spec, "securityContext");
    cJSON *inside = json_set_object(container, "securityContext");
    json_set_bool(pod, "runAsNonRoot", true);
    json_set_int(pod, "runAsUser", WORKLOAD_USER);
    json_set_int(pod, "runAsGroup", WORKLOAD_USER);
    json_set_string(json_set_object(pod, "seccompProfile"), "type", "RuntimeDefault");
    json_set_bool(inside, "allowPrivilegeEscalation", false);
    json_set_bool(inside, "readOnlyRootFilesystem", true);
    json_add_string(json_set_array(json_set_object(inside, "capabilities"), "drop"), "ALL");
    add_tmp(pod_spec, container);
}

void workload_set_resources(cJSON *container, const cJSON *resources)
{
    if (!json_len(resources))
        return;

    cJSON *both = json_set_object(container, "resources");
    json_set_copy(both, "limits", resources);
    json_set_copy(both, "requests", resources);
}

static const char *without_references(struct arena *arena, const char *value)
{
    size_t dollars = 0;

    for (const char *c = value; *c; c++)
        dollars += *c == '$';
    if (!dollars)
        return value;

    char *escaped = arena_alloc(arena, strlen(value) + dollars + 1, 1);
    char *to = escaped;
    for (const char *c = value; *c; c++) {
        if (*c == '$')
            *to++ = '$';
        *to++ = *c;
    }
    *to = '\0';
    return escaped;
}

void workload_add_env(struct arena *arena, cJSON *env, const char *name, const char *value)
{
    if (!value)
        return;

    cJSON *variable = json_add_object(env);
    json_set_string(variable, "name", name);
    json_set_string(variable, "value", without_references(arena, value));
}

const char *workload_hash(struct arena *arena, const cJSON *value)
{
    size_t len;
    const char *text = json_text(arena, value, &len);

    return sha256_hex(text, len, arena_alloc(arena, 1, SHA256_HEX_LEN));
}

static bool is_empty(const cJSON *value)
{
    if (cJSON_IsString(value))
        return str_is_empty(json_string(value, ""));
    if (json_is_number(value))
        return json_double(value, 1) == 0;
    if (cJSON_IsObject(value) || cJSON_IsArray(value))
        return json_len(value) == 0;
    return !value || cJSON_IsNull(value) || cJSON_IsFalse(value);
}

static bool same_amount(const cJSON *a, const cJSON *b)
{
    struct quantity x;
    struct quantity y;

    return quantity_of(a, &x) && quantity_of(b, &y) && x.negative == y.negative &&
           x.whole == y.whole && x.nano == y.nano;
}

bool workload_has(const cJSON *live, const cJSON *wanted)
{
    if (!live)
        return is_empty(wanted);
    if (cJSON_IsObject(live) && cJSON_IsObject(wanted)) {
        json_for_each (member, wanted) {
            if (!workload_has(json_get(live, member->string), member))
                return false;
        }
        return true;
    }
    if (!cJSON_IsArray(live) || !cJSON_IsArray(wanted))
        return json_equal(live, wanted) || same_amount(live, wanted);
    if (json_len(live) != json_len(wanted))
        return false;

    const cJSON *item = json_first(live);
    json_for_each (want, wanted) {
        if (!workload_has(item, want))
            return false;
        item = item->next;
    }
    return true;
}

#define TROUBLE_TEXT 512 /* bytes of the kubelet's or the scheduler's own words */

static const char *cut(struct arena *arena, const char *text)
{
    return arena_strndup(arena, text, str_utf8_cut(text, strlen(text), TROUBLE_TEXT));
}

static const char *text_of(const cJSON *object, const char *key)
{
    return json_string(json_get(object, key), "");
}

static struct workload_trouble trouble_of(const char *word, const char *message)
{
    return (struct workload_trouble){ reason_of(word), message, word };
}

struct workload_trouble workload_trouble_or(enum reason otherwise, const char *word,
                                            const char *message)
{
    return str_is_empty(word) ? (struct workload_trouble){ .reason = otherwise, .message = message }
                              : trouble_of(word, message);
}

/* A kubelet says one of these when it has tried, and ImagePullBackOff until it tries again. */
static const char *settled_reason(const char *reason)
{
    static const char *const TRIED[] = { "ErrImagePull", "SignatureValidationFailed" };

    if (reason_of(reason) == REASON_REGISTRY_UNAVAILABLE) /* also one of ours, of a module */
        return reason_text(REASON_IMAGE_PULL);
    for (size_t i = 0; i < ARRAY_LEN(TRIED); i++) {
        if (str_equal(reason, TRIED[i]))
            return reason_text(REASON_IMAGE_PULL);
    }
    return reason;
}

static struct workload_trouble ended(struct arena *arena, const char *pod, const char *container,
                                     const char *reason, const cJSON *terminated)
{
    const char *why = text_of(terminated, "reason");
    const char *message =
        arena_printf(arena, "pod '%s': container '%s' ended with exit code %d%s%s", pod, container,
                     (int)json_int(json_get(terminated, "exitCode"), -1),
                     reason_of(why) == REASON_OOM ? ", OOMKilled" : "",
                     str_is_empty(reason) ? "" : " and is started again");

    return workload_trouble_or(REASON_POD_WAITING, str_is_empty(reason) ? why : reason, message);
}

static struct workload_trouble container_trouble(struct arena *arena, const char *pod,
                                                 const cJSON *status)
{
    const cJSON *waiting = json_path(status, "state", "waiting", NULL);
    const cJSON *terminated = json_path(status, "state", "terminated", NULL);
    const char *reason = text_of(waiting, "reason");
    const char *name = text_of(status, "name");

    if (reason_of(reason) == REASON_CRASH_LOOP)
        return ended(arena, pod, name, reason, json_path(status, "lastState", "terminated", NULL));
    if (json_int(json_get(terminated, "exitCode"), 0) != 0)
        return ended(arena, pod, name, "", terminated);
    if (str_is_empty(reason) || str_equal(reason, "ContainerCreating") ||
        str_equal(reason, "PodInitializing"))
        return (struct workload_trouble){ 0 };

    reason = settled_reason(reason);
    enum reason known = reason_of(reason);
    if (known == REASON_IMAGE_PULL || known == REASON_IMAGE_NAME || known == REASON_IMAGE_NEVER)
        return trouble_of(reason, arena_printf(arena, "pod '%s': image '%s' cannot be pulled", pod,
                                               cut(arena, text_of(status, "image"))));
    return trouble_of(
        reason, arena_printf(arena, "pod '%s': %s", pod, cut(arena, text_of(waiting, "message"))));
}

struct workload_trouble workload_pod_trouble(struct arena *arena, const cJSON *pod)
{
    static const char *const LISTS[] = { "initContainerStatuses", "containerStatuses" };
    const char *name = json_string(json_path(pod, "metadata", "name", NULL), "");
    const cJSON *status = json_get(pod, "status");
    const cJSON *scheduled = condition_get(json_get(status, "conditions"), "PodScheduled");

    for (size_t i = 0; i < ARRAY_LEN(LISTS); i++) {
        json_for_each (container, json_get(status, LISTS[i])) {
            struct workload_trouble trouble = container_trouble(arena, name, container);
            if (trouble.reason)
                return trouble;
        }
    }
    if (str_equal(text_of(status, "phase"), "Failed"))
        return workload_trouble_or(
            REASON_POD_FAILED, text_of(status, "reason"),
            arena_printf(arena, "pod '%s': %s", name, cut(arena, text_of(status, "message"))));
    if (str_equal(text_of(scheduled, "status"), "False"))
        return workload_trouble_or(
            REASON_UNSCHEDULABLE, text_of(scheduled, "reason"),
            arena_printf(arena, "pod '%s': %s", name, cut(arena, text_of(scheduled, "message"))));
    return (struct workload_trouble){ 0 };
}

bool workload_webhook_failed(const struct error *err)
{
    return err->code == ERROR_INTERNAL && strstr(err->message, "failed calling webhook");
}

struct workload_trouble workload_refusal(struct arena *arena, const char *reason,
                                         const char *message)
{
    static const struct {
        const char *words;
        enum reason reason;
    } KNOWN[] = {
        { "exceeded quota", REASON_QUOTA },
        { "violates PodSecurity", REASON_POD_SECURITY },
        { "is being terminated", REASON_NAMESPACE_TERMINATING },
        { "failed calling webhook", REASON_WEBHOOK_UNAVAILABLE },
    };

    for (size_t i = 0; i < ARRAY_LEN(KNOWN); i++) {
        if (strstr(message, KNOWN[i].words))
            return (struct workload_trouble){ .reason = KNOWN[i].reason,
                                              .message = cut(arena, message) };
    }
    return workload_trouble_or(REASON_FAILED_CREATE, reason, cut(arena, message));
}

void project_pod(cJSON *object)
{
    static const char *const STATUS[] = { "podIP",   "podIPs",   "hostIP",
                                          "hostIPs", "qosClass", "ephemeralContainerStatuses" };
    cJSON *metadata = (cJSON *)json_get(object, "metadata");
    cJSON *status = (cJSON *)json_get(object, "status");
    const cJSON *annotations = json_get(metadata, "annotations");
    const cJSON *result = json_get(annotations, ANNOTATION_RESULT);
    cJSON *kept = result ? cJSON_CreateObject() : NULL;

    if (kept)
        json_set_copy(kept, ANNOTATION_RESULT, result);
    json_set(metadata, "annotations", kept);
    json_remove(object, "spec");
    for (size_t i = 0; i < ARRAY_LEN(STATUS); i++)
        json_remove(status, STATUS[i]);
}

void project_workload(cJSON *object)
{
    cJSON *metadata = (cJSON *)json_get(object, "metadata");

    json_remove((cJSON *)json_get(metadata, "annotations"),
                "kubectl.kubernetes.io/last-applied-configuration");
}
