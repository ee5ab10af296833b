#include "standalone/schema/decode.h"

#include <math.h>
#include <stdlib.h>

#include "common/base/str.h"
#include "common/schema/members.h"
#include "common/schema/nodes.h"
#include "standalone/schema/object_meta.h"
#include "standalone/schema/times.h"

/* What encoding/json would say of a tree that is to become a Go struct. */
struct decoding {
    struct arena *arena;
    struct error *err;
    bool converts; /* what has been a tree in Go: other words of the same mistakes */
};

struct field {
    const struct schema *schema;
    const char *owner; /* the struct that has it */
    const char *path;  /* from the outermost struct; maps and lists add nothing */
};

const char *value_word(const cJSON *value)
{
    if (cJSON_IsString(value))
        return "string";
    if (cJSON_IsBool(value))
        return "bool";
    if (cJSON_IsArray(value))
        return "array";
    return cJSON_IsObject(value) ? "object" : "number";
}

static bool is_bytes(const struct schema *schema)
{
    return str_equal(schema->format, "byte");
}

static const char *go_type(struct arena *arena, const struct schema *schema)
{
    switch (schema->type) {
    case SCHEMA_BOOLEAN:
        return "bool";
    case SCHEMA_INTEGER:
        return str_equal(schema->format, "int32") ? "int32" : "int64";
    case SCHEMA_NUMBER:
        return "float64";
    case SCHEMA_ARRAY:
        return arena_printf(arena, "[]%s", go_type(arena, schema->items));
    case SCHEMA_OBJECT:
        if (schema->additional)
            return arena_printf(arena, "map[string]%s", go_type(arena, schema->additional));
        return schema->definition ? arena_printf(arena, "v1.%s", schema->definition) : "struct";
    default:
        return is_bytes(schema) ? "[]uint8" : "string";
    }
}

/* Written as one, and not larger than its type. */
bool value_is_int64(const cJSON *value)
{
    int64_t number;

    return cJSON_IsRaw(value) ? str_to_int64(value->valuestring, &number)
                              : json_is_number(value) && json_int(value, 0) == json_int(value, 1);
}

static bool is_integer(const struct schema *schema, const cJSON *value)
{
    int64_t number = json_int(value, 0);

    return value_is_int64(value) &&
           (!str_equal(schema->format, "int32") || (number >= INT32_MIN && number <= INT32_MAX));
}

static bool fits(const struct schema *schema, const cJSON *value)
{
    switch (schema->type) {
    case SCHEMA_BOOLEAN:
        return cJSON_IsBool(value);
    case SCHEMA_INTEGER:
        return is_integer(schema, value);
    case SCHEMA_NUMBER:
        return json_is_number(value);
    case SCHEMA_ARRAY:
        return cJSON_IsArray(value);
    case SCHEMA_OBJECT:
        return cJSON_IsObject(value);
    case SCHEMA_STRING:
        return cJSON_IsString(value);
    case SCHEMA_ANY:
        return true;
    }
    return false;
}

static bool is_time(const struct schema *schema)
{
    return str_equal(schema->format, "date-time");
}

/* What a tree may have after server-side apply has looked at its types: a fraction, or no text for a time. */
static int refuse_converted(const struct decoding *decoding, const struct field *field,
                            const cJSON *value)
{
    if (is_time(field->schema))
        return error_set(decoding->err, ERROR_INVALID,
                         "json: cannot unmarshal %s into Go value of type string",
                         value_word(value));
    return error_set(decoding->err, ERROR_INVALID, "cannot convert float64 to %s",
                     go_type(decoding->arena, field->schema));
}

static int refuse(const struct decoding *decoding, const struct field *field, const cJSON *value)
{
    const char *word = value_word(value);
    bool number = json_is_number(value) && field->schema->type == SCHEMA_INTEGER;

    if (decoding->converts && (is_time(field->schema) || (number && !value_is_int64(value))))
        return refuse_converted(decoding, field, value);
    if (number)
        word = arena_printf(decoding->arena, "number %s", json_text(decoding->arena, value, NULL));
    return error_set(decoding->err, ERROR_INVALID,
                     "json: cannot unmarshal %s into Go struct field %s.%s of type %s", word,
                     field->owner, field->path, go_type(decoding->arena, field->schema));
}

