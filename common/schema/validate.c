#include <math.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/map.h"
#include "common/base/str.h"
#include "common/json/place.h"
#include "common/schema/formats.h"
#include "common/schema/members.h"
#include "common/schema/nodes.h"

/* Longer paths are cut; names of members come from outside. */
#define MAX_PATH 512

struct check {
    struct arena *arena;
    struct field_errors *errors;
    const struct schema_manners *manners;
    bool blocks;   /* rules of CEL are not looked at */
    size_t unsaid; /* of a path, in messages: "status" where the status alone is validated */
};

/* One value of the object, with what stood there before: a chain on the stack, whose path is written
 * for an error only. */
struct place {
    struct json_place at;
    bool hidden; /* no error shows the value */
    const struct schema *schema;
    const cJSON *value;
    const cJSON *old; /* NULL: none, or not to be correlated */
};

static const struct schema_manners PLAIN = { .hidden = NULL };

static void check_place(struct check *check, const struct place *place);

static bool is_top(const struct place *place)
{
    return !place->at.parent && !*place->at.name;
}

static const char *path_at(const struct check *check, const struct json_place *at)
{
    CLEANUP(buf_releasep) struct buf path = BUF_INIT(MAX_PATH);

    if (field_errors_count(check->errors) >= FIELD_ERRORS_MAX)
        return ""; /* this error is only counted */

    bool whole = json_place_write(at, &path);
    return arena_printf(check->arena, "%s%s", buf_string(&path), whole ? "" : "...");
}

static const char *path_of(const struct check *check, const struct place *place)
{
    return path_at(check, &place->at);
}

static const char *path_of_member(const struct check *check, const struct place *place,
                                  const char *name)
{
    return path_at(check, &(struct json_place){ .parent = &place->at, .name = name });
}

static const char *path_of_item(const struct check *check, const struct place *place, size_t index)
{
    return path_at(check, &(struct json_place){ .parent = &place->at, .index = index });
}

static const cJSON *shown(const struct place *place)
{
    return place->hidden ? NULL : place->value;
}

/* The API server's words begin with the path where go-openapi wrote them. */
#define IN_BODY "%s in body "

static const char *said(const struct check *check, const char *path)
{
    if (strlen(path) < check->unsaid)
        return path;
    path += check->unsaid;
    return check->unsaid && *path == '.' ? path + 1 : path;
}

static struct field_errors *blocking(struct check *check)
{
    check->blocks = true;
    return check->errors;
}

/* --- types ------------------------------------------------------------------------------------ */

/* Up to here a double is sure to be the integer that was written. */
#define EXACT_INTEGER 9007199254740992.0 /* 2^53 */

/* 64 bits, if it is written as one; else what a double holds exactly. */
static bool is_integer(const cJSON *value)
{
    if (!json_is_number(value) || json_int(value, 0) != json_int(value, 1))
        return false;
    return !cJSON_IsNumber(value) || fabs(value->valuedouble) < EXACT_INTEGER;
}

static const char *type_of(const cJSON *value)
{
    if (cJSON_IsString(value))
        return "string";
    if (is_integer(value))
        return "integer";
    if (json_is_number(value))
        return "number";
    if (cJSON_IsBool(value))
        return "boolean";
    if (cJSON_IsArray(value))
        return "array";
    return cJSON_IsObject(value) ? "object" : "null";
}

static bool type_fits(const struct schema *schema, const cJSON *value)
{
    if (cJSON_IsNull(value))
        return schema->nullable || !*schema->type_name;
    if (schema->int_or_string)
        return cJSON_IsString(value) || is_integer(value);
    switch (schema->type) {
    case SCHEMA_ANY:
        return true;
    case SCHEMA_OBJECT:
        return cJSON_IsObject(value);
    case SCHEMA_ARRAY:
        return cJSON_IsArray(value);
    case SCHEMA_STRING:
        return cJSON_IsString(value);
    case SCHEMA_INTEGER:
        return is_integer(value);
    case SCHEMA_NUMBER:
        return json_is_number(value);
    case SCHEMA_BOOLEAN:
        return cJSON_IsBool(value);
    }
    return false;
}

/* Formats that the API server knows; it forgets the others (int32, int64). */
static bool has_format(const struct schema *schema)
{
    return str_equal(schema->format, "date-time");
}

static void check_type(struct check *check, const struct place *place)
{
    const struct schema *schema = place->schema;
    const char *actual = type_of(place->value), *expected = schema->type_name;

    if (type_fits(schema, place->value))
        return;
    if (has_format(schema) && cJSON_IsArray(place->value))
        return; /* so does the API server */
    if (has_format(schema) && !cJSON_IsNull(place->value)) {
        expected = schema->format;
        actual = str_equal(actual, "integer")  ? "int64"
                 : str_equal(actual, "number") ? "double"
                                               : "";
    }

    const char *path = path_of(check, place);
    field_error(blocking(check), FIELD_ERROR_TYPE, path, NULL,
                "\"%s\": " IN_BODY "must be of type %s: \"%s\"", actual, said(check, path),
                expected, actual);
}

