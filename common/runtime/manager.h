/* Starts what a process consists of in order, waits for signals, stops it in reverse. */
#pragma once

#include <stdint.h>

#include "common/base/error.h"

/* Started in this order, a group after the one before is ready; stopped and joined in reverse. */
enum run_group { RUN_SERVERS, RUN_CACHES, RUN_ELECTION, RUN_LEADER };

struct runnable {
    const char *name;
    enum run_group group;
    void *self;
    int (*start)(void *self, struct error *err);
    /* Called again and again (20 ms … 1 s) until 1; 0: not yet; < 0: gives up. NULL: ready when
     * started. */
    int (*ready)(void *self, struct error *err);
    void (*stop)(void *self); /* asks; returns at once. May be NULL */
    void (*join)(void *self); /* returns when it has ended. May be NULL */
};

struct manager;
struct manager *manager_create(void);
void manager_destroy(struct manager *manager);
void manager_add(struct manager *manager, const struct runnable *runnable); /* copied */

/*
 * Main thread; blocks SIGTERM and SIGINT for every thread started later. Runs until a signal (0) or
 * a failure. Servers go on answering until everything else has ended. A second signal ends the
 * process at once (130).
 */
int manager_run(struct manager *manager, struct error *err) MUST_CHECK;
/* Any thread: stop everything, manager_run returns this error. */
void manager_fail(struct manager *manager, const struct error *why);
