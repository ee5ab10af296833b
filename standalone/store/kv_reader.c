#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>

#include "common/base/alloc.h"
#include "standalone/store/kv_internal.h"

struct kv_reader {
    char *path;
    struct kv_connection connection;
    struct kv_snapshot snapshot;
};

static int begin(struct kv_reader *reader, struct error *err)
{
    struct kv_connect_options options = { .path = reader->path,
                                          .read_only = true,
                                          .cache_kib = KV_READER_CACHE_KIB };

    int r = kv_connect(&options, &reader->connection, err);
    if (r == 0)
        r = kv_check_identity(&reader->connection, err);
    if (r > 0)
        return error_set(err, ERROR_NOT_FOUND, "store '%s' is empty", reader->path);
    reader->snapshot.connection = &reader->connection;
    return r < 0 ? r : kv_snapshot_take(&reader->snapshot, err);
}

int kv_reader_open(const char *path, struct kv_reader **ret, struct error *err)
{
    CLEANUP(kv_reader_closep) struct kv_reader *reader = xcalloc(1, sizeof(*reader));
    struct stat status;

    reader->path = xstrdup(path);
    if (stat(path, &status) < 0)
        return error_set(err, ERROR_NOT_FOUND, "store '%s': %s", path, strerror(errno));
    int r = kv_refuse_damaged(path, begin(reader, err), err);
    if (r < 0)
        return r;
    *ret = TAKE(reader);
    return 0;
}

/* The log stays as it is: only who writes moves it. */
void kv_reader_close(struct kv_reader *reader)
{
    if (!reader)
        return;
    kv_disconnect(&reader->connection);
    free(reader->path);
    free(reader);
}

int kv_reader_get(struct kv_reader *reader, struct arena *arena, const char *key,
                  struct kv_value *ret, struct error *err)
{
    return kv_snapshot_get(&reader->snapshot, arena, key, 0, ret, err);
}

int kv_reader_list(struct kv_reader *reader, struct arena *arena, const struct kv_range *range,
                   struct kv_page *ret, struct error *err)
{
    assert(range->revision == 0);
    return kv_snapshot_list(&reader->snapshot, arena, range, ret, err);
}
