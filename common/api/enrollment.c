#include "common/api/enrollment.h"

#include <string.h>

#include "common/api/decode.h"
#include "common/api/names.h"
#include "common/api/proplet.h"
#include "common/base/str.h"

const char *const APPROVAL_NAMES[] = { "Manual", "Automatic", NULL };

static const struct json_field MATCH_FIELDS[] = {
    JSON_FIELD(FIELD_STRING, struct enrollment_match, client_id_prefix, "clientIdPrefix"),
    JSON_FIELD(FIELD_STRINGS, struct enrollment_match, tags, "tags"),
};
static const struct json_struct MATCH = JSON_STRUCT(struct enrollment_match, MATCH_FIELDS);

static const struct json_field TEMPLATE_FIELDS[] = {
    JSON_FIELD(FIELD_STRING, struct enrollment_template, name_prefix, "namePrefix"),
    JSON_FIELD(FIELD_MAP, struct enrollment_template, labels, "labels"),
    JSON_FIELD(FIELD_ANY, struct enrollment_template, external, "external"),
    JSON_FIELD(FIELD_ANY, struct enrollment_template, resources, "resources"),
    JSON_FIELD(FIELD_ANY, struct enrollment_template, connection_config, "connectionConfig"),
};
static const struct json_struct TEMPLATE = JSON_STRUCT(struct enrollment_template, TEMPLATE_FIELDS);

static const struct json_field SPEC_FIELDS[] = {
    JSON_FIELD(FIELD_STRING, struct enrollment_spec, domain_id, "domainId"),
    JSON_FIELD(FIELD_STRING, struct enrollment_spec, channel_id, "channelId"),
    JSON_FIELD(FIELD_BOOL, struct enrollment_spec, channel_per_device, "channelPerDevice"),
    JSON_FIELD(FIELD_STRING, struct enrollment_spec, mqtt_address, "mqttAddress"),
    JSON_FIELD_NESTED(FIELD_OBJECT, struct enrollment_spec, match, "match", &MATCH),
    JSON_FIELD(FIELD_OPT_INT, struct enrollment_spec, limit, "limit"),
    JSON_FIELD(FIELD_OPT_INT, struct enrollment_spec, forget_after_seconds, "forgetAfterSeconds"),
    JSON_FIELD_ENUM(struct enrollment_spec, approval, "approval", APPROVAL_NAMES),
    JSON_FIELD(FIELD_OPT_INT, struct enrollment_spec, max_proplets, "maxProplets"),
    JSON_FIELD_NESTED(FIELD_OBJECT, struct enrollment_spec, proplets, "template", &TEMPLATE),
    JSON_FIELD(FIELD_STRINGS, struct enrollment_spec, rejected, "rejected"),
};
const struct json_struct ENROLLMENT_SPEC = JSON_STRUCT(struct enrollment_spec, SPEC_FIELDS);

static const struct json_field PENDING_FIELDS[] = {
    JSON_FIELD(FIELD_STRING, struct pending_device, client_id, "clientId"),
    JSON_FIELD(FIELD_STRING, struct pending_device, channel_id, "channelId"),
    JSON_FIELD(FIELD_TIME, struct pending_device, first_seen_us, "firstSeen"),
    JSON_FIELD(FIELD_TIME, struct pending_device, last_seen_us, "lastSeen"),
    JSON_FIELD(FIELD_ANY, struct pending_device, metadata, "metadata"),
};
static const struct json_struct PENDING = JSON_STRUCT(struct pending_device, PENDING_FIELDS);

static const struct json_field STATUS_FIELDS[] = {
    JSON_FIELD_NESTED(FIELD_OBJECTS, struct enrollment_status, pending, "pending", &PENDING),
    JSON_FIELD(FIELD_COUNT, struct enrollment_status, pending_count, "pendingCount"),
    JSON_FIELD(FIELD_COUNT, struct enrollment_status, enrolled_count, "enrolledCount"),
    JSON_FIELD(FIELD_BOOL, struct enrollment_status, overflow, "overflow"),
    JSON_FIELD(FIELD_ARRAY, struct enrollment_status, conditions, "conditions"),
    JSON_FIELD(FIELD_COUNT, struct enrollment_status, observed_generation, "observedGeneration"),
};
const struct json_struct ENROLLMENT_STATUS = JSON_STRUCT(struct enrollment_status, STATUS_FIELDS);

