/* Files that are read or replaced as a whole. */
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

/* A file or a folder as it is now is on the disk. */
int file_sync(const char *path, struct error *err) MUST_CHECK;
/* So is a name, given or taken away in the folder of this path: a file that was synced is found after a power loss
 * only then. */
int file_sync_folder_of(const char *path, struct error *err) MUST_CHECK;
/* Whole or not at all, for the owner alone, on the disk when this returns 0. ERROR_INVALID: there can be no file;
 * ERROR_UNAVAILABLE: the disk takes no more. */
int file_replace(const char *path, const char *text, struct error *err) MUST_CHECK;
