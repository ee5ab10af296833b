/* This module makes the list of Tasks of a PropellerJob, with their names and dependencies.
 * Pure. */
#pragma once

#include "common/api/propellerjob.h"

struct job_task {
    const char *name;   /* in the spec; of a taskRef: the Task's name */
    const char *object; /* name of the Task object */
    bool is_ref;        /* not owned by the job, only looked at */
    enum run_if run_if;
    size_t *needs; /* the Tasks that it waits for */
    size_t needs_len;
};

struct job_tasks {
    struct job_task *items; /* spec.tasks in their order, then taskRefs, each object once */
    size_t len;
    size_t owned;        /* the number of spec.tasks among them */
    size_t *order;       /* the owned ones, each behind those that it waits for */
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
