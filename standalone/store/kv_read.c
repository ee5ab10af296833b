#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>

#include "common/base/alloc.h"
#include "standalone/store/kv_internal.h"

#define FIRST_ITEMS 16

/* --- the pool --- */

void kv_pool_init(struct kv_pool *pool)
{
    (void)pthread_mutex_init(&pool->lock, NULL);
    (void)pthread_cond_init(&pool->changed, NULL);
    for (size_t i = 0; i < KV_READERS; i++) {
        pool->connections[i].next = pool->unused;
        pool->unused = &pool->connections[i];
    }
}

void kv_pool_release(struct kv_pool *pool)
{
    for (size_t i = 0; i < KV_READERS; i++)
        kv_disconnect(&pool->connections[i]);
    (void)pthread_cond_destroy(&pool->changed);
    (void)pthread_mutex_destroy(&pool->lock);
}

void kv_pool_pause(struct kv_pool *pool, bool paused)
{
    (void)pthread_mutex_lock(&pool->lock);
    pool->paused = paused;
    while (paused && pool->in_use)
        (void)pthread_cond_wait(&pool->changed, &pool->lock);
    (void)pthread_cond_broadcast(&pool->changed);
    (void)pthread_mutex_unlock(&pool->lock);
}

static struct kv_connection *pool_take(struct kv_pool *pool)
{
    (void)pthread_mutex_lock(&pool->lock);
    while (pool->paused || !pool->unused)
        (void)pthread_cond_wait(&pool->changed, &pool->lock);
    struct kv_connection *connection = pool->unused;
    pool->unused = connection->next;
    pool->in_use++;
    (void)pthread_mutex_unlock(&pool->lock);
    return connection;
}

static void pool_give(struct kv_pool *pool, struct kv_connection *connection)
{
    (void)pthread_mutex_lock(&pool->lock);
    connection->next = pool->unused;
    pool->unused = connection;
    pool->in_use--;
    (void)pthread_cond_broadcast(&pool->changed);
    (void)pthread_mutex_unlock(&pool->lock);
}

/* --- snapshots --- */

int kv_state_read(struct kv_connection *connection, struct kv_point *ret_compacted,
                  uint64_t *ret_head, struct error *err)
{
    CLEANUP(sqlite3_resetp) sqlite3_stmt *statement = NULL;

    int r = kv_prepare(connection, KV_STATE, &statement, err);
    if (r == 0)
        r = kv_step(connection, statement, "read", err);
    if (r == 0)
        return error_set(err, ERROR_INTERNAL, "its state is missing");
    if (r < 0)
        return r;
    *ret_compacted =
        (struct kv_point){ kv_column_number(statement, 0), kv_column_number(statement, 1) };
    *ret_head = kv_column_number(statement, 2);
    if (*ret_head < ret_compacted->revision)
        *ret_head = ret_compacted->revision; /* no rows yet */
    return 0;
}

int kv_snapshot_take(struct kv_snapshot *snapshot, struct error *err)
{
    struct kv_point compacted = { 0 };

    int r = kv_run(snapshot->connection, KV_BEGIN_READ, err);
    if (r == 0)
        r = kv_state_read(snapshot->connection, &compacted, &snapshot->revision, err);
    snapshot->compacted = compacted.revision;
    return r;
}

int kv_snapshot_begin(struct kv *kv, struct kv_snapshot *ret, struct error *err)
{
    struct kv_snapshot snapshot = { .connection = pool_take(&kv->pool) };
    struct kv_connection *connection = snapshot.connection;
    unsigned generation = atomic_load(&kv->health.generation);
    int r = 0;

    if (connection->generation != generation)
        kv_disconnect(connection);
    if (!connection->db) {
        r = kv_connect(kv->path, kv->vfs, true, connection, err);
        connection->generation = generation;
    }
    if (r == 0)
        r = kv_snapshot_take(&snapshot, err);
    if (r < 0) {
        (void)kv_health_note(kv, r, err);
        kv_snapshot_end(kv, &snapshot);
        return r;
    }
    *ret = snapshot;
    return 0;
}

void kv_snapshot_end(struct kv *kv, struct kv_snapshot *snapshot)
{
    struct kv_connection *connection = snapshot->connection;

    if (!kv_roll_back(connection))
        kv_disconnect(connection); /* a fresh one next time */
    pool_give(&kv->pool, connection);
}

/* --- ranges --- */

