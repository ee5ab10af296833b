#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/log.h"
#include "common/runtime/metrics.h"
#include "standalone/store/kv_internal.h"

/* Writes of one transaction, that is of one sync; those of the largest texts are 12 MiB. */
#define MAX_GROUP 256
#define MAX_GROUP_BYTES ((size_t)12 << 20)

/* Pages in the log, 4 and 16 MiB. From the first number on it is moved into the file, as SQLite does by default. From
 * the second on readers wait until it starts again at its first page. With a reader at every moment it would grow for
 * ever. */
#define LOG_FRAMES 1000
#define LOG_MAX_FRAMES 4000

static struct metric COMMITS = {
    .type = METRIC_HISTOGRAM,
    .name = "propeller_store_commit_seconds",
    .help = "Time that the disk takes to make writes durable.",
};

/* Revisions of one transaction that compacts. */
#define STEP_REVISIONS 512
/* The history may exceed a limit by this share before it is compacted, so that one transaction serves many writes. */
#define SLACK_SHARE 8

struct kv_write { /* of who waits for it */
    const char *key;
    const char *text; /* NULL: delete */
    size_t len;
    uint64_t expected;
    const struct kv_guard *guard; /* NULL: none */
    int r;
    uint64_t revision; /* of the write, when r is 0 */
    struct error err;  /* if r is not 0 */
    STAILQ_ENTRY(kv_write) in_queue;
    bool done;
    pthread_cond_t changed; /* done */
};

/* --- who writes --- */

static int check_write(const struct kv_write *write, struct error *err)
{
    size_t len = strlen(write->key);

    if (len == 0 || len > KV_MAX_KEY)
        return error_set(err, ERROR_INVALID, "a key has 1 to %d bytes, this one %zu", KV_MAX_KEY,
                         len);
    for (const char *byte = write->key; *byte; byte++) {
        if ((unsigned char)*byte < 0x20 || (unsigned char)*byte == 0xff)
            return error_set(err, ERROR_INVALID, "key '%s' has a byte that is not text",
                             write->key);
    }
    if (write->len > KV_MAX_TEXT)
        return error_set(err, ERROR_TOO_LARGE, "the object has %zu bytes, at most %u are stored",
                         write->len, KV_MAX_TEXT);
    return 0;
}

/* Until it is done. */
static void submit(struct kv *kv, struct kv_write *write)
{
    struct kv_queue *queue = &kv->queue;

    (void)pthread_cond_init(&write->changed, NULL);
    (void)pthread_mutex_lock(&queue->lock);
    assert(!queue->stopping);
    STAILQ_INSERT_TAIL(&queue->writes, write, in_queue);
    (void)pthread_cond_signal(&queue->changed);
    while (!write->done)
        (void)pthread_cond_wait(&write->changed, &queue->lock);
    (void)pthread_mutex_unlock(&queue->lock);
    (void)pthread_cond_destroy(&write->changed);
}

static int write_one(struct kv *kv, struct kv_write *write, uint64_t *ret_revision,
                     struct error *err)
{
    write->r = check_write(write, &write->err);
    if (write->r == 0)
        submit(kv, write);
    if (write->r < 0 && err)
        *err = write->err;
    if (write->r == 0 && ret_revision)
        *ret_revision = write->revision;
    return write->r;
}

int kv_put(struct kv *kv, const char *key, const char *text, size_t len, uint64_t expected,
           uint64_t *ret_revision, struct error *err)
{
    return kv_put_guarded(kv, key, text, len, expected, NULL, ret_revision, err);
}

int kv_put_guarded(struct kv *kv, const char *key, const char *text, size_t len, uint64_t expected,
                   const struct kv_guard *guard, uint64_t *ret_revision, struct error *err)
{
    struct kv_write write = {
        .key = key, .text = text, .len = len, .expected = expected, .guard = guard
    };

    return write_one(kv, &write, ret_revision, err);
}

int kv_delete(struct kv *kv, const char *key, uint64_t expected, uint64_t *ret_revision,
              struct error *err)
{
    struct kv_write write = { .key = key, .expected = expected };

    return write_one(kv, &write, ret_revision, err);
}

/* --- the writing thread --- */

