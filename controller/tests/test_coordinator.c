#include "controller/coordinator/coordinator.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "common/api/kinds.h"
#include "common/base/str.h"
#include "common/net/http_client.h"
#include "controller/coordinator/uploads.h"
#include "controller/device/messages.h"
#include "controller/federated/training_requests.h"
#include "controller/tests/federated_stage.h"
#include "controller/tests/memory_store.h"

#define TASK "round-1-job-a"

static struct coordinator *coordinator;
static struct mailbox *mailbox;
static bool is_leading;
static const char *uid;        /* of the Task */
static struct arena *requests; /* ends before the coordinator, as requests do */

static bool leads(void *ctx UNUSED)
{
    return is_leading;
}

static struct training_requests services;

static void create_coordinator(void)
{
    const struct coordinator_options options = { .address = "127.0.0.1:0", .leads = leads };

    coordinator = coordinator_create(&options);
    federated.round.coordinator = coordinator;
    services = (struct training_requests){ .coordinator = coordinator,
                                           .tasks = federated.round.tasks,
                                           .rounds = federated.round.rounds,
                                           .jobs = federated.round.jobs,
                                           .mailbox = mailbox,
                                           .task_queue = federated.task_queue,
                                           .cache = federated.round.cache };
    coordinator_serve(coordinator, &UPDATE_SERVICE, &services, MODEL_S3_MAX);
    coordinator_serve(coordinator, &MODEL_SERVICE, &services, 0);
}

/* The outcome of the update that waits under this token. */
static void answer(const char *token, enum result_verdict verdict)
{
    coordinator_tell(coordinator, strtoull(token, NULL, 10), training_request_status(verdict));
}

static void set_up(void)
{
    static const struct mailbox_limits LIMITS = { 8, 8, 1u << 20 };

    federated_stage_set_up();
    requests = arena_create();
    mailbox = mailbox_create(&LIMITS);
    create_coordinator();
    is_leading = true;
    federated_stage_put("{\"experimentId\":\"x\",\"taskWasmImage\":\"http://w\",\"participants\":[{"
                        "\"propletId\":\"a\"}],\"rounds\":{\"total\":2}}");
    federated_stage_run();
    federated_stage_set_task(TASK, "{\"phase\":\"running\",\"attempt\":2}");
    uid =
        json_string(json_path(federated_stage_get(&KIND_TASK, TASK), "metadata", "uid", NULL), "");
}

static void tear_down(void)
{
    arena_destroy(requests);
    coordinator_destroy(coordinator);
    mailbox_destroy(mailbox);
    federated_stage_tear_down();
}

TEST_GROUP("coordinator", set_up, tear_down);

/* Of the next request that stays. */
static uint64_t last_request;

static int ask_again(struct arena *arena, const char *method, const char *path, const char *body,
                     uint64_t id, bool again, struct http_server_reply *reply)
{
    const struct http_server_request request = { .method = method,
                                                 .path = path,
                                                 .query = "",
                                                 .body = body,
                                                 .body_len = strlen(body),
                                                 .id = id,
                                                 .is_last_call = again };

    *reply = (struct http_server_reply){ 0 };
    coordinator_handle(coordinator, arena, &request, reply);
    return reply->status;
}

static int ask(struct arena *arena, const char *method, const char *path, const char *body,
               struct http_server_reply *reply)
{
    return ask_again(arena, method, path, body, ++last_request, false, reply);
}

static int status_of(const char *method, const char *path)
{
    struct http_server_reply reply;

    return ask(requests, method, path, "[1]", &reply);
}

static const char *update_path(const char *id)
{
    return arena_printf(federated.arena, "/t/%s/update", id);
}

static const char *own_path(void)
{
    return update_path(arena_printf(federated.arena, "%s.2", uid));
}

/* HTTP_LATER, and what comes later. */
static int status_later(uint64_t id)
{
    struct http_server_reply reply;

    return ask_again(requests, "POST", own_path(), "", id, true, &reply);
}

