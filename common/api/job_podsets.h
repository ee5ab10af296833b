/* This module makes the podSets of a Workload of the Tasks of a PropellerJob. Pure. */
#pragma once

#include "common/json/json.h"

/* Kueue's limit of podSets. */
#define JOB_MAX_PODSETS 8

/*
 * Tasks of one shape are one podSet: the same amounts of resources and the same matchLabels. The count is that of the
 * Tasks that may run at once.
 */
struct job_podsets {
    const cJSON *list; /* spec.podSets of the Workload */
    size_t len; /* may be larger than JOB_MAX_PODSETS; then the list has only the first ones */
    const char *hash; /* of the list */
    int64_t counts[JOB_MAX_PODSETS];
    const cJSON *labels[JOB_MAX_PODSETS]; /* matchLabels of the Tasks; NULL: none */
    bool is_recurring;     /* a Task goes on after its job has ended, when there is no quota */
    const size_t *of_task; /* of each of spec.tasks: the index of its podSet */
    size_t tasks;
};

/* spec: of the job. Results are in the arena, or borrowed from spec. */
struct job_podsets job_podsets_of(struct arena *arena, const cJSON *spec);
/* Returns "tasks-0", "tasks-1" and so on. */
const char *job_podset_name(struct arena *arena, size_t index);
