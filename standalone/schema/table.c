#include "standalone/schema/table.h"

#include <ctype.h>

#include "common/base/clock.h"
#include "common/base/str.h"

enum table_include table_include_of(const char *text)
{
    if (str_equal(text, "Object"))
        return TABLE_OBJECT;
    return str_equal(text, "None") ? TABLE_NONE : TABLE_METADATA;
}

/* --- JSONPath, as far as additionalPrinterColumns may use it ------------------------------------ */

/* `?(@.type=="Ready")` of an array: the first item that has this member. */
static const cJSON *filtered(struct arena *arena, const cJSON *array, const char *filter)
{
    const char *name = filter + strlen("?(@."), *equals = strstr(name, "==\"");
    const char *end = equals ? strstr(equals, "\")") : NULL;

    if (!str_has_prefix(filter, "?(@.") || !end)
        return NULL;
    const char *value = equals + strlen("==\"");
    const char *expected = arena_strndup(arena, value, (size_t)(end - value));
    const char *member = arena_strndup(arena, name, (size_t)(equals - name));

    json_for_each (item, array) {
        if (str_equal(json_string(json_get(item, member), NULL), expected))
            return item;
    }
    return NULL;
}

static const cJSON *value_at(struct arena *arena, const cJSON *object, const char *path)
{
    const cJSON *value = object;

    while (*path && value) {
        if (*path == '[') {
            const char *end = strchr(path, ']');

            if (!end)
                return NULL;
            value = filtered(arena, value, path + 1);
            path = end + 1;
        } else {
            size_t len = strcspn(path + 1, ".[");

            value = json_get(value, arena_strndup(arena, path + 1, len));
            path += 1 + len;
        }
    }
    return value;
}

/* --- ages ------------------------------------------------------------------------------------- */

/* "3m20s", and "3m" where nothing is left over. */
static const char *age_two(struct arena *arena, int64_t large, const char *unit, int64_t small,
                           const char *small_unit)
{
    if (!small)
        return arena_printf(arena, "%lld%s", (long long)large, unit);
    return arena_printf(arena, "%lld%s%lld%s", (long long)large, unit, (long long)small,
                        small_unit);
}

static const char *age_days(struct arena *arena, int64_t hours)
{
    int64_t days = hours / 24;

    if (hours < 24 * 8)
        return age_two(arena, days, "d", hours % 24, "h");
    if (days < 365 * 2)
        return age_two(arena, days, "d", 0, "");
    if (days < 365 * 8)
        return age_two(arena, days / 365, "y", days % 365, "d");
    return age_two(arena, days / 365, "y", 0, "");
}

static const char *age_text(struct arena *arena, int64_t us)
{
    int64_t seconds = us / 1000000, minutes = seconds / 60, hours = minutes / 60;

    if (seconds < -1)
        return "<invalid>";
    if (seconds < 0)
        return "0s";
    if (seconds < 120)
        return age_two(arena, seconds, "s", 0, "");
    if (minutes < 10)
        return age_two(arena, minutes, "m", seconds % 60, "s");
    if (minutes < 180)
        return age_two(arena, minutes, "m", 0, "");
    if (hours < 8)
        return age_two(arena, hours, "h", minutes % 60, "m");
    if (hours < 48)
        return age_two(arena, hours, "h", 0, "");
    return age_days(arena, hours);
}

static const char *table_age(struct arena *arena, const cJSON *time, int64_t now_us)
{
    int64_t at_us;

    if (!rfc3339_parse(json_string(time, ""), &at_us))
        return "<unknown>";
    return age_text(arena, now_us - at_us);
}

/* --- cells ------------------------------------------------------------------------------------ */

static cJSON *date_cell(struct arena *arena, const cJSON *value, int64_t now_us)
{
    const char *text = json_string(value, NULL);
    int64_t at_us;

    if (!text)
        return cJSON_CreateNull();
    if (!rfc3339_parse(text, &at_us))
        return cJSON_CreateString("<invalid>");
    return cJSON_CreateString(age_text(arena, now_us - at_us));
}

static cJSON *text_cell(struct arena *arena, const cJSON *value)
{
    const char *text = json_string(value, NULL);

    if (!text && cJSON_IsNull(value))
        text = "<nil>";
    return cJSON_CreateString(text ? text : json_text(arena, value, NULL));
}

static cJSON *number_cell(const cJSON *value, bool whole)
{
    if (!json_is_number(value))
        return cJSON_CreateNull();
    return whole ? cJSON_CreateNumber((double)(int64_t)json_double(value, 0)) : json_copy(value);
}

