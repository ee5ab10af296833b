#include "controller/tests/cluster_model.h"

#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "common/kube/kinds.h"
#include "common/kube/owner.h"
#include "common/tests/parsed.h"
#include "controller/tests/outside.h"
#include "controller/tests/stage.h"

/* Attempts of a scenario. */
#define MAX_JOBS 3

struct cluster cluster;

static const char *metadata_of(const cJSON *object, const char *key)
{
    return json_string(json_path(object, "metadata", key, NULL), "");
}

static const char *task_id(const cJSON *workload)
{
    const cJSON *container =
        json_first(json_path(workload, "spec", "template", "spec", "containers", NULL));

    json_for_each (variable, json_get(container, "env")) {
        if (str_equal(json_string(json_get(variable, "name"), ""), "TASK_ID"))
            return json_string(json_get(variable, "value"), "");
    }
    ck_abort_msg("no TASK_ID");
}

static struct run *run_of(const char *id)
{
    for (size_t i = 0; i < outside.run_count; i++) {
        if (str_equal(outside.runs[i].id, id))
            return &outside.runs[i];
    }
    ck_assert_uint_lt(outside.run_count, OUTSIDE_RUNS);
    struct run *run = &outside.runs[outside.run_count++];
    ck_assert(str_copy(run->id, sizeof(run->id), id));
    run->client = "cluster";
    return run;
}

static cJSON *copy_of(const cJSON *object)
{
    return arena_own(stage.arena, json_copy(object), json_free);
}

static void put_status(const struct kube_kind *kind, const cJSON *object, const char *status)
{
    cJSON *copy = copy_of(object);

    json_set_string(copy, "kind", kind->kind);
    json_set_copy(copy, "status", parsed(stage.arena, status));
    fake_api_put(stage.api, kind, copy);
}

#define CONTAINER(state) "{\"containerStatuses\":[{\"name\":\"task\",\"state\":{" state "}}]}"

static void make_pod(const cJSON *workload, const struct kube_kind *kind, const char *name)
{
    cJSON *pod = json_object(stage.arena);
    cJSON *metadata = json_set_object(pod, "metadata");

    json_set_string(metadata, "namespace", "default");
    json_set_string(metadata, "name", name);
    json_set_copy(metadata, "labels",
                  json_path(workload, "spec", "template", "metadata", "labels", NULL));
    json_set_string(metadata, "creationTimestamp", "2026-01-01T00:00:00Z");
    owner_set_controller(metadata, kind, workload);
    json_set_string(json_set_object(pod, "spec"), "id", task_id(workload));
    put_status(&KIND_POD, pod, CONTAINER("\"running\":{}"));
}

static void delete_pod(const cJSON *pod, const char *name)
{
    struct run *run = run_of(json_string(json_path(pod, "spec", "id", NULL), ""));
    const struct kube_name key = { .ns = "default" };
    struct kube_name full = key;

    ck_assert(kube_name_set(&full, "default", name));
    run->stopped |= !json_path(json_first(json_path(pod, "status", "containerStatuses", NULL)),
                               "state", "terminated", NULL);
    run->instances = 0;
    fake_api_delete(stage.api, &KIND_POD, &full);
}

static bool is_finished(const cJSON *job)
{
    const cJSON *conditions = json_path(job, "status", "conditions", NULL);

    return condition_is(conditions, "Complete", CONDITION_TRUE) ||
           condition_is(conditions, "Failed", CONDITION_TRUE);
}

static void end_job(const cJSON *job, const cJSON *pod, const char *pod_status, const char *type)
{
    put_status(&KIND_POD, pod, pod_status);
    put_status(&KIND_JOB, job,
               arena_printf(stage.arena,
                            "{\"conditions\":[{\"type\":\"%s\",\"status\":\"True\",\"reason\":"
                            "\"BackoffLimitExceeded\"}]}",
                            type));
}

static bool step_job(const char *name)
{
    const char *pod_name = arena_printf(stage.arena, "%s-pod", name);
    const cJSON *job = stage_get(&KIND_JOB, name);
    const cJSON *pod = stage_get(&KIND_POD, pod_name);

    if (pod && (!job || !str_equal(kube_controller_uid(pod), metadata_of(job, "uid")))) {
        delete_pod(pod, pod_name);
        return true;
    }
    if (!json_path(job, "spec", "template", NULL) || is_finished(job)) /* or somebody else's */
        return false;
    if (!pod && cluster.mood != CLUSTER_REFUSES) {
        run_of(task_id(job))->executions++;
        make_pod(job, &KIND_JOB, pod_name);
        return true;
    }
    switch (cluster.mood) {
    case CLUSTER_SUCCEEDS:
        end_job(job, pod,
                cluster.silent
                    ? CONTAINER("\"terminated\":{\"exitCode\":0}")
                    : CONTAINER("\"terminated\":{\"exitCode\":0,\"message\":\"\\\"42\\\"\"}"),
                "Complete");
        return true;
    case CLUSTER_FAILS:
        end_job(job, pod, CONTAINER("\"terminated\":{\"exitCode\":3}"), "Failed");
        return true;
    case CLUSTER_DRAINS:
        cluster.mood = CLUSTER_RUNS;
        end_job(job, pod, "{\"reason\":\"Evicted\",\"message\":\"drained\"}", "Failed");
        return true;
    default:
        return false;
    }
}

static bool step_daemon(void)
{
    const cJSON *deployment = stage_get(&KIND_DEPLOYMENT, "one-daemon");
    const cJSON *pod = stage_get(&KIND_POD, "one-daemon-pod");

    if (pod &&
        (!deployment || !str_equal(kube_controller_uid(pod), metadata_of(deployment, "uid")))) {
        delete_pod(pod, "one-daemon-pod");
        return true;
    }
    if (!deployment || pod)
        return false;

    struct run *run = run_of(task_id(deployment));
    run->executions++;
    run->instances++;
    make_pod(deployment, &KIND_DEPLOYMENT, "one-daemon-pod");
    put_status(&KIND_DEPLOYMENT, stage_get(&KIND_DEPLOYMENT, "one-daemon"),
               "{\"availableReplicas\":1}");
    return true;
}

bool cluster_step(void)
{
    bool changed = step_job("one-job") || step_daemon();

    for (int i = 2; i <= MAX_JOBS && !changed; i++)
        changed = step_job(arena_printf(stage.arena, "one-job-%d", i));
    return changed;
}

void cluster_set_up(void)
{
    static const char *const NAMES[] = { "alpha", "beta" };

    stage.still = true;
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        cJSON *proplet = copy_of(stage_get(&KIND_PROPLET, NAMES[i]));
        cJSON *spec = (cJSON *)json_get(proplet, "spec");

        json_set_string(spec, "type", "k8s");
        json_set_string(json_set_object(spec, "k8s"), "image", "registry/proplet:1");
        json_set_copy(proplet, "status",
                      parsed(stage.arena, "{\"phase\":\"Running\",\"conditions\":[{\"type\":"
                                          "\"Ready\",\"status\":\"True\"}]}"));
        fake_api_put(stage.api, &KIND_PROPLET, proplet);
    }
}
