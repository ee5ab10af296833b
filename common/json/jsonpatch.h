/* JSON patches (RFC 6902): one is built against a known document, or applied to a document. */
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
/* The document after all operations but tests; free to change once no further operation is added. */
cJSON *json_patch_document(const struct json_patch *patch);

/* As the API server allows. A body has values for a third of them, so that the lists and objects which these go through
 * cost some tenths of a second at most. */
#define JSON_PATCH_MAX_OPERATIONS 10000
/* All copies of one patch together. */
#define JSON_PATCH_MAX_COPIED_VALUES 16000u
#define JSON_PATCH_MAX_COPIED_BYTES (3u << 20)

/*
 * Applies operations that a client sent. As kube-apiserver has it, "replace" adds a member that is not there. Either all
 * operations are carried out or none. *ret is a new tree in the arena; document is not changed.
 * ERROR_INVALID: operations is not a list of objects.
 * ERROR_TOO_LARGE: too many operations, or they copy too much.
 * ERROR_CONFLICT: an operation does not fit the document (a failed test included), or the result would nest deeper
 * than JSON_MAX_DEPTH.
 */
int json_patch_apply(struct arena *arena, const cJSON *document, const cJSON *operations,
                     cJSON **ret, struct error *err) MUST_CHECK;
