/* One object on its way into a server. For this folder only. */
#pragma once

#include "standalone/moving/import.h"

struct import_object {
    const struct import_options *options;
    struct arena *arena;
    const struct resource *resource;
    const char *ns, *name;
    const cJSON *manifest; /* without status */
    const cJSON *status;   /* of one that has finished; NULL: none */
};

enum import_outcome { IMPORT_CREATED, IMPORT_UNCHANGED, IMPORT_REFUSED, IMPORT_OUTCOMES };

/* *ret_why, in the arena: of IMPORT_REFUSED. Errors: the server, not the object. */
int import_make(const struct import_object *object, enum import_outcome *ret, const char **ret_why,
                struct error *err) MUST_CHECK;
