#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/str.h"
#include "standalone/store/kv_internal.h"

/* Events that are read from the file at once: so many, and no further one behind so many bytes; and
 * so many revisions are looked at. */
#define WATCH_EVENTS 32
#define WATCH_BYTES ((size_t)1 << 20)
#define WATCH_REVISIONS 1024

struct kv_watch {
    struct kv *kv;
    char *prefix;
    kv_notify_fn *notify;
    void *ctx;
    /* of the ring's lock */
    struct kv_watch *next;
    uint64_t cursor; /* everything up to here was taken, or is in pending */
    bool waits;      /* has taken everything, and is told of more */
    bool to_tell;    /* is on the ring's list of these */
    struct kv_watch *next_to_tell;
    bool telling; /* notify runs */
    /* of the thread that uses the watch */
    struct kv_entry *pending[WATCH_EVENTS];
    size_t first;
    size_t len;
};

enum kv_ring_answer { KV_RING_NOTHING, KV_RING_EVENT, KV_RING_BEHIND };

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

static void ring_join(struct kv_ring *ring, struct kv_watch *watch)
{
    (void)pthread_mutex_lock(&ring->lock);
    if (!ring->entries)
        ring->entries = xcalloc(KV_RING_ENTRIES, sizeof(struct kv_entry *));
    watch->next = ring->watches;
    ring->watches = watch;
    atomic_store(&ring->watched, true);
    (void)pthread_mutex_unlock(&ring->lock);
}

static void ring_leave(struct kv_ring *ring, struct kv_watch *watch)
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

