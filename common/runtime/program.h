/* What the main functions of all programs have in common: how they log, and how they end. */
#pragma once

#include "common/base/error.h"

/* name: of the program, for messages. */

/* As --log-level and --log-format say, whose values the options have checked. */
void program_configure_log(const char *level, const char *format);

/* The exit status after options_parse, whose result r is: 0 for --help and --version, else 2 with
 * the error on stderr. Only if r is not 0. */
int program_end_of_options(const char *name, int r, const struct error *err) MUST_CHECK;

/* The exit status of a program that ran; what ended it (r < 0) is logged. */
int program_end(const char *name, int r, const struct error *err) MUST_CHECK;
