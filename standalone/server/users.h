/* Who may come in: bearer tokens and the roles behind them. */
#pragma once

#include "common/base/arena.h"
#include "common/base/digest.h"
#include "common/base/error.h"
#include "standalone/api/user.h"

/*
 * A text with a user a line, "<name> <role> <credentials>"; empty lines and those that begin with # do
 * not count. Credentials are
 *
 *   the SHA-256 of a token, hexadecimal          so who reads the file has no token
 *   certificate:<SHA-256 of a certificate>       that one (DER) alone
 *   certificate                                  any certificate of this name by the client authority
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

/* Some user has a certificate, or any one of his name. */
bool users_have_certificates(const struct users *users);

/* The three that find somebody return NULL for nobody; what they return lives as long as the reference. */

/* Whose token has this SHA-256, in hexadecimal. Takes as long for any of them. */
const struct user *users_find_token(const struct users *users,
                                    const char hash[static SHA256_HEX_LEN]);
/* Whose certificate it is: its name and its SHA-256. */
const struct user *users_find_certificate(const struct users *users, const char *name,
                                          const char *hash);
const struct user *users_find_name(const struct users *users, const char *name);

/* A line for users_parse, with its newline, in the arena. ERROR_INVALID: the name (--name) is none, is
 * too long, begins with #, or holds blanks, control characters or what is no UTF-8. */
int users_line(struct arena *arena, const char *name, enum role role, const char *token,
               const char **ret, struct error *err) MUST_CHECK;
/* The same for a certificate. */
int users_certificate_line(struct arena *arena, const char *name, enum role role, const char *hash,
                           const char **ret, struct error *err) MUST_CHECK;
/* 244 bits, in the arena. */
char *users_make_token(struct arena *arena);
