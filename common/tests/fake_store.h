/* What fake_api.c keeps: objects in the order of their keys, and one counter of versions. Not
 * locked. */
#pragma once

#include "common/tests/fake_api.h"

struct fake_store {
    struct fake_entry *entries; /* sorted by key */
    size_t len;
    size_t cap;
    int64_t version;
    unsigned uids;
    fake_change_fn *on_change;
    void *ctx;
    const struct clock *clock; /* NULL: time stands still */
};
struct fake_entry {
    char *key; /* "<api path>/<plural>|<ns>/<name>" */
    cJSON *object;
};

void fake_store_release(struct fake_store *store);

/* The first entry whose key is not smaller. */
size_t fake_store_lower(const struct fake_store *store, const char *key);
struct fake_entry *fake_store_find(const struct fake_store *store, const char *key);

/* The object's metadata, made if need be. */
cJSON *fake_metadata(cJSON *object);

const char *fake_metadata_string(const cJSON *object, const char *key); /* "": not there */
/* "2026-01-01T00:00:00Z" plus offset_s, or the time of the store's clock. */
const char *fake_store_now(const struct fake_store *store, int64_t offset_s,
                           char ret[static RFC3339_LEN]);
/* What the API server adds to a new object: uid, generation, creationTimestamp. */
void fake_store_complete(struct fake_store *store, cJSON *object);

/* All three give the object its next version and tell on_change. object is taken. */
const cJSON *fake_store_insert(struct fake_store *store, const char *key, cJSON *object);
const cJSON *fake_store_replace(struct fake_store *store, struct fake_entry *entry, cJSON *object);
void fake_store_remove(struct fake_store *store, struct fake_entry *entry);
