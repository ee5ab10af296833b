#include "common/runtime/options_completion.h"

#include <assert.h>

#include "common/base/str.h"

const char *const OPTIONS_COMPLETION_SHELLS[] = { "bash", "zsh", "fish", NULL };

/* Where a shell has the word before the cursor, and the command of the program. */
struct dialect {
    const char *word_before, *command;
};
static const struct dialect BASH = { "${COMP_WORDS[COMP_CWORD - 1]}", "${COMP_WORDS[1]}" };
static const struct dialect ZSH = { "${words[CURRENT - 1]}", "${words[2]}" };

static bool put_flags(struct buf *ret, const struct option_command *command)
{
    bool fits = true;

    for (size_t i = 0; i < command->len; i++)
        fits = fits && buf_printf(ret, "--%s ", command->table[i].name);
    return fits && buf_append_string(ret, "--help");
}

/* A line for each flag that has choices: what may follow it. */
static bool put_choices(struct buf *ret, const struct option_command *command)
{
    bool fits = true;

    for (size_t i = 0; i < command->len; i++) {
        const struct option *option = &command->table[i];

        if (!option->choices)
            continue;
        fits = fits && buf_printf(ret, "    --%s) found=(", option->name);
        for (size_t j = 0; option->choices[j]; j++)
            fits = fits && buf_printf(ret, "%s%s", j ? " " : "", option->choices[j]);
        fits = fits && buf_append_string(ret, ") ;;\n");
    }
    return fits;
}

static bool put_case(struct buf *ret, const struct dialect *dialect,
                     const struct option_command *commands, size_t len)
{
    bool fits = buf_printf(ret, "    case %s in\n", dialect->word_before);

    for (size_t i = 0; i < len; i++)
        fits = fits && put_choices(ret, &commands[i]);
    fits = fits && buf_printf(ret, "    *)\n        case %s in\n", dialect->command);
    for (size_t i = 0; i < len; i++)
        fits = fits &&
               buf_printf(ret, "        %s) found=(", commands[i].name ? commands[i].name : "*") &&
               put_flags(ret, &commands[i]) && buf_append_string(ret, ") ;;\n");
    if (commands[0].name) {
        fits = fits && buf_append_string(ret, "        *) found=(");
        for (size_t i = 0; i < len; i++)
            fits = fits && buf_printf(ret, "%s ", commands[i].name);
        fits = fits && buf_append_string(ret, "--help --version) ;;\n");
    }
    return fits && buf_append_string(ret, "        esac\n        ;;\n    esac\n");
}

/* In single quotes of fish. */
static bool put_quoted(struct buf *ret, const char *text)
{
    bool fits = buf_append_string(ret, "'");

    for (; *text; text++)
        fits = fits && ((*text != '\'' && *text != '\\') || buf_append_string(ret, "\\")) &&
               buf_append(ret, text, 1);
    return fits && buf_append_string(ret, "'");
}

/* Values of a flag: its choices, or any. */
static bool put_fish_values(struct buf *ret, const struct option *option)
{
    if (!option->choices)
        return option->type == OPTION_BOOL || buf_append_string(ret, " -r");

    bool fits = buf_append_string(ret, " -x -a '");
    for (size_t i = 0; option->choices[i]; i++)
        fits = fits && buf_printf(ret, "%s%s", i ? " " : "", option->choices[i]);
    return fits && buf_append_string(ret, "'");
}

static bool put_fish_flag(struct buf *ret, const char *program, const char *command,
                          const struct option *option)
{
    return buf_printf(ret, "complete -c %s", program) &&
           (!command || buf_printf(ret, " -n '__fish_seen_subcommand_from %s'", command)) &&
           buf_printf(ret, " -l %s", option->name) &&
           (!option->letter || buf_printf(ret, " -s %c", option->letter)) &&
           put_fish_values(ret, option) && buf_append_string(ret, " -d ") &&
           put_quoted(ret, option->help) && buf_append_string(ret, "\n");
}

static bool put_fish(struct buf *ret, const char *program, const struct option_command *commands,
                     size_t len)
{
    bool fits = true;

    for (size_t i = 0; i < len; i++) {
        if (commands[i].name)
            fits = fits && buf_printf(ret, "complete -c %s -f -n __fish_use_subcommand -a %s\n",
                                      program, commands[i].name);
        for (size_t j = 0; j < commands[i].len; j++)
            fits = fits && put_fish_flag(ret, program, commands[i].name, &commands[i].table[j]);
    }
    return fits;
}

static bool put_script(struct buf *ret, const char *shell, const char *program,
                       const struct option_command *commands, size_t len)
{
    if (str_equal(shell, "fish"))
        return put_fish(ret, program, commands, len);
    if (str_equal(shell, "zsh"))
        return buf_printf(ret, "#compdef %s\n_%s() {\n    local -a found\n", program, program) &&
               put_case(ret, &ZSH, commands, len) &&
               buf_printf(ret, "    compadd -- $found\n    _files\n}\ncompdef _%s %s\n", program,
                          program);
    return buf_printf(ret, "_%s() {\n    local -a found\n", program) &&
           put_case(ret, &BASH, commands, len) &&
           buf_printf(ret,
                      "    mapfile -t COMPREPLY < <(compgen -W \"${found[*]}\" -- "
                      "\"${COMP_WORDS[COMP_CWORD]}\")\n}\ncomplete -o default -F _%s %s\n",
                      program, program);
}

int options_print_completion(const char *shell, const char *program,
                             const struct option_command *commands, size_t len, struct error *err)
{
    struct buf text = BUF_INIT(OPTIONS_COMPLETION_MAX);
    bool is_known = false;

    for (size_t i = 0; OPTIONS_COMPLETION_SHELLS[i]; i++)
        is_known = is_known || str_equal(OPTIONS_COMPLETION_SHELLS[i], shell);
    if (!is_known)
        return error_set(err, ERROR_INVALID, "--completion: must be bash, zsh or fish");

    bool fits = put_script(&text, shell, program, commands, len);
    assert(fits); /* the tables are this program's own */
    (void)fputs(buf_string(&text), stdout);
    buf_release(&text);
    return 1;
}
