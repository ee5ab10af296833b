#include "certs/file_set.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/str.h"

#define DATA "..data"
#define NEW_LINK "..new"
#define MAX_NAME 256
#define NOT_LOCKED (-1)

static int failed(struct error *err, const char *what, const char *directory, const char *name)
{
    int problem = errno;

    return error_set(err,
                     problem == ENOSPC || problem == EDQUOT ? ERROR_UNAVAILABLE : ERROR_INVALID,
                     "cannot %s '%s/%s': %s", what, directory, name, strerrordesc_np(problem));
}

static int open_directory(const char *directory, int *ret, struct error *err)
{
    if (mkdir(directory, 0700) < 0 && errno != EEXIST)
        return error_set(err, ERROR_INVALID, "cannot make directory '%s': %s", directory,
                         strerrordesc_np(errno));
    *ret = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*ret < 0)
        return error_set(err, ERROR_INVALID, "cannot open directory '%s': %s", directory,
                         strerrordesc_np(errno));
    return 0;
}

bool file_set_is_same(const char *one, const char *other)
{
    struct stat a;
    struct stat b;

    if (str_equal(one, other))
        return true;
    return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* Takes fd, also if it fails. */
static int lock_as(int fd, int how, const char *directory, int *ret, struct error *err)
{
    while (flock(fd, how) < 0) {
        if (errno == EINTR)
            continue;
        int r = failed(err, "lock", directory, "");

        close(fd);
        return r;
    }
    *ret = fd;
    return 0;
}

int file_set_lock(const char *directory, int *ret, struct error *err)
{
    int fd = -1;
    int r = open_directory(directory, &fd, err);

    return r < 0 ? r : lock_as(fd, LOCK_EX, directory, ret, err);
}

int file_set_lock_shared(const char *directory, int *ret, struct error *err)
{
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    *ret = NOT_LOCKED;
    if (fd < 0)
        return errno == ENOENT ? 0 : failed(err, "open", directory, "");
    return lock_as(fd, LOCK_SH, directory, ret, err);
}

void file_set_unlock(int lock)
{
    if (lock != NOT_LOCKED)
        close(lock);
}

static bool write_file(int at, const struct file_content *file)
{
    int fd = openat(at, file->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return false;
    bool good = file_write_all(fd, file->text);
    close(fd);
    return good;
}

/* The link of that name points to target from now on; a reader never misses it. */
static bool point(int at, const char *name, const char *target)
{
    char now[MAX_NAME];
    ssize_t len = readlinkat(at, name, now, sizeof(now) - 1);

    if (len >= 0) {
        now[len] = '\0';
        if (str_equal(now, target))
            return true;
    }
    if (unlinkat(at, NEW_LINK, 0) < 0 && errno != ENOENT)
        return false;
    return symlinkat(target, at, NEW_LINK) == 0 && renameat(at, NEW_LINK, at, name) == 0;
}

static bool is_generation(const char *name)
{
    return strspn(name + strspn(name, "."), "0123456789abcdef") == 8 && strlen(name) == 10 &&
           str_has_prefix(name, "..");
}

static void remove_generation(int at, const char *generation)
{
    int fd = openat(at, generation, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *files = fd < 0 ? NULL : fdopendir(fd);

    for (struct dirent *file = files ? readdir(files) : NULL; file; file = readdir(files))
        (void)unlinkat(dirfd(files), file->d_name, 0);
    if (files)
        closedir(files);
    (void)unlinkat(at, generation, AT_REMOVEDIR);
}

/* What earlier changes left, those that were broken off as well. */
static void remove_others(int at, const char *kept)
{
    int fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);

    if (!entries)
        return;
    for (struct dirent *entry = readdir(entries); entry; entry = readdir(entries)) {
        if (is_generation(entry->d_name) && !str_equal(entry->d_name, kept))
            remove_generation(at, entry->d_name);
    }
    closedir(entries);
}

static int write_generation(const char *directory, int at, const char *generation,
                            const struct file_content *files, size_t count, struct error *err)
{
    if (mkdirat(at, generation, 0700) < 0)
        return failed(err, "make", directory, generation);

    int fd = openat(at, generation, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return failed(err, "open", directory, generation);

    int r = 0;
    for (size_t i = 0; i < count && r == 0; i++) {
        if (!write_file(fd, &files[i]))
            r = failed(err, "write", directory, files[i].name);
    }
    if (r == 0 && fsync(fd) < 0)
        r = failed(err, "write", directory, generation);
    close(fd);
    return r;
}

static int publish(const char *directory, int at, const char *generation,
                   const struct file_content *files, size_t count, struct error *err)
{
    if (!point(at, DATA, generation))
        return failed(err, "write", directory, DATA);
    for (size_t i = 0; i < count; i++) {
        char target[MAX_NAME];

        (void)snprintf(target, sizeof(target), DATA "/%s", files[i].name);
        if (!point(at, files[i].name, target))
            return failed(err, "write", directory, files[i].name);
    }
    return fsync(at) == 0 ? 0 : failed(err, "write", directory, "");
}

int file_set_write(const char *directory, const struct file_content *files, size_t count,
                   struct error *err)
{
    char id[UUID_LEN];
    char generation[16];
    int at = -1;

    int r = open_directory(directory, &at, err);
    if (r < 0)
        return r;

    (void)snprintf(generation, sizeof(generation), "..%.8s", uuid_random(id));
    r = write_generation(directory, at, generation, files, count, err);
    if (r < 0)
        remove_generation(at, generation); /* half of a pair, maybe the key */
    else
        r = publish(directory, at, generation, files, count, err);
    if (r == 0)
        remove_others(at, generation);
    close(at);
    return r;
}

/* All of a regular file, NULL: it is something else, or too large. */
static const char *read_all(struct arena *arena, int fd)
{
    char *text = arena_alloc(arena, FILE_SET_MAX_FILE + 2, 1);
    struct stat file;
    size_t len = 0;
    ssize_t r = fstat(fd, &file) == 0 && S_ISREG(file.st_mode) ? 1 : -1;

    while (r > 0 && len <= FILE_SET_MAX_FILE) {
        r = read(fd, text + len, FILE_SET_MAX_FILE + 1 - len);
        len += r > 0 ? (size_t)r : 0;
    }
    return r == 0 && strlen(text) == len ? text : NULL;
}

int file_set_read(struct arena *arena, const char *directory, const char *name, const char **ret,
                  struct error *err)
{
    const char *path = arena_printf(arena, "%s/%s", directory, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0 && errno == ENOENT) {
        *ret = NULL;
        return 0;
    }
    if (fd < 0)
        return failed(err, "open", directory, name);

    const char *text = read_all(arena, fd);
    close(fd);
    if (!text)
        return error_set(err, ERROR_INVALID, "'%s' is no text of at most %u bytes", path,
                         FILE_SET_MAX_FILE);
    *ret = text;
    return 0;
}
