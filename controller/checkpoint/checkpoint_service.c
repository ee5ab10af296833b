/* The requests of devices about checkpoints. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/api/kinds.h"
#include "common/base/alloc.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "controller/checkpoint/checkpoint.h"
#include "controller/checkpoint/checkpoint_query.h"
#include "controller/device/messages.h"
#include "controller/task/plan/task_checkpoint_plan.h"

#define SUFFIX "/checkpoint"
/* Of a request that found no room; seconds. */
#define BUSY_RETRY 10

struct checkpoint_sending {
    atomic_size_t bytes;
};

struct checkpoint_sending *checkpoint_sending_create(void)
{
    return xcalloc(1, sizeof(struct checkpoint_sending));
}

void checkpoint_sending_destroy(struct checkpoint_sending *sending)
{
    free(sending);
}

/* A request, read as far as its path says. */
struct asked {
    const struct checkpoint_deps *deps;
    struct arena *arena;
    const char *id; /* NULL: the path has none */
    const char *uid;
    struct kube_name name;
    struct task_observed task;
    struct observed_checkpoint checkpoint;
};

static bool owns(const char *path)
{
    size_t len = strlen(path);

    return str_has_prefix(path, "/t/") && len > strlen(SUFFIX) &&
           str_equal(path + len - strlen(SUFFIX), SUFFIX);
}

bool checkpoint_read_task(const struct checkpoint_deps *deps, struct arena *arena,
                          const struct kube_name *name, struct task_observed *ret)
{
    CLEANUP(kube_object_unrefp)
    struct kube_object *object = store_get(informer_store(deps->tasks), name);

    *ret = (struct task_observed){ 0 };
    if (!object || task_decode(arena, kube_object_json(arena, object), &ret->task, NULL) < 0)
        return false;
    ret->uid = arena_strdup(arena, object->uid);
    ret->now_us = timeline_now_us(deps->timeline, &ret->time);
    return true;
}

/* 0, or the status of a request for a Task that takes no checkpoints. */
static int find_task(struct asked *asked)
{
    struct store *tasks = informer_store(asked->deps->tasks);
    int64_t attempt, index;

    if (!asked->id || !message_id_numbers(asked->id, &attempt, &index) || index >= 0)
        return 404;
    asked->uid = message_id_uid(asked->arena, asked->id);
    if (!store_name_of_uid(tasks, asked->uid, &asked->name) ||
        !checkpoint_read_task(asked->deps, asked->arena, &asked->name, &asked->task))
        return 404;
    return 0;
}

static int read_checkpoint(struct asked *asked, const char *query, struct error *err)
{
    struct checkpoint_query said;
    int r = checkpoint_query_parse(asked->arena, query, &said, err);
    if (r < 0)
        return r;
    asked->checkpoint = (struct observed_checkpoint){ .message_id = asked->id,
                                                      .step = said.step,
                                                      .samples = said.samples,
                                                      .sha256 = said.sha256,
                                                      .uri = said.uri };
    return 0;
}

static struct asked ask(void *self, struct arena *arena, const struct http_server_request *request)
{
    return (struct asked){ .deps = self,
                           .arena = arena,
                           .id = coordinator_part(arena, request->path, "/t/", SUFFIX) };
}

static bool is_put(const struct http_server_request *request)
{
    return str_equal(request->method, "PUT") || str_equal(request->method, "POST");
}

/* 0: it may be taken, or is there already. */
static int judge(struct asked *asked, const char *query, struct error *err)
{
    if (read_checkpoint(asked, query, err) < 0)
        return 400;

    int status = find_task(asked);
    if (status)
        return status;
    enum checkpoint_verdict verdict =
        checkpoint_judge(asked->arena, &asked->task, &asked->checkpoint);
    status = checkpoint_status(verdict);
    return status == 200 ? 0 : status;
}

static int admit(void *self, struct arena *arena, const struct http_server_request *request)
{
    struct asked asked = ask(self, arena, request);

    return is_put(request) ? judge(&asked, request->query, NULL) : 405;
}

static void say(struct arena *arena, int status, const char *message, int64_t wait_s,
                struct http_server_reply *ret)
{
    if (message)
        ret->body = arena_printf(arena, "%s\n", message);
    if (message)
        ret->body_len = strlen(ret->body);
    if (status == 429 || status == 503)
        ret->headers[0] =
            (struct http_header){ "Retry-After", arena_printf(arena, "%" PRId64,
                                                              wait_s > 0 ? wait_s : BUSY_RETRY) };
}

static void refuse(void *self, struct arena *arena, const struct http_server_request *request,
                   int status, struct http_server_reply *ret)
{
    struct asked asked = ask(self, arena, request);
    struct error err = { 0 };

    (void)judge(&asked, request->query, &err);
    say(arena, status, status == 400 ? err.message : NULL, checkpoint_wait_seconds(&asked.task),
        ret);
}

/* --- handing over --- */

static int give_back(struct asked *asked, const struct http_server_request *request, int status,
                     struct http_server_reply *ret)
{
    struct error err = { 0 };

    if (status != 200) {
        (void)find_task(asked);
        say(asked->arena, status, NULL, checkpoint_wait_seconds(&asked->task), ret);
        return status;
    }
    (void)read_checkpoint(asked, request->query, &err);
    ret->content_type = "application/json";
    ret->body = arena_printf(asked->arena, "{\"step\":%" PRId64 "}", asked->checkpoint.step);
    ret->body_len = strlen(ret->body);
    return 200;
}

static int put(struct asked *asked, const struct http_server_request *request,
               struct http_server_reply *ret)
{
    struct coordinator *coordinator = asked->deps->coordinator;
    struct upload_sender sender = { .service = &CHECKPOINT_SERVICE,
                                    .id = asked->id,
                                    .query = request->query };
    struct error err = { 0 };

