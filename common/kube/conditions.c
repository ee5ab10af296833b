#include "common/kube/conditions.h"

#include <assert.h>

#include "common/base/clock.h"
#include "common/base/str.h"

static const char *const STATUS_NAMES[] = {
    [CONDITION_FALSE] = "False",
    [CONDITION_TRUE] = "True",
    [CONDITION_UNKNOWN] = "Unknown",
};

static bool has_string(const cJSON *item, const char *key, const char *value)
{
    return str_equal(json_string(json_get(item, key), NULL), value);
}

static cJSON *find(const cJSON *conditions, const char *type)
{
    for (cJSON *item = conditions ? conditions->child : NULL; item; item = item->next) {
        if (has_string(item, "type", type))
            return item;
    }
    return NULL;
}

bool condition_set(cJSON *conditions, const struct condition *condition, int64_t now_us)
{
    assert(cJSON_IsArray(conditions));
    assert(!str_is_empty(condition->type) && !str_is_empty(condition->reason));

    const char *status = STATUS_NAMES[condition->status];
    const char *message = condition->message ? condition->message : "";
    cJSON *item = find(conditions, condition->type);
    int64_t since_us;
    bool same_status =
        has_string(item, "status", status) &&
        rfc3339_parse(json_string(json_get(item, "lastTransitionTime"), ""), &since_us);

    if (same_status && has_string(item, "reason", condition->reason) &&
        has_string(item, "message", message) &&
        json_int(json_get(item, "observedGeneration"), 0) == condition->observed_generation)
        return false;

    if (!item) {
        item = json_add_object(conditions);
        json_set_string(item, "type", condition->type);
    }
    json_set_string(item, "status", status);
    if (condition->observed_generation)
        json_set_int(item, "observedGeneration", condition->observed_generation);
    else
        json_remove(item, "observedGeneration");
    if (!same_status) {
        char now[RFC3339_LEN];
        json_set_string(item, "lastTransitionTime", rfc3339_format(now_us, now));
    }
    json_set_string(item, "reason", condition->reason);
    json_set_string(item, "message", message);
    return true;
}

void condition_remove(cJSON *conditions, const char *type)
{
    cJSON *item = find(conditions, type);
    if (item)
        cJSON_Delete(cJSON_DetachItemViaPointer(conditions, item));
}

const cJSON *condition_get(const cJSON *conditions, const char *type)
{
    return find(conditions, type);
}

bool condition_is(const cJSON *conditions, const char *type, enum condition_status status)
{
    return has_string(condition_get(conditions, type), "status", STATUS_NAMES[status]);
}
