/* Scripts with which a shell completes the flags of a program. */
#pragma once

#include "common/base/buf.h"
#include "common/runtime/options.h"

#define OPTIONS_COMPLETION_MAX (64u << 10)
/* bash, zsh and fish; NULL-terminated. */
extern const char *const OPTIONS_COMPLETION_SHELLS[];

/* A command of a program; a program without commands is one with the name NULL. */
struct option_command {
    const char *name;
    const struct option *table;
    size_t len;
};

/* Prints the script for a shell and returns 1, as options_parse does after --help. A shell that is not in the list is
 * ERROR_INVALID. */
int options_print_completion(const char *shell, const char *program,
                             const struct option_command *commands, size_t len,
                             struct error *err) MUST_CHECK;
