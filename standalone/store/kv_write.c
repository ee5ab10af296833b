#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/cond.h"
#include "common/base/log.h"
#include "common/runtime/metrics.h"
#include "standalone/store/kv_internal.h"

/* Writes of one transaction, that is of one sync; those of the largest texts are 12 MiB. */
#define MAX_GROUP 256
#define MAX_GROUP_BYTES ((size_t)12 << 20)

/* Pages in the log: from the first number on it is moved into the file, as SQLite does by default;
 * from the second on readers wait until it can begin anew, or it would grow as long as there is
 * always one of them. 4 and 16 MiB. */
#define LOG_FRAMES 1000
#define LOG_MAX_FRAMES 4000

static struct metric COMMITS = {
    .type = METRIC_HISTOGRAM,
    .name = "propeller_store_commit_seconds",
    .help = "Time that the disk takes to make writes durable.",
};

struct kv_write { /* of who waits for it */
    struct kv_write *next;
    struct kv_change *change;
    bool done;
    pthread_cond_t *changed; /* done, of the last one of those that are waited for together */
};

/* What a transaction makes, until it is on the disk. */
struct group {
    struct kv_write *first;
    struct kv_point head;
    bool watched;
    struct kv_entry *entries[MAX_GROUP];
    size_t len;
};

/* --- who writes --- */

static int check_change(const struct kv_change *change, struct error *err)
{
    size_t len = strlen(change->key);

    if (len == 0 || len > KV_MAX_KEY)
        return error_set(err, ERROR_INVALID, "a key has 1 to %d bytes, this one %zu", KV_MAX_KEY,
                         len);
    for (const char *byte = change->key; *byte; byte++) {
        if ((unsigned char)*byte < 0x20 || (unsigned char)*byte == 0xff)
            return error_set(err, ERROR_INVALID, "key '%s' has a byte that is not text",
                             change->key);
    }
    if (change->len > KV_MAX_TEXT)
        return error_set(err, ERROR_TOO_LARGE, "'%s' has %zu bytes, at most %u are stored",
                         change->key, change->len, KV_MAX_TEXT);
    return 0;
}

/* Until all are done: they are written in their order. */
static void submit(struct kv *kv, struct kv_write *writes, size_t len)
{
    struct kv_queue *queue = &kv->queue;
    struct kv_write *last = &writes[len - 1];
    pthread_cond_t changed;

    (void)pthread_cond_init(&changed, NULL);
    last->changed = &changed;
    (void)pthread_mutex_lock(&queue->lock);
    assert(!queue->stopping);
    if (queue->last)
        queue->last->next = writes;
    else
        queue->first = writes;
    queue->last = last;
    (void)pthread_cond_signal(&queue->changed);
    while (!last->done)
        (void)pthread_cond_wait(&changed, &queue->lock);
    (void)pthread_mutex_unlock(&queue->lock);
    (void)pthread_cond_destroy(&changed);
}

/* Links those that may be written; how many there are. */
static size_t link_writes(struct kv_write *writes, struct kv_change *changes, size_t len)
{
    size_t count = 0;

    for (size_t i = 0; i < len; i++) {
        changes[i].r = check_change(&changes[i], &changes[i].err);
        if (changes[i].r < 0)
            continue;
        writes[count] = (struct kv_write){ .change = &changes[i] };
        if (count)
            writes[count - 1].next = &writes[count];
        count++;
    }
    return count;
}

static void write_linked(struct kv *kv, struct kv_write *writes, struct kv_change *changes,
                         size_t len)
{
    size_t count = link_writes(writes, changes, len);

    if (count)
        submit(kv, writes, count);
}

void kv_write_all(struct kv *kv, struct kv_change *changes, size_t len)
{
    struct kv_write *writes = xcalloc(len, sizeof(*writes));

    write_linked(kv, writes, changes, len);
    free(writes);
}

static int write_one(struct kv *kv, struct kv_change *change, uint64_t *ret_revision,
                     struct error *err)
{
    struct kv_write write;

