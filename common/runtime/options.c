#include "common/runtime/options.h"

#include <assert.h>
#include <ctype.h>

#include "common/base/buf.h"
#include "common/base/str.h"
#include "common/base/version.h"
#include "common/runtime/options_completion.h"
#include "common/runtime/options_help.h"

/* Longer values are cut in messages. */
#define MAX_SHOWN 60
/* Names longer than this get no suggestion. */
#define MAX_SUGGESTED 63

/* Where a value came from, for messages: "--lease-duration" or the variable's name. */
struct given {
    const struct option *option;
    const char *as;
    const char *value;
};

struct parser {
    struct arena *arena;
    const struct option_program *program;
    const struct option *table;
    size_t len;
    void *ret;
    bool *is_set; /* for each of the table */
};

/* For a message: quoted, cut, one line; secrets not at all. */
static const char *shown(struct arena *arena, const struct given *given)
{
    if (given->option->secret)
        return "the value";

    char *text = arena_printf(arena, "'%.*s'", MAX_SHOWN, given->value);
    for (char *c = text; *c; c++) {
        if (iscntrl((unsigned char)*c))
            *c = '?';
    }
    return text;
}

static const char *duration_text(struct arena *arena, int64_t ms)
{
    static const struct {
        int64_t ms;
        const char *unit;
    } UNITS[] = { { 3600000, "h" }, { 60000, "m" }, { 1000, "s" }, { 1, "ms" } };
    const char *text = "";

    for (size_t i = 0; i < ARRAY_LEN(UNITS); i++) {
        if (ms >= UNITS[i].ms)
            text =
                arena_printf(arena, "%s%lld%s", text, (long long)(ms / UNITS[i].ms), UNITS[i].unit);
        ms %= UNITS[i].ms;
    }
    return *text ? text : "0s";
}

static const char *limit_text(struct arena *arena, const struct option *option, int64_t limit)
{
    if (option->type == OPTION_DURATION)
        return duration_text(arena, limit);
    return arena_printf(arena, "%lld", (long long)limit);
}

static bool has_limits(const struct option *option)
{
    return option->min || option->max;
}

/* " (1 to 64)", or nothing without limits. */
static const char *range_text(struct arena *arena, const struct option *option)
{
    if (!has_limits(option))
        return "";
    return arena_printf(arena, " (%s to %s)", limit_text(arena, option, option->min),
                        limit_text(arena, option, option->max));
}

static int refuse(struct parser *parser, const struct given *given, const char *what,
                  const char *allowed, struct error *err)
{
    return error_set(err, ERROR_INVALID, "%s: %s is %s%s", given->as, shown(parser->arena, given),
                     what, allowed);
}

static int set_string(struct parser *parser UNUSED, const struct given *given, void *member,
                      struct error *err UNUSED)
{
    *(const char **)member = given->value;
    return 0;
}

static int add_string(struct parser *parser, const char *as, const char *value,
                      struct str_list *strings, struct error *err)
{
    if (!strings->items)
        strings->items = arena_array(parser->arena, const char *, OPTION_MAX_STRINGS);
    if (strings->len == OPTION_MAX_STRINGS)
        return error_set(err, ERROR_INVALID, "%s: more than %d values", as, OPTION_MAX_STRINGS);
    strings->items[strings->len++] = value;
    return 0;
}

static int set_strings(struct parser *parser, const struct given *given, void *member,
                       struct error *err)
{
    return add_string(parser, given->as, given->value, member, err);
}

static int set_bool(struct parser *parser, const struct given *given, void *member,
                    struct error *err)
{
    if (!str_to_bool(given->value, member))
        return refuse(parser, given, "neither true nor false", "", err);
    return 0;
}

static int set_integer(struct parser *parser, const struct given *given, void *member,
                       struct error *err)
{
    const struct option *option = given->option;
    bool is_duration = option->type == OPTION_DURATION;
    int64_t value;

    if (is_duration && !str_to_duration_ms(given->value, &value))
        return refuse(parser, given, "not a duration", " (examples: 30s, 1m30s)", err);
    if (!is_duration && !str_to_int64(given->value, &value))
        return refuse(parser, given, "not an integer", range_text(parser->arena, option), err);
    if (has_limits(option) && (value < option->min || value > option->max))
        return refuse(parser, given, "out of range", range_text(parser->arena, option), err);
    *(int64_t *)member = value;
    return 0;
}

static int set_double(struct parser *parser, const struct given *given, void *member,
                      struct error *err)
{
    const struct option *option = given->option;
    double value;

    if (!str_to_double(given->value, &value))
        return refuse(parser, given, "not a number", range_text(parser->arena, option), err);
    if (has_limits(option) && (value < (double)option->min || value > (double)option->max))
        return refuse(parser, given, "out of range", range_text(parser->arena, option), err);
    *(double *)member = value;
    return 0;
}

