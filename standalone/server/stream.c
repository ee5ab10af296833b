#include "standalone/server/stream.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "standalone/api/api.h"
#include "standalone/server/users.h"

/* A user with streams. With the lock of the streams. */
struct watcher {
    struct watcher *next;
    char *name;
    size_t len;  /* streams */
    bool logged; /* that he has all he may have; until he has but half of it */
};

struct stream {
    struct stream *next, *previous;
    struct streams *streams;
    struct watcher *watcher; /* the user */
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
    struct watcher *watchers;
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

    return user && user->role == stream->role && str_equal(user->name, stream->watcher->name);
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

/* --- how many of a user ----------------------------------------------------------------------- */

/* With the lock. */
static struct watcher *find_watcher(struct streams *streams, const char *name)
{
    struct watcher *watcher = streams->watchers;

    while (watcher && !str_equal(watcher->name, name))
        watcher = watcher->next;
    if (!watcher) {
        watcher = xcalloc(1, sizeof(*watcher));
        watcher->name = xstrdup(name);
        watcher->next = streams->watchers;
        streams->watchers = watcher;
    }
    return watcher;
}

/* Counts one more of his; NULL: he has as many as he may have. */
static struct watcher *take(struct streams *streams, const char *name)
{
    bool is_first = false;

    pthread_mutex_lock(&streams->lock);

    struct watcher *watcher = find_watcher(streams, name);

    if (watcher->len >= streams->max_each) {
        is_first = !watcher->logged;
        watcher->logged = true;
        watcher = NULL;
    } else {
        watcher->len++;
    }
    pthread_mutex_unlock(&streams->lock);
    if (is_first)
        log_warn("a user has the maximum of watches, more are refused", "user", name, "watches",
                 LOG_INT((int64_t)streams->max_each), NULL);
    return watcher;
}

/* With the lock. */
static void give_back(struct streams *streams, struct watcher *watcher)
{
    struct watcher **at = &streams->watchers;

    if (--watcher->len <= streams->max_each / 2)
        watcher->logged = false;
    if (watcher->len)
        return;
    while (*at != watcher)
        at = &(*at)->next;
    *at = watcher->next;
    free(watcher->name);
    free(watcher);
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
    give_back(streams, stream->watcher);
    pthread_mutex_unlock(&streams->lock);
    api_watch_close(stream->watch);
    free(stream);
}

static void add(struct streams *streams, struct stream *stream)
{
    pthread_mutex_lock(&streams->lock);
    stream->next = streams->first;
    if (streams->first)
        streams->first->previous = stream;
    streams->first = stream;
    pthread_mutex_unlock(&streams->lock);
}

const struct http_stream *stream_open(struct streams *streams, struct arena *arena,
                                      struct api_watch *watch,
                                      const char token_hash[static SHA256_HEX_LEN],
                                      const struct user *user)
{
    struct watcher *watcher = take(streams, user->name);

    if (!watcher) {
        api_watch_close(watch);
        return NULL;
    }

    struct stream *stream = xcalloc(1, sizeof(*stream));
    struct http_stream *ret = arena_new(arena, struct http_stream);

    stream->streams = streams;
    stream->watcher = watcher;
    memcpy(stream->token_hash, token_hash, SHA256_HEX_LEN);
    stream->role = user->role;
    stream->watch = watch;
    add(streams, stream);

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
