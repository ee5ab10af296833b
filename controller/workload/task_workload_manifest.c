#include "controller/workload/task_workload_manifest.h"

#include <inttypes.h>
#include <string.h>

#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "controller/device/messages.h"
#include "controller/device/payload.h"
#include "controller/workload/pod_template.h"
#include "controller/workload/workload.h"

/* A daemon that ends sooner than this did not start. */
#define DAEMON_READY_SECONDS 5

#define KEY_FUNCTION "function_name"
#define KEY_INPUTS "inputs"
#define KEY_MONITORING "monitoring_profile"
#define KEY_HAS_FILE "wasm_file_provided"
#define KEY_MODULE "module.wasm"
#define MODULE_FOLDER "/propeller"
#define VOLUME_MODULE "module"
/* Of a key of a ConfigMap. */
#define MAX_KEY 253
#define KEY_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

bool task_workload_is_for(const struct task_spec *spec)
{
    return !str_is_empty(spec->image_url) && !str_has_prefix(spec->image_url, "http://") &&
           !str_has_prefix(spec->image_url, "https://");
}

const struct kube_kind *task_workload_kind(const struct task_spec *spec)
{
    return spec->daemon ? &KIND_DEPLOYMENT : &KIND_JOB;
}

const char *task_workload_config_name(struct arena *arena, const char *task)
{
    return child_name(arena, NAME_MAX_OBJECT, "%s-config", task);
}

const char *task_workload_name(struct arena *arena, const char *task, const struct task_spec *spec,
                               int64_t attempt)
{
    if (spec->daemon)
        return child_name(arena, NAME_MAX_POD_OWNER, "%s-daemon", task);
    if (attempt <= 1)
        return child_name(arena, NAME_MAX_POD_OWNER, "%s-job", task);
    return child_name(arena, NAME_MAX_POD_OWNER, "%s-job-%" PRId64, task, attempt);
}

const char *task_workload_result_name(struct arena *arena, const char *workload)
{
    return child_name(arena, NAME_MAX_OBJECT, "%s-result", workload);
}

static const char *metadata_string(const struct task_workload_request *request, const char *key)
{
    return json_string(json_path(request->task, "metadata", key, NULL), "");
}

static void add_labels(struct arena *arena, cJSON *metadata,
                       const struct task_workload_request *request)
{
    cJSON *labels = (cJSON *)json_get(metadata, "labels");

    if (!labels)
        labels = json_set_object(metadata, "labels");
    json_set_string(labels, LABEL_MANAGED_BY, LABEL_MANAGED_BY_VALUE);
    json_set_string(labels, LABEL_TASK, label_value(arena, metadata_string(request, "name")));
    json_set_string(labels, LABEL_TASK_UID, metadata_string(request, "uid"));
    json_set_string(labels, LABEL_ATTEMPT, arena_printf(arena, "%" PRId64, request->attempt));
    json_set_string(labels, LABEL_PROPLET, label_value(arena, request->proplet));
}

static cJSON *object_of(struct arena *arena, const struct task_workload_request *request,
                        const struct kube_kind *kind, const char *name)
{
    cJSON *object = workload_create(arena, kind, name, &KIND_TASK, request->task);

    add_labels(arena, (cJSON *)json_get(object, "metadata"), request); /* a tree that is ours */
    return object;
}

/* ---- ConfigMap ---- */

/* A name of the environment that the ConfigMap cannot hold, or uses itself, stands in the pod. */
static bool is_config_key(const char *name)
{
    static const char *const OWN[] = { KEY_FUNCTION, KEY_INPUTS, KEY_MONITORING, KEY_HAS_FILE,
                                       KEY_MODULE };
    size_t len = strlen(name);

    for (size_t i = 0; i < ARRAY_LEN(OWN); i++) {
        if (str_equal(name, OWN[i]))
            return false;
    }
    return len && len <= MAX_KEY && strspn(name, KEY_CHARACTERS) == len && !str_equal(name, ".") &&
           !str_has_prefix(name, "..");
}

