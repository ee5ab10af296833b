#include "standalone/api/selection.h"

#include <ctype.h>
#include <string.h>

#include "common/base/str.h"
#include "standalone/api/stored.h"

enum selection_operation { EXISTS, NOT_EXISTS, IN, NOT_IN };

struct requirement {
    const char *key;
    enum selection_operation operation;
    const char **values;
    size_t values_len;
};
struct selector {
    struct requirement items[SELECTION_MAX_REQUIREMENTS];
    size_t len;
};

struct selection_parser {
    struct arena *arena;
    const struct resource *resource;
    const char *at;
    struct error *err;
};

static int selection_refuse(struct selection_parser *parser, const char *expected)
{
    return error_set(parser->err, ERROR_INVALID,
                     "unable to parse requirement: found '%.40s' expected: %s", parser->at,
                     expected);
}

static void selection_skip_blanks(struct selection_parser *parser)
{
    while (isspace((unsigned char)*parser->at))
        parser->at++;
}

static bool selection_take(struct selection_parser *parser, const char *text)
{
    selection_skip_blanks(parser);
    if (!str_has_prefix(parser->at, text))
        return false;
    parser->at += strlen(text);
    return true;
}

/* The array is made with the first value, for as many as there may be. */
static int selection_add_value(struct selection_parser *parser, struct requirement *requirement,
                               const char *value)
{
    if (!requirement->values)
        requirement->values = arena_array(parser->arena, const char *, SELECTION_MAX_VALUES);
    if (requirement->values_len == SELECTION_MAX_VALUES)
        return error_set(parser->err, ERROR_INVALID, "selector: more than %d values",
                         SELECTION_MAX_VALUES);
    requirement->values[requirement->values_len++] = value;
    return 0;
}

/* --- labels ----------------------------------------------------------------------------------- */

/* A key or a value: up to what has a meaning of its own. */
static const char *selection_read_word(struct selection_parser *parser)
{
    selection_skip_blanks(parser);

    size_t len = strcspn(parser->at, ",()=!<> \t\r\n");
    const char *word = arena_strndup(parser->arena, parser->at, len);

    parser->at += len;
    selection_skip_blanks(parser);
    return word;
}

static int selection_read_operator(struct selection_parser *parser, struct requirement *ret)
{
    static const struct {
        const char *text;
        enum selection_operation operation;
        bool is_list;
    } OPERATORS[] = {
        { "!=", NOT_IN, false },   { "==", IN, false }, { "=", IN, false },
        { "notin", NOT_IN, true }, { "in", IN, true },
    };

    size_t i = 0;
    int r;

    while (i < ARRAY_LEN(OPERATORS) && !selection_take(parser, OPERATORS[i].text))
        i++;
    if (i == ARRAY_LEN(OPERATORS))
        return *parser->at && *parser->at != ',' ? selection_refuse(parser, "an operator") : 0;
    if (OPERATORS[i].is_list && !selection_take(parser, "("))
        return selection_refuse(parser, "'('");
    ret->operation = OPERATORS[i].operation;
    do
        r = selection_add_value(parser, ret, selection_read_word(parser));
    while (r == 0 && OPERATORS[i].is_list && selection_take(parser, ","));
    if (r == 0 && OPERATORS[i].is_list && !selection_take(parser, ")"))
        r = selection_refuse(parser, "',' or ')'");
    return r;
}

static int selection_read_label(struct selection_parser *parser, struct requirement *ret)
{
    bool negated = selection_take(parser, "!");
    int r = 0;

    ret->operation = negated ? NOT_EXISTS : EXISTS;
    ret->key = selection_read_word(parser);
    if (!negated)
        r = selection_read_operator(parser, ret);
    return r == 0 && !*ret->key ? selection_refuse(parser, "a key") : r;
}

/* --- fields ----------------------------------------------------------------------------------- */

/* A kind that is never there can be selected by any field. */
static bool selection_has_field(const struct resource *resource, const char *field)
{
    if (resource->absent || str_equal(field, "metadata.name") ||
        (resource->kind.namespaced && str_equal(field, "metadata.namespace")))
        return true;
    json_for_each (known, resource->fields) {
        if (str_equal(json_string(known, ""), field))
            return true;
    }
    return false;
}

