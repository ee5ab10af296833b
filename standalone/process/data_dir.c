#include "standalone/process/data_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "common/base/buf.h"

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

    size_t line = buf_line_of_nul(&buf);

    if (line)
        return error_set(err, ERROR_INVALID,
                         "'%s': line %zu holds a NUL: it is damaged, restore it from a copy", path,
                         line);
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
