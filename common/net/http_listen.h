/* ":8080", "127.0.0.1:0", "[::1]:8081" as a listening socket. */
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"

struct http_address {
    char host[256]; /* without brackets; "": all addresses */
    unsigned port;
};
/* ERROR_INVALID: it is not HOST:PORT, [IPV6]:PORT or :PORT. */
int http_address_parse(const char *address, struct http_address *ret, struct error *err) MUST_CHECK;

/* Without a host all addresses, IPv6 and IPv4. The socket is the caller's to close.
 * ERROR_INVALID: the address does not parse; ERROR_UNAVAILABLE: it cannot be bound. */
int http_listen(const char *address, int *ret_fd, unsigned *ret_port, struct error *err) MUST_CHECK;
