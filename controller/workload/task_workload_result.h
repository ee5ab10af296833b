/* Where the result of a Job is, and what is stored of it. Pure. */
#pragma once

#include "common/json/json.h"

/*
 * The first that is present and not empty counts:
 *
 *   annotation propeller.propeller.abstractmachines.fr/result of the Job
 *   termination message of the container (/dev/termination-log)
 *   key `result` of the ConfigMap `<job>-result`
 *   key `result` of the Secret `<job>-result`
 *   the same annotation of the pod
 *
 * A ConfigMap or Secret is of this attempt if it was made or written since the Job was made: an
 * earlier Task of the same name may have left one.
 */
enum result_source { RESULT_CONFIGMAP, RESULT_SECRET };

/* The object `<job>-result`, whole; NULL: there is none, or it may not be read. */
typedef int task_workload_fetch_fn(void *ctx, enum result_source source, const cJSON **ret,
                                   struct error *err);

/* job, pods: whole. Asks fetch only for what decides; its errors are passed on. *ret NULL: the Job
 * left no result. JSON is stored as such, anything else as a string. */
int task_workload_result(struct arena *arena, const cJSON *job, const cJSON *const *pods,
                         size_t count, task_workload_fetch_fn *fetch, void *ctx, const cJSON **ret,
                         struct error *err) MUST_CHECK;
