#include "common/schema/nodes.h"

#include "common/base/str.h"

#define MAX_SCHEMA_DEPTH 64

const struct schema SCHEMA_DEDUCED = {
    .type = SCHEMA_ANY,
    .type_name = "",
    .preserve = true,
    .limits = { SCHEMA_NO_LIMIT, SCHEMA_NO_LIMIT, SCHEMA_NO_LIMIT, SCHEMA_NO_LIMIT, SCHEMA_NO_LIMIT,
                SCHEMA_NO_LIMIT, SCHEMA_NO_LIMIT, SCHEMA_NO_LIMIT },
};

struct parser {
    struct arena *arena;
    const cJSON *definitions; /* what $ref names; NULL: none */
    struct error *err;
    int depth;
    size_t rules; /* x-kubernetes-validations so far */
};

/* --- keywords --------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    enum schema_type type;
} TYPES[] = {
    { "object", SCHEMA_OBJECT },   { "array", SCHEMA_ARRAY },   { "string", SCHEMA_STRING },
    { "integer", SCHEMA_INTEGER }, { "number", SCHEMA_NUMBER }, { "boolean", SCHEMA_BOOLEAN },
};

/* What the walkers read, and what is for people or for others. */
static const char *const KNOWN[] = {
    "type",
    "format",
    "nullable",
    "default",
    "enum",
    "pattern",
    "required",
    "properties",
    "additionalProperties",
    "items",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "description",
    "$ref",
    "allOf",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-validations",
    "x-kubernetes-group-version-kind",
};

static bool is_known(const char *keyword)
{
    for (size_t i = 0; i < ARRAY_LEN(KNOWN); i++) {
        if (str_equal(KNOWN[i], keyword))
            return true;
    }
    return false;
}

static int check_keywords(const struct parser *parser, const char *path, const cJSON *document)
{
    if (!cJSON_IsObject(document))
        return error_set(parser->err, ERROR_INVALID, "schema of '%s' is no object", path);
    json_for_each (member, document) {
        if (!is_known(member->string))
            return error_set(parser->err, ERROR_INVALID, "schema of '%s': unknown keyword '%s'",
                             path, member->string);
    }
    return 0;
}

static int parse_type(const struct parser *parser, const char *path, struct schema *schema)
{
    const char *name = json_string(json_get(schema->document, "type"), NULL);

    schema->int_or_string =
        json_bool(json_get(schema->document, "x-kubernetes-int-or-string"), false) ||
        str_equal(json_string(json_get(schema->document, "format"), NULL), "int-or-string");
    schema->type = SCHEMA_ANY;
    schema->type_name = schema->int_or_string ? "integer,string" : "";
    if (!name || schema->int_or_string)
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(TYPES); i++) {
        if (!str_equal(TYPES[i].name, name))
            continue;
        schema->type = TYPES[i].type;
        schema->type_name = TYPES[i].name;
        return 0;
    }
    return error_set(parser->err, ERROR_INVALID, "schema of '%s': unknown type '%s'", path, name);
}

static const char *const *string_list(struct arena *arena, const cJSON *array)
{
    const char **list = arena_array(arena, const char *, json_len(array) + 1);
    size_t len = 0;

    json_for_each (item, array)
        list[len++] = json_string(item, "");
    return list;
}

static int parse_list(const struct parser *parser, const char *path, struct schema *schema)
{
    const cJSON *keys = json_get(schema->document, "x-kubernetes-list-map-keys");
    const char *type = json_string(json_get(schema->document, "x-kubernetes-list-type"), "atomic");

    schema->keys = string_list(parser->arena, keys);
    if (str_equal(type, "atomic"))
        return 0;
    schema->list = str_equal(type, "set") ? SCHEMA_LIST_SET : SCHEMA_LIST_MAP;
    if (schema->list == SCHEMA_LIST_MAP && (!str_equal(type, "map") || !schema->keys[0]))
        return error_set(parser->err, ERROR_INVALID, "schema of '%s': list type '%s' without keys",
                         path, type);
    return 0;
}

