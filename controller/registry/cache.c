#include "controller/registry/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/file.h>
#include <sys/stat.h>

#include "common/api/module_reference.h"
#include "common/base/alloc.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/map.h"
#include "common/base/str.h"
#include "common/json/json.h"
#include "common/runtime/metrics.h"

#define MARK "propeller-modules"
#define MODULES "sha256"
#define RECORDS "manifests"
#define UNFINISHED "tmp"
#define MAX_RECORD ((size_t)8 << 10) /* bytes of its file */
#define PART ((size_t)64 << 10)      /* bytes that are hashed at once */

static const unsigned char MAGIC[] = { 0x00, 0x61, 0x73, 0x6d };

static struct metric corrupt_total = {
    .type = METRIC_COUNTER,
    .name = "propeller_module_cache_corrupt_total",
    .help = "Modules in the folder whose bytes were not those of their digest.",
};
static struct metric cache_bytes = {
    .type = METRIC_GAUGE,
    .name = "propeller_module_cache_bytes",
    .help = "Bytes of modules in the folder.",
};

/* The file that was hashed. */
struct identity {
    ino_t inode;
    off_t size;
    struct timespec changed;
};

struct entry {
    int64_t bytes;
    uint64_t used; /* larger is later */
    unsigned pins;
    bool is_verified;
    struct identity identity; /* of a verified one */
};

struct module_cache {
    char *dir;
    int64_t max_bytes;
    int mark; /* descriptor of the locked mark */

    pthread_mutex_t lock; /* leaf; of all below */
    struct map *entries;  /* hex -> entry */
    struct map *records;  /* hex -> compact JSON */
    int64_t bytes;        /* of entries and reservations */
    uint64_t clock;       /* of entry.used */
    uint64_t names;       /* of temporary files */
};

struct module_writer {
    struct module_cache *cache;
    char *path;
    int fd;
    int64_t reserved; /* 0: committed */
    int64_t bytes;
    struct sha256 *sha256;
    char hex[SHA256_HEX_LEN]; /* "": not finished */
    unsigned char head[sizeof(MAGIC)];
};

static const char *hex_of(const char *digest)
{
    return digest + strlen(MODULE_DIGEST_PREFIX);
}

static char *path_of(const struct module_cache *cache, struct arena *arena, const char *folder,
                     const char *name)
{
    return arena_printf(arena, "%s/%s/%s", cache->dir, folder, name);
}

static void count_bytes(const struct module_cache *cache)
{
    metric_set(&cache_bytes, (double)cache->bytes, NULL);
}

/* --- entries, with the lock ------------------------------------------------------------------- */

/* Removes a module with its file. hex is the map's own, or another. */
static void drop_entry(struct module_cache *cache, const char *hex)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct entry *entry = map_get(cache->entries, hex);

    (void)unlink(path_of(cache, arena, MODULES, hex));
    cache->bytes -= entry->bytes;
    (void)map_remove(cache->entries, hex);
    count_bytes(cache);
}

/* NULL: all are pinned. */
static const char *least_recently_used(const struct module_cache *cache)
{
    const char *found = NULL, *hex;
    uint64_t used = UINT64_MAX;
    void *value;

    for (size_t i = 0; map_next(cache->entries, &i, &hex, &value);) {
        const struct entry *entry = value;

        if (!entry->pins && entry->used < used) {
            found = hex;
            used = entry->used;
        }
    }
    return found;
}

static int64_t pinned_bytes(const struct module_cache *cache)
{
    int64_t bytes = cache->bytes;
    const char *hex;
    void *value;

    for (size_t i = 0; map_next(cache->entries, &i, &hex, &value);)
        bytes -= ((const struct entry *)value)->pins ? 0 : ((const struct entry *)value)->bytes;
    return bytes;
}

