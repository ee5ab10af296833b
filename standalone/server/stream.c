#include "standalone/server/stream.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/str.h"
#include "standalone/api/api.h"
#include "standalone/server/users.h"

struct stream {
    struct stream *next, *previous;
    struct streams *streams;
    char *user; /* its name */
    char token_hash[SHA256_HEX_LEN];
    enum role role; /* when it began */
    struct api_watch *watch;
    atomic_bool is_over;

    /* With the lock of the streams: */
    void (*notify)(void *ctx);
    void *notify_ctx;
};

struct streams {
    struct users_file *users;
    size_t max_each;
    pthread_mutex_t lock; /* of the lists */
    struct stream *first;
};

struct streams *streams_create(struct users_file *users, size_t max_each)
{
    struct streams *streams = xcalloc(1, sizeof(*streams));

    streams->users = users;
    streams->max_each = max_each;
    pthread_mutex_init(&streams->lock, NULL);
    return streams;
}

void streams_destroy(struct streams *streams)
{
    if (!streams)
        return;
    pthread_mutex_destroy(&streams->lock);
    free(streams);
}

static bool is_still(const struct users *users, const struct stream *stream)
{
    const struct user *user = users_find_token(users, stream->token_hash);

    return user && user->role == stream->role && str_equal(user->name, stream->user);
}

/* With the lock. */
static void check(const struct users *users, struct stream *stream)
{
    if (is_still(users, stream))
        return;
    atomic_store(&stream->is_over, true);
    if (stream->notify)
        stream->notify(stream->notify_ctx); /* writes to a descriptor */
}

void streams_check(struct streams *streams)
{
    struct users *users = users_file_get(streams->users);

    pthread_mutex_lock(&streams->lock);
    for (struct stream *stream = streams->first; stream; stream = stream->next)
        check(users, stream);
    pthread_mutex_unlock(&streams->lock);
    users_unref(users);
}

/* --- one of them ------------------------------------------------------------------------------ */

static int next_chunk(void *ctx, struct arena *arena, const char **ret, size_t *ret_len)
{
    struct stream *stream = ctx;

    return atomic_load(&stream->is_over) ? -1 : api_watch_next(stream->watch, arena, ret, ret_len);
}

static uint32_t wait_ms(void *ctx)
{
    struct stream *stream = ctx;

    return api_watch_wait_ms(stream->watch);
}

static void set_notify(void *ctx, void (*notify)(void *notify_ctx), void *notify_ctx)
{
    struct stream *stream = ctx;

    pthread_mutex_lock(&stream->streams->lock);
    stream->notify = notify;
    stream->notify_ctx = notify_ctx;
    pthread_mutex_unlock(&stream->streams->lock);
    api_watch_set_notify(stream->watch, notify, notify_ctx);
}

static void close_stream(void *ctx)
{
    struct stream *stream = ctx;
    struct streams *streams = stream->streams;

    pthread_mutex_lock(&streams->lock);
    if (stream->previous)
        stream->previous->next = stream->next;
    else
        streams->first = stream->next;
    if (stream->next)
        stream->next->previous = stream->previous;
    pthread_mutex_unlock(&streams->lock);
    api_watch_close(stream->watch);
    free(stream->user);
    free(stream);
}

/* false: the user has as many as one may have. */
static bool add(struct streams *streams, struct stream *stream)
{
    size_t len = 0;

    pthread_mutex_lock(&streams->lock);
    for (const struct stream *other = streams->first; other; other = other->next)
        len += str_equal(other->user, stream->user);
    if (len < streams->max_each) {
        stream->next = streams->first;
        if (streams->first)
            streams->first->previous = stream;
        streams->first = stream;
    }
    pthread_mutex_unlock(&streams->lock);
    return len < streams->max_each;
}

const struct http_stream *stream_open(struct streams *streams, struct arena *arena,
                                      struct api_watch *watch,
                                      const char token_hash[static SHA256_HEX_LEN],
                                      const struct user *user)
{
    struct stream *stream = xcalloc(1, sizeof(*stream));
    struct http_stream *ret = arena_new(arena, struct http_stream);

    stream->streams = streams;
    stream->user = xstrdup(user->name);
    memcpy(stream->token_hash, token_hash, SHA256_HEX_LEN);
    stream->role = user->role;
    stream->watch = watch;
    if (!add(streams, stream)) {
        api_watch_close(watch);
        free(stream->user);
        free(stream);
        return NULL;
    }

    /* They may have changed since the request was let in. */
    struct users *users = users_file_get(streams->users);

    if (!is_still(users, stream))
        atomic_store(&stream->is_over, true);
    users_unref(users);
    *ret = (struct http_stream){ .ctx = stream,
                                 .next = next_chunk,
                                 .wait_ms = wait_ms,
                                 .set_notify = set_notify,
                                 .close = close_stream };
    return ret;
}
