/* The users with access: bearer tokens and the roles behind them. */
#pragma once

#include "common/base/arena.h"
#include "common/base/digest.h"
#include "common/base/error.h"
#include "standalone/api/user.h"

/*
 * A text with a user a line, "<name> <role> <SHA-256 of the token, hexadecimal>", so that a reader of the file has no
 * token. Empty lines and those that begin with # do not count.
 */
#define USERS_MAX 1000
#define USER_NAME_MAX 100

struct users;
/* ERROR_INVALID names the line, and nothing of a hash; or there is no user at all. */
int users_parse(const char *text, struct users **ret, struct error *err) MUST_CHECK;
void users_destroy(struct users *users); /* NULL is fine */
DEFINE_CLEANUP(struct users *, users_destroy)
size_t users_len(const struct users *users);

/* Whose token has this SHA-256, in hexadecimal. Takes as long for any of them. NULL: there is none.
 * Lives as long as the users. */
const struct user *users_find_token(const struct users *users,
                                    const char hash[static SHA256_HEX_LEN]);

/* A line for users_parse, with its newline, in the arena. ERROR_INVALID: the name (--name) is none, is
 * too long, begins with #, or holds blanks, control characters or what is no UTF-8. */
int users_line(struct arena *arena, const char *name, enum role role, const char *token,
               const char **ret, struct error *err) MUST_CHECK;
/* 244 bits, in the arena. */
char *users_make_token(struct arena *arena);

/* --- the file of them, as it is now: a user that is added or removed while the server runs counts at once --- */

#define USERS_FILE_MAX (1u << 20)

/*
 *  1. Each users_file_find() looks whether the file is another one than before (a stat), so a request that
 *     comes after a rename or a write sees the new users.
 *  2. A file that is damaged (one with a NUL is), empty or gone changes nothing: the users of before stay,
 *     which is logged once for each such file.
 */
struct users_file;
/* ERROR_NOT_FOUND: there is no such file; ERROR_INVALID names it. */
int users_file_open(const char *path, struct users_file **ret, struct error *err) MUST_CHECK;
void users_file_close(struct users_file *file); /* NULL is fine */
DEFINE_CLEANUP(struct users_file *, users_file_close)
/* Any thread: the user whose token has this SHA-256, with a name in the arena. false: there is none. */
bool users_file_find(struct users_file *file, struct arena *arena,
                     const char hash[static SHA256_HEX_LEN], struct user *ret);
