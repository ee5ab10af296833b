#include "common/api/aggregator_settings.h"
#include "common/api/timezone.h"
#include "common/api/validate_internal.h"
#include "common/base/map.h"
#include "common/base/str.h"

const char *spec_path(const struct spec_view *view, const char *field)
{
    return arena_printf(view->validation->arena, "%s.%s", view->path, field);
}

const cJSON *spec_json(const struct spec_view *view, const char *field)
{
    return json_get(view->json, field);
}

struct spec_view spec_view_of(const struct validation *validation)
{
    return (struct spec_view){ validation, "spec", json_get(validation->object, "spec"),
                               json_get(validation->old, "spec") };
}

bool validation_is_deletion(const struct validation *validation)
{
    const cJSON *time = json_path(validation->object, "metadata", "deletionTimestamp", NULL);

    return !str_is_empty(json_string(time, NULL));
}

bool validation_is_settled(const struct validation *validation)
{
    const cJSON *spec = json_get(validation->object, "spec");

    if (validation_is_deletion(validation))
        return true;
    return spec && validation->old && json_equal(spec, json_get(validation->old, "spec"));
}

const void *validate_spec(const struct validation *validation, const struct json_struct *table)
{
    const cJSON *spec = json_get(validation->object, "spec");
    void *decoded = arena_alloc(validation->arena, 1, table->size);
    struct error err = { 0 };

    if (validation_is_settled(validation))
        return NULL;
    if (json_decode(validation->arena, table, spec, decoded, &err) == 0)
        return decoded;
    /* the table and the schema do not agree: better refused than not looked at */
    field_error(validation->errors, FIELD_ERROR_INVALID, "spec", NULL, "%s", err.message);
    return NULL;
}

void validate_duration(const struct spec_view *view, const char *parent, const char *field,
                       const char *text, bool must_be_positive)
{
    const char *path = arena_printf(view->validation->arena, "%s.%s", parent, field);
    int64_t ms = 1;
    bool fits = !text || str_to_duration_ms(text, &ms);

    if (!fits || (must_be_positive && ms <= 0))
        field_error(view->validation->errors, FIELD_ERROR_INVALID, spec_path(view, path),
                    json_get(spec_json(view, parent), field), "%s",
                    fits ? "must be greater than 0" : "is too long a duration");
}

void advise_proplet_name(const struct spec_view *view, const char *field, const char *name)
{
    if (!str_is_empty(name) && !str_is_dns_subdomain(name))
        field_warning(view->validation->errors, spec_path(view, field),
                      "no Proplet can have this name; is it a clientId?");
}

void advise_duplicates(const struct spec_view *view, const char *field,
                       const struct str_list *strings)
{
    struct map *seen = map_create(NULL);
    bool twice = false;

    for (size_t i = 0; i < strings->len && !twice; i++) {
        twice = map_get(seen, strings->items[i]) != NULL;
        map_set(seen, strings->items[i], seen);
    }
    map_destroy(seen);
    if (twice)
        field_warning(view->validation->errors, spec_path(view, field), "an entry is there twice");
}

static void advise_aggregator(void *ctx, const char *field, const char *message)
{
    const struct spec_view *view = ctx;
    const char *path = arena_printf(view->validation->arena, "aggregator.%s", field);

    field_warning(view->validation->errors, spec_path(view, path), "%s", message);
}

void advise_round(const struct spec_view *view, const struct aggregator *aggregator,
                  const struct json_opt_int *timeout_seconds)
{
    struct field_errors *errors = view->validation->errors;
    struct aggregator_settings settings;

    if (timeout_seconds->set && timeout_seconds->value == 0)
        field_warning(errors, spec_path(view, "timeoutSeconds"),
                      "0 is for ever: a round waits until enough participants answer");
    aggregator_settings_read(view->validation->arena, aggregator, advise_aggregator,
                             (void *)(uintptr_t)view, &settings);
}

void validate_timezone(const struct spec_view *view, const char *field, const char *name)
{
    const struct validation *validation = view->validation;
    cJSON *value = json_object(validation->arena);

    json_set_string(value, "name", name);
    switch (timezone_look_up(validation->zoneinfo, name)) {
    case TIMEZONE_KNOWN:
        return;
    case TIMEZONE_UNKNOWN:
        field_error(validation->errors, FIELD_ERROR_INVALID, spec_path(view, field),
                    json_get(value, "name"),
                    "must be a time zone of the IANA database, for example Europe/Paris");
        return;
    case TIMEZONE_CANNOT_TELL:
        field_warning(validation->errors, spec_path(view, field),
                      "could not be checked: no database of time zones is installed");
        return;
    }
}

void validate_k_of_n(const struct spec_view *view, const struct json_opt_int *k_of_n,
                     size_t participants)
{
    if (k_of_n->set && k_of_n->value > (int64_t)participants)
        field_error(view->validation->errors, FIELD_ERROR_INVALID, spec_path(view, "kOfN"),
                    spec_json(view, "kOfN"), "must not be more than the number of participants");
}
