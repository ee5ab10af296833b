/*
 * A manager starts the parts of a process in order, waits for signals, and stops the parts in
 * reverse.
 *
 * Runnables are copied; the objects behind self outlive the manager. Functions are for the main
 * thread, unless a comment says so. Times are in milliseconds.
 */
#pragma once

#include <stdint.h>

#include "common/base/error.h"

/* Groups are started in this order: all runnables of a group at once, after those of the group
 * before are ready. They are stopped and joined in reverse. RUN_CATCH_UP is for the state that a
 * leader needs before it acts. */
enum run_group { RUN_SERVERS, RUN_CACHES, RUN_ELECTION, RUN_CATCH_UP, RUN_LEADER };

struct runnable {
    const char *name;
    enum run_group group;
    void *self;
    int (*start)(void *self, struct error *err); /* may be NULL */
    /* Called repeatedly (after 20 ms to 1 s, or manager_wake) until it returns 1. 0: not ready yet;
     * < 0: the process ends with this error. NULL: ready when started. */
    int (*ready)(void *self, struct error *err);
    void (*stop)(void *self); /* asks it to end; must not block. May be NULL */
    void (*join)(void *self); /* blocks until it has ended. May be NULL */
    /* Called after the start and every MANAGER_TICK_MS until the stop, on the main thread, for work
     * that is not urgent. Must return soon. May be NULL */
    void (*tick)(void *self);
    /* Half of the stop budget is over: a runnable that is still waited for gives up. Called once,
     * on a thread of the manager, perhaps before start or after join. Must not block. May be
     * NULL */
    void (*hurry)(void *self);
};

/* Time for the stop, from SIGTERM on; a kubelet kills after 30 s. */
#define MANAGER_STOP_BUDGET_MS 25000
#define MANAGER_TICK_MS 15000
#define MANAGER_MAX_RUNNABLES 32

/* Blocks the signals that stop the process: SIGTERM, SIGINT and, unless it is ignored, SIGHUP (a
 * closed terminal). Ignores SIGPIPE. Called before other threads exist, so that it holds for all of
 * them. */
void manager_block_signals(void);
/* Calls manager_block_signals, too. */
struct manager *manager_create(void);
void manager_destroy(struct manager *manager);
void manager_add(struct manager *manager, const struct runnable *runnable); /* copied */
/* Called before manager_run. 0: MANAGER_STOP_BUDGET_MS. */
void manager_set_stop_budget(struct manager *manager, uint32_t budget_ms);
/* Called before manager_run. 0: MANAGER_TICK_MS. */
void manager_set_tick_period(struct manager *manager, uint32_t period_ms);
/* Returns the period of the ticks. From manager_run on this is half of the period of the service manager's watchdog, if
 * that is shorter than the one that was set. */
uint32_t manager_tick_period_ms(const struct manager *manager);

/*
 * Runs until a signal (returns 0) or a failure, its own or that of manager_fail. Then, for each
 * group from the last one, it calls stop of all started runnables and join of all, the last added
 * first. So servers answer until everything else has ended. A second signal ends the process at
 * once, with status 130. So does the end of the stop budget, with status 1 and a log line that
 * names what did not end. At half of the budget every hurry is called.
 *
 * A service manager (notify.h) gets READY=1 when the group RUN_CACHES is ready, and STOPPING=1 with the stop. Its
 * watchdog is notified after the ticks, so by the main thread alone. Before READY=1 each tick asks for another minute
 * instead.
 */
int manager_run(struct manager *manager, struct error *err) MUST_CHECK;
/* Stops everything; manager_run returns this error. The first error counts. Any thread. */
void manager_fail(struct manager *manager, const struct error *why);
/* Makes the manager call ready again at once. Any thread. */
void manager_wake(struct manager *manager);
