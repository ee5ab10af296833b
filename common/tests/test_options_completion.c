#include "common/runtime/options_completion.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/str.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/observe.h"
#include "common/tests/process.h"
#include "common/tests/suite.h"

static const char *const LEVELS[] = { "debug", "info", NULL };
static const struct option TABLE[] = {
    { .name = "file", .letter = 'f', .type = OPTION_STRING, .help = "the device's file" },
    { .name = "level", .type = OPTION_CHOICE, .choices = LEVELS, .help = "lowest level" },
    { .name = "verbose", .type = OPTION_BOOL, .help = "say more" },
};
static const struct option_command PLAIN[] = { { NULL, TABLE, ARRAY_LEN(TABLE) } };
static const struct option_command COMMANDS[] = { { "init", TABLE, 1 },
                                                  { "serve", TABLE, ARRAY_LEN(TABLE) } };

static const char *script(const char *shell, const struct option_command *commands, size_t len)
{
    struct error err;

    capture_start(STDOUT_FILENO);
    ck_assert_int_eq(options_print_completion(shell, "program", commands, len, &err), 1);
    const char *text = capture_text(arena);
    capture_stop();
    return text;
}

/* The words that bash offers after the line, which ends in the word to complete. */
static const char *offered(const struct option_command *commands, size_t len, const char *words,
                           int position)
{
    char *dir = temp_dir_create();
    const char *text = arena_printf(
        arena, "%sCOMP_WORDS=(%s)\nCOMP_CWORD=%d\n_program\necho \"${COMPREPLY[*]}\" >%s/found\n",
        script("bash", commands, len), words, position, dir);
    char *path = temp_file_write(dir, "script", text);

    process_run(dir, (const char *const[]){ "bash", path, NULL });
    char *found = temp_file_read(dir, "found");
    const char *ret = arena_strdup(arena, found);
    free(found);
    free(path);
    temp_dir_destroy(dir);
    return ret;
}

TEST_GROUP("completion", arena_set_up, arena_tear_down);

TEST(bash_offers_flags_and_choices)
{
    ck_assert_str_eq(offered(PLAIN, 1, "program ''", 1), "--file --level --verbose --help\n");
    ck_assert_str_eq(offered(PLAIN, 1, "program --l", 1), "--level\n");
    ck_assert_str_eq(offered(PLAIN, 1, "program --level ''", 2), "debug info\n");
    ck_assert_str_eq(offered(PLAIN, 1, "program --file x", 2), "\n");
}

TEST(bash_offers_commands_and_their_flags)
{
    ck_assert_str_eq(offered(COMMANDS, 2, "program ''", 1), "init serve --help --version\n");
    ck_assert_str_eq(offered(COMMANDS, 2, "program init --", 2), "--file --help\n");
    ck_assert_str_eq(offered(COMMANDS, 2, "program serve --level d", 3), "debug\n");
}

TEST(zsh_has_the_same_words)
{
    const char *text = script("zsh", COMMANDS, 2);

    ck_assert(str_has_prefix(text, "#compdef program\n_program() {\n"));
    ck_assert_ptr_nonnull(strstr(text, "    --level) found=(debug info) ;;\n"));
    ck_assert_ptr_nonnull(strstr(text, "        init) found=(--file --help) ;;\n"));
    ck_assert(str_has_suffix(text, "compdef _program program\n"));
}

TEST(fish_has_a_line_for_each_flag)
{
    ck_assert_str_eq(script("fish", PLAIN, 1),
                     "complete -c program -l file -s f -r -d 'the device\\'s file'\n"
                     "complete -c program -l level -x -a 'debug info' -d 'lowest level'\n"
                     "complete -c program -l verbose -d 'say more'\n");
    ck_assert(str_has_prefix(
        script("fish", COMMANDS, 2),
        "complete -c program -f -n __fish_use_subcommand -a init\n"
        "complete -c program -n '__fish_seen_subcommand_from init' -l file -s f -r"));
}

TEST(other_shell_is_refused)
{
    struct error err;

    ck_assert_int_eq(options_print_completion("csh", "program", PLAIN, 1, &err), -ERROR_INVALID);
    ck_assert_str_eq(err.message, "--completion: must be bash, zsh or fish");
}
