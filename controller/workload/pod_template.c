#include "controller/workload/pod_template.h"

#include "common/api/names.h"
#include "common/base/str.h"
#include "controller/workload/proplet_deployment_plan.h"

static cJSON *find_named(const cJSON *array, const char *name)
{
    json_for_each (item, array) {
        if (str_equal(json_string(json_get(item, "name"), NULL), name))
            return (cJSON *)item; /* of a tree that is being built */
    }
    return NULL;
}

static void merge_items(cJSON *into, const cJSON *fragment)
{
    json_for_each (item, fragment) {
        const char *name = json_string(json_get(item, "name"), NULL);
        cJSON *same = name ? find_named(into, name) : NULL;

        if (same)
            pod_template_merge(same, item);
        else
            json_add(into, json_copy(item));
    }
}

void pod_template_merge(cJSON *into, const cJSON *fragment)
{
    json_for_each (member, fragment) {
        cJSON *present = (cJSON *)json_get(into, member->string);

        if (cJSON_IsObject(present) && cJSON_IsObject(member))
            pod_template_merge(present, member);
        else if (cJSON_IsArray(present) && cJSON_IsArray(member))
            merge_items(present, member);
        else
            json_set_copy(into, member->string, member);
    }
}

static bool is_void(const cJSON *value)
{
    return cJSON_IsNull(value) || cJSON_IsFalse(value) ||
           (cJSON_IsNumber(value) && json_double(value, 1) == 0) ||
           (cJSON_IsString(value) && str_is_empty(json_string(value, ""))) ||
           ((cJSON_IsObject(value) || cJSON_IsArray(value)) && json_len(value) == 0);
}

/* An item without a name is whole if one of those that are there has all that it has; else it is compared
 * with the last, as such items were appended. */
static const char *left_out_of_items(struct arena *arena, const cJSON *fragment, const cJSON *made)
{
    json_for_each (item, fragment) {
        const char *name = json_string(json_get(item, "name"), NULL), *missed = "";

        json_for_each (candidate, made) {
            if (missed && (!name || str_equal(json_string(json_get(candidate, "name"), ""), name)))
                missed = pod_template_left_out(arena, item, candidate);
        }
        if (missed)
            return arena_printf(arena, "[%s]%s", name ? name : "", missed);
    }
    return NULL;
}

const char *pod_template_left_out(struct arena *arena, const cJSON *fragment, const cJSON *made)
{
    if (cJSON_IsArray(fragment) && cJSON_IsArray(made))
        return left_out_of_items(arena, fragment, made);
    if (!cJSON_IsObject(fragment) || !cJSON_IsObject(made))
        return NULL; /* another value is no missing one */

    json_for_each (member, fragment) {
        const cJSON *same = json_get(made, member->string);
        const char *missed = same              ? pod_template_left_out(arena, member, same)
                             : is_void(member) ? NULL
                                               : "";

        if (missed)
            return arena_printf(arena, ".%s%s", member->string, missed);
    }
    return NULL;
}

static void add_number(struct arena *arena, cJSON *env, const char *name, int64_t value)
{
    workload_add_env(arena, env, name, arena_printf(arena, "%lld", (long long)value));
}

/* Both names of a thing: the released images read the first, newer ones the second. */
static void add_both(struct arena *arena, cJSON *env, const char *const names[2], const char *value)
{
    for (size_t i = 0; i < 2; i++)
        workload_add_env(arena, env, names[i], value);
}

static void add_key(cJSON *env, const char *const names[2], const char *secret, const char *key,
                    bool optional)
{
    for (size_t i = 0; i < 2; i++) {
        cJSON *variable = json_add_object(env);

        json_set_string(variable, "name", names[i]);
        cJSON *ref = json_set_object(json_set_object(variable, "valueFrom"), "secretKeyRef");
        json_set_string(ref, "name", secret);
        json_set_string(ref, "key", key);
        if (optional)
            json_set_bool(ref, "optional", true);
    }
}

/* Each pod of a StatefulSet adds its number, which the kubelet fills in. */
static void add_identity(struct arena *arena, cJSON *env, const struct proplet_spec *spec)
{
    static const char *const NAMES[] = { "PROPLET_CLIENT_ID", "PROPLET_ENTITY_ID" };
    const char *client_id = spec->connection_config->client_id;

    if (!spec->k8s->indexed_client_ids) {
        add_both(arena, env, NAMES, client_id);
        return;
    }

    cJSON *index = json_add_object(env);
    json_set_string(index, "name", "PROPLET_POD_INDEX");
    json_set_string(json_set_object(json_set_object(index, "valueFrom"), "fieldRef"), "fieldPath",
                    "metadata.labels['apps.kubernetes.io/pod-index']");
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        workload_add_env(arena, env, NAMES[i], client_id);
        cJSON *variable = find_named(env, NAMES[i]);
        json_set_string(variable, "value",
                        arena_printf(arena, "%s-$(PROPLET_POD_INDEX)",
                                     json_string(json_get(variable, "value"), "")));
    }
}

