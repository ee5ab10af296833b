/* An HTTP/1.1 server on a thread of its own that answers whatever bytes a test wants. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/base/compiler.h"

/* Server thread. request: the whole of it, with its head; number: counted from 0. Returns the raw
 * reply, which must live on, or one of the two below. */
typedef const char *raw_handler_fn(void *ctx, unsigned number, const char *request);
extern const char RAW_CLOSE[];  /* ends the connection without a word */
extern const char RAW_SILENT[]; /* leaves it open without a word */

struct raw_server;
/* In a handler: the bytes, which may hold NUL and must live on, follow what it returns. closes: then the connection ends. */
void raw_server_add_body(struct raw_server *server, const void *bytes, size_t len, bool closes);
struct raw_server *raw_server_start(raw_handler_fn *handler, void *ctx);
void raw_server_stop(struct raw_server *server);
int raw_server_port(const struct raw_server *server);
unsigned raw_server_requests(struct raw_server *server);
unsigned raw_server_connections(struct raw_server *server); /* accepted so far */
