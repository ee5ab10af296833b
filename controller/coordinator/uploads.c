#include "controller/coordinator/uploads.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/str.h"

enum upload_state { UPLOAD_FREE, UPLOAD_QUEUED, UPLOAD_ACTIVE, UPLOAD_TOLD };

struct upload {
    enum upload_state state;
    uint64_t token; /* rises */
    bool is_awaited;
    int status; /* TOLD */
    const struct coordinator_service *service;
    struct kube_name task;
    char *uid, *id, *query;
    struct http_body *body; /* QUEUED and ACTIVE */
    bool is_large;
};

struct uploads {
    pthread_mutex_t lock;
    struct http_server *server;
    bool is_closed;
    struct upload uploads[UPLOADS_MAX];
};

struct uploads *uploads_create(void)
{
    struct uploads *uploads = xcalloc(1, sizeof(*uploads));

    pthread_mutex_init(&uploads->lock, NULL);
    return uploads;
}

static void clear(struct upload *upload)
{
    http_body_release(upload->body);
    free(upload->uid);
    free(upload->id);
    free(upload->query);
    *upload = (struct upload){ 0 };
}

void uploads_destroy(struct uploads *uploads)
{
    if (!uploads)
        return;
    for (size_t i = 0; i < UPLOADS_MAX; i++)
        clear(&uploads->uploads[i]);
    pthread_mutex_destroy(&uploads->lock);
    free(uploads);
}

void uploads_open(struct uploads *uploads, struct http_server *server)
{
    pthread_mutex_lock(&uploads->lock);
    uploads->server = server;
    uploads->is_closed = false;
    pthread_mutex_unlock(&uploads->lock);
}

/* With the lock, as all below. */
static void tell(struct uploads *uploads, struct upload *upload, int status)
{
    if (upload->state == UPLOAD_TOLD)
        return;
    if (!upload->is_awaited) {
        clear(upload);
        return;
    }
    http_body_release(TAKE(upload->body));
    upload->state = UPLOAD_TOLD;
    upload->status = status;
    if (uploads->server)
        http_server_wake(uploads->server, upload->token);
}

static struct upload *find(struct uploads *uploads, uint64_t token)
{
    for (size_t i = 0; i < UPLOADS_MAX; i++) {
        if (uploads->uploads[i].state && uploads->uploads[i].token == token)
            return &uploads->uploads[i];
    }
    return NULL;
}

void uploads_close(struct uploads *uploads)
{
    pthread_mutex_lock(&uploads->lock);
    uploads->is_closed = true;
    for (size_t i = 0; i < UPLOADS_MAX; i++) {
        if (uploads->uploads[i].state)
            tell(uploads, &uploads->uploads[i], 503);
    }
    uploads->server = NULL;
    pthread_mutex_unlock(&uploads->lock);
}

bool uploads_add(struct uploads *uploads, const struct upload_sender *sender,
                 struct http_body *body)
{
    struct upload *free_one = NULL;

    pthread_mutex_lock(&uploads->lock);
    for (size_t i = 0; i < UPLOADS_MAX && !free_one && !uploads->is_closed; i++) {
        if (!uploads->uploads[i].state)
            free_one = &uploads->uploads[i];
    }
    if (free_one)
        *free_one = (struct upload){ .state = UPLOAD_QUEUED,
                                     .token = sender->token,
                                     .is_awaited = true,
                                     .service = sender->service,
                                     .task = sender->task,
                                     .uid = xstrdup(sender->uid),
                                     .id = xstrdup(sender->id),
                                     .query = xstrdup(sender->query ? sender->query : ""),
                                     .body = body,
                                     .is_large = body->len > UPLOADS_LARGE };
    else
        http_body_release(body);
    pthread_mutex_unlock(&uploads->lock);
    return free_one;
}

bool uploads_next(struct uploads *uploads, struct arena *arena, struct upload_sender *ret)
{
    struct upload *next = NULL;
    size_t large = 0;

    pthread_mutex_lock(&uploads->lock);
    for (size_t i = 0; i < UPLOADS_MAX; i++)
        large += uploads->uploads[i].state == UPLOAD_ACTIVE && uploads->uploads[i].is_large;
    for (size_t i = 0; i < UPLOADS_MAX; i++) {
        struct upload *upload = &uploads->uploads[i];
        if (upload->state == UPLOAD_QUEUED && (!upload->is_large || large < UPLOADS_MAX_LARGE) &&
            (!next || upload->token < next->token))
            next = upload;
    }
    if (next) {
        next->state = UPLOAD_ACTIVE;
        *ret = (struct upload_sender){ .token = next->token,
                                       .service = next->service,
                                       .task = next->task,
                                       .uid = arena_strdup(arena, next->uid),
                                       .id = arena_strdup(arena, next->id),
                                       .query = arena_strdup(arena, next->query) };
    }
    pthread_mutex_unlock(&uploads->lock);
    return next;
}

const char *uploads_read(struct uploads *uploads, struct arena *arena, uint64_t token,
                         size_t *ret_len)
{
    char *bytes = NULL;

    pthread_mutex_lock(&uploads->lock);
    const struct upload *upload = find(uploads, token);
    if (upload && upload->body) {
        *ret_len = upload->body->len;
        bytes = arena_alloc(arena, upload->body->len + 1, 1);
        memcpy(bytes, upload->body->bytes, upload->body->len + 1);
    }
    pthread_mutex_unlock(&uploads->lock);
    return bytes;
}

size_t uploads_count(struct uploads *uploads, const struct coordinator_service *service,
                     const char *uid)
{
    size_t count = 0;

    pthread_mutex_lock(&uploads->lock);
    for (size_t i = 0; i < UPLOADS_MAX; i++)
        count += uploads->uploads[i].body && uploads->uploads[i].service == service &&
                 str_equal(uploads->uploads[i].uid, uid);
    pthread_mutex_unlock(&uploads->lock);
    return count;
}

void uploads_tell(struct uploads *uploads, uint64_t token, int status)
{
    pthread_mutex_lock(&uploads->lock);
    struct upload *upload = find(uploads, token);
    if (upload)
        tell(uploads, upload, status);
    pthread_mutex_unlock(&uploads->lock);
}

void uploads_pass(struct uploads *uploads, const char *uid)
{
    pthread_mutex_lock(&uploads->lock);
    for (size_t i = 0; i < UPLOADS_MAX; i++) {
        struct upload *upload = &uploads->uploads[i];
        if (upload->state == UPLOAD_ACTIVE && str_equal(upload->uid, uid))
            upload->is_large = false;
    }
    pthread_mutex_unlock(&uploads->lock);
}

void uploads_forget(struct uploads *uploads, const char *uid)
{
    pthread_mutex_lock(&uploads->lock);
    for (size_t i = 0; i < UPLOADS_MAX; i++) {
        struct upload *upload = &uploads->uploads[i];
        if (upload->state && str_equal(upload->uid, uid))
            tell(uploads, upload, 404);
    }
    pthread_mutex_unlock(&uploads->lock);
}

int uploads_leave(struct uploads *uploads, uint64_t token)
{
    int status = 0;

    pthread_mutex_lock(&uploads->lock);
    struct upload *upload = find(uploads, token);
    if (upload)
        upload->is_awaited = false;
    if (upload && upload->state == UPLOAD_TOLD) {
        status = upload->status;
        clear(upload);
    }
    pthread_mutex_unlock(&uploads->lock);
    return status;
}
