/* An answer that is sent in chunks as they come, on the thread of its connection. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/eventfd.h>

#include "common/base/alloc.h"
#include "common/net/http_internal.h"

/* What libmicrohttpd takes at once. */
#define BLOCK (32u << 10)

struct streaming {
    struct http_stream stream;
    struct MHD_Connection *connection;
    int wake_fd;
    struct arena *arena; /* of the chunk */
    const char *chunk;
    size_t len;
};

static void on_notify(void *ctx)
{
    (void)eventfd_write(((struct streaming *)ctx)->wake_fd, 1);
}

static void release(void *ctx)
{
    struct streaming *self = ctx;

    self->stream.close(self->stream.ctx);
    arena_destroy(self->arena);
    if (self->wake_fd >= 0)
        close(self->wake_fd);
    free(self);
}

/* 1: there is a chunk; -1: the end. */
static int next_chunk(struct streaming *self)
{
    for (;;) {
        arena_destroy(self->arena);
        self->arena = arena_create();

        int r = self->stream.next(self->stream.ctx, self->arena, &self->chunk, &self->len);
        if (r != 0)
            return r;

        http_connection_set_streaming(self->connection, false);
        if (!http_connection_wait(self->connection, self->wake_fd,
                                  self->stream.wait_ms(self->stream.ctx)))
            return -1;
    }
}

static ssize_t read_stream(void *ctx, uint64_t position, char *ret, size_t max)
{
    struct streaming *self = ctx;

    (void)position;
    while (!self->len) {
        if (next_chunk(self) < 0)
            return MHD_CONTENT_READER_END_OF_STREAM;
    }

    size_t len = self->len < max ? self->len : max;

    memcpy(ret, self->chunk, len);
    self->chunk += len;
    self->len -= len;
    http_connection_set_streaming(self->connection, true);
    return (ssize_t)len;
}

struct MHD_Response *http_stream_create(const struct http_stream *stream,
                                        struct MHD_Connection *connection)
{
    struct streaming *self = xcalloc(1, sizeof(*self));
    struct MHD_Response *response;

    self->stream = *stream;
    self->connection = connection;
    self->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    response = self->wake_fd < 0 ? NULL
                                 : MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK,
                                                                     read_stream, self, release);
    if (!response) {
        release(self);
        return NULL;
    }
    (void)MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
    stream->set_notify(stream->ctx, on_notify, self);
    http_connection_set_streaming(connection, true);
    return response;
}
