#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/str.h"
#include "standalone/store/kv_watch_internal.h"

/* --- entries --- */

static char *entry_copy(char **at, const char *bytes, size_t len)
{
    char *copy = *at;

    memcpy(copy, bytes, len);
    copy[len] = '\0';
    *at += len + 1;
    return copy;
}

struct kv_entry *kv_entry_create(const struct kv_row *row, const struct kv_row *previous)
{
    size_t strings =
        row->key_len + 1 + (row->deleted ? 0 : row->len + 1) + (previous ? previous->len + 1 : 0);
    struct kv_entry *entry = xmalloc(sizeof(*entry) + strings);
    char *at = entry->strings;

    atomic_init(&entry->references, 1);
    entry->bytes = sizeof(*entry) + strings;
    entry->event = (struct kv_event){
        .type = row->deleted ? KV_DELETE : KV_PUT,
        .value = { .revision = row->revision, .created = row->created },
    };
    struct kv_event *event = &entry->event;
    event->value.key = entry_copy(&at, row->key, row->key_len);
    if (!row->deleted) {
        event->value.text = entry_copy(&at, row->text, row->len);
        event->value.len = row->len;
    }
    if (previous) {
        event->previous = (struct kv_value){
            .key = event->value.key,
            .text = entry_copy(&at, previous->text, previous->len),
            .len = previous->len,
            .revision = previous->revision,
            .created = previous->created,
        };
    }
    return entry;
}

void kv_entry_unref(void *pointer)
{
    struct kv_entry *entry = pointer;

    if (entry && atomic_fetch_sub(&entry->references, 1) == 1)
        free(entry);
}

/* --- the ring; its lock is held --- */

static struct kv_entry **slot_of(struct kv_ring *ring, uint64_t revision)
{
    return &ring->entries[revision % KV_RING_ENTRIES];
}

static void drop_oldest(struct kv_ring *ring)
{
    struct kv_entry **slot = slot_of(ring, ++ring->base);

    ring->bytes -= (*slot)->bytes;
    kv_entry_unref(*slot);
    *slot = NULL;
}

static void clear(struct kv_ring *ring)
{
    while (ring->base < ring->head)
        drop_oldest(ring);
}

static void add(struct kv_ring *ring, struct kv_entry *entry)
{
    while (ring->base < ring->head && (ring->head - ring->base == KV_RING_ENTRIES ||
                                       ring->bytes + entry->bytes > ring->max_bytes))
        drop_oldest(ring);
    ring->head++;
    assert(entry->event.value.revision == ring->head);
    *slot_of(ring, ring->head) = entry;
    ring->bytes += entry->bytes;
}

static bool concerns(const struct kv_watch *watch, struct kv_entry *const *entries, size_t len)
{
    if (!entries)
        return true; /* nobody knows */
    for (size_t i = 0; i < len; i++) {
        const struct kv_value *value = &entries[i]->event.value;
        if (value->revision > watch->cursor && str_has_prefix(value->key, watch->prefix))
            return true;
    }
    return false;
}

static void add_to_tell(struct kv_ring *ring, struct kv_watch *watch)
{
    if (watch->to_tell)
        return;
    watch->to_tell = true;
    watch->next_to_tell = ring->to_tell;
    ring->to_tell = watch;
}

static void remove_to_tell(struct kv_ring *ring, struct kv_watch *watch)
{
    struct kv_watch **link = &ring->to_tell;

    if (!watch->to_tell)
        return;
    while (*link != watch)
        link = &(*link)->next_to_tell;
    *link = watch->next_to_tell;
    watch->to_tell = false;
}

void kv_ring_init(struct kv_ring *ring, uint64_t head, size_t max_bytes)
{
    (void)pthread_mutex_init(&ring->lock, NULL);
    (void)pthread_cond_init(&ring->told, NULL);
    ring->head = ring->base = head;
    ring->max_bytes = max_bytes;
}

void kv_ring_release(struct kv_ring *ring)
{
    assert(!ring->watches);
    clear(ring);
    free(ring->entries);
    (void)pthread_cond_destroy(&ring->told);
    (void)pthread_mutex_destroy(&ring->lock);
}

