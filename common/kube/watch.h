/* list + watch of one resource as a state machine without I/O (client-go's Reflector, KEP-956
 * bookmarks), and the loop that drives many of them on one thread. */
#pragma once

#include "common/kube/config.h"
#include "common/kube/object.h"

/*
 *              +--------- Gone, or the stream cannot be resumed ---------+
 *              v                                                         |
 *   LIST (pages) --last page--> WATCH --end, error, time-out--> back-off -+--> WATCH from the last
 * version
 *
 *  INIT, then INIT_APPLY for each item, then INIT_DONE: the complete set; what it lacks is gone.
 *  APPLY, DELETE: changes after it. Every sink call is made by watch_machine_feed, in the API
 * server's order.
 */
enum watch_event_type { WATCH_INIT, WATCH_INIT_APPLY, WATCH_INIT_DONE, WATCH_APPLY, WATCH_DELETE };
typedef void watch_sink_fn(void *ctx, enum watch_event_type type,
                           struct kube_object *object); /* borrowed */

/* Removes from the tree what nobody reads; runs on each item before it is kept.
 * metadata.managedFields always goes. */
typedef void watch_project_fn(cJSON *object);

struct watch_options {
    const struct kube_kind *kind;
    const char *ns;             /* NULL or "": all namespaces; copied */
    const char *label_selector; /* NULL: none; copied */
    watch_project_fn *project;  /* may be NULL */
    uint32_t page_size;         /* 0: 500 */
    uint32_t watch_timeout_s;   /* 0: 290, asked of the server */
};

/* An event or item larger than this ends the stream with an error; the list starts again after
 * back-off. */
#define WATCH_MAX_ITEM (4u << 20)

struct watch_request {
    char *path; /* owned by the machine, valid until the next call of watch_machine_next */
    int64_t not_before_ms;
    uint32_t timeout_ms; /* the client gives up after it: watch time + 5 s */
};

struct watch_machine;
struct watch_machine *watch_machine_create(const struct watch_options *options, watch_sink_fn *sink,
                                           void *ctx);
void watch_machine_destroy(struct watch_machine *machine);
void watch_machine_next(struct watch_machine *machine, int64_t now_ms, struct watch_request *ret);
/* Bytes of a 200 reply as they come, split anywhere. < 0: end the transfer; finish() is still
 * called. */
int watch_machine_feed(struct watch_machine *machine, const char *bytes, size_t len,
                       struct error *err) MUST_CHECK;
/* The transfer ended. status: HTTP status, 0 without one. body: the reply if it was not 200 (NULL
 * otherwise). */
void watch_machine_finish(struct watch_machine *machine, int status, const char *body,
                          int64_t now_ms);
/* Since the last success: NULL, or why the machine is not getting anywhere ("Forbidden: …"). For
 * readyz and logs. */
const char *watch_machine_problem(const struct watch_machine *machine);

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
