/* kubectl-propeller: commands for people, as a plug-in of kubectl or alone. */
#include <signal.h>
#include <stdio.h>

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/base/version.h"
#include "plugin/commands/commands.h"

static void print_usage(FILE *file)
{
    (void)fprintf(file, "Usage: " PLUGIN " COMMAND [arguments] [flags]\n\n"
                        "Runs and explains WebAssembly work on the devices of a cluster.\n\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        (void)fprintf(file, "  %-10s  %s\n", COMMANDS[i]->name, COMMANDS[i]->program.about);
    (void)fprintf(file, "\n'" PLUGIN " COMMAND --help' prints the flags of a command.\n"
                        "Exit status: 0 done, 1 the answer is no, 2 wrong use, 3 the API server "
                        "refused or did not answer, 124 time-out.\n");
}

/* NULL: there is no such command. */
static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (str_equal(COMMANDS[i]->name, name))
            return COMMANDS[i];
    }
    return NULL;
}

static int without_command(const char *name)
{
    if (str_equal(name, "--help") || str_equal(name, "-h") || str_equal(name, "help")) {
        print_usage(stdout);
        return EXIT_DONE;
    }
    if (str_equal(name, "--version")) {
        (void)printf(PLUGIN " %s\n", version_name());
        return EXIT_DONE;
    }
    if (str_is_empty(name))
        print_usage(stderr);
    else
        output_line(stderr, PLUGIN ": there is no command '%.60s' (--help lists all)", name);
    return EXIT_BAD_USE;
}

static enum output_format format_of(const char *name)
{
    size_t format = 0;

    while (!str_equal(ENV_FORMATS[format], name))
        format++;
    return (enum output_format)format;
}

static int run(struct arena *arena, const struct command *command, int argc, char **argv)
{
    struct error err = { 0 };
    void *settings = arena_alloc(arena, 1, command->size);
    int r = options_parse(arena, &command->program, command->options, command->option_count, argc,
                          argv, settings, &err);
    if (r > 0)
        return EXIT_DONE;

    const struct common_flags *flags = settings;
    struct session session = { .arena = arena, .command = command, .flags = flags };
    if (r == 0) {
        session.output = (struct output){ .format = format_of(flags->output),
                                          .no_headers = flags->no_headers,
                                          .now_us = clock_wall_us(&CLOCK_SYSTEM),
                                          .file = stdout };
        r = command->run(&session, settings, &err);
    }
    int status = r < 0 ? session_status(&session, &err) : r;
    if (r < 0 && err.code != ERROR_CANCELED)
        output_line(stderr, PLUGIN " %s: %s", command->name, err.message);
    if (status == EXIT_TIME_OUT)
        output_line(stderr, PLUGIN " %s: --timeout: time is over", command->name);
    session_end(&session);
    if (status == EXIT_DONE && !output_is_whole(stdout)) {
        output_line(stderr, PLUGIN " %s: standard output was not written as a whole",
                    command->name);
        status = EXIT_NO;
    }
    return status;
}

int main(int argc, char **argv)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *name = argc > 1 ? argv[1] : "";

    (void)signal(SIGPIPE, SIG_IGN); /* `| head` is no error */
    alloc_init();
    json_init();
    log_configure(LOG_ERROR, LOG_TEXT);
    const struct command *command = find_command(name);
    return command ? run(arena, command, argc - 1, argv + 1) : without_command(name);
}
