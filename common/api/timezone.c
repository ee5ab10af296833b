#include "common/api/timezone.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/str.h"

#define MAGIC "TZif"

static bool is_name_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("+-_/", c));
}

static bool is_name(const char *name)
{
    size_t len = strnlen(name, TIMEZONE_MAX_NAME + 1);

    if (!len || len > TIMEZONE_MAX_NAME || *name == '/' || name[len - 1] == '/' ||
        strstr(name, "//"))
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!is_name_character(name[i]))
            return false;
    }
    return strcasecmp(name, "local") != 0;
}

/* Whether the open file is a compiled zone; directories and the database's own tables are not. */
static bool is_zone(int fd)
{
    char magic[sizeof(MAGIC) - 1];
    struct stat file;

    return fstat(fd, &file) == 0 && S_ISREG(file.st_mode) &&
           read(fd, magic, sizeof(magic)) == (ssize_t)sizeof(magic) &&
           memcmp(magic, MAGIC, sizeof(magic)) == 0;
}

/* *ret_fd: -1, or a file that looks like a zone. */
static enum timezone_answer open_zone(const char *directory, const char *name, int *ret_fd)
{
    *ret_fd = -1;
    if (!is_name(name))
        return TIMEZONE_UNKNOWN;
    if (str_equal(name, "UTC"))
        return TIMEZONE_KNOWN;

    int database =
        open(directory ? directory : TIMEZONE_DATABASE, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (database < 0)
        return TIMEZONE_CANNOT_TELL;

    /* whatever it is, opening it must not wait and not become the terminal */
    *ret_fd = openat(database, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    close(database);
    if (*ret_fd >= 0 && is_zone(*ret_fd))
        return TIMEZONE_KNOWN;
    if (*ret_fd >= 0)
        close(*ret_fd);
    *ret_fd = -1;
    return TIMEZONE_UNKNOWN;
}

enum timezone_answer timezone_look_up(const char *directory, const char *name)
{
    int fd;
    enum timezone_answer answer = open_zone(directory, name, &fd);

    if (fd >= 0)
        close(fd);
    return answer;
}

enum timezone_answer timezone_read(const char *directory, const char *name, struct arena *arena,
                                   const struct zone **ret)
{
    int fd;
    enum timezone_answer answer = open_zone(directory, name, &fd);

    *ret = NULL;
    if (fd < 0)
        return answer;

    char *bytes = arena_alloc(arena, 1, ZONE_MAX_BYTES + 1);
    ssize_t len = pread(fd, bytes, ZONE_MAX_BYTES + 1, 0); /* of a file, and so all of it */
    close(fd);
    if (len < 0 || zone_parse(arena, bytes, (size_t)len, ret, NULL) < 0)
        return TIMEZONE_UNKNOWN;
    return TIMEZONE_KNOWN;
}
