#include "common/net/http_connections.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/map.h"

#define KEY_LEN 32

struct deadline {
    int fd;
    int64_t at_ms;
};

struct http_connections {
    pthread_mutex_t lock;
    struct map *deadlines;
};

struct http_connections *http_connections_create(void)
{
    struct http_connections *connections = xcalloc(1, sizeof(*connections));

    pthread_mutex_init(&connections->lock, NULL);
    connections->deadlines = map_create(free);
    return connections;
}

void http_connections_destroy(struct http_connections *connections)
{
    if (!connections)
        return;

    map_destroy(connections->deadlines);
    pthread_mutex_destroy(&connections->lock);
    free(connections);
}

static const char *text_of(const struct MHD_Connection *key, char ret[static KEY_LEN])
{
    snprintf(ret, KEY_LEN, "%" PRIxPTR, (uintptr_t)key);
    return ret;
}

void http_connections_add(struct http_connections *connections, const struct MHD_Connection *key,
                          int fd, uint32_t timeout_ms)
{
    struct deadline *deadline = xcalloc(1, sizeof(*deadline));
    char text[KEY_LEN];

    deadline->fd = fd;
    deadline->at_ms = clock_monotonic_ms(&CLOCK_SYSTEM) + timeout_ms;
    pthread_mutex_lock(&connections->lock);
    map_set(connections->deadlines, text_of(key, text), deadline);
    pthread_mutex_unlock(&connections->lock);
}

void http_connections_remove(struct http_connections *connections, const struct MHD_Connection *key)
{
    char text[KEY_LEN];

    pthread_mutex_lock(&connections->lock);
    map_remove(connections->deadlines, text_of(key, text));
    pthread_mutex_unlock(&connections->lock);
}

void http_connections_begin(struct http_connections *connections, const struct MHD_Connection *key,
                            uint32_t timeout_ms)
{
    char text[KEY_LEN];

    pthread_mutex_lock(&connections->lock);
    struct deadline *deadline = map_get(connections->deadlines, text_of(key, text));
    if (deadline)
        deadline->at_ms = clock_monotonic_ms(&CLOCK_SYSTEM) + timeout_ms;
    pthread_mutex_unlock(&connections->lock);
}

void http_connections_cut(struct http_connections *connections, int64_t now_ms)
{
    const char *text;
    void *value;

    pthread_mutex_lock(&connections->lock);
    for (size_t i = 0; map_next(connections->deadlines, &i, &text, &value);) {
        const struct deadline *deadline = value;
        if (deadline->fd >= 0 && now_ms >= deadline->at_ms)
            shutdown(deadline->fd, SHUT_RDWR);
    }
    pthread_mutex_unlock(&connections->lock);
}
