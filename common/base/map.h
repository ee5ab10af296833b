/* String -> pointer, open addressing. Keys are copied, values are the caller's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map;

/* release may be NULL; it is called for each value that is replaced, removed or left at the end. */
struct map *map_create(void (*release)(void *value));
void map_destroy(struct map *map); /* NULL is fine */

void *map_get(const struct map *map, const char *key);       /* NULL: not there */
void map_set(struct map *map, const char *key, void *value); /* value must not be NULL */
void *map_take(struct map *map, const char *key); /* removes without release; NULL: not there */
bool map_remove(struct map *map, const char *key);
/* The map's own copy, there as long as the entry is: a value need not keep its key, and may be removed
 * by it. NULL: not there. */
const char *map_key(const struct map *map, const char *key);
size_t map_len(const struct map *map);
/* SipHash of a key with a secret of this process: peers cannot choose keys that collide. */
uint64_t map_hash(const char *key);

/* for (size_t i = 0; map_next(map, &i, &key, &value);) … in no order; the map must not change
 * meanwhile. */
bool map_next(const struct map *map, size_t *position, const char **ret_key, void **ret_value);
