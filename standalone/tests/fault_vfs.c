#include "standalone/tests/fault_vfs.h"

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/base/alloc.h"
#include "common/base/arena.h"
#include "common/base/map.h"
#include "common/tests/random.h"

#define SECTOR 512
/* Of those in the index of the log: a reader holds one of them as long as it reads (wal.c, WAL_READ_LOCK). */
#define FIRST_READ_LOCK 3

/* A write since the last sync; bytes NULL: the file was cut to `at`. */
struct change {
    struct change *next;
    size_t at;
    size_t len;
    char *bytes;
};

/* What the disk holds for certain, and the changes that it may hold. */
struct image {
    char *bytes;
    size_t len;
    size_t size; /* of the block */
    struct change *first;
    struct change *last;
};

struct fault_file {
    sqlite3_file base;
    struct image *image;
    int64_t size; /* as it grows */
    sqlite3_file real[];
};

static sqlite3_vfs *system_vfs;
static sqlite3_vfs fault_vfs;
static sqlite3_io_methods methods;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct map *images; /* by path */
static int64_t space = -1;
static bool broken;
static atomic_size_t bytes_read, syncs;
static struct hook {
    fault_vfs_hook_fn *function;
    void *ctx;
} write_hook, read_hook;
static struct judge {
    fault_vfs_judge_fn *function;
    void *ctx;
} read_judge;

static struct fault_file *fault(sqlite3_file *file)
{
    return (struct fault_file *)file;
}

static sqlite3_file *real(sqlite3_file *file)
{
    return fault(file)->real;
}

/* --- images; the lock is held --- */

static void image_apply(struct image *image, size_t at, const char *bytes, size_t len)
{
    if (!bytes) {
        image->len = image->len < at ? image->len : at;
        return;
    }
    if (len == 0)
        return;
    if (at + len > image->len) {
        if (at + len > image->size) { /* doubled: each move is a copy of all under a sanitizer */
            image->size = 2 * (at + len);
            image->bytes = xrealloc(image->bytes, image->size);
        }
        if (at > image->len)
            memset(image->bytes + image->len, 0, at - image->len);
        image->len = at + len;
    }
    memcpy(image->bytes + at, bytes, len);
}

static void image_drop(struct image *image)
{
    while (image->first) {
        struct change *change = image->first;
        image->first = change->next;
        free(change->bytes);
        free(change);
    }
    image->last = NULL;
}

static void image_free(void *pointer)
{
    struct image *image = pointer;

    image_drop(image);
    free(image->bytes);
    free(image);
}

static void image_add(struct image *image, size_t at, const void *bytes, size_t len)
{
    struct change *change = xcalloc(1, sizeof(*change));

    change->at = at;
    change->len = len;
    if (bytes) {
        change->bytes = xmalloc(len + 1);
        memcpy(change->bytes, bytes, len);
    }
    if (image->last)
        image->last->next = change;
    else
        image->first = change;
    image->last = change;
}

/* How much of what is not synced has come to the disk: none, all, or about half of it. */
enum luck { NONE, HALF, ALL };

static bool arrives(enum luck luck, uint64_t *random)
{
    return luck == ALL || (luck == HALF && random_below(random, 2));
}

static void image_apply_by_luck(struct image *image, const struct change *change, enum luck luck,
                                uint64_t *random)
{
    size_t len;

    if (!change->bytes) {
        if (arrives(luck, random))
            image_apply(image, change->at, NULL, 0);
        return;
    }
    for (size_t done = 0; done < change->len; done += len) {
        len = SECTOR - (change->at + done) % SECTOR;
        if (len > change->len - done)
            len = change->len - done;
        if (arrives(luck, random))
            image_apply(image, change->at + done, change->bytes + done, len);
    }
}

static void image_write_file(const struct image *image, const char *path)
{
    FILE *file = fopen(path, "we");

    ck_assert_ptr_nonnull(file);
    if (image->len) /* an empty file has no bytes, not even a pointer to them */
        ck_assert_uint_eq(fwrite(image->bytes, 1, image->len, file), image->len);
    ck_assert_int_eq(fclose(file), 0);
}

static void lose_file(struct arena *arena, const char *path, const char *to_path,
                      const char *suffix, enum luck luck, uint64_t *random)
{
    const struct image *image = map_get(images, arena_printf(arena, "%s%s", path, suffix));
    struct image kept = { 0 };

    if (!image)
        return;
    image_apply(&kept, 0, image->bytes ? image->bytes : "", image->len);
    for (const struct change *change = image->first; change; change = change->next)
        image_apply_by_luck(&kept, change, luck, random);
    image_write_file(&kept, arena_printf(arena, "%s%s", to_path, suffix));
    free(kept.bytes);
}

