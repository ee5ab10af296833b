/* The coordinator is the HTTP server for devices. Services answer its requests. */
#pragma once

#include "controller/coordinator/uploads.h"

/*
 * A body stays here (uploads.h) until the service that it is for has dealt with it. A body that
 * does not fit into COORDINATOR_MAX_BODIES waits on its device: its socket is not read; one of at
 * most UPLOADS_LARGE does not wait. The answer is 503 where this process does not lead, has no room
 * in time, or was not answered in time.
 *
 * Memory at most: COORDINATOR_MAX_BODIES, and UPLOADS_LARGE for each of UPLOADS_MAX, beside the
 * memory that services take for the UPLOADS_MAX_LARGE large bodies that they work on.
 */
#define COORDINATOR_THREADS 8
#define COORDINATOR_MAX_CONNECTIONS 256
#define COORDINATOR_MAX_BODIES (96u << 20) /* of all uploads that are not written yet */
#define COORDINATOR_PATIENCE_MS 60000      /* for room, and for the answer */
/* A transfer may take longer while it moves at this rate: 20 MB in 20 minutes. */
#define COORDINATOR_TIMEOUT_MS 16000
#define COORDINATOR_MIN_RATE (16u << 10) /* bytes a second */

/*
 * A service answers the requests of some paths. Functions run on the threads of the server, but for
 * deliver, which runs on any thread; all get self of coordinator_serve.
 */
struct coordinator_service {
    const char *what; /* label of its requests in metrics */
    bool (*owns)(const char *path);
    /* Of a request with a body, before the body is taken: 0, or the status that refuses it. NULL:
     * its requests have no body. */
    int (*admit)(void *self, struct arena *arena, const struct http_server_request *request);
    /* Returns a status, or HTTP_LATER from coordinator_take. */
    int (*answer)(void *self, struct arena *arena, const struct http_server_request *request,
                  struct http_server_reply *ret);
    /* The turn of this upload has come: it is read and answered by its token from now on. Returns
     * 0, or the status with which it ends at once. */
    int (*deliver)(void *self, struct arena *arena, const struct upload_sender *sender);
    /* Words and headers for a status that refuses a request. NULL: plain text. */
    void (*refuse)(void *self, struct arena *arena, const struct http_server_request *request,
                   int status, struct http_server_reply *ret);
};

struct coordinator_options {
    const char *address;      /* borrowed; only start needs it */
    bool (*leads)(void *ctx); /* false: the answer to every request is 503 */
    void *leads_ctx;
};
struct coordinator;
struct coordinator *coordinator_create(const struct coordinator_options *options);
void coordinator_destroy(struct coordinator *coordinator); /* stops; NULL is fine */
/* Before the start. max_body: the limit of its bodies, in bytes. Requests go to the first service that
 * owns their path. */
#define COORDINATOR_MAX_SERVICES 4
void coordinator_serve(struct coordinator *coordinator, const struct coordinator_service *service,
                       void *self, size_t max_body);
int coordinator_start(struct coordinator *coordinator, struct error *err) MUST_CHECK;
void coordinator_stop(struct coordinator *coordinator);           /* requests that wait get 503 */
unsigned coordinator_port(const struct coordinator *coordinator); /* 0: not started */

/* The server's own, also for tests. */
http_handler_fn coordinator_handle;
http_admit_fn coordinator_admit;

/* For answer of a service: keeps the body of the request, and delivers it when its turn has come.
 * Returns HTTP_LATER; when asked again, the status of the upload, or 503. The token of sender is set
 * here. */
int coordinator_take(struct coordinator *coordinator, struct arena *arena,
                     const struct http_server_request *request, struct upload_sender *sender);

/* The other functions are for workers. coordinator NULL: nothing came. */
/* Returns the body, copied; NULL: it is not here any more. */
const char *coordinator_read(struct coordinator *coordinator, struct arena *arena, uint64_t token,
                             size_t *ret_len);
/* Returns the number of whole uploads to this service for the Task with this uid. */
size_t coordinator_count(struct coordinator *coordinator, const struct coordinator_service *service,
                         const char *uid);
/* A turn of the Task has failed: its uploads stay, and hold up no other. */
void coordinator_pass(struct coordinator *coordinator, const char *uid);
/* The Task is gone, or its messages were given up. */
void coordinator_forget(struct coordinator *coordinator, const char *uid);
/* The outcome of an upload. Nothing happens if no request waits any more. */
void coordinator_tell(struct coordinator *coordinator, uint64_t token, int status);

/* "<prefix><part><suffix>", the part without a slash; NULL: the path is not of that form. */
const char *coordinator_part(struct arena *arena, const char *path, const char *prefix,
                             const char *suffix);

struct module_host;
/* The coordinator of the process, for create of modules behind it; NULL: the flags name no address. */
struct coordinator *coordinator_of(const struct module_host *host);
