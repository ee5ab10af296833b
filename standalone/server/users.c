#include "standalone/server/users.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/digest.h"
#include "common/base/str.h"

#define BLANKS " \t\r"

struct entry {
    struct user user;
    char *name;
    char hash[SHA256_HEX_LEN];
};
struct users {
    struct entry items[USERS_MAX];
    size_t len;
};

void users_destroy(struct users *users)
{
    if (!users)
        return;
    for (size_t i = 0; i < users->len; i++)
        free(users->items[i].name);
    free(users);
}

/* The next word of a line; "" at its end. */
static char *next_word(struct arena *arena, const char **at, const char *end)
{
    const char *begin = *at + strspn(*at, BLANKS);

    if (begin > end)
        begin = end;

    size_t len = strcspn(begin, BLANKS "\n");

    *at = begin + len;
    return arena_strndup(arena, begin, len);
}

static bool is_hash(const char *text)
{
    return strlen(text) == SHA256_HEX_LEN - 1 &&
           strspn(text, "0123456789abcdef") == SHA256_HEX_LEN - 1;
}

static int read_line(struct users *users, struct arena *arena, const char *line, size_t len,
                     size_t number, struct error *err)
{
    const char *at = line, *end = line + len;
    const char *name = next_word(arena, &at, end);
    const char *role = next_word(arena, &at, end);
    const char *hash = next_word(arena, &at, end);

    if (!*name || *name == '#')
        return 0;
    if (users->len == USERS_MAX)
        return error_set(err, ERROR_INVALID, "more than %d users", USERS_MAX);

    struct entry *entry = &users->items[users->len];

    if (!role_parse(role, &entry->user.role))
        return error_set(err, ERROR_INVALID,
                         "line %zu: the role of '%.100s' must be admin, edit or view", number,
                         name);
    if (!is_hash(hash) || *next_word(arena, &at, end))
        return error_set(
            err, ERROR_INVALID,
            "line %zu: behind '%.100s' and the role must be the SHA-256 of the token in "
            "hexadecimal, and nothing else",
            number, name);
    memcpy(entry->hash, hash, SHA256_HEX_LEN);
    entry->name = xstrdup(name);
    entry->user.name = entry->name;
    users->len++;
    return 0;
}

int users_parse(const char *text, struct users **ret, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct users *users = xcalloc(1, sizeof(*users));

    for (size_t number = 1; *text; number++) {
        size_t len = strcspn(text, "\n");
        int r = read_line(users, arena, text, len, number, err);

        if (r < 0) {
            users_destroy(users);
            return r;
        }
        text += len + (text[len] == '\n');
    }
    *ret = users;
    return 0;
}

/* The same time whatever is different. */
static bool is_same_hash(const char *a, const char *b)
{
    unsigned difference = 0;

    for (size_t i = 0; i < SHA256_HEX_LEN; i++)
        difference |= (unsigned)(a[i] ^ b[i]);
    return !difference;
}

const struct user *users_find(const struct users *users, const char *token)
{
    const struct user *found = NULL;
    char hash[SHA256_HEX_LEN];

    (void)sha256_hex(token, strlen(token), hash);
    for (size_t i = 0; i < users->len; i++) {
        if (is_same_hash(users->items[i].hash, hash))
            found = &users->items[i].user;
    }
    return found;
}

int users_line(struct arena *arena, const char *name, enum role role, const char *token,
               const char **ret, struct error *err)
{
    char hash[SHA256_HEX_LEN];

    if (!*name || *name == '#' || strlen(name) > USER_NAME_MAX || strpbrk(name, BLANKS "\n"))
        return error_set(err, ERROR_INVALID,
                         "a name has 1 to %d characters, no blanks, and does not begin with '#'",
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
