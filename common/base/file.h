/* Files that are read as a whole. */
#pragma once

#include <stddef.h>

#include "common/base/arena.h"
#include "common/base/error.h"

struct stat;

/*
 * A text of max bytes at most, in the arena. ret_seen: of the file that was read, whatever is renamed over its path
 * meanwhile; NULL: not wanted. The message names the file. ERROR_NOT_FOUND: there is none. ERROR_INVALID: it cannot be
 * read, is larger, or holds a NUL, where texts end: a crash leaves such of a file that was not synced.
 */
int file_read_text(struct arena *arena, const char *path, size_t max, struct stat *ret_seen,
                   const char **ret, struct error *err) MUST_CHECK;
