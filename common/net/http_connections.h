/* Deadlines of the server's connections: libmicrohttpd's own time-out is for idleness only, and a
 * client that sends a byte now and then is never idle. */
#pragma once

#include <stdint.h>

struct MHD_Connection;

struct http_connections;
struct http_connections *http_connections_create(void);
void http_connections_destroy(struct http_connections *connections);

/* Any thread; one leaf mutex. The key is the connection's address, valid until remove. */
void http_connections_add(struct http_connections *connections, const struct MHD_Connection *key,
                          int fd, uint32_t timeout_ms);
void http_connections_remove(struct http_connections *connections,
                             const struct MHD_Connection *key);
/* A new deadline, from now: a request began, or ended. */
void http_connections_begin(struct http_connections *connections, const struct MHD_Connection *key,
                            uint32_t timeout_ms);
/* Shuts down every socket whose deadline has passed; the daemon then closes it. The descriptor
 * cannot have been reused: remove() comes before close(), and waits for the lock. */
void http_connections_cut(struct http_connections *connections, int64_t now_ms);
