#include "webhook/pair.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/base/alloc.h"
#include "common/base/certificate.h"
#include "common/base/clock.h"

#define MAX_PATH 4096

static const char *const FILES[] = { PAIR_CERT_FILE, PAIR_KEY_FILE };

static bool file_path(char *ret, size_t size, const char *directory, const char *name)
{
    int len = snprintf(ret, size, "%s/%s", directory, name);

    return len >= 0 && (size_t)len < size;
}

struct pair_version pair_version(const char *directory)
{
    struct pair_version version;
    char path[MAX_PATH];
    struct stat file;

    memset(&version, 0, sizeof(version));
    for (size_t i = 0; i < ARRAY_LEN(FILES); i++) {
        if (!file_path(path, sizeof(path), directory, FILES[i]) || stat(path, &file) < 0)
            continue;
        version.files[i].device = file.st_dev;
        version.files[i].inode = file.st_ino;
        version.files[i].size = file.st_size;
        version.files[i].changed = file.st_ctim; /* moves with the mtime, too */
    }
    return version;
}

bool pair_version_equal(const struct pair_version *a, const struct pair_version *b)
{
    for (size_t i = 0; i < ARRAY_LEN(FILES); i++) {
        if (a->files[i].device != b->files[i].device || a->files[i].inode != b->files[i].inode ||
            a->files[i].size != b->files[i].size ||
            a->files[i].changed.tv_sec != b->files[i].changed.tv_sec ||
            a->files[i].changed.tv_nsec != b->files[i].changed.tv_nsec)
            return false;
    }
    return true;
}

/* All of a regular file; NULL: it is something else, too large, or cannot be read. */
static char *read_all(int fd)
{
    struct stat file;
    char *text = xcalloc(1, PAIR_MAX_PEM + 2);
    size_t len = 0;
    ssize_t r = fstat(fd, &file) == 0 && S_ISREG(file.st_mode) ? 1 : -1;

    while (r > 0 && len <= PAIR_MAX_PEM) {
        r = read(fd, text + len, PAIR_MAX_PEM + 1 - len);
        len += r > 0 ? (size_t)r : 0;
    }
    if (r == 0 && strlen(text) == len)
        return text;
    explicit_bzero(text, len);
    free(text);
    return NULL;
}

static int read_file(const char *directory, const char *name, char **ret, struct error *err)
{
    char path[MAX_PATH];

    if (!file_path(path, sizeof(path), directory, name))
        return error_set(err, ERROR_INVALID, "the path of '%s' is too long", name);

    /* a pipe must not be waited for */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return error_set(err, errno == ENOENT ? ERROR_NOT_FOUND : ERROR_INVALID,
                         "cannot open '%s': %s", path, strerrordesc_np(errno));
    *ret = read_all(fd);
    close(fd);
    if (!*ret)
        return error_set(err, ERROR_INVALID, "'%s' is no text of at most %u bytes", path,
                         PAIR_MAX_PEM);
    return 0;
}

static int check_times(const char *cert, int64_t now_us, int64_t *ret_not_after_us,
                       struct error *err)
{
    struct certificate_times times;
    char text[RFC3339_LEN];

    int r = certificate_read_times(cert, &times, err);
    if (r < 0)
        return error_wrap(err, "'%s'", PAIR_CERT_FILE);

    if (times.not_after_us <= now_us)
        return error_set(err, ERROR_INVALID, "'%s' expired at %s", PAIR_CERT_FILE,
                         rfc3339_format(times.not_after_us, text));
    if (times.not_before_us - PAIR_MAX_SKEW_US > now_us)
        return error_set(err, ERROR_INVALID, "'%s' is not valid before %s", PAIR_CERT_FILE,
                         rfc3339_format(times.not_before_us, text));
    *ret_not_after_us = times.not_after_us;
    return 0;
}

int pair_load(const char *directory, int64_t now_us, struct pair *ret, struct error *err)
{
    CLEANUP(pair_releasep) struct pair pair = { 0 };

    int r = read_file(directory, PAIR_CERT_FILE, &pair.cert, err);
    if (r < 0)
        return r;
    r = read_file(directory, PAIR_KEY_FILE, &pair.key, err);
    if (r < 0)
        return r;
    r = check_times(pair.cert, now_us, &pair.not_after_us, err);
    if (r < 0)
        return r;

    ret->not_after_us = pair.not_after_us;
    ret->cert = TAKE(pair.cert);
    ret->key = TAKE(pair.key);
    return 0;
}

void pair_release(struct pair *pair)
{
    free(pair->cert);
    free_secret(pair->key);
    *pair = (struct pair){ 0 };
}
