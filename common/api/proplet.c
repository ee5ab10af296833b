#include "common/api/proplet.h"

#include <string.h>

#include "common/api/decode.h"
#include "common/api/names.h"
#include "common/base/str.h"

const char *const PROPLET_TYPE_NAMES[] = { NULL, "k8s", "external", NULL };
const char *const PROPLET_LOG_LEVEL_NAMES[] = { "info", "debug", "warn", "error", NULL };
const char *const PROPLET_DIALECT_NAMES[] = { "standard", "embedded", NULL };
const char *const PROPLET_PHASE_NAMES[] = { "Initializing", "Running", "Offline", NULL };

static const struct json_field K8S_FIELDS[] = {
    JSON_FIELD(FIELD_STRING, struct proplet_k8s, image, "image"),
    JSON_FIELD_ENUM(struct proplet_k8s, log_level, "logLevel", PROPLET_LOG_LEVEL_NAMES),
    JSON_FIELD(FIELD_OPT_INT, struct proplet_k8s, replicas, "replicas"),
    JSON_FIELD(FIELD_STRING, struct proplet_k8s, plugin_dir, "pluginDir"),
    JSON_FIELD(FIELD_BOOL, struct proplet_k8s, indexed_client_ids, "indexedClientIds"),
    JSON_FIELD(FIELD_ANY, struct proplet_k8s, pod_template, "podTemplate"),
};
static const struct json_struct K8S = JSON_STRUCT(struct proplet_k8s, K8S_FIELDS);

static const struct json_field EXTERNAL_FIELDS[] = {
    JSON_FIELD(FIELD_STRING, struct proplet_external, device_type, "deviceType"),
    JSON_FIELD(FIELD_STRINGS, struct proplet_external, capabilities, "capabilities"),
    JSON_FIELD_ENUM(struct proplet_external, dialect, "dialect", PROPLET_DIALECT_NAMES),
    JSON_FIELD(FIELD_OPT_INT, struct proplet_external, max_tasks, "maxTasks"),
    JSON_FIELD(FIELD_STRING, struct proplet_external, heartbeat_timeout, "heartbeatTimeout"),
};
static const struct json_struct EXTERNAL = JSON_STRUCT(struct proplet_external, EXTERNAL_FIELDS);

static const struct json_field SECRET_FIELDS[] = {
    JSON_FIELD(FIELD_STRING, struct secret_key_ref, name, "name"),
    JSON_FIELD(FIELD_STRING, struct secret_key_ref, key, "key"),
    JSON_FIELD(FIELD_BOOL, struct secret_key_ref, optional, "optional"),
};
static const struct json_struct SECRET = JSON_STRUCT(struct secret_key_ref, SECRET_FIELDS);

static const struct json_field CONNECTION_FIELDS[] = {
    JSON_FIELD(FIELD_STRING, struct connection_config, mqtt_address, "mqttAddress"),
    JSON_FIELD(FIELD_STRING, struct connection_config, domain_id, "domainId"),
    JSON_FIELD(FIELD_STRING, struct connection_config, channel_id, "channelId"),
    JSON_FIELD(FIELD_STRING, struct connection_config, client_id, "clientId"),
    JSON_FIELD(FIELD_STRING, struct connection_config, client_key, "clientKey"),
    JSON_FIELD_NESTED(FIELD_OBJECT, struct connection_config, client_key_secret_ref,
                      "clientKeySecretRef", &SECRET),
    JSON_FIELD(FIELD_OPT_INT, struct connection_config, mqtt_qos, "mqttQos"),
    JSON_FIELD(FIELD_STRING, struct connection_config, mqtt_timeout, "mqttTimeout"),
};
static const struct json_struct CONNECTION =
    JSON_STRUCT(struct connection_config, CONNECTION_FIELDS);

