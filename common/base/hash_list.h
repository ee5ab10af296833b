/* A set of hashes, as a list: small, and cheap to empty. Not thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* {0} is empty. */
struct hash_list {
    uint64_t *hashes;
    size_t len;
};
/* false: it is there already. Looks at each, so the caller limits the length. */
bool hash_list_add(struct hash_list *list, uint64_t hash);
bool hash_list_remove(struct hash_list *list, uint64_t hash); /* false: it is not there */
void hash_list_release(struct hash_list *list);               /* the list is empty then */
