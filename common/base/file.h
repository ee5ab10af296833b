/* Files that are read or replaced as a whole. */
#pragma once

#include <stdbool.h>
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

/* Makes a folder and its parents, as far as they are missing, for the owner alone. ERROR_INVALID: it cannot be made. */
int file_make_folder(const char *path, struct error *err) MUST_CHECK;

/* Writes the content of a file or folder to the disk. ERROR_UNAVAILABLE: the disk refuses, or there is no such file. */
int file_sync(const char *path, struct error *err) MUST_CHECK;
/* Writes the folder of this path to the disk. A file that was created, renamed or removed is so after a power loss only
 * if its folder was synced, too. */
int file_sync_folder_of(const char *path, struct error *err) MUST_CHECK;
/* Writes the text to an open file, and the file to the disk. false: errno says why. */
bool file_write_all(int fd, const char *text) MUST_CHECK;
/* Replaces a file by this text through "<path>.new", so that readers see the old or the new one as a whole. Only its owner
 * may read it. It is on the disk when this returns 0. ERROR_INVALID: the file cannot be created; ERROR_UNAVAILABLE: the
 * disk refuses. Not for two callers with the same path at once. */
int file_replace(const char *path, const char *text, struct error *err) MUST_CHECK;