static int64_t limit(const struct schema *schema, const char *name)
{
    return json_int(json_get(schema->document, name), SCHEMA_NO_LIMIT);
}

static void parse_patch(struct schema *schema)
{
    const char *strategy =
        json_string(json_get(schema->document, "x-kubernetes-patch-strategy"), "");

    schema->merge_key =
        json_string(json_get(schema->document, "x-kubernetes-patch-merge-key"), NULL);
    schema->patch_merge = str_has_prefix(strategy, "merge");
    schema->map_atomic =
        str_equal(json_string(json_get(schema->document, "x-kubernetes-map-type"), NULL), "atomic");
}

static void parse_limits(struct schema *schema)
{
    const cJSON *document = schema->document;

    schema->limits = (struct schema_limits){
        .min = limit(schema, "minimum"),
        .max = limit(schema, "maximum"),
        .min_length = limit(schema, "minLength"),
        .max_length = limit(schema, "maxLength"),
        .min_items = limit(schema, "minItems"),
        .max_items = limit(schema, "maxItems"),
        .min_properties = limit(schema, "minProperties"),
        .max_properties = limit(schema, "maxProperties"),
    };
    schema->format = json_string(json_get(document, "format"), NULL);
    schema->nullable = json_bool(json_get(document, "nullable"), false);
    schema->preserve = json_bool(json_get(document, "x-kubernetes-preserve-unknown-fields"), false);
    schema->required = json_get(document, "required");
    schema->values = json_get(document, "enum");
    schema->initial = json_get(document, "default");
}

static void release_regex(void *regex)
{
    regfree(regex);
}

/* RE2 as POSIX has it. No text holds NUL, so a pattern need not speak of it. */
static int parse_pattern(const struct parser *parser, const char *path, struct schema *schema)
{
    schema->pattern = json_string(json_get(schema->document, "pattern"), NULL);
    if (!schema->pattern)
        return 0;

    char *posix = arena_strdup(parser->arena, schema->pattern);
    char *nul = strstr(posix, "\\x00");

    if (nul)
        memmove(nul, nul + 4, strlen(nul + 4) + 1);
    if (regcomp(&schema->regex, posix, REG_EXTENDED | REG_NOSUB) != 0)
        return error_set(parser->err, ERROR_INVALID, "schema of '%s': pattern '%s'", path,
                         schema->pattern);
    arena_own(parser->arena, &schema->regex, release_regex);
    return 0;
}

/* --- the tree --------------------------------------------------------------------------------- */

static int parse_node(struct parser *parser, const char *path, const cJSON *document,
                      const struct schema **ret);

static int compare_fields(const void *a, const void *b)
{
    return strcmp(((const struct schema_field *)a)->name, ((const struct schema_field *)b)->name);
}

static int parse_fields(struct parser *parser, const char *path, struct schema *schema)
{
    const cJSON *properties = json_get(schema->document, "properties");

    schema->fields = arena_array(parser->arena, struct schema_field, json_len(properties) + 1);
    json_for_each (member, properties) {
        struct schema_field *field = &schema->fields[schema->fields_len++];

        field->name = member->string;
        int r = parse_node(parser, schema_path_member(parser->arena, path, member->string), member,
                           &field->schema);
        if (r < 0)
            return r;
    }
    qsort(schema->fields, schema->fields_len, sizeof(*schema->fields), compare_fields);
    return 0;
}

