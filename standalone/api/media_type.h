/* The header Content-Type, as Go's mime.ParseMediaType reads it. */
#pragma once

#include <stdbool.h>

#include "common/base/arena.h"

/* "type/subtype" in small letters, in the arena, without the parameters; NULL: it cannot be read, also with more than
 * MEDIA_TYPE_MAX_PARAMETERS. */
#define MEDIA_TYPE_MAX_PARAMETERS 32
const char *media_type_of(struct arena *arena, const char *header);
/* Whether it is that one of a patch: letters count there, and of parameters nothing does. */
bool media_type_is_patch(const char *header, const char *type);
