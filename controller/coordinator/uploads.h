/* Uploads of devices that came by HTTP: whole bodies, until the Tasks that they are for have dealt
 * with them. */
#pragma once

#include <stdbool.h>

#include "common/kube/object.h"
#include "common/net/http_server.h"

/*
 *   QUEUED ──uploads_next──> ACTIVE ──uploads_tell──> TOLD ──uploads_leave──> free
 *
 * An upload outlives a client that gives up waiting: a whole body counts. Uploads are taken in the
 * order in which they came; of the large ones only UPLOADS_MAX_LARGE are with the workers at once,
 * because reading one takes memory beside its body: a copy, its numbers, and its stored form. One
 * holds up another for one turn of its Task at most. Any thread.
 *
 * The lock is held while the server is called (to wake a request, to give room back), which calls
 * no other module with its own: so uploads_close() is the end of all that.
 */
#define UPLOADS_MAX 256 /* as many as there are connections */
#define UPLOADS_LARGE ((size_t)64 << 10)
#define UPLOADS_MAX_LARGE 2

/* The sender of an upload. Strings are copied. */
struct coordinator_service;
struct upload_sender {
    uint64_t token; /* of the request: http_server_request.id */
    const struct coordinator_service *service;
    struct kube_name task;
    const char *uid;   /* of the Task */
    const char *id;    /* of its message */
    const char *query; /* of the request; NULL: none */
};

struct uploads;
struct uploads *uploads_create(void);
void uploads_destroy(struct uploads *uploads); /* closed, or never opened */
/* server: the one whose requests wait; NULL: in tests, where no request is woken. */
void uploads_open(struct uploads *uploads, struct http_server *server);
/* Drops everything and answers 503 to requests that wait; nothing is taken from now on. */
void uploads_close(struct uploads *uploads);

/* Takes the body. false: there is no room, or it is closed. */
bool uploads_add(struct uploads *uploads, const struct upload_sender *sender,
                 struct http_body *body);
/* Returns the sender whose turn has come; strings in the arena. false: there is none. */
bool uploads_next(struct uploads *uploads, struct arena *arena, struct upload_sender *ret);
/* The body, copied; NULL: it is not here any more. */
const char *uploads_read(struct uploads *uploads, struct arena *arena, uint64_t token,
                         size_t *ret_len);
/* Returns the number of uploads to this service for this Task that are here, answered or not. */
size_t uploads_count(struct uploads *uploads, const struct coordinator_service *service,
                     const char *uid);
/* The outcome of an upload; wakes its request. Nothing happens if it is not here any more. */
void uploads_tell(struct uploads *uploads, uint64_t token, int status);
/* A turn of the Task has failed, and another one may, for as long as a quota lasts: its large
 * uploads hold up no others meanwhile. They stay ACTIVE. */
void uploads_pass(struct uploads *uploads, const char *uid);
/* The Task is gone. */
void uploads_forget(struct uploads *uploads, const char *uid);
/* The request waits no longer. Returns the status that it was given; 0: none yet, and the upload
 * stays. */
int uploads_leave(struct uploads *uploads, uint64_t token);