/* --- scalars ---------------------------------------------------------------------------------- */

static size_t runes_of(const char *text)
{
    size_t count = 0;

    for (; *text; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

/* The first that is wrong, as the API server says it. The rules of its kind look at a hidden text. */
static void check_string(struct check *check, const struct place *place)
{
    const struct schema *schema = place->schema;
    const struct schema_limits *limits = &schema->limits;
    const char *text = json_string(place->value, "");
    int64_t len = (int64_t)runes_of(text);

    if (limits->max_length != SCHEMA_NO_LIMIT && len > limits->max_length) {
        field_error(blocking(check), FIELD_ERROR_TOO_LONG, path_of(check, place), NULL,
                    "may not be more than %lld byte%s", (long long)limits->max_length,
                    limits->max_length == 1 ? "" : "s");
    } else if (limits->min_length != SCHEMA_NO_LIMIT && len < limits->min_length) {
        const char *path = path_of(check, place);
        field_error(check->errors, FIELD_ERROR_INVALID, path, shown(place),
                    IN_BODY "should be at least %lld chars long", said(check, path),
                    (long long)limits->min_length);
    } else if (schema->pattern && !place->hidden &&
               regexec(&schema->regex, text, 0, NULL, 0) != 0) {
        const char *path = path_of(check, place);
        field_error(check->errors, FIELD_ERROR_INVALID, path, place->value,
                    IN_BODY "should match '%s'", said(check, path), schema->pattern);
    }
}

/* A text of FIELD_VALUE_MAX bytes, each of them escaped. */
#define MAX_QUOTED (FIELD_VALUE_MAX * 10 + 2)

static void check_format(struct check *check, const struct place *place)
{
    CLEANUP(buf_releasep) struct buf quoted = BUF_INIT(MAX_QUOTED);
    const char *text = json_string(place->value, "");
    size_t cut = str_utf8_cut(text, strlen(text), FIELD_VALUE_MAX);

    if (!has_format(place->schema) || is_date_time(text) || !buf_append_quoted(&quoted, text, cut))
        return;

    const char *path = path_of(check, place);
    field_error(blocking(check), FIELD_ERROR_TYPE, path, NULL,
                "%s: " IN_BODY "must be of type %s: %s", buf_string(&quoted), said(check, path),
                place->schema->format, buf_string(&quoted));
}

static void check_number(struct check *check, const struct place *place)
{
    const struct schema_limits *limits = &place->schema->limits;
    double number = json_double(place->value, 0);
    bool over = limits->max != SCHEMA_NO_LIMIT && number > (double)limits->max;

    if (!over && (limits->min == SCHEMA_NO_LIMIT || number >= (double)limits->min))
        return;

    const char *path = path_of(check, place);
    field_error(check->errors, FIELD_ERROR_INVALID, path, shown(place),
                IN_BODY "should be %s than or equal to %lld", said(check, path),
                over ? "less" : "greater", (long long)(over ? limits->max : limits->min));
}

/* At most so many bytes of allowed values; the longest list of crds/ has 300. */
#define MAX_VALUES_TEXT 8192

static void check_values(struct check *check, const struct place *place)
{
    CLEANUP(buf_releasep) struct buf text = BUF_INIT(MAX_VALUES_TEXT);
    bool fits = buf_append_string(&text, "supported values: ");

    if (!place->schema->values)
        return;
    json_for_each (value, place->schema->values) {
        const char *name = json_string(value, NULL);

        if (json_equal(value, place->value))
            return;
        if (!name)
            name = json_text(check->arena, value, NULL);
        fits = fits && buf_append_quoted(&text, name, strlen(name)) &&
               (!value->next || buf_append_string(&text, ", "));
    }
    field_error(blocking(check), FIELD_ERROR_NOT_SUPPORTED, path_of(check, place), shown(place),
                "%s", buf_string(&text));
}

/* --- containers ------------------------------------------------------------------------------- */

static void too_many(struct check *check, const struct place *place, int64_t len, int64_t max)
{
    cJSON *number = arena_own(check->arena, cJSON_CreateNumber((double)len), json_free);

    field_error(blocking(check), FIELD_ERROR_TOO_MANY, path_of(check, place), number,
                "must have at most %lld item%s", (long long)max, max == 1 ? "" : "s");
}

static void too_few(struct check *check, const struct place *place, int64_t len, int64_t min,
                    const char *what)
{
    const char *path = path_of(check, place);
    cJSON *number = arena_own(check->arena, cJSON_CreateNumber((double)len), json_free);

    field_error(check->errors, FIELD_ERROR_INVALID, path, number,
                IN_BODY "should have at least %lld %s", said(check, path), (long long)min, what);
}

/* What tells an item of such a list from the others. */
static const char *item_key(struct arena *arena, const struct schema *schema, const cJSON *item)
{
    const char *key = "";

    if (schema->list != SCHEMA_LIST_MAP)
        return value_key(arena, item);
    for (size_t i = 0; schema->keys[i]; i++)
        key = arena_printf(arena, "%s%s", key, value_key(arena, json_get(item, schema->keys[i])));
    return key;
}

/* The items of the old list by their keys; NULL in lists that are one value. */
static struct map *old_items(struct check *check, const struct place *place)
{
    struct map *items;

    if (place->schema->list != SCHEMA_LIST_MAP || !cJSON_IsArray(place->old))
        return NULL;
    items = map_of_arena(check->arena);
    for (cJSON *old = (cJSON *)(uintptr_t)json_first(place->old); old; old = old->next) {
        const char *key = item_key(check->arena, place->schema, old);

        if (!map_get(items, key))
            map_set(items, key, old);
    }
    return items;
}

static void check_array(struct check *check, const struct place *place)
{
    const struct schema_limits *limits = &place->schema->limits;
    int64_t len = (int64_t)json_len(place->value);
    const struct map *olds = old_items(check, place);
    size_t index = 0;

    if (place->schema->items) {
        json_for_each (item, place->value) {
            struct place inner = { .at = { .parent = &place->at, .index = index },
                                   .hidden = place->hidden,
                                   .schema = place->schema->items,
                                   .value = item };

            if (olds)
                inner.old = map_get(olds, item_key(check->arena, place->schema, item));
            check_place(check, &inner);
            index++;
        }
    }
    if (limits->min_items != SCHEMA_NO_LIMIT && len < limits->min_items)
        too_few(check, place, len, limits->min_items, "items");
    if (limits->max_items != SCHEMA_NO_LIMIT && len > limits->max_items)
        too_many(check, place, len, limits->max_items);
}

static bool is_hidden(const struct check *check, const char *name)
{
    return check->manners->hidden && str_is_one_of(name, check->manners->hidden);
}

static bool is_absent(const struct check *check, const struct schema *schema, const cJSON *value)
{
    return !value || (check->manners->nulls_are_absent && cJSON_IsNull(value) && !schema->nullable);
}

static void check_member(struct check *check, const struct place *place, const struct members *olds,
                         const cJSON *member)
{
    const struct schema *schema = schema_member(place->schema, member->string);

    if (!schema || (is_top(place) && str_equal(member->string, "metadata")))
        return; /* object_meta.h looks at it */
    if (is_absent(check, schema, member))
        return;
    struct place inner = { .at = { .parent = &place->at, .name = member->string },
                           .hidden = place->hidden || is_hidden(check, member->string),
                           .schema = schema,
                           .value = member,
                           .old = members_get(olds, member->string) };
    check_place(check, &inner);
}

static void check_object(struct check *check, const struct place *place)
{
    const struct schema_limits *limits = &place->schema->limits;
    int64_t len = (int64_t)json_len(place->value);

    if (limits->min_properties != SCHEMA_NO_LIMIT && len < limits->min_properties)
        too_few(check, place, len, limits->min_properties, "properties");
    if (limits->max_properties != SCHEMA_NO_LIMIT && len > limits->max_properties)
        too_many(check, place, len, limits->max_properties);

    const struct members olds = members_of(check->arena, place->old);

    json_for_each (member, place->value)
        check_member(check, place, &olds, member);
    json_for_each (name, place->schema->required) {
        const char *text = json_string(name, "");
        const struct schema *schema = schema_member(place->schema, text);

        if (is_absent(check, schema ? schema : &SCHEMA_DEDUCED, json_get(place->value, text)))
            field_error_plain(blocking(check), FIELD_ERROR_REQUIRED,
                              path_of_member(check, place, text), NULL);
    }
}

/* A value that is as it was is not refused, however wrong (KEP-4008). */
static void check_place(struct check *check, const struct place *place)
{
    const cJSON *value = place->value;

    if (place->old && json_equal(place->old, value))
        return;
    check_type(check, place);
    if (cJSON_IsString(value)) {
        check_string(check, place);
        check_format(check, place);
    } else if (json_is_number(value)) {
        check_number(check, place);
    } else if (cJSON_IsArray(value)) {
        check_array(check, place);
    }
    check_values(check, place);
    if (cJSON_IsObject(value))
        check_object(check, place);
}

/* --- list types ------------------------------------------------------------------------------- */

static cJSON *key_of(const struct schema *schema, const cJSON *item)
{
    cJSON *key = cJSON_CreateObject();

    for (size_t i = 0; schema->keys[i]; i++) {
        const cJSON *part = json_get(item, schema->keys[i]);

        if (part)
            json_set_copy(key, schema->keys[i], part);
    }
    return key;
}

static bool check_items_are_objects(struct check *check, const struct place *place)
{
    size_t index = 0;

    json_for_each (item, place->value) {
        if (!cJSON_IsObject(item) && !cJSON_IsNull(item)) {
            field_error(check->errors, FIELD_ERROR_INVALID, path_of_item(check, place, index),
                        place->hidden ? NULL : item,
                        "must be an object for an array of list-type map");
            return false;
        }
        index++;
    }
    return true;
}

/* The second of each, as the API server says it; the third and later say nothing. */
static void check_duplicates(struct check *check, const struct place *place)
{
    const struct schema *schema = place->schema;
    struct map *seen; /* key -> how often */
    size_t index = 0;

    if (schema->list == SCHEMA_LIST_MAP && !check_items_are_objects(check, place))
        return;
    seen = map_of_arena(check->arena);
    json_for_each (item, place->value) {
        const char *key = item_key(check->arena, schema, item);
        size_t *times = map_get(seen, key);

        if (!times) {
            times = arena_new(check->arena, size_t);
            map_set(seen, key, times);
        }
        if (++*times == 2)
            field_error_plain(check->errors, FIELD_ERROR_DUPLICATE,
                              path_of_item(check, place, index),
                              schema->list == SCHEMA_LIST_MAP
                                  ? arena_own(check->arena, key_of(schema, item), json_free)
                                  : item);
        index++;
    }
}

static void check_lists(struct check *check, const struct place *place)
{
    const struct schema *schema = place->schema;
    size_t index = 0;

    if (cJSON_IsArray(place->value) && schema->list != SCHEMA_LIST_ATOMIC)
        check_duplicates(check, place);
    json_for_each (item, place->value) {
        struct place inner = { .at = { .parent = &place->at, .index = index }, .value = item };

        if (cJSON_IsArray(place->value)) {
            inner.schema = schema->items;
        } else {
            inner.at.name = item->string;
            inner.schema = !is_top(place) || !str_equal(item->string, "metadata")
                               ? schema_member(schema, item->string)
                               : NULL;
        }
        if (inner.schema && (cJSON_IsArray(item) || cJSON_IsObject(item)))
            check_lists(check, &inner);
        index++;
    }
}

/* Lists that were wrong already may be so. */
static bool lists_fit(const struct schema *schema, const cJSON *object)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct check check = { .arena = arena,
                           .errors = field_errors_create(arena),
                           .manners = &PLAIN };
    const struct place place = { .at.name = "", .schema = schema, .value = object };

    check_lists(&check, &place);
    return field_errors_count(check.errors) == 0;
}

/* As the API server says it, of schemas with rules of CEL. */
static void say_blocked(struct check *check)
{
    cJSON *null = arena_own(check->arena, cJSON_CreateNull(), json_free);

    field_error(check->errors, FIELD_ERROR_INVALID, "<nil>", null,
                "some validation rules were not checked because the object was invalid; correct "
                "the existing errors to complete validation");
}

static void validate(const struct place *place, const struct place *lists, size_t unsaid,
                     struct field_errors *errors)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct check check = { .arena = arena, .errors = errors, .manners = &PLAIN, .unsaid = unsaid };

    check_place(&check, place);
    if (!lists->old || lists_fit(lists->schema, lists->old))
        check_lists(&check, lists);
    if (check.blocks && lists->schema->has_rules)
        say_blocked(&check);
}

void schema_validate(const struct schema *schema, const cJSON *object, const cJSON *old,
                     struct field_errors *errors)
{
    const struct place place = { .at.name = "", .schema = schema, .value = object, .old = old };

    validate(&place, &place, 0, errors);
}

void schema_validate_status(const struct schema *schema, const cJSON *object, const cJSON *old,
                            struct field_errors *errors)
{
    const struct place lists = { .at.name = "", .schema = schema, .value = object, .old = old };
    const struct place place = { .at.name = "status",
                                 .schema = schema_field(schema, "status"),
                                 .value = json_get(object, "status"),
                                 .old = json_get(old, "status") };

    if (place.schema && place.value)
        validate(&place, &lists, strlen("status"), errors);
}

void schema_validate_part(const struct schema *schema, const char *path, const cJSON *value,
                          const struct schema_manners *manners, struct field_errors *errors)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct check check = { .arena = arena, .errors = errors, .manners = manners };
    const struct place place = { .at.name = path, .schema = schema, .value = value };

    check_place(&check, &place);
    if (!manners->lists_may_repeat)
        check_lists(&check, &place);
}
