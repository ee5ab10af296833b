/* Who asks: by the certificate of his connection, by the token of the request, and as whom. */
#pragma once

#include "common/net/http_server.h"
#include "standalone/api/user.h"
#include "standalone/server/users.h"

struct api_reply;

/* What a request says about its sender; strings are the arena's. */
struct credentials {
    const char *token_hash;       /* SHA-256, hexadecimal; NULL: it has no token */
    const struct http_peer *peer; /* NULL: the connection has no certificate */
    const char *as;               /* whom he wants to be; NULL: himself */
    const char *const *as_groups; /* with as, ended by NULL */
    const char *as_uid;           /* NULL: none */
    bool has_as_more;             /* groups or a uid: of no use without a name */
    const char *as_extra;         /* the first of those keys; NULL: none */
};

struct identity {
    struct user real; /* whose credentials they are */
    struct user user; /* whose rights count: the same, or whom he wants to be */
};

/* Looks at headers and certificate; says nothing about whether they are true. */
void credentials_read(const struct http_server_request *request, struct arena *arena,
                      struct credentials *ret);

/*
 * Whose they are. A certificate counts first, then the token; a certificate by the client authority gives
 * the role of its line in users, or of its groups, whichever is more. Who has neither is nobody.
 * Pure. false: nobody that is known.
 */
bool identity_find(const struct users *users, struct arena *arena,
                   const struct credentials *credentials, struct identity *ret);

/* Only an admin may be somebody else: false, and *ret refuses it in the API server's words. */
bool identity_may_be(const struct identity *identity, const struct credentials *credentials,
                     struct arena *arena, const char *path, struct api_reply *ret);

/* That nothing has changed since then but what does not matter. */
bool identity_equal(const struct identity *a, const struct identity *b);

/* For as long as the arena. */
struct credentials credentials_copy(struct arena *arena, const struct credentials *credentials);
struct identity identity_copy(struct arena *arena, const struct identity *identity);
