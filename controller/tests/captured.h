/* Every captured message of devices and managers (fixtures/README.md), and what it means. */
#pragma once

#include "controller/device/samples.h"

/* Prose that no one should depend on; that there is one is enough. */
#define SOME_ERROR "*"

/* Results: what the Task says in the end. */
struct captured_result {
    const char *file;
    const char *task_id;
    const char *proplet_id; /* NULL: none */
    const char *results;
    const char *error; /* NULL: success */
};
#define CAPTURED_RESULTS 44
extern const struct captured_result RESULTS[CAPTURED_RESULTS];

struct captured_alive {
    const char *file;
    const char *proplet_id;
    bool alive;
};
#define CAPTURED_ALIVE 5
extern const struct captured_alive ALIVE[CAPTURED_ALIVE];

/* Registrations, and status.metadata. */
struct captured_create {
    const char *file;
    const char *proplet_id;
    const char *metadata;
};
#define CAPTURED_CREATES 2
extern const struct captured_create CREATES[CAPTURED_CREATES];

/* Samples; latest: latestMetrics without its time. */
struct captured_task_metrics {
    const char *file;
    const char *task_id;
    const char *proplet_id;
    enum proplet_dialect dialect;
    const char *latest;
};
#define CAPTURED_TASK_METRICS 4
extern const struct captured_task_metrics TASK_METRICS[CAPTURED_TASK_METRICS];

struct captured_metrics {
    const char *file;
    const char *proplet_id;
    const char *latest;
};
#define CAPTURED_METRICS 2
extern const struct captured_metrics METRICS[CAPTURED_METRICS];

/* On topics that the controller does not read; no parser may take them for something else but
 * invocations, which look like results and come on a topic of their own. The channel is d/c. */
struct captured_passing {
    const char *file;
    const char *topic;
};
#define CAPTURED_PASSING 16
extern const struct captured_passing PASSING[CAPTURED_PASSING];
