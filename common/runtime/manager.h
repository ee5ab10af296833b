/* Starts what a process consists of in order, waits for signals, stops it in reverse. */
#pragma once

#include <stdint.h>

#include "common/base/error.h"

/* Started in this order, all of a group at once, after all of the one before are ready; stopped and
 * joined in reverse. RUN_CATCH_UP: what a leader must know before it acts. */
enum run_group { RUN_SERVERS, RUN_CACHES, RUN_ELECTION, RUN_CATCH_UP, RUN_LEADER };

struct runnable {
    const char *name;
    enum run_group group;
    void *self;
    int (*start)(void *self, struct error *err); /* may be NULL */
    /* Called again and again (20 ms … 1 s, or after manager_wake) until 1; 0: not yet; < 0: gives
     * up. NULL: ready when started. */
    int (*ready)(void *self, struct error *err);
    void (*stop)(void *self); /* asks; returns at once. May be NULL */
    void (*join)(void *self); /* returns when it has ended. May be NULL */
    /* When it has started, and every MANAGER_TICK_MS until the end begins, on the main thread: for
     * what has time. Returns soon. May be NULL */
    void (*tick)(void *self);
    /* Half of the stop budget is gone: whoever is waited for gives up. On a thread of the manager,
     * once, perhaps before start or after join; returns at once. May be NULL */
    void (*hurry)(void *self);
};

/* From SIGTERM on; a kubelet kills after 30 s. */
#define MANAGER_STOP_BUDGET_MS 25000
#define MANAGER_TICK_MS 15000
#define MANAGER_MAX_RUNNABLES 32

/* On the main thread before any other is started, and so for all of them: blocks SIGTERM, SIGINT and, unless it is
 * ignored, SIGHUP (a terminal that is closed), each of which stops; ignores SIGPIPE. */
void manager_block_signals(void);
/* Does so as well. */
struct manager *manager_create(void);
void manager_destroy(struct manager *manager);
void manager_add(struct manager *manager, const struct runnable *runnable); /* copied */
/* Before run. 0: MANAGER_STOP_BUDGET_MS. */
void manager_set_stop_budget(struct manager *manager, uint32_t budget_ms);
/* Likewise; 0: MANAGER_TICK_MS. */
void manager_set_tick_period(struct manager *manager, uint32_t period_ms);

/*
 * Main thread. Runs until a signal (0) or a failure of its own or of manager_fail. Then for each
 * group from the last: stop() of all that were started, then join() of all, the last added first.
 * So servers go on answering until everything else has ended. A second signal ends the process at
 * once (130); so does the end of the stop budget (1), with a log line that names what did not end.
 * At half of it every hurry() is called.
 */
int manager_run(struct manager *manager, struct error *err) MUST_CHECK;
/* Any thread: stop everything, manager_run returns this error. The first one counts. */
void manager_fail(struct manager *manager, const struct error *why);
/* Any thread: something may have become ready. */
void manager_wake(struct manager *manager);
