#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/net/http_internal.h"

/*
 * libmicrohttpd reads nothing from a suspended connection, so the kernel's buffers fill and the client
 * waits. It is suspended by its own thread and resumed by any, both with the lock: never twice.
 */
bool http_wait(struct http_connection *connection, enum http_waits what)
{
    struct http_server *server = connection->server;

    if (!server->options.wait_ms || server->stopping || connection->is_granted)
        return false;
    connection->waits = what;
    connection->waits_since_ms =
        http_connection_time(connection, clock_monotonic_ms(&CLOCK_SYSTEM));
    server->waiting_for_room += what == HTTP_WAITS_FOR_ROOM;
    MHD_suspend_connection(connection->mhd);
    return true;
}

/* Its time did not count. */
static void wake(struct http_connection *connection)
{
    int64_t now_ms = http_connection_time(connection, clock_monotonic_ms(&CLOCK_SYSTEM));

    connection->server->waiting_for_room -= connection->waits == HTTP_WAITS_FOR_ROOM;
    connection->waits = HTTP_WAITS_NOT;
    connection->deadline_ms += now_ms - connection->waits_since_ms;
    MHD_resume_connection(connection->mhd);
}

void http_wait_check(struct http_connection *connection, int64_t now_ms)
{
    const struct http_server *server = connection->server;

    int64_t waited_ms = http_connection_time(connection, now_ms) - connection->waits_since_ms;

    if (server->stopping || waited_ms >= server->options.wait_ms)
        wake(connection);
}

void http_wait_end_all(struct http_server *server)
{
    for (struct http_connection *c = server->connections; c; c = c->next) {
        if (c->waits)
            wake(c);
    }
}

void http_server_wake(struct http_server *server, uint64_t id)
{
    pthread_mutex_lock(&server->lock);
    for (struct http_connection *c = server->connections; c; c = c->next) {
        if (c->id != id)
            continue;
        c->is_granted = true; /* its handler may not have said yet that it waits */
        if (c->waits == HTTP_WAITS_FOR_ANSWER)
            wake(c);
    }
    pthread_mutex_unlock(&server->lock);
}

/* Who asked first of those that wait for room; NULL: nobody does. */
static struct http_connection *first_for_room(struct http_server *server)
{
    struct http_connection *first = NULL;

    if (!server->waiting_for_room)
        return NULL;
    for (struct http_connection *c = server->connections; c; c = c->next) {
        if (c->waits == HTTP_WAITS_FOR_ROOM && (!first || c->id < first->id))
            first = c;
    }
    return first;
}

bool http_room_take(struct http_server *server, size_t len)
{
    if (len > server->options.max_bodies - server->body_bytes || first_for_room(server))
        return false;
    server->body_bytes += len;
    return true;
}

void http_room_return(struct http_server *server, size_t len)
{
    struct http_connection *next;

    server->body_bytes -= len;
    while ((next = first_for_room(server)) &&
           next->wants <= server->options.max_bodies - server->body_bytes) {
        server->body_bytes += next->wants;
        next->is_granted = true;
        wake(next);
    }
}

/* Its public part comes first. */
struct kept_body {
    struct http_body body;
    struct http_server *server; /* NULL: it counts nowhere */
    char *bytes;
    size_t counted;
};

struct http_body *http_body_keep(const struct http_server_request *request)
{
    struct kept_body *kept = xcalloc(1, sizeof(*kept));

    if (request->request) {
        kept->server = http_request_server(request->request);
        kept->bytes = http_request_take_body(request->request, &kept->body.len, &kept->counted);
    } else {
        kept->bytes = xmalloc(request->body_len + 1);
        memcpy(kept->bytes, request->body, request->body_len + 1);
        kept->body.len = request->body_len;
    }
    kept->body.bytes = kept->bytes ? kept->bytes : "";
    return &kept->body;
}

void http_body_release(struct http_body *body)
{
    struct kept_body *kept = (struct kept_body *)(void *)body;

    if (!kept)
        return;
    free(kept->bytes);
    if (kept->server) {
        pthread_mutex_lock(&kept->server->lock);
        http_room_return(kept->server, kept->counted);
        pthread_mutex_unlock(&kept->server->lock);
    }
    free(kept);
}