static enum kv_ring_answer ring_next(struct kv_ring *ring, struct kv_watch *watch,
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

static uint64_t ring_cursor(struct kv_ring *ring, struct kv_watch *watch)
{
    (void)pthread_mutex_lock(&ring->lock);
    uint64_t cursor = watch->cursor;
    (void)pthread_mutex_unlock(&ring->lock);
    return cursor;
}

static void ring_set_cursor(struct kv_ring *ring, struct kv_watch *watch, uint64_t cursor)
{
    (void)pthread_mutex_lock(&ring->lock);
    watch->cursor = cursor;
    (void)pthread_mutex_unlock(&ring->lock);
}

/* --- watches --- */

static int too_old(uint64_t revision, uint64_t compacted, struct error *err)
{
    return error_set(err, ERROR_GONE, "revision %" PRIu64 " is compacted, the oldest is %" PRIu64,
                     revision, compacted);
}

int kv_watch(struct kv *kv, const char *prefix, uint64_t after_revision, kv_notify_fn *notify,
             void *ctx, struct kv_watch **ret, struct error *err)
{
    uint64_t compacted = kv_compacted(kv);

    if (after_revision < compacted)
        return too_old(after_revision, compacted, err);
    struct kv_watch *watch = xcalloc(1, sizeof(*watch));
    watch->kv = kv;
    watch->prefix = xstrdup(prefix);
    watch->notify = notify;
    watch->ctx = ctx;
    watch->cursor = after_revision;
    ring_join(&kv->ring, watch);
    *ret = watch;
    return 0;
}

void kv_watch_close(struct kv_watch *watch)
{
    if (!watch)
        return;
    ring_leave(&watch->kv->ring, watch);
    while (watch->first < watch->len)
        kv_entry_unref(watch->pending[watch->first++]);
    free(watch->prefix);
    free(watch);
}

uint64_t kv_watch_progress(struct kv_watch *watch)
{
    if (watch->first < watch->len)
        return watch->pending[watch->first]->event.value.revision - 1;
    return ring_cursor(&watch->kv->ring, watch);
}

/* --- from the file --- */

static int read_event(struct kv_connection *connection, uint64_t revision, uint64_t previous,
                      struct kv_entry **ret, struct error *err)
{
    CLEANUP(sqlite3_resetp) sqlite3_stmt *statement = NULL;
    struct kv_row row, old;

    int r = kv_row_find(connection, revision, &statement, &row, err);
    if (r < 0)
        return r;
    if (!previous) {
        *ret = kv_entry_create(&row, NULL);
        return 0;
    }

    /* One statement stands at one row: what the first one says is kept meanwhile. */
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    row.key = arena_strndup(arena, row.key, row.key_len);
    row.text = arena_strndup(arena, row.text, row.len);
    (void)sqlite3_reset(statement);
    r = kv_row_find(connection, previous, &statement, &old, err);
    if (r < 0)
        return r;
    *ret = kv_entry_create(&row, &old);
    return 0;
}

/* One of the rows that the statement goes through, if it is for this watch. */
static int take_row(struct kv_watch *watch, struct kv_connection *connection,
                    sqlite3_stmt *statement, size_t *bytes, struct error *err)
{
    const char *key = (const char *)sqlite3_column_text(statement, 5);

    if (!key || !str_has_prefix(key, watch->prefix))
        return 0;
    struct kv_entry *entry;
    int r = read_event(connection, kv_column_number(statement, 0), kv_column_number(statement, 1),
                       &entry, err);
    if (r < 0)
        return r;
    watch->pending[watch->len++] = entry;
    *bytes += entry->bytes;
    return 0;
}

/* Events behind *cursor, which goes on to what was looked at. */
static int read_events(struct kv_watch *watch, const struct kv_snapshot *snapshot, uint64_t *cursor,
                       struct error *err)
{
    struct kv_connection *connection = snapshot->connection;
    CLEANUP(sqlite3_resetp) sqlite3_stmt *statement = NULL;
    size_t bytes = 0;

    if (*cursor < snapshot->compacted)
        return too_old(*cursor, snapshot->compacted, err);
    int r = kv_prepare(connection, KV_LATER, &statement, err);
    if (r < 0)
        return r;
    (void)kv_bind_number(statement, 1, *cursor);
    (void)kv_bind_number(statement, 2, WATCH_REVISIONS);
    watch->first = watch->len = 0;
    while (watch->len < WATCH_EVENTS && bytes < WATCH_BYTES) {
        r = kv_step(connection, statement, "watch", err);
        if (r <= 0)
            return r;
        r = take_row(watch, connection, statement, &bytes, err);
        if (r < 0)
            return r;
        *cursor = kv_column_number(statement, 0);
    }
    return 0;
}

static int catch_up(struct kv_watch *watch, struct error *err)
{
    struct kv *kv = watch->kv;
    uint64_t cursor = ring_cursor(&kv->ring, watch);
    struct kv_snapshot snapshot;

    int r = kv_snapshot_begin(kv, &snapshot, err);
    if (r < 0)
        return r;
    r = kv_health_note(kv, read_events(watch, &snapshot, &cursor, err), err);
    kv_snapshot_end(kv, &snapshot);
    /* What was read before an error is given first; the error comes again. */
    ring_set_cursor(&kv->ring, watch, cursor);
    return watch->first < watch->len ? 0 : r;
}

/* 1: the next one, whose reference is the caller's; 0: none now. */
static int take_next(struct kv_watch *watch, struct kv_entry **ret, struct error *err)
{
    for (;;) {
        if (watch->first < watch->len) {
            *ret = watch->pending[watch->first++];
            return 1;
        }
        enum kv_ring_answer answer = ring_next(&watch->kv->ring, watch, ret);
        if (answer != KV_RING_BEHIND)
            return answer == KV_RING_EVENT;
        int r = catch_up(watch, err);
        if (r < 0)
            return r;
    }
}

int kv_watch_next(struct kv_watch *watch, struct arena *arena, struct kv_event *ret,
                  struct error *err)
{
    struct kv_entry *entry = NULL;

    int r = take_next(watch, &entry, err);
    if (r <= 0)
        return r;
    (void)arena_own(arena, entry, kv_entry_unref);
    *ret = entry->event;
    return 1;
}
