/* Where the result of a Job is, and what is stored of it. Pure. */
#pragma once

#include "common/json/json.h"

/*
 * The first that is present and not empty counts:
 *
 *   annotation propeller.propeller.abstractmachines.fr/result of the Job
 *   termination message of the container (/dev/termination-log), unless it is as long as the kubelet
 *   lets one be: it keeps the last 4096 bytes
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

struct task_workload_result {
    const cJSON
        *value; /* NULL: the Job left none. JSON is stored as such, anything else as a string */
    bool cut;   /* no value, but the end of one: it was too long for its message */
};

/* job, pods: whole. Asks fetch only for what decides; its errors are passed on. */
int task_workload_result(struct arena *arena, const cJSON *job, const cJSON *const *pods,
                         size_t count, task_workload_fetch_fn *fetch, void *ctx,
                         struct task_workload_result *ret, struct error *err) MUST_CHECK;
