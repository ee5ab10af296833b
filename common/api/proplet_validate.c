#include <string.h>

#include "common/api/proplet.h"
#include "common/api/validate_internal.h"
#include "common/base/str.h"

static bool has_changed(const cJSON *old_value, const cJSON *value)
{
    return json_string(old_value, NULL) && json_string(value, NULL) &&
           !json_equal(old_value, value);
}

static void check_changes(const struct validation *validation)
{
    static const char *const IDENTITY[] = { "domainId", "channelId", "clientId" };
    const cJSON *old_spec = json_get(validation->old, "spec");
    const cJSON *spec = json_get(validation->object, "spec");

    if (has_changed(json_get(old_spec, "type"), json_get(spec, "type")))
        field_error(validation->errors, FIELD_ERROR_FORBIDDEN, "spec.type", NULL, "cannot change");
    for (size_t i = 0; i < ARRAY_LEN(IDENTITY); i++) {
        if (has_changed(json_path(old_spec, "connectionConfig", IDENTITY[i], NULL),
                        json_path(spec, "connectionConfig", IDENTITY[i], NULL)))
            field_error(validation->errors, FIELD_ERROR_FORBIDDEN,
                        arena_printf(validation->arena, "spec.connectionConfig.%s", IDENTITY[i]),
                        NULL, "cannot change, it is the identity of the device");
    }
}

/* Never with a value: one of the two is a key. */
static void check_key(const struct validation *validation, const struct connection_config *config)
{
    bool has_key = !str_is_empty(config->client_key);

    if (has_key == (config->client_key_secret_ref != NULL))
        field_error(validation->errors, FIELD_ERROR_INVALID,
                    "spec.connectionConfig.clientKeySecretRef", NULL,
                    "exactly one of clientKey and clientKeySecretRef is needed");
}

static void check_heartbeat_timeout(const struct spec_view *view, const struct proplet_spec *spec)
{
    const char *text = spec->external ? spec->external->heartbeat_timeout : NULL;
    struct field_errors *errors = view->validation->errors;
    int64_t ms = 0;

    if (!text)
        return;
    if (!str_to_duration_ms(text, &ms) || ms < PROPLET_MIN_HEARTBEAT_TIMEOUT_MS ||
        ms > PROPLET_MAX_HEARTBEAT_TIMEOUT_MS)
        field_error(errors, FIELD_ERROR_INVALID, "spec.external.heartbeatTimeout",
                    json_get(spec_json(view, "external"), "heartbeatTimeout"),
                    "must be from 5s to 24h");
    else if (ms < 3 * PROPLET_HEARTBEAT_MS)
        field_warning(errors, "spec.external.heartbeatTimeout",
                      "a device sends a heartbeat every 10 s, and three of them may be late: below "
                      "30s it may be Offline for no reason");
}

static void advise(const struct spec_view *view, const struct proplet_spec *spec)
{
    struct field_errors *errors = view->validation->errors;
    const struct json_opt_int *qos = &spec->connection_config->mqtt_qos;

    if (spec->type == PROPLET_EXTERNAL && spec->k8s)
        field_warning(errors, "spec.k8s", "a Proplet of type external does not use it");
    if (spec->type == PROPLET_K8S && spec->external)
        field_warning(errors, "spec.external", "a Proplet of type k8s does not use it");
    if (spec->type == PROPLET_K8S)
        advise_resources(view, "resources", spec->resources);
    if (spec->type == PROPLET_K8S && spec->k8s && proplet_replicas(spec) > 1 &&
        !spec->k8s->indexed_client_ids)
        field_warning(errors, "spec.k8s.replicas",
                      "the pods share one MQTT client id and throw each other off the broker, "
                      "unless indexedClientIds is true; only Jobs will run there");
    if (spec->external)
        advise_duplicates(view, "external.capabilities", &spec->external->capabilities);
    if (qos->set && qos->value == 0)
        field_warning(errors, "spec.connectionConfig.mqttQos",
                      "0: results sent while nobody listens are lost");
}

void proplet_validate(const struct validation *validation)
{
    const struct spec_view view = spec_view_of(validation);
    const struct proplet_spec *spec = validate_spec(validation, &PROPLET_SPEC);

    if (!validation_is_settled(validation))
        check_changes(validation);
    if (!spec)
        return;
    if (spec->type == PROPLET_K8S && !spec->k8s)
        field_error(validation->errors, FIELD_ERROR_REQUIRED, "spec.k8s", NULL,
                    "a Proplet of type k8s needs k8s");
    policy_validate_proplet(&view);
    if (spec->availability)
        availability_validate(&view, spec->availability);
    if (!spec->connection_config)
        return;
    check_key(validation, spec->connection_config);
    validate_duration(&view, "connectionConfig", "mqttTimeout",
                      spec->connection_config->mqtt_timeout, true);
    check_heartbeat_timeout(&view, spec);
    advise(&view, spec);
}