    write_linked(kv, &write, change, 1);
    if (change->r < 0) {
        if (err)
            *err = change->err;
        return change->r;
    }
    if (ret_revision)
        *ret_revision = change->revision;
    return 0;
}

int kv_put(struct kv *kv, const char *key, const char *text, size_t len, uint64_t expected,
           uint64_t *ret_revision, struct error *err)
{
    return kv_put_guarded(kv, key, text, len, expected, NULL, ret_revision, err);
}

int kv_put_guarded(struct kv *kv, const char *key, const char *text, size_t len, uint64_t expected,
                   const struct kv_guard *guard, uint64_t *ret_revision, struct error *err)
{
    struct kv_change change = {
        .key = key, .text = text, .len = len, .expected = expected, .guard = guard
    };

    return write_one(kv, &change, ret_revision, err);
}

int kv_delete(struct kv *kv, const char *key, uint64_t expected, uint64_t *ret_revision,
              struct error *err)
{
    struct kv_change change = { .key = key, .expected = expected };

    return write_one(kv, &change, ret_revision, err);
}

/* --- the writing thread --- */

static struct kv_write *take_group(struct kv *kv)
{
    struct kv_queue *queue = &kv->queue;
    struct kv_write *first = queue->first, *last = first;
    size_t bytes = first ? first->change->len : 0;

    for (size_t n = 1; last && last->next && n < MAX_GROUP; n++) {
        bytes += last->next->change->len;
        if (bytes > MAX_GROUP_BYTES)
            break;
        last = last->next;
    }
    if (last) {
        queue->first = last->next;
        if (!queue->first)
            queue->last = NULL;
        last->next = NULL;
    }
    return first;
}

/* 0: as expected. */
static int check_expected(const struct kv_change *change, uint64_t present, struct error *err)
{
    bool is_put = change->text != NULL;

    if (change->expected == KV_ANY)
        return present || is_put
                   ? 0
                   : error_set(err, ERROR_NOT_FOUND, "'%s' is not there", change->key);
    if (change->expected == 0 && present && is_put)
        return error_set(err, ERROR_EXISTS, "'%s' exists already", change->key);
    if (!present && (change->expected || !is_put))
        return error_set(err, ERROR_NOT_FOUND, "'%s' is not there", change->key);
    if (change->expected != present)
        return error_set(err, ERROR_CONFLICT,
                         "'%s' has changed: it is at revision %" PRIu64 ", not %" PRIu64,
                         change->key, present, change->expected);
    return 0;
}

static int insert(struct kv *kv, const struct kv_row *row, const struct kv_point *head,
                  struct error *err)
{
    CLEANUP(sqlite3_resetp) sqlite3_stmt *statement = NULL;

    int r = kv_prepare(&kv->writer, KV_INSERT, &statement, err);
    if (r < 0)
        return r;
    (void)kv_bind_number(statement, 1, row->revision);
    (void)kv_bind_text(statement, 2, row->key, row->key_len);
    (void)kv_bind_number(statement, 3, row->created);
    (void)kv_bind_number(statement, 4, row->previous);
    (void)kv_bind_number(statement, 5, row->deleted);
    (void)sqlite3_bind_int64(statement, 6, clock_wall_us(kv->clock) / 1000);
    (void)kv_bind_number(statement, 7, head->weight);
    (void)sqlite3_bind_int64(statement, 8, kv_checksum(row));
    (void)kv_bind_text(statement, 9, row->text, row->len);
    return kv_step(&kv->writer, statement, "write to", err);
}

/* The revision that the key is at; 0: it is not there. */
static int find_present(struct kv *kv, const char *key, uint64_t *ret, struct error *err)
{
    CLEANUP(sqlite3_resetp) sqlite3_stmt *statement = NULL;

    int r = kv_prepare(&kv->writer, KV_NEWEST, &statement, err);
    if (r < 0)
        return r;
    (void)kv_bind_text(statement, 1, key, strlen(key));
    (void)kv_bind_number(statement, 2, INT64_MAX);
    r = kv_step(&kv->writer, statement, "read", err);
    if (r < 0)
        return r;
    *ret = r > 0 && !sqlite3_column_int(statement, 1) ? kv_column_number(statement, 0) : 0;
    return 0;
}

