/* A transport, and a server that answers it as it is told. */
#pragma once

#include <pthread.h>

#include "common/kube/transport.h"
#include "common/tests/raw_server.h"

#define WIRE_OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
/* Longer than a test may take. */
#define WIRE_PATIENCE_MS 3600000
/* Requests, and connections, of wire_ask_beside(). */
#define WIRE_BESIDES 2

struct wire {
    struct arena *arena;
    const char *dir;
    struct raw_server *server;
    struct kube_config *config;
    struct transport *transport;
    struct error err; /* of wire_ask() */
    struct http_response response;

    pthread_mutex_t lock;   /* of what follows */
    pthread_cond_t arrived; /* a request has */
    char *seen;             /* the last one */
    unsigned beside;        /* how many of wire_ask_beside() */
    const char *const *replies;
    size_t reply_count;
};
extern struct wire wire;

void wire_set_up(void);
void wire_tear_down(void);
/* Another one, to which nothing came yet. */
void wire_restart_server(void);

/* To the n-th request the n-th of them; the last one for ever. */
void wire_set_replies(const char *const *list, size_t len);
#define WIRE_REPLIES(...)                                                                          \
    do {                                                                                           \
        static const char *const list_[] = { __VA_ARGS__ };                                        \
        wire_set_replies(list_, ARRAY_LEN(list_));                                                 \
    } while (0)

/* Of the server. */
const char *wire_url(const char *scheme, const char *path);
/* In place of the transport there was; user: its fields in the kubeconfig. */
void wire_connect_to(const char *url, const char *user, uint32_t timeout_ms);
void wire_connect(const char *user);
/* Whether it was answered, in wire.response, or wire.err. */
int wire_ask(const char *method, const char *path);
/* Two requests by other connections. When the server has seen them, it has seen all that came before. */
void wire_ask_beside(void);