/* "Task/a" of a reference to an object, in lower case as kubectl takes it. */
static const char *reference_text(struct arena *arena, const cJSON *reference)
{
    char *kind = arena_strdup(arena, json_string(json_get(reference, "kind"), ""));
    const char *name = json_string(json_get(reference, "name"), "");

    for (char *c = kind; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return *name ? arena_printf(arena, "%s/%s", kind, name) : kind;
}

/* Cells of built-in kinds: of the first path that has a value the text, age, number or referenced object, or how many
 * members are at all paths. */
static cJSON *builtin_cell(struct arena *arena, const char *cell, const char *paths,
                           const cJSON *object, int64_t now_us)
{
    const cJSON *value = NULL;
    size_t count = 0;

    for (const char *path = paths; *path; path += strspn(path, ",")) {
        size_t len = strcspn(path, ",");
        const cJSON *found = value_at(arena, object, arena_strndup(arena, path, len));

        if (!value)
            value = found;
        count += json_len(found);
        path += len;
    }
    if (str_equal(cell, "count"))
        return cJSON_CreateNumber((double)count);
    if (str_equal(cell, "number"))
        return cJSON_CreateNumber(json_double(value, 1));
    if (str_equal(cell, "age"))
        return cJSON_CreateString(table_age(arena, value, now_us));
    if (str_equal(cell, "reference"))
        return cJSON_CreateString(reference_text(arena, value));
    return cJSON_CreateString(json_string(value, ""));
}

static const char *text_at(const cJSON *column, const char *name)
{
    return json_string(json_get(column, name), "");
}

static cJSON *cell_of(struct arena *arena, const cJSON *column, const cJSON *object, int64_t now_us)
{
    const char *cell = text_at(column, "cell"), *path = text_at(column, "path");
    const cJSON *definition = json_get(column, "definition"), *value;
    const char *type = text_at(definition, "type");

    if (*cell)
        return builtin_cell(arena, cell, path, object, now_us);
    value = value_at(arena, object, path);
    if (!value)
        return *text_at(definition, "format") ? cJSON_CreateString("") : cJSON_CreateNull();
    if (str_equal(type, "date"))
        return date_cell(arena, value, now_us);
    if (str_equal(type, "integer"))
        return number_cell(value, true);
    if (str_equal(type, "number"))
        return number_cell(value, false);
    if (str_equal(type, "boolean"))
        return cJSON_IsBool(value) ? json_copy(value) : cJSON_CreateNull();
    return text_cell(arena, value);
}

/* --- the document ----------------------------------------------------------------------------- */

cJSON *table_create(struct arena *arena, const struct resource *resource, const cJSON *list_meta)
{
    cJSON *table = json_object(arena), *columns;

    json_set_string(table, "kind", "Table");
    json_set_string(table, "apiVersion", "meta.k8s.io/v1");
    if (list_meta)
        json_set_copy(table, "metadata", list_meta);
    else
        json_set_object(table, "metadata");
    columns = json_set_array(table, "columnDefinitions");
    json_for_each (column, resource->columns)
        json_add(columns, json_copy(json_get(column, "definition")));
    json_set_array(table, "rows");
    return table;
}

cJSON *table_row(struct arena *arena, const struct resource *resource,
                 const struct table_options *options, const cJSON *object)
{
    cJSON *row = cJSON_CreateObject(), *cells = json_set_array(row, "cells");

    json_for_each (column, resource->columns)
        json_add(cells, cell_of(arena, column, object, options->now_us));
    if (options->include == TABLE_OBJECT)
        json_set_copy(row, "object", object);
    else if (options->include == TABLE_METADATA)
        json_set_copy(row, "object", partial_metadata(arena, object));
    else
        json_set(row, "object", cJSON_CreateNull());
    return row;
}

void table_add(struct arena *arena, cJSON *table, const struct resource *resource,
               const struct table_options *options, const cJSON *object)
{
    cJSON *rows = cJSON_DetachItemFromObjectCaseSensitive(table, "rows");

    json_add(rows, table_row(arena, resource, options, object));
    json_set(table, "rows", rows);
}

cJSON *partial_metadata(struct arena *arena, const cJSON *object)
{
    cJSON *partial = json_object(arena);

    json_set_string(partial, "kind", "PartialObjectMetadata");
    json_set_string(partial, "apiVersion", "meta.k8s.io/v1");
    json_set_copy(partial, "metadata", json_get(object, "metadata"));
    return partial;
}
