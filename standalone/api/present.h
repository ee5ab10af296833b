/* Objects as the client asked for them: as they are, as a Table, or their metadata. For this folder only. */
#pragma once

#include "standalone/api/call.h"
#include "standalone/schema/table.h"

/* The reply with one object. */
int present_object(struct api_call *call, int code, cJSON *object);
/* Reads the form of a Table from the query; -1 after a refusal: the query asks for an impossible
 * one. Options of another form do not count. */
int present_options(struct api_call *call, struct table_options *ret);
/* A tree in the form that was asked for, a Table of one row or metadata alone; in the arena. */
cJSON *present_tree(struct arena *arena, const struct format *format,
                    const struct resource *resource, const struct table_options *options,
                    cJSON *tree);
