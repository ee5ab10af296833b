/* The file with the users, as it is now: what is added or removed while the server runs counts at once. */
#pragma once

#include "common/base/error.h"
#include "standalone/server/users.h"

#define USERS_FILE_MAX (1u << 20)

/*
 *  1. Each users_file_get() looks whether the file is another one than before (a stat), so a request that
 *     comes after a rename or a write sees what it made.
 *  2. A file that is damaged (one with a NUL is), empty or gone changes nothing: the users of before stay,
 *     which is logged once for each such file.
 *  3. Those who hold on to something are told of a change also when nobody asks: by inotify, or, where
 *     there is none, by a look every second.
 */
struct users_file;
/* ERROR_NOT_FOUND: there is no such file; ERROR_INVALID names it. */
int users_file_open(const char *path, struct users_file **ret, struct error *err) MUST_CHECK;
void users_file_close(struct users_file *file); /* NULL is fine */
/* A reference. */
struct users *users_file_get(struct users_file *file);
/* After each change; on any thread, also within users_file_get(). function NULL: not any more, and none is
 * under way when this returns. */
void users_file_set_changed(struct users_file *file, void (*function)(void *ctx), void *ctx);
