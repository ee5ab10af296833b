#include "common/base/str.h"
#include "standalone/schema/builtin.h"
#include "standalone/schema/name_rules.h"

/*
 * An Event has two forms, v1 and events.k8s.io/v1, and one place in the store, where it is as v1 has
 * it (k8s.io/kubernetes/pkg/apis/events/v1/conversion.go).
 */

#define SERIES_ALWAYS "{\"lastObservedTime\":null}"
#define SERIES_V1_ALWAYS "{\"count\":0,\"lastObservedTime\":null}"
#define MAX_ACTION 128
#define MAX_REASON 128
#define MAX_INSTANCE 128
#define MAX_NOTE 1024

static const struct {
    const char *core;
    const char *v1;
} NAMES[] = {
    { "involvedObject", "regarding" },
    { "message", "note" },
    { "source", "deprecatedSource" },
    { "firstTimestamp", "deprecatedFirstTimestamp" },
    { "lastTimestamp", "deprecatedLastTimestamp" },
    { "count", "deprecatedCount" },
    { "reportingComponent", "reportingController" },
};

static void rename_member(cJSON *event, const char *from, const char *to)
{
    cJSON *value = cJSON_DetachItemFromObjectCaseSensitive(event, from);

    if (value)
        json_set(event, to, value);
}

/* Of a series Go leaves out the count of 0 in v1 only, and the time in neither. */
static void fill_series(struct arena *arena, cJSON *event, bool core)
{
    cJSON *series = (cJSON *)(uintptr_t)json_get(event, "series");

    if (!cJSON_IsObject(series))
        return;
    if (core && json_int(json_get(series, "count"), 1) == 0)
        json_remove(series, "count");
    ensure_members(arena, series, core ? SERIES_ALWAYS : SERIES_V1_ALWAYS);
}

void event_to_core(struct arena *arena, cJSON *object)
{
    fill_series(arena, object, true);
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
        rename_member(object, NAMES[i].v1, NAMES[i].core);
    json_set_string(object, "apiVersion", "v1");
}

void event_from_core(struct arena *arena, cJSON *object)
{
    /* v1 has them always */
    static const char *const OMITTED[] = { "reportingController", "reportingInstance" };

    fill_series(arena, object, false);
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
        rename_member(object, NAMES[i].core, NAMES[i].v1);
    for (size_t i = 0; i < ARRAY_LEN(OMITTED); i++) {
        if (!*json_string(json_get(object, OMITTED[i]), "?"))
            json_remove(object, OMITTED[i]);
    }
    json_set_string(object, "apiVersion", "events.k8s.io/v1");
}

/* Empty texts Go leaves out, but for what ensure_members brings back. So it is with a count of 0. */
void event_fill(struct arena *arena, cJSON *object, const cJSON *old)
{
    static const char *const INNER[] = { "involvedObject", "regarding", "related", "source",
                                         "deprecatedSource" };
    static const char *const COUNTS[] = { "count", "deprecatedCount" };
    bool core = str_equal(json_string(json_get(object, "apiVersion"), ""), "v1");

    (void)old;
    drop_empty_texts(object);
    for (size_t i = 0; i < ARRAY_LEN(INNER); i++)
        drop_empty_texts((cJSON *)(uintptr_t)json_get(object, INNER[i]));
    for (size_t i = 0; i < ARRAY_LEN(COUNTS); i++) {
        if (json_int(json_get(object, COUNTS[i]), 1) == 0)
            json_remove(object, COUNTS[i]);
    }
    fill_series(arena, object, core);
    ensure_members(arena, object, core ? EVENT_ALWAYS : EVENT_V1_ALWAYS);
}

/* --- rules ------------------------------------------------------------------------------------ */

struct event_check {
    const struct validation *validation;
    bool core;
};

/* A member by its name in v1. */
static const cJSON *member(const struct event_check *check, const cJSON *event, const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(NAMES) && !check->core; i++) {
        if (str_equal(NAMES[i].core, name))
            return json_get(event, NAMES[i].v1);
    }
    return json_get(event, name);
}

static const char *text(const struct event_check *check, const char *name)
{
    return json_string(member(check, check->validation->object, name), "");
}

static bool has_time(const struct event_check *check)
{
    return json_string(json_get(check->validation->object, "eventTime"), NULL) != NULL;
}

static void check_text(const struct event_check *check, const char *name, size_t max)
{
    const char *value = text(check, name);

    if (!*value && !str_equal(name, "message"))
        field_error_plain(check->validation->errors, FIELD_ERROR_REQUIRED, name, NULL);
    if (strlen(value) > max)
        invalid_text(
            check->validation->errors, name, "",
            arena_printf(check->validation->arena, "can have at most %zu characters", max));
}

