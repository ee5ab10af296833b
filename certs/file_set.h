/* Files of a directory that change together. A reader sees all old or all new files, also after a
 * crash. The directory has the layout of a Secret that the kubelet mounts. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/base/arena.h"
#include "common/base/error.h"

/* One PEM file. */
#define FILE_SET_MAX_FILE (64u << 10)

struct file_content {
    const char *name;
    const char *text;
};

/*
 *   tls.crt  -> ..data/tls.crt
 *   tls.key  -> ..data/tls.key
 *   ..data   -> ..4f0c21aa          replaced by a rename: this is the change
 *   ..4f0c21aa/tls.crt, tls.key     0600; goes with the next change
 *
 * Plain files of these names are replaced by links. The directory is made, if it is missing, for its
 * owner alone. Everything is on the disk when this returns 0. One writer at a time (file_set_lock).
 */
int file_set_write(const char *directory, const struct file_content *files, size_t count,
                   struct error *err) MUST_CHECK;

/* *ret is NULL if the file or the directory does not exist. ERROR_INVALID: the file is larger than
 * FILE_SET_MAX_FILE, or is not text. */
int file_set_read(struct arena *arena, const char *directory, const char *name, const char **ret,
                  struct error *err) MUST_CHECK;

/* Whether both names lead to one directory, by whatever path or link. A directory that is not there
 * is only the same as one of the very same name. */
bool file_set_is_same(const char *one, const char *other);

/* Waits until no other process holds the lock; creates the directory. *ret is for file_set_unlock. */
int file_set_lock(const char *directory, int *ret, struct error *err) MUST_CHECK;
/* For readers: waits until no process writes. Does not create the directory; without it there is no
 * writer to wait for. */
int file_set_lock_shared(const char *directory, int *ret, struct error *err) MUST_CHECK;
void file_set_unlock(int lock);