static size_t decoded_len(const char *base64)
{
    size_t len = strlen(base64);

    while (len && base64[len - 1] == '=')
        len--;
    return len * 3 / 4;
}

static int make_config_map(struct arena *arena, const struct task_workload_request *request,
                           const char *name, const cJSON **ret, struct error *err)
{
    const struct task_spec *spec = request->spec;
    cJSON *object = object_of(arena, request, &KIND_CONFIGMAP, name);
    cJSON *data = json_set_object(object, "data");
    size_t size = 0;

    json_for_each (item, spec->env) {
        if (is_config_key(item->string))
            json_set_string(data, item->string, json_string(item, ""));
    }
    json_set_string(data, KEY_FUNCTION, task_function_name(spec, metadata_string(request, "name")));
    if (json_len(spec->inputs))
        json_set_string(data, KEY_INPUTS, json_text(arena, spec->inputs, NULL));
    if (spec->monitoring_profile) {
        cJSON *profile = json_object(arena);
        payload_set_monitoring(profile, spec->monitoring_profile);
        json_set_string(data, KEY_MONITORING, json_text(arena, profile, NULL));
    }
    if (!str_is_empty(spec->file)) {
        json_set_string(data, KEY_HAS_FILE, "true");
        json_set_string(json_set_object(object, "binaryData"), KEY_MODULE, spec->file);
        size = decoded_len(spec->file);
    }

    json_for_each (item, data)
        size += strlen(json_string(item, ""));
    if (size > WORKLOAD_CONFIG_MAX)
        return error_set(err, ERROR_TOO_LARGE,
                         "ConfigMap '%s' would hold %zu bytes of file, env and inputs; %u are "
                         "allowed",
                         name, size, WORKLOAD_CONFIG_MAX);
    *ret = object;
    return 0;
}

/* ---- pod ---- */

static void add_environment(struct arena *arena, cJSON *container,
                            const struct task_workload_request *request, const char *config)
{
    cJSON *from = json_add_object(json_set_array(container, "envFrom"));
    cJSON *list = json_set_array(container, "env");

    json_set_string(json_set_object(from, "configMapRef"), "name", config);
    json_for_each (item, request->spec->env) {
        if (!is_config_key(item->string))
            workload_add_env(arena, list, item->string, json_string(item, ""));
    }
    json_for_each (item, request->checkpoint)
        workload_add_env(arena, list, item->string, json_string(item, ""));
    workload_add_env(arena, list, "PROPLET_ID", request->proplet);
    workload_add_env(arena, list, "TASK_ID",
                     message_id(arena, metadata_string(request, "uid"), request->attempt));
}

static const cJSON *amounts_of(struct arena *arena, const struct resource_amounts *amounts)
{
    cJSON *ret = json_object(arena);

    if (amounts && amounts->cpu)
        json_set_copy(ret, "cpu", amounts->cpu);
    if (amounts && amounts->memory)
        json_set_copy(ret, "memory", amounts->memory);
    json_for_each (item, amounts ? amounts->custom : NULL)
        json_set_copy(ret, item->string, item);
    return ret;
}

static void add_module(cJSON *pod, cJSON *container, const char *config)
{
    cJSON *mount = json_add_object((cJSON *)json_get(container, "volumeMounts"));
    cJSON *volume = json_add_object((cJSON *)json_get(pod, "volumes"));
    cJSON *source = json_set_object(volume, "configMap");
    cJSON *item = json_add_object(json_set_array(source, "items"));

    json_set_string(mount, "name", VOLUME_MODULE);
    json_set_string(mount, "mountPath", MODULE_FOLDER);
    json_set_bool(mount, "readOnly", true);
    json_set_string(volume, "name", VOLUME_MODULE);
    json_set_string(source, "name", config);
    json_set_string(item, "key", KEY_MODULE);
    json_set_string(item, "path", KEY_MODULE);
}