/* 0: as expected. */
static int check_expected(const struct kv_write *write, uint64_t present, struct error *err)
{
    bool is_put = write->text != NULL;

    if (write->expected == KV_ANY)
        return present || is_put ? 0
                                 : error_set(err, ERROR_NOT_FOUND, "'%s' is not there", write->key);
    if (write->expected == 0 && present && is_put)
        return error_set(err, ERROR_EXISTS, "'%s' exists already", write->key);
    if (!present && (write->expected || !is_put))
        return error_set(err, ERROR_NOT_FOUND, "'%s' is not there", write->key);
    if (write->expected != present)
        return error_set(err, ERROR_CONFLICT,
                         "'%s' has changed: it is at revision %" PRIu64 ", not %" PRIu64,
                         write->key, present, write->expected);
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

/* 0: written, and *head is it; or refused for what is there (write->r). Less: the transaction cannot go on. */
static int apply(struct kv *kv, struct kv_write *write, struct kv_point *head, struct error *err)
{
    CLEANUP(sqlite3_resetp) sqlite3_stmt *statement = NULL;
    const struct kv_guard *guard = write->guard;
    struct kv_row old = { 0 };
    uint64_t guarded = 0;

    int r = kv_find_newest(&kv->writer, write->key, INT64_MAX, &old.revision, err);
    if (r == 0 && guard) /* writes of the same transaction count */
        r = kv_find_newest(&kv->writer, guard->key, INT64_MAX, &guarded, err);
    if (r < 0)
        return r;
    if (guard && guarded != guard->revision)
        write->r = error_set(&write->err, ERROR_GONE,
                             "'%s' was written under '%s' at revision %" PRIu64
                             ", which is at %" PRIu64 " now",
                             write->key, guard->key, guard->revision, guarded);
    else
        write->r = check_expected(write, old.revision, &write->err);
    if (write->r < 0)
        return 0;
    if (old.revision) {
        r = kv_row_find(&kv->writer, old.revision, &statement, &old, err);
        if (r < 0)
            return r;
    }

    struct kv_point next = { .revision = head->revision + 1,
                             .weight = head->weight + KV_ROW_WEIGHT + old.len };
    struct kv_row row = {
        .revision = next.revision,
        .created = old.revision ? old.created : next.revision,
        .previous = old.revision,
        .deleted = !write->text,
        .key = write->key,
        .key_len = strlen(write->key),
        .text = write->text ? write->text : "",
        .len = write->len,
    };
    r = insert(kv, &row, &next, err);
    if (r < 0)
        return r;
    *head = next;
    write->revision = row.revision;
    return 0;
}

static int apply_all(struct kv *kv, const struct kv_writes *writes, struct kv_point *head,
                     struct error *err)
{
    int r = kv_renew_writer(kv, err);

    if (r == 0)
        r = kv_run(&kv->writer, KV_BEGIN_WRITE, err);
    for (struct kv_write *write = STAILQ_FIRST(writes); r == 0 && write;
         write = STAILQ_NEXT(write, in_queue))
        r = apply(kv, write, head, err);
    if (r < 0)
        return r;

    int64_t began_ms = clock_monotonic_ms(&CLOCK_SYSTEM);
    r = kv_run(&kv->writer, KV_COMMIT, err); /* the log is synced in here */
    metric_observe(&COMMITS, (double)(clock_monotonic_ms(&CLOCK_SYSTEM) - began_ms) / 1000, NULL);
    return r;
}

/* Nothing of it is there. */
static void give_up(struct kv *kv, const struct kv_writes *writes, const struct error *why)
{
    (void)kv_roll_back(&kv->writer);
    for (struct kv_write *write = STAILQ_FIRST(writes); write;
         write = STAILQ_NEXT(write, in_queue)) {
        write->r = -(int)why->code;
        write->err = *why;
    }
    if (why->code == ERROR_INTERNAL)
        (void)kv_health_note(kv, -ERROR_INTERNAL, why);
    kv->log.try_frames = 0; /* what is moved into the file makes room in the log */
}

static void write_group(struct kv *kv, struct kv_writes *writes)
{
    struct kv_point head = kv->history.head;
    struct error err = { 0 };
    struct kv_write *write;

    if (apply_all(kv, writes, &head, &err) < 0) {
        give_up(kv, writes, &err);
    } else if (head.revision > kv->history.head.revision) {
        kv->history.head = head;
        kv_mark_write(kv, head.revision);
        for (write = STAILQ_FIRST(writes); write; write = STAILQ_NEXT(write, in_queue)) {
            if (write->r == 0)
                kv_watches_publish(&kv->watches, write->revision, write->key);
        }
    }
    (void)pthread_mutex_lock(&kv->queue.lock);
    while ((write = STAILQ_FIRST(writes))) {
        STAILQ_REMOVE_HEAD(writes, in_queue); /* it is gone once it is done */
        write->done = true;
        (void)pthread_cond_signal(&write->changed);
    }
    (void)pthread_mutex_unlock(&kv->queue.lock);
    kv_watches_notify(&kv->watches);
}

/* false: the store is closed. */
static bool wait_for_group(struct kv *kv, struct kv_writes *ret)
{
    struct kv_queue *queue = &kv->queue;
    struct kv_write *write;
    size_t bytes = 0;

    (void)pthread_mutex_lock(&queue->lock);
    while (STAILQ_EMPTY(&queue->writes) && !queue->stopping)
        (void)pthread_cond_wait(&queue->changed, &queue->lock);
    for (size_t n = 0; n < MAX_GROUP && (write = STAILQ_FIRST(&queue->writes)); n++) {
        bytes += write->len;
        if (bytes > MAX_GROUP_BYTES)
            break;
        STAILQ_REMOVE_HEAD(&queue->writes, in_queue);
        STAILQ_INSERT_TAIL(ret, write, in_queue);
    }
    (void)pthread_mutex_unlock(&queue->lock);
    return !STAILQ_EMPTY(ret);
}

/* --- history --- */

static uint64_t minus(uint64_t number, uint64_t limit)
{
    return number > limit ? number - limit : 0;
}

/* Compacts up to the newest of the next STEP_REVISIONS revisions that is beyond a limit, which are more than one group
 * of writes adds. The newest write stays: its revision is the store's. A reader at
 * such a revision finds all of its rows, or that it is compacted. */
static int compact(struct kv *kv, struct error *err)
{
    struct kv_history *history = &kv->history;
    CLEANUP(sqlite3_resetp) sqlite3_stmt *statement = NULL;

    int r = kv_prepare(&kv->writer, KV_COMPACT, &statement, err);
    if (r < 0)
        return r;
    (void)kv_bind_number(statement, 1, history->head.revision);
    (void)kv_bind_number(statement, 2, STEP_REVISIONS);
    (void)kv_bind_number(statement, 3, minus(history->head.revision, history->max_revisions));
    (void)kv_bind_number(statement, 4, minus(history->head.weight, history->max_bytes));
    r = kv_step(&kv->writer, statement, "compact", err);
    if (r <= 0)
        return r; /* none is due */

    const struct kv_point due = { kv_column_number(statement, 0), kv_column_number(statement, 1) };

    r = kv_step(&kv->writer, statement, "compact", err); /* its end is the commit */
    if (r < 0)
        return r;
    history->compacted = due;
    atomic_store(&kv->compacted, due.revision);
    return 0;
}

/* Once there is enough for a transaction. A step that fails is tried again with the next write. */
static void history_step(struct kv *kv)
{
    const struct kv_history *history = &kv->history;
    uint64_t revisions = history->head.revision - history->compacted.revision;
    uint64_t bytes = history->head.weight - history->compacted.weight;
    struct error err;

    if (revisions <= history->max_revisions + history->max_revisions / SLACK_SHARE &&
        bytes <= history->max_bytes + history->max_bytes / SLACK_SHARE)
        return;
    int r = kv_renew_writer(kv, &err);
    if (r == 0)
        r = compact(kv, &err);
    if (r == -ERROR_INTERNAL)
        (void)kv_health_note(kv, r, &err);
    else if (r < 0 && !kv->history.failed)
        log_warn("history not compacted, trying again later", "error", ERROR_TEXT(&err), NULL);
    kv->history.failed = r < 0;
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
    bool begins_anew = kv->log.frames >= LOG_MAX_FRAMES;

    if (kv->log.frames <= kv->log.try_frames)
        return;
    if (begins_anew)
        kv_pool_pause(&kv->pool, true);
    (void)sqlite3_busy_timeout(kv->writer.db, 0); /* a backup reads for long, nobody waits for it */
    move_log(kv, begins_anew ? SQLITE_CHECKPOINT_RESTART : SQLITE_CHECKPOINT_PASSIVE);
    (void)sqlite3_busy_timeout(kv->writer.db, KV_BUSY_MS);
    if (begins_anew)
        kv_pool_pause(&kv->pool, false);
}

void *kv_writer_run(void *ctx)
{
    struct kv_writes writes = STAILQ_HEAD_INITIALIZER(writes);
    struct kv *kv = ctx;

    while (wait_for_group(kv, &writes)) {
        write_group(kv, &writes);
        history_step(kv);
        log_step(kv);
    }
    return NULL;
}