/* What the transaction has written so far counts. 0: as it must be, or change->r says that it is not. */
static int check_guard(struct kv *kv, struct kv_change *change, struct error *err)
{
    const struct kv_guard *guard = change->guard;
    uint64_t present = 0;

    if (!guard)
        return 0;
    int r = find_present(kv, guard->key, &present, err);
    if (r == 0 && present != guard->revision)
        change->r = error_set(&change->err, ERROR_GONE,
                              "'%s' was written under '%s' at revision %" PRIu64
                              ", which is at %" PRIu64 " now",
                              change->key, guard->key, guard->revision, present);
    return r;
}

/* 0: written, or refused for what is there (change->r); less: the transaction cannot go on. */
static int apply(struct kv *kv, struct group *group, struct kv_change *change, struct error *err)
{
    CLEANUP(sqlite3_resetp) sqlite3_stmt *statement = NULL;
    struct kv_row old = { 0 };

    int r = find_present(kv, change->key, &old.revision, err);
    if (r == 0)
        r = check_guard(kv, change, err);
    if (r < 0)
        return r;
    if (change->r == 0)
        change->r = check_expected(change, old.revision, &change->err);
    if (change->r < 0)
        return 0;
    if (old.revision) {
        r = kv_row_find(&kv->writer, old.revision, &statement, &old, err);
        if (r < 0)
            return r;
    }

    struct kv_point head = { .revision = group->head.revision + 1,
                             .weight = group->head.weight + KV_ROW_WEIGHT + old.len };
    struct kv_row row = {
        .revision = head.revision,
        .created = old.revision ? old.created : head.revision,
        .previous = old.revision,
        .deleted = !change->text,
        .key = change->key,
        .key_len = strlen(change->key),
        .text = change->text ? change->text : "",
        .len = change->len,
    };
    r = insert(kv, &row, &head, err);
    if (r < 0)
        return r;
    if (group->watched)
        group->entries[group->len] = kv_entry_create(&row, old.revision ? &old : NULL);
    group->len++;
    group->head = head;
    change->revision = row.revision;
    return 0;
}

static int apply_all(struct kv *kv, struct group *group, struct error *err)
{
    int r = kv_renew_writer(kv, err);

    if (r == 0)
        r = kv_run(&kv->writer, KV_BEGIN_WRITE, err);
    for (struct kv_write *write = group->first; r == 0 && write; write = write->next)
        r = apply(kv, group, write->change, err);
    if (r < 0)
        return r;

    int64_t began_ms = clock_monotonic_ms(&CLOCK_SYSTEM);
    r = kv_run(&kv->writer, KV_COMMIT, err); /* the log is synced in here */
    metric_observe(&COMMITS, (double)(clock_monotonic_ms(&CLOCK_SYSTEM) - began_ms) / 1000, NULL);
    return r;
}

/* Nothing of it is there. */
static void give_up(struct kv *kv, struct group *group, const struct error *why)
{
    struct error ignored;

    if (!sqlite3_get_autocommit(kv->writer.db))
        (void)!kv_run(&kv->writer, KV_ROLLBACK, &ignored);
    for (size_t i = 0; group->watched && i < group->len; i++)
        kv_entry_unref(group->entries[i]);
    for (struct kv_write *write = group->first; write; write = write->next) {
        write->change->r = -(int)why->code;
        write->change->err = *why;
    }
    if (why->code == ERROR_INTERNAL)
        (void)kv_health_note(kv, -ERROR_INTERNAL, why);
    kv->log.try_frames = 0; /* what is moved into the file makes room in the log */
}

static void answer(struct kv *kv, struct kv_write *first)
{
    (void)pthread_mutex_lock(&kv->queue.lock);
    while (first) {
        struct kv_write *write = first;
        first = write->next; /* it is gone once the last of its like is done */
        write->done = true;
        if (write->changed)
            (void)pthread_cond_signal(write->changed);
    }
    (void)pthread_mutex_unlock(&kv->queue.lock);
}

