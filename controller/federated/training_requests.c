#include "controller/federated/training_requests.h"

#include <inttypes.h>
#include <string.h>

#include "common/api/kinds.h"
#include "common/base/str.h"
#include "controller/bridge/bridge_messages.h"
#include "controller/federated/round_observe.h"
#include "controller/federated/round_order.h"
#include "controller/federated/training_task.h"

static int refuse(int status, const char *reason)
{
    bridge_count_rejected(reason, 1);
    return status;
}

/* 0: it may send an update now; otherwise what it is told. */
static int check_task(const struct training_requests *self, struct arena *arena, const char *id,
                      const char *uid, struct kube_name *ret_name)
{
    struct store *tasks = informer_store(self->tasks);
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

int training_request_status(enum result_verdict verdict)
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

/* --- updates ---------------------------------------------------------------------------------- */

static const char *task_of(struct arena *arena, const char *path)
{
    return coordinator_part(arena, path, "/t/", "/update");
}

static bool owns_update(const char *path)
{
    size_t len = strlen(path);

    return str_has_prefix(path, "/t/") && len > strlen("/update") &&
           str_equal(path + len - strlen("/update"), "/update");
}

static int admit_update(void *self, struct arena *arena, const struct http_server_request *request)
{
    const char *id = task_of(arena, request->path);
    struct kube_name name;

    if (!id || !str_equal(request->method, "POST"))
        return 405;
    return check_task(self, arena, id, message_id_uid(arena, id), &name);
}

static int answer_update(void *ctx, struct arena *arena, const struct http_server_request *request,
                         struct http_server_reply *ret UNUSED)
{
    const struct training_requests *self = ctx;
    const char *id = task_of(arena, request->path);

    if (!id)
        return 404;
    if (!str_equal(request->method, "POST"))
        return 405;

    struct upload_sender sender = { .service = &UPDATE_SERVICE,
                                    .uid = message_id_uid(arena, id),
                                    .id = id };
    int status = request->is_last_call ? 0 : check_task(self, arena, id, sender.uid, &sender.task);
    return status ? status : coordinator_take(self->coordinator, arena, request, &sender);
}

static int deliver_update(void *ctx, struct arena *arena, const struct upload_sender *sender)
{
    const struct training_requests *self = ctx;
    const struct mail mail = {
        .kind = MAIL_UPDATE,
        .source = arena_printf(arena, "%s#%" PRIu64, sender->id, sender->token),
        .body = "",
    };
    struct kube_name name;
    uint64_t sequence;

    if (mailbox_put(self->mailbox, sender->uid, &mail, &sequence) != MAILBOX_TAKEN)
        return 503;
    mailbox_hold(self->mailbox, sender->uid, sequence); /* its answer is its acknowledgement */
    if (!store_name_of_uid(informer_store(self->tasks), sender->uid, &name)) {
        mailbox_ack(self->mailbox, sender->uid, UINT64_MAX); /* deleted meanwhile */
        return 404;
    }
    workqueue_add(self->task_queue, &sender->task);
    return 0;
}

const struct coordinator_service UPDATE_SERVICE = {
    .what = "update",
    .owns = owns_update,
    .admit = admit_update,
    .answer = answer_update,
    .deliver = deliver_update,
};

/* --- models ----------------------------------------------------------------------------------- */

static const cJSON *read_object(struct store *store, struct arena *arena,
                                const struct kube_name *name)
{
    CLEANUP(kube_object_unrefp) struct kube_object *object = store_get(store, name);

    return object ? kube_object_json(arena, object) : NULL;
}

/* The model that attempts of this round begin with, all with the same; NULL: there is no such round. */
static const char *model_of_round(const struct training_requests *self, struct arena *arena,
                                  const char *job_uid, int64_t number)
{
    struct object_list rounds =
        store_find(informer_store(self->rounds), arena, INDEX_ROUND_JOB, job_uid);

    for (size_t i = 0; i < rounds.len; i++) {
        const cJSON *round = kube_object_json(arena, rounds.items[i]);
        if (training_round_number(round) == number)
            return json_string(json_path(round, "spec", "modelRef", NULL), "");
    }
    return NULL;
}

/* What the round after this version begins with; the last model, while there is no such round. */
static const char *find_model(const struct training_requests *self, struct arena *arena,
                              const char *job_uid, int64_t version, struct model_scope *ret_scope)
{
    struct store *jobs = informer_store(self->jobs);
    struct kube_name name;

    if (!store_name_of_uid(jobs, job_uid, &name))
        return "";
    *ret_scope = (struct model_scope){ .kind = &KIND_FEDERATEDJOB, .owner = name, .uid = job_uid };

    const char *model = model_of_round(self, arena, job_uid, version + 1);
    if (model)
        return model;
    const cJSON *status = json_get(read_object(jobs, arena, &name), "status");
    if (version < 1 || json_int(json_get(status, "completedRounds"), 0) != version)
        return "";
    return json_string(json_get(status, "aggregatedModelRef"), "");
}

static void unref_model(void *model)
{
    cached_model_unref(model);
}

static int send_model(const struct training_requests *self, struct arena *arena,
                      const char *job_uid, int64_t version, struct http_server_reply *ret)
{
    CLEANUP(cached_model_unrefp) struct cached_model *model = NULL;
    struct model_scope scope;
    struct error err = { 0 };
    const char *reference = find_model(self, arena, job_uid, version, &scope);

    if (str_is_empty(reference))
        return 404;
    int r = model_cache_get(self->cache, &scope, reference, &model, &err);
    if (r < 0)
        return r == -ERROR_NOT_FOUND || r == -ERROR_INVALID ? 404 : 503;

    ret->body = model->model.bytes;
    ret->body_len = model->model.bytes_len;
    ret->content_type = model->model.shape ? "application/json" : "application/octet-stream";
    arena_own(arena, TAKE(model), unref_model); /* the same bytes for all who ask */
    return 200;
}

static bool owns_model(const char *path)
{
    return str_has_prefix(path, "/j/");
}

static int answer_model(void *self, struct arena *arena, const struct http_server_request *request,
                        struct http_server_reply *ret)
{
    const char *models = strstr(request->path, "/models/");
    int64_t version;

    if (!models || !str_to_int64(models + strlen("/models/"), &version) || version < 0)
        return 404;

    const char *job = coordinator_part(arena, request->path, "/j/", models);
    if (!job)
        return 404;
    return str_equal(request->method, "GET") ? send_model(self, arena, job, version, ret) : 405;
}

const struct coordinator_service MODEL_SERVICE = {
    .what = "model",
    .owns = owns_model,
    .answer = answer_model,
};
