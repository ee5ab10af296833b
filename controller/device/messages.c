#include "controller/device/messages.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/api/names.h"
#include "common/base/str.h"

static const struct {
    const char *suffix;
    enum message_kind kind;
} TOPICS[] = {
    { "proplet/alive", MESSAGE_ALIVE },     { "proplet/create", MESSAGE_CREATE },
    { "proplet/metrics", MESSAGE_METRICS }, { "proplet/task_metrics", MESSAGE_TASK_METRICS },
    { "proplet/results", MESSAGE_RESULT },  { "proplet/invoke_results", MESSAGE_INVOKE_RESULT },
    { "proplet/reclaim", MESSAGE_RECLAIM }, { "controller/marker", MESSAGE_MARKER },
};

bool channel_key(const char *domain, const char *channel, char ret[static CHANNEL_KEY_LEN])
{
    int len = snprintf(ret, CHANNEL_KEY_LEN, "%s/%s", domain, channel);

    return len >= 0 && len < CHANNEL_KEY_LEN;
}

static bool skip(const char **text, const char *prefix)
{
    if (!str_has_prefix(*text, prefix))
        return false;

    *text += strlen(prefix);
    return true;
}

enum message_kind message_topic_parse(const char *topic, char ret_channel[static CHANNEL_KEY_LEN])
{
    const char *rest = topic;

    if (!skip(&rest, "m/"))
        return MESSAGE_UNKNOWN;

    int domain_len = (int)strcspn(rest, "/");
    const char *domain = rest;
    rest += domain_len;
    if (!skip(&rest, "/c/"))
        return MESSAGE_UNKNOWN;

    int channel_len = (int)strcspn(rest, "/");
    const char *channel = rest;
    rest += channel_len;
    bool is_module = str_equal(rest, "/registry/proplet");
    if (!is_module && !skip(&rest, "/control/"))
        return MESSAGE_UNKNOWN;

    if (!domain_len || !channel_len)
        return MESSAGE_UNKNOWN;

    int len = snprintf(ret_channel, CHANNEL_KEY_LEN, "%.*s/%.*s", domain_len, domain, channel_len,
                       channel);
    if (len < 0 || len >= CHANNEL_KEY_LEN)
        return MESSAGE_UNKNOWN;

    if (is_module)
        return MESSAGE_MODULE;
    for (size_t i = 0; i < ARRAY_LEN(TOPICS); i++) {
        if (str_equal(rest, TOPICS[i].suffix))
            return TOPICS[i].kind;
    }
    return str_has_prefix(rest, "controller/quarantine/") ? MESSAGE_COPY : MESSAGE_UNKNOWN;
}

static const char *topic_of(struct arena *arena, const char *channel, const char *part,
                            const char *suffix)
{
    int domain_len = (int)strcspn(channel, "/");

    return arena_printf(arena, "m/%.*s/c/%s/%s/%s", domain_len, channel, channel + domain_len + 1,
                        part, suffix);
}

const char *message_topic(struct arena *arena, const char *channel, const char *suffix)
{
    return topic_of(arena, channel, "control", suffix);
}

const char *message_registry_topic(struct arena *arena, const char *channel, const char *suffix)
{
    return topic_of(arena, channel, "registry", suffix);
}

bool message_update_topic(struct arena *arena, const char *topic, const char **ret_round,
                          const char **ret_identity)
{
    const char *rest = topic;

    if (!skip(&rest, "fl/rounds/"))
        return false;

    size_t len = strcspn(rest, "/");
    const char *round = rest;
    rest += len;
    if (!len || !skip(&rest, "/updates/") || !*rest || strchr(rest, '/'))
        return false;
    *ret_round = arena_strndup(arena, round, len);
    *ret_identity = arena_strdup(arena, rest);
    return true;
}

int message_string(const cJSON *object, const char *key, const char **ret, struct error *err)
{
    const char *value = json_string(json_get(object, key), NULL);

    if (str_is_empty(value))
        return error_set(err, ERROR_INVALID, "'%s' must be a string that is not empty", key);

    *ret = value;
    return 0;
}

int message_optional_string(const cJSON *object, const char *key, const char **ret,
                            struct error *err)
{
    const cJSON *item = json_get(object, key);

    if (item && !cJSON_IsNull(item) && !cJSON_IsString(item))
        return error_set(err, ERROR_INVALID, "'%s' must be a string or null", key);

    *ret = json_string(item, NULL);
    return 0;
}

int message_read(struct arena *arena, const char *text, size_t len, const cJSON **ret,
                 struct error *err)
{
    if (len > MESSAGE_MAX_BYTES)
        return error_set(err, ERROR_INVALID, "%zu bytes, a device needs at most %zu", len,
                         MESSAGE_MAX_BYTES);
    int r = json_parse(arena, text, len, ret, err);
    return r == -ERROR_TOO_LARGE ? error_set(err, ERROR_INVALID, "too many values") : r;
}

int message_alive_parse(struct arena *arena, const char *text, size_t len,
                        struct alive_message *ret, struct error *err)
{
    const cJSON *json;
    int r = message_read(arena, text, len, &json, err);
    if (r < 0)
        return r;

    struct alive_message message = { 0 };
    r = message_string(json, "proplet_id", &message.proplet_id, err);
    if (r < 0)
        return r;

    const char *status = json_string(json_get(json, "status"), "");
    message.alive = str_equal(status, "alive");
    if (!message.alive && !str_equal(status, "offline"))
        return error_set(err, ERROR_INVALID, "'status' must be alive or offline");

    *ret = message;
    return 0;
}

