/* One hot path, so many times: for whoever counts its instructions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/api/kinds.h"
#include "common/base/str.h"
#include "common/kube/client.h"
#include "common/kube/watch.h"
#include "controller/cache/indexes.h"
#include "controller/task/plan/task_plan.h"
#include "webhook/admission.h"

#define CANDIDATES 100
#define REVIEW_PATH "/validate-propeller-propeller-abstractmachines-fr-v1-task"

#define METADATA                                                                                   \
    "\"metadata\":{\"name\":\"addition\",\"namespace\":\"default\",\"uid\":"                       \
    "\"3b2f1c4e-8d7a-4e65-b0a9-5c1d2e3f4a5b\",\"resourceVersion\":\"4711\",\"generation\":1,"      \
    "\"creationTimestamp\":\"2026-01-01T00:00:00Z\",\"finalizers\":[\"propeller.propeller."        \
    "abstractmachines.fr/task-finalizer\"],\"managedFields\":[{\"manager\":\"kubectl-create\","    \
    "\"operation\":\"Update\",\"apiVersion\":\"propeller.propeller.abstractmachines.fr/v1\","      \
    "\"time\":\"2026-01-01T00:00:00Z\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:spec\":{"     \
    "\".\":{},\"f:file\":{},\"f:functionName\":{},\"f:inputs\":{},\"f:name\":{}}}}]}"
#define SPEC                                                                                       \
    "\"spec\":{\"name\":\"addition\",\"functionName\":\"main\",\"inputs\":[10,32],\"file\":"       \
    "\"AGFzbQEAAAABBwFgAn9/AX8DAgEABwgBBG1haW4AAAoJAQcAIAAgAWoL\",\"priority\":50,"                \
    "\"preferredPropletType\":\"any\",\"kind\":\"standard\"}"
#define STATUS                                                                                     \
    "\"status\":{\"phase\":\"pending\",\"createdAt\":\"2026-01-01T00:00:00Z\",\"conditions\":[{"   \
    "\"type\":\"Scheduled\",\"status\":\"False\",\"observedGeneration\":1,\"lastTransitionTime\":" \
    "\"2026-01-01T00:00:00Z\",\"reason\":\"InsufficientCapacity\",\"message\":\"none of 100 "      \
    "Proplets fits: 100 at maxTasks\"}],\"observedGeneration\":1,\"attempt\":0,\"failures\":0,"    \
    "\"run\":0}"
#define OBJECT                                                                                     \
    "{\"apiVersion\":\"propeller.propeller.abstractmachines.fr/v1\",\"kind\":\"Task\"," METADATA   \
    "," SPEC "," STATUS "}"
#define PATCH "[{\"op\":\"replace\",\"path\":\"/status\",\"value\":{" STATUS "}}]"
#define KIND_OF(word, more)                                                                        \
    "\"" word "\":{\"group\":\"propeller.propeller.abstractmachines.fr\",\"version\":\"v1\"," more \
    "}"
#define REVIEW                                                                                     \
    "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{\"uid\":"   \
    "\"3b2f1c4e-8d7a-4e65-b0a9-5c1d2e3f4a5b\"," KIND_OF("kind", "\"kind\":\"Task\"") "," KIND_OF(  \
        "resource",                                                                                \
        "\"resource\":\"tasks\"") ",\"name\":\"addition\",\"namespace\":"                          \
                                  "\"default\",\"operation\":\"CREATE\",\"userInfo\":{},"          \
                                  "\"object\":" OBJECT                                             \
                                  ",\"oldObject\":null,\"dryRun\":false,\"options\":null}}"

/* Each does its path once, and stops the program if it does not end as it should. */

static void must(bool ok)
{
    if (!ok)
        abort();
}

static void parse(struct arena *arena)
{
    const cJSON *tree;

    must(json_parse(arena, OBJECT, strlen(OBJECT), &tree, NULL) == 0);
}