static void set_environment(struct arena *arena, cJSON *container,
                            const struct pod_template_options *options)
{
    static const char *const DOMAIN[] = { "PROPLET_DOMAIN_ID", "PROPLET_TENANT_ID" };
    static const char *const KEY[] = { "PROPLET_CLIENT_KEY", "PROPLET_API_KEY" };
    const struct proplet_spec *spec = options->spec;
    const struct connection_config *config = spec->connection_config;
    const struct secret_key_ref *ref = config->client_key_secret_ref;
    const cJSON *metadata = json_get(options->proplet, "metadata");
    cJSON *env = json_set_array(container, "env");

    workload_add_env(arena, env, "PROPLET_LOG_LEVEL",
                     PROPLET_LOG_LEVEL_NAMES[spec->k8s->log_level]);
    add_both(arena, env, DOMAIN, config->domain_id);
    workload_add_env(arena, env, "PROPLET_CHANNEL_ID", config->channel_id);
    add_identity(arena, env, spec);
    if (ref)
        add_key(env, KEY, ref->name, ref->key, ref->optional);
    else
        add_key(env, KEY,
                client_key_secret_name(arena, json_string(json_get(metadata, "name"), "")),
                CLIENT_KEY_ITEM, false);
    workload_add_env(arena, env, "PROPLET_MQTT_ADDRESS", config->mqtt_address);
    add_number(arena, env, "PROPLET_MQTT_TIMEOUT", (proplet_mqtt_timeout_ms(spec) + 999) / 1000);
    add_number(arena, env, "PROPLET_MQTT_QOS", proplet_mqtt_qos(spec));
    add_number(arena, env, "PROPLET_LIVELINESS_INTERVAL", options->liveliness_s);
    workload_add_env(arena, env, "PROPLET_MANAGER_K8S_NAMESPACE",
                     json_string(json_get(metadata, "namespace"), ""));
    workload_add_env(arena, env, "PROPLET_PLUGIN_DIR", spec->k8s->plugin_dir);
}

/* After podTemplate, which may take it from a Secret: a variable has a value or a source, not both. */
static void set_kbs_uri(struct arena *arena, const cJSON *template, const char *uri)
{
    static const char NAME[] = "PROPLET_KBS_URI";
    cJSON *container =
        find_named(json_path(template, "spec", "containers", NULL), PROPLET_CONTAINER);
    cJSON *env = (cJSON *)json_get(container, "env");

    if (!find_named(env, NAME))
        workload_add_env(arena, env, NAME, uri);
}

static void set_labels(struct arena *arena, cJSON *template,
                       const struct pod_template_options *options)
{
    const char *name =
        label_value(arena, json_string(json_path(options->proplet, "metadata", "name", NULL), ""));
    cJSON *metadata = (cJSON *)json_get(template, "metadata");
    cJSON *labels = (cJSON *)json_get(metadata, "labels");

    if (!cJSON_IsObject(labels))
        labels = json_set_object(metadata, "labels");
    json_set_string(labels, LABEL_MANAGED_BY, LABEL_MANAGED_BY_VALUE);
    json_set_string(labels, LABEL_PROPLET, name);
    json_set_string(labels, LABEL_PROPLET_SELECTOR, name);
    json_for_each (label, options->labels) {
        if (!json_equal(json_get(labels, label->string), label)) /* the order is in the hash */
            json_set_copy(labels, label->string, label);
    }
}

cJSON *pod_template(struct arena *arena, const struct pod_template_options *options)
{
    const struct proplet_k8s *k8s = options->spec->k8s;
    cJSON *template = cJSON_CreateObject();
    cJSON *metadata = json_set_object(template, "metadata");
    cJSON *spec = json_set_object(template, "spec");
    cJSON *container = json_add_object(json_set_array(spec, "containers"));

    json_set_string(container, "name", PROPLET_CONTAINER);
    json_set_string(container, "image", k8s->image);
    workload_secure(spec, container);
    workload_set_resources(container, options->spec->resources);
    set_environment(arena, container, options);
    json_set_int(spec, "terminationGracePeriodSeconds", PROPLET_GRACE_S);
    if (options->key_version)
        json_set_string(json_set_object(metadata, "annotations"), ANNOTATION_KEY_VERSION,
                        options->key_version);
    pod_template_merge(template, k8s->pod_template);
    set_kbs_uri(arena, template, options->kbs_uri);
    set_labels(arena, template, options);
    return template;
}
