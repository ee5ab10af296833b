/* Large updates by HTTP: only UPLOADS_MAX_LARGE are with the workers, and none of them for ever. */
#include "common/api/kinds.h"
#include "common/base/str.h"
#include "controller/blobs/model_store.h"
#include "controller/coordinator/uploads.h"
#include "controller/federated/training_requests.h"
#include "controller/tests/fake_bridge.h"
#include "controller/tests/outside.h"
#include "controller/tests/stage_federated.h"

#define SPEC(k)                                                                                    \
    "{\"experimentId\":\"x\",\"taskWasmImage\":\"http://w\",\"participants\":["                    \
    "{\"propletId\":\"alpha\"},{\"propletId\":\"beta\"}],\"kOfN\":" #k                             \
    ",\"timeoutSeconds\":600,\"rounds\":{\"total\":1}}"

static struct coordinator *coordinator;
static struct training_requests services;
static struct arena *clients; /* they wait for their answers until the end */
static uint64_t requests;

/* The store of rounds, which refuses what is of one of them. */
static struct {
    const struct model_store_type *inner;
    struct model_store_type type;
    const char *round;
} refusing;

static int refusing_put(struct model_store *self, const struct model_scope *scope,
                        const char *digest, const char *bytes, size_t len, struct error *err)
{
    if (str_equal(scope->owner.name, refusing.round))
        return error_set(err, ERROR_FORBIDDEN, "exceeded quota: configmaps");
    return refusing.inner->put(self, scope, digest, bytes, len, err);
}

static bool leads(void *ctx UNUSED)
{
    return true;
}

static void set_up(void)
{
    stage_federated_use();
    stage_set_up(outside_roundtrip, outside_between);
    stage_run();

    const struct coordinator_options options = { .leads = leads };

    coordinator = coordinator_create(&options);
    services = (struct training_requests){ .coordinator = coordinator,
                                           .tasks = stage.task.tasks,
                                           .rounds = stage.round.rounds,
                                           .jobs = stage.round.jobs,
                                           .mailbox = stage.task.mailbox,
                                           .task_queue = stage.task.task_queue,
                                           .cache = stage.round.cache };
    coordinator_serve(coordinator, &UPDATE_SERVICE, &services, MODEL_S3_MAX);
    stage.round.coordinator = coordinator;
    clients = arena_create();
    requests = 0;
}

static void tear_down(void)
{
    stage.round.coordinator = NULL;
    arena_destroy(clients);
    coordinator_destroy(coordinator);
    stage_tear_down();
}

TEST_GROUP("large", set_up, tear_down);

static const char *phase_of(const struct kube_kind *kind, const char *name)
{
    return json_string(json_path(stage_get(kind, name), "status", "phase", NULL), "-");
}

/* A model of some digits, with white space up to what counts as large; or all digits. */
static void post(const char *task, bool is_stored)
{
    size_t len = UPLOADS_LARGE * 2;
    char *body = arena_alloc(stage.arena, len + 1, 1);
    const char *uid =
        json_string(json_path(stage_get(&KIND_TASK, task), "metadata", "uid", NULL), "");

    memset(body, ' ', len);
    memcpy(body, "[1", 2);
    for (size_t at = 2; is_stored && at + 12 < len; at += 12)
        memcpy(body + at, ",0.123456789", 12);
    body[len - 1] = ']';

    const struct http_server_request request = {
        .method = "POST",
        .path = arena_printf(stage.arena, "/t/%s/update", uid),
        .query = "",
        .body = body,
        .body_len = len,
        .id = ++requests,
    };
    struct http_server_reply reply = { 0 };
    coordinator_handle(coordinator, clients, &request, &reply);
    ck_assert_int_eq(reply.status, HTTP_LATER);
}

TEST_TIMES(a_participant_that_sends_its_update_often_stops_nobody, UPLOADS_MAX_LARGE + 2)
{
    stage_put(&KIND_FEDERATEDJOB, "job", SPEC(2));
    stage_run();
    for (int i = 0; i <= _i; i++)
        post("round-1-job-alpha", false);
    stage_run();
    ck_assert_str_eq(phase_of(&KIND_TASK, "round-1-job-alpha"), "completed");
    post("round-1-job-beta", false);
    stage_run();
    ck_assert_str_eq(phase_of(&KIND_FEDERATEDJOB, "job"), "Completed");
    ck_assert(mailbox_wait_empty(stage.task.mailbox, 0));
}

TEST(participants_that_send_their_updates_twice_do_not_wait_for_each_other)
{
    stage_put(&KIND_FEDERATEDJOB, "job", SPEC(2));
    stage_run();
    for (int i = 0; i < UPLOADS_MAX_LARGE; i++) {
        post("round-1-job-alpha", false);
        post("round-1-job-beta", false);
    }
    stage_run();
    ck_assert_str_eq(phase_of(&KIND_FEDERATEDJOB, "job"), "Completed");
    ck_assert(mailbox_wait_empty(stage.task.mailbox, 0));
}

TEST(updates_that_cannot_be_stored_are_in_nobodys_way)
{
    struct model_store *store = stage.round.models;

    stage_put(&KIND_FEDERATEDJOB, "job", SPEC(2));
    stage_put(&KIND_FEDERATEDJOB, "other", SPEC(2));
    stage_run();
    refusing.inner = store->type;
    refusing.type = *store->type;
    refusing.type.put = refusing_put;
    refusing.round = "round-1-job";
    store->type = &refusing.type;
    post("round-1-job-alpha", true);
    post("round-1-job-beta", true);
    stage_turns(100);
    post("round-1-other-alpha", true);
    post("round-1-other-beta", true);
    stage_turns(200);
    ck_assert_str_eq(phase_of(&KIND_FEDERATEDJOB, "other"), "Completed");
    ck_assert_str_eq(phase_of(&KIND_TASK, "round-1-job-alpha"), "running");
    store->type = refusing.inner;
    stage_wait_ms(300000);
    stage_run();
    ck_assert_str_eq(phase_of(&KIND_FEDERATEDJOB, "job"), "Completed");
}
