/* propeller-standalone */
#include <stdlib.h>

#include "common/base/alloc.h"
#include "common/json/json.h"
#include "common/runtime/program.h"
#include "standalone/process/init.h"
#include "standalone/process/move.h"
#include "standalone/process/serve.h"

#define NAME "propeller-standalone"

static int run(struct arena *arena, int argc, char **argv, struct error *err)
{
    struct standalone_settings settings = { .data_dir = NULL };
    enum standalone_command command;
    char *const *rest;
    int rest_len;

    int r =
        standalone_settings_parse(arena, argc, argv, &command, &settings, &rest, &rest_len, err);
    if (r == 0 && command == COMMAND_SERVE)
        r = serve_parse(rest_len, rest, err);
    if (r != 0)
        return program_end_of_options(NAME, r, err);
    switch (command) {
    case COMMAND_INIT:
        r = init_run(arena, &settings, err);
        break;
    case COMMAND_ADD_USER:
        r = init_add_user(arena, &settings, err);
        break;
    case COMMAND_EXPORT:
        r = move_export(arena, &settings, err);
        break;
    case COMMAND_IMPORT:
        r = move_import(arena, &settings, err);
        break;
    case COMMAND_BACKUP:
        r = move_backup(arena, &settings, err);
        break;
    default:
        r = serve_run(arena, &settings, err);
        break;
    }
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