/* Where Go's decoder of base64 stops. */
static size_t bad_base64_at(const char *text)
{
    static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t good = strspn(text, DIGITS), len = strlen(text);
    size_t padding = strspn(text + good, "=");

    if (good + padding == len && len % 4 == 0 && padding <= 2)
        return SIZE_MAX;
    return good + padding == len && padding == 0 ? len - len % 4 : good;
}

static int decode_text(const struct decoding *decoding, const struct field *field,
                       const cJSON *value)
{
    const char *text = json_string(value, "");

    if (is_bytes(field->schema) && bad_base64_at(text) != SIZE_MAX)
        return error_set(decoding->err, ERROR_INVALID, "%sillegal base64 data at input byte %zu",
                         decoding->converts ? "error decoding from json: " : "",
                         bad_base64_at(text));
    return 0;
}

static int decode(const struct decoding *decoding, const struct field *field, cJSON *value);

static struct field inner_field(const struct decoding *decoding, const struct field *field,
                                const struct schema *schema, const char *name)
{
    struct field inner = *field;

    inner.schema = schema;
    if (schema_field(field->schema, name)) {
        if (field->schema->definition)
            inner.owner = field->schema->definition;
        inner.path = schema_path_member(decoding->arena, field->path, name);
    }
    return inner;
}

/* An empty map, list or null that Go leaves out when it writes (omitempty). */
static bool is_left_out(const struct schema *schema, const cJSON *value)
{
    if (cJSON_IsNull(value))
        return true;
    if (schema->definition || (!cJSON_IsObject(value) && !cJSON_IsArray(value)))
        return false;
    return !value->child;
}

/* *member becomes the time as Go writes it, and null if that is the zero time. */
static int decode_time(const struct decoding *decoding, const struct field *field, cJSON *object,
                       cJSON **member)
{
    const char *text;
    bool micro = str_equal(field->schema->definition, "MicroTime");

    int r = time_rewrite(decoding->arena, json_string(*member, ""), micro, &text, decoding->err);
    if (r < 0 || str_equal(text, json_string(*member, "")))
        return r;

    cJSON *time = *text ? cJSON_CreateString(text) : cJSON_CreateNull();

    members_replace(object, *member, time);
    *member = time;
    return 0;
}

/* Who reads managers looks at the rest of them. */
static int decode_managers(const struct decoding *decoding, const struct field *field,
                           cJSON *managers);

static int decode_member(const struct decoding *decoding, const struct field *field, cJSON *object,
                         cJSON *member)
{
    const struct schema *schema = schema_member(field->schema, member->string);
    struct field inner;
    int r = 0;

    if (!schema)
        return 0;
    inner = inner_field(decoding, field, schema, member->string);
    if (schema->items && str_equal(schema->items->definition, "ManagedFieldsEntry"))
        return decode_managers(decoding, &inner, member);
    if (is_time(schema) && cJSON_IsString(member))
        r = decode_time(decoding, &inner, object, &member);
    else if (!cJSON_IsNull(member))
        r = decode(decoding, &inner, member);
    if (r < 0)
        return r;
    if (schema_field(field->schema, member->string) && is_left_out(schema, member))
        json_free(cJSON_DetachItemViaPointer(object, member));
    else if (cJSON_IsNull(member) && schema->type == SCHEMA_STRING)
        members_replace(object, member, cJSON_CreateString(""));
    return 0;
}

static int decode_managers(const struct decoding *decoding, const struct field *field,
                           cJSON *managers)
{
    struct field entry_field = *field;

    entry_field.schema = field->schema->items;
    if (!cJSON_IsArray(managers))
        return 0;
    for (cJSON *entry = managers->child; entry; entry = entry->next) {
        cJSON *time = (cJSON *)(uintptr_t)json_get(entry, "time");
        int r = time ? decode_member(decoding, &entry_field, entry, time) : 0;

        if (r < 0)
            return r;
    }
    return 0;
}

static int decode_members(const struct decoding *decoding, const struct field *field, cJSON *object)
{
    for (cJSON *member = object->child, *next; member; member = next) {
        next = member->next;
        int r = decode_member(decoding, field, object, member);
        if (r < 0)
            return r;
    }
    return 0;
}

