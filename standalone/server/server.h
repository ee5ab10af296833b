/* The API over HTTPS: authentication, answers, and watches as streams. */
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
    struct api *api;          /* borrowed */
    struct users_file *users; /* borrowed */
    unsigned max_connections; /* 0: 512; each has a thread */
    unsigned max_strangers;   /* the limit of connections without a known user; 0: half */
    size_t max_answers;       /* bytes of all that are made or sent; 0: 16 MiB */
};

/*
 *  1. Without a token that counts: 401 to everything but /healthz, /livez, /readyz and /version. That, and whether
 *     the role may do it at all, is decided by the headers: a body is not waited for, and takes no
 *     room. Of more connections than max_strangers without a known user the oldest is closed, so
 *     that they hold up no others.
 *  2. Bodies of at most api_max_body(). A request, and each chunk of a watch, has a minute.
 *  3. A watch of a user who is removed, or has another role, sends nothing more and ends within five seconds.
 *     Of one user no more than half of the connections have a request in progress, and no more than a quarter
 *     are watches: then 429.
 *  4. Requests in work and answers that are not read are limited by seats.h. A request that has to wait too long in
 *     line, and a read whose answer has no room, get 429; one whose client has gone is not begun,
 *     or ends with its next chunk. Beside its answer a list that is being made needs about 3 MiB; a
 *     watch that is not read holds a line, and 256 KiB of objects or 1 MiB of events (or one)
 *     behind it.
 */
int server_start(const struct server_options *options, struct server **ret,
                 struct error *err) MUST_CHECK;
/* Answers what is in work, refuses what waits, ends watches. NULL is fine. */
void server_stop(struct server *server);
unsigned server_port(const struct server *server);
