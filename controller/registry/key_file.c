#include "controller/registry/key_file.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>

#include "common/base/alloc.h"
#include "common/base/file.h"

#define MAX_BYTES ((size_t)64 << 10)

struct key_file {
    char *path; /* NULL: none */

    pthread_mutex_t lock;     /* leaf; of all below */
    struct public_keys *keys; /* NULL: not read yet */
    struct stat seen;         /* when they were read */
};

struct key_file *key_file_create(const char *path)
{
    struct key_file *file = xcalloc(1, sizeof(*file));

    file->path = path ? xstrdup(path) : NULL;
    pthread_mutex_init(&file->lock, NULL);
    return file;
}

void key_file_destroy(struct key_file *file)
{
    if (!file)
        return;
    public_keys_unref(file->keys);
    pthread_mutex_destroy(&file->lock);
    free(file->path);
    free(file);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_size == b->st_size && a->st_ino == b->st_ino &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* NULL: the file has changed. */
static struct public_keys *known_keys(struct key_file *file)
{
    struct public_keys *keys = NULL;
    struct stat now;

    if (stat(file->path, &now) < 0)
        return NULL;
    pthread_mutex_lock(&file->lock);
    if (file->keys && is_same(&file->seen, &now))
        keys = public_keys_ref(file->keys);
    pthread_mutex_unlock(&file->lock);
    return keys;
}

int key_file_read(struct key_file *file, struct public_keys **ret, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct public_keys *keys = NULL;
    struct stat seen;
    const char *pem;
    int r;

    *ret = file->path ? known_keys(file) : NULL;
    if (*ret || !file->path)
        return 0;
    r = file_read_text(arena, file->path, MAX_BYTES, &seen, &pem, err);
    if (r == 0)
        r = public_keys_parse(pem, strlen(pem), &keys, err);
    if (r < 0)
        return error_set(err, ERROR_INVALID, "--module-public-keys '%s': %s", file->path,
                         arena_strdup(arena, err->message));

    pthread_mutex_lock(&file->lock);
    public_keys_unref(file->keys);
    file->keys = public_keys_ref(keys);
    file->seen = seen;
    pthread_mutex_unlock(&file->lock);
    *ret = keys;
    return 0;
}