static int set_choice(struct parser *parser, const struct given *given, void *member,
                      struct error *err)
{
    const char *allowed = "";

    for (const char *const *choice = given->option->choices; *choice; choice++) {
        if (str_equal(*choice, given->value)) {
            *(const char **)member = *choice;
            return 0;
        }
        allowed = arena_printf(parser->arena, "%s%s%s", allowed, *allowed ? ", " : "", *choice);
    }
    return refuse(parser, given, "not one of ", allowed, err);
}

typedef int set_fn(struct parser *parser, const struct given *given, void *member,
                   struct error *err);

static int set(struct parser *parser, const struct given *given, struct error *err)
{
    static set_fn *const SETTERS[] = {
        [OPTION_STRING] = set_string, [OPTION_STRINGS] = set_strings,
        [OPTION_BOOL] = set_bool,     [OPTION_INT] = set_integer,
        [OPTION_DOUBLE] = set_double, [OPTION_DURATION] = set_integer,
        [OPTION_CHOICE] = set_choice,
    };

    parser->is_set[given->option - parser->table] = true;
    return SETTERS[given->option->type](parser, given, (char *)parser->ret + given->option->offset,
                                        err);
}

/* A value in which a list may be one text. */
static int set_listed(struct parser *parser, const struct given *given, struct error *err)
{
    if (given->option->type != OPTION_STRINGS || given->option->whole)
        return set(parser, given, err);

    if (given->option->needs_value && !given->value[strspn(given->value, ",")])
        return refuse(parser, given, "a list without a value", "", err);
    for (const char *rest = given->value; *rest;) {
        size_t len = strcspn(rest, ",");
        struct given one = *given;

        one.value = arena_strndup(parser->arena, rest, len);
        int r = *one.value ? set(parser, &one, err) : 0;
        if (r < 0)
            return r;
        rest += len + (rest[len] == ',');
    }
    return 0;
}

static int set_from_environment(struct parser *parser, const struct option *option,
                                const char *variable, struct error *err)
{
    const char *value = getenv(variable);

    if (str_is_empty(value))
        return 0;

    struct given given = { option, variable, arena_strdup(parser->arena, value) };
    return set_listed(parser, &given, err);
}

static const char *variable_of(struct arena *arena, const struct option *option)
{
    char *variable = arena_printf(arena, PRODUCT_ENVIRONMENT "%s", option->name);

    for (char *c = variable + strlen(PRODUCT_ENVIRONMENT); *c; c++)
        *c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
    return variable;
}

/* What the command line did not set. */
static int set_rest(struct parser *parser, struct error *err)
{
    for (size_t i = 0; i < parser->len; i++) {
        const struct option *option = &parser->table[i];

        if (parser->is_set[i])
            continue;
        int r = 0;
        if (!parser->program->only_flags)
            r = set_from_environment(parser, option, variable_of(parser->arena, option), err);
        if (r < 0)
            return r;
        if (!parser->is_set[i] && option->environment)
            r = set_from_environment(parser, option, option->environment, err);
        if (r < 0)
            return r;
        if (parser->is_set[i] || !option->fallback)
            continue;

        struct given given = { option, option->name, option->fallback };
        r = set_listed(parser, &given, err);
        assert(r == 0); /* a fallback that its own option refuses */
    }
    return 0;
}

/* Levenshtein's distance. */
static size_t distance(const char *a, const char *b)
{
    size_t a_len = strlen(a);
    size_t b_len = strlen(b);
    size_t row[MAX_SUGGESTED + 1];

    if (a_len > MAX_SUGGESTED || b_len > MAX_SUGGESTED)
        return SIZE_MAX;
    for (size_t j = 0; j <= b_len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t changed = diagonal + (a[i - 1] != b[j - 1]);
            size_t added = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;

            diagonal = row[j];
            row[j] = changed < added ? changed : added;
        }
    }
    return row[b_len];
}

/* NULL: none is near. */
static const char *suggestion(const struct parser *parser, const char *name)
{
    size_t nearest = strlen(name) / 4 + 2; /* fewer changes than that */
    const char *suggested = NULL;

    for (size_t i = 0; i < parser->len; i++) {
        size_t changes = distance(name, parser->table[i].name);

        if (changes < nearest) {
            nearest = changes;
            suggested = parser->table[i].name;
        }
    }
    return suggested;
}

/* arg: "--nmae" or "-name=value"; the value is not printed, it may be a secret. */
static int refuse_unknown(struct parser *parser, const char *arg, struct error *err)
{
    struct option none = { 0 };
    struct given given = { &none, arg, arena_strndup(parser->arena, arg, strcspn(arg, "=")) };
    const char *suggested = suggestion(parser, given.value + strspn(given.value, "-"));

    if (suggested)
        return error_set(err, ERROR_INVALID, "unknown flag %s (did you mean '--%s'?)",
                         shown(parser->arena, &given), suggested);
    return error_set(err, ERROR_INVALID, "unknown flag %s (--help lists all)",
                     shown(parser->arena, &given));
}

