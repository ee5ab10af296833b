#include "common/base/hash_list.h"

#include <stdlib.h>

#include "common/base/alloc.h"

/* The place of this hash, or the end. */
static size_t hash_list_find(const struct hash_list *list, uint64_t hash)
{
    size_t i = 0;

    while (i < list->len && list->hashes[i] != hash)
        i++;
    return i;
}

bool hash_list_add(struct hash_list *list, uint64_t hash)
{
    size_t len = list->len;

    if (hash_list_find(list, hash) < len)
        return false;
    if ((len & (len - 1)) == 0) /* full at each power of two */
        list->hashes = xrealloc(list->hashes, (len ? 2 * len : 1) * sizeof(hash));
    list->hashes[list->len++] = hash;
    return true;
}

bool hash_list_remove(struct hash_list *list, uint64_t hash)
{
    size_t i = hash_list_find(list, hash);

    if (i == list->len)
        return false;
    list->hashes[i] = list->hashes[--list->len];
    return true;
}

void hash_list_release(struct hash_list *list)
{
    free(list->hashes);
    *list = (struct hash_list){ 0 };
}