static bool make_room(struct module_cache *cache, int64_t bytes)
{
    if (bytes > cache->max_bytes - pinned_bytes(cache))
        return false;
    while (bytes > cache->max_bytes - cache->bytes || map_len(cache->entries) >= MODULE_CACHE_MAX) {
        const char *hex = least_recently_used(cache);

        if (!hex)
            return false;
        drop_entry(cache, hex);
    }
    return true;
}

static struct entry *add_entry(struct module_cache *cache, const char *hex, int64_t bytes)
{
    struct entry *entry = xcalloc(1, sizeof(*entry));

    entry->bytes = bytes;
    entry->used = ++cache->clock;
    map_set(cache->entries, hex, entry);
    cache->bytes += bytes;
    count_bytes(cache);
    return entry;
}

static struct identity identity_of(const struct stat *file)
{
    return (struct identity){ file->st_ino, file->st_size, file->st_mtim };
}

static bool is_same(const struct identity *a, const struct identity *b)
{
    return a->inode == b->inode && a->size == b->size && a->changed.tv_sec == b->changed.tv_sec &&
           a->changed.tv_nsec == b->changed.tv_nsec;
}

/* --- the folder ------------------------------------------------------------------------------- */

static int refuse(const char *dir, const char *why, struct error *err)
{
    return error_set(err, ERROR_INVALID, "--module-cache-dir '%s' %s", dir, why);
}

/* Calls what for each name in a folder of the cache; false: it cannot be read. */
static bool for_each_name(const struct module_cache *cache, const char *folder,
                          void (*what)(void *ctx, const char *name), void *ctx)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    DIR *names = opendir(path_of(cache, arena, folder, ""));
    struct dirent *entry;

    if (!names)
        return false;
    while ((entry = readdir(names))) {
        if (!str_equal(entry->d_name, ".") && !str_equal(entry->d_name, ".."))
            what(ctx, entry->d_name);
    }
    (void)closedir(names);
    return true;
}

static void count_name(void *ctx, const char *name UNUSED)
{
    ++*(size_t *)ctx;
}

/* Makes the folder, or checks that only its owner may write it. */
static int take_folder(const struct module_cache *cache, struct error *err)
{
    struct stat seen;
    int r = file_make_folder(cache->dir, err);

    if (r < 0)
        return error_wrap(err, "--module-cache-dir");
    if (stat(cache->dir, &seen) < 0 || !S_ISDIR(seen.st_mode))
        return refuse(cache->dir, "is no folder", err);
    if (seen.st_uid != geteuid() || (seen.st_mode & (S_IWGRP | S_IWOTH)))
        return refuse(cache->dir,
                      "may be written by others: name a folder that is made with mode 0700", err);
    return 0;
}

/* Marks an empty folder, or finds the mark, and locks it. */
static int take_mark(struct module_cache *cache, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *path = arena_printf(arena, "%s/" MARK, cache->dir);
    size_t names = 0;

    if (!for_each_name(cache, ".", count_name, &names))
        return refuse(cache->dir, "cannot be read", err);
    cache->mark = open(path, O_RDWR | O_CLOEXEC | (names ? 0 : O_CREAT), 0600);
    if (cache->mark < 0)
        return refuse(cache->dir,
                      names && errno == ENOENT ? "holds something else: name an empty folder"
                                               : strerrordesc_np(errno),
                      err);
    if (flock(cache->mark, LOCK_EX | LOCK_NB) < 0)
        return refuse(cache->dir, "is used by another process", err);
    return 0;
}

static void remove_unfinished(void *ctx, const char *name)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    (void)unlink(path_of(ctx, arena, UNFINISHED, name));
}

static bool is_hex(const char *name)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    return module_digest_is_valid(arena_printf(arena, MODULE_DIGEST_PREFIX "%s", name));
}

