#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "common/base/log.h"
#include "standalone/store/kv_internal.h"

/* --- a backup that becomes a store --- */

/*
 * Whoever watches remembers versions of the store that was lost, and a backup knows only those until it was
 * made. So one that begins as a store goes on far above, with nothing behind it that could be asked for: a
 * client of before is told that its version is compacted, and lists anew. As "etcdutl snapshot restore
 * --bump-revision --mark-compacted", but a table in the backup says that it has to be done.
 */
/* What etcd proposes: a hundred writes a second for four months. */
#define STEP UINT64_C(1000000000)
/* The same backup may be restored again, after others have seen what the first restore led to. Nobody writes
 * each microsecond, so the time is above all of that; it is below what a JSON number can say (2^53)
 * until 2255, and a clock that says more than the half of that is not believed. */
#define MAX_TIME_US (INT64_C(1) << 52)

/* Says in the copy that it is a backup. */
static int restore_mark(const char *path, struct error *err)
{
    struct kv_connection connection = { 0 };

    int r = kv_connect(path, NULL, false, &connection, err);
    if (r < 0)
        return r;
    r = kv_execute(&connection, "CREATE TABLE IF NOT EXISTS backup (only INTEGER PRIMARY KEY)",
                   err);
    kv_disconnect(&connection);
    return r;
}

static uint64_t choose_revision(uint64_t revision, int64_t now_us)
{
    uint64_t raised = revision + STEP;

    return now_us < MAX_TIME_US && now_us > (int64_t)raised ? (uint64_t)now_us : raised;
}

/* The mark goes with what it asks for, or stays for the next start. */
static int raise_revision(struct kv *kv, uint64_t revision, struct error *err)
{
    char sql[512];

    (void)snprintf(sql, sizeof(sql),
                   "BEGIN IMMEDIATE;"
                   "DELETE FROM history WHERE deleted OR revision NOT IN"
                   " (SELECT MAX(revision) FROM history INDEXED BY newest GROUP BY key);"
                   "UPDATE state SET compacted = %" PRIu64 ", compacted_weight = %" PRIu64 ";"
                   "DROP TABLE IF EXISTS backup;"
                   "COMMIT",
                   revision, kv->history.head.weight);
    return kv_execute(&kv->writer, sql, err);
}

enum raise_reason { RAISE_NOT, RAISE_BACKUP, RAISE_UNKNOWN, RAISE_LOSS };

static enum raise_reason why_raise(const struct kv *kv, bool is_backup)
{
    uint64_t revision = kv->history.head.revision;

    if (is_backup)
        return RAISE_BACKUP;
    if (!kv->mark.is_known && revision > 1) /* else nothing was written to it */
        return RAISE_UNKNOWN;
    return kv->goes_on && revision < kv->mark.revision ? RAISE_LOSS : RAISE_NOT;
}

static void log_raised(const struct kv *kv, enum raise_reason reason, uint64_t revision)
{
    const char *version = LOG_INT((int64_t)revision);

    if (reason == RAISE_BACKUP)
        log_info("the store was a backup, its versions go on above those that are lost", "version",
                 version, NULL);
    else if (reason == RAISE_UNKNOWN)
        log_warn(
            "the file beside the store does not say which versions it has given, they go on above "
            "all of them",
            "store", kv->path, "version", version, NULL);
    else
        log_error("the store has lost writes that were acknowledged: it goes on above them with "
                  "what is left",
                  "store", kv->path, "found", LOG_INT((int64_t)kv->loss.found), "acknowledged",
                  LOG_INT((int64_t)kv->loss.noted), "version", version, NULL);
}

int kv_restore(struct kv *kv, struct error *err)
{
    uint64_t before = kv->history.head.revision;
    int64_t marks = 0;

    int r = kv_ask(&kv->writer, "SELECT COUNT(*) FROM sqlite_schema WHERE name = 'backup'", &marks,
                   err);
    if (r < 0)
        return r;

    enum raise_reason reason = why_raise(kv, marks > 0);

    if (reason == RAISE_NOT)
        return 0;
    if (reason == RAISE_LOSS)
        kv->loss = (struct kv_loss){ .found = before, .noted = kv->mark.revision };
    if (before < kv->mark.revision)
        before = kv->mark.revision;
    uint64_t revision = choose_revision(before, clock_wall_us(kv->clock));
    r = raise_revision(kv, revision, err);
    if (r < 0)
        return r;
    log_raised(kv, reason, revision);
    return 1;
}

