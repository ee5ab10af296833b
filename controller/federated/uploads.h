/* Updates that came by HTTP: whole bodies, until the Tasks that they are for have dealt with them. */
#pragma once

#include <stdbool.h>

#include "common/kube/object.h"
#include "common/net/http_server.h"

/*
 *   QUEUED ──uploads_next──> ACTIVE ──uploads_tell──> TOLD ──uploads_leave──> free
 *
 * An upload outlives a client that gives up waiting: what has come whole counts. In the order in which
 * they came; of the large ones only so many are with the workers at once, because reading one takes
 * memory beside its body: a copy, its numbers, and what is stored of it. One is in another's way for one
 * turn of its Task at most. Any thread.
 *
 * The lock is held while the server is called (to wake a request, to give room back), which itself
 * calls nobody with its own: so uploads_close() is the end of all that.
 */
#define UPLOADS_MAX 256 /* as many as there are connections */
#define UPLOADS_LARGE ((size_t)64 << 10)
#define UPLOADS_MAX_LARGE 2

/* Of whom. Strings are copied. */
struct upload_sender {
    uint64_t token; /* of the request: http_server_request.id */
    struct kube_name task;
    const char *uid; /* of the Task */
    const char *id;  /* of its message */
};

struct uploads;
struct uploads *uploads_create(void);
void uploads_destroy(struct uploads *uploads); /* closed, or never opened */
/* server: whose requests wait; NULL: in tests nobody is woken. */
void uploads_open(struct uploads *uploads, struct http_server *server);
/* Drops everything and tells 503 to who waits; nothing is taken from now on. */
void uploads_close(struct uploads *uploads);

/* Takes the body. false: there is no room, or it is closed. */
bool uploads_add(struct uploads *uploads, const struct upload_sender *sender,
                 struct http_body *body);
/* Whose turn has come now; strings in the arena. false: nobody's. */
bool uploads_next(struct uploads *uploads, struct arena *arena, struct upload_sender *ret);
/* The body, copied; NULL: it is not here any more. */
const char *uploads_read(struct uploads *uploads, struct arena *arena, uint64_t token,
                         size_t *ret_len);
/* How many of this Task are here, told of or not. */
size_t uploads_count(struct uploads *uploads, const char *uid);
/* What became of it; wakes its request. Not here any more: fine. */
void uploads_tell(struct uploads *uploads, uint64_t token, int status);
/* A turn of the Task has failed, and another one may, for as long as somebody's quota lasts: its large
 * ones are in nobody's way meanwhile. They stay ACTIVE. */
void uploads_pass(struct uploads *uploads, const char *uid);
/* The Task is gone. */
void uploads_forget(struct uploads *uploads, const char *uid);
/* The request waits no longer. The status that it was told; 0: none yet, and the upload stays. */
int uploads_leave(struct uploads *uploads, uint64_t token);