static int selection_read_field(struct selection_parser *parser, struct requirement *ret)
{
    size_t len = strcspn(parser->at, "=!,");
    const char *value;

    ret->key = arena_strndup(parser->arena, parser->at, len);
    parser->at += len;
    ret->operation = *parser->at == '!' ? NOT_IN : IN;
    parser->at += *parser->at == '!';
    if (*parser->at != '=')
        return selection_refuse(parser, "=, == or !=");
    parser->at += 1 + (parser->at[1] == '=');
    value = parser->at;
    parser->at += strcspn(value, ",");
    (void)selection_add_value(parser, ret,
                              arena_strndup(parser->arena, value, (size_t)(parser->at - value)));
    if (!selection_has_field(parser->resource, ret->key))
        return error_set(parser->err, ERROR_INVALID, "field label not supported: %.100s", ret->key);
    return 0;
}

static const char *selection_field(const cJSON *object, const char *path)
{
    const cJSON *value = object;
    char part[64];

    for (const char *at = path; value && *at;) {
        size_t len = strcspn(at, ".");

        if (len >= sizeof(part))
            return "";
        memcpy(part, at, len);
        part[len] = '\0';
        value = json_get(value, part);
        at += len + (at[len] == '.');
    }
    if (!value && str_equal(path, "reportingComponent"))
        value = json_get(object, "reportingController");
    if (str_equal(path, "source"))
        value = json_get(value, "component");
    return json_string(value, "");
}

/* --- both ------------------------------------------------------------------------------------- */

typedef int selection_read_fn(struct selection_parser *parser, struct requirement *ret);

static int selection_read_all(struct selection_parser *parser, selection_read_fn *read,
                              const struct selector **ret)
{
    struct selector *selector = arena_new(parser->arena, struct selector);

    selection_skip_blanks(parser);
    while (*parser->at) {
        if (selector->len == SELECTION_MAX_REQUIREMENTS)
            return error_set(parser->err, ERROR_INVALID, "selector: more than %d requirements",
                             SELECTION_MAX_REQUIREMENTS);

        int r = read(parser, &selector->items[selector->len++]);
        if (r < 0)
            return r;

        bool more = selection_take(parser, ",");

        selection_skip_blanks(parser);
        if (more != (*parser->at != '\0'))
            return selection_refuse(parser, more ? "identifier after ','" : "','");
    }
    *ret = selector;
    return 0;
}

int selection_parse(struct arena *arena, const struct resource *resource, const char *labels,
                    const char *fields, struct selection *ret, struct error *err)
{
    struct selection_parser parser = { arena, resource, labels, err };

    ret->resource = resource;

    int r = selection_read_all(&parser, selection_read_label, &ret->labels);
    if (r < 0)
        return r;

    parser.at = fields;
    return selection_read_all(&parser, selection_read_field, &ret->fields);
}

bool selection_is_empty(const struct selection *selection)
{
    return !selection->labels->len && !selection->fields->len;
}

/* value NULL: there is none. */
static bool requirement_is_met(const struct requirement *requirement, const char *value)
{
    bool is_one = false;

    for (size_t i = 0; value && !is_one && i < requirement->values_len; i++)
        is_one = str_equal(value, requirement->values[i]);
    switch (requirement->operation) {
    case EXISTS:
        return value;
    case NOT_EXISTS:
        return !value;
    case IN:
        return is_one;
    case NOT_IN:
        break;
    }
    return !is_one;
}

bool selection_matches(const struct selection *selection, const cJSON *object)
{
    const cJSON *labels = json_path(object, "metadata", "labels", NULL);

    for (size_t i = 0; i < selection->labels->len; i++) {
        const struct requirement *item = &selection->labels->items[i];

        if (!requirement_is_met(item, json_string(json_get(labels, item->key), NULL)))
            return false;
    }
    for (size_t i = 0; i < selection->fields->len; i++) {
        const struct requirement *item = &selection->fields->items[i];

        if (!requirement_is_met(item, selection_field(object, item->key)))
            return false;
    }
    return true;
}

int selection_takes(const struct selection *selection, struct arena *arena,
                    const struct kv_value *value, uint64_t revision, cJSON **ret_tree,
                    struct error *err)
{
    if (selection_is_empty(selection))
        return 1;

    int r = stored_tree(arena, selection->resource, value, revision, ret_tree, err);
    return r < 0 ? r : selection_matches(selection, *ret_tree);
}
