/* The Kubernetes API on an embedded store: bytes in, bytes out, no sockets. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/base/arena.h"
#include "common/base/clock.h"
#include "common/base/error.h"
#include "standalone/api/user.h"

struct kv;               /* standalone/store/kv.h */
struct resources;        /* standalone/schema/resource.h */
struct admission_policy; /* common/api/policy.h */

/*
 * This module serves the resources of standalone/schema, discovery, OpenAPI, /version, /healthz,
 * /livez, /readyz, SelfSubjectAccessReviews and SelfSubjectReviews. Codes, reasons and the fields of causes are
 * those of kube-apiserver 1.34; sentences are plain English. docs/explanation/standalone.md lists the differences.
 *
 * Guarantees:
 *
 *  1. A reply that says that something was written is given after it is durable.
 *  2. Every write is made against the revision it was decided on. Writes of one object are made
 *     in the order of coming, so that many writers are no reason to fail: one that names no
 *     resourceVersion is always made, one that names another than the object has gets Conflict.
 *  3. resourceVersion is the store's revision: one row of numbers for all resources, never
 *     repeated. A watch from the version of a list has every later event, in order, once.
 *  4. uid, creationTimestamp, deletionTimestamp and generation are the server's, whatever a client
 *     sends.
 *  5. Nothing of a Secret is in any message.
 */
#define API_MAX_BODY (3u << 20) /* as kube-apiserver */
/* Values of a body. With what defaults, checks and managed fields need of each, some 10 MiB. */
#define API_MAX_VALUES 10000
#define API_MAX_OBJECT_VALUES 20000 /* of a stored object: with managed fields, or after patches */
/* Of 429. */
#define API_TOO_MANY "too many requests, please try again later"
#define API_RETRY_AFTER_S 5
/* Of a body that has only options, or is never stored: deletions and reviews. */
#define API_MAX_SMALL_BODY (64u << 10)
/* A page of a list without a limit of its own is everything, as there. */

struct api;
struct api_options {
    struct kv *kv;                     /* borrowed */
    const struct resources *resources; /* borrowed */
    const struct clock *clock;
    const struct admission_policy *policy; /* borrowed; NULL: allows everything */
    uint32_t
        collector_retry_ms; /* pause before the garbage collector repeats what failed; 0: 1000 */
};
struct api *api_create(const struct api_options *options);
/* No request and no watch is left. Stops the garbage collector. */
void api_destroy(struct api *api);
/* The thread that deletes what lost its owners and finishes deletions; api_destroy joins it. Without it these wait. */
int api_start_collector(struct api *api, struct error *err) MUST_CHECK;

/* All strings as in the HTTP request, nothing decoded; NULL: the header is not there. */
struct api_request {
    const char *method;
    const char *path;  /* from "/" to before "?" */
    const char *query; /* behind "?"; "" without */
    const char *content_type, *accept, *user_agent;
    const char *body; /* may be "" */
    size_t body_len;
    const struct user *user; /* never NULL; the server answers requests without authentication */
    /* Asked while a list grows: whether there is room for an answer of so many bytes; if not, the answer is 429, and
     * nothing was done. NULL: for any. A list that grows needs about 3 MiB beside it */
    bool (*has_room)(void *ctx, size_t len);
    /* Asked before each chunk of a list, and before each deletion of a collection: the client has gone, and the
     * rest is left undone. NULL: the client is there. */
    bool (*is_gone)(void *ctx);
    void *ctx; /* of both */
};

struct api_watch;
struct api_reply {
    int status;
    const char *content_type; /* constant or in the arena */
    const char *body;         /* in the arena; NULL with a watch */
    size_t body_len;
    uint32_t retry_after_s;  /* header Retry-After; 0: none */
    const char *warnings[8]; /* headers Warning, as '299 - "text"'; ended by NULL */
    struct api_watch *watch; /* status 200 and a stream to pull; the caller closes it */
};

/* Any thread. Blocks for reads and writes of the store (a durable write: some milliseconds), and for
 * other requests only if they write the same object. Always leaves an answer in *ret. */
void api_handle(struct api *api, struct arena *arena, const struct api_request *request,
                struct api_reply *ret);

/* Before the body is there: false, and *ret refuses it, if the user may not do this at all. */
bool api_admit(struct api *api, struct arena *arena, const struct api_request *request,
               struct api_reply *ret);
/* Returns the limit of its body; by method and path alone. */
size_t api_max_body(const char *method, const char *path);
/* Whether it reads a whole collection: a list (but no watch), or the deletion of a collection. By method, path and
 * query alone. */
bool api_is_long(struct arena *arena, const struct api_request *request);
/* Makes a Status, for an answer that is given before the API is asked. */
void api_refuse(struct arena *arena, int code, const char *reason, const char *message,
                struct api_reply *ret);

/*
 * A stream of watch events (one JSON document a line), pulled by one thread at a time.
 *
 *   1   *ret_line is the next line, with its newline, in the arena
 *   0   nothing now: api_watch_wait_ms says how long until there may be without a notification
 *  -1   the end: timeoutSeconds are over, or an ERROR event (410, 500, 504) was the last line
 */
int api_watch_next(struct api_watch *watch, struct arena *arena, const char **ret_line,
                   size_t *ret_len);
/* Milliseconds until the next bookmark or the end, whichever comes first. */
uint32_t api_watch_wait_ms(const struct api_watch *watch);
/* There may be more to take: any thread, must not call back into the api or the kv. Set once,
 * before the first api_watch_next; earlier events are announced at once. */
void api_watch_set_notify(struct api_watch *watch, void (*notify)(void *ctx), void *ctx);
/* No notification is under way or comes after it. NULL is fine. */
void api_watch_close(struct api_watch *watch);
