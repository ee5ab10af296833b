/* An HTTPS client for tests: one connection, kept while the server keeps it. */
#pragma once

#include <stddef.h>

#include "common/base/arena.h"
#include "common/base/compiler.h"

struct tls_reply {
    int status; /* 0: no answer */
    const char *content_type;
    const char *body;
    size_t body_len;
    const char *subject; /* of the server's certificate, "CN = a"; "" on a connection in use */
};

struct tls_client;
/* ca: PEM file that the server's certificate must come from. The name asked for is localhost. */
struct tls_client *tls_client_create(const char *ca);
void tls_client_destroy(struct tls_client *client);
DEFINE_CLEANUP(struct tls_client *, tls_client_destroy)

/* The reply is in the arena. */
struct tls_reply tls_client_post(struct tls_client *client, struct arena *arena, unsigned port,
                                 const char *path, const char *body, size_t len);
/* Connections made so far. */
unsigned tls_client_connections(const struct tls_client *client);
