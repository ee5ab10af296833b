/* What a PropellerJob consists of: its Tasks, how they are called, and who waits for whom. Pure. */
#pragma once

#include "common/api/propellerjob.h"

struct job_task {
    const char *name;   /* in the spec; of a taskRef: the Task's name */
    const char *object; /* name of the Task object */
    bool is_ref;        /* somebody else's, only looked at */
    enum run_if run_if;
    size_t *needs; /* those that it waits for */
    size_t needs_len;
};

struct job_tasks {
    struct job_task *items; /* spec.tasks in their order, then taskRefs, each object once */
    size_t len;
    size_t owned;        /* how many of them are spec.tasks */
    size_t *order;       /* the owned ones so that nobody comes before whom it waits for */
    const char *problem; /* why they can never run; then needs and order are not to be used */
};

/*
 * needs has what dependsOn names, in every mode. In mode sequential each task also waits for the
 * nearest one before it that is not for failures (runIf), and one that is for failures for the one
 * right before it: so one runs at a time, whatever was skipped, and the first failure ends the
 * chain. Everything is in the arena, or borrowed from the spec.
 */
struct job_tasks job_tasks_of(struct arena *arena, const char *job,
                              const struct propellerjob_spec *spec);

/* Name of the child for a name in the spec; the same for ever. */
const char *job_child_name(struct arena *arena, const char *job, const char *task);
