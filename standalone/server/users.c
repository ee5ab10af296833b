#include "standalone/server/users.h"

#include <stdatomic.h>
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
    atomic_uint references;
    struct entry items[USERS_MAX];
    size_t len;
    size_t useless_line;
};

static void destroy(struct users *users)
{
    for (size_t i = 0; i < users->len; i++)
        free(users->items[i].name);
    free(users);
}

struct users *users_ref(struct users *users)
{
    atomic_fetch_add(&users->references, 1);
    return users;
}

void users_unref(struct users *users)
{
    if (users && atomic_fetch_sub(&users->references, 1) == 1)
        destroy(users);
}

size_t users_len(const struct users *users)
{
    return users->len;
}

size_t users_useless_line(const struct users *users)
{
    return users->useless_line;
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

static bool is_certificate(const char *credentials)
{
    return str_equal(credentials, "certificate") || str_has_prefix(credentials, "certificate:");
}

/* What a kubeconfig, which is YAML, and a line of a log can hold: no C0, DEL or C1. */
static bool is_printable(const char *name)
{
    for (const unsigned char *at = (const unsigned char *)name; *at; at++) {
        if (*at < 0x20 || *at == 0x7f || (*at == 0xc2 && at[1] < 0xa0))
            return false;
    }
    return str_is_utf8(name, strlen(name));
}

static int read_line(struct users *users, struct arena *arena, const char *line, size_t len,
                     size_t number, struct error *err)
{
    const char *at = line, *end = line + len;
    const char *name = next_word(arena, &at, end);
    const char *role = next_word(arena, &at, end);
    const char *credentials = next_word(arena, &at, end);

    if (!*name || *name == '#')
        return 0;
    if (users->len == USERS_MAX)
        return error_set(err, ERROR_INVALID, "more than %d users", USERS_MAX);

    struct entry *entry = &users->items[users->len];

    if (!is_printable(name))
        return error_set(err, ERROR_INVALID,
                         "line %zu: the user's name holds control characters, or is no UTF-8",
                         number);
    if (!role_parse(role, &entry->user.role))
        return error_set(err, ERROR_INVALID,
                         "line %zu: the role of '%.100s' must be admin, edit or view", number,
                         name);
    if (is_certificate(credentials)) {
        users->useless_line = users->useless_line ? users->useless_line : number;
        return 0;
    }
    if (!is_hash(credentials) || *next_word(arena, &at, end))
        return error_set(
            err, ERROR_INVALID,
            "line %zu: behind '%.100s' and the role must be the SHA-256 of the token in "
            "hexadecimal, and nothing else",
            number, name);
    memcpy(entry->hash, credentials, SHA256_HEX_LEN);
    entry->name = xstrdup(name);
    entry->user.name = entry->name;
    users->len++;
    return 0;
}

int users_parse(const char *text, struct users **ret, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct users *users = xcalloc(1, sizeof(*users));

    atomic_init(&users->references, 1);
    for (size_t number = 1; *text; number++) {
        size_t len = strcspn(text, "\n");
        int r = read_line(users, arena, text, len, number, err);

        if (r < 0) {
            destroy(users);
            return r;
        }
        text += len + (text[len] == '\n');
    }
    if (!users->len) {
        destroy(users);
        return error_set(err, ERROR_INVALID, "there is no user in it");
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

const struct user *users_find_token(const struct users *users,
                                    const char hash[static SHA256_HEX_LEN])
{
    const struct user *found = NULL;

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
