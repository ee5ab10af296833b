/*
 * This module is what the main functions of all programs have in common: how they log, and how they
 * end. `name` is that of the program, for messages. Called by the main thread; no function fails.
 * An error that ends a program is also its status for a service manager (notify.h).
 */
#pragma once

#include <stddef.h>

#include "common/base/error.h"

extern const char *const PROGRAM_LOG_LEVELS[];
extern const char *const PROGRAM_LOG_FORMATS[];

/* Two rows of a table of options (common/runtime/options.h), for the strings log_level and log_format
 * of the struct. */
#define PROGRAM_LOG_OPTIONS(type_name)                                                             \
    { .name = "log-level",                                                                         \
      .type = OPTION_CHOICE,                                                                       \
      .offset = offsetof(type_name, log_level),                                                    \
      .fallback = "info",                                                                          \
      .choices = PROGRAM_LOG_LEVELS,                                                               \
      .help = "lowest level that is logged" },                                                     \
    {                                                                                              \
        .name = "log-format", .type = OPTION_CHOICE, .offset = offsetof(type_name, log_format),    \
        .fallback = "auto", .choices = PROGRAM_LOG_FORMATS,                                        \
        .help = "format of a log line; auto is text on a terminal, json otherwise"                 \
    }

/* As --log-level and --log-format say, whose values the options have checked. */
void program_configure_log(const char *level, const char *format);

/* Returns the exit status after options_parse, whose result r is: 0 for --help and --version, else 2
 * with the error on stderr. Only if r is not 0. */
int program_end_of_options(const char *name, int r, const struct error *err) MUST_CHECK;

/* Returns the exit status of a program that ran. The error of one that failed (r < 0) is logged; on a terminal it is
 * one plain line. */
int program_end(const char *name, int r, const struct error *err) MUST_CHECK;
