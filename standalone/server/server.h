/* The API over HTTPS: who asks, what he gets, watches as streams. */
#pragma once

#include <stddef.h>

#include "common/base/arena.h"
#include "common/base/error.h"

struct api;
struct server;
struct users_file;

struct server_options {
    const char *address; /* "127.0.0.1:6443", as http_server's */
    const char *cert_pem, *key_pem;
    const char *client_ca_pem; /* authorities of client certificates; NULL: there are none */
    struct api *api;           /* borrowed */
    struct users_file *users;  /* borrowed; its changes are this server's to be told of */
    unsigned max_connections;  /* 0: 512; each has a thread */
    unsigned max_strangers;    /* of these, whose clients have not said who they are; 0: half */
    size_t max_answers;        /* bytes of all that are made or sent; 0: 64 MiB */
};

/*
 *  1. Without a token or a certificate that counts: 401 to everything but /healthz, /livez, /readyz and
 *     /version. That, and whether the role may do it at all, is decided by the headers: a body is not
 *     waited for, and takes no room. Of more connections than max_strangers without anybody who is known the
 *     oldest is closed: they are in nobody else's way.
 *  2. Bodies of at most api_max_body(). A request, and each chunk of a watch, has a minute.
 *  3. A watch ends when its user is removed, or gets another role.
 *     Of one user no more than half of the connections have a request in progress, and no more than a quarter
 *     are watches, whomever he asks as: then 429, and of watches one line in the log.
 *     At most SEATS requests are in work, and at most SEATS_EACH of one user; of long ones, which are lists and
 *     deletions of collections, SEATS_LONG and SEATS_LONG_EACH (seats.h). The others wait, longer queues get 429, and
 *     what its client has left is not begun, or ends with its next chunk.
 *  4. Of the bytes of answers (those of at most 64 KiB do not count) one user has half, and one at a time may have
 *     an answer that is larger than that. A read that does not fit gets 429, and a write 429 before anything is
 *     done: that of who has his half, and of a collection whose list does not fit. Beside them a list that is being
 *     made needs about 3 MiB; a watch that is not read holds
 *     a line, and 256 KiB of objects or 1 MiB of events (or one) behind it.
 *  5. An admin may be somebody else (Impersonate-User, -Group, -Uid), others get 403.
 */
int server_start(const struct server_options *options, struct server **ret,
                 struct error *err) MUST_CHECK;
/* Answers what is in progress, ends watches. NULL is fine. */
void server_stop(struct server *server);
unsigned server_port(const struct server *server);
