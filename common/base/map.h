/*
 * A map maps strings to pointers, by open addressing.
 *
 * The map copies its keys. Values belong to the caller, or to the map if it has a release function.
 * Not thread-safe: the owner guards it. No function fails; out of memory ends the process.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct map;

/* release may be NULL. It is called for each value that is replaced, removed or still there when
 * the map is destroyed. */
struct map *map_create(void (*release)(void *value));
void map_destroy(struct map *map); /* NULL is fine */
/* A map without a release function, which the arena destroys. */
struct map *map_of_arena(struct arena *arena);

void *map_get(const struct map *map, const char *key);       /* NULL: not there */
void map_set(struct map *map, const char *key, void *value); /* value must not be NULL */
void *map_take(struct map *map, const char *key);            /* removes, without release */
bool map_remove(struct map *map, const char *key);           /* false: not there */
/* Returns the map's own copy of the key, which lives as long as the entry; NULL: not there. A value
 * need not keep its key, and an entry may be removed by this copy. */
const char *map_key(const struct map *map, const char *key);
size_t map_len(const struct map *map);
/* Returns the SipHash of a key with a secret of this process, so peers cannot choose keys that
 * collide. Any thread. */
uint64_t map_hash(const char *key);

/* Iterates in no defined order: for (size_t i = 0; map_next(map, &i, &key, &value);) … The map must
 * not change meanwhile. */
bool map_next(const struct map *map, size_t *position, const char **ret_key, void **ret_value);
