/* A client that sends any bytes over TLS, or beside it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum raw_tls_kind {
    RAW_TLS,     /* TLS 1.3 or 1.2, whichever the server likes best */
    RAW_TLS_1_2, /* that one alone */
    RAW_TLS_1_1,
    RAW_PLAIN, /* no TLS */
};

struct raw_tls;
/* NULL: no connection, or no handshake. Nothing is verified. */
struct raw_tls *raw_tls_open(unsigned port, enum raw_tls_kind kind);
void raw_tls_close(struct raw_tls *client); /* without a word; NULL is fine */

/* Blocks until it is written. False: the server ended the connection. */
bool raw_tls_send(struct raw_tls *client, const void *bytes, size_t len);
/* Reads to the end of the first line: its status. 0: the server ended the connection, or (on
 * RAW_PLAIN) what it sent is no HTTP. */
int raw_tls_status(struct raw_tls *client);
bool raw_tls_has_ended(struct raw_tls *client); /* does not wait; what was sent is dropped */
