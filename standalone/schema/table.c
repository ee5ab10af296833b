#include "standalone/schema/table.h"

#include "common/base/clock.h"
#include "common/base/str.h"

bool table_include_parse(const char *text, enum table_include *ret)
{
    static const char *const VALUES[] = {
        [TABLE_METADATA] = "Metadata", [TABLE_NONE] = "None", [TABLE_OBJECT] = "Object"
    };

    for (size_t i = 0; i < ARRAY_LEN(VALUES); i++) {
        if (str_equal(VALUES[i], *text ? text : "Metadata")) {
            *ret = (enum table_include)i;
            return true;
        }
    }
    return false;
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

const char *table_age(struct arena *arena, const cJSON *time, int64_t now_us)
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

/* Cells of built-in kinds: a text, an age, or how many members are at paths that ',' separates. */
static cJSON *builtin_cell(struct arena *arena, const struct resource_column *column,
                           const cJSON *object, int64_t now_us)
{
    size_t count = 0;

    if (str_equal(column->cell, "text"))
        return cJSON_CreateString(json_string(value_at(arena, object, column->path), ""));
    if (str_equal(column->cell, "age"))
        return cJSON_CreateString(table_age(arena, value_at(arena, object, column->path), now_us));
    for (const char *path = column->path; *path; path += strspn(path, ",")) {
        size_t len = strcspn(path, ",");

        count += json_len(value_at(arena, object, arena_strndup(arena, path, len)));
        path += len;
    }
    return cJSON_CreateNumber((double)count);
}

static cJSON *cell_of(struct arena *arena, const struct resource_column *column,
                      const cJSON *object, int64_t now_us)
{
    const cJSON *value = value_at(arena, object, column->path);

    if (*column->cell)
        return builtin_cell(arena, column, object, now_us);
    if (!value)
        return str_equal(column->format, "name") ? cJSON_CreateString("") : cJSON_CreateNull();
    if (str_equal(column->type, "date"))
        return date_cell(arena, value, now_us);
    if (str_equal(column->type, "integer"))
        return number_cell(value, true);
    if (str_equal(column->type, "number"))
        return number_cell(value, false);
    if (str_equal(column->type, "boolean"))
        return cJSON_IsBool(value) ? json_copy(value) : cJSON_CreateNull();
    return text_cell(arena, value);
}

/* --- the document ----------------------------------------------------------------------------- */

static void add_columns(cJSON *table, const struct resource *resource)
{
    cJSON *columns = json_set_array(table, "columnDefinitions");

    for (size_t i = 0; i < resource->columns_len; i++) {
        const struct resource_column *column = &resource->columns[i];
        cJSON *definition = json_add_object(columns);

        json_set_string(definition, "name", column->name);
        json_set_string(definition, "type", column->type);
        json_set_string(definition, "format", column->format);
        json_set_string(definition, "description", column->description);
        json_set_int(definition, "priority", column->priority);
    }
}

cJSON *table_create(struct arena *arena, const struct resource *resource,
                    const struct table_options *options, const cJSON *list_meta)
{
    cJSON *table = json_object(arena);

    json_set_string(table, "kind", "Table");
    json_set_string(table, "apiVersion", "meta.k8s.io/v1");
    if (list_meta)
        json_set_copy(table, "metadata", list_meta);
    else
        json_set_object(table, "metadata");
    if (options->without_columns)
        json_set(table, "columnDefinitions", cJSON_CreateNull());
    else
        add_columns(table, resource);
    json_set_array(table, "rows");
    return table;
}

static void add_cells(struct arena *arena, cJSON *row, const struct resource *resource,
                      const cJSON *object, int64_t now_us)
{
    cJSON *cells = json_set_array(row, "cells");

    if (resource->cells) {
        resource->cells(arena, object, now_us, cells);
        return;
    }
    for (size_t i = 0; i < resource->columns_len; i++)
        json_add(cells, cell_of(arena, &resource->columns[i], object, now_us));
}

cJSON *table_row(struct arena *arena, const struct resource *resource,
                 const struct table_options *options, const cJSON *object)
{
    cJSON *row = cJSON_CreateObject();

    add_cells(arena, row, resource, object, options->now_us);
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
