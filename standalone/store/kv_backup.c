#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "common/base/file.h"
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

static void log_raised(const struct kv *kv, bool is_backup, uint64_t revision)
{
    const char *version = LOG_INT((int64_t)revision);

    if (kv->loss.found)
        log_error("the store has lost writes that were acknowledged: it goes on above them with "
                  "what is left",
                  "store", kv->path, "found", LOG_INT((int64_t)kv->loss.found), "acknowledged",
                  LOG_INT((int64_t)kv->loss.noted), "version", version, NULL);
    else
        log_warn("the versions of the store go on above all that it can have given", "store",
                 kv->path, "why",
                 is_backup ? "it was a backup"
                           : "the file beside it does not say which ones it has given",
                 "version", version, NULL);
}

int kv_restore(struct kv *kv, struct error *err)
{
    uint64_t before = kv->history.head.revision, noted = kv->mark.revision;
    int64_t marks = 0, now_us = clock_wall_us(kv->clock);
    char sql[512];

    int r = kv_ask(&kv->writer, "SELECT COUNT(*) FROM sqlite_schema WHERE name = 'backup'", &marks,
                   err);
    if (r < 0)
        return r;

    bool is_unknown = !kv->mark.is_known && before > 1; /* else nothing was written to it */
    bool is_loss = !marks && !is_unknown && kv->goes_on && before < noted;

    if (!marks && !is_unknown && !is_loss)
        return 0;
    uint64_t revision = (before < noted ? noted : before) + STEP;
    if (now_us < MAX_TIME_US && now_us > (int64_t)revision)
        revision = (uint64_t)now_us;
    /* The mark goes with what it asks for, or stays for the next start. */
    (void)snprintf(sql, sizeof(sql),
                   "BEGIN IMMEDIATE;"
                   "DELETE FROM history WHERE deleted OR revision NOT IN"
                   " (SELECT MAX(revision) FROM history INDEXED BY newest GROUP BY key);"
                   "UPDATE state SET compacted = %" PRIu64 ", compacted_weight = %" PRIu64 ";"
                   "DROP TABLE IF EXISTS backup;"
                   "COMMIT",
                   revision, kv->history.head.weight);
    r = kv_execute(&kv->writer, sql, err);
    if (r < 0)
        return r;
    if (is_loss)
        kv->loss = (struct kv_loss){ .found = before, .noted = noted };
    log_raised(kv, marks > 0, revision);
    return 1;
}

struct kv_loss kv_loss(const struct kv *kv)
{
    return kv->loss;
}

/* --- the backup --- */

#define TAKEN "backup '%s' exists already"

/* A connection of its own: those of the pool are for what takes a moment. */
static int copy_into(const char *store, const char *path, struct error *err)
{
    struct kv_connection connection = { 0 };
    sqlite3_stmt *statement = NULL;

    int r = kv_connect(store, NULL, true, &connection, err);
    if (r == 0)
        r = kv_prepare(&connection, KV_COPY, &statement, err);
    if (r == 0)
        (void)kv_bind_text(statement, 1, path, strlen(path));
    if (r == 0)
        r = kv_step(&connection, statement, "back up", err);
    kv_disconnect(&connection);
    return r;
}

/* It says that it is a backup, and is looked through: a damaged row was copied as it is. */
static int finish_copy(const char *path, struct error *err)
{
    struct kv_connection connection = { 0 };

    int r = kv_connect(path, NULL, false, &connection, err);
    if (r < 0)
        return r;
    r = kv_execute(&connection, "CREATE TABLE IF NOT EXISTS backup (only INTEGER PRIMARY KEY)",
                   err);
    if (r == 0 && kv_check(&connection, err) < 0)
        r = error_wrap(err, "the copy is not sound");
    kv_disconnect(&connection);
    return r < 0 ? r : file_sync(path, err);
}

/* Never that of another file. Not all file systems know the first way; FAT, of sticks, does not know the second one. */
static int give_name(const char *new_path, const char *path, struct error *err)
{
    int r = renameat2(AT_FDCWD, new_path, AT_FDCWD, path, RENAME_NOREPLACE);

    if (r < 0 && (errno == EINVAL || errno == ENOSYS)) {
        r = link(new_path, path);
        if (r == 0)
            (void)unlink(new_path);
    }
    if (r < 0 && errno == EEXIST)
        return error_set(err, ERROR_EXISTS, TAKEN, path);
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
        return error_set(err, ERROR_EXISTS, TAKEN, path);
    int fd = mkostemp(new_path, O_CLOEXEC);
    if (fd < 0)
        return error_set(err, ERROR_UNAVAILABLE, "a file beside '%s': %s", path, strerror(errno));
    (void)close(fd);
    int r = copy_into(store, new_path, err);
    if (r == 0)
        r = finish_copy(new_path, err);
    if (r == 0)
        r = give_name(new_path, path, err);
    if (r < 0) {
        (void)unlink(new_path);
        (void)unlink(arena_printf(arena, "%s-journal", new_path));
        return r;
    }
    return file_sync_folder_of(path, err);
}

int kv_backup(const char *store, const char *path, struct error *err)
{
    struct kv_options options = { .path = store };
    CLEANUP(kv_closep) struct kv *kv = NULL;
    struct stat status;

    if (stat(store, &status) < 0)
        return error_set(err, ERROR_NOT_FOUND, "store '%s': %s", store, strerror(errno));
    /* A store that no process has open may have a log of one that was killed. Opening it reads that. */
    int r = kv_open(&options, &kv, err);
    if (r < 0 && r != -ERROR_UNAVAILABLE)
        return r;
    return back_up(store, path, err);
}