static void check_namespaces(const struct event_check *check)
{
    const struct validation *validation = check->validation;
    const char *own = json_string(json_path(validation->object, "metadata", "namespace", NULL), "");
    const cJSON *regarding = member(check, validation->object, "involvedObject");
    const char *theirs = json_string(json_get(regarding, "namespace"), "");
    bool fits;

    if (!has_time(check))
        fits = *theirs ? str_equal(own, theirs) : str_equal(own, "default");
    else
        fits = *theirs || str_equal(own, "default") || str_equal(own, "kube-system");
    if (!fits)
        invalid_text(validation->errors, "involvedObject.namespace", theirs,
                     "does not match event.namespace");
}

static void check_any(const struct event_check *check)
{
    const char *controller = check->core ? "reportingComponent" : "reportingController";
    const char *name = text(check, "reportingComponent");

    check_namespaces(check);
    if (!has_time(check))
        return;
    if (!*name)
        field_error_plain(check->validation->errors, FIELD_ERROR_REQUIRED, controller, NULL);
    check_qualified_name(check->validation->errors, controller, name, name);
    check_text(check, "reportingInstance", MAX_INSTANCE);
    check_text(check, "action", MAX_ACTION);
    check_text(check, "reason", MAX_REASON);
    check_text(check, "message", MAX_NOTE);
}

void event_validate(const struct validation *validation)
{
    const struct event_check check = { .validation = validation, .core = true };

    check_any(&check);
}

static void check_series(const struct event_check *check)
{
    const cJSON *series = json_get(check->validation->object, "series");

    if (!cJSON_IsObject(series) ||
        (check->validation->old && json_equal(series, json_get(check->validation->old, "series"))))
        return;
    if (json_int(json_get(series, "count"), 0) < 2)
        invalid_text(check->validation->errors, "series.count", "", "should be at least 2");
    if (!json_string(json_get(series, "lastObservedTime"), NULL))
        field_error_plain(check->validation->errors, FIELD_ERROR_REQUIRED,
                          "series.lastObservedTime", NULL);
}

static void check_new(const struct event_check *check)
{
    static const char *const UNSET[] = { "firstTimestamp", "lastTimestamp" };
    const struct validation *validation = check->validation;
    const char *type = text(check, "type");

    if (!has_time(check))
        field_error_plain(validation->errors, FIELD_ERROR_REQUIRED, "eventTime", NULL);
    if (!str_equal(type, "Normal") && !str_equal(type, "Warning"))
        invalid_text(validation->errors, "type", "",
                     arena_printf(validation->arena, "has invalid value: %s", type));
    for (size_t i = 0; i < ARRAY_LEN(UNSET); i++) {
        if (*text(check, UNSET[i]))
            invalid_text(validation->errors, UNSET[i], "", "needs to be unset");
    }
    if (json_int(member(check, validation->object, "count"), 0))
        invalid_text(validation->errors, "count", "", "needs to be unset");
    if (json_len(member(check, validation->object, "source")))
        invalid_text(validation->errors, "source", "", "needs to be unset");
}

static void check_unchanged(const struct event_check *check)
{
    static const struct {
        const char *name, *nothing; /* as it is shown when it is not there */
    } FIXED[] = {
        { "involvedObject", "{}" },
        { "reason", "\"\"" },
        { "message", "\"\"" },
        { "source", "{}" },
        { "firstTimestamp", "null" },
        { "lastTimestamp", "null" },
        { "count", "0" },
        { "type", "\"\"" },
        { "eventTime", "null" },
        { "action", "\"\"" },
        { "related", "null" },
        { "reportingComponent", "\"\"" },
        { "reportingInstance", "\"\"" },
    };
    const struct validation *validation = check->validation;

    for (size_t i = 0; i < ARRAY_LEN(FIXED); i++) {
        const cJSON *now = member(check, validation->object, FIXED[i].name), *nothing = NULL;
        const char *path =
            str_equal(FIXED[i].name, "reportingComponent") ? "reportingController" : FIXED[i].name;

        if (json_equal(now, member(check, validation->old, FIXED[i].name)))
            continue;
        if (!now)
            (void)!json_parse(validation->arena, FIXED[i].nothing, strlen(FIXED[i].nothing),
                              &nothing, NULL);
        field_error(validation->errors, FIELD_ERROR_INVALID, path, now ? now : nothing,
                    "field is immutable");
    }
}

void event_v1_validate(const struct validation *validation)
{
    const struct event_check check = { .validation = validation };

    check_any(&check);
    check_series(&check);
    if (validation->old)
        check_unchanged(&check);
    else
        check_new(&check);
}
