#include "standalone/schema/decode.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/json/place.h"
#include "common/schema/members.h"
#include "common/schema/nodes.h"
#include "standalone/schema/object_meta.h"

#define MAX_PATH 512
/* Years of four digits: 0000-01-01 and 10000-01-01 in seconds. */
#define FIRST_S (-62167219200)
#define AFTER_S 253402300800
/* 0001-01-01, which kube-apiserver writes as null: the time is not set. */
#define UNSET_S (-62135596800)

/* A value that is decoded. at.parent and at.name are its path. */
struct decode_field {
    struct json_place at;
    const struct schema *schema;
};

static const char *decode_word(const cJSON *value)
{
    if (cJSON_IsString(value))
        return "string";
    if (cJSON_IsBool(value))
        return "bool";
    if (cJSON_IsArray(value))
        return "array";
    return cJSON_IsObject(value) ? "object" : "number";
}

/* Written as one, and not larger than its type. */
bool decode_is_int64(const cJSON *value)
{
    int64_t number;

    return cJSON_IsRaw(value) ? str_to_int64(value->valuestring, &number)
                              : json_is_number(value) && json_int(value, 0) == json_int(value, 1);
}

static bool decode_fits(const struct schema *schema, const cJSON *value)
{
    int64_t number = json_int(value, 0);

    switch (schema->type) {
    case SCHEMA_BOOLEAN:
        return cJSON_IsBool(value);
    case SCHEMA_INTEGER:
        return decode_is_int64(value) && (!str_equal(schema->format, "int32") ||
                                          (number >= INT32_MIN && number <= INT32_MAX));
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

static int decode_refuse(const struct decode_field *field, const char *expected, const char *found,
                         struct error *err)
{
    CLEANUP(buf_releasep) struct buf path = BUF_INIT(MAX_PATH);
    bool whole = json_place_write(&field->at, &path);

    return error_set(err, ERROR_INVALID, "'%s%s' must be of type %s, not %s", buf_string(&path),
                     whole ? "" : "...", expected, found);
}

static bool decode_is_base64(const char *text)
{
    static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t len = strlen(text), digits = strspn(text, DIGITS);
    size_t padding = strspn(text + digits, "=");

    return digits + padding == len && len % 4 == 0 && padding <= 2;
}

static int decode_text(const struct decode_field *field, const char *text, struct error *err)
{
    if (str_equal(field->schema->format, "byte") && !decode_is_base64(text))
        return decode_refuse(field, "base64", "this text", err);
    return 0;
}

/* In UTC, with six digits of a fraction in a MicroTime, which must have them, and none in a Time. */
static int decode_time(const struct decode_field *field, cJSON *object, cJSON **member,
                       struct error *err)
{
    const char *text = json_string(*member, "");
    bool micro = str_equal(field->schema->definition, "MicroTime");
    char written[RFC3339_LEN];
    int64_t us;

    if (!rfc3339_parse(text, &us) || us < FIRST_S * 1000000 || us >= AFTER_S * 1000000 ||
        str_has_prefix(text + 17, "60") ||
        (micro && (text[19] != '.' || strspn(text + 20, "0123456789") != 6)))
        return decode_refuse(field, micro ? "time with microseconds (RFC 3339)" : "time (RFC 3339)",
                             "this text", err);
    (micro ? rfc3339_format_micro : rfc3339_format)(us, written);
    if (str_equal(text, written) && us != UNSET_S * 1000000)
        return 0;

    cJSON *time = us == UNSET_S * 1000000 ? cJSON_CreateNull() : cJSON_CreateString(written);

    members_replace(object, *member, time);
    *member = time;
    return 0;
}

/* An empty map, an empty list or a null, which kube-apiserver does not store. */
static bool decode_is_empty(const struct schema *schema, const cJSON *value)
{
    if (cJSON_IsNull(value))
        return true;
    return !schema->definition && (cJSON_IsObject(value) || cJSON_IsArray(value)) && !value->child;
}

static int decode_value(const struct decode_field *field, cJSON *value, struct error *err);

static int decode_member(const struct decode_field *field, cJSON *object, cJSON *member,
                         struct error *err)
{
    const struct decode_field inner = { .at = { .parent = &field->at, .name = member->string },
                                        .schema = schema_member(field->schema, member->string) };
    const struct schema *schema = inner.schema;
    int r = 0;

    if (!schema)
        return 0;
    if (str_equal(schema->format, "date-time") && cJSON_IsString(member))
        r = decode_time(&inner, object, &member, err);
    else if (!cJSON_IsNull(member))
        r = decode_value(&inner, member, err);
    if (r < 0)
        return r;
    if (schema_field(field->schema, member->string) && decode_is_empty(schema, member))
        json_free(cJSON_DetachItemViaPointer(object, member));
    else if (cJSON_IsNull(member) && schema->type == SCHEMA_STRING)
        members_replace(object, member, cJSON_CreateString(""));
    return 0;
}

static int decode_members(const struct decode_field *field, cJSON *object, struct error *err)
{
    /* managed_fields.c reads the rest of an entry and drops an entry that it does not understand */
    bool managers = str_equal(field->schema->definition, "ManagedFieldsEntry");
    int r = 0;

    for (cJSON *member = object->child, *next; r == 0 && member; member = next) {
        next = member->next;
        if (!managers || str_equal(member->string, "time"))
            r = decode_member(field, object, member, err);
    }
    return r;
}

/* A null becomes an empty object or text. */
static int decode_items(const struct decode_field *field, cJSON *list, struct error *err)
{
    struct decode_field inner = { .at = { .parent = &field->at }, .schema = field->schema->items };
    int r = 0;

    assert(inner.schema); /* schema_parse takes no array without items */
    for (cJSON *item = list->child; r == 0 && item; item = item->next, inner.at.index++) {
        if (cJSON_IsNull(item)) {
            cJSON *empty =
                inner.schema->type == SCHEMA_OBJECT ? cJSON_CreateObject() : cJSON_CreateString("");
            cJSON_ReplaceItemViaPointer(list, item, empty);
            item = empty;
        }
        r = decode_value(&inner, item, err);
    }
    return r;
}

static int decode_value(const struct decode_field *field, cJSON *value, struct error *err)
{
    assert(field->schema);

    bool managers =
        field->schema->items && str_equal(field->schema->items->definition, "ManagedFieldsEntry");

    if (!decode_fits(field->schema, value))
        return managers ? 0
                        : decode_refuse(field, field->schema->type_name, decode_word(value), err);
    if (cJSON_IsString(value))
        return decode_text(field, value->valuestring, err);
    if (cJSON_IsObject(value))
        return decode_members(field, value, err);
    return cJSON_IsArray(value) ? decode_items(field, value, err) : 0;
}

int schema_check_numbers(const cJSON *object, struct error *err)
{
    int r = 0;

    if (cJSON_IsRaw(object) && !isfinite(strtod(object->valuestring, NULL)))
        return error_set(err, ERROR_INVALID, "number %s is too large", object->valuestring);
    for (const cJSON *item = object->child; r == 0 && item; item = item->next)
        r = schema_check_numbers(item, err);
    return r;
}

int schema_decode(const struct schema *schema, cJSON *object, struct error *err)
{
    const struct decode_field field = { .at = { .name = "" }, .schema = schema };

    return decode_value(&field, object, err);
}

/* --- metadata --------------------------------------------------------------------------------- */

/* Strings and numbers that are not stored while they are empty. */
static void decode_drop_empty(cJSON *metadata)
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

int object_meta_decode(const struct schema *schema, cJSON *object, cJSON *unknown,
                       struct error *err)
{
    const struct decode_field top = { .at = { .name = "" }, .schema = schema };
    const struct decode_field field = { .at = { .parent = &top.at, .name = "metadata" },
                                        .schema = schema_field(schema, "metadata") };
    cJSON *metadata = cJSON_DetachItemFromObjectCaseSensitive(object, "metadata");

    if (!metadata || cJSON_IsNull(metadata)) {
        json_free(metadata);
        metadata = cJSON_CreateObject();
    }
    int r = decode_value(&field, metadata, err);
    if (r == 0) {
        schema_prune_part(field.schema, "metadata", metadata, unknown);
        decode_drop_empty(metadata);
    }
    json_set(object, "metadata", metadata);
    return r;
}