static void write_group(struct kv *kv, struct kv_write *first)
{
    struct group group = { .first = first,
                           .head = kv->history.head,
                           .watched = atomic_load(&kv->ring.watched) };
    struct error err = { 0 };

    if (apply_all(kv, &group, &err) < 0) {
        give_up(kv, &group, &err);
    } else {
        kv->history.head = group.head;
        if (group.len)
            kv_mark_write(kv, group.head.revision);
        if (group.len)
            kv_ring_publish(&kv->ring, group.watched ? group.entries : NULL, group.len);
    }
    answer(kv, first);
    kv_ring_notify(&kv->ring);
}

static struct kv_write *wait_for_group(struct kv *kv)
{
    struct kv_queue *queue = &kv->queue;
    uint32_t wait_ms = kv_history_wait_ms(kv);

    (void)pthread_mutex_lock(&queue->lock);
    struct timespec deadline = cond_deadline(wait_ms);
    bool in_time = true;
    while (!queue->first && !queue->stopping && in_time) {
        if (wait_ms == UINT32_MAX)
            (void)pthread_cond_wait(&queue->changed, &queue->lock);
        else
            in_time = cond_wait_until(&queue->changed, &queue->lock, &deadline);
    }
    struct kv_write *first = take_group(kv);
    (void)pthread_mutex_unlock(&queue->lock);
    return first;
}

static bool is_stopping(struct kv *kv)
{
    (void)pthread_mutex_lock(&kv->queue.lock);
    bool stopping = kv->queue.stopping;
    (void)pthread_mutex_unlock(&kv->queue.lock);
    return stopping;
}

/* --- the log --- */

static void move_log(struct kv *kv, int mode)
{
    int frames = 0, moved = 0;
    int code = sqlite3_wal_checkpoint_v2(kv->writer.db, NULL, mode, &frames, &moved);

    /* What somebody still reads, or what the disk has no room for, stays in the log. */
    kv->log.try_frames = kv->log.frames + LOG_FRAMES;
    bool failed = code != SQLITE_OK && code != SQLITE_BUSY;
    if (failed && !kv->log.failed) {
        struct error err;
        (void)kv_sql_error(&kv->writer, "move the log of", &err);
        log_warn("the write-ahead log was not moved into the store, trying again later", "error",
                 ERROR_TEXT(&err), NULL);
    }
    kv->log.failed = failed;
}

int kv_log_note(void *pointer, sqlite3 *db, const char *name, int frames)
{
    struct kv_log *log = pointer;

    (void)db;
    (void)name;
    if (frames < log->frames)
        log->try_frames = LOG_FRAMES; /* it has begun anew */
    log->frames = frames;
    return SQLITE_OK;
}

static void log_step(struct kv *kv)
{
    if (kv->log.frames <= kv->log.try_frames)
        return;
    if (kv->log.frames < LOG_MAX_FRAMES) {
        move_log(kv, SQLITE_CHECKPOINT_PASSIVE);
        return;
    }
    kv_pool_pause(&kv->pool);
    (void)sqlite3_busy_timeout(kv->writer.db, 0); /* a backup reads for long, nobody waits for it */
    move_log(kv, SQLITE_CHECKPOINT_RESTART);
    (void)sqlite3_busy_timeout(kv->writer.db, KV_BUSY_MS);
    kv_pool_resume(&kv->pool);
}

void *kv_writer_run(void *ctx)
{
    struct kv *kv = ctx;
    struct error err;

    while (!is_stopping(kv)) {
        struct kv_write *first = wait_for_group(kv);
        if (first)
            write_group(kv, first);
        int r = kv_renew_writer(kv, &err);
        if (r == 0)
            r = kv_history_step(kv, &err);
        if (r == -ERROR_INTERNAL)
            (void)kv_health_note(kv, r, &err);
        else if (r < 0)
            log_warn("history not compacted, trying again later", "error", ERROR_TEXT(&err), NULL);
        log_step(kv);
    }
    return NULL;
}
