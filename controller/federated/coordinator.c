#include "controller/federated/coordinator.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/cond.h"
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "common/runtime/metrics.h"
#include "controller/bridge/bridge_messages.h"
#include "controller/federated/federatedjob_plan.h"
#include "controller/federated/model_cache.h"
#include "controller/federated/round_observe.h"
#include "controller/federated/round_order.h"

enum asker_state { ASKER_FREE, ASKER_WAITS, ASKER_TOLD };

struct asker {
    enum asker_state state;
    uint64_t token; /* never given twice */
    enum result_verdict verdict;
};

struct coordinator {
    struct shared *shared;
    bool (*leads)(void *ctx);
    void *leads_ctx;
    struct http_server *server;

    pthread_mutex_t lock; /* leaf: guards what follows */
    pthread_cond_t told;
    struct asker askers[COORDINATOR_MAX_WAITING];
    uint64_t last_token;
    bool stopping;
};

static struct metric REQUESTS = { .type = METRIC_COUNTER,
                                  .name = "propeller_coordinator_requests_total",
                                  .help = "Requests of devices: updates and models.",
                                  .labels = { "what", "code" } };

struct coordinator *coordinator_create(struct shared *shared, bool (*leads)(void *ctx), void *ctx)
{
    struct coordinator *coordinator = xcalloc(1, sizeof(*coordinator));

    coordinator->shared = shared;
    coordinator->leads = leads;
    coordinator->leads_ctx = ctx;
    pthread_mutex_init(&coordinator->lock, NULL);
    cond_init(&coordinator->told);
    return coordinator;
}

void coordinator_destroy(struct coordinator *coordinator)
{
    if (!coordinator)
        return;
    coordinator_stop(coordinator);
    pthread_cond_destroy(&coordinator->told);
    pthread_mutex_destroy(&coordinator->lock);
    free(coordinator);
}

int coordinator_start(struct coordinator *coordinator, const char *address, struct error *err)
{
    const struct http_server_options options = {
        .address = address,
        .handler = coordinator_handle,
        .ctx = coordinator,
        .threads = COORDINATOR_THREADS,
        .max_connections = COORDINATOR_MAX_CONNECTIONS,
        .max_body = model_store_max_bytes(coordinator->shared->round_models),
        .max_bodies = COORDINATOR_MAX_BODIES,
        .request_timeout_ms = 2 * COORDINATOR_PATIENCE_MS,
    };

    return http_server_start(&options, &coordinator->server, err);
}

unsigned coordinator_port(const struct coordinator *coordinator)
{
    return coordinator->server ? http_server_port(coordinator->server) : 0;
}

void coordinator_stop(struct coordinator *coordinator)
{
    pthread_mutex_lock(&coordinator->lock);
    coordinator->stopping = true;
    pthread_cond_broadcast(&coordinator->told);
    pthread_mutex_unlock(&coordinator->lock);
    http_server_stop(coordinator->server);
    coordinator->server = NULL;
}

/* 0: no room. */
static uint64_t begin_waiting(struct coordinator *coordinator)
{
    uint64_t token = 0;

    pthread_mutex_lock(&coordinator->lock);
    for (size_t i = 0; i < COORDINATOR_MAX_WAITING && !token && !coordinator->stopping; i++) {
        struct asker *asker = &coordinator->askers[i];
        if (asker->state != ASKER_FREE)
            continue;
        token = ++coordinator->last_token;
        *asker = (struct asker){ .state = ASKER_WAITS, .token = token };
    }
    pthread_mutex_unlock(&coordinator->lock);
    return token;
}

/* With the lock held. */
static struct asker *find_asker(struct coordinator *coordinator, uint64_t token)
{
    for (size_t i = 0; i < COORDINATOR_MAX_WAITING; i++) {
        if (coordinator->askers[i].state != ASKER_FREE && coordinator->askers[i].token == token)
            return &coordinator->askers[i];
    }
    return NULL;
}

/* false: nobody said anything in time. */
static bool end_waiting(struct coordinator *coordinator, uint64_t token, uint32_t timeout_ms,
                        enum result_verdict *ret)
{
    struct timespec deadline = cond_deadline(timeout_ms);
    bool in_time = true;

