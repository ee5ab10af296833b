#include "controller/tests/stage_checkpoints.h"

#include <string.h>

#include "common/api/kinds.h"
#include "controller/tests/memory_store.h"
#include "controller/tests/stage.h"

/* Turns that a request waits for. */
#define PATIENCE 200

extern const struct module CHECKPOINT_MODULE;

static struct {
    bool used;
    bool looking; /* the test, not a process */
    enum error_code broken;
    struct model_store *store;
    struct checkpoint_deps deps; /* of the process that lives now */
    struct arena *requests;      /* of its server */
    uint64_t last;
} part;

static int before_store(void *ctx UNUSED, struct error *err)
{
    if (part.looking)
        return 0;
    return part.broken ? error_set(err, part.broken, "exceeded quota") : outside_use(err);
}

void stage_checkpoints_use(void)
{
    part.used = true;
    part.broken = 0;
    part.store = memory_store_create(CHECKPOINT_MAX_CONFIGMAP, before_store, NULL);
}

void stage_checkpoints_break(enum error_code code)
{
    part.broken = code;
}

void stage_checkpoints_clear(void)
{
    model_store_destroy(part.store);
    part.store = NULL;
    part.used = false;
}

static bool leads(void *ctx UNUSED)
{
    return !stage.dead;
}

void stage_checkpoints_start(void)
{
    static const struct coordinator_options OPTIONS = { .leads = leads };

    if (!part.used)
        return;
    part.requests = arena_create();
    part.deps = (struct checkpoint_deps){
        .timeline = stage.task.timeline,
        .clock = stage.task.clock,
        .tasks = stage.task.tasks,
        .attempts = stage.task.attempts,
        .coordinator = coordinator_create(&OPTIONS),
        .store = part.store,
        .gone = gone_scopes_create(part.store, &KIND_TASK),
        .inbox = checkpoint_inbox_create(),
        .queue = workqueue_create("checkpoint", &stage.clock.clock),
        .task_queue = stage.task.task_queue,
        .sending = checkpoint_sending_create(),
    };
    coordinator_serve(part.deps.coordinator, &CHECKPOINT_SERVICE, &part.deps,
                      CHECKPOINT_MAX_CONFIGMAP);
    task_owners_add(&stage.task.owners, &CHECKPOINT_OWNER, &part.deps);
}

void stage_checkpoints_lead(void)
{
    if (part.used)
        checkpoint_clean_all(&part.deps);
}

void stage_checkpoints_end(void)
{
    if (!part.used)
        return;
    arena_destroy(part.requests);
    coordinator_destroy(part.deps.coordinator);
    gone_scopes_destroy(part.deps.gone);
    checkpoint_inbox_destroy(part.deps.inbox);
    checkpoint_sending_destroy(part.deps.sending);
    workqueue_destroy(part.deps.queue);
}

struct staged stage_checkpoints_tasks(void)
{
    return (struct staged){ &CHECKPOINT_MODULE, part.used ? &part.deps : NULL,
                            part.used ? part.deps.queue : NULL };
}

struct workqueue *stage_checkpoints_queue(reconcile_fn **ret, void **ret_self)
{
    if (!part.used || !workqueue_len(part.deps.queue))
        return NULL;
    *ret = checkpoint_reconcile;
    *ret_self = &part.deps;
    return part.deps.queue;
}

int stage_checkpoint_ask(const char *method, const char *id, const char *query, const char *body,
                         struct http_server_reply *ret)
{
    struct http_server_request request = { .method = method,
                                           .path =
                                               arena_printf(stage.arena, "/t/%s/checkpoint", id),
                                           .query = query,
                                           .body = body,
                                           .body_len = strlen(body),
                                           .id = ++part.last };
    struct http_server_reply reply = { 0 };

    coordinator_handle(part.deps.coordinator, part.requests, &request, &reply);
    if (reply.status == HTTP_LATER) {
        stage_turns(PATIENCE);
        request.is_last_call = true;
        reply = (struct http_server_reply){ 0 };
        coordinator_handle(part.deps.coordinator, part.requests, &request, &reply);
    }
    if (ret)
        *ret = reply;
    return reply.status;
}

void stage_checkpoints_lose_all_but(const char *uid, const char *reference)
{
    const struct model_scope scope = { &KIND_TASK, staged_name("one"), uid };

    part.looking = true;
    ck_assert_int_eq(model_store_gc(part.store, &scope, &reference, 1, NULL), 0);
    part.looking = false;
}

size_t stage_checkpoints_stored(void)
{
    return memory_store_count(part.store, &KIND_TASK);
}

const char *stage_checkpoint_bytes(const char *uid, const char *reference)
{
    const struct model_scope scope = { &KIND_TASK, staged_name("one"), uid };
    const char *bytes;
    size_t len;

    part.looking = true;
    int r = model_store_get(part.store, stage.arena, &scope, reference, &bytes, &len, NULL);
    part.looking = false;
    return r < 0 ? NULL : bytes;
}