/* The keys of a prefix: from <= key < end, but not `except`. */
struct bounds {
    const char *from;
    const char *end;    /* NULL: no end */
    const char *except; /* "": none */
};

static struct bounds bounds_of(struct arena *arena, const char *prefix, const char *after)
{
    struct bounds bounds = { .from = prefix, .except = "" };
    size_t len = strlen(prefix);

    if (len) {
        char *end = arena_strdup(arena, prefix);
        end[len - 1]++; /* a key has no byte 0xff, which UTF-8 knows not */
        bounds.end = end;
    }
    if (after && strcmp(after, prefix) >= 0) {
        bounds.from = after;
        bounds.except = after;
    }
    return bounds;
}

static void bounds_bind(sqlite3_stmt *statement, const struct bounds *bounds)
{
    (void)kv_bind_text(statement, 1, bounds->from, strlen(bounds->from));
    if (bounds->end)
        (void)kv_bind_text(statement, 2, bounds->end, strlen(bounds->end));
    else
        (void)sqlite3_bind_zeroblob(statement, 2, 0); /* which every text is smaller than */
    (void)kv_bind_text(statement, 3, bounds->except, strlen(bounds->except));
}

int kv_too_old(uint64_t revision, uint64_t compacted, struct error *err)
{
    return error_set(err, ERROR_GONE, "revision %" PRIu64 " is compacted, the oldest is %" PRIu64,
                     revision, compacted);
}

/* The revision that is meant by `asked`. */
static int choose_revision(const struct kv_snapshot *snapshot, uint64_t asked, uint64_t *ret,
                           struct error *err)
{
    if (asked == 0)
        asked = snapshot->revision;
    if (asked > snapshot->revision)
        return error_set(err, ERROR_TIMEOUT,
                         "revision %" PRIu64 " is not there yet, the newest is %" PRIu64, asked,
                         snapshot->revision);
    if (asked < snapshot->compacted)
        return kv_too_old(asked, snapshot->compacted, err);
    *ret = asked;
    return 0;
}

int kv_value_read(struct kv_connection *connection, struct arena *arena, uint64_t revision,
                  struct kv_value *ret, struct error *err)
{
    CLEANUP(sqlite3_resetp) sqlite3_stmt *statement = NULL;
    struct kv_row row;

    int r = kv_row_find(connection, revision, &statement, &row, err);
    if (r < 0)
        return r;
    *ret = (struct kv_value){
        .key = arena_strndup(arena, row.key, row.key_len),
        .text = row.deleted ? NULL : arena_strndup(arena, row.text, row.len),
        .len = row.len,
        .revision = row.revision,
        .written_ms = row.written_ms,
    };
    return 0;
}

int kv_find_newest(struct kv_connection *connection, const char *key, uint64_t revision,
                   uint64_t *ret, struct error *err)
{
    CLEANUP(sqlite3_resetp) sqlite3_stmt *statement = NULL;

    int r = kv_prepare(connection, KV_NEWEST, &statement, err);
    if (r < 0)
        return r;
    (void)kv_bind_text(statement, 1, key, strlen(key));
    (void)kv_bind_number(statement, 2, revision);
    r = kv_step(connection, statement, "read", err);
    if (r < 0)
        return r;
    *ret = r > 0 && !sqlite3_column_int(statement, 1) ? kv_column_number(statement, 0) : 0;
    return 0;
}

int kv_get(struct kv *kv, struct arena *arena, const char *key, uint64_t revision,
           struct kv_value *ret, struct error *err)
{
    struct kv_snapshot snapshot;

    int r = kv_snapshot_begin(kv, &snapshot, err);
    if (r < 0)
        return r;
    r = choose_revision(&snapshot, revision, &revision, err);
    if (r == 0)
        r = kv_find_newest(snapshot.connection, key, revision, &revision, err);
    if (r == 0 && !revision)
        r = error_set(err, ERROR_NOT_FOUND, "'%s' is not there", key);
    if (r == 0)
        r = kv_value_read(snapshot.connection, arena, revision, ret, err);
    (void)kv_health_note(kv, r, err);
    kv_snapshot_end(kv, &snapshot);
    return r;
}

/* --- lists --- */

