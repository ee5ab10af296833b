#include "standalone/server/users.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>

#include "common/base/alloc.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/str.h"

#define BLANKS " \t\r"

struct entry {
    struct user user; /* with a name of its own */
    char hash[SHA256_HEX_LEN];
};
struct users {
    struct entry items[USERS_MAX];
    size_t len;
};

void users_destroy(struct users *users)
{
    for (size_t i = 0; users && i < users->len; i++)
        free((void *)(uintptr_t)users->items[i].user.name);
    free(users);
}

size_t users_len(const struct users *users)
{
    return users->len;
}

/* Characters that YAML of a kubeconfig and a line of a log can hold: no C0, DEL or C1. */
static bool is_printable(const char *name)
{
    for (const unsigned char *at = (const unsigned char *)name; *at; at++) {
        if (*at < 0x20 || *at == 0x7f || (*at == 0xc2 && at[1] < 0xa0))
            return false;
    }
    return str_is_utf8(name, strlen(name));
}

/* Changes the line. */
static int read_line(struct users *users, char *line, size_t number, struct error *err)
{
    char *rest = NULL;
    const char *name = strtok_r(line, BLANKS, &rest), *role = strtok_r(NULL, BLANKS, &rest);
    const char *hash = strtok_r(NULL, BLANKS, &rest);
    struct entry *entry = &users->items[users->len];

    if (!name || *name == '#')
        return 0;
    if (users->len == USERS_MAX)
        return error_set(err, ERROR_INVALID, "more than %d users", USERS_MAX);
    if (!is_printable(name))
        return error_set(err, ERROR_INVALID,
                         "line %zu: the user's name holds control characters, or is no UTF-8",
                         number);
    if (!role || !role_parse(role, &entry->user.role))
        return error_set(err, ERROR_INVALID,
                         "line %zu: the role of '%.100s' must be admin, edit or view", number,
                         name);
    if (!hash || strlen(hash) != SHA256_HEX_LEN - 1 ||
        strspn(hash, "0123456789abcdef") != SHA256_HEX_LEN - 1 || strtok_r(NULL, BLANKS, &rest))
        return error_set(
            err, ERROR_INVALID,
            "line %zu: behind '%.100s' and the role must be the SHA-256 of the token in "
            "hexadecimal, and nothing else",
            number, name);
    memcpy(entry->hash, hash, SHA256_HEX_LEN);
    entry->user.name = xstrdup(name);
    users->len++;
    return 0;
}

int users_parse(const char *text, struct users **ret, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    CLEANUP(users_destroyp) struct users *users = xcalloc(1, sizeof(*users));
    char *lines = arena_strdup(arena, text), *line;
    int r = 0;

    for (size_t number = 1; r == 0 && (line = strsep(&lines, "\n")); number++)
        r = read_line(users, line, number, err);
    if (r == 0 && !users->len)
        r = error_set(err, ERROR_INVALID, "there is no user in it");
    if (r == 0)
        *ret = TAKE(users);
    return r;
}

const struct user *users_find_token(const struct users *users,
                                    const char hash[static SHA256_HEX_LEN])
{
    const struct user *found = NULL;

    for (size_t i = 0; i < users->len; i++) {
        unsigned difference = 0;

        for (size_t k = 0; k < SHA256_HEX_LEN; k++) /* whatever is different */
            difference |= (unsigned)(users->items[i].hash[k] ^ hash[k]);
        if (!difference)
            found = &users->items[i].user;
    }
    return found;
}

int users_line(struct arena *arena, const char *name, enum role role, const char *token,
               const char **ret, struct error *err)
{
    char hash[SHA256_HEX_LEN];

    if (!*name || *name == '#' || strlen(name) > USER_NAME_MAX || strpbrk(name, BLANKS "\n") ||
        !is_printable(name))
        return error_set(
            err, ERROR_INVALID,
            "--name must have 1 to %d bytes of UTF-8, no blanks or control characters, "
            "and not begin with '#'",
            USER_NAME_MAX);
    *ret = arena_printf(arena, "%s %s %s\n", name, ROLE_NAMES[role],
                        sha256_hex(token, strlen(token), hash));
    return 0;
}

char *users_make_token(struct arena *arena)
{
    char one[UUID_LEN], other[UUID_LEN];

    return arena_printf(arena, "%s-%s", uuid_random(one), uuid_random(other));
}

/* --- the file, as it is now --------------------------------------------------------------------- */

struct users_file {
    char *path;
    pthread_mutex_t lock; /* of what follows; held while the file is read */
    struct stat seen;     /* the file that was looked at last; zeroes: there was none */
    struct users *users;
};

/* *ret_seen is the file that was read, or looked at in vain. */
static int load(const char *path, struct stat *ret_seen, struct users **ret, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *text;

    int r = file_read_text(arena, path, USERS_FILE_MAX, ret_seen, &text, err);
    if (r < 0)
        return r;
    r = users_parse(text, ret, err);
    return r < 0 ? error_wrap(err, "'%s'", path) : 0;
}

/* With the lock. */
static void refresh(struct users_file *file)
{
    const struct stat *seen = &file->seen;
    struct stat now = { 0 };
    struct users *users = NULL;
    struct error err = { 0 };

    if (stat(file->path, &now) < 0)
        memset(&now, 0, sizeof(now));
    if (now.st_dev == seen->st_dev && now.st_ino == seen->st_ino && now.st_size == seen->st_size &&
        memcmp(&now.st_mtim, &seen->st_mtim, sizeof(now.st_mtim)) == 0 &&
        memcmp(&now.st_ctim, &seen->st_ctim, sizeof(now.st_ctim)) == 0)
        return;
    int r = load(file->path, &now, &users, &err);
    file->seen = now;
    if (r < 0) {
        log_error("the file of users cannot be used, the users of before stay", "error",
                  ERROR_TEXT(&err), NULL);
        return;
    }
    users_destroy(file->users);
    file->users = users;
    log_info("the file of users was read again", "users", LOG_INT((int64_t)users->len), NULL);
}

bool users_file_find(struct users_file *file, struct arena *arena,
                     const char hash[static SHA256_HEX_LEN], struct user *ret)
{
    const struct user *user;

    pthread_mutex_lock(&file->lock);
    refresh(file);
    user = users_find_token(file->users, hash);
    if (user)
        *ret = (struct user){ .name = arena_strdup(arena, user->name), .role = user->role };
    pthread_mutex_unlock(&file->lock);
    return user;
}

int users_file_open(const char *path, struct users_file **ret, struct error *err)
{
    CLEANUP(users_file_closep) struct users_file *file = xcalloc(1, sizeof(*file));

    file->path = xstrdup(path);
    pthread_mutex_init(&file->lock, NULL);

    int r = load(path, &file->seen, &file->users, err);
    if (r == 0)
        *ret = TAKE(file);
    return r;
}

void users_file_close(struct users_file *file)
{
    if (!file)
        return;
    users_destroy(file->users);
    pthread_mutex_destroy(&file->lock);
    free(file->path);
    free(file);
}
