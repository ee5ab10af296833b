#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/str.h"
#include "standalone/api/selector.h"
#include "standalone/schema/name_rules.h"

enum operation { EXISTS, NOT_EXISTS, IN, NOT_IN, GREATER, LESS };

#define MAX_TOKEN 40

struct requirement {
    const char *key;
    enum operation operation;
    const char **values; /* sorted, each once */
    size_t values_len;
};
struct label_selector {
    struct requirement items[SELECTOR_MAX_REQUIREMENTS];
    size_t len;
};

struct parser {
    struct arena *arena;
    const char *at;
    const char **ret_why;
};

/* Not error_set: an error has no room for the words of a rule. */
static int fail(struct parser *parser, const char *format, ...) PRINTF_LIKE(2, 3);
static int fail(struct parser *parser, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    *parser->ret_why = arena_vprintf(parser->arena, format, args);
    va_end(args);
    return -ERROR_INVALID;
}

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
    return fail(parser, "unable to parse requirement: found '%.*s'%s", (int)token_len(parser->at),
                parser->at, expected);
}

/* Between requirements there is no requirement. */
static int refuse_start(struct parser *parser)
{
    return fail(parser, "found '%.*s', expected: !, identifier, or 'end of string'",
                (int)token_len(parser->at), parser->at);
}

/* There are as many as the request line has room for. */
static void add_value(struct parser *parser, struct requirement *requirement, const char *value)
{
    size_t len = requirement->values_len;

    if ((len & (len - 1)) == 0) { /* 1, 2, 4, …: all are taken */
        const char **values = arena_array(parser->arena, const char *, len ? 2 * len : 1);

        if (len)
            memcpy(values, requirement->values, len * sizeof(*values));
        requirement->values = values;
    }
    requirement->values[requirement->values_len++] = value;
}

static int read_list(struct parser *parser, struct requirement *ret)
{
    skip_blanks(parser);
    if (!take(parser, "("))
        return refuse(parser, " expected: '('");
    for (;;) {
        add_value(parser, ret, read_word(parser));
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
    add_value(parser, ret, read_word(parser));
    return 0;
}

static int read_operator(struct parser *parser, struct requirement *ret)
{
    if (!*parser->at || *parser->at == ',') {
        ret->operation = EXISTS;
        return 0;
    }
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
        return fail(parser,
                    "unable to parse requirement: values[0]: Invalid value: \"%.60s\": for "
                    "'Gt', 'Lt' operators, the value must be an integer",
                    requirement->values[0]);
    return 0;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A set, as Go has it. */
static void sort_values(struct requirement *requirement)
{
    const char **values = requirement->values;
    size_t len = 0;

    if (!values)
        return;
    qsort(values, requirement->values_len, sizeof(*values), compare_texts);
    for (size_t i = 0; i < requirement->values_len; i++) {
        if (!len || !str_equal(values[i], values[len - 1]))
            values[len++] = values[i];
    }
    requirement->values_len = len;
}

/* What stands behind `Invalid value: "…": `, or `"…"...: ` of a long one. */
static const char *behind_value(const char *message)
{
    const char *at = strchr(message, '"') + 1;

    while (*at != '"')
        at += *at == '\\' ? 2 : 1;
    return strstr(at, ": ") + strlen(": ");
}

/* Of a key there is one error, without a path, that has all the rules in it. */
static int check_key(struct parser *parser, const char *key)
{
    struct field_errors *errors = field_errors_create(parser->arena);
    const char *words = NULL;

    check_qualified_name(errors, "key", key, key);
    if (!field_errors_count(errors))
        return 0;
    json_for_each (cause, field_errors_causes(errors)) {
        const char *message = json_string(json_get(cause, "message"), "");

        words =
            words ? arena_printf(parser->arena, "%s; %s", words, behind_value(message)) : message;
    }
    return fail(parser, "unable to parse requirement: <nil>: %s", words);
}

/* labels.NewRequirement: nothing could ever have such a key or value. */
static int check_words(struct parser *parser, const struct requirement *requirement)
{
    static const char BEFORE[] = " is invalid: ";
    struct arena *arena = parser->arena;
    struct field_errors *errors = field_errors_create(arena);

    int r = check_key(parser, requirement->key);
    if (r < 0)
        return r;
    for (size_t i = 0; i < requirement->values_len; i++)
        check_label_value(errors, arena_printf(arena, "values[%zu][%s]", i, requirement->key),
                          requirement->values[i]);
    if (!field_errors_count(errors))
        return 0;

    const char *message =
        json_string(json_get(field_errors_status(errors, "", "", ""), "message"), BEFORE);

    return fail(parser, "unable to parse requirement: %s",
                strstr(message, BEFORE) + strlen(BEFORE));
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
        return check_words(parser, ret);
    }

    int r = read_operator(parser, ret);
    sort_values(ret);
    if (r == 0)
        r = check_words(parser, ret);
    return r < 0 ? r : check_numbers(parser, ret);
}

int label_selector_parse(struct arena *arena, const char *text, const struct label_selector **ret,
                         const char **ret_why)
{
    struct label_selector *selector = arena_new(arena, struct label_selector);
    struct parser parser = { arena, text, ret_why };

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
            return fail(&parser, "found '', expected: identifier after ','");
    }
    *ret = selector;
    return 0;
}

static bool has_value(const struct requirement *requirement, const char *value)
{
    return bsearch(&value, requirement->values, requirement->values_len, sizeof(value),
                   compare_texts);
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
