#include "common/json/codec.h"

#include <assert.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/json/place.h"

/* Longer paths are cut; the error message is shorter still. */
#define MAX_PATH 200

struct decoder {
    struct arena *arena;
    struct error *err;
};

static int refuse(const struct decoder *decoder, const struct json_place *place, const char *must)
{
    CLEANUP(buf_releasep) struct buf path = BUF_INIT(MAX_PATH);
    bool whole = json_place_write(place, &path);

    if (!place->parent)
        return error_set(decoder->err, ERROR_INVALID, "must be %s", must);
    return error_set(decoder->err, ERROR_INVALID, "%s%s: must be %s", buf_string(&path),
                     whole ? "" : "...", must);
}

static int decode_struct(const struct decoder *decoder, const struct json_place *place,
                         const struct json_struct *table, const cJSON *json, void *ret);

static int decode_string(const struct decoder *decoder, const struct json_place *place,
                         const cJSON *json, const char **ret)
{
    if (!cJSON_IsString(json))
        return refuse(decoder, place, "a string");
    *ret = json->valuestring;
    return 0;
}

static int decode_int(const struct decoder *decoder, const struct json_place *place,
                      const cJSON *json, int64_t *ret)
{
    /* whatever the fallback is, an integer is found for one of two */
    if (json_int(json, 0) != json_int(json, 1))
        return refuse(decoder, place, "an integer");
    *ret = json_int(json, 0);
    return 0;
}

static int decode_bool(const struct decoder *decoder, const struct json_place *place,
                       const cJSON *json, bool *ret)
{
    if (!cJSON_IsBool(json))
        return refuse(decoder, place, "a boolean");
    *ret = cJSON_IsTrue(json);
    return 0;
}

static int decode_enum(const struct decoder *decoder, const struct json_place *place,
                       const cJSON *json, const char *const *names, int *ret)
{
    const char *text = json_string(json, NULL);
    CLEANUP(buf_releasep) struct buf must = BUF_INIT(MAX_PATH);
    bool fits = buf_append_string(&must, "one of");

    /* names[0] may be NULL: 0 then means absent */
    for (int i = 0; i == 0 || names[i]; i++) {
        if (!names[i])
            continue;
        if (text && str_equal(text, names[i])) {
            *ret = i;
            return 0;
        }
        fits = fits && buf_printf(&must, " '%s'", names[i]);
    }
    return refuse(decoder, place, fits ? buf_string(&must) : "one of the known values");
}

static int decode_time(const struct decoder *decoder, const struct json_place *place,
                       const cJSON *json, int64_t *ret)
{
    const char *text = json_string(json, NULL);

    if (!text || !rfc3339_parse(text, ret))
        return refuse(decoder, place, "an RFC 3339 time");
    return 0;
}

static int decode_strings(const struct decoder *decoder, const struct json_place *place,
                          const cJSON *json, struct str_list *ret)
{
    if (!cJSON_IsArray(json))
        return refuse(decoder, place, "an array of strings");

    struct str_list strings = { .items =
                                    arena_array(decoder->arena, const char *, json_len(json)) };

    json_for_each (item, json) {
        struct json_place element = { .parent = place, .index = strings.len };
        int r = decode_string(decoder, &element, item, &strings.items[strings.len]);

        if (r < 0)
            return r;
        strings.len++;
    }
    *ret = strings;
    return 0;
}

static int decode_map(const struct decoder *decoder, const struct json_place *place,
                      const cJSON *json, const cJSON **ret)
{
    if (!cJSON_IsObject(json))
        return refuse(decoder, place, "an object of strings");
    json_for_each (item, json) {
        struct json_place member = { .parent = place, .name = item->string };
        const char *ignored;
        int r = decode_string(decoder, &member, item, &ignored);

        if (r < 0)
            return r;
    }
    *ret = json;
    return 0;
}

static int decode_object(const struct decoder *decoder, const struct json_place *place,
                         const struct json_struct *table, const cJSON *json, void *ret)
{
    void *object = arena_alloc(decoder->arena, 1, table->size);
    int r = decode_struct(decoder, place, table, json, object);

    if (r < 0)
        return r;
    memcpy(ret, &object, sizeof(object)); /* a pointer of whatever type */
    return 0;
}

static int decode_objects(const struct decoder *decoder, const struct json_place *place,
                          const struct json_struct *table, const cJSON *json,
                          struct json_objects *ret)
{
    if (!cJSON_IsArray(json))
        return refuse(decoder, place, "an array of objects");

    size_t count = json_len(json);
    if (count > JSON_MAX_OBJECTS)
        return refuse(decoder, place, "an array of at most 1024 objects");
    char *items = arena_alloc(decoder->arena, count, table->size);
    size_t len = 0;

    json_for_each (item, json) {
        struct json_place element = { .parent = place, .index = len };
        int r = decode_struct(decoder, &element, table, item, items + len * table->size);

        if (r < 0)
            return r;
        len++;
    }
    *ret = (struct json_objects){ .items = items, .len = len };
    return 0;
}

static int decode_array(const struct decoder *decoder, const struct json_place *place,
                        const cJSON *json, const cJSON **ret)
{
    if (!cJSON_IsArray(json))
        return refuse(decoder, place, "an array");
    *ret = json;
    return 0;
}

