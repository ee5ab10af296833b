/* This module makes the objects of a Task on a Proplet of type k8s: a ConfigMap, and a Job or,
 * for a daemon, a Deployment. Pure. */
#pragma once

#include "common/api/task.h"
#include "common/kube/object.h"

/*
 * ConfigMap    `<task>-config`: the environment, and function_name, inputs (JSON), monitoring_profile
 *              (JSON) where the Task has them; with a file wasm_file_provided and, as binaryData,
 *              module.wasm, which the container finds at /propeller/module.wasm.
 * Job          `<task>-job`, of a later attempt `<task>-job-<attempt>`. One pod and no second one:
 *              attempts and their count are the Task's, so backoffLimit is 0 and the pod never
 *              restarts its container. It gets a deadline when it runs (task_workload_plan.h).
 * Deployment   `<task>-daemon`, of TASK_DAEMON_REPLICAS.
 *
 * The container is `task`. Its pod passes Pod Security "restricted" and has no token, unless the
 * Proplet's podTemplate says otherwise. PROPLET_ID is the name of the Proplet, TASK_ID the id of
 * the attempt as in messages to devices.
 */
struct task_workload_request {
    const cJSON *task;            /* the whole object: it owns what is made */
    const struct task_spec *spec; /* complete, with file and env */
    int64_t attempt;              /* from 1 */
    const char *proplet;          /* its name */
    const cJSON *checkpoint;   /* variables of its checkpoint, before those of spec; NULL: none */
    const cJSON *pod_template; /* of the Proplet; NULL: none, or none is allowed */
};

struct task_workload_manifest {
    const cJSON *config_map;
    const cJSON *workload;
};

/* The API server takes no more in one ConfigMap. */
#define WORKLOAD_CONFIG_MAX (1u << 20)
#define WORKLOAD_CONTAINER "task"
/* An attempt has one id, and runs once. */
#define TASK_DAEMON_REPLICAS 1

/* ERROR_TOO_LARGE: the ConfigMap would hold more than it can; names both numbers. */
int task_workload_manifest(struct arena *arena, const struct task_workload_request *request,
                           struct task_workload_manifest *ret, struct error *err) MUST_CHECK;

/* A Task with this spec runs in a pod of its own on a Proplet of type k8s. Without an image, or with
 * one that only devices can fetch, it goes to the Proplet's pod over MQTT. */
bool task_workload_is_for(const struct task_spec *spec);

const struct kube_kind *task_workload_kind(const struct task_spec *spec);
const char *task_workload_config_name(struct arena *arena, const char *task);
const char *task_workload_name(struct arena *arena, const char *task, const struct task_spec *spec,
                               int64_t attempt);
/* Of the ConfigMap or Secret in which the workload may leave its result. */
const char *task_workload_result_name(struct arena *arena, const char *workload);
