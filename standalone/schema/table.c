#include "standalone/schema/table.h"

#include "common/base/clock.h"
#include "common/base/str.h"
#include "standalone/schema/ages.h"

bool table_include_parse(const char *text, enum table_include *ret)
{
    static const struct {
        const char *text;
        enum table_include include;
    } VALUES[] = {
        { "", TABLE_METADATA },
        { "Metadata", TABLE_METADATA },
        { "None", TABLE_NONE },
        { "Object", TABLE_OBJECT },
    };

    for (size_t i = 0; i < ARRAY_LEN(VALUES); i++) {
        if (str_equal(VALUES[i].text, text)) {
            *ret = VALUES[i].include;
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

static cJSON *cell_of(struct arena *arena, const struct resource_column *column,
                      const cJSON *object, int64_t now_us)
{
    const cJSON *value = value_at(arena, object, column->path);

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

static const char *version_of(const struct table_options *options)
{
    return str_equal(options->version, "v1beta1") ? "v1beta1" : "v1";
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
    json_set_string(table, "apiVersion",
                    arena_printf(arena, "meta.k8s.io/%s", version_of(options)));
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
        json_set_copy(row, "object", partial_metadata(arena, object, version_of(options)));
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

cJSON *partial_metadata(struct arena *arena, const cJSON *object, const char *version)
{
    cJSON *partial = json_object(arena);

    json_set_string(partial, "kind", "PartialObjectMetadata");
    json_set_string(partial, "apiVersion", arena_printf(arena, "meta.k8s.io/%s", version));
    json_set_copy(partial, "metadata", json_get(object, "metadata"));
    return partial;
}
