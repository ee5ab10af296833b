#include "standalone/schema/object_meta.h"

#include <math.h>
#include <stdlib.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/map.h"
#include "common/base/str.h"
#include "common/json/place.h"
#include "common/schema/members.h"
#include "common/schema/nodes.h"
#include "standalone/schema/name_rules.h"

#define MAX_ANNOTATIONS (256u << 10)
#define MAX_PATH 512

const char *object_meta_text(const cJSON *object, const char *field)
{
    return json_string(json_path(object, "metadata", field, NULL), "");
}

cJSON *object_meta_of(cJSON *object)
{
    return (cJSON *)(uintptr_t)json_get(object, "metadata");
}

/* --- decoding --------------------------------------------------------------------------------- */

/* Each number fits a double. */
static int decode_numbers(const cJSON *value, struct error *err)
{
    int r = 0;

    if (cJSON_IsRaw(value) && !isfinite(strtod(value->valuestring, NULL)))
        return error_set(err, ERROR_INVALID, "number %s is too large", value->valuestring);
    for (const cJSON *item = value->child; r == 0 && item; item = item->next)
        r = decode_numbers(item, err);
    return r;
}

static int decode_types(const struct schema *schema, const char *path, const cJSON *value,
                        struct error *err)
{
    static const struct schema_manners manners = { .nulls_are_absent = true,
                                                   .lists_may_repeat = true };
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct field_errors *errors = field_errors_create(arena);
    const cJSON *first;

    schema_validate_part(schema, path, value, &manners, errors);
    if (!field_errors_count(errors))
        return 0;
    first = json_first(field_errors_causes(errors));
    return error_set(err, ERROR_INVALID, "%.200s: %.300s", json_get_string(first, "field"),
                     json_get_string(first, "message"));
}

static bool is_time(const char *text, bool micro)
{
    int64_t us;

    return rfc3339_parse(text, &us) && !str_has_prefix(text + strlen("2006-01-02T15:04:"), "60") &&
           (!micro || (text[19] == '.' && strspn(text + 20, "0123456789") == 6));
}

static bool is_base64(const char *text)
{
    static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t len = strlen(text), digits = strspn(text, DIGITS);
    size_t padding = strspn(text + digits, "=");

    return digits + padding == len && len % 4 == 0 && padding <= 2;
}

/* Written as one: Go reads no other number into an integer. */
static bool is_int32(const cJSON *value)
{
    int64_t number = json_int(value, 0);

    if (cJSON_IsRaw(value) ? !str_to_int64(value->valuestring, &number)
                           : number != json_int(value, 1))
        return false;
    return number >= INT32_MIN && number <= INT32_MAX;
}

/* NULL: it has the format. */
static const char *format_fault(const struct schema *schema, const cJSON *value)
{
    const char *text = json_string(value, NULL);
    bool micro = str_equal(schema->definition, "MicroTime");

    if (text && str_equal(schema->format, "byte") && !is_base64(text))
        return "base64";
    if (str_equal(schema->format, "date-time") && !cJSON_IsNull(value) &&
        !(text && is_time(text, micro)))
        return micro ? "a time with microseconds (2006-01-02T15:04:05.000000Z)" : "a time";
    if (json_is_number(value) && str_equal(schema->format, "int32") && !is_int32(value))
        return "a whole number of 32 bits";
    return NULL;
}

/* A value that clients written in Go cannot read would hide all objects of a list from them. */
static int decode_formats(const struct schema *schema, const struct json_place *place,
                          const cJSON *value, struct error *err)
{
    CLEANUP(buf_releasep) struct buf path = BUF_INIT(MAX_PATH);
    struct json_place inner = { .parent = place };
    const char *fault = format_fault(schema, value);
    int r = 0;

    if (fault) {
        bool whole = json_place_write(place, &path);
        return error_set(err, ERROR_INVALID, "'%s%s' must be %s", buf_string(&path),
                         whole ? "" : "...", fault);
    }
    for (const cJSON *item = value->child; r == 0 && item; item = item->next, inner.index++) {
        const struct schema *of_item =
            cJSON_IsArray(value) ? schema->items : schema_member(schema, item->string);

        inner.name = item->string;
        if (of_item)
            r = decode_formats(of_item, &inner, item, err);
    }
    return r;
}