/* As the watch does it: what nobody reads becomes no tree. */
static void project(struct arena *arena)
{
    CLEANUP(kube_object_unrefp) struct kube_object *object = NULL;
    const char *unread[JSON_MAX_UNREAD + 1] = { "metadata.managedFields" };
    const struct json_reading reading = { .unread = unread, .texts = KIND_TASK.texts };
    const cJSON *tree;
    struct error err = { 0 };

    for (size_t i = 0; UNREAD_OF_TASK[i]; i++)
        unread[i + 1] = UNREAD_OF_TASK[i];
    must(json_parse_with(arena, OBJECT, strlen(OBJECT), &reading, &tree, &err) == 0);
    must(watch_keep(project_task, (cJSON *)tree, &KIND_TASK, &object, &err) == 0);
}

/* A status write: the patch is printed, the reply parsed and kept in the cache. */
static int reply(void *ctx UNUSED, struct arena *arena UNUSED,
                 const struct http_request *request UNUSED, struct http_response *ret,
                 struct error *err UNUSED)
{
    *ret = (struct http_response){ .status = 200, .body = OBJECT, .body_len = strlen(OBJECT) };
    return 0;
}

static void write_status(struct arena *arena)
{
    static const struct kube_name NAME = { .ns = "default", .name = "addition" };
    struct kube_client *client = kube_client_create_with(reply, NULL);
    CLEANUP(kube_object_unrefp) struct kube_object *object = NULL;
    const cJSON *patch;
    struct error err = { 0 };
    cJSON *answer = NULL;

    must(json_parse(arena, PATCH, strlen(PATCH), &patch, &err) == 0);
    must(kube_patch(client, arena, &KIND_TASK, &NAME, KUBE_STATUS, KUBE_PATCH_JSON, patch, &answer,
                    &err) == 0);
    must(watch_keep(project_task, answer, &KIND_TASK, &object, &err) == 0);
    kube_client_destroy(client);
}

static struct candidate candidates[CANDIDATES];

static void prepare(void)
{
    static const struct proplet PROPLET = { .spec = { .type = PROPLET_EXTERNAL } };
    static char names[CANDIDATES][16];

    for (size_t i = 0; i < CANDIDATES; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "worker-%02zu", i);
        candidates[i] = (struct candidate){ .name = names[i], .proplet = &PROPLET, .ready = true };
    }
}

static void plan(struct arena *arena)
{
    const cJSON *tree;
    struct task_observed observed = { .uid = "3b2f1c4e-8d7a-4e65-b0a9-5c1d2e3f4a5b",
                                      .name = "addition",
                                      .generation = 1,
                                      .has_finalizer = true,
                                      .mqtt_configured = true,
                                      .now_us = INT64_C(1767225600000000),
                                      .scheduler = &SCHEDULER_ROUND_ROBIN };

    must(json_parse(arena, OBJECT, strlen(OBJECT), &tree, NULL) == 0);
    must(task_decode(arena, tree, &observed.task, NULL) == 0);
    observed.candidates = (struct schedule_context){ .candidates = candidates,
                                                     .len = CANDIDATES,
                                                     .last_selected = "worker-50" };
    must(task_plan(arena, &observed).action == TASK_ASSIGN);
}

static void review(struct arena *arena)
{
    static const struct admission_settings SETTINGS = { 0 };
    struct admission_answer answer;
    struct error err = { 0 };

    must(admission_review(arena, admission_hook_find(REVIEW_PATH), &SETTINGS, REVIEW,
                          strlen(REVIEW), &answer, &err) == 0);
    must(answer.allowed);
}

static const struct {
    const char *name;
    void (*run)(struct arena *arena);
} PATHS[] = { { "parse", parse },
              { "project", project },
              { "write", write_status },
              { "plan", plan },
              { "review", review } };

static int usage(void)
{
    (void)fprintf(stderr, "usage: paths parse|project|write|plan|review TIMES\n");
    return 2;
}

int main(int argc, char **argv)
{
    int64_t times;

    if (argc != 3 || !str_to_int64(argv[2], &times) || times < 0)
        return usage();

    json_init();
    prepare();
    for (size_t i = 0; i < ARRAY_LEN(PATHS); i++) {
        if (!str_equal(PATHS[i].name, argv[1]))
            continue;
        for (int64_t j = 0; j < times; j++) {
            CLEANUP(arena_destroyp) struct arena *arena = arena_create();
            PATHS[i].run(arena);
        }
        return 0;
    }
    return usage();
}
