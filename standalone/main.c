/* propeller-standalone */
#include <stdlib.h>

#include "common/base/alloc.h"
#include "common/json/json.h"
#include "common/runtime/program.h"
#include "standalone/process/init.h"
#include "standalone/process/move.h"
#include "standalone/process/serve.h"

#define NAME "propeller-standalone"

static int (*const RUN[COMMANDS])(struct arena *, const struct standalone_settings *,
                                  struct error *) = {
    [COMMAND_INIT] = init_run,          [COMMAND_SERVE] = serve_run,
    [COMMAND_ADD_USER] = init_add_user, [COMMAND_EXPORT] = move_export,
    [COMMAND_IMPORT] = move_import,     [COMMAND_BACKUP] = move_backup,
};

static int run(struct arena *arena, int argc, char **argv, struct error *err)
{
    struct standalone_settings settings = { .data_dir = NULL };
    enum standalone_command command;
    char *const *rest;
    int rest_len;

    int r =
        standalone_settings_parse(arena, argc, argv, &command, &settings, &rest, &rest_len, err);
    if (r == 0 && command == COMMAND_SERVE)
        r = serve_parse(&settings, rest_len, rest, err);
    if (r != 0)
        return program_end_of_options(NAME, r, err);
    r = RUN[command](arena, &settings, err);
    if (r > 0 || (r < 0 && command != COMMAND_SERVE)) {
        int status = program_end_of_options(NAME, r, err);

        /* 2 is for a command line that is wrong; these have gone some of their way. */
        return r < 0 && command >= COMMAND_EXPORT ? EXIT_FAILURE : status;
    }
    return program_end(NAME, r, err);
}

int main(int argc, char **argv)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct error err = { 0 };

    alloc_init();
    json_init();
    return run(arena, argc, argv, &err);
}
