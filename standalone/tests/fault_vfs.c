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

/* Behind the file of the system's own, whose methods stay but for those below. */
struct fault_file {
    const sqlite3_io_methods *system;
    sqlite3_io_methods methods;
    struct image *image; /* NULL: a temporary file */
    int64_t size;        /* as it grows */
};

static sqlite3_vfs *system_vfs;
static sqlite3_vfs fault_vfs;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct map *images; /* by path */
static int64_t space = -1;
static bool broken;
static atomic_size_t bytes_read;
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
    return (struct fault_file *)((char *)file + system_vfs->szOsFile);
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

/* Under the lock. */
#define SET(variable, ...)                                                                         \
    do {                                                                                           \
        (void)pthread_mutex_lock(&lock);                                                           \
        (variable) = __VA_ARGS__;                                                                  \
        (void)pthread_mutex_unlock(&lock);                                                         \
    } while (0)

void fault_vfs_set_hook(fault_vfs_hook_fn *function, void *ctx)
{
    SET(write_hook, (struct hook){ function, ctx });
}

void fault_vfs_set_read_hook(fault_vfs_hook_fn *function, void *ctx)
{
    SET(read_hook, (struct hook){ function, ctx });
}

void fault_vfs_set_space(int64_t bytes)
{
    SET(space, bytes);
}

void fault_vfs_set_broken(bool is_broken)
{
    SET(broken, is_broken);
}

void fault_vfs_set_unreadable(fault_vfs_judge_fn *function, void *ctx)
{
    SET(read_judge, (struct judge){ function, ctx });
}

static atomic_int answered, failed;

static bool fails(void *ctx UNUSED)
{
    if (atomic_fetch_sub(&answered, 1) > 0)
        return false;
    atomic_fetch_add(&failed, 1);
    return true;
}

void fault_vfs_fail_after(int reads)
{
    atomic_store(&answered, reads);
    fault_vfs_set_unreadable(reads < 0 ? NULL : fails, NULL);
}

int fault_vfs_failed(void)
{
    return atomic_load(&failed);
}

size_t fault_vfs_read(void)
{
    return atomic_load(&bytes_read);
}

static void call_hook(const struct hook *hook)
{
    struct hook now;

    SET(now, *hook);
    if (now.function)
        now.function(now.ctx);
}

/* --- what SQLite calls --- */

static int fault_read(sqlite3_file *file, void *bytes, int len, sqlite3_int64 at)
{
    struct judge now;

    SET(now, read_judge);
    if (now.function && now.function(now.ctx))
        return SQLITE_IOERR_READ;
    (void)atomic_fetch_add(&bytes_read, (size_t)len);
    return fault(file)->system->xRead(file, bytes, len, at);
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
    return fits ? fault(file)->system->xWrite(file, bytes, len, at) : SQLITE_FULL;
}

static int fault_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    (void)pthread_mutex_lock(&lock);
    if (fault(file)->image)
        image_add(fault(file)->image, (size_t)size, NULL, 0);
    if (fault(file)->size > size)
        fault(file)->size = size;
    (void)pthread_mutex_unlock(&lock);
    return fault(file)->system->xTruncate(file, size);
}

static int fault_sync(sqlite3_file *file, int flags)
{
    struct image *image = fault(file)->image;

    (void)flags;
    call_hook(&write_hook);
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

/* A hint of the size would make a file grow without a write. */
static int fault_control(sqlite3_file *file, int operation, void *argument)
{
    if (operation == SQLITE_FCNTL_SIZE_HINT || operation == SQLITE_FCNTL_CHUNK_SIZE)
        return SQLITE_OK;
    return fault(file)->system->xFileControl(file, operation, argument);
}

static int fault_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
    int code = fault(file)->system->xShmLock(file, offset, n, flags);

    if (offset >= FIRST_READ_LOCK && flags == (SQLITE_SHM_UNLOCK | SQLITE_SHM_SHARED))
        call_hook(&read_hook);
    return code;
}

/* Of a file by its name, which is made if it is not known. */
static struct image *find_image(const char *name)
{
    (void)pthread_mutex_lock(&lock);
    struct image *image = map_get(images, name);
    if (!image) {
        image = xcalloc(1, sizeof(*image));
        map_set(images, name, image);
    }
    (void)pthread_mutex_unlock(&lock);
    return image;
}

static int fault_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                      int *ret_flags)
{
    struct fault_file *self = fault(file);
    sqlite3_int64 size = 0;

    (void)vfs;
    int code = system_vfs->xOpen(system_vfs, name, file, flags, ret_flags);
    if (code != SQLITE_OK)
        return code;
    (void)file->pMethods->xFileSize(file, &size);
    *self = (struct fault_file){ .system = file->pMethods,
                                 .methods = *file->pMethods,
                                 .image = name ? find_image(name) : NULL,
                                 .size = size };
    self->methods.iVersion = 2; /* without memory that is mapped */
    self->methods.xRead = fault_read;
    self->methods.xWrite = fault_write;
    self->methods.xTruncate = fault_truncate;
    self->methods.xSync = fault_sync;
    self->methods.xFileControl = fault_control;
    self->methods.xShmLock = fault_shm_lock;
    file->pMethods = &self->methods;
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
    fault_vfs = *system_vfs;
    fault_vfs.zName = "fault";
    fault_vfs.pNext = NULL;
    fault_vfs.szOsFile = system_vfs->szOsFile + (int)sizeof(struct fault_file);
    fault_vfs.xOpen = fault_open;
    fault_vfs.xDelete = fault_delete;
    ck_assert_int_eq(sqlite3_vfs_register(&fault_vfs, 0), SQLITE_OK);
}
