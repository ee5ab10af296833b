/* Tasks that wait for Tasks, on a store and a queue: each change wakes as task_map_task does, each
 * turn does what the plan of its dependencies says and nothing else. */
#pragma once

#include "common/tests/suite.h"
#include "controller/task/task_dependencies.h"

#define GRAPH_NAME_LEN 24

/* What the status is to say. */
struct graph_status {
    enum task_phase phase;
    const char *reason;          /* NULL: none */
    bool backing_off;            /* failed, with retries left */
    int64_t observed_generation; /* 0: it was never looked at */
};

struct graph_stage {
    struct arena *arena; /* of the test */
    struct store *tasks;
    struct workqueue *queue;
    unsigned version;
    unsigned turns;
    unsigned wakes; /* of dependents */
};
extern struct graph_stage graph;

void graph_set_up(void);
void graph_tear_down(void);

/* spec: what follows "name" of a spec, e.g. "\"dependsOn\":[\"a\"]"; "" for none. Puts a new Task
 * or a new generation of it. */
void graph_put(const char *name, const char *spec);
void graph_remove(const char *name);
void graph_set(const char *name, const struct graph_status *status);
enum task_phase graph_phase(const char *name);
const char *graph_reason(const char *name);  /* "" for none */
const char *graph_message(const char *name); /* what it waits for, of its last turn */

/* The names that the queue holds, in one turn each. begin is called for a Task that may begin: it
 * is running from then on. */
typedef void graph_begin_fn(const char *name);
void graph_run(graph_begin_fn *begin);