static void load_module(void *ctx, const char *name)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct module_cache *cache = ctx;
    const char *path = path_of(cache, arena, MODULES, name);
    struct stat file;

    if (!is_hex(name) || lstat(path, &file) < 0 || !S_ISREG(file.st_mode) ||
        map_len(cache->entries) >= MODULE_CACHE_MAX) {
        (void)unlink(path);
        return;
    }

    struct entry *entry = add_entry(cache, name, file.st_size);

    entry->used = (uint64_t)file.st_atim.tv_sec;
    if (entry->used > cache->clock)
        cache->clock = entry->used;
}

static void load_record(void *ctx, const char *name)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct module_cache *cache = ctx;
    const char *path = path_of(cache, arena, RECORDS, name), *text;

    if (is_hex(name) && map_len(cache->records) < MODULE_CACHE_MAX &&
        file_read_text(arena, path, MAX_RECORD, NULL, &text, NULL) == 0)
        map_set(cache->records, name, xstrdup(text));
    else
        (void)unlink(path);
}

static int load(struct module_cache *cache, struct error *err)
{
    static const struct {
        const char *folder;
        void (*what)(void *ctx, const char *name);
    } FOLDERS[] = { { UNFINISHED, remove_unfinished },
                    { MODULES, load_module },
                    { RECORDS, load_record } };

    for (size_t i = 0; i < ARRAY_LEN(FOLDERS); i++) {
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();
        const char *path = arena_printf(arena, "%s/%s", cache->dir, FOLDERS[i].folder);

        if ((mkdir(path, 0700) < 0 && errno != EEXIST) || access(path, W_OK) < 0 ||
            !for_each_name(cache, FOLDERS[i].folder, FOLDERS[i].what, cache))
            return refuse(cache->dir, strerrordesc_np(errno), err);
    }
    (void)make_room(cache, 0); /* the limit may be lower than before */
    return 0;
}

int module_cache_open(const char *dir, int64_t max_bytes, struct module_cache **ret,
                      struct error *err)
{
    struct module_cache *cache = xcalloc(1, sizeof(*cache));
    int r;

    cache->dir = xstrdup(dir);
    cache->max_bytes = max_bytes;
    cache->mark = -1;
    cache->entries = map_create(free);
    cache->records = map_create(free);
    pthread_mutex_init(&cache->lock, NULL);
    r = take_folder(cache, err);
    if (r == 0)
        r = take_mark(cache, err);
    if (r == 0)
        r = load(cache, err);
    if (r < 0) {
        module_cache_close(cache);
        return r;
    }
    count_bytes(cache);
    *ret = cache;
    return 0;
}

void module_cache_close(struct module_cache *cache)
{
    if (!cache)
        return;
    if (cache->mark >= 0)
        (void)close(cache->mark);
    map_destroy(cache->entries);
    map_destroy(cache->records);
    pthread_mutex_destroy(&cache->lock);
    free(cache->dir);
    free(cache);
}

/* --- writing ---------------------------------------------------------------------------------- */

static int disk_refuses(struct error *err)
{
    return error_set(err, ERROR_UNAVAILABLE, "folder of modules: %s", strerrordesc_np(errno));
}

struct module_writer *module_writer_create(struct module_cache *cache, int64_t bytes)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct module_writer *writer = xcalloc(1, sizeof(*writer));
    uint64_t name;
    bool fits;

    pthread_mutex_lock(&cache->lock);
    fits = make_room(cache, bytes);
    cache->bytes += fits ? bytes : 0;
    name = ++cache->names;
    pthread_mutex_unlock(&cache->lock);

    writer->cache = cache;
    writer->reserved = fits ? bytes : 0;
    writer->path = xstrdup(
        path_of(cache, arena, UNFINISHED, arena_printf(arena, "%llu", (unsigned long long)name)));
    writer->fd = fits ? open(writer->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    writer->sha256 = sha256_create();
    if (writer->fd >= 0)
        return writer;
    module_writer_destroy(writer);
    return NULL;
}

