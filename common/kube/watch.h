/* A watch machine lists and watches one resource as a state machine without I/O (client-go's
 * Reflector, KEP-956 bookmarks); a watch loop drives many machines on one thread. */
#pragma once

#include "common/kube/config.h"
#include "common/kube/object.h"

/*
 *              +------- Gone, unreadable, not found: the stream cannot be resumed ------+
 *              v                                                                        |
 *   LIST (pages) --last page--> WATCH --end--> (back-off after a failure) --------------+
 *                                 ^                                                     |
 *                                 +------------------ from the last version ------------+
 *
 * The first list is taken from the cache of the API server (resourceVersion=0), unless the options
 * ask for the newest. A later list is not older than the last reported version; if the server
 * cannot do that, the list is a fresh one.
 *
 * INIT, INIT_APPLY for each item, INIT_DONE: the complete set. An object that it lacks is deleted.
 * A second INIT before INIT_DONE starts the set again. INIT_KEEP: the set has an object that cannot
 * be kept. version is a uid that it may have; NULL: any uid. Objects that are known under it are
 * not deleted. APPLY, DELETE: changes after the set. BOOKMARK: only the version. REFUSED: the API
 * server answered a request with 403.
 *
 * version is that of the set (INIT_DONE), of the change or of the bookmark: everything up to it has
 * been reported. It is NULL with INIT, INIT_APPLY and REFUSED. watch_machine_feed makes all sink
 * calls, in the order of the API server, except REFUSED, which watch_machine_finish makes.
 *
 * An object cannot be kept if it is larger than WATCH_MAX_ITEM or not decodable (a string with a
 * NUL, nesting beyond JSON_MAX_DEPTH, more values than json_parse takes). A list omits it with a
 * warning, so that it does not block all others, and an older version of it stays (INIT_KEEP). If
 * it is being deleted, it is reported with its metadata only, for its finalizer. A change that is
 * not decodable is skipped, and the stream is followed by a list. A change that is too large ends
 * the stream with an error, and the list comes after the back-off.
 *
 * A machine is not thread-safe; a loop is (watch_loop_problem) once it runs. Sink and project run
 * on the thread of the loop and must not block. Times are monotonic milliseconds.
 */
enum watch_event_type {
    WATCH_INIT,
    WATCH_INIT_APPLY,
    WATCH_INIT_KEEP,
    WATCH_INIT_DONE,
    WATCH_APPLY,
    WATCH_DELETE,
    WATCH_BOOKMARK,
    WATCH_REFUSED
};
typedef void watch_sink_fn(void *ctx, enum watch_event_type type,
                           struct kube_object *object /* borrowed */, const char *version);

/* Removes from the tree the members that no code reads, before the object is kept.
 * metadata.managedFields is always removed. */
typedef void watch_project_fn(cJSON *object);

/* Projects the tree and makes the kube_object that stores keep. *ret is a new reference. project
 * and kind may be NULL. Errors are those of kube_object_create_with. */
int watch_keep(watch_project_fn *project, cJSON *tree, const struct kube_kind *kind,
               struct kube_object **ret, struct error *err) MUST_CHECK;

struct watch_options {
    const struct kube_kind *kind;
    const struct kube_kind
        *other; /* another version of kind, for an API server that answers 404 to it; NULL: none */
    const char *ns;             /* NULL or "": all namespaces; copied */
    const char *label_selector; /* NULL: none; copied */
    const char *name;           /* only the object of this name; NULL: all; copied */
    watch_project_fn *project;  /* may be NULL */
    /* Paths (json_reading.unread) that project removes: no tree is built for them. At most
     * JSON_MAX_UNREAD - 1; NULL ends them; NULL: none. */
    const char *const *unread;
    uint32_t page_size;       /* 0: 500 */
    uint32_t watch_timeout_s; /* 0: 290, asked of the server */
    bool newest;              /* the first list has what the caller wrote before */
};

#define WATCH_MAX_ITEM (4u << 20) /* bytes */

/* Back-off after a failure: it doubles, and is a random time between half of it and the whole. */
#define WATCH_BACKOFF_MIN_MS 1600u
#define WATCH_BACKOFF_MAX_MS 30000u
/* A stream that ends sooner than this without an event counts as a failure. */
#define WATCH_HASTY_MS 1000
/* A stream that lasts for this time resets the number of failures. */
#define WATCH_STEADY_MS 10000
/* Time-out of a list, which is that of the API server, too (--request-timeout). */
#define WATCH_LIST_TIMEOUT_MS 60000

struct watch_request {
    const char *path; /* owned by the machine, valid until the next call of watch_machine_next */
    int64_t not_before_ms;
    uint32_t timeout_ms; /* of the transfer: the time of the watch and 5 s */
};

/* Calls come in this order: next, then feed any number of times, then finish. */
struct watch_machine;
struct watch_machine *watch_machine_create(const struct watch_options *options, watch_sink_fn *sink,
                                           void *ctx);
void watch_machine_destroy(struct watch_machine *machine);
void watch_machine_next(struct watch_machine *machine, int64_t now_ms, struct watch_request *ret);
/* Takes bytes of a 200 reply, split anywhere; len 0: the reply has begun. < 0: the caller ends the
 * transfer, and still calls watch_machine_finish. */
int watch_machine_feed(struct watch_machine *machine, const char *bytes, size_t len,
                       struct error *err) MUST_CHECK;
/*
 * Ends the transfer. status is the HTTP status; 0 if there was none, or if the reply was
 * incomplete. text is the reply if status is neither 200 nor 0, the reason if it is 0, else NULL.
 */
void watch_machine_finish(struct watch_machine *machine, int status, const char *text,
                          int64_t now_ms);
/* Before the first next: the first list is the newest, by pages of so many, too. For an API that has no cache: all
 * objects of a kind would be in memory at once. */
void watch_machine_set_page(struct watch_machine *machine, uint32_t page_size);
/* Returns why there was no success since the last one ("list tasks.x: Forbidden: …"), or NULL. For
 * /readyz and logs. Valid until the next call of feed or finish. */
const char *watch_machine_problem(const struct watch_machine *machine);
enum error_code watch_machine_problem_code(const struct watch_machine *machine); /* NONE: none */
/* "tasks.example.org" or "pods of namespace 'team-a'": for logs. */
const char *watch_machine_resource(const struct watch_machine *machine);

/* A loop has one thread. It has one CURLM and one HTTP/2 connection for all watches, or the streams of an API in this
 * process. */
struct watch_loop;
struct watch_loop *watch_loop_create(struct kube_config *config); /* config must outlive it */
void watch_loop_destroy(struct watch_loop *loop);
void watch_loop_add(struct watch_loop *loop,
                    struct watch_machine *machine); /* before start, borrowed */
int watch_loop_start(struct watch_loop *loop, struct error *err) MUST_CHECK;
void watch_loop_stop(struct watch_loop *loop); /* joins */
/* After a write to an API in this process, on the writer's thread: returns when the sinks have
 * seen it, but after SETTLE_MS at the latest. So the next reconcile does not act on a cache that
 * is older than the write. With a server it does nothing. */
void watch_loop_settle(struct watch_loop *loop);
/* Copies the problem of the first machine that has one; false: none. Any thread. */
bool watch_loop_problem(struct watch_loop *loop, char *ret, size_t size);
/* Whether the API server refuses a request in a way that time does not change: its reply was 403 or 404, or 401 with a
 * token that had just been renewed. For programs that end then. Any thread. */
bool watch_loop_is_refused(const struct watch_loop *loop);
