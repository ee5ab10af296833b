/* A command of kubectl-propeller: a file in plugin/commands/ and a line in its table. */
#pragma once

#include "plugin/cli/session.h"

struct command {
    const char *name;
    struct option_program program;
    const struct option *options;
    size_t option_count;
    size_t
        size; /* of the struct that the options fill, whose first member is a struct common_flags */
    unsigned takes; /* kinds of its arguments (cli/objects.h), for completion */
    /* settings: that struct. Returns an exit status, or an error. */
    int (*run)(struct session *session, const void *settings, struct error *err);
};

#define PLUGIN "kubectl propeller"

/* A definition of a command: its options and what --help says. */
#define COMMAND(text, function, type, table, kinds, about_text, ...)                               \
    {                                                                                              \
        .name = (text),                                                                            \
        .program = { .name = PLUGIN " " text,                                                      \
                     .about = (about_text),                                                        \
                     .manual = "kubectl-propeller(1)",                                             \
                     .only_flags = true,                                                           \
                     __VA_ARGS__ },                                                                \
        .options = (table), .option_count = ARRAY_LEN(table), .size = sizeof(type),                \
        .takes = (kinds), .run = (function)                                                        \
    }
#define EXAMPLES(first, second) .examples = { PLUGIN " " first, PLUGIN " " second }
/* Arguments beside flags, into the member of the command's struct. */
#define ARGUMENTS(type, member, text)                                                              \
    .arguments = (text), .arguments_offset = offsetof(type, member)

/* In the order of --help. */
extern const struct command *const COMMANDS[];
extern const size_t COMMAND_COUNT;