struct kv_loss kv_loss(const struct kv *kv)
{
    return kv->loss;
}

/* --- the backup --- */

static int sync_path(const char *path, int flags, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | flags);
    int r = fd < 0 ? -1 : fsync(fd);
    int reason = errno;

    if (fd >= 0)
        (void)close(fd);
    return r < 0 ? error_set(err, ERROR_UNAVAILABLE, "sync '%s': %s", path, strerror(reason)) : 0;
}

/* A connection of its own: those of the pool are for what takes a moment. */
static int copy_into(const char *store, const char *path, struct error *err)
{
    struct kv_connection connection = { 0 };
    sqlite3_stmt *statement = NULL;

    int r = kv_connect(store, NULL, true, &connection, err);
    if (r < 0)
        return r;
    if (sqlite3_prepare_v2(connection.db, "VACUUM INTO ?1", -1, &statement, NULL) != SQLITE_OK ||
        kv_bind_text(statement, 1, path, strlen(path)) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_DONE)
        r = kv_sql_error(&connection, "back up", err);
    (void)sqlite3_finalize(statement);
    kv_disconnect(&connection);
    return r;
}

/* A disk may have given back what it was not given; and a damaged row is copied as it is. */
static int check_copy(const char *path, struct error *err)
{
    struct kv_connection connection = { 0 };

    int r = kv_connect(path, NULL, true, &connection, err);
    if (r < 0)
        return r;
    r = kv_check(&connection, err);
    kv_disconnect(&connection);
    return r < 0 ? error_wrap(err, "the copy is not sound") : 0;
}

int kv_sync_folder_of(const char *path, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *slash = strrchr(path, '/');

    return sync_path(slash ? arena_strndup(arena, path, (size_t)(slash - path) + 1) : ".",
                     O_DIRECTORY, err);
}

static int fill(const char *store, const char *path, struct error *err)
{
    int r = copy_into(store, path, err);

    if (r == 0)
        r = restore_mark(path, err);
    if (r == 0)
        r = sync_path(path, 0, err);
    return r == 0 ? check_copy(path, err) : r;
}

static int refuse_taken(const char *path, struct error *err)
{
    return error_set(err, ERROR_EXISTS, "backup '%s' exists already", path);
}

/* Never that of another file. Not all file systems know the first way; FAT, of sticks, does not know the
 * second one. */
static int give_name(const char *new_path, const char *path, struct error *err)
{
    int r = renameat2(AT_FDCWD, new_path, AT_FDCWD, path, RENAME_NOREPLACE);

    if (r < 0 && (errno == EINVAL || errno == ENOSYS)) {
        r = link(new_path, path);
        if (r == 0)
            (void)unlink(new_path);
    }
    if (r < 0 && errno == EEXIST)
        return refuse_taken(path, err);
    return r < 0 ? error_set(err, ERROR_UNAVAILABLE, "rename to '%s': %s", path, strerror(errno))
                 : 0;
}

static int back_up(const char *store, const char *path, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    /* A name of its own: neither another backup that is under way nor what a killed one has left is met. */
    char *new_path = arena_printf(arena, "%s.new-XXXXXX", path);
    struct stat status;

    if (lstat(path, &status) == 0)
        return refuse_taken(path, err);
    int fd = mkostemp(new_path, O_CLOEXEC);
    if (fd < 0)
        return error_set(err, ERROR_UNAVAILABLE, "a file beside '%s': %s", path, strerror(errno));
    (void)close(fd);
    int r = fill(store, new_path, err);
    if (r == 0)
        r = give_name(new_path, path, err);
    if (r < 0) {
        (void)unlink(new_path);
        (void)unlink(arena_printf(arena, "%s-journal", new_path));
        return r;
    }
    return kv_sync_folder_of(path, err);
}

int kv_backup(const char *store, const char *path, struct error *err)
{
    struct kv_options options = { .path = store };
    CLEANUP(kv_closep) struct kv *kv = NULL;
    struct stat status;

    if (stat(store, &status) < 0)
        return error_set(err, ERROR_NOT_FOUND, "store '%s': %s", store, strerror(errno));
    /* One that nobody has open may have a log of a process that was killed: only who opens it reads
     * that. */
    int r = kv_open(&options, &kv, err);
    if (r < 0 && r != -ERROR_UNAVAILABLE)
        return r;
    return back_up(store, path, err);
}
