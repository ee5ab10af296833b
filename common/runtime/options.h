/* --flags and environment variables from one table. */
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/str.h"

enum option_type {
    OPTION_STRING,   /* const char * */
    OPTION_STRINGS,  /* struct str_list, repeatable, and a list with commas */
    OPTION_BOOL,     /* bool; --flag alone is true, --flag=false */
    OPTION_INT,      /* int64_t, min..max */
    OPTION_DOUBLE,   /* double, min..max */
    OPTION_DURATION, /* int64_t milliseconds, min..max; Go syntax */
    OPTION_CHOICE,   /* const char *, one of choices */
};
#define OPTION_MAX_STRINGS 64
struct option {
    const char *name; /* without dashes */
    enum option_type type;
    char letter;            /* its short form, "-n"; 0: none */
    size_t offset;          /* in the struct that options_parse fills */
    const char *fallback;   /* as written on the command line; NULL: zero */
    const char *value_name; /* "ADDRESS": for --help */
    const char *help;
    int64_t min, max;           /* both 0: no limits */
    const char *const *choices; /* NULL-terminated */
    const char
        *environment; /* another variable that is read too, e.g. WATCH_NAMESPACE; NULL: none */
    bool secret;      /* its value is never printed */
    bool whole;       /* OPTION_STRINGS: a comma is part of a value */
    bool needs_value; /* OPTION_STRINGS without whole: a list of no values is refused */
};

#define OPTION_EXAMPLES 2

/* A program, or a command of one, for --help and --version. */
struct option_program {
    const char *name;                      /* with its command */
    const char *about;                     /* one or two sentences */
    const char *examples[OPTION_EXAMPLES]; /* command lines; NULL: there are fewer */
    const char *manual;                    /* its manual page with the section; NULL: none */
    const char *arguments;   /* its arguments beside flags, "KIND/NAME", for --help; NULL: none */
    size_t arguments_offset; /* of the struct str_list that they go to */
    bool only_flags;         /* no environment variable sets a flag */
};

/*
 * Command line wins over environment (PRODUCT_ENVIRONMENT <NAME>, - as _; then .environment) wins over
 * fallback. An empty variable counts as not set. -nVALUE, -n VALUE and -n=VALUE are one. All that follows "--" is an
 * argument. OPTION_STRINGS: each --flag adds one value or
 * several separated by commas, as in the environment and the fallback.
 *
 * --help, --version and, for a program without commands, --completion SHELL print and return 1 (exit 0). An unknown flag, a missing or unusable value,
 * an argument that belongs to no flag: ERROR_INVALID, one line naming the flag and what is allowed;
 * the caller prints it and exits with 2. ret must be zeroed. Strings live in the arena or in argv.
 * A table with an unusable fallback is a bug.
 */
int options_parse(struct arena *arena, const struct option_program *program,
                  const struct option *table, size_t len, int argc, char *const *argv, void *ret,
                  struct error *err) MUST_CHECK;