void fault_vfs_lose_power(const char *path, const char *to_path, uint64_t *random)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    enum luck luck = (enum luck)random_below(random, 3);

    (void)pthread_mutex_lock(&lock);
    lose_file(arena, path, to_path, "", luck, random);
    lose_file(arena, path, to_path, "-wal", luck, random);
    lose_file(arena, path, to_path, "-journal", luck, random);
    (void)pthread_mutex_unlock(&lock);
}

/* --- what the test says --- */

static void set_hook(struct hook *hook, fault_vfs_hook_fn *function, void *ctx)
{
    (void)pthread_mutex_lock(&lock);
    *hook = (struct hook){ function, ctx };
    (void)pthread_mutex_unlock(&lock);
}

void fault_vfs_set_hook(fault_vfs_hook_fn *function, void *ctx)
{
    set_hook(&write_hook, function, ctx);
}

void fault_vfs_set_read_hook(fault_vfs_hook_fn *function, void *ctx)
{
    set_hook(&read_hook, function, ctx);
}

void fault_vfs_set_space(int64_t bytes)
{
    (void)pthread_mutex_lock(&lock);
    space = bytes;
    (void)pthread_mutex_unlock(&lock);
}

void fault_vfs_set_broken(bool is_broken)
{
    (void)pthread_mutex_lock(&lock);
    broken = is_broken;
    (void)pthread_mutex_unlock(&lock);
}

void fault_vfs_set_unreadable(fault_vfs_judge_fn *function, void *ctx)
{
    (void)pthread_mutex_lock(&lock);
    read_judge = (struct judge){ function, ctx };
    (void)pthread_mutex_unlock(&lock);
}

size_t fault_vfs_read(void)
{
    return atomic_load(&bytes_read);
}

size_t fault_vfs_syncs(void)
{
    return atomic_load(&syncs);
}

static void call_hook(const struct hook *hook)
{
    (void)pthread_mutex_lock(&lock);
    struct hook now = *hook;
    (void)pthread_mutex_unlock(&lock);
    if (now.function)
        now.function(now.ctx);
}

static bool is_readable(void)
{
    (void)pthread_mutex_lock(&lock);
    struct judge now = read_judge;
    (void)pthread_mutex_unlock(&lock);
    return !now.function || !now.function(now.ctx);
}

/* --- what SQLite calls --- */

static int fault_close(sqlite3_file *file)
{
    return real(file)->pMethods ? real(file)->pMethods->xClose(real(file)) : SQLITE_OK;
}

static int fault_read(sqlite3_file *file, void *bytes, int len, sqlite3_int64 at)
{
    if (!is_readable())
        return SQLITE_IOERR_READ;
    (void)atomic_fetch_add(&bytes_read, (size_t)len);
    return real(file)->pMethods->xRead(real(file), bytes, len, at);
}

/* Under the lock. */
static bool grow(struct fault_file *file, int64_t size)
{
    int64_t more = size - file->size;

    if (more <= 0)
        return true;
    if (space >= 0 && more > space)
        return false;
    if (space >= 0)
        space -= more;
    file->size = size;
    return true;
}

static int fault_write(sqlite3_file *file, const void *bytes, int len, sqlite3_int64 at)
{
    call_hook(&write_hook);
    (void)pthread_mutex_lock(&lock);
    bool fits = grow(fault(file), at + len);
    if (fits && fault(file)->image)
        image_add(fault(file)->image, (size_t)at, bytes, (size_t)len);
    (void)pthread_mutex_unlock(&lock);
    return fits ? real(file)->pMethods->xWrite(real(file), bytes, len, at) : SQLITE_FULL;
}

static int fault_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    (void)pthread_mutex_lock(&lock);
    if (fault(file)->image)
        image_add(fault(file)->image, (size_t)size, NULL, 0);
    if (fault(file)->size > size)
        fault(file)->size = size;
    (void)pthread_mutex_unlock(&lock);
    return real(file)->pMethods->xTruncate(real(file), size);
}

static int fault_sync(sqlite3_file *file, int flags)
{
    struct image *image = fault(file)->image;

    (void)flags;
    call_hook(&write_hook);
    atomic_fetch_add(&syncs, 1);
    (void)pthread_mutex_lock(&lock);
    bool fails = broken;
    if (!fails && image) {
        for (const struct change *change = image->first; change; change = change->next)
            image_apply(image, change->at, change->bytes, change->len);
        image_drop(image);
    }
    (void)pthread_mutex_unlock(&lock);
    return fails ? SQLITE_IOERR_FSYNC : SQLITE_OK;
}