static int decode_field(const struct decoder *decoder, const struct json_place *place,
                        const struct json_field *field, const cJSON *json, void *member)
{
    struct json_opt_bool *opt_bool = member;
    struct json_opt_int *opt_int = member;

    switch (field->type) {
    case FIELD_STRING:
        return decode_string(decoder, place, json, member);
    case FIELD_BOOL:
        return decode_bool(decoder, place, json, member);
    case FIELD_OPT_BOOL:
        opt_bool->set = true;
        return decode_bool(decoder, place, json, &opt_bool->value);
    case FIELD_COUNT:
        return decode_int(decoder, place, json, member);
    case FIELD_OPT_INT:
        opt_int->set = true;
        return decode_int(decoder, place, json, &opt_int->value);
    case FIELD_ENUM:
        return decode_enum(decoder, place, json, field->names, member);
    case FIELD_TIME:
    case FIELD_MICROTIME:
        return decode_time(decoder, place, json, member);
    case FIELD_STRINGS:
        return decode_strings(decoder, place, json, member);
    case FIELD_MAP:
        return decode_map(decoder, place, json, member);
    case FIELD_OBJECT:
        return decode_object(decoder, place, field->members, json, member);
    case FIELD_OBJECTS:
        return decode_objects(decoder, place, field->members, json, member);
    case FIELD_ANY:
        *(const cJSON **)member = json;
        return 0;
    case FIELD_ARRAY:
        return decode_array(decoder, place, json, member);
    }
    return refuse(decoder, place, "of a known type"); /* a table with a wrong type */
}

static int decode_struct(const struct decoder *decoder, const struct json_place *place,
                         const struct json_struct *table, const cJSON *json, void *ret)
{
    if (!cJSON_IsObject(json))
        return refuse(decoder, place, "an object");
    for (size_t i = 0; i < table->len; i++) {
        const struct json_field *field = &table->fields[i];
        const cJSON *value = json_get(json, field->name);
        struct json_place member = { .parent = place, .name = field->name };

        if (!value || cJSON_IsNull(value))
            continue;

        int r = decode_field(decoder, &member, field, value, (char *)ret + field->offset);
        if (r < 0)
            return r;
    }
    return 0;
}

int json_decode(struct arena *arena, const struct json_struct *table, const cJSON *json, void *ret,
                struct error *err)
{
    struct decoder decoder = { .arena = arena, .err = err };
    struct json_place root = { .name = "" };

    return decode_struct(&decoder, &root, table, json, ret);
}

static cJSON *encode_struct(const struct json_struct *table, const void *value);

static void encode_strings(cJSON *object, const char *name, const struct str_list *strings)
{
    if (!strings->len)
        return;

    cJSON *array = json_set_array(object, name);

    for (size_t i = 0; i < strings->len; i++)
        json_add_string(array, strings->items[i]);
}

static void encode_objects(cJSON *object, const struct json_field *field,
                           const struct json_objects *objects)
{
    if (!objects->len)
        return;

    cJSON *array = json_set_array(object, field->name);

    for (size_t i = 0; i < objects->len; i++)
        json_add(array, encode_struct(field->members,
                                      (const char *)objects->items + i * field->members->size));
}

static void encode_time(cJSON *object, const char *name, int64_t wall_us,
                        const char *format(int64_t wall_us, char ret[static RFC3339_LEN]))
{
    char text[RFC3339_LEN];

    if (wall_us)
        json_set_string(object, name, format(wall_us, text));
}

static void encode_field(cJSON *object, const struct json_field *field, const void *member)
{
    const struct json_opt_bool *opt_bool = member;
    const struct json_opt_int *opt_int = member;
    const void *pointer;

    switch (field->type) {
    case FIELD_STRING:
        json_set_string(object, field->name, *(const char *const *)member);
        return;
    case FIELD_BOOL:
        if (*(const bool *)member)
            json_set_bool(object, field->name, true);
        return;
    case FIELD_OPT_BOOL:
        if (opt_bool->set)
            json_set_bool(object, field->name, opt_bool->value);
        return;
    case FIELD_COUNT:
        json_set_int(object, field->name, *(const int64_t *)member);
        return;
    case FIELD_OPT_INT:
        if (opt_int->set)
            json_set_int(object, field->name, opt_int->value);
        return;
    case FIELD_ENUM:
        json_set_string(object, field->name, field->names[*(const int *)member]);
        return;
    case FIELD_TIME:
        encode_time(object, field->name, *(const int64_t *)member, rfc3339_format);
        return;
    case FIELD_MICROTIME:
        encode_time(object, field->name, *(const int64_t *)member, rfc3339_format_micro);
        return;
    case FIELD_STRINGS:
        encode_strings(object, field->name, member);
        return;
    case FIELD_OBJECT:
        memcpy(&pointer, member, sizeof(pointer));
        if (pointer)
            json_set(object, field->name, encode_struct(field->members, pointer));
        return;
    case FIELD_OBJECTS:
        encode_objects(object, field, member);
        return;
    case FIELD_MAP:
    case FIELD_ANY:
    case FIELD_ARRAY:
        json_set_copy(object, field->name, *(const cJSON *const *)member);
        return;
    }
}

static cJSON *encode_struct(const struct json_struct *table, const void *value)
{
    cJSON *object = cJSON_CreateObject();

    for (size_t i = 0; i < table->len; i++)
        encode_field(object, &table->fields[i], (const char *)value + table->fields[i].offset);
    return object;
}

cJSON *json_encode(struct arena *arena, const struct json_struct *table, const void *value)
{
    return arena_own(arena, encode_struct(table, value), json_free);
}