static int count_keys(struct kv_connection *connection, const struct bounds *bounds,
                      uint64_t revision, size_t *ret, struct error *err)
{
    CLEANUP(sqlite3_resetp) sqlite3_stmt *statement = NULL;

    int r = kv_prepare(connection, KV_COUNT, &statement, err);
    if (r < 0)
        return r;
    bounds_bind(statement, bounds);
    (void)kv_bind_number(statement, 4, revision);
    r = kv_step(connection, statement, "count", err);
    if (r < 0)
        return r;
    *ret = (size_t)kv_column_number(statement, 0);
    return 0;
}

static int list_keys(struct kv_connection *connection, struct arena *arena,
                     const struct bounds *bounds, const struct kv_range *range,
                     struct kv_page *page, struct error *err)
{
    CLEANUP(sqlite3_resetp) sqlite3_stmt *keys = NULL;
    size_t room = 0, bytes = 0;

    int r = kv_prepare(connection, KV_KEYS, &keys, err);
    if (r < 0)
        return r;
    bounds_bind(keys, bounds);
    (void)kv_bind_number(keys, 4, page->revision);
    while ((r = kv_step(connection, keys, "list", err)) > 0) {
        if ((range->limit && page->len == range->limit) ||
            (range->max_bytes && bytes >= range->max_bytes))
            return 1;
        if (page->len == room) {
            struct kv_value *old = page->items;
            room = room ? 2 * room : FIRST_ITEMS;
            page->items = arena_array(arena, struct kv_value, room);
            if (page->len)
                memcpy(page->items, old, page->len * sizeof(*old));
        }
        r = kv_value_read(connection, arena, kv_column_number(keys, 0), &page->items[page->len],
                          err);
        if (r < 0)
            return r;
        bytes += page->items[page->len++].len;
    }
    return r;
}

static int snapshot_list(const struct kv_snapshot *snapshot, struct arena *arena,
                         const struct kv_range *range, struct kv_page *ret, struct error *err)
{
    struct bounds bounds = bounds_of(arena, range->prefix, range->after);
    struct kv_page page = { 0 };

    int r = choose_revision(snapshot, range->revision, &page.revision, err);
    if (r < 0)
        return r;
    r = list_keys(snapshot->connection, arena, &bounds, range, &page, err);
    if (r < 0)
        return r;
    page.remaining = r > 0;
    if (r > 0 && !range->uncounted && page.len == range->limit) {
        bounds = bounds_of(arena, range->prefix, page.items[page.len - 1].key);
        r = count_keys(snapshot->connection, &bounds, page.revision, &page.remaining, err);
        if (r < 0)
            return r;
    }
    *ret = page;
    return 0;
}

int kv_list(struct kv *kv, struct arena *arena, const struct kv_range *range, struct kv_page *ret,
            struct error *err)
{
    struct kv_snapshot snapshot;

    int r = kv_snapshot_begin(kv, &snapshot, err);
    if (r < 0)
        return r;
    r = kv_health_note(kv, snapshot_list(&snapshot, arena, range, ret, err), err);
    kv_snapshot_end(kv, &snapshot);
    return r;
}

/* --- a store that another process may write --- */

struct kv_reader {
    char *path;
    struct kv_connection connection;
    struct kv_snapshot snapshot;
};

int kv_reader_open(const char *path, struct kv_reader **ret, struct error *err)
{
    CLEANUP(kv_reader_closep) struct kv_reader *reader = xcalloc(1, sizeof(*reader));
    struct stat status;

    reader->path = xstrdup(path);
    if (stat(path, &status) < 0)
        return error_set(err, ERROR_NOT_FOUND, "store '%s': %s", path, strerror(errno));
    int r = kv_connect(reader->path, NULL, true, &reader->connection, err);
    if (r == 0)
        r = kv_check_identity(&reader->connection, err);
    if (r > 0)
        return error_set(err, ERROR_NOT_FOUND, "store '%s' is empty", reader->path);
    reader->snapshot.connection = &reader->connection;
    if (r == 0)
        r = kv_snapshot_take(&reader->snapshot, err);
    if (r < 0)
        return kv_refuse_damaged(path, r, err);
    *ret = TAKE(reader);
    return 0;
}

/* The log stays as it is: only who writes moves it. */
void kv_reader_close(struct kv_reader *reader)
{
    if (!reader)
        return;
    kv_disconnect(&reader->connection);
    free(reader->path);
    free(reader);
}

int kv_reader_list(struct kv_reader *reader, struct arena *arena, const struct kv_range *range,
                   struct kv_page *ret, struct error *err)
{
    assert(range->revision == 0);
    return snapshot_list(&reader->snapshot, arena, range, ret, err);
}
