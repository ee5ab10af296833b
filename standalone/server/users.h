/* Who may come in: bearer tokens and the roles behind them. */
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"
#include "standalone/api/user.h"

/*
 * A text with a user a line: "<name> <role> <SHA-256 of the token, hexadecimal>"; empty lines and those
 * that begin with # do not count. So who reads the file has no token. Immutable; any thread.
 */
#define USERS_MAX 1000
#define USER_NAME_MAX 100

struct users;
/* ERROR_INVALID names the line, and nothing of a hash. */
int users_parse(const char *text, struct users **ret, struct error *err) MUST_CHECK;
void users_destroy(struct users *users); /* NULL is fine */
/* NULL: nobody's token. Takes as long for any of them. */
const struct user *users_find(const struct users *users, const char *token);

/* A line for users_parse, with its newline, in the arena; ERROR_INVALID: the name holds blanks or is
 * none. */
int users_line(struct arena *arena, const char *name, enum role role, const char *token,
               const char **ret, struct error *err) MUST_CHECK;
/* 244 bits, in the arena. */
char *users_make_token(struct arena *arena);
