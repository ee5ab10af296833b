#include "controller/federated/coordinator.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/api/kinds.h"
#include "common/base/alloc.h"
#include "common/base/str.h"
#include "common/runtime/metrics.h"
#include "controller/bridge/bridge_messages.h"
#include "controller/federated/federatedjob_plan.h"
#include "controller/federated/round_observe.h"
#include "controller/federated/round_order.h"
#include "controller/federated/uploads.h"

struct coordinator {
    struct coordinator_options options;
    struct http_server *server;
    struct uploads *uploads;
};

static struct metric REQUESTS = { .type = METRIC_COUNTER,
                                  .name = "propeller_coordinator_requests_total",
                                  .help = "Number of requests of devices, for updates and models.",
                                  .labels = { "what", "code" } };

struct coordinator *coordinator_create(const struct coordinator_options *options)
{
    struct coordinator *coordinator = xcalloc(1, sizeof(*coordinator));

    coordinator->options = *options;
    coordinator->uploads = uploads_create();
    return coordinator;
}

void coordinator_destroy(struct coordinator *coordinator)
{
    if (!coordinator)
        return;
    coordinator_stop(coordinator);
    uploads_destroy(coordinator->uploads);
    free(coordinator);
}

int coordinator_start(struct coordinator *coordinator, struct error *err)
{
    const struct http_server_options options = {
        .address = coordinator->options.address,
        .handler = coordinator_handle,
        .admit = coordinator_admit,
        .ctx = coordinator,
        .threads = COORDINATOR_THREADS,
        .max_connections = COORDINATOR_MAX_CONNECTIONS,
        .max_body = coordinator->options.max_update,
        .max_bodies = COORDINATOR_MAX_BODIES,
        .small_body = UPLOADS_LARGE,
        .wait_ms = COORDINATOR_PATIENCE_MS,
        .request_timeout_ms = COORDINATOR_TIMEOUT_MS,
        .min_rate = COORDINATOR_MIN_RATE,
    };
    int r = http_server_start(&options, &coordinator->server, err);

    if (r == 0)
        uploads_open(coordinator->uploads, coordinator->server);
    return r;
}

unsigned coordinator_port(const struct coordinator *coordinator)
{
    return coordinator->server ? http_server_port(coordinator->server) : 0;
}

void coordinator_stop(struct coordinator *coordinator)
{
    uploads_close(coordinator->uploads);
    http_server_stop(coordinator->server);
    coordinator->server = NULL;
}

/* Those whose turn has come go to their Tasks. */
static void hand_out(struct coordinator *coordinator)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct coordinator_options *options = &coordinator->options;
    struct upload_sender sender;

    while (uploads_next(coordinator->uploads, arena, &sender)) {
        const struct mail mail = {
            .kind = MAIL_UPDATE,
            .source = arena_printf(arena, "%s#%" PRIu64, sender.id, sender.token),
            .body = "",
        };
        struct kube_name name;
        uint64_t sequence;

        if (mailbox_put(options->mailbox, sender.uid, &mail, &sequence) != MAILBOX_TAKEN) {
            uploads_tell(coordinator->uploads, sender.token, 503);
            continue;
        }
        mailbox_hold(options->mailbox, sender.uid,
                     sequence); /* its answer is its acknowledgement */
        if (!store_name_of_uid(informer_store(options->tasks), sender.uid, &name)) {
            mailbox_ack(options->mailbox, sender.uid, UINT64_MAX); /* deleted meanwhile */
            uploads_tell(coordinator->uploads, sender.token, 404);
        } else {
            workqueue_add(options->task_queue, &sender.task);
        }
    }
}

const char *coordinator_read(struct coordinator *coordinator, struct arena *arena,
                             const char *asker, size_t *ret_len)
{
    int64_t token;

    return coordinator && str_to_int64(asker, &token) && token > 0
               ? uploads_read(coordinator->uploads, arena, (uint64_t)token, ret_len)
               : NULL;
}

size_t coordinator_count(struct coordinator *coordinator, const char *uid)
{
    return coordinator ? uploads_count(coordinator->uploads, uid) : 0;
}

void coordinator_pass(struct coordinator *coordinator, const char *uid)
{
    if (!coordinator)
        return;
    uploads_pass(coordinator->uploads, uid);
    hand_out(coordinator);
}

