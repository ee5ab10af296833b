/* list + watch of one resource as a state machine without I/O (client-go's Reflector, KEP-956
 * bookmarks), and the loop that drives many of them on one thread. */
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
 * The first list is taken from the API server's cache (resourceVersion=0), a later one is not older
 * than what was told before; if the server cannot do that, it is a fresh one.
 *
 *  INIT, then INIT_APPLY for each item, then INIT_DONE: the complete set; what it lacks is gone. A
 *  second INIT before INIT_DONE starts the set over.
 *  INIT_KEEP: the set has an object that cannot be kept here. version is a uid that it may have; NULL:
 *  it may be any. Objects that are known under it are not gone.
 *  APPLY, DELETE: changes after it. BOOKMARK: nothing but the version.
 *  REFUSED: a request was answered with 403.
 *
 * version is that of the set (INIT_DONE), of the change or of the bookmark: everything up to it has
 * been told. It is NULL with INIT, INIT_APPLY and REFUSED. Every sink call is made by watch_machine_feed, in the API
 * server's order, but for REFUSED: that one is made by watch_machine_finish.
 *
 * What cannot be kept (larger than WATCH_MAX_ITEM, or not decodable: a string with a NUL, nesting
 * beyond JSON_MAX_DEPTH, more values than json_parse takes) is left out of a list with a warning, so
 * that one object cannot hold up all others; an older version of it stays (INIT_KEEP). If it is being
 * deleted, it is reported with its metadata alone, for its finalizer. A change that is not decodable is
 * passed over, and the stream is followed by a list;
 * one that is too large ends the stream with an error, and the list comes after the back-off.
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

/* Removes from the tree what nobody reads; runs on each item before it is kept.
 * metadata.managedFields always goes. */
typedef void watch_project_fn(cJSON *object);

/* Projects the tree (project may be NULL) and makes a kube_object of it, as stores keep it. kind: may be
 * NULL. */
int watch_keep(watch_project_fn *project, cJSON *tree, const struct kube_kind *kind,
               struct kube_object **ret, struct error *err) MUST_CHECK;

struct watch_options {
    const struct kube_kind *kind;
    const char *ns;             /* NULL or "": all namespaces; copied */
    const char *label_selector; /* NULL: none; copied */
    const char *name;           /* only the object of this name; NULL: all; copied */
    watch_project_fn *project;  /* may be NULL */
    /* Paths of json_reading.unread that project removes anyway: no tree is built for them. At most
     * JSON_MAX_UNREAD - 1, NULL behind them; NULL: none. */
    const char *const *unread;
    uint32_t page_size;       /* 0: 500 */
    uint32_t watch_timeout_s; /* 0: 290, asked of the server */
};

#define WATCH_MAX_ITEM (4u << 20)

/* After failures a request waits a random time between half of these and the whole, doubling. */
#define WATCH_BACKOFF_MIN_MS 1600u
#define WATCH_BACKOFF_MAX_MS 30000u
/* A stream that ends sooner than this without a word counts as a failure. */
#define WATCH_HASTY_MS 1000
/* A stream that lasted so long makes the failures before it forgotten. */
#define WATCH_STEADY_MS 10000
/* A list that takes longer than this is given up; the API server does the same (--request-timeout).
 */
#define WATCH_LIST_TIMEOUT_MS 60000

struct watch_request {
    const char *path; /* owned by the machine, valid until the next call of watch_machine_next */
    int64_t not_before_ms;
    uint32_t timeout_ms; /* the client gives up after it: watch time + 5 s */
};

/* Not for several threads at once. Order: next, then feed any number of times, then finish. */
struct watch_machine;
struct watch_machine *watch_machine_create(const struct watch_options *options, watch_sink_fn *sink,
                                           void *ctx);
void watch_machine_destroy(struct watch_machine *machine);
void watch_machine_next(struct watch_machine *machine, int64_t now_ms, struct watch_request *ret);
/* Bytes of a 200 reply as they come, split anywhere; none (len 0) when it has begun. < 0: end the
 * transfer; finish() is still called. */
int watch_machine_feed(struct watch_machine *machine, const char *bytes, size_t len,
                       struct error *err) MUST_CHECK;
/*
 * The transfer ended. status: HTTP status; 0 if there was none, or if the reply broke off. text:
 * the reply if the status was neither 200 nor 0, why it broke off if 0, else NULL.
 */
void watch_machine_finish(struct watch_machine *machine, int status, const char *text,
                          int64_t now_ms);
/* Since the last success: NULL, or why the machine is not getting anywhere ("list tasks.x:
 * Forbidden: …"). For readyz and logs. Valid until the next call of feed or finish. */
const char *watch_machine_problem(const struct watch_machine *machine);
enum error_code watch_machine_problem_code(const struct watch_machine *machine); /* NONE: none */
/* "tasks.example.org" or "pods of namespace 'team-a'": for logs. */
const char *watch_machine_resource(const struct watch_machine *machine);

/* One thread, one CURLM, all watches on one HTTP/2 connection. */
struct watch_loop;
struct watch_loop *watch_loop_create(struct kube_config *config); /* config must outlive it */
void watch_loop_destroy(struct watch_loop *loop);
void watch_loop_add(struct watch_loop *loop,
                    struct watch_machine *machine); /* before start, borrowed */
int watch_loop_start(struct watch_loop *loop, struct error *err) MUST_CHECK;
void watch_loop_stop(struct watch_loop *loop); /* joins */
/* The first machine's problem, copied; false: none. Any thread. */
bool watch_loop_problem(struct watch_loop *loop, char *ret, size_t size);