static void add_container(struct arena *arena, cJSON *pod,
                          const struct task_workload_request *request, const char *config)
{
    const struct task_spec *spec = request->spec;
    cJSON *container = json_add_object(json_set_array(pod, "containers"));

    workload_secure(pod, container);
    /* an image of anybody's may want to write somewhere */
    json_remove((cJSON *)json_get(container, "securityContext"), "readOnlyRootFilesystem");
    json_set_string(container, "name", WORKLOAD_CONTAINER);
    json_set_string(container, "image", spec->image_url);
    if (spec->cli_args.len) {
        cJSON *args = json_set_array(container, "args");
        for (size_t i = 0; i < spec->cli_args.len; i++)
            json_add_string(args, spec->cli_args.items[i]);
    }
    add_environment(arena, container, request, config);
    workload_set_resources(container, amounts_of(arena, spec->resource_requirements));
    json_set_string(container, "terminationMessagePolicy", "FallbackToLogsOnError");
    if (!str_is_empty(spec->file))
        add_module(pod, container, config);
}

/* What the Proplet's podTemplate says about its own pods and about those of its Tasks. */
static void apply_template(struct arena *arena, cJSON *pod, const cJSON *fragment)
{
    static const char *const FIELDS[] = { "serviceAccountName", "automountServiceAccountToken",
                                          "imagePullSecrets",   "nodeSelector",
                                          "tolerations",        "securityContext" };
    const cJSON *from = json_get(fragment, "spec");
    cJSON *shared = json_object(arena);

    for (size_t i = 0; i < ARRAY_LEN(FIELDS); i++) {
        if (json_get(from, FIELDS[i]))
            json_set_copy(shared, FIELDS[i], json_get(from, FIELDS[i]));
    }
    pod_template_merge(pod, shared);
}

static void add_template(struct arena *arena, cJSON *spec,
                         const struct task_workload_request *request, const char *config)
{
    cJSON *template = json_set_object(spec, "template");
    cJSON *pod;

    add_labels(arena, json_set_object(template, "metadata"), request);
    pod = json_set_object(template, "spec");
    json_set_string(pod, "restartPolicy", request->spec->daemon ? "Always" : "Never");
    if (json_len(request->spec->image_pull_secrets))
        json_set_copy(pod, "imagePullSecrets", request->spec->image_pull_secrets);
    add_container(arena, pod, request, config);
    apply_template(arena, pod, request->pod_template);
}

/* ---- Job and Deployment ---- */

static void set_deployment(cJSON *spec, const struct task_workload_request *request)
{
    cJSON *labels = json_set_object(json_set_object(spec, "selector"), "matchLabels");

    json_set_string(labels, LABEL_TASK_UID, metadata_string(request, "uid"));
    json_set_int(spec, "replicas", TASK_DAEMON_REPLICAS);
    json_set_int(spec, "minReadySeconds", DAEMON_READY_SECONDS);
    json_set_int(spec, "revisionHistoryLimit", 0);
    json_set_string(json_set_object(spec, "strategy"), "type", "Recreate");
}

int task_workload_manifest(struct arena *arena, const struct task_workload_request *request,
                           struct task_workload_manifest *ret, struct error *err)
{
    const char *task = metadata_string(request, "name");
    const char *config = task_workload_config_name(arena, task);
    const cJSON *config_map;

    int r = make_config_map(arena, request, config, &config_map, err);
    if (r < 0)
        return r;

    cJSON *workload = object_of(arena, request, task_workload_kind(request->spec),
                                task_workload_name(arena, task, request->spec, request->attempt));
    cJSON *spec = json_set_object(workload, "spec");
    if (request->spec->daemon)
        set_deployment(spec, request);
    else
        json_set_int(spec, "backoffLimit", 0);
    add_template(arena, spec, request, config);
    *ret = (struct task_workload_manifest){ .config_map = config_map, .workload = workload };
    return 0;
}
