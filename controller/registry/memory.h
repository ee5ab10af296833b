/* Texts by key that are forgotten after a time: Secrets, and who may read which manifest. Any thread; guarded by a lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/arena.h"

struct memory;

/* At most max items; another one takes the place of the oldest. Items live for life_ms. */
struct memory *memory_create(size_t max, int64_t life_ms);
void memory_destroy(struct memory *memory); /* NULL is fine */
/* text may be NULL. */
void memory_put(struct memory *memory, const char *key, const char *text, int64_t now_ms);
/* false: it is not there. ret may be NULL; the text is in the arena. */
bool memory_get(struct memory *memory, struct arena *arena, const char *key, int64_t now_ms,
                const char **ret);
/* Overwrites and frees what is too old. Returns whether any item is left. */
bool memory_forget(struct memory *memory, int64_t now_ms);
