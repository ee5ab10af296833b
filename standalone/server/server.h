/* The API over HTTPS: who asks, what he gets, watches as streams. */
#pragma once

#include "common/base/error.h"

struct api;
struct server;
struct users;

struct server_options {
    const char *address; /* "127.0.0.1:6443", as http_server's */
    const char *cert_pem, *key_pem;
    struct api *api;           /* borrowed */
    const struct users *users; /* borrowed */
    unsigned max_connections;  /* 0: 512; each has a thread */
};

/*
 * Without a token that users knows: 401 to everything but /healthz, /livez, /readyz and /version. Bodies
 * of at most API_MAX_BODY. A request, and each chunk of a watch, has a minute.
 */
int server_start(const struct server_options *options, struct server **ret,
                 struct error *err) MUST_CHECK;
/* Answers what is in progress, ends watches. NULL is fine. */
void server_stop(struct server *server);
unsigned server_port(const struct server *server);
