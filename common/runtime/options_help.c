#include "common/runtime/options_help.h"

#include "common/base/str.h"
#include "common/base/version.h"
#include "common/runtime/options_completion.h"

/* Flags longer than this have their text on the next line. */
#define MAX_FLAG_COLUMN 36
#define MAX_FLAG_TEXT 128
#define MAX_TEXT 1024
/* In a paragraph: a blank at which no line is broken. */
#define NO_BREAK '\1'

static const char *value_name(const struct option *option)
{
    static const char *const DEFAULTS[] = {
        [OPTION_STRING] = "TEXT",   [OPTION_STRINGS] = "TEXT",  [OPTION_BOOL] = "",
        [OPTION_INT] = "NUMBER",    [OPTION_DOUBLE] = "NUMBER", [OPTION_DURATION] = "DURATION",
        [OPTION_CHOICE] = "CHOICE",
    };

    return option->value_name ? option->value_name : DEFAULTS[option->type];
}

/* "  --lease-duration DURATION", "  -n, --namespace NAME" */
static bool flag_text(struct buf *ret, const struct option *option)
{
    const char *value = value_name(option);

    buf_clear(ret);
    return buf_append_string(ret, "  ") &&
           (!option->letter || buf_printf(ret, "-%c, ", option->letter)) &&
           buf_printf(ret, "--%s%s%s", option->name, value[0] ? " " : "", value);
}

static bool has_default_to_tell(const struct option *option)
{
    if (option->secret || str_is_empty(option->fallback))
        return false;
    return option->type != OPTION_BOOL || str_equal(option->fallback, "true");
}

/* The help text and everything else that is known of the flag, in one paragraph. */
static bool about_text(struct buf *ret, const struct option *option)
{
    buf_clear(ret);
    if (!buf_append_string(ret, option->help))
        return false;
    for (size_t i = 0; option->choices && option->choices[i]; i++) {
        if (!buf_printf(ret, "%s%s", i ? ", " : "; one of ", option->choices[i]))
            return false;
    }
    if (option->type == OPTION_STRINGS && !buf_append_string(ret, "; may be repeated"))
        return false;
    if (option->environment && !buf_printf(ret, "; also from $%s", option->environment))
        return false;
    return !has_default_to_tell(option) ||
           buf_printf(ret, " (default%c%s)", NO_BREAK, option->fallback);
}

static bool put_line(struct buf *ret, const char *text, size_t len)
{
    size_t start = ret->len;

    if (!buf_append(ret, text, len) || !buf_append_string(ret, "\n"))
        return false;
    for (char *c = ret->data + start; *c; c++) {
        if (*c == NO_BREAK)
            *c = ' ';
    }
    return true;
}

/* Breaks text between words, with indent blanks before all lines but the first. */
static bool put_wrapped(struct buf *ret, const char *text, int indent)
{
    size_t width = OPTIONS_HELP_COLUMNS - (size_t)indent;

    for (;;) {
        size_t len = strlen(text);

        if (len > width) {
            for (len = width; len > 0 && text[len] != ' '; len--)
                ;
            if (!len)
                len = strcspn(text, " "); /* one word that is wider */
        }
        if (!put_line(ret, text, len))
            return false;
        text += len + strspn(text + len, " ");
        if (!*text)
            return true;
        if (!buf_printf(ret, "%*s", indent, ""))
            return false;
    }
}

static int flag_column(const struct option *table, size_t len)
{
    int column = 0;

    for (size_t i = 0; i < len; i++) {
        size_t blanks = (value_name(&table[i])[0] ? 5u : 4u) + (table[i].letter ? 4u : 0u);
        size_t width = strlen(table[i].name) + strlen(value_name(&table[i])) + blanks;

        if (width <= MAX_FLAG_COLUMN && (int)width > column)
            column = (int)width;
    }
    return column + 2;
}

static bool put_option(struct buf *ret, const struct option *option, int column)
{
    struct buf flag = BUF_INIT(MAX_FLAG_TEXT);
    struct buf about = BUF_INIT(MAX_TEXT);
    bool fits = flag_text(&flag, option) && about_text(&about, option);

    if (fits) {
        if ((int)flag.len + 2 > column)
            fits = buf_printf(ret, "%s\n%*s", buf_string(&flag), column, "");
        else
            fits = buf_printf(ret, "%-*s", column, buf_string(&flag));
    }
    fits = fits && put_wrapped(ret, buf_string(&about), column);
    buf_release(&flag);
    buf_release(&about);
    return fits;
}

/* Examples are for copying, so they are not wrapped. */
static bool put_examples(struct buf *ret, const struct option_program *program)
{
    bool fits = !program->examples[0] || buf_append_string(ret, "\nExamples:\n");

    for (size_t i = 0; i < OPTION_EXAMPLES && program->examples[i]; i++)
        fits = fits && buf_printf(ret, "  %s\n", program->examples[i]);
    if (program->manual)
        fits = fits && buf_printf(ret, "\nManual page: %s\n", program->manual);
    return fits;
}

bool options_help_has_completion(const struct option_program *program)
{
    return !strchr(program->name, ' ');
}

bool options_help(struct buf *ret, const struct option_program *program, const struct option *table,
                  size_t len)
{
    static const struct option OWN[] = {
        { .name = "help", .type = OPTION_BOOL, .help = "print this text (also -h)" },
        { .name = "version", .type = OPTION_BOOL, .help = "print the version" },
        { .name = "completion",
          .type = OPTION_CHOICE,
          .value_name = "SHELL",
          .choices = OPTIONS_COMPLETION_SHELLS,
          .help = "print a script that completes flags" },
    };
    size_t own = ARRAY_LEN(OWN) - (options_help_has_completion(program) ? 0 : 1);
    int column = flag_column(table, len);

    if (!put_wrapped(ret, program->about, 0) ||
        !buf_printf(ret, "\nUsage: %s %s%s[--flag=value | --flag value]...\n\n", program->name,
                    program->arguments ? program->arguments : "", program->arguments ? " " : ""))
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!put_option(ret, &table[i], column))
            return false;
    }
    for (size_t i = 0; i < own; i++) {
        if (!put_option(ret, &OWN[i], column))
            return false;
    }
    if (program->only_flags)
        return put_examples(ret, program);
    return buf_append_string(ret, "\n") &&
           put_wrapped(ret,
                       "Each flag may also be set as " PRODUCT_ENVIRONMENT
                       "<NAME> in the environment, in "
                       "capitals and with underscores; the command line wins. Durations are "
                       "written like 30s, 1m30s, 500ms.",
                       0) &&
           put_examples(ret, program);
}
