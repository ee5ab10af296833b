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
    size_t len; /* of it, that is not sent yet */
    bool has_ended;
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

/* As the stream's next; nothing is asked of one that has ended. */
static int take_chunk(struct streaming *self)
{
    int r = -1;

    if (!self->has_ended) {
        arena_destroy(self->arena);
        self->arena = arena_create();
        r = self->stream.next(self->stream.ctx, self->arena, &self->chunk, &self->len);
    }
    self->has_ended = r < 0;
    return r;
}

/* 1: there is a chunk; -1: the end. */
static int await_chunk(struct streaming *self)
{
    int r;

    while ((r = take_chunk(self)) == 0) {
        http_connection_set_streaming(self->connection, false);
        if (!http_connection_wait(self->connection, self->wake_fd,
                                  self->stream.wait_ms(self->stream.ctx)))
            return -1;
    }
    return r;
}

/* The first chunk is waited for; what is there behind it goes along: who is behind needs fewer records, system
 * calls and turns of its thread. */
static ssize_t read_stream(void *ctx, uint64_t position, char *ret, size_t max)
{
    struct streaming *self = ctx;
    size_t filled = 0;

    (void)position;
    while (filled < max) {
        if (!self->len && (filled ? take_chunk(self) : await_chunk(self)) <= 0)
            break;

        size_t len = self->len < max - filled ? self->len : max - filled;

        memcpy(ret + filled, self->chunk, len);
        self->chunk += len;
        self->len -= len;
        filled += len;
    }
    if (!filled)
        return MHD_CONTENT_READER_END_OF_STREAM;
    http_connection_set_streaming(self->connection, true);
    return (ssize_t)filled;
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
