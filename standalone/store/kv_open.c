#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "common/base/alloc.h"
#include "common/base/str.h"
#include "common/runtime/thread.h"
#include "standalone/store/kv_internal.h"

/* In the file's header, as SCHEMA sets them: "prop", and the version of the tables. */
#define APPLICATION 0x70726f70
#define VERSION 1

#define DEFAULT_REVISIONS 100000
#define DEFAULT_BYTES (UINT64_C(32) << 20)

/*
 * A row for each write: the newest of a key is what it is now. The index alone says which one that is, and whether it
 * is a deletion. weight grows with what was replaced, so the size of the history between two revisions is a difference.
 */
static const char SCHEMA[] = "BEGIN IMMEDIATE;"
                             "CREATE TABLE history ("
                             "  revision INTEGER PRIMARY KEY,"
                             "  key TEXT NOT NULL,"
                             "  created INTEGER NOT NULL,"
                             "  previous INTEGER NOT NULL,"
                             "  deleted INTEGER NOT NULL,"
                             "  written_ms INTEGER NOT NULL,"
                             "  weight INTEGER NOT NULL,"
                             "  checksum INTEGER NOT NULL,"
                             "  text TEXT NOT NULL"
                             ");"
                             "CREATE UNIQUE INDEX newest ON history (key, revision, deleted);"
                             "CREATE TABLE state ("
                             "  only INTEGER PRIMARY KEY CHECK (only = 0),"
                             "  compacted INTEGER NOT NULL,"
                             "  compacted_weight INTEGER NOT NULL"
                             ");"
                             "INSERT INTO state VALUES (0, 1, 0);"
                             "PRAGMA application_id = 0x70726f70;"
                             "PRAGMA user_version = 1;"
                             "COMMIT";

/* --- files --- */

/* An empty file would begin a new store in silence. */
static int refuse_lost(const struct kv *kv, struct error *err)
{
    return error_set(err, ERROR_INVALID,
                     "store '%s' has lost its content: restore a backup, or remove '%s-lock', too, "
                     "and it begins empty",
                     kv->path, kv->path);
}

static off_t size_of(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 ? status.st_size : 0;
}

/* Makes the file, which holds secrets, for its owner alone; SQLite gives the others its mode. */
static int make_file(const struct kv *kv, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *path = kv->path, *log = arena_printf(arena, "%s-wal", path);

    /* SQLite would take the log for a left-over and remove it. */
    if (size_of(path) == 0 && size_of(log) > 0)
        return error_set(err, ERROR_INVALID,
                         "store '%s' is missing or empty, but '%s' is there: put the file back, or "
                         "restore a backup and remove the log",
                         path, log);
    if (size_of(path) == 0 && kv->mark.is_made)
        return refuse_lost(kv, err);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set(err, ERROR_UNAVAILABLE, "open '%s': %s", path, strerror(errno));
    (void)close(fd);
    return 0;
}

/* --- what is in it --- */

int kv_refuse_damaged(const char *path, int r, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    char inner[sizeof(err->message)];

    if (r != -ERROR_INTERNAL)
        return r;
    (void)snprintf(inner, sizeof(inner), "%s", err->message);
    const char *log = arena_printf(arena, "%s-wal", path);
    const char *and_log =
        size_of(log) > 0 ? arena_printf(arena, " and remove '%s', the log of before", basename(log))
                         : "";
    return error_set(err, ERROR_INVALID,
                     "store '%s' cannot be used and was left as it is: restore a backup%s (%s)",
                     path, and_log, inner);
}

int kv_check_identity(struct kv_connection *connection, struct error *err)
{
    CLEANUP(sqlite3_resetp) sqlite3_stmt *statement = NULL;

    int r = kv_prepare(connection, KV_IDENTITY, &statement, err);
    if (r == 0)
        r = kv_step(connection, statement, "read", err);
    if (r < 0)
        return r;
    int application = sqlite3_column_int(statement, 0), version = sqlite3_column_int(statement, 1);
    if (application == 0 && sqlite3_column_int(statement, 2) == 0)
        return 1; /* new */
    if (application != APPLICATION)
        return error_set(err, ERROR_INVALID, "'%s' is a database of another program",
                         connection->path);
    if (version != VERSION)
        return error_set(err, ERROR_INVALID,
                         "store '%s' has version %d, this program knows version %d",
                         connection->path, version, VERSION);
    return 0;
}

static int set_journal(struct kv_connection *writer, struct error *err)
{
    CLEANUP(sqlite3_resetp) sqlite3_stmt *statement = NULL;

    int r = kv_prepare(writer, KV_JOURNAL, &statement, err);
    if (r == 0)
        r = kv_step(writer, statement, "begin a log for", err);
    if (r > 0 && !str_equal((const char *)sqlite3_column_text(statement, 0), "wal"))
        return error_set(err, ERROR_UNAVAILABLE, "'%s' cannot have a write-ahead log",
                         writer->path);
    return r < 0 ? r : 0;
}