/* What the Task's reconciler finds in the mailbox: the tokens of those that are told of. */
static size_t tokens(const char *ret[static 8])
{
    struct mail *mail;
    size_t count = mailbox_peek(mailbox, federated.arena, uid, &mail);

    for (size_t i = 0; i < count; i++) {
        ck_assert_str_eq(mail[i].kind, MAIL_UPDATE);
        ck_assert_str_eq(
            arena_strndup(federated.arena, mail[i].source, strcspn(mail[i].source, "#")),
            arena_printf(federated.arena, "%s.2", uid));
        ret[i] = strchr(mail[i].source, '#') + 1;
    }
    return count;
}

static const char *body_of(const char *token)
{
    size_t len;
    const char *body =
        coordinator_read(coordinator, federated.arena, strtoull(token, NULL, 10), &len);

    if (body)
        ck_assert_uint_eq(strlen(body), len);
    return body;
}

static const struct {
    enum result_verdict verdict;
    int status;
} VERDICTS[] = {
    { RESULT_ACCEPTED, 200 },
    { RESULT_INVALID_UPDATE, 422 },
    { RESULT_DUPLICATE, 409 },
    { RESULT_NOT_RUNNING, 409 },
};

TEST_EACH(an_update_is_answered_when_its_task_has_dealt_with_it, VERDICTS)
{
    const char *token[8];

    ck_assert_int_eq(status_of("POST", own_path()), HTTP_LATER);
    ck_assert_uint_eq(tokens(token), 1);
    ck_assert_str_eq(body_of(token[0]), "[1]");
    ck_assert_uint_eq(workqueue_len(federated.task_queue) > 0, true);

    answer("99", RESULT_DUPLICATE); /* of somebody else */
    answer(token[0], VERDICTS[_i].verdict);
    ck_assert_int_eq(status_later(last_request), VERDICTS[_i].status);
    ck_assert_ptr_null(body_of(token[0]));
}

TEST(who_waits_when_the_process_ends_is_told_so)
{
    ck_assert_int_eq(status_of("POST", own_path()), HTTP_LATER);
    coordinator_stop(coordinator);
    ck_assert_int_eq(status_later(last_request), 503);
    ck_assert_int_eq(status_of("POST", own_path()), 503);
}

TEST(what_came_whole_counts_also_if_nobody_waits_for_it)
{
    const char *token[8];

    ck_assert_int_eq(status_of("POST", own_path()), HTTP_LATER);
    ck_assert_int_eq(status_later(last_request), 503); /* not in time */
    ck_assert_uint_eq(tokens(token), 1);
    ck_assert_str_eq(body_of(token[0]), "[1]");
    answer(token[0], RESULT_ACCEPTED);
    ck_assert_ptr_null(body_of(token[0]));

    struct arena *arena = arena_create(); /* of a client that goes */
    struct http_server_reply reply;
    mailbox_ack(mailbox, uid, UINT64_MAX);
    ck_assert_int_eq(ask(arena, "POST", own_path(), "[2]", &reply), HTTP_LATER);
    arena_destroy(arena);
    ck_assert_uint_eq(tokens(token), 1);
    ck_assert_str_eq(body_of(token[0]), "[2]");
    answer(token[0], RESULT_ACCEPTED);
    ck_assert_ptr_null(body_of(token[0]));
}

static const char *large_body(void)
{
    char *body = arena_alloc(federated.arena, UPLOADS_LARGE + 2, 1);

    memset(body, '1', UPLOADS_LARGE + 1);
    return body;
}

