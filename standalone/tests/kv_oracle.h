/* Numbered writes of keys, each by one writer after the other, and what must be there after a crash:
 * the last acknowledged one, or one that was begun after it, with all of its text. */
#pragma once

#include "standalone/store/kv.h"

struct kv_known {
    uint64_t n;        /* of the last write that is known to be there; 0: none */
    uint64_t revision; /* its own; 0: it was not told */
    uint64_t asked;    /* the last one that was begun */
};

/* Every seventh write is a deletion, every fiftieth takes several pages. */
bool kv_oracle_deletes(uint64_t n);
/* What it writes: says which one it is, and is not right when a part is missing. */
const char *kv_oracle_text(struct arena *arena, size_t key, uint64_t n);
const char *kv_oracle_name(struct arena *arena, size_t key);
/* Does it; 0 with revision 0: there was nothing to delete. */
int kv_oracle_write(struct kv *kv, size_t key, uint64_t n, uint64_t *ret_revision,
                    struct error *err);
/* Fails the test unless the key holds what it must; then *known is what it holds. */
void kv_oracle_check(struct kv *kv, size_t key, struct kv_known *known);
