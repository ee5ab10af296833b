/* The command line of propeller-standalone. */
#pragma once

#include "common/api/policy.h"
#include "common/runtime/options.h"

struct standalone_settings {
    const char *data_dir;
    const char
        *address; /* as http_address_parse takes it, with a port; NULL: not given (add-user) */
    struct str_list extra_names;
    bool controller;
    bool strict_store;
    struct admission_policy policy;
    const char *name; /* add-user */
    const char *role;
    const char *ns; /* export */
    const char *output;
    bool status;
    bool all;
    const char *file; /* import */
    const char *to;   /* backup */
};

enum standalone_command {
    COMMAND_INIT,
    COMMAND_SERVE,
    COMMAND_ADD_USER,
    COMMAND_EXPORT,
    COMMAND_IMPORT,
    COMMAND_BACKUP,
    COMMANDS
};

/*
 * argv[1] is the command. A file or folder that is named must not be empty: that is not the default. -f and
 * -o are short for --file and --output. Of serve the flags that are not this table's are the controller's:
 * *ret_rest, with the program's name first and ended by NULL. As options_parse: 1 after --help and
 * --version.
 */
int standalone_settings_parse(struct arena *arena, int argc, char *const *argv,
                              enum standalone_command *ret_command, struct standalone_settings *ret,
                              char *const **ret_rest, int *ret_rest_len,
                              struct error *err) MUST_CHECK;