static const struct json_field SPEC_FIELDS[] = {
    JSON_FIELD_ENUM(struct proplet_spec, type, "type", PROPLET_TYPE_NAMES),
    JSON_FIELD_NESTED(FIELD_OBJECT, struct proplet_spec, k8s, "k8s", &K8S),
    JSON_FIELD_NESTED(FIELD_OBJECT, struct proplet_spec, external, "external", &EXTERNAL),
    JSON_FIELD(FIELD_ANY, struct proplet_spec, resources, "resources"),
    JSON_FIELD_NESTED(FIELD_OBJECT, struct proplet_spec, connection_config, "connectionConfig",
                      &CONNECTION),
    JSON_FIELD(FIELD_BOOL, struct proplet_spec, unschedulable, "unschedulable"),
    JSON_FIELD(FIELD_BOOL, struct proplet_spec, kill_switch, "killSwitch"),
    JSON_FIELD_NESTED(FIELD_OBJECT, struct proplet_spec, availability, "availability",
                      &AVAILABILITY_SPEC),
};
const struct json_struct PROPLET_SPEC = JSON_STRUCT(struct proplet_spec, SPEC_FIELDS);

static const struct json_field DEVICE_FIELDS[] = {
    JSON_FIELD(FIELD_STRING, struct proplet_device, client_id, "clientId"),
    JSON_FIELD(FIELD_BOOL, struct proplet_device, connected, "connected"),
    JSON_FIELD(FIELD_TIME, struct proplet_device, offline_since_us, "offlineSince"),
};
static const struct json_struct DEVICE = JSON_STRUCT(struct proplet_device, DEVICE_FIELDS);

static const struct json_field K8S_STATUS_FIELDS[] = {
    JSON_FIELD(FIELD_COUNT, struct proplet_k8s_status, ready_replicas, "readyReplicas"),
    JSON_FIELD(FIELD_COUNT, struct proplet_k8s_status, available_replicas, "availableReplicas"),
    JSON_FIELD_NESTED(FIELD_OBJECTS, struct proplet_k8s_status, devices, "devices", &DEVICE),
};
static const struct json_struct K8S_STATUS =
    JSON_STRUCT(struct proplet_k8s_status, K8S_STATUS_FIELDS);

static const struct json_field STATUS_FIELDS[] = {
    JSON_FIELD_ENUM(struct proplet_status, phase, "phase", PROPLET_PHASE_NAMES),
    JSON_FIELD(FIELD_BOOL, struct proplet_status, alive, "alive"),
    JSON_FIELD(FIELD_TIME, struct proplet_status, last_seen_us, "lastSeen"),
    JSON_FIELD(FIELD_TIME, struct proplet_status, offline_since_us, "offlineSince"),
    JSON_FIELD(FIELD_STRINGS, struct proplet_status, alive_history, "aliveHistory"),
    JSON_FIELD(FIELD_COUNT, struct proplet_status, task_count, "taskCount"),
    JSON_FIELD(FIELD_COUNT, struct proplet_status, active_task_count, "activeTaskCount"),
    JSON_FIELD_NESTED(FIELD_OBJECT, struct proplet_status, available_resources,
                      "availableResources", &RESOURCE_AMOUNTS),
    JSON_FIELD_NESTED(FIELD_OBJECT, struct proplet_status, k8s_status, "k8sStatus", &K8S_STATUS),
    JSON_FIELD(FIELD_ANY, struct proplet_status, metadata, "metadata"),
    JSON_FIELD(FIELD_ANY, struct proplet_status, latest_metrics, "latestMetrics"),
    JSON_FIELD(FIELD_ARRAY, struct proplet_status, conditions, "conditions"),
    JSON_FIELD_NESTED(FIELD_OBJECT, struct proplet_status, availability, "availability",
                      &AVAILABILITY_STATUS),
    JSON_FIELD(FIELD_COUNT, struct proplet_status, observed_generation, "observedGeneration"),
};
const struct json_struct PROPLET_STATUS = JSON_STRUCT(struct proplet_status, STATUS_FIELDS);