    pthread_mutex_lock(&coordinator->lock);
    struct asker *asker = find_asker(coordinator, token);
    while (asker && asker->state == ASKER_WAITS && in_time && !coordinator->stopping)
        in_time = cond_wait_until(&coordinator->told, &coordinator->lock, &deadline);

    bool is_told = asker && asker->state == ASKER_TOLD;
    if (is_told)
        *ret = asker->verdict;
    if (asker)
        asker->state = ASKER_FREE;
    pthread_mutex_unlock(&coordinator->lock);
    return is_told;
}

void coordinator_answer(struct coordinator *coordinator, const char *asker,
                        enum result_verdict verdict)
{
    int64_t token;

    if (!str_to_int64(asker, &token) || token <= 0)
        return;
    pthread_mutex_lock(&coordinator->lock);
    struct asker *found = find_asker(coordinator, (uint64_t)token);
    if (found) {
        found->state = ASKER_TOLD;
        found->verdict = verdict;
        pthread_cond_broadcast(&coordinator->told);
    }
    pthread_mutex_unlock(&coordinator->lock);
}

static int refuse(int status, const char *reason)
{
    bridge_count_rejected(reason, 1);
    return status;
}

/* 0: it may send an update now; otherwise what it is told. */
static int check_task(struct coordinator *coordinator, struct arena *arena, const char *id,
                      const char *uid, struct kube_name *ret_name)
{
    struct store *tasks = informer_store(coordinator->shared->tasks);
    int64_t attempt, index;

    if (!message_id_numbers(id, &attempt, &index) || index >= 0 ||
        !store_name_of_uid(tasks, uid, ret_name))
        return refuse(404, "unknown_task");

    CLEANUP(kube_object_unrefp) struct kube_object *object = store_get(tasks, ret_name);
    const cJSON *json = object ? kube_object_json(arena, object) : NULL;
    const cJSON *status = json_get(json, "status");
    const char *phase = json_string(json_get(status, "phase"), "");

    if (!json || !round_owns(json))
        return refuse(404, "unknown_task");
    if (str_equal(phase, TASK_PHASE_NAMES[TASK_COMPLETED]))
        return refuse(404, "duplicate");
    if (!str_equal(phase, TASK_PHASE_NAMES[TASK_SCHEDULED]) &&
        !str_equal(phase, TASK_PHASE_NAMES[TASK_RUNNING]))
        return refuse(404, "not_running");
    if (json_int(json_get(status, "attempt"), 1) != attempt)
        return refuse(404, "other_attempt");
    return 0;
}

static int status_of(enum result_verdict verdict)
{
    switch (verdict) {
    case RESULT_ACCEPTED:
        return 200;
    case RESULT_INVALID_UPDATE:
        return 422;
    default:
        return 409;
    }
}

static int take_update(struct coordinator *coordinator, struct arena *arena, const char *id,
                       const struct http_server_request *request)
{
    const char *uid = message_id_uid(arena, id);
    enum result_verdict verdict;
    struct kube_name name;
    int status = check_task(coordinator, arena, id, uid, &name);
    if (status)
        return status;

    uint64_t token = begin_waiting(coordinator);
    if (!token)
        return 503;

    const struct mail mail = { .kind = MAIL_UPDATE,
                               .source = arena_printf(arena, "%s#%" PRIu64, id, token),
                               .body = request->body,
                               .body_len = request->body_len };
    if (!mailbox_put(coordinator->shared->mailbox, uid, &mail, NULL)) {
        end_waiting(coordinator, token, 0, &verdict);
        return 503;
    }
    workqueue_add(coordinator->shared->task_queue, &name);
    if (!store_name_of_uid(informer_store(coordinator->shared->tasks), uid, &name)) {
        mailbox_ack(coordinator->shared->mailbox, uid, UINT64_MAX); /* deleted meanwhile */
        end_waiting(coordinator, token, 0, &verdict);
        return 404;
    }
    return end_waiting(coordinator, token, COORDINATOR_PATIENCE_MS, &verdict) ? status_of(verdict)
                                                                              : 503;
}

