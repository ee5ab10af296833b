#include "common/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "common/base/buf.h"

static int failed(const char *path, struct error *err)
{
    return error_set(err, errno == ENOENT ? ERROR_NOT_FOUND : ERROR_INVALID, "'%s': %s", path,
                     strerrordesc_np(errno));
}

static int read_all(int fd, const char *path, struct buf *buf, struct error *err)
{
    char chunk[16384];
    ssize_t len;

    while ((len = read(fd, chunk, sizeof(chunk))) > 0) {
        if (!buf_append(buf, chunk, (size_t)len)) {
            errno = EFBIG;
            return failed(path, err);
        }
    }
    return len < 0 ? failed(path, err) : 0;
}

int file_read_text(struct arena *arena, const char *path, size_t max, struct stat *ret_seen,
                   const char **ret, struct error *err)
{
    CLEANUP(buf_releasep) struct buf buf = BUF_INIT(max);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat seen;

    if (fd < 0)
        return failed(path, err);
    int r = fstat(fd, &seen) < 0 ? failed(path, err) : read_all(fd, path, &buf, err);
    close(fd);
    if (r < 0)
        return r;

    size_t line = buf_line_of_nul(&buf);

    if (line)
        return error_set(err, ERROR_INVALID,
                         "'%s': line %zu holds a NUL: it is damaged, restore it from a copy", path,
                         line);
    if (ret_seen)
        *ret_seen = seen;
    *ret = arena_strndup(arena, buf_string(&buf), buf.len);
    return 0;
}

int file_make_folder(const char *path, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
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

static int unsynced(const char *path, struct error *err)
{
    return error_set(err, ERROR_UNAVAILABLE, "'%s': %s", path, strerrordesc_np(errno));
}

int file_sync(const char *path, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return unsynced(path, err);
    int r = fsync(fd) < 0 ? unsynced(path, err) : 0;
    close(fd);
    return r;
}

int file_sync_folder_of(const char *path, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *slash = strrchr(path, '/');

    return file_sync(slash ? arena_strndup(arena, path, (size_t)(slash - path) + 1) : ".", err);
}

bool file_write_all(int fd, const char *text)
{
    size_t left = strlen(text);

    while (left) {
        ssize_t r = write(fd, text, left);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return false;
        text += r;
        left -= (size_t)r;
    }
    return fsync(fd) == 0;
}

int file_replace(const char *path, const char *text, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *new_path = arena_printf(arena, "%s.new", path);
    int fd = open(new_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0)
        return error_set(err, ERROR_INVALID, "'%s': %s", new_path, strerrordesc_np(errno));
    int r = file_write_all(fd, text) ? 0 : unsynced(path, err);
    close(fd);
    if (r == 0 && rename(new_path, path) < 0)
        r = unsynced(path, err);
    if (r < 0)
        (void)unlink(new_path);
    return r < 0 ? r : file_sync_folder_of(path, err);
}
