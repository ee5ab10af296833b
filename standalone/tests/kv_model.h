/* What a store should hold: every write that was made, in order. Reads of any revision are replays. */
#pragma once

#include "standalone/store/kv.h"

struct kv_model_write {
    const char *key;
    const char *text; /* NULL: deleted */
};

/* Revision r is writes[r]; the first one is 2. */
struct kv_model {
    struct kv_model_write *writes;
    uint64_t head; /* 1: nothing was written */
};

struct kv_model *kv_model_create(struct arena *arena, size_t max_writes);
/* At any place: writers may be told of their revisions out of order. */
void kv_model_set(struct kv_model *model, uint64_t revision, const char *key, const char *text);

/* The revision of the key at `revision`; 0: it is not there. */
uint64_t kv_model_find(const struct kv_model *model, const char *key, uint64_t revision);
/* The first write after `revision` with the prefix; 0: none. */
uint64_t kv_model_next(const struct kv_model *model, const char *prefix, uint64_t revision);

/* Fails the test unless the value, or the event, is the one of that revision. */
void kv_model_check_value(const struct kv_model *model, const struct kv_value *value,
                          uint64_t revision);
void kv_model_check_event(const struct kv_model *model, const struct kv_event *event,
                          uint64_t revision);
/* Fails the test unless a list of the prefix at that revision is the model's, for these keys. */
void kv_model_check_list(const struct kv_model *model, struct kv *kv, const char *prefix,
                         uint64_t revision, const char *const *keys, size_t keys_len);
