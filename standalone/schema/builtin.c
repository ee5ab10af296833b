#include "standalone/schema/resource.h"

#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/schema/members.h"
#include "standalone/schema/name_rules.h"

/* Of a Secret or ConfigMap: all values together. */
#define MAX_DATA (1u << 20)
#define NAMESPACE_LABEL "kubernetes.io/metadata.name"

/* The member as a tree that may be changed; it is made if it is not there. */
static cJSON *member_of(cJSON *object, const char *name)
{
    const cJSON *member = json_get(object, name);

    return member ? (cJSON *)(uintptr_t)member : json_set_object(object, name);
}

/* --- namespaces ------------------------------------------------------------------------------- */

static void namespace_fill(struct arena *arena UNUSED, cJSON *object, const cJSON *old UNUSED)
{
    cJSON *metadata = member_of(object, "metadata");
    const char *name = json_get_string(metadata, "name");

    if (*name)
        json_set_string(member_of(metadata, "labels"), NAMESPACE_LABEL, name);
}

/* The finalizer keeps the namespace until it is empty; a client changes neither spec nor status. */
static void namespace_prepare(struct arena *arena UNUSED, cJSON *object, const cJSON *old)
{
    if (old) {
        json_set_copy(object, "status", json_get(old, "status"));
        json_set_copy(object, "spec", json_get(old, "spec"));
        return;
    }
    json_set_string(json_set_object(object, "status"), "phase", "Active");
    json_add_string(json_set_array(json_set_object(object, "spec"), "finalizers"), "kubernetes");
}

/* --- configmaps and secrets ------------------------------------------------------------------- */

/* The size of the values of a bag. */
static size_t check_keys(const struct validation *validation, const char *bag, const char *other,
                         bool encoded)
{
    const struct members theirs =
        members_of(validation->arena, json_get(validation->object, other));
    size_t size = 0;

    json_for_each (item, json_get(validation->object, bag)) {
        const char *path = arena_printf(validation->arena, "%s[%s]", bag, item->string);
        const char *value = json_string(item, "");

        check_config_key(validation->errors, path, item->string);
        if (members_get(&theirs, item->string))
            invalid_text(validation->errors, path, item->string,
                         arena_printf(validation->arena, "duplicate of key present in %s", other));
        size += encoded ? strcspn(value, "=") * 3 / 4 : strlen(value); /* what base64 stands for */
    }
    return size;
}

/* immutable cannot be taken back, and then nothing of these changes. */
static void check_data(const struct validation *validation, const char *const *bags, size_t size)
{
    if (size > MAX_DATA)
        field_error(validation->errors, FIELD_ERROR_TOO_LONG, "data", NULL,
                    "may not be more than %u bytes", MAX_DATA);
    if (!json_bool(json_get(validation->old, "immutable"), false))
        return;
    for (; *bags; bags++) {
        if (!json_equal(json_get(validation->object, *bags), json_get(validation->old, *bags)))
            field_error(validation->errors, FIELD_ERROR_FORBIDDEN, *bags, NULL,
                        "the object is immutable");
    }
}

static void configmap_validate(const struct validation *validation)
{
    static const char *const BAGS[] = { "data", "binaryData", "immutable", NULL };

    check_data(validation, BAGS,
               check_keys(validation, "data", "binaryData", false) +
                   check_keys(validation, "binaryData", "data", true));
}

static void secret_validate(const struct validation *validation)
{
    static const char *const BAGS[] = { "data", "immutable", NULL };
    const cJSON *type = json_get(validation->object, "type");

    check_data(validation, BAGS, check_keys(validation, "data", "", true));
    if (validation->old && !json_equal(type, json_get(validation->old, "type")))
        field_error(validation->errors, FIELD_ERROR_INVALID, "type", type, "field is immutable");
}

static void secret_fill(struct arena *arena, cJSON *object, const cJSON *old UNUSED)
{
    const cJSON *texts = json_get(object, "stringData");
    cJSON *data = texts ? member_of(object, "data") : NULL;
    const struct members before = members_of(arena, data);

    json_for_each (item, texts) {
        const char *text = json_string(item, "");
        cJSON *known = members_get(&before, item->string);
        cJSON *value = cJSON_CreateString(base64_encode(arena, text, strlen(text)));

        if (known)
            members_replace(data, known, value);
        else
            members_append(data, item->string, value);
    }
    json_remove(object, "stringData");
    if (!json_get(object, "type"))
        json_set_string(object, "type", "Opaque");
}

/* --- events ----------------------------------------------------------------------------------- */

/* An Event has two forms, v1 and events.k8s.io/v1, and one place in the store, where it has the form of v1. */
static const struct {
    const char *core, *v1;
} EVENT_NAMES[] = {
    { "involvedObject", "regarding" },
    { "message", "note" },
    { "source", "deprecatedSource" },
    { "firstTimestamp", "deprecatedFirstTimestamp" },
    { "lastTimestamp", "deprecatedLastTimestamp" },
    { "count", "deprecatedCount" },
    { "reportingComponent", "reportingController" },
};

static void event_convert(cJSON *event, bool to_core)
{
    for (size_t i = 0; i < ARRAY_LEN(EVENT_NAMES); i++) {
        const char *from = to_core ? EVENT_NAMES[i].v1 : EVENT_NAMES[i].core;
        cJSON *value = cJSON_DetachItemFromObjectCaseSensitive(event, from);

        if (value)
            json_set(event, to_core ? EVENT_NAMES[i].core : EVENT_NAMES[i].v1, value);
    }
    json_set_string(event, "apiVersion", to_core ? "v1" : "events.k8s.io/v1");
}

/* --- all -------------------------------------------------------------------------------------- */

/* Names, columns and schemas are in kinds.yaml and builtin.json. */
const struct resource BUILTIN_RESOURCES[] = {
    { .kind = { .group = "", .plural = "configmaps" }, .validate = configmap_validate },
    { .kind = { .group = "", .plural = "namespaces" },
      .fill = namespace_fill,
      .prepare = namespace_prepare },
    { .kind = { .group = "", .plural = "secrets" },
      .fill = secret_fill,
      .validate = secret_validate },
    { .kind = { .group = "events.k8s.io", .plural = "events" },
      .storage = "core/events",
      .convert = event_convert },
};
const size_t BUILTIN_RESOURCES_LEN = ARRAY_LEN(BUILTIN_RESOURCES);