int module_writer_restart(struct module_writer *writer, struct error *err)
{
    char hex[SHA256_HEX_LEN];

    (void)sha256_finish(writer->sha256, hex);
    writer->bytes = 0;
    if (ftruncate(writer->fd, 0) < 0 || lseek(writer->fd, 0, SEEK_SET) < 0)
        return disk_refuses(err);
    return 0;
}

int module_writer_add(struct module_writer *writer, const void *bytes, size_t len,
                      struct error *err)
{
    const unsigned char *at = bytes;
    size_t left = len;

    if ((int64_t)len > writer->reserved - writer->bytes)
        return error_set(err, ERROR_TOO_LARGE, "more than %lld bytes", (long long)writer->reserved);
    while (left) {
        ssize_t written = write(writer->fd, at, left);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return disk_refuses(err);
        at += written;
        left -= (size_t)written;
    }
    for (size_t i = (size_t)writer->bytes; i < sizeof(MAGIC) && i < (size_t)writer->bytes + len;
         i++)
        writer->head[i] = ((const unsigned char *)bytes)[i - (size_t)writer->bytes];
    sha256_add(writer->sha256, bytes, len);
    writer->bytes += (int64_t)len;
    return 0;
}

int64_t module_writer_bytes(const struct module_writer *writer)
{
    return writer->bytes;
}

bool module_writer_is_wasm(const struct module_writer *writer)
{
    return writer->bytes >= (int64_t)sizeof(MAGIC) &&
           memcmp(writer->head, MAGIC, sizeof(MAGIC)) == 0;
}

const char *module_writer_digest(struct module_writer *writer, struct arena *arena)
{
    if (!*writer->hex)
        (void)sha256_finish(writer->sha256, writer->hex);
    return arena_printf(arena, MODULE_DIGEST_PREFIX "%s", writer->hex);
}

int module_writer_commit(struct module_writer *writer, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct module_cache *cache = writer->cache;
    const char *hex = hex_of(module_writer_digest(writer, arena));
    struct stat file;
    int r = 0;

    if (fstat(writer->fd, &file) < 0)
        return disk_refuses(err);
    pthread_mutex_lock(&cache->lock);

    struct entry *entry = map_get(cache->entries, hex);

    if (rename(writer->path, path_of(cache, arena, MODULES, hex)) < 0) {
        r = disk_refuses(err);
    } else {
        cache->bytes -= writer->reserved;
        writer->reserved = 0;
        if (!entry)
            entry = add_entry(cache, hex, writer->bytes);
        cache->bytes += writer->bytes - entry->bytes; /* one that was damaged is replaced */
        entry->bytes = writer->bytes;
        entry->pins++;
        entry->used = ++cache->clock;
        entry->is_verified = true;
        entry->identity = identity_of(&file);
    }
    pthread_mutex_unlock(&cache->lock);
    return r;
}

void module_writer_destroy(struct module_writer *writer)
{
    if (!writer)
        return;
    if (writer->fd >= 0) {
        (void)close(writer->fd);
        (void)unlink(writer->path); /* after a commit there is none */
    }
    pthread_mutex_lock(&writer->cache->lock);
    writer->cache->bytes -= writer->reserved;
    pthread_mutex_unlock(&writer->cache->lock);
    sha256_destroy(writer->sha256);
    free(writer->path);
    free(writer);
}

/* --- use -------------------------------------------------------------------------------------- */

static bool hash_file(int fd, char ret[static SHA256_HEX_LEN])
{
    CLEANUP(sha256_destroyp) struct sha256 *sha256 = sha256_create();
    char *part = xmalloc(PART);
    ssize_t len;

    while ((len = read(fd, part, PART)) > 0)
        sha256_add(sha256, part, (size_t)len);
    (void)sha256_finish(sha256, ret);
    free(part);
    return len == 0;
}

static void drop_corrupt(struct module_cache *cache, const char *hex)
{
    if (map_get(cache->entries, hex)) {
        drop_entry(cache, hex);
        metric_add(&corrupt_total, 1, NULL);
    }
}