static int read_state(struct kv *kv, struct error *err)
{
    struct kv_history *history = &kv->history;
    int64_t weight = 0;

    int r = kv_state_read(&kv->writer, &history->compacted, &history->head.revision, err);
    history->head.weight = history->compacted.weight;
    if (r == 0 && history->head.revision > history->compacted.revision) {
        /* That of the newest row, found without a look at the others. */
        r = kv_ask(&kv->writer, "SELECT weight FROM history ORDER BY revision DESC LIMIT 1",
                   &weight, err);
        history->head.weight = (uint64_t)weight;
    }
    atomic_store(&kv->compacted, history->compacted.revision);
    return r;
}

/* A row that was replaced or deleted goes as soon as it is compacted. */
static int ready_writer(struct kv *kv, struct kv_connection *writer, struct error *err)
{
    (void)sqlite3_wal_hook(writer->db, kv_log_note, &kv->log);
    return kv_execute(writer,
                      "CREATE TEMP TRIGGER forget AFTER UPDATE ON main.state BEGIN"
                      " DELETE FROM history WHERE revision IN"
                      " (SELECT previous FROM history"
                      " WHERE revision > OLD.compacted AND revision <= NEW.compacted UNION ALL"
                      " SELECT revision FROM history"
                      " WHERE revision > OLD.compacted AND revision <= NEW.compacted AND deleted);"
                      "END",
                      err);
}

int kv_renew_writer(struct kv *kv, struct error *err)
{
    struct kv_connection fresh = { 0 };
    unsigned generation = atomic_load(&kv->health.generation);

    if (kv->writer.generation == generation)
        return 0;
    int r = kv_connect(kv->path, kv->vfs, false, &fresh, err);
    if (r == 0)
        r = ready_writer(kv, &fresh, err);
    fresh.generation = generation;
    kv_disconnect(r == 0 ? &kv->writer : &fresh);
    if (r == 0)
        kv->writer = fresh;
    return r;
}

static int open_writer(struct kv *kv, struct error *err)
{
    int r = kv_connect(kv->path, kv->vfs, false, &kv->writer, err);
    if (r < 0)
        return r;
    r = kv_check_identity(&kv->writer, err);
    if (r < 0)
        return r;
    bool is_new = r > 0;
    if (is_new && kv->mark.is_made) /* the log had everything */
        return refuse_lost(kv, err);
    r = set_journal(&kv->writer, err);
    if (r == 0)
        r = is_new ? kv_execute(&kv->writer, SCHEMA, err) : kv_check(&kv->writer, err);
    if (r == 0)
        r = read_state(kv, err);
    if (r == 0)
        r = kv_restore(kv, err);
    if (r > 0)
        r = read_state(kv, err);
    if (r == 0)
        r = kv_mark_check(kv, err);
    if (r == 0)
        r = ready_writer(kv, &kv->writer, err);
    kv->log.try_frames = 0; /* what was left in the log goes into the file with the first write */
    return r;
}

/* --- all of it --- */

static struct kv *create(const struct kv_options *options)
{
    struct kv *kv = xcalloc(1, sizeof(*kv));

    kv->path = xstrdup(options->path);
    kv->vfs = options->vfs ? xstrdup(options->vfs) : NULL;
    kv->clock = options->clock ? options->clock : &CLOCK_SYSTEM;
    kv->mark.fd = -1;
    kv->goes_on = options->goes_on;
    kv->history.max_revisions =
        options->history_revisions ? options->history_revisions : DEFAULT_REVISIONS;
    kv->history.max_bytes = options->history_bytes ? options->history_bytes : DEFAULT_BYTES;
    (void)pthread_mutex_init(&kv->queue.lock, NULL);
    (void)pthread_cond_init(&kv->queue.changed, NULL);
    STAILQ_INIT(&kv->queue.writes);
    kv_pool_init(&kv->pool);
    kv_health_init(&kv->health, options->look_ms);
    return kv;
}

int kv_open(const struct kv_options *options, struct kv **ret, struct error *err)
{
    CLEANUP(kv_closep) struct kv *kv = create(options);

    int r = kv_mark_open(kv, err);
    if (r == 0)
        r = make_file(kv, err);
    if (r < 0)
        return r;
    r = kv_refuse_damaged(kv->path, open_writer(kv, err), err);
    if (r < 0)
        return r;
    kv_mark_begin(kv);
    kv_watches_init(&kv->watches, kv->history.head.revision);
    r = thread_start(&kv->thread, "store", kv_writer_run, kv, err);
    if (r < 0) {
        kv_watches_release(&kv->watches);
        return r;
    }
    kv->started = true;
    *ret = TAKE(kv);
    return 0;
}

void kv_close(struct kv *kv)
{
    if (!kv)
        return;
    if (kv->started) {
        (void)pthread_mutex_lock(&kv->queue.lock);
        kv->queue.stopping = true;
        (void)pthread_cond_signal(&kv->queue.changed);
        (void)pthread_mutex_unlock(&kv->queue.lock);
        thread_join(kv->thread);
        kv_watches_release(&kv->watches);
    }
    kv_pool_release(&kv->pool);
    kv_health_release(&kv->health);
    /* One file again; what cannot be moved is read from the log at the next start. */
    if (kv->started)
        (void)sqlite3_db_config(kv->writer.db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    kv_disconnect(&kv->writer);
    (void)pthread_cond_destroy(&kv->queue.changed);
    (void)pthread_mutex_destroy(&kv->queue.lock);
    kv_mark_close(&kv->mark);
    free(kv->vfs);
    free(kv->path);
    free(kv);
}
