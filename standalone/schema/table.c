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

/* A path is an array of names of members. {"type":"Ready"} is the first item of a list that has this member. */
static const cJSON *value_at(const cJSON *object, const cJSON *path)
{
    const cJSON *value = object;

    json_for_each (step, path) {
        const cJSON *wanted = json_first(step), *item = json_first(value);

        while (wanted && item && !json_equal(json_get(item, wanted->string), wanted))
            item = item->next;
        value = wanted ? item : json_get(value, json_string(step, ""));
    }
    return value;
}

/* --- cells ------------------------------------------------------------------------------------ */

/* invalid: of a text that is no time. A time that is ahead by no more than a second has just come. */
static cJSON *date_cell(struct arena *arena, const char *text, const char *invalid, int64_t now_us)
{
    int64_t at_us;

    if (!rfc3339_parse(text, &at_us))
        return cJSON_CreateString(invalid);
    return cJSON_CreateString(
        (now_us - at_us) / 1000000 < -1 ? "<invalid>" : duration_text(arena, now_us - at_us));
}

/* "Task/a" of a reference to an object, in lower case as kubectl takes it. */
static const char *reference_text(struct arena *arena, const cJSON *reference)
{
    char *kind = arena_strdup(arena, json_get_string(reference, "kind"));
    const char *name = json_get_string(reference, "name");

    for (char *c = kind; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return *name ? arena_printf(arena, "%s/%s", kind, name) : kind;
}

/* Cells of built-in kinds: of the first path that has a value the text, age, number or referenced object, or how many
 * members are at all paths. */
static cJSON *builtin_cell(struct arena *arena, const char *cell, const cJSON *paths,
                           const cJSON *object, int64_t now_us)
{
    const cJSON *value = NULL;
    size_t count = 0;

    json_for_each (path, paths) {
        const cJSON *found = value_at(object, path);

        if (!value)
            value = found;
        count += json_len(found);
    }
    if (str_equal(cell, "count"))
        return cJSON_CreateNumber((double)count);
    if (str_equal(cell, "number"))
        return cJSON_CreateNumber(json_double(value, 1));
    if (str_equal(cell, "age"))
        return date_cell(arena, json_string(value, ""), "<unknown>", now_us);
    if (str_equal(cell, "reference"))
        return cJSON_CreateString(reference_text(arena, value));
    return cJSON_CreateString(json_string(value, ""));
}

static cJSON *cell_of(struct arena *arena, const cJSON *column, const cJSON *object, int64_t now_us)
{
    const char *cell = json_get_string(column, "cell");
    const cJSON *definition = json_get(column, "definition"), *paths = json_get(column, "paths");
    const cJSON *value = value_at(object, json_first(paths));
    const char *type = json_get_string(definition, "type");

    if (*cell)
        return builtin_cell(arena, cell, paths, object, now_us);
    if (!value)
        return *json_get_string(definition, "format") ? cJSON_CreateString("") : cJSON_CreateNull();
    if (str_equal(type, "date"))
        return cJSON_IsString(value) ? date_cell(arena, value->valuestring, "<invalid>", now_us)
                                     : cJSON_CreateNull();
    if (str_equal(type, "integer") && json_is_number(value))
        return cJSON_CreateNumber((double)(int64_t)json_double(value, 0));
    if (str_equal(type, "number") || str_equal(type, "integer") || str_equal(type, "boolean"))
        return (str_equal(type, "boolean") ? cJSON_IsBool(value) : json_is_number(value))
                   ? json_copy(value)
                   : cJSON_CreateNull();
    if (cJSON_IsNull(value))
        return cJSON_CreateString("<nil>");
    return cJSON_CreateString(cJSON_IsString(value) ? value->valuestring
                                                    : json_text(arena, value, NULL));
}

/* --- the document ----------------------------------------------------------------------------- */

cJSON *table_create(struct arena *arena, const struct resource *resource, const cJSON *list_meta,
                    cJSON *first)
{
    cJSON *table = json_object(arena), *columns, *rows;

    json_set_string(table, "kind", "Table");
    json_set_string(table, "apiVersion", "meta.k8s.io/v1");
    json_set_copy(table, "metadata", list_meta);
    columns = json_set_array(table, "columnDefinitions");
    json_for_each (column, resource->columns)
        json_add(columns, json_copy(json_get(column, "definition")));
    rows = json_set_array(table, "rows");
    if (first)
        json_add(rows, first);
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

cJSON *partial_metadata(struct arena *arena, const cJSON *object)
{
    cJSON *partial = json_object(arena);

    json_set_string(partial, "kind", "PartialObjectMetadata");
    json_set_string(partial, "apiVersion", "meta.k8s.io/v1");
    json_set_copy(partial, "metadata", json_get(object, "metadata"));
    return partial;
}