static bool is_unverified(struct module_cache *cache, const char *hex)
{
    const struct entry *entry;
    bool is_new;

    pthread_mutex_lock(&cache->lock);
    entry = map_get(cache->entries, hex);
    is_new = entry && !entry->is_verified;
    pthread_mutex_unlock(&cache->lock);
    return is_new;
}

/* Hashes a module that was not. One that differs is removed. */
static void verify(struct module_cache *cache, struct arena *arena, const char *name)
{
    char hex[SHA256_HEX_LEN] = "";
    struct stat file;

    if (!is_unverified(cache, name))
        return;

    int fd = open(path_of(cache, arena, MODULES, name), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool is_read = fd >= 0 && fstat(fd, &file) == 0 && hash_file(fd, hex);

    if (fd >= 0)
        (void)close(fd);
    pthread_mutex_lock(&cache->lock);

    struct entry *entry = map_get(cache->entries, name);

    if (entry && !entry->is_verified) {
        if (is_read && str_equal(hex, name) && entry->bytes == file.st_size) {
            entry->is_verified = true;
            entry->identity = identity_of(&file);
        } else {
            drop_corrupt(cache, name);
        }
    }
    pthread_mutex_unlock(&cache->lock);
}

/* The time of the last use, for the order of removal after a restart. */
static void touch(const struct module_cache *cache, struct arena *arena, const char *hex)
{
    static const struct timespec NOW[] = { { .tv_nsec = UTIME_NOW }, { .tv_nsec = UTIME_OMIT } };

    (void)utimensat(AT_FDCWD, path_of(cache, arena, MODULES, hex), NOW, 0);
}

bool module_cache_pin(struct module_cache *cache, const char *digest, bool may_hash,
                      int64_t *ret_bytes)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *hex = hex_of(digest);
    struct entry *entry;
    bool is_pinned;

    if (may_hash)
        verify(cache, arena, hex);
    pthread_mutex_lock(&cache->lock);
    entry = map_get(cache->entries, hex);
    is_pinned = entry && entry->is_verified;
    if (is_pinned) {
        entry->pins++;
        entry->used = ++cache->clock;
        *ret_bytes = entry->bytes;
        touch(cache, arena, hex);
    }
    pthread_mutex_unlock(&cache->lock);
    return is_pinned;
}

void module_cache_unpin(struct module_cache *cache, const char *digest)
{
    pthread_mutex_lock(&cache->lock);

    struct entry *entry = map_get(cache->entries, hex_of(digest));

    if (entry && entry->pins) /* it may have been removed, and pulled again, meanwhile */
        entry->pins--;
    pthread_mutex_unlock(&cache->lock);
}

bool module_cache_has_room(struct module_cache *cache, int64_t bytes)
{
    bool fits;

    pthread_mutex_lock(&cache->lock);
    fits = bytes <= cache->max_bytes - pinned_bytes(cache);
    pthread_mutex_unlock(&cache->lock);
    return fits;
}

/* Reads all of the part, or fails with errno; EIO: the file is shorter. */
static bool read_part(int fd, int64_t offset, char *ret, size_t len)
{
    while (len) {
        ssize_t got = pread(fd, ret, len, offset);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            errno = got ? errno : EIO;
            return false;
        }
        ret += got;
        offset += got;
        len -= (size_t)got;
    }
    return true;
}

/* Whether the file is the one that was hashed. One that is not is removed. */
static bool is_hashed(struct module_cache *cache, const char *hex, const struct stat *file)
{
    struct identity identity = identity_of(file);
    const struct entry *entry;
    bool is_good;

    pthread_mutex_lock(&cache->lock);
    entry = map_get(cache->entries, hex);
    is_good = entry && entry->is_verified && is_same(&entry->identity, &identity);
    if (!is_good && entry && entry->is_verified)
        drop_corrupt(cache, hex);
    pthread_mutex_unlock(&cache->lock);
    return is_good;
}