void coordinator_forget(struct coordinator *coordinator, const char *uid)
{
    if (!coordinator)
        return;
    uploads_forget(coordinator->uploads, uid);
    hand_out(coordinator);
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
    struct store *tasks = informer_store(coordinator->options.tasks);
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

void coordinator_answer(struct coordinator *coordinator, const char *asker,
                        enum result_verdict verdict)
{
    int64_t token;

    if (!str_to_int64(asker, &token) || token <= 0)
        return;
    uploads_tell(coordinator->uploads, (uint64_t)token, status_of(verdict));
    hand_out(coordinator);
}

/* A request that waits, as long as its arena lives. */
struct ticket {
    struct uploads *uploads;
    uint64_t token;
};

static void leave(void *data)
{
    const struct ticket *ticket = data;

    (void)uploads_leave(ticket->uploads, ticket->token);
}

static int take_update(struct coordinator *coordinator, struct arena *arena, const char *id,
                       const struct http_server_request *request)
{
    struct upload_sender sender = { .token = request->id,
                                    .uid = message_id_uid(arena, id),
                                    .id = id };
    int status;

    if (request->is_last_call) {
        status = uploads_leave(coordinator->uploads, request->id);
        return status ? status : 503;
    }
    status = check_task(coordinator, arena, id, sender.uid, &sender.task);
    if (status)
        return status;
    if (!uploads_add(coordinator->uploads, &sender, http_body_keep(request)))
        return 503;

    struct ticket *ticket = arena_new(arena, struct ticket);
    *ticket = (struct ticket){ coordinator->uploads, sender.token };
    arena_own(arena, ticket, leave);
    hand_out(coordinator);
    return HTTP_LATER;
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
    struct store *jobs = informer_store(coordinator->options.jobs);
    struct kube_name name, round_name;

    if (!store_name_of_uid(jobs, job_uid, &name) ||
        !kube_name_set(&round_name, name.ns, federated_round_name(arena, name.name, version + 1)))
        return "";
    *ret_scope = (struct model_scope){ .kind = &KIND_FEDERATEDJOB, .owner = name, .uid = job_uid };

    const cJSON *round =
        read_object(informer_store(coordinator->options.rounds), arena, &round_name);
    if (round && str_equal(kube_controller_uid(round), job_uid))
        return json_string(json_path(round, "spec", "modelRef", NULL), "");

    const cJSON *status = json_get(read_object(jobs, arena, &name), "status");
    if (version < 1 || json_int(json_get(status, "completedRounds"), 0) != version)
        return "";
    return json_string(json_get(status, "aggregatedModelRef"), "");
}

static void unref_model(void *model)
{
    cached_model_unref(model);
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
    int r = model_cache_get(coordinator->options.cache, &scope, reference, &model, &err);
    if (r < 0)
        return r == -ERROR_NOT_FOUND || r == -ERROR_INVALID ? 404 : 503;

    ret->body = model->model.bytes;
    ret->body_len = model->model.bytes_len;
    ret->content_type = model->model.shape ? "application/json" : "application/octet-stream";
    arena_own(arena, TAKE(model), unref_model); /* the same bytes for all who ask */
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

    if (!coordinator->options.leads(coordinator->options.leads_ctx))
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

static void count(struct arena *arena, const char *path, int status)
{
    if (status != HTTP_LATER)
        metric_add(&REQUESTS, 1, str_has_prefix(path, "/t/") ? "update" : "model",
                   arena_printf(arena, "%d", status), NULL);
}

int coordinator_admit(void *ctx, struct arena *arena, const struct http_server_request *request)
{
    struct coordinator *coordinator = ctx;
    const char *task = middle(arena, request->path, "/t/", "/update");
    struct kube_name name;
    int status = 405;

    if (!coordinator->options.leads(coordinator->options.leads_ctx))
        status = 503;
    else if (task && str_equal(request->method, "POST"))
        status = check_task(coordinator, arena, task, message_id_uid(arena, task), &name);
    count(arena, request->path, status);
    return status;
}

void coordinator_handle(void *ctx, struct arena *arena, const struct http_server_request *request,
                        struct http_server_reply *ret)
{
    ret->status = answer(ctx, arena, request, ret);
    count(arena, request->path, ret->status);
}
