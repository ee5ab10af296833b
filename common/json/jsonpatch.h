/* Building an RFC 6902 JSON Patch against a known document. */
#pragma once

#include "common/json/json.h"

struct json_patch;

/* document is what the patch will meet (NULL: an empty object); both live as long as the patch. */
struct json_patch *json_patch_create(struct arena *arena, const cJSON *document);

/*
 * Each takes value. Parents that the document lacks are added first, as empty objects; null counts
 * as absent. A pointer through a value that has no members changes nothing: the API server refuses
 * such a document anyway.
 */
void json_patch_set(struct json_patch *patch, const char *pointer,
                    cJSON *value); /* add or replace, if different */
void json_patch_default(struct json_patch *patch, const char *pointer,
                        cJSON *value);                                 /* only if absent */
void json_patch_remove(struct json_patch *patch, const char *pointer); /* only if there */
void json_patch_test(struct json_patch *patch, const char *pointer, cJSON *value);

/* RFC 6901: ~ and / in one reference token. */
const char *json_pointer_escape(struct arena *arena, const char *token);

/* Brings every top-level member of `to` into, and those only in `from` out of, the object at
 * pointer. */
void json_patch_members(struct json_patch *patch, const char *pointer, const cJSON *from,
                        const cJSON *to);

/* NULL: nothing to do, as tests alone change nothing. */
const cJSON *json_patch_operations(const struct json_patch *patch);
