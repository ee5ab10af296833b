#include "controller/tests/device_model.h"

#include "common/base/str.h"

enum field_type { STRING, STRINGS, STRING_MAP, BOOL, BYTE, COUNT, PROFILE };

struct field {
    const char *name;
    enum field_type type;
    bool required;
    bool nullable;
};

static const struct field START[] = {
    { "id", STRING, true, false },
    { "name", STRING, true, false },
    { "state", BYTE, false, false },
    { "file", STRING, false, true },
    { "image_url", STRING, false, true },
    { "inputs", STRINGS, false, true },
    { "cli_args", STRINGS, false, true },
    { "env", STRING_MAP, false, true },
    { "daemon", BOOL, false, false },
    { "broadcast", BOOL, false, false },
    { "proplet_id", STRING, false, true },
    { "mode", STRING, false, true },
    { "encrypted", BOOL, false, false },
    { "kbs_resource_path", STRING, false, true },
    { "hal_storage_path", STRING, false, true },
    { "latent", BOOL, false, false },
    { "monitoring_profile", PROFILE, false, true },
};

static const struct field MONITORING[] = {
    { "enabled", BOOL, true, false },
    { "interval", COUNT, true, false },
    { "collect_cpu", BOOL, true, false },
    { "collect_memory", BOOL, true, false },
    { "collect_disk_io", BOOL, true, false },
    { "collect_threads", BOOL, true, false },
    { "collect_file_descriptors", BOOL, true, false },
    { "export_to_mqtt", BOOL, true, false },
    { "retain_history", BOOL, true, false },
    { "history_size", COUNT, true, false },
};

static const char *misfit(const cJSON *object, const struct field *fields, size_t len);

static bool all_strings(const cJSON *container)
{
    json_for_each (item, container) {
        if (!cJSON_IsString(item))
            return false;
    }
    return true;
}

static bool fits(const cJSON *value, enum field_type type)
{
    switch (type) {
    case STRING:
        return cJSON_IsString(value);
    case STRINGS:
        return cJSON_IsArray(value) && all_strings(value);
    case STRING_MAP:
        return cJSON_IsObject(value) && all_strings(value);
    case BOOL:
        return cJSON_IsBool(value);
    case BYTE:
        return json_int(value, -1) >= 0 && json_int(value, -1) <= 255;
    case COUNT:
        return json_int(value, -1) >= 0;
    case PROFILE:
        return cJSON_IsObject(value) && !misfit(value, MONITORING, ARRAY_LEN(MONITORING));
    }
    return false;
}

/* The first field that a strict decoder trips over; unknown ones are ignored. */
static const char *misfit(const cJSON *object, const struct field *fields, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        const cJSON *value = json_get(object, fields[i].name);
        bool absent = !value && !fields[i].required;
        bool null = cJSON_IsNull(value) && fields[i].nullable;
        if (!absent && !null && !fits(value, fields[i].type))
            return fields[i].name;
    }
    return NULL;
}

static const char *text(const cJSON *start, const char *name)
{
    return json_string(json_get(start, name), "");
}

enum device_verdict device_start(const cJSON *start, const char *client_id, const char **ret_why)
{
    const cJSON *target = json_get(start, "proplet_id");

    *ret_why = misfit(start, START, ARRAY_LEN(START));
    if (!*ret_why && (str_is_empty(text(start, "id")) || str_is_empty(text(start, "name"))))
        *ret_why = "id and name must not be empty";
    if (!*ret_why && str_is_empty(text(start, "file")) && str_is_empty(text(start, "image_url")))
        *ret_why = "neither file nor image_url";
    if (!*ret_why && json_bool(json_get(start, "encrypted"), false) &&
        !str_is_empty(text(start, "file")))
        *ret_why = "encrypted with file";
    if (*ret_why)
        return DEVICE_DROPS;

    bool for_me = json_bool(json_get(start, "broadcast"), false) || !target ||
                  cJSON_IsNull(target) || str_equal(text(start, "proplet_id"), client_id);
    return for_me ? DEVICE_TAKES : DEVICE_IGNORES;
}