/* Something that is not a flag; after a secret's flag it may be the secret. */
static int take_argument(struct parser *parser, const char *arg, const struct option *before,
                         struct error *err)
{
    if (parser->program->arguments)
        return add_string(
            parser, parser->program->arguments, arg,
            (struct str_list *)((char *)parser->ret + parser->program->arguments_offset), err);

    struct option none = { .secret = before && before->secret };
    struct given given = { &none, arg, arg };

    if (before && before->type == OPTION_BOOL)
        return error_set(err, ERROR_INVALID,
                         "unexpected argument %s (a value for '--%s' is written --%s=false)",
                         shown(parser->arena, &given), before->name, before->name);
    if (none.secret)
        return error_set(err, ERROR_INVALID, "unexpected argument after '--%s'", before->name);
    return error_set(err, ERROR_INVALID, "unexpected argument %s (only flags are allowed)",
                     shown(parser->arena, &given));
}

static const struct option *find(const struct parser *parser, const char *name, size_t len)
{
    for (size_t i = 0; i < parser->len; i++) {
        const char *known = parser->table[i].name;

        if (strlen(known) == len && memcmp(known, name, len) == 0)
            return &parser->table[i];
    }
    return NULL;
}

static const struct option *find_letter(const struct parser *parser, char letter)
{
    for (size_t i = 0; letter && i < parser->len; i++) {
        if (parser->table[i].letter == letter)
            return &parser->table[i];
    }
    return NULL;
}

/* The flag at *position; moves on over a value of its own. */
static int parse_flag(struct parser *parser, int argc, char *const *argv, int *position,
                      const struct option **ret_option, struct error *err)
{
    const char *arg = argv[*position];
    bool is_long = str_has_prefix(arg, "--");
    size_t len = is_long ? strcspn(arg, "=") : 2;
    const struct option *option =
        is_long ? find(parser, arg + 2, len - 2) : find_letter(parser, arg[1]);

    if (!option || (!is_long && option->type == OPTION_BOOL && arg[len] && arg[len] != '='))
        return refuse_unknown(parser, arg, err);

    struct given given = { option, arena_printf(parser->arena, "--%s", option->name), NULL };

    if (arg[len] == '=')
        given.value = arg + len + 1;
    else if (arg[len])
        given.value = arg + len;
    else if (option->type == OPTION_BOOL)
        given.value = "true";
    else if (*position + 1 < argc && !str_has_prefix(argv[*position + 1], "--"))
        given.value = argv[++*position];
    else
        return error_set(err, ERROR_INVALID, "%s: needs a value (--%s=%s)", given.as, option->name,
                         option->value_name ? option->value_name : "...");
    *ret_option = option;
    return set_listed(parser, &given, err);
}

static void print_help(const struct option_program *program, const struct option *table, size_t len)
{
    struct buf text = BUF_INIT(OPTIONS_HELP_MAX);

    bool fits = options_help(&text, program, table, len);
    assert(fits); /* the table is this program's own */
    (void)fputs(buf_string(&text), stdout);
    buf_release(&text);
}

/* 1: the flag asked for a text, which was printed. */
static int print_asked(const struct parser *parser, const char *arg, const char *next,
                       struct error *err)
{
    const struct option_program *program = parser->program;
    const struct option_command all = { .table = parser->table, .len = parser->len };

    if (str_equal(arg, "--help") || str_equal(arg, "-h")) {
        print_help(program, parser->table, parser->len);
        return 1;
    }
    if (str_equal(arg, "--version")) {
        (void)printf("%s %s\n", program->name, version_name());
        return 1;
    }
    if (str_equal(arg, "--completion") && options_help_has_completion(program))
        return options_print_completion(next, program->name, &all, 1, err);
    return 0;
}

int options_parse(struct arena *arena, const struct option_program *program,
                  const struct option *table, size_t len, int argc, char *const *argv, void *ret,
                  struct error *err)
{
    struct parser parser = {
        .arena = arena, .program = program, .table = table, .len = len, .ret = ret
    };
    const struct option *before = NULL;
    bool only_arguments = false;

    parser.is_set = arena_array(arena, bool, len + 1);
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        int r = 0;

        if (program->arguments && !only_arguments && str_equal(arg, "--")) {
            only_arguments = true;
            continue;
        }
        if (only_arguments) {
            r = take_argument(&parser, arg, NULL, err);
            if (r < 0)
                return r;
            continue;
        }
        r = print_asked(&parser, arg, i + 1 < argc ? argv[i + 1] : "", err);
        if (r != 0)
            return r;
        if (arg[0] != '-' || str_equal(arg, "-") || str_equal(arg, "--"))
            r = take_argument(&parser, arg, before, err);
        else
            r = parse_flag(&parser, argc, argv, &i, &before, err);
        if (r < 0)
            return r;
    }
    return set_rest(&parser, err);
}
