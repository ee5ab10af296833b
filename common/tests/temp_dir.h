/* process.h's directories and files, bound to an arena. */
#pragma once

#include "common/base/arena.h"

/* Removed, with its files, when the arena goes. */
const char *temp_dir(struct arena *arena);
/* Writes a file there and returns its path; written beside and renamed, so that a reader sees the
 * old or the new one. */
const char *temp_file(struct arena *arena, const char *dir, const char *name, const char *text);