TEST(few_large_updates_are_with_the_workers_at_once)
{
    struct http_server_reply reply;
    const char *token[8];
    uint64_t first = last_request + 1;

    for (size_t i = 0; i < UPLOADS_MAX_LARGE + 2; i++)
        ck_assert_int_eq(ask(requests, "POST", own_path(), large_body(), &reply), HTTP_LATER);
    ck_assert_uint_eq(tokens(token), UPLOADS_MAX_LARGE);
    ck_assert_uint_eq(coordinator_count(coordinator, &UPDATE_SERVICE, uid), UPLOADS_MAX_LARGE + 2);
    ck_assert_int_eq(status_of("POST", own_path()), HTTP_LATER); /* a small one goes ahead */
    ck_assert_uint_eq(tokens(token), UPLOADS_MAX_LARGE + 1);

    answer(token[0], RESULT_ACCEPTED);
    ck_assert_int_eq(status_later(first), 200);
    ck_assert_uint_eq(tokens(token), UPLOADS_MAX_LARGE + 2);
    coordinator_forget(coordinator, uid); /* the Task is deleted */
    ck_assert_uint_eq(coordinator_count(coordinator, &UPDATE_SERVICE, uid), 0);
    ck_assert_int_eq(status_later(first + UPLOADS_MAX_LARGE), 404);
}

TEST(what_is_not_for_a_running_participant_is_not_found)
{
    ck_assert_int_eq(status_of("POST", update_path(uid)), 404); /* attempt 1 */
    ck_assert_int_eq(status_of("POST", update_path(arena_printf(federated.arena, "%s.3", uid))),
                     404);
    ck_assert_int_eq(status_of("POST", update_path(arena_printf(federated.arena, "%s.2.0", uid))),
                     404);
    ck_assert_int_eq(status_of("POST", update_path("nobody.2")), 404);
    ck_assert_int_eq(status_of("POST", update_path("a/b")), 404);
    ck_assert_int_eq(status_of("POST", "/t//update"), 404);
    ck_assert_int_eq(status_of("GET", update_path(uid)), 405);
    federated_stage_end_task(TASK, "[1]", 1);
    ck_assert_int_eq(status_of("POST", update_path(arena_printf(federated.arena, "%s.2", uid))),
                     404);
    ck_assert_uint_eq(mailbox_len(mailbox), 0);
}

#define PARAMETERS_BODY ((size_t)20 << 20) /* a million doubles as JSON */
#define DEVICES 8

struct device {
    const char *url, *body;
    int status;
};

static void *post_in_thread(void *data)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct device *device = data;
    const struct http_client_request request = { .method = "POST",
                                                 .url = device->url,
                                                 .body = device->body,
                                                 .body_len = PARAMETERS_BODY,
                                                 .max_reply = 1000,
                                                 .timeout_ms = 100000 };
    struct http_client_reply reply = { 0 };
    struct error err = { 0 };

    device->status = http_client_send(arena, &request, &reply, &err) == 0 ? reply.status : -1;
    return NULL;
}

/* As the reconciler of the Task would, one after the other. */
static void deal_with(size_t count)
{
    while (count) {
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();
        struct mail *mail;
        size_t len;

        if (!mailbox_peek(mailbox, arena, uid, &mail)) {
            sched_yield();
            continue;
        }
        const char *token = strchr(mail->source, '#') + 1;
        const char *body = coordinator_read(coordinator, arena, strtoull(token, NULL, 10), &len);
        ck_assert_ptr_nonnull(body);
        ck_assert_uint_eq(len, PARAMETERS_BODY);
        ck_assert_uint_eq(strspn(body, "1"), len);
        mailbox_ack(mailbox, uid, mail->sequence);
        answer(token, RESULT_ACCEPTED);
        count--;
    }
}

TEST(eight_devices_send_a_million_parameters_at_once)
{
    char *body = arena_alloc(federated.arena, PARAMETERS_BODY + 1, 1);
    struct device devices[DEVICES];
    pthread_t threads[DEVICES];
    struct error err = { 0 };

    ck_assert_uint_gt(DEVICES * PARAMETERS_BODY, COORDINATOR_MAX_BODIES);
    memset(body, '1', PARAMETERS_BODY);
    ck_assert_int_eq(coordinator_start(coordinator, &err), 0);
    for (size_t i = 0; i < DEVICES; i++) {
        devices[i] = (struct device){
            .body = body,
            .url = arena_printf(federated.arena, "http://127.0.0.1:%u%s",
                                coordinator_port(coordinator), own_path()),
        };
        ck_assert_int_eq(pthread_create(&threads[i], NULL, post_in_thread, &devices[i]), 0);
    }
    deal_with(DEVICES);
    for (size_t i = 0; i < DEVICES; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(devices[i].status, 200);
    }
    coordinator_stop(coordinator);
}