int proplet_decode(struct arena *arena, const cJSON *object, struct proplet *ret, struct error *err)
{
    int r =
        api_decode(arena, object, &PROPLET_SPEC, &ret->spec, &PROPLET_STATUS, &ret->status, err);
    if (r < 0)
        return r;

    if (!ret->spec.connection_config)
        ret->spec.connection_config = arena_new(arena, struct connection_config);
    return 0;
}

bool proplet_is_reclaimed(const cJSON *object)
{
    const cJSON *value = json_path(object, "metadata", "annotations", ANNOTATION_RECLAIM, NULL);

    return str_equal(json_string(value, NULL), "true");
}

cJSON *proplet_status_encode(struct arena *arena, const struct proplet_status *status)
{
    cJSON *json = json_encode(arena, &PROPLET_STATUS, status);

    json_set_bool(json, "alive", status->alive);
    return json;
}

int64_t proplet_heartbeat_timeout_ms(const struct proplet_spec *spec, int64_t unset_ms)
{
    int64_t ms = 0;

    if (spec->type != PROPLET_EXTERNAL || !spec->external || !spec->external->heartbeat_timeout ||
        !str_to_duration_ms(spec->external->heartbeat_timeout, &ms) ||
        ms < PROPLET_MIN_HEARTBEAT_TIMEOUT_MS || ms > PROPLET_MAX_HEARTBEAT_TIMEOUT_MS)
        return unset_ms;
    return ms;
}

int64_t proplet_replicas(const struct proplet_spec *spec)
{
    return spec->k8s && spec->k8s->replicas.set ? spec->k8s->replicas.value
                                                : PROPLET_DEFAULT_REPLICAS;
}

bool proplet_is_indexed(const struct proplet_spec *spec)
{
    return spec->type == PROPLET_K8S && spec->k8s && spec->k8s->indexed_client_ids;
}

size_t proplet_device_count(const struct proplet_spec *spec)
{
    int64_t replicas = proplet_replicas(spec);

    if (!proplet_is_indexed(spec))
        return 1;
    if (replicas < 0)
        return 0;
    return replicas < PROPLET_MAX_REPLICAS ? (size_t)replicas : PROPLET_MAX_REPLICAS;
}

const char *proplet_device_id(struct arena *arena, const struct proplet_spec *spec, size_t index)
{
    const char *client_id = spec->connection_config->client_id;

    return proplet_is_indexed(spec) ? arena_printf(arena, "%s-%zu", client_id, index) : client_id;
}

bool proplet_has_device(const struct proplet_spec *spec, const char *client_id)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *dash = client_id ? strrchr(client_id, '-') : NULL;
    int64_t index = 0;

    if (proplet_is_indexed(spec) && (!dash || !str_to_int64(dash + 1, &index) || index < 0 ||
                                     (size_t)index >= proplet_device_count(spec)))
        return false;
    return str_equal(client_id, proplet_device_id(arena, spec, (size_t)index));
}

const struct proplet_device *proplet_device_find(const struct proplet_status *status,
                                                 const char *client_id)
{
    const struct proplet_device *devices =
        status->k8s_status ? status->k8s_status->devices.items : NULL;

    for (size_t i = 0; devices && i < status->k8s_status->devices.len; i++) {
        if (str_equal(devices[i].client_id, client_id))
            return &devices[i];
    }
    return NULL;
}

int proplet_mqtt_qos(const struct proplet_spec *spec)
{
    const struct connection_config *config = spec->connection_config;

    return config->mqtt_qos.set ? (int)config->mqtt_qos.value : PROPLET_DEFAULT_MQTT_QOS;
}

int64_t proplet_mqtt_timeout_ms(const struct proplet_spec *spec)
{
    const char *text = spec->connection_config->mqtt_timeout;
    int64_t ms = 0;

    if (text && str_to_duration_ms(text, &ms) && ms > 0)
        return ms;
    return PROPLET_DEFAULT_MQTT_TIMEOUT_MS;
}

enum proplet_dialect proplet_dialect(const struct proplet_spec *spec)
{
    return spec->external ? spec->external->dialect : DIALECT_STANDARD;
}
