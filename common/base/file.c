#include "common/base/file.h"

#include <errno.h>
#include <fcntl.h>
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
