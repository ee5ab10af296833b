/* A tree that changes, large containers of which are not walked for each change; for this folder only. */
#pragma once

#include "common/json/json.h"

struct child_index;

/*
 * Of the containers that these functions are called with, in one tree. While it is in use, containers that
 * have more than a few children are changed by it alone, and what leaves the tree stays in memory: it is
 * remembered by its address. Names are found at once, items too; to insert into a list or to take from it
 * moves the pointers behind that place.
 */
struct child_index *child_index_create(struct arena *arena);

size_t child_index_len(struct child_index *index, cJSON *array);
cJSON *child_index_item(struct child_index *index, cJSON *array, size_t at); /* NULL: behind it */
cJSON *child_index_member(struct child_index *index, cJSON *object, const char *name); /* or NULL */

/* Take value. At the length: behind the last. A member keeps its place and gets the new value. */
void child_index_insert(struct child_index *index, cJSON *array, size_t at, cJSON *value);
void child_index_set(struct child_index *index, cJSON *object, const char *name, cJSON *value);
void child_index_set_item(struct child_index *index, cJSON *array, size_t at, cJSON *value);

/* Out of the tree; the caller's, who must not free it before the index is done. NULL: not there. */
cJSON *child_index_take(struct child_index *index, cJSON *object, const char *name);
cJSON *child_index_take_item(struct child_index *index, cJSON *array, size_t at);