TEST(a_body_is_taken_from_those_only_who_may_send_one)
{
    const struct {
        const char *method, *path;
        int status;
    } asked[] = {
        { "POST", own_path(), 0 },       { "POST", update_path(uid), 404 },
        { "PUT", own_path(), 405 },      { "POST", "/j/x/models/1", 405 },
        { "GET", "/j/x/models/1", 405 },
    };

    for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
        const struct http_server_request request = { .method = asked[i].method,
                                                     .path = asked[i].path };
        ck_assert_int_eq(coordinator_admit(coordinator, federated.arena, &request),
                         asked[i].status);
    }
    is_leading = false;
    const struct http_server_request request = { .method = "POST", .path = own_path() };
    ck_assert_int_eq(coordinator_admit(coordinator, federated.arena, &request), 503);
}

TEST(who_does_not_lead_serves_nothing)
{
    is_leading = false;
    ck_assert_int_eq(status_of("POST", update_path(arena_printf(federated.arena, "%s.2", uid))),
                     503);
    ck_assert_int_eq(status_of("GET", "/j/x/models/1"), 503);
    ck_assert_uint_eq(mailbox_len(mailbox), 0);
}

TEST(a_full_mailbox_sends_the_device_to_mqtt)
{
    struct mail mail = { .kind = "k", .body = "b", .body_len = 1 };
    int number = 0;

    do
        mail.source = arena_printf(federated.arena, "%d", number++);
    while (mailbox_put(mailbox, uid, &mail, NULL) != MAILBOX_FULL);
    ck_assert_int_eq(status_of("POST", own_path()), HTTP_LATER);
    ck_assert_int_eq(status_later(last_request), 503);
}

TEST(models_are_those_that_rounds_begin_and_end_with)
{
    struct http_server_reply reply;
    const char *job = json_string(
        json_path(federated_stage_get(&KIND_FEDERATEDJOB, "job"), "metadata", "uid", NULL), "");
    const char *first = arena_printf(federated.arena, "/j/%s/models/1", job);

    ck_assert_int_eq(status_of("GET", arena_printf(federated.arena, "/j/%s/models/0", job)), 404);
    ck_assert_int_eq(status_of("GET", first), 404);
    federated_stage_end_task(TASK, "[1,2]", 1);
    federated_stage_run();
    ck_assert_int_eq(ask(federated.arena, "GET", first, "", &reply), 200);
    ck_assert_str_eq(reply.body, "[1,2]");
    ck_assert_str_eq(reply.content_type, "application/json");
    const char *bytes = reply.body;
    ck_assert_int_eq(ask(federated.arena, "GET", first, "", &reply), 200);
    ck_assert_ptr_eq(reply.body, bytes); /* one copy for all */
    federated_stage_end_task("round-2-job-a", "[3,4]", 1);
    federated_stage_run();
    ck_assert_int_eq(ask(federated.arena, "GET",
                         arena_printf(federated.arena, "/j/%s/models/2", job), "", &reply),
                     200);
    ck_assert_str_eq(reply.body, "[3,4]");
    ck_assert_int_eq(status_of("GET", arena_printf(federated.arena, "/j/%s/models/3", job)), 404);
    ck_assert_int_eq(status_of("GET", arena_printf(federated.arena, "/j/%s/models/x", job)), 404);
    ck_assert_int_eq(status_of("GET", "/j/other/models/1"), 404);
    ck_assert_int_eq(status_of("POST", first), 405);
    ck_assert_int_eq(status_of("GET", "/"), 404);
}
