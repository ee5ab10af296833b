#include "common/tests/fake_store.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"

void fake_store_release(struct fake_store *store)
{
    for (size_t i = 0; i < store->len; i++) {
        free(store->entries[i].key);
        json_free(store->entries[i].object);
    }
    free(store->entries);
}

size_t fake_store_lower(const struct fake_store *store, const char *key)
{
    size_t low = 0, high = store->len;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(store->entries[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct fake_entry *fake_store_find(const struct fake_store *store, const char *key)
{
    size_t at = fake_store_lower(store, key);

    return at < store->len && strcmp(store->entries[at].key, key) == 0 ? &store->entries[at] : NULL;
}

cJSON *fake_metadata(cJSON *object)
{
    for (cJSON *member = object->child; member; member = member->next) {
        if (strcmp(member->string, "metadata") == 0)
            return member;
    }
    return json_set_object(object, "metadata");
}

const char *fake_metadata_string(const cJSON *object, const char *key)
{
    return json_string(json_path(object, "metadata", key, NULL), "");
}

const char *fake_store_now(const struct fake_store *store, int64_t offset_s,
                           char ret[static RFC3339_LEN])
{
    int64_t now_us =
        store->clock ? clock_wall_us(store->clock) : INT64_C(1767225600000000) + offset_s * 1000000;

    return rfc3339_format(now_us, ret);
}

void fake_store_complete(struct fake_store *store, cJSON *object)
{
    char uid[37], time[RFC3339_LEN];
    cJSON *metadata = fake_metadata(object);

    snprintf(uid, sizeof(uid), "00000000-0000-4000-8000-%012u", ++store->uids);
    json_set_string(metadata, "uid", uid);
    json_set_int(metadata, "generation", 1);
    json_set_string(metadata, "creationTimestamp", fake_store_now(store, 0, time));
}

static void set_version(struct fake_store *store, cJSON *object)
{
    char text[24];

    snprintf(text, sizeof(text), "%lld", (long long)++store->version);
    json_set_string(fake_metadata(object), "resourceVersion", text);
}

static void tell(const struct fake_store *store, const cJSON *old, const cJSON *current)
{
    if (store->on_change)
        store->on_change(store->ctx, old, current);
}

const cJSON *fake_store_insert(struct fake_store *store, const char *key, cJSON *object)
{
    size_t at = fake_store_lower(store, key);

    if (store->len == store->cap) {
        store->cap = store->cap ? 2 * store->cap : 16;
        store->entries = xrealloc(store->entries, store->cap * sizeof(*store->entries));
    }
    memmove(store->entries + at + 1, store->entries + at,
            (store->len - at) * sizeof(*store->entries));
    store->len++;

    set_version(store, object);
    store->entries[at] = (struct fake_entry){ .key = xstrdup(key), .object = object };
    tell(store, NULL, object);
    return object;
}

const cJSON *fake_store_replace(struct fake_store *store, struct fake_entry *entry, cJSON *object)
{
    cJSON *old = entry->object;

    set_version(store, object);
    entry->object = object;
    tell(store, old, object);
    json_free(old);
    return object;
}

void fake_store_remove(struct fake_store *store, struct fake_entry *entry)
{
    struct fake_entry gone = *entry;
    size_t at = (size_t)(entry - store->entries);

    store->len--;
    memmove(entry, entry + 1, (store->len - at) * sizeof(*entry));

    set_version(store, gone.object);
    tell(store, gone.object, NULL);
    json_free(gone.object);
    free(gone.key);
}