static int decode_value(const struct schema *schema, const char *path, const cJSON *value,
                        struct error *err)
{
    int r = decode_types(schema, path, value, err);

    return r < 0 ? r : decode_formats(schema, &(struct json_place){ .name = path }, value, err);
}

/* A null in a map of texts is an empty text, as Go reads it. */
static void fill_texts(const struct schema *schema, cJSON *object)
{
    for (cJSON *map = cJSON_IsObject(object) ? object->child : NULL; map; map = map->next) {
        const struct schema *known = schema_field(schema, map->string);
        bool is_map = cJSON_IsObject(map) && known && known->additional;

        for (cJSON *item = is_map ? map->child : NULL, *next; item; item = next) {
            next = item->next;
            if (cJSON_IsNull(item))
                members_replace(map, item, cJSON_CreateString(""));
        }
    }
}

/* Members that say nothing are not stored. */
static void drop_empty(cJSON *object)
{
    for (cJSON *member = object->child, *next; member; member = next) {
        bool is_text = cJSON_IsString(member) && !*member->valuestring;
        bool is_container = (cJSON_IsObject(member) || cJSON_IsArray(member)) && !member->child;

        next = member->next;
        if (is_text || is_container || cJSON_IsNull(member))
            json_free(cJSON_DetachItemViaPointer(object, member));
    }
}

int object_decode(const struct schema *schema, bool custom, cJSON *object, cJSON *unknown,
                  struct error *err)
{
    const struct schema *of_metadata = schema_field(schema, "metadata");
    cJSON *metadata = cJSON_DetachItemFromObjectCaseSensitive(object, "metadata");

    if (!metadata || cJSON_IsNull(metadata)) {
        json_free(metadata);
        metadata = cJSON_CreateObject();
    }
    fill_texts(of_metadata, metadata);
    if (!custom)
        fill_texts(schema, object);
    schema_prune_part(of_metadata, "metadata", metadata, unknown);
    json_set(object, "metadata", metadata);
    schema_prune(schema, object, unknown);

    int r = decode_value(of_metadata, "metadata", metadata, err);
    if (r == 0 && !custom)
        r = decode_value(schema, "", object, err);
    if (r == 0)
        r = decode_numbers(object, err);
    if (r < 0)
        return r;
    drop_empty(object_meta_of(object));
    if (!custom)
        drop_empty(object);
    if (!object_meta_of(object))
        (void)json_set_object(object, "metadata");
    return 0;
}

struct meta_check {
    struct arena *arena;
    struct field_errors *errors;
    const struct kube_kind *kind;
    const cJSON *object, *metadata;
    const cJSON *old; /* metadata of the old object; NULL: created */
};

/* --- names ------------------------------------------------------------------------------------ */

static void meta_check_names(const struct meta_check *check)
{
    const char *name = json_get_string(check->metadata, "name");
    const char *ns = json_get_string(check->metadata, "namespace");

    if (*name && str_equal(check->kind->plural, "namespaces"))
        check_dns_label(check->errors, "metadata.name", name);
    else if (*name)
        check_dns_subdomain(check->errors, "metadata.name", name);
    else
        field_error(check->errors, FIELD_ERROR_REQUIRED, "metadata.name", NULL,
                    "name or generateName is required");
    if (check->kind->namespaced && !*ns)
        field_error_plain(check->errors, FIELD_ERROR_REQUIRED, "metadata.namespace", NULL);
    else if (check->kind->namespaced)
        check_dns_label(check->errors, "metadata.namespace", ns);
    else if (*ns)
        field_error(check->errors, FIELD_ERROR_FORBIDDEN, "metadata.namespace", NULL,
                    "not allowed on this type");
}

/* --- labels and the like ---------------------------------------------------------------------- */