enum metadata_type { METADATA_STRING, METADATA_STRINGS, METADATA_INT };
static const struct {
    const char *device; /* in the message */
    const char *status; /* in status.metadata */
    enum metadata_type type;
} METADATA[] = {
    { "description", "description", METADATA_STRING },
    { "tags", "tags", METADATA_STRINGS },
    { "location", "location", METADATA_STRING },
    { "ip", "ip", METADATA_STRING },
    { "environment", "environment", METADATA_STRING },
    { "os", "os", METADATA_STRING },
    { "hostname", "hostname", METADATA_STRING },
    { "cpu_arch", "cpuArch", METADATA_STRING },
    { "total_memory_bytes", "totalMemoryBytes", METADATA_INT },
    { "proplet_version", "propletVersion", METADATA_STRING },
    { "wasm_runtime", "wasmRuntime", METADATA_STRING },
};

/* What a device may say of itself, so that one cannot fill the object. */
#define METADATA_MAX_STRING 256
#define METADATA_MAX_TAGS 32

static const char *metadata_string(struct arena *arena, const cJSON *item)
{
    const char *value = json_string(item, NULL);

    if (str_is_empty(value))
        return NULL;

    return arena_strndup(arena, value, str_utf8_cut(value, strlen(value), METADATA_MAX_STRING));
}

static void metadata_copy(struct arena *arena, cJSON *to, const cJSON *from, size_t field)
{
    const cJSON *item = json_get(from, METADATA[field].device);
    const char *key = METADATA[field].status;

    switch (METADATA[field].type) {
    case METADATA_STRING:
        json_set_string(to, key, metadata_string(arena, item));
        return;
    case METADATA_INT:
        if (json_int(item, -1) > 0)
            json_set_int(to, key, json_int(item, -1));
        return;
    case METADATA_STRINGS:
        if (!cJSON_IsArray(item) || !json_len(item))
            return;
        cJSON *list = json_set_array(to, key);
        json_for_each (tag, item) {
            const char *value = metadata_string(arena, tag);
            if (value && json_len(list) < METADATA_MAX_TAGS)
                json_add_string(list, value);
        }
        return;
    }
}

int message_create_parse(struct arena *arena, const char *text, size_t len,
                         struct create_message *ret, struct error *err)
{
    const cJSON *json;
    int r = message_read(arena, text, len, &json, err);
    if (r < 0)
        return r;

    struct create_message message = { 0 };
    r = message_string(json, "proplet_id", &message.proplet_id, err);
    if (r < 0)
        return r;

    const cJSON *said = json_get(json, "metadata");
    if (cJSON_IsObject(said)) {
        cJSON *metadata = json_object(arena);
        for (size_t i = 0; i < ARRAY_LEN(METADATA); i++)
            metadata_copy(arena, metadata, said, i);
        message.metadata = metadata;
    }

    *ret = message;
    return 0;
}

/* Those of ASCII, and those from U+0080 to U+009F. */
static void blank_control_characters(char *text)
{
    for (unsigned char *at = (unsigned char *)text; *at; at++) {
        if (*at < ' ' || *at == 0x7f)
            *at = ' ';
        else if (*at == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0)
            at[0] = at[1] = ' ';
    }
}

int message_module_parse(struct arena *arena, const char *text, size_t len, const char **ret_name,
                         struct error *err)
{
    const cJSON *json = NULL;
    int r = len > MODULE_REQUEST_MAX_BYTES
                ? error_set(err, ERROR_TOO_LARGE, "%zu bytes, at most %zu are read", len,
                            MODULE_REQUEST_MAX_BYTES)
                : message_read(arena, text, len, &json, err);

    return r == 0 ? message_string(json, "app_name", ret_name, err) : r;
}

int message_reclaim_parse(struct arena *arena, const char *text, size_t len,
                          struct reclaim_message *ret, struct error *err)
{
    const cJSON *json = NULL;
    const char *reason = NULL;
    struct reclaim_message message = { 0 };
    int r = len > RECLAIM_MAX_BYTES
                ? error_set(err, ERROR_TOO_LARGE, "%zu bytes, at most %zu are read", len,
                            RECLAIM_MAX_BYTES)
                : message_read(arena, text, len, &json, err);
    if (r == 0)
        r = message_string(json, "proplet_id", &message.proplet_id, err);
    if (r == 0)
        r = message_optional_string(json, "reason", &reason, err);
    if (r < 0)
        return r;

    reason = reason ? reason : "";
    char *kept =
        arena_strndup(arena, reason, str_utf8_cut(reason, strlen(reason), RECLAIM_REASON_MAX));
    blank_control_characters(kept);
    message.reason = kept;
    *ret = message;
    return 0;
}

const char *message_id(struct arena *arena, const char *uid, int64_t attempt)
{
    if (attempt <= 1)
        return uid;

    return arena_printf(arena, "%s.%" PRId64, uid, attempt);
}

const char *message_id_uid(struct arena *arena, const char *id)
{
    return arena_strndup(arena, id, strcspn(id, "."));
}

const char *message_id_of_target(struct arena *arena, const char *uid, int64_t attempt,
                                 int64_t index)
{
    return arena_printf(arena, "%s.%" PRId64 ".%" PRId64, uid, attempt, index);
}

bool message_id_numbers(const char *id, int64_t *ret_attempt, int64_t *ret_index)
{
    const char *dot = strchr(id, '.');
    const char *second = dot ? strchr(dot + 1, '.') : NULL;
    char attempt[24] = "1"; /* more digits than any number has */

    *ret_index = -1;
    if (second && (!str_to_int64(second + 1, ret_index) || *ret_index < 0))
        return false;
    if (dot) {
        size_t len = second ? (size_t)(second - dot - 1) : strlen(dot + 1);
        if (len >= sizeof(attempt))
            return false;
        memcpy(attempt, dot + 1, len);
        attempt[len] = '\0';
    }
    return str_to_int64(attempt, ret_attempt);
}
