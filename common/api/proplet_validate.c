#include <string.h>

#include "common/api/proplet.h"
#include "common/api/validate_internal.h"
#include "common/base/str.h"

static rule_check_fn check_address;
static rule_check_fn check_topic_part;
static rule_check_fn check_timeout;

static const struct field_rules ANY_MEMBERS = { .len = 0 };

static const struct field_rule K8S_FIELDS[] = {
    { .name = "image", .type = RULE_STRING, .required = true, .min = 1 },
    { .name = "logLevel", .type = RULE_ENUM, .names = PROPLET_LOG_LEVEL_NAMES },
    { .name = "replicas", .type = RULE_INT, .max = 100 },
    { .name = "pluginDir", .type = RULE_STRING },
    { .name = "indexedClientIds", .type = RULE_BOOL },
    { .name = "podTemplate", .type = RULE_OBJECT, .members = &ANY_MEMBERS },
};
static const struct field_rules K8S_RULES = FIELD_RULES(K8S_FIELDS);

static const struct field_rule EXTERNAL_FIELDS[] = {
    { .name = "deviceType", .type = RULE_STRING, .max = MAX_NAME },
    { .name = "capabilities", .type = RULE_LIST, .max = 256, .items = &SHORT_RULE },
    { .name = "dialect", .type = RULE_ENUM, .names = PROPLET_DIALECT_NAMES },
    { .name = "maxTasks", .type = RULE_INT, .min = 1, .max = MAX_SECONDS },
};
static const struct field_rules EXTERNAL_RULES = FIELD_RULES(EXTERNAL_FIELDS);

static const struct field_rule SECRET_REF_FIELDS[] = {
    { .name = "name", .type = RULE_STRING, .required = true, .min = 1, .max = MAX_NAME },
    { .name = "key", .type = RULE_STRING, .required = true, .min = 1, .max = MAX_NAME },
    { .name = "optional", .type = RULE_BOOL },
};
static const struct field_rules SECRET_REF_RULES = FIELD_RULES(SECRET_REF_FIELDS);

static const struct field_rule CONNECTION_FIELDS[] = {
    { .name = "mqttAddress",
      .type = RULE_STRING,
      .required = true,
      .max = MAX_REFERENCE,
      .check = check_address },
    { .name = "domainId",
      .type = RULE_STRING,
      .required = true,
      .min = 1,
      .max = MAX_NAME,
      .check = check_topic_part },
    { .name = "channelId",
      .type = RULE_STRING,
      .required = true,
      .min = 1,
      .max = MAX_NAME,
      .check = check_topic_part },
    { .name = "clientId",
      .type = RULE_STRING,
      .required = true,
      .min = 1,
      .max = MAX_NAME,
      .check = check_topic_part },
    { .name = "clientKey", .type = RULE_STRING, .max = 4096, .hidden = true },
    { .name = "clientKeySecretRef", .type = RULE_OBJECT, .members = &SECRET_REF_RULES },
    { .name = "mqttQos", .type = RULE_INT, .max = 2 },
    { .name = "mqttTimeout", .type = RULE_STRING, .max = 64, .check = check_timeout },
};
static const struct field_rules CONNECTION_RULES = FIELD_RULES(CONNECTION_FIELDS);

static const struct field_rule FIELDS[] = {
    { .name = "type", .type = RULE_ENUM, .required = true, .names = PROPLET_TYPE_NAMES },
    { .name = "k8s", .type = RULE_OBJECT, .members = &K8S_RULES },
    { .name = "external", .type = RULE_OBJECT, .members = &EXTERNAL_RULES },
    { .name = "resources", .type = RULE_MAP, .max = 64, .items = &QUANTITY_RULE },
    { .name = "connectionConfig",
      .type = RULE_OBJECT,
      .required = true,
      .members = &CONNECTION_RULES },
    { .name = "unschedulable", .type = RULE_BOOL },
};
const struct field_rules PROPLET_SPEC_RULES = FIELD_RULES(FIELDS);

/* The scheme only: samples hold all kinds of things behind it. */
static const char *check_address(const char *text)
{
    static const char *const SCHEMES[] = { "tcp://", "mqtt://", "ssl://", "tls://", "mqtts://" };

    for (size_t i = 0; i < ARRAY_LEN(SCHEMES); i++) {
        if (str_has_prefix(text, SCHEMES[i]))
            return NULL;
    }
    return "must begin with tcp://, mqtt://, ssl://, tls:// or mqtts://";
}

static const char *check_topic_part(const char *text)
{
    return strpbrk(text, "/+#") ? "must not contain /, + or #" : NULL;
}

static const char *check_timeout(const char *text)
{
    int64_t ms;
    const char *problem = rule_duration(text);

    if (!problem && str_to_duration_ms(text, &ms) && ms <= 0)
        return "must be greater than 0";
    return problem;
}

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
    const struct spec_view view = { validation, "spec", json_get(validation->object, "spec") };
    const struct proplet_spec *spec = validate_spec(validation, &PROPLET_SPEC_RULES, &PROPLET_SPEC);

    if (!validation_is_settled(validation))
        check_changes(validation);
    if (!spec)
        return;
    if (spec->type == PROPLET_K8S && !spec->k8s)
        field_error(validation->errors, FIELD_ERROR_REQUIRED, "spec.k8s", NULL,
                    "a Proplet of type k8s needs k8s");
    if (!spec->connection_config)
        return;
    check_key(validation, spec->connection_config);
    advise(&view, spec);
}