    if (request->is_last_call)
        return give_back(asked, request,
                         coordinator_take(coordinator, asked->arena, request, &sender), ret);

    int status = judge(asked, request->query, &err);
    if (status == 0 && (asked->checkpoint.uri != NULL) == (request->body_len > 0)) {
        (void)error_set(&err, ERROR_INVALID,
                        "uri: needs an empty body; without it the body is the "
                        "checkpoint, which must not be empty");
        status = 400;
    }
    if (status == 0 &&
        coordinator_count(coordinator, &CHECKPOINT_SERVICE, asked->uid) >= CHECKPOINT_MAX_WAITING)
        status = 503;
    if (status) {
        say(asked->arena, status, status == 400 ? err.message : NULL,
            checkpoint_wait_seconds(&asked->task), ret);
        return status;
    }
    sender.uid = asked->uid;
    sender.task = asked->name;
    status = coordinator_take(coordinator, asked->arena, request, &sender);
    if (status == 503)
        say(asked->arena, status, NULL, 0, ret);
    return status;
}

static int deliver(void *self, struct arena *arena, const struct upload_sender *sender)
{
    const struct checkpoint_deps *deps = self;
    struct asked asked = { .deps = deps, .arena = arena, .id = sender->id };
    struct error err = { 0 };

    if (read_checkpoint(&asked, sender->query, &err) < 0)
        return 400;
    asked.checkpoint.token = sender->token;
    if (!checkpoint_inbox_add(deps->inbox, sender->uid, &asked.checkpoint))
        return 503;

    struct kube_name name;
    if (!store_name_of_uid(informer_store(deps->tasks), sender->uid, &name)) {
        checkpoint_inbox_forget(deps->inbox, sender->uid); /* deleted meanwhile */
        return 404;
    }
    workqueue_add(deps->queue, &sender->task);
    return 0;
}

/* --- fetching --- */

/* Room for a body that is sent, as long as the arena of its request lives. */
struct room {
    struct checkpoint_sending *sending;
    size_t bytes;
};

static void leave_room(void *data)
{
    const struct room *room = data;

    atomic_fetch_sub(&room->sending->bytes, room->bytes);
}

static bool take_room(struct asked *asked, size_t bytes)
{
    struct checkpoint_sending *sending = asked->deps->sending;
    struct room *room = arena_new(asked->arena, struct room);
    size_t before = atomic_fetch_add(&sending->bytes, bytes);

    *room = (struct room){ sending, bytes };
    arena_own(asked->arena, room, leave_room);
    return before == 0 || before + bytes <= CHECKPOINT_MAX_SENDING;
}

static void send_stored(struct asked *asked, const struct stored_checkpoint *stored,
                        struct http_server_reply *ret)
{
    ret->content_type = "application/octet-stream";
    ret->headers[0] =
        (struct http_header){ "Checkpoint-Step",
                              arena_printf(asked->arena, "%" PRId64, stored->step.value) };
    ret->headers[1] =
        (struct http_header){ "ETag", arena_printf(asked->arena, "\"%s\"",
                                                   stored->ref + strlen("model://")) };
}

/* The newest that can be read; an older one is better than none. */
static int get(struct asked *asked, struct http_server_reply *ret)
{
    const struct checkpoint_deps *deps = asked->deps;
    const struct json_objects *list = &asked->task.task.status.checkpoints;
    const struct stored_checkpoint *stored = list->items;
    const struct model_scope scope = { &KIND_TASK, asked->name, asked->uid };

    for (size_t i = 0; i < list->len; i++) {
        struct error err = { 0 };

        if (!take_room(asked, (size_t)stored[i].bytes.value))
            return 503;
        int r = model_store_get(deps->store, asked->arena, &scope, stored[i].ref, &ret->body,
                                &ret->body_len, &err);
        if (r == 0) {
            send_stored(asked, &stored[i], ret);
            return 200;
        }
        if (r != -ERROR_NOT_FOUND && r != -ERROR_INVALID && r != -ERROR_INTERNAL)
            return 503;
        log_warn("a stored checkpoint cannot be read, an older one is sent", "uid", asked->uid,
                 "step", LOG_INT(stored[i].step.value), "error", ERROR_TEXT(&err), NULL);
        checkpoint_inbox_set_unreadable(deps->inbox, asked->uid, asked->task.task.status.attempt);
        workqueue_add(deps->queue, &asked->name);
    }
    return 404;
}

static int answer(void *self, struct arena *arena, const struct http_server_request *request,
                  struct http_server_reply *ret)
{
    struct asked asked = ask(self, arena, request);

    if (!asked.id)
        return 404;
    if (is_put(request))
        return put(&asked, request, ret);
    if (!str_equal(request->method, "GET"))
        return 405;

    int status = find_task(&asked);
    if (status)
        return status;
    const struct observed_checkpoint any = { .message_id = asked.id,
                                             .step = CHECKPOINT_MAX_STEP + 1 };
    enum checkpoint_verdict verdict = checkpoint_judge(arena, &asked.task, &any);
    if (verdict == CHECKPOINT_NOT_RUNNING || verdict == CHECKPOINT_OTHER_ATTEMPT)
        return 404;
    status = get(&asked, ret);
    if (status == 503)
        say(arena, status, NULL, 0, ret);
    return status;
}

const struct coordinator_service CHECKPOINT_SERVICE = {
    .what = "checkpoint",
    .owns = owns,
    .admit = admit,
    .answer = answer,
    .deliver = deliver,
    .refuse = refuse,
};
