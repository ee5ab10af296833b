#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/str.h"
#include "standalone/store/kv_watch_internal.h"

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
    kv_ring_join(&kv->ring, watch);
    *ret = watch;
    return 0;
}

void kv_watch_close(struct kv_watch *watch)
{
    if (!watch)
        return;
    kv_ring_leave(&watch->kv->ring, watch);
    while (watch->first < watch->len)
        kv_entry_unref(watch->pending[watch->first++]);
    free(watch->prefix);
    free(watch);
}

uint64_t kv_watch_progress(struct kv_watch *watch)
{
    if (watch->first < watch->len)
        return watch->pending[watch->first]->event.value.revision - 1;
    return kv_ring_cursor(&watch->kv->ring, watch);
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
    (void)kv_bind_number(statement, 2, KV_WATCH_REVISIONS);
    watch->first = watch->len = 0;
    while (watch->len < KV_WATCH_EVENTS && bytes < KV_WATCH_BYTES) {
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
    uint64_t cursor = kv_ring_cursor(&kv->ring, watch);
    struct kv_snapshot snapshot;

    int r = kv_snapshot_begin(kv, &snapshot, err);
    if (r < 0)
        return r;
    r = kv_health_note(kv, read_events(watch, &snapshot, &cursor, err), err);
    kv_snapshot_end(kv, &snapshot);
    /* What was read before an error is given first; the error comes again. */
    kv_ring_set_cursor(&kv->ring, watch, cursor);
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
        enum kv_ring_answer answer = kv_ring_next(&watch->kv->ring, watch, ret);
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
    struct kv_entry *entry;

    int r = take_next(watch, &entry, err);
    if (r <= 0)
        return r;
    (void)arena_own(arena, entry, kv_entry_unref);
    *ret = entry->event;
    return 1;
}
