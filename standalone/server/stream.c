#include "standalone/server/stream.h"

#include <stdlib.h>

#include "common/base/alloc.h"
#include "common/base/str.h"
#include "standalone/server/users.h"

/* An idle stream has nothing to tell a user who may not have it any more, so it need not end at once. */
#define LOOK_EVERY_MS 5000

struct stream {
    struct api_watch *watch;
    struct sender_user sender; /* with a name of its own */
    char *name;
};

static int next_line(void *ctx, struct arena *arena, const char **ret, size_t *ret_len)
{
    struct stream *stream = ctx;
    const struct sender_user *sender = &stream->sender;
    struct user user;

    if (sender->users &&
        (!users_file_find(sender->users, arena, sender->token_hash, &user) ||
         user.role != sender->user.role || !str_equal(user.name, sender->user.name)))
        return -1;
    return api_watch_next(stream->watch, arena, ret, ret_len);
}

static uint32_t wait_ms(void *ctx)
{
    const struct stream *stream = ctx;
    uint32_t ms = api_watch_wait_ms(stream->watch);

    return stream->sender.users && ms > LOOK_EVERY_MS ? LOOK_EVERY_MS : ms;
}

static void set_notify(void *ctx, void (*notify)(void *notify_ctx), void *notify_ctx)
{
    api_watch_set_notify(((struct stream *)ctx)->watch, notify, notify_ctx);
}

static void close_stream(void *ctx)
{
    struct stream *stream = ctx;

    api_watch_close(stream->watch);
    free(stream->name);
    free(stream);
}

struct http_stream stream_open(struct api_watch *watch, const struct sender_user *sender)
{
    struct stream *stream = xcalloc(1, sizeof(*stream));

    stream->watch = watch;
    stream->sender = *sender;
    stream->sender.user.name = stream->name = xstrdup(sender->user.name);
    return (struct http_stream){ .ctx = stream,
                                 .next = next_line,
                                 .wait_ms = wait_ms,
                                 .set_notify = set_notify,
                                 .close = close_stream };
}