static int fault_file_size(sqlite3_file *file, sqlite3_int64 *ret)
{
    return real(file)->pMethods->xFileSize(real(file), ret);
}

static int fault_lock(sqlite3_file *file, int level)
{
    return real(file)->pMethods->xLock(real(file), level);
}

static int fault_unlock(sqlite3_file *file, int level)
{
    return real(file)->pMethods->xUnlock(real(file), level);
}

static int fault_check_reserved(sqlite3_file *file, int *ret)
{
    return real(file)->pMethods->xCheckReservedLock(real(file), ret);
}

/* A hint of the size would make a file grow without a write. */
static int fault_control(sqlite3_file *file, int operation, void *argument)
{
    if (operation == SQLITE_FCNTL_SIZE_HINT || operation == SQLITE_FCNTL_CHUNK_SIZE)
        return SQLITE_OK;
    return real(file)->pMethods->xFileControl(real(file), operation, argument);
}

static int fault_sector_size(sqlite3_file *file)
{
    return real(file)->pMethods->xSectorSize(real(file));
}

static int fault_characteristics(sqlite3_file *file)
{
    return real(file)->pMethods->xDeviceCharacteristics(real(file));
}

static int fault_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **ret)
{
    return real(file)->pMethods->xShmMap(real(file), page, size, extend, ret);
}

static int fault_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
    int code = real(file)->pMethods->xShmLock(real(file), offset, n, flags);

    if (offset >= FIRST_READ_LOCK && flags == (SQLITE_SHM_UNLOCK | SQLITE_SHM_SHARED))
        call_hook(&read_hook);
    return code;
}

static void fault_shm_barrier(sqlite3_file *file)
{
    real(file)->pMethods->xShmBarrier(real(file));
}

static int fault_shm_unmap(sqlite3_file *file, int remove)
{
    return real(file)->pMethods->xShmUnmap(real(file), remove);
}

static int fault_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                      int *ret_flags)
{
    (void)vfs;
    file->pMethods = NULL;
    int code = system_vfs->xOpen(system_vfs, name, real(file), flags, ret_flags);
    if (code != SQLITE_OK)
        return code;
    fault(file)->image = NULL;
    fault(file)->size = 0;
    sqlite3_int64 size = 0;
    (void)real(file)->pMethods->xFileSize(real(file), &size);
    fault(file)->size = size;
    if (name) {
        (void)pthread_mutex_lock(&lock);
        fault(file)->image = map_get(images, name);
        if (!fault(file)->image) {
            fault(file)->image = xcalloc(1, sizeof(struct image));
            map_set(images, name, fault(file)->image);
        }
        (void)pthread_mutex_unlock(&lock);
    }
    file->pMethods = &methods;
    return SQLITE_OK;
}

static int fault_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
    (void)vfs;
    int code = system_vfs->xDelete(system_vfs, name, sync);
    (void)pthread_mutex_lock(&lock);
    (void)map_remove(images, name);
    (void)pthread_mutex_unlock(&lock);
    return code;
}

void fault_vfs_install(void)
{
    system_vfs = sqlite3_vfs_find(NULL);
    images = map_create(image_free);
    methods = (sqlite3_io_methods){
        .iVersion = 2,
        .xClose = fault_close,
        .xRead = fault_read,
        .xWrite = fault_write,
        .xTruncate = fault_truncate,
        .xSync = fault_sync,
        .xFileSize = fault_file_size,
        .xLock = fault_lock,
        .xUnlock = fault_unlock,
        .xCheckReservedLock = fault_check_reserved,
        .xFileControl = fault_control,
        .xSectorSize = fault_sector_size,
        .xDeviceCharacteristics = fault_characteristics,
        .xShmMap = fault_shm_map,
        .xShmLock = fault_shm_lock,
        .xShmBarrier = fault_shm_barrier,
        .xShmUnmap = fault_shm_unmap,
    };
    fault_vfs = *system_vfs;
    fault_vfs.zName = "fault";
    fault_vfs.pNext = NULL;
    fault_vfs.szOsFile = (int)sizeof(struct fault_file) + system_vfs->szOsFile;
    fault_vfs.xOpen = fault_open;
    fault_vfs.xDelete = fault_delete;
    ck_assert_int_eq(sqlite3_vfs_register(&fault_vfs, 0), SQLITE_OK);
}