int enrollment_decode(struct arena *arena, const cJSON *object, struct enrollment *ret,
                      struct error *err)
{
    return api_decode(arena, object, &ENROLLMENT_SPEC, &ret->spec, &ENROLLMENT_STATUS, &ret->status,
                      err);
}

cJSON *enrollment_status_encode(struct arena *arena, const struct enrollment_status *status)
{
    return json_encode(arena, &ENROLLMENT_STATUS, status);
}

bool enrollment_is_client_id(const char *client_id)
{
    size_t len = 0;

    for (; client_id[len]; len++) {
        if (len == NAME_MAX_OBJECT || client_id[len] <= ' ' || client_id[len] > '~' ||
            strchr("/+#'\"\\<>&", client_id[len]))
            return false;
    }
    return len > 0;
}

bool enrollment_takes(const struct enrollment_spec *spec, const char *client_id,
                      const char *channel_id)
{
    const char *prefix = spec->match ? spec->match->client_id_prefix : NULL;

    if (!enrollment_is_client_id(client_id) ||
        !str_equal(channel_id, spec->channel_per_device ? client_id : spec->channel_id) ||
        (prefix && !str_has_prefix(client_id, prefix)))
        return false;
    for (size_t i = 0; i < spec->rejected.len; i++) {
        if (str_equal(spec->rejected.items[i], client_id))
            return false;
    }
    return true;
}

const char *enrollment_proplet_name(struct arena *arena, const struct enrollment_spec *spec,
                                    const char *client_id)
{
    const char *prefix = spec->proplets ? spec->proplets->name_prefix : NULL;

    return child_name(arena, NAME_MAX_POD_OWNER, "%s%s", prefix ? prefix : "", client_id);
}

const char *enrollment_secret_name(struct arena *arena, const char *proplet)
{
    return arena_printf(arena, "%s-key", proplet);
}

static void copy_members(cJSON *object, const cJSON *from)
{
    json_for_each (item, from)
        json_set_copy(object, item->string, item);
}

static void set_connection(struct arena *arena, const struct enrollment_spec *spec,
                           const struct enrollment_identity *identity, bool has_secret,
                           cJSON *connection)
{
    copy_members(connection, spec->proplets ? spec->proplets->connection_config : NULL);
    json_set_string(connection, "mqttAddress", spec->mqtt_address);
    json_set_string(connection, "domainId", spec->domain_id);
    json_set_string(connection, "channelId", identity->channel_id);
    json_set_string(connection, "clientId", identity->client_id);

    cJSON *secret = json_set_object(connection, "clientKeySecretRef");

    json_set_string(secret, "name", enrollment_secret_name(arena, identity->name));
    json_set_string(secret, "key", ENROLLMENT_SECRET_KEY);
    if (!has_secret)
        json_set_bool(secret, "optional", true);
}

cJSON *enrollment_proplet(struct arena *arena, const struct enrollment_spec *spec,
                          const struct enrollment_identity *identity, bool has_secret)
{
    const struct enrollment_template *defaults = spec->proplets;
    cJSON *proplet = json_object(arena);

    json_set_string(proplet, "apiVersion", API_VERSION);
    json_set_string(proplet, "kind", "Proplet");

    cJSON *metadata = json_set_object(proplet, "metadata");

    json_set_string(metadata, "name", identity->name);
    json_set_string(metadata, "namespace", identity->ns);
    if (identity->enrollment || (defaults && defaults->labels)) {
        cJSON *labels = json_set_object(metadata, "labels");

        copy_members(labels, defaults ? defaults->labels : NULL);
        if (identity->enrollment)
            json_set_string(labels, LABEL_ENROLLMENT, label_value(arena, identity->enrollment));
    }

    cJSON *spec_json = json_set_object(proplet, "spec");

    json_set_string(spec_json, "type", PROPLET_TYPE_NAMES[PROPLET_EXTERNAL]);
    if (defaults && defaults->external)
        json_set_copy(spec_json, "external", defaults->external);
    if (defaults && defaults->resources)
        json_set_copy(spec_json, "resources", defaults->resources);
    set_connection(arena, spec, identity, has_secret,
                   json_set_object(spec_json, "connectionConfig"));
    return proplet;
}
