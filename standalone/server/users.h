/* The users with access: bearer tokens and the roles behind them. */
#pragma once

#include "common/base/arena.h"
#include "common/base/digest.h"
#include "common/base/error.h"
#include "standalone/api/user.h"

/*
 * A text with a user a line, "<name> <role> <SHA-256 of the token, hexadecimal>", so that a reader of the file has no
 * token. Empty lines and those that begin with # do not count.
 *
 * Immutable, shared by references; any thread.
 */
#define USERS_MAX 1000
#define USER_NAME_MAX 100

struct users;
/* ERROR_INVALID names the line, and nothing of a hash; or there is no user at all. */
int users_parse(const char *text, struct users **ret, struct error *err) MUST_CHECK;
struct users *users_ref(struct users *users);
void users_unref(struct users *users); /* NULL is fine */
size_t users_len(const struct users *users);

/* Whose token has this SHA-256, in hexadecimal. Takes as long for any of them. NULL: there is none.
 * Lives as long as the reference. */
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
 *  1. Each users_file_get() looks whether the file is another one than before (a stat), so a request that
 *     comes after a rename or a write sees the new users.
 *  2. A file that is damaged (one with a NUL is), empty or gone changes nothing: the users of before stay,
 *     which is logged once for each such file.
 *  3. Holders of a reference are notified of a change also when no request comes: a second later at most.
 */
struct users_file;
/* ERROR_NOT_FOUND: there is no such file; ERROR_INVALID names it. */
int users_file_open(const char *path, struct users_file **ret, struct error *err) MUST_CHECK;
void users_file_close(struct users_file *file); /* NULL is fine */
/* A reference. */
struct users *users_file_get(struct users_file *file);
/* After each change; on a thread of its own. function NULL: not any more, and none is
 * under way when this returns. */
void users_file_set_changed(struct users_file *file, void (*function)(void *ctx), void *ctx);
