#include "webhook/tests/raw_tls.h"

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/ssl.h>
#include <sys/socket.h>

#include "common/base/alloc.h"

/* Until a read is given up: never reached by a server that is well. */
#define PATIENCE_S 120
#define MAX_LINE 256

struct raw_tls {
    SSL_CTX *context; /* NULL: plain */
    SSL *ssl;
    int fd;
};

static int connect_to(unsigned port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr = { .s_addr = htonl(INADDR_LOOPBACK) } };
    struct timeval patience = { .tv_sec = PATIENCE_S };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    close(fd);
    return -1;
}

/* What the library would not do by itself is allowed here, so that it is the server that refuses. */
static bool shake_hands(struct raw_tls *client, enum raw_tls_kind kind)
{
    client->context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_security_level(client->context, 0);
    (void)SSL_CTX_set_cipher_list(client->context, "ALL:@SECLEVEL=0");
    (void)SSL_CTX_set_min_proto_version(client->context, TLS1_VERSION);
    if (kind != RAW_TLS)
        (void)SSL_CTX_set_max_proto_version(client->context,
                                            kind == RAW_TLS_1_1 ? TLS1_1_VERSION : TLS1_2_VERSION);
    client->ssl = SSL_new(client->context);
    SSL_set_fd(client->ssl, client->fd);
    return SSL_connect(client->ssl) == 1;
}

struct raw_tls *raw_tls_open(unsigned port, enum raw_tls_kind kind)
{
    struct raw_tls *client = xcalloc(1, sizeof(*client));

    (void)signal(SIGPIPE, SIG_IGN);
    client->fd = connect_to(port);
    if (client->fd >= 0 && (kind == RAW_PLAIN || shake_hands(client, kind)))
        return client;
    raw_tls_close(client);
    return NULL;
}

void raw_tls_close(struct raw_tls *client)
{
    if (!client)
        return;
    SSL_free(client->ssl);
    SSL_CTX_free(client->context);
    if (client->fd >= 0)
        close(client->fd);
    free(client);
}

bool raw_tls_send(struct raw_tls *client, const void *bytes, size_t len)
{
    size_t written;

    if (client->ssl)
        return len == 0 || SSL_write_ex(client->ssl, bytes, len, &written) == 1;
    for (const char *next = bytes; len;) {
        ssize_t r = send(client->fd, next, len, MSG_NOSIGNAL);

        if (r <= 0)
            return false;
        next += r;
        len -= (size_t)r;
    }
    return true;
}

/* 0: the end. */
static size_t receive(struct raw_tls *client, char *byte)
{
    size_t len = 0;

    if (client->ssl)
        return SSL_read_ex(client->ssl, byte, 1, &len) == 1 ? len : 0;
    return recv(client->fd, byte, 1, 0) == 1 ? 1 : 0;
}

int raw_tls_status(struct raw_tls *client)
{
    char line[MAX_LINE];
    size_t len = 0;

    while (len < sizeof(line) - 1 && receive(client, &line[len])) {
        if (line[len] == '\n')
            break;
        len++;
    }
    line[len] = '\0';
    /* "HTTP/1.1 400 Bad Request" */
    return strncmp(line, "HTTP/1.", strlen("HTTP/1.")) == 0
               ? (int)strtol(line + strlen("HTTP/1.1"), NULL, 10)
               : 0;
}

bool raw_tls_has_ended(struct raw_tls *client)
{
    struct pollfd ready = { .fd = client->fd, .events = POLLIN | POLLRDHUP };
    char dropped[MAX_LINE];
    ssize_t r = 1;

    while (r > 0 && poll(&ready, 1, 0) > 0)
        r = recv(client->fd, dropped, sizeof(dropped), MSG_DONTWAIT);
    return r <= 0;
}