void kv_ring_publish(struct kv_ring *ring, struct kv_entry **entries, size_t len)
{
    (void)pthread_mutex_lock(&ring->lock);
    for (struct kv_watch *watch = ring->watches; watch; watch = watch->next) {
        /* One that has taken everything stays so while others write, and is not behind the history
         * when its first event comes. */
        if (!watch->waits)
            continue;
        if (concerns(watch, entries, len)) {
            watch->waits = false;
            add_to_tell(ring, watch);
        } else if (watch->cursor < ring->head + len) {
            watch->cursor = ring->head + len;
        }
    }
    if (entries && ring->watches) {
        for (size_t i = 0; i < len; i++)
            add(ring, entries[i]);
    } else {
        clear(ring);
        ring->head += len;
        ring->base = ring->head;
        for (size_t i = 0; entries && i < len; i++)
            kv_entry_unref(entries[i]);
    }
    (void)pthread_mutex_unlock(&ring->lock);
}

/* The next one that is to be told; it is not closed until `told` of it. */
static struct kv_watch *take_to_tell(struct kv_ring *ring)
{
    (void)pthread_mutex_lock(&ring->lock);
    struct kv_watch *watch = ring->to_tell;
    if (watch) {
        remove_to_tell(ring, watch);
        watch->telling = true;
    }
    (void)pthread_mutex_unlock(&ring->lock);
    return watch;
}

void kv_ring_notify(struct kv_ring *ring)
{
    struct kv_watch *watch;

    while ((watch = take_to_tell(ring))) {
        if (watch->notify)
            watch->notify(watch->ctx);
        (void)pthread_mutex_lock(&ring->lock);
        watch->telling = false;
        (void)pthread_cond_broadcast(&ring->told);
        (void)pthread_mutex_unlock(&ring->lock);
    }
}

uint64_t kv_revision(struct kv *kv)
{
    (void)pthread_mutex_lock(&kv->ring.lock);
    uint64_t head = kv->ring.head;
    (void)pthread_mutex_unlock(&kv->ring.lock);
    return head;
}

/* --- what watches do with it --- */

void kv_ring_join(struct kv_ring *ring, struct kv_watch *watch)
{
    (void)pthread_mutex_lock(&ring->lock);
    if (!ring->entries)
        ring->entries = xcalloc(KV_RING_ENTRIES, sizeof(struct kv_entry *));
    watch->next = ring->watches;
    ring->watches = watch;
    atomic_store(&ring->watched, true);
    (void)pthread_mutex_unlock(&ring->lock);
}

void kv_ring_leave(struct kv_ring *ring, struct kv_watch *watch)
{
    (void)pthread_mutex_lock(&ring->lock);
    while (watch->telling)
        (void)pthread_cond_wait(&ring->told, &ring->lock);
    struct kv_watch **link = &ring->watches;
    while (*link != watch)
        link = &(*link)->next;
    *link = watch->next;
    remove_to_tell(ring, watch);
    if (!ring->watches) {
        atomic_store(&ring->watched, false);
        clear(ring);
        ring->base = ring->head;
        free(ring->entries);
        ring->entries = NULL;
    }
    (void)pthread_mutex_unlock(&ring->lock);
}

enum kv_ring_answer kv_ring_next(struct kv_ring *ring, struct kv_watch *watch,
                                 struct kv_entry **ret)
{
    enum kv_ring_answer answer = KV_RING_NOTHING;

    (void)pthread_mutex_lock(&ring->lock);
    if (watch->cursor < ring->base)
        answer = KV_RING_BEHIND;
    while (watch->cursor < ring->head && answer == KV_RING_NOTHING) {
        struct kv_entry *entry = *slot_of(ring, ++watch->cursor);
        if (str_has_prefix(entry->event.value.key, watch->prefix)) {
            atomic_fetch_add(&entry->references, 1);
            *ret = entry;
            answer = KV_RING_EVENT;
        }
    }
    watch->waits = answer == KV_RING_NOTHING;
    (void)pthread_mutex_unlock(&ring->lock);
    return answer;
}

uint64_t kv_ring_cursor(struct kv_ring *ring, struct kv_watch *watch)
{
    (void)pthread_mutex_lock(&ring->lock);
    uint64_t cursor = watch->cursor;
    (void)pthread_mutex_unlock(&ring->lock);
    return cursor;
}

void kv_ring_set_cursor(struct kv_ring *ring, struct kv_watch *watch, uint64_t cursor)
{
    (void)pthread_mutex_lock(&ring->lock);
    watch->cursor = cursor;
    (void)pthread_mutex_unlock(&ring->lock);
}
