/*
 * The credentials of one pull: which are used now, by which scheme, and which come next.
 *
 * The first requests carry none. A reply 401 names the scheme: Basic, or Bearer with the address of a token server. The
 * credentials are tried in their order, and none at last, until the registry accepts one. Pure: replies go in, headers and
 * addresses come out. Texts live in the arena, which must outlive the struct.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/base/arena.h"
#include "common/base/error.h"
#include "controller/registry/credentials.h"

#define AUTHORIZATION_TOKEN_MAX ((size_t)64 << 10) /* bytes of a token server's reply */

enum authorization_scheme { AUTHORIZATION_NONE, AUTHORIZATION_BASIC, AUTHORIZATION_BEARER };

struct authorization {
    struct registry_logins logins;
    bool allows_plain; /* the registry is asked without TLS, so its token server may be */
    enum authorization_scheme scheme;
    size_t at;          /* in logins; logins.len: without credentials */
    const char *realm;  /* address for a token, with service and scope */
    const char *token;  /* NULL: to be asked for */
    int64_t expires_ms; /* of the token; monotonic */
    bool is_proven;     /* a reply with the token was no refusal */
};

/* Whether a token must be asked for at authorization->realm before the next request. */
bool authorization_needs_token(const struct authorization *authorization, int64_t now_ms);
/* Returns the value of the header Authorization; NULL: none. for_token: of the request for a token. */
const char *authorization_value(const struct authorization *authorization, struct arena *arena,
                                bool for_token);
/* The registry answered, and did not refuse. */
void authorization_accepted(struct authorization *authorization);
/* Reads the reply of the token server. ERROR_UNAVAILABLE: it holds no token. */
int authorization_take_token(struct authorization *authorization, struct arena *arena,
                             const char *body, size_t len, int64_t now_ms,
                             struct error *err) MUST_CHECK;
/* The registry refused a request with 401 or 403; headers are its. scope is used if it names none. false: no credentials
 * are left. */
bool authorization_refused(struct authorization *authorization, struct arena *arena,
                           const char *headers, const char *scope);
/* The token server refused. false: no credentials are left. */
bool authorization_token_refused(struct authorization *authorization);
/* Returns the credentials that the registry accepted; NULL: it asked for none. */
const char *authorization_login(const struct authorization *authorization);