int module_cache_read(struct module_cache *cache, const char *digest, int64_t offset, void *ret,
                      size_t len, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *hex = hex_of(digest);
    int fd = open(path_of(cache, arena, MODULES, hex), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool is_missing = fd < 0 && errno == ENOENT;
    struct stat file = { 0 };
    int r = 0;

    if ((fd < 0 && !is_missing) || (fd >= 0 && fstat(fd, &file) < 0))
        r = disk_refuses(err);
    if (r == 0 && !is_hashed(cache, hex, &file))
        r = error_set(err, ERROR_NOT_FOUND, "module '%s' is not in the folder", digest);
    if (r == 0 && !read_part(fd, offset, ret, len))
        r = disk_refuses(err);
    if (fd >= 0)
        (void)close(fd);
    return r;
}

/* --- records ---------------------------------------------------------------------------------- */

static bool read_record(struct arena *arena, const char *text, struct module_record *ret)
{
    const cJSON *json = NULL;

    if (json_parse(arena, text, strlen(text), &json, NULL) < 0)
        return false;
    *ret = (struct module_record){
        .layer = json_get_string(json, "layer"),
        .bytes = json_int(json_get(json, "bytes"), -1),
        .public_in = json_string(json_first(json_get(json, "public")), NULL),
        .signed_by = json_string(json_first(json_get(json, "keys")), NULL),
    };
    return module_digest_is_valid(ret->layer) && ret->bytes >= 0;
}

bool module_cache_record(struct module_cache *cache, struct arena *arena, const char *manifest,
                         struct module_record *ret)
{
    const char *text;

    pthread_mutex_lock(&cache->lock);
    text = arena_strdup(arena, map_get(cache->records, hex_of(manifest)));
    pthread_mutex_unlock(&cache->lock);
    return text && read_record(arena, text, ret);
}

/* Any record may go: it costs a request at the next use of its manifest. */
static void forget_one(struct module_cache *cache, struct arena *arena)
{
    size_t position = 0;
    const char *hex;
    void *value;

    if (map_len(cache->records) < MODULE_CACHE_MAX ||
        !map_next(cache->records, &position, &hex, &value))
        return;
    (void)unlink(path_of(cache, arena, RECORDS, hex));
    (void)map_remove(cache->records, hex);
}

/* Writes a record through tmp/, with the lock. Not synced: a record that a crash damages is read as none. */
static bool write_record(struct module_cache *cache, struct arena *arena, const char *hex,
                         const char *text)
{
    const char *part = path_of(cache, arena, UNFINISHED, RECORDS);
    int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool is_written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    if (fd >= 0)
        (void)close(fd);
    return is_written && rename(part, path_of(cache, arena, RECORDS, hex)) == 0;
}

void module_cache_remember(struct module_cache *cache, const char *manifest,
                           const struct module_record *record)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    cJSON *json = json_object(arena);

    json_set_string(json, "layer", record->layer);
    json_set_int(json, "bytes", record->bytes);
    if (record->public_in)
        json_add_string(json_set_array(json, "public"), record->public_in);
    if (record->signed_by)
        json_add_string(json_set_array(json, "keys"), record->signed_by);

    const char *text = json_text(arena, json, NULL);

    pthread_mutex_lock(&cache->lock);
    forget_one(cache, arena);
    if (write_record(cache, arena, hex_of(manifest), text))
        map_set(cache->records, hex_of(manifest), xstrdup(text));
    pthread_mutex_unlock(&cache->lock);
}

bool module_cache_put(struct module_cache *cache, const char *digest, const void *bytes, size_t len)
{
    struct error err;
    int64_t known;

    if (module_cache_pin(cache, digest, false, &known))
        return true;

    CLEANUP(module_writer_destroyp)
    struct module_writer *writer = module_writer_create(cache, (int64_t)len);

    return writer && module_writer_add(writer, bytes, len, &err) == 0 &&
           module_writer_commit(writer, &err) == 0;
}
