#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "standalone/store/kv_internal.h"

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
    struct kv_connect_options options = { .path = store,
                                          .read_only = true,
                                          .cache_kib = KV_READER_CACHE_KIB };
    struct kv_connection connection = { 0 };
    sqlite3_stmt *statement = NULL;

    int r = kv_connect(&options, &connection, err);
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
    struct kv_connect_options options = { .path = path,
                                          .read_only = true,
                                          .cache_kib = KV_READER_CACHE_KIB };
    struct kv_connection connection = { 0 };

    int r = kv_connect(&options, &connection, err);
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
        r = kv_restore_mark(path, err);
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