static void meta_check_labels(const struct meta_check *check)
{
    size_t size = 0;

    json_for_each (label, json_get(check->metadata, "labels")) {
        check_qualified_name(check->errors, "metadata.labels", label->string);
        check_label_value(check->errors, "metadata.labels", json_string(label, ""));
    }
    json_for_each (annotation, json_get(check->metadata, "annotations")) {
        check_qualified_name(check->errors, "metadata.annotations", annotation->string);
        size += strlen(annotation->string) + strlen(json_string(annotation, ""));
    }
    if (size > MAX_ANNOTATIONS)
        field_error(check->errors, FIELD_ERROR_TOO_LONG, "metadata.annotations", NULL,
                    "may not be more than %u bytes", MAX_ANNOTATIONS);
}

static void meta_check_owners(const struct meta_check *check)
{
    static const char *const FIELDS[] = { "apiVersion", "kind", "name", "uid" };
    size_t controllers = 0;

    json_for_each (owner, json_get(check->metadata, "ownerReferences")) {
        for (size_t i = 0; i < ARRAY_LEN(FIELDS); i++) {
            if (!*json_get_string(owner, FIELDS[i]))
                invalid_text(check->errors,
                             arena_printf(check->arena, "metadata.ownerReferences.%s", FIELDS[i]),
                             "", "must not be empty");
        }
        controllers += json_bool(json_get(owner, "controller"), false);
    }
    if (controllers > 1)
        field_error(check->errors, FIELD_ERROR_INVALID, "metadata.ownerReferences", NULL,
                    "only one owner can be the controller");
}

static void meta_check_finalizers(const struct meta_check *check)
{
    const cJSON *finalizers = json_get(check->metadata, "finalizers");
    bool orphan = false, foreground = false;

    json_for_each (finalizer, finalizers) {
        const char *name = json_string(finalizer, "");

        check_qualified_name(check->errors, "metadata.finalizers", name);
        orphan |= str_equal(name, "orphan");
        foreground |= str_equal(name, "foregroundDeletion");
    }
    if (orphan && foreground)
        field_error(check->errors, FIELD_ERROR_INVALID, "metadata.finalizers", finalizers,
                    "orphan and foregroundDeletion exclude each other");
}

/* --- changes ---------------------------------------------------------------------------------- */

static void meta_check_new_finalizers(const struct meta_check *check)
{
    struct map *known = map_of_arena(check->arena);

    json_for_each (old, json_get(check->old, "finalizers"))
        map_set(known, json_string(old, ""), known);
    json_for_each (new, json_get(check->metadata, "finalizers")) {
        if (!map_get(known, json_string(new, ""))) {
            field_error(check->errors, FIELD_ERROR_FORBIDDEN, "metadata.finalizers", NULL,
                        "no finalizer can be added to an object that is being deleted");
            return;
        }
    }
}

static void meta_check_unchanged(const struct meta_check *check)
{
    static const char *const FIXED[] = { "name",
                                         "namespace",
                                         "uid",
                                         "creationTimestamp",
                                         "deletionTimestamp",
                                         "deletionGracePeriodSeconds" };

    if (!*json_get_string(check->metadata, "resourceVersion"))
        invalid_text(check->errors, "metadata.resourceVersion", "",
                     "must be specified for an update");
    for (size_t i = 0; i < ARRAY_LEN(FIXED); i++) {
        const cJSON *value = json_get(check->metadata, FIXED[i]);

        if (!json_equal(value, json_get(check->old, FIXED[i])))
            field_error(check->errors, FIELD_ERROR_INVALID,
                        arena_printf(check->arena, "metadata.%s", FIXED[i]), value,
                        "field is immutable");
    }
}

void object_meta_validate(const struct kube_kind *kind, const cJSON *object, const cJSON *old,
                          struct field_errors *errors)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct meta_check check = { .arena = arena,
                                      .errors = errors,
                                      .kind = kind,
                                      .object = object,
                                      .metadata = json_get(object, "metadata"),
                                      .old = json_get(old, "metadata") };

    if (!old)
        meta_check_names(&check);
    else if (json_get(check.old, "deletionTimestamp"))
        meta_check_new_finalizers(&check);
    if (old)
        meta_check_unchanged(&check);
    meta_check_labels(&check);
    meta_check_owners(&check);
    meta_check_finalizers(&check);
}
