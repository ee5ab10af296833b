/* Files of controller/tests/fixtures. */
#pragma once

#include "common/base/arena.h"

/* Fails the test if there is no such file; the text ends in a NUL that is not counted. */
char *fixture_read(struct arena *arena, const char *name, size_t *ret_len);

/* Calls each(ctx, "<folder>/<file>") for the files of a folder, in no order; returns how many. */
typedef void fixture_fn(void *ctx, const char *name);
size_t fixture_for_each(const char *folder, fixture_fn *each, void *ctx);