/* A null is an empty struct or text. */
static int decode_items(const struct decoding *decoding, const struct field *field, cJSON *list)
{
    const struct schema *schema = field->schema->items;

    for (cJSON *item = list->child; item; item = item->next) {
        struct field inner = *field;
        cJSON *empty;

        inner.schema = schema;
        if (cJSON_IsNull(item)) {
            empty = schema->type == SCHEMA_OBJECT ? cJSON_CreateObject() : cJSON_CreateString("");
            cJSON_ReplaceItemViaPointer(list, item, empty);
            item = empty;
        }
        int r = decode(decoding, &inner, item);
        if (r < 0)
            return r;
    }
    return 0;
}

static int decode(const struct decoding *decoding, const struct field *field, cJSON *value)
{
    if (!fits(field->schema, value))
        return refuse(decoding, field, value);
    if (cJSON_IsString(value))
        return decode_text(decoding, field, value);
    if (cJSON_IsObject(value))
        return decode_members(decoding, field, value);
    return cJSON_IsArray(value) ? decode_items(decoding, field, value) : 0;
}

int schema_check_numbers(const cJSON *object, struct error *err)
{
    if (cJSON_IsRaw(object) && !isfinite(strtod(object->valuestring, NULL)))
        return error_set(err, ERROR_INVALID,
                         "json: cannot unmarshal number %s into Go value of type float64",
                         object->valuestring);
    if (!cJSON_IsObject(object) && !cJSON_IsArray(object))
        return 0;
    json_for_each (item, object) {
        int r = schema_check_numbers(item, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int decode_object(const struct schema *schema, const char *kind, cJSON *object,
                         bool converts, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct decoding decoding = { .arena = arena, .err = err, .converts = converts };
    const struct field field = { .schema = schema, .owner = kind, .path = "" };

    return decode(&decoding, &field, object);
}

int schema_decode(const struct schema *schema, const char *kind, cJSON *object, struct error *err)
{
    return decode_object(schema, kind, object, false, err);
}

int schema_convert(const struct schema *schema, const char *kind, cJSON *object, struct error *err)
{
    return decode_object(schema, kind, object, true, err);
}

/* --- metadata --------------------------------------------------------------------------------- */

/* Strings and numbers that Go leaves out while they are empty. */
static void drop_empty(cJSON *metadata)
{
    static const char *const TEXTS[] = { "name",     "generateName", "namespace",
                                         "selfLink", "uid",          "resourceVersion" };

    for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
        if (str_equal(json_string(json_get(metadata, TEXTS[i]), NULL), ""))
            json_remove(metadata, TEXTS[i]);
    }
    if (json_int(json_get(metadata, "generation"), 1) == 0)
        json_remove(metadata, "generation");
}

static void drop_unknown(const struct schema *schema, cJSON *metadata, cJSON *unknown)
{
    cJSON *paths = cJSON_CreateArray();

    schema_prune(schema, metadata, paths);
    json_for_each (path, paths) {
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();

        if (unknown)
            json_add_string(unknown, arena_printf(arena, "metadata.%s", json_string(path, "")));
    }
    json_free(paths);
}

int object_meta_decode(const struct schema *schema, const char *kind, cJSON *object, cJSON *unknown,
                       struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct decoding decoding = { .arena = arena, .err = err };
    const struct field field = { .schema = schema_field(schema, "metadata"),
                                 .owner = "ObjectMeta",
                                 .path = kind ? "metadata" : "" };
    cJSON *metadata = cJSON_DetachItemFromObjectCaseSensitive(object, "metadata");

    if (!metadata || cJSON_IsNull(metadata)) {
        json_free(metadata);
        metadata = cJSON_CreateObject();
    }
    int r = 0;
    if (!cJSON_IsObject(metadata))
        r = error_set(err, ERROR_INVALID,
                      "json: cannot unmarshal %s into Go %s%s%s of type v1.ObjectMeta",
                      value_word(metadata), kind ? "struct field " : "value", kind ? kind : "",
                      kind ? ".metadata" : "");
    if (r == 0)
        r = decode(&decoding, &field, metadata);
    if (r == 0) {
        drop_unknown(field.schema, metadata, unknown);
        drop_empty(metadata);
    }
    json_set(object, "metadata", metadata);
    return r;
}