static int parse_children(struct parser *parser, const char *path, struct schema *schema)
{
    const cJSON *additional = json_get(schema->document, "additionalProperties");
    const cJSON *items = json_get(schema->document, "items");

    int r = parse_fields(parser, path, schema);
    if (r == 0 && cJSON_IsTrue(additional))
        schema->preserve = true;
    else if (r == 0 && additional)
        r = parse_node(parser, arena_printf(parser->arena, "%s[*]", path), additional,
                       &schema->additional);
    if (r == 0 && items)
        r = parse_node(parser, arena_printf(parser->arena, "%s[]", path), items, &schema->items);
    if (schema->definition && schema->type == SCHEMA_OBJECT && !schema->fields_len && !additional)
        schema->preserve = true; /* FieldsV1: Go has no struct for it */
    if (r == 0 && schema->type == SCHEMA_ARRAY && !items)
        r = error_set(parser->err, ERROR_INVALID, "schema of '%s': an array without items", path);
    return r;
}

/* "$ref", also as the only member of allOf, where others stand beside it. */
static const char *reference_of(const cJSON *document)
{
    const cJSON *all_of = json_get(document, "allOf");
    const char *reference = json_string(json_get(document, "$ref"), NULL);

    if (!reference && json_len(all_of) == 1)
        reference = json_string(json_get(json_first(all_of), "$ref"), NULL);
    return reference;
}

/* What stands beside the reference (description, default, map type) goes before what it names. */
static const cJSON *resolved(const struct parser *parser, const cJSON *document,
                             struct schema *schema)
{
    const char *reference = reference_of(document);
    const char *name = reference ? strrchr(reference, '/') : NULL;
    const cJSON *definition = name ? json_get(parser->definitions, name + 1) : NULL;

    if (!definition)
        return document;

    schema->definition = strrchr(reference, '.') ? strrchr(reference, '.') + 1 : name + 1;
    cJSON *merged = arena_own(parser->arena, json_copy(definition), json_free);
    json_for_each (member, document) {
        if (!str_equal(member->string, "$ref") && !str_equal(member->string, "allOf"))
            json_set_copy(merged, member->string, member);
    }
    return merged;
}

static int parse_node(struct parser *parser, const char *path, const cJSON *document,
                      const struct schema **ret)
{
    struct schema *schema = arena_new(parser->arena, struct schema);
    size_t rules = parser->rules;

    if (parser->depth >= MAX_SCHEMA_DEPTH)
        return error_set(parser->err, ERROR_INVALID, "schema of '%s' is too deep", path);
    parser->depth++;
    schema->document = resolved(parser, document, schema);
    int r = check_keywords(parser, path, schema->document);
    if (r == 0)
        r = parse_type(parser, path, schema);
    if (r == 0)
        r = parse_list(parser, path, schema);
    if (r == 0)
        r = parse_pattern(parser, path, schema);
    if (r < 0)
        return r;
    parse_limits(schema);
    parse_patch(schema);
    parser->rules += json_get(schema->document, "x-kubernetes-validations") != NULL;
    r = parse_children(parser, path, schema);
    schema->has_rules = parser->rules > rules;
    parser->depth--;
    *ret = schema;
    return r;
}

int schema_parse(struct arena *arena, const cJSON *document, const cJSON *definitions,
                 const struct schema **ret, struct error *err)
{
    struct parser parser = { .arena = arena, .definitions = definitions, .err = err };

    return parse_node(&parser, "", document, ret);
}

/* --- looking into it -------------------------------------------------------------------------- */

const struct schema *schema_field(const struct schema *schema, const char *name)
{
    const struct schema_field key = { .name = name };
    const struct schema_field *found;

    if (!schema->fields_len)
        return NULL;
    found = bsearch(&key, schema->fields, schema->fields_len, sizeof(key), compare_fields);
    return found ? found->schema : NULL;
}

const struct schema *schema_member(const struct schema *schema, const char *name)
{
    const struct schema *field = schema_field(schema, name);

    return field ? field : schema->additional;
}

const char *schema_path_member(struct arena *arena, const char *path, const char *name)
{
    return *path ? arena_printf(arena, "%s.%s", path, name) : name;
}

const char *schema_path_item(struct arena *arena, const char *path, size_t index)
{
    return arena_printf(arena, "%s[%zu]", path, index);
}
