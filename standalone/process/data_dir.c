#include "standalone/process/data_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "certs/file_place.h"
#include "certs/file_set.h"
#include "certs/keeper.h"
#include "common/base/buf.h"

#define DAY_US (INT64_C(24) * 60 * 60 * 1000000)
/* A board may be off for long, and nobody looks after it. */
#define CA_LIFETIME_US (30 * 365 * DAY_US)
#define LEAF_LIFETIME_US (3 * 365 * DAY_US)

const char *data_dir_path(struct arena *arena, const char *directory, const char *name)
{
    return arena_printf(arena, "%s/%s", directory, name);
}

static int read_all(int fd, struct buf *buf)
{
    char chunk[16384];
    ssize_t len;

    while ((len = read(fd, chunk, sizeof(chunk))) > 0) {
        if (!buf_append(buf, chunk, (size_t)len)) {
            errno = EFBIG;
            return -1;
        }
    }
    return (int)len;
}

int data_dir_read(struct arena *arena, const char *path, const char **ret, struct error *err)
{
    CLEANUP(buf_releasep) struct buf buf = BUF_INIT(DATA_DIR_MAX_FILE);
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return error_set(err, errno == ENOENT ? ERROR_NOT_FOUND : ERROR_INVALID, "'%s': %s", path,
                         strerrordesc_np(errno));

    int r = read_all(fd, &buf);
    int problem = errno;

    close(fd);
    if (r < 0)
        return error_set(err, ERROR_INVALID, "'%s': %s", path, strerrordesc_np(problem));
    *ret = arena_strndup(arena, buf_string(&buf), buf.len);
    return 0;
}

static int write_all(int fd, const char *text)
{
    size_t len = strlen(text);

    while (len) {
        ssize_t n = write(fd, text, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        text += n;
        len -= (size_t)n;
    }
    return fsync(fd);
}

int data_dir_sync_folder(struct arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *folder = slash ? arena_strndup(arena, path, (size_t)(slash - path)) : ".";
    int fd = open(*folder ? folder : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return -1;

    int r = fsync(fd);

    close(fd);
    return r;
}

int data_dir_write(struct arena *arena, const char *path, const char *text, struct error *err)
{
    const char *new = arena_printf(arena, "%s.new", path);
    int fd = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0)
        return error_set(err, ERROR_INVALID, "'%s': %s", new, strerrordesc_np(errno));

    int r = write_all(fd, text);
    int problem = errno;

    close(fd);
    if (r == 0 && (rename(new, path) < 0 || data_dir_sync_folder(arena, path) < 0)) {
        problem = errno;
        r = -1;
    }
    if (r == 0)
        return 0;
    (void)unlink(new);
    return error_set(err, ERROR_UNAVAILABLE, "'%s': %s", path, strerrordesc_np(problem));
}

int data_dir_make(struct arena *arena, const char *path, struct error *err)
{
    char *part = arena_strdup(arena, path);

    for (char *slash = strchr(part + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash)
            *slash = '\0';
        if (mkdir(part, 0700) < 0 && errno != EEXIST)
            return error_set(err, ERROR_INVALID, "'%s': %s", part, strerrordesc_np(errno));
        if (!slash)
            return 0;
        *slash = '/';
    }
}

/* There are no bundles: who trusts the authority has it in a kubeconfig. */
static int save_bundles(void *self UNUSED, struct arena *arena UNUSED, const char *trust UNUSED,
                        struct error *err UNUSED)
{
    return 0;
}

int data_dir_keep_certificates(struct arena *arena, const char *directory,
                               const struct data_dir_names *names, const struct clock *clock,
                               struct error *err)
{
    struct file_place files = { .cert_dir = data_dir_path(arena, directory, DATA_DIR_TLS),
                                .ca_dir = data_dir_path(arena, directory, DATA_DIR_CA) };
    const struct cert_place place = { .self = &files,
                                      .load = file_place_load,
                                      .save_ca = file_place_save_ca,
                                      .save_leaf = file_place_save_leaf,
                                      .save_bundles = save_bundles };
    const struct cert_policy policy = { .names = { names->items, names->len },
                                        .ca_lifetime_us = CA_LIFETIME_US,
                                        .leaf_lifetime_us = LEAF_LIFETIME_US };
    struct cert_result result;
    int lock;

    int r = file_set_lock(files.ca_dir, &lock, err);
    if (r < 0)
        return r;
    r = cert_keep(arena, &place, &policy, clock, &result, err);
    file_set_unlock(lock);
    return r;
}
