/* The text of --help. */
#pragma once

#include "common/base/buf.h"
#include "common/runtime/options.h"

#define OPTIONS_HELP_MAX (64u << 10)
#define OPTIONS_HELP_COLUMNS 100

/* A program has --completion for itself and for all of its commands; a command does not. */
bool options_help_has_completion(const struct option_program *program);
/* Aligned, at most OPTIONS_HELP_COLUMNS wide. false: it did not fit. */
bool options_help(struct buf *ret, const struct option_program *program, const struct option *table,
                  size_t len) MUST_CHECK;
