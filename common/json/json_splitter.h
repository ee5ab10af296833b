/* Cuts JSON into parts while the bytes arrive: knows strings and nesting, nothing else. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/base/compiler.h"
#include "common/base/error.h"

/*
 * JSON_SPLIT_DOCUMENTS: objects one after the other, as a watch sends them; each is a part.
 * JSON_SPLIT_LIST: one object; each element of its "items" is a part as soon as it has come, and at
 *   the end so is the object without them ("items":[]), wherever its other members stood. The elements are objects.
 * JSON_SPLIT_VALUES: the same of a list that a person may have written: an element is any value, and all up to the
 *   comma or bracket behind it; the object without them may be as long as a part.
 *
 * Memory: one part. A part is what lies between matching brackets; whether it is JSON is for the
 * parser to say. The same parts come out however the bytes are split.
 */
enum json_split { JSON_SPLIT_DOCUMENTS, JSON_SPLIT_LIST, JSON_SPLIT_VALUES };
enum json_part { JSON_PART_DOCUMENT, JSON_PART_ITEM, JSON_PART_ENVELOPE };

/*
 * text NULL: the part was longer than the limit, len says how long, and it was thrown away as it
 * came. text is valid during the call, and not NUL-terminated. < 0 ends the feed with that error.
 */
typedef int json_part_fn(void *ctx, enum json_part part, const char *text, size_t len,
                         struct error *err);

/* Limit of a list of an API server (JSON_SPLIT_LIST) without its items. */
#define JSON_MAX_ENVELOPE (64u << 10)

struct json_splitter;
struct json_splitter *json_splitter_create(size_t max_part, json_part_fn *part, void *ctx);
void json_splitter_destroy(struct json_splitter *splitter);

/* A new stream: forgets everything of the one before. Must not be called by the part function. */
void json_splitter_start(struct json_splitter *splitter, enum json_split split);
/* ERROR_INVALID: not what was to come (between objects, in "items", after a list);
 * ERROR_TOO_LARGE: an envelope over its limit. Each later feed gives an error, too. */
int json_splitter_feed(struct json_splitter *splitter, const char *bytes, size_t len,
                       struct error *err) MUST_CHECK;
/* A document or an item has begun, and its end has not come. */
bool json_splitter_is_in_part(const struct json_splitter *splitter);
