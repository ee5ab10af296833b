#include "common/net/http_listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/str.h"

#define BACKLOG 511

int http_address_parse(const char *address, struct http_address *ret, struct error *err)
{
    const char *colon = strrchr(address, ':');
    size_t len = colon ? (size_t)(colon - address) : 0;
    bool brackets = len >= 2 && address[0] == '[' && address[len - 1] == ']';
    int64_t port = -1;

    if (!colon || len >= sizeof(ret->host) || !str_to_int64(colon + 1, &port) || port < 0 ||
        port > 65535 || (!brackets && memchr(address, ':', len)))
        return error_set(err, ERROR_INVALID, "address '%s' is not HOST:PORT, [IPV6]:PORT or :PORT",
                         address);

    *ret = (struct http_address){ .port = (unsigned)port };
    memcpy(ret->host, address + brackets, len - 2 * (size_t)brackets);
    return 0;
}

static int bind_one(const struct addrinfo *info, bool all)
{
    int one = 1;
    int zero = 0;
    int fd = socket(info->ai_family, info->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (all && info->ai_family == AF_INET6) /* [::] takes IPv4 as well */
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
    if (bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;

    int saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

static unsigned port_of(int fd)
{
    struct sockaddr_storage address = { 0 };
    socklen_t len = sizeof(address);

    if (getsockname(fd, (struct sockaddr *)&address, &len) < 0)
        return 0;
    if (address.ss_family == AF_INET6) {
        struct sockaddr_in6 v6;
        memcpy(&v6, &address, sizeof(v6));
        return ntohs(v6.sin6_port);
    }
    struct sockaddr_in v4;
    memcpy(&v4, &address, sizeof(v4));
    return ntohs(v4.sin_port);
}

/* -1 and errno: none of the addresses could be bound. IPv6 first, because it can serve both. */
static int bind_any(const struct addrinfo *list, bool all)
{
    static const int FAMILIES[] = { AF_INET6, AF_INET };

    errno = EADDRNOTAVAIL;
    for (size_t i = 0; i < ARRAY_LEN(FAMILIES); i++) {
        for (const struct addrinfo *info = list; info; info = info->ai_next) {
            int fd = info->ai_family == FAMILIES[i] ? bind_one(info, all) : -1;
            if (fd >= 0)
                return fd;
        }
    }
    return -1;
}

int http_listen(const char *address, int *ret_fd, unsigned *ret_port, struct error *err)
{
    struct http_address parsed;
    char service[8];
    struct addrinfo *list;
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
                                    .ai_flags = AI_PASSIVE | AI_NUMERICSERV };

    int r = http_address_parse(address, &parsed, err);
    if (r < 0)
        return r;

    snprintf(service, sizeof(service), "%u", parsed.port);
    r = getaddrinfo(*parsed.host ? parsed.host : NULL, service, &hints, &list);
    if (r != 0)
        return error_set(err, ERROR_INVALID, "address '%s': %s", address, gai_strerror(r));

    int fd = bind_any(list, !*parsed.host);
    freeaddrinfo(list);
    if (fd < 0)
        return error_set(err, ERROR_UNAVAILABLE, "listen on '%s': %s", address, strerror(errno));

    *ret_fd = fd;
    *ret_port = port_of(fd);
    return 0;
}
