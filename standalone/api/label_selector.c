#include <ctype.h>
#include <string.h>

#include "common/base/str.h"
#include "standalone/api/selector.h"

enum operation { EXISTS, NOT_EXISTS, IN, NOT_IN, GREATER, LESS };

#define MAX_VALUES 64
#define MAX_TOKEN 40

struct requirement {
    const char *key;
    enum operation operation;
    const char **values;
    size_t values_len;
};
struct label_selector {
    struct requirement items[SELECTOR_MAX_REQUIREMENTS];
    size_t len;
};

struct parser {
    struct arena *arena;
    const char *at;
    struct error *err;
};

static void skip_blanks(struct parser *parser)
{
    while (isspace((unsigned char)*parser->at))
        parser->at++;
}

/* A key or a value: up to what has a meaning of its own. */
static const char *read_word(struct parser *parser)
{
    skip_blanks(parser);

    size_t len = strcspn(parser->at, ",()=!<> \t\r\n");
    const char *word = arena_strndup(parser->arena, parser->at, len);

    parser->at += len;
    skip_blanks(parser);
    return word;
}

static bool take(struct parser *parser, const char *text)
{
    if (!str_has_prefix(parser->at, text))
        return false;
    parser->at += strlen(text);
    return true;
}

/* The token that stands there, as the lexer of labels.Parse has it. */
static size_t token_len(const char *at)
{
    static const char *const SIGNS[] = { "!=", "==", "=", "!", "<", ">", "(", ")", "," };

    for (size_t i = 0; i < ARRAY_LEN(SIGNS); i++) {
        if (str_has_prefix(at, SIGNS[i]))
            return strlen(SIGNS[i]);
    }
    return str_utf8_cut(at, strcspn(at, ",()=!<> \t\r\n"), MAX_TOKEN);
}

static int refuse(struct parser *parser, const char *expected)
{
    return error_set(parser->err, ERROR_INVALID, "unable to parse requirement: found '%.*s'%s",
                     (int)token_len(parser->at), parser->at, expected);
}

/* Between requirements there is no requirement. */
static int refuse_start(struct parser *parser)
{
    return error_set(parser->err, ERROR_INVALID,
                     "found '%.*s', expected: !, identifier, or 'end of string'",
                     (int)token_len(parser->at), parser->at);
}

static int read_list(struct parser *parser, struct requirement *ret)
{
    skip_blanks(parser);
    if (!take(parser, "("))
        return refuse(parser, " expected: '('");
    for (;;) {
        if (ret->values_len == MAX_VALUES)
            return refuse(parser, ", expected: no more values");
        ret->values[ret->values_len++] = read_word(parser);
        if (take(parser, ")"))
            return 0;
        if (!take(parser, ","))
            return refuse(parser, *parser->at ? ", expected: ',' or ')'"
                                              : ", expected: ',', ')' or identifier");
    }
}

static int read_one_value(struct parser *parser, enum operation operation, struct requirement *ret)
{
    ret->operation = operation;
    ret->values[ret->values_len++] = read_word(parser);
    return 0;
}

static int read_operator(struct parser *parser, struct requirement *ret)
{
    if (!*parser->at || *parser->at == ',') {
        ret->operation = EXISTS;
        return 0;
    }
    ret->values = arena_array(parser->arena, const char *, MAX_VALUES);
    if (take(parser, "!="))
        return read_one_value(parser, NOT_IN, ret);
    if (take(parser, "==") || take(parser, "="))
        return read_one_value(parser, IN, ret);
    if (take(parser, ">"))
        return read_one_value(parser, GREATER, ret);
    if (take(parser, "<"))
        return read_one_value(parser, LESS, ret);
    if (take(parser, "notin")) {
        ret->operation = NOT_IN;
        return read_list(parser, ret);
    }
    if (take(parser, "in")) {
        ret->operation = IN;
        return read_list(parser, ret);
    }
    return refuse(parser, ", expected: in, notin, =, ==, !=, gt, lt");
}

static int check_numbers(struct parser *parser, const struct requirement *requirement)
{
    int64_t number;

    if ((requirement->operation == GREATER || requirement->operation == LESS) &&
        !str_to_int64(requirement->values[0], &number))
        return error_set(parser->err, ERROR_INVALID,
                         "unable to parse requirement: values[0]: Invalid value: \"%.60s\": for "
                         "'Gt', 'Lt' operators, the value must be an integer",
                         requirement->values[0]);
    return 0;
}

static int read_requirement(struct parser *parser, struct requirement *ret)
{
    skip_blanks(parser);

    bool negated = take(parser, "!");

    ret->key = read_word(parser);
    if (!*ret->key)
        return refuse_start(parser);
    if (negated) {
        ret->operation = NOT_EXISTS;
        return 0;
    }

    int r = read_operator(parser, ret);
    return r < 0 ? r : check_numbers(parser, ret);
}

int label_selector_parse(struct arena *arena, const char *text, const struct label_selector **ret,
                         struct error *err)
{
    struct label_selector *selector = arena_new(arena, struct label_selector);
    struct parser parser = { arena, text, err };

    skip_blanks(&parser);
    while (*parser.at) {
        if (selector->len == SELECTOR_MAX_REQUIREMENTS)
            return refuse(&parser, ", expected: no more requirements");

        int r = read_requirement(&parser, &selector->items[selector->len++]);
        if (r < 0)
            return r;

        skip_blanks(&parser);
        if (*parser.at && !take(&parser, ","))
            return refuse(&parser, ", expected: ',' or 'end of string'");
        skip_blanks(&parser);
        if (!*parser.at && parser.at[-1] == ',')
            return error_set(err, ERROR_INVALID, "found '', expected: identifier after ','");
    }
    *ret = selector;
    return 0;
}

static bool has_value(const struct requirement *requirement, const char *value)
{
    for (size_t i = 0; i < requirement->values_len; i++) {
        if (str_equal(requirement->values[i], value))
            return true;
    }
    return false;
}

static bool compares(const struct requirement *requirement, const char *value)
{
    int64_t number, limit;

    if (!value || !str_to_int64(value, &number) || !str_to_int64(requirement->values[0], &limit))
        return false;
    return requirement->operation == GREATER ? number > limit : number < limit;
}

static bool matches(const struct requirement *requirement, const cJSON *labels)
{
    const char *value = json_string(json_get(labels, requirement->key), NULL);

    switch (requirement->operation) {
    case EXISTS:
        return value;
    case NOT_EXISTS:
        return !value;
    case IN:
        return value && has_value(requirement, value);
    case NOT_IN:
        return !value || !has_value(requirement, value);
    case GREATER:
    case LESS:
        return compares(requirement, value);
    }
    return false;
}

bool label_selector_matches(const struct label_selector *selector, const cJSON *object)
{
    const cJSON *labels = json_path(object, "metadata", "labels", NULL);

    for (size_t i = 0; i < selector->len; i++) {
        if (!matches(&selector->items[i], labels))
            return false;
    }
    return true;
}

bool label_selector_is_empty(const struct label_selector *selector)
{
    return !selector->len;
}