static const cJSON *read_object(struct store *store, struct arena *arena,
                                const struct kube_name *name)
{
    CLEANUP(kube_object_unrefp) struct kube_object *object = store_get(store, name);

    return object ? kube_object_json(arena, object) : NULL;
}

/* What the round after this version begins with; the last model, while there is no such round. */
static const char *find_model(struct coordinator *coordinator, struct arena *arena,
                              const char *job_uid, int64_t version, struct model_scope *ret_scope)
{
    struct store *jobs = informer_store(coordinator->shared->federated_jobs);
    struct kube_name name, round_name;

    if (!store_name_of_uid(jobs, job_uid, &name) ||
        !kube_name_set(&round_name, name.ns, federated_round_name(arena, name.name, version + 1)))
        return "";
    *ret_scope = (struct model_scope){ .kind = &KIND_FEDERATEDJOB, .owner = name, .uid = job_uid };

    const cJSON *round =
        read_object(informer_store(coordinator->shared->rounds), arena, &round_name);
    if (round && str_equal(kube_controller_uid(round), job_uid))
        return json_string(json_path(round, "spec", "modelRef", NULL), "");

    const cJSON *status = json_get(read_object(jobs, arena, &name), "status");
    if (version < 1 || json_int(json_get(status, "completedRounds"), 0) != version)
        return "";
    return json_string(json_get(status, "aggregatedModelRef"), "");
}

static int send_model(struct coordinator *coordinator, struct arena *arena, const char *job_uid,
                      int64_t version, struct http_server_reply *ret)
{
    CLEANUP(cached_model_unrefp) struct cached_model *model = NULL;
    struct model_scope scope;
    struct error err = { 0 };
    const char *reference = find_model(coordinator, arena, job_uid, version, &scope);

    if (str_is_empty(reference))
        return 404;
    int r = model_cache_get(coordinator->shared->model_cache, &scope, reference, &model, &err);
    if (r < 0)
        return r == -ERROR_NOT_FOUND || r == -ERROR_INVALID ? 404 : 503;

    char *body = arena_alloc(arena, model->model.bytes_len + 1, 1);
    memcpy(body, model->model.bytes, model->model.bytes_len);
    ret->body = body;
    ret->body_len = model->model.bytes_len;
    ret->content_type = model->model.shape ? "application/json" : "application/octet-stream";
    return 200;
}

/* "<prefix><part><suffix>"; NULL: it is not of that form. */
static const char *middle(struct arena *arena, const char *path, const char *prefix,
                          const char *suffix)
{
    size_t len = strlen(path), before = strlen(prefix), after = strlen(suffix);

    if (!str_has_prefix(path, prefix) || len <= before + after ||
        !str_equal(path + len - after, suffix))
        return NULL;
    const char *part = arena_strndup(arena, path + before, len - before - after);
    return strchr(part, '/') ? NULL : part;
}

static int answer(struct coordinator *coordinator, struct arena *arena,
                  const struct http_server_request *request, struct http_server_reply *ret)
{
    const char *task = middle(arena, request->path, "/t/", "/update");
    const char *models = strstr(request->path, "/models/");
    int64_t version;

    if (!coordinator->leads(coordinator->leads_ctx))
        return 503;
    if (task)
        return str_equal(request->method, "POST") ? take_update(coordinator, arena, task, request)
                                                  : 405;
    if (!models || !str_to_int64(models + strlen("/models/"), &version) || version < 0)
        return 404;

    const char *job = middle(arena, request->path, "/j/", models);
    if (!job)
        return 404;
    return str_equal(request->method, "GET") ? send_model(coordinator, arena, job, version, ret)
                                             : 405;
}

void coordinator_handle(void *ctx, struct arena *arena, const struct http_server_request *request,
                        struct http_server_reply *ret)
{
    bool is_update = str_has_prefix(request->path, "/t/");

    ret->status = answer(ctx, arena, request, ret);
    metric_add(&REQUESTS, 1, is_update ? "update" : "model", arena_printf(arena, "%d", ret->status),
               NULL);
}
