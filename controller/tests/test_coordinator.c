#include "controller/federated/coordinator.h"

#include <pthread.h>
#include <stdatomic.h>

#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "controller/device/messages.h"
#include "controller/tests/federated_stage.h"

#define TASK "round-1-job-a"

static struct coordinator *coordinator;
static atomic_bool is_leading;
static const char *uid; /* of the Task */

static bool leads(void *ctx UNUSED)
{
    return atomic_load(&is_leading);
}

static void set_up(void)
{
    static const struct mailbox_limits LIMITS = { 8, 8, 1u << 20 };

    federated_stage_set_up();
    federated.shared.mailbox = mailbox_create(&LIMITS);
    coordinator = coordinator_create(&federated.shared, leads, NULL);
    federated.shared.coordinator = coordinator;
    atomic_store(&is_leading, true);
    federated_stage_put("{\"experimentId\":\"x\",\"taskWasmImage\":\"http://w\",\"participants\":[{"
                        "\"propletId\":\"a\"}],\"rounds\":{\"total\":2}}");
    federated_stage_run();
    federated_stage_set_task(TASK, "{\"phase\":\"running\",\"attempt\":2}");
    uid =
        json_string(json_path(federated_stage_get(&KIND_TASK, TASK), "metadata", "uid", NULL), "");
}

static void tear_down(void)
{
    coordinator_destroy(coordinator);
    mailbox_destroy(federated.shared.mailbox);
    federated_stage_tear_down();
}

static int ask(struct arena *arena, const char *method, const char *path, const char *body,
               struct http_server_reply *reply)
{
    const struct http_server_request request = {
        .method = method, .path = path, .query = "", .body = body, .body_len = strlen(body)
    };

    *reply = (struct http_server_reply){ 0 };
    coordinator_handle(coordinator, arena, &request, reply);
    return reply->status;
}

static int status_of(const char *method, const char *path)
{
    struct http_server_reply reply;

    return ask(federated.arena, method, path, "[1]", &reply);
}

static const char *update_path(const char *id)
{
    return arena_printf(federated.arena, "/t/%s/update", id);
}

struct post {
    const char *path;
    int status;
};

static void *post_in_thread(void *data)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct http_server_reply reply;
    struct post *post = data;

    post->status = ask(arena, "POST", post->path, "[1,2]", &reply);
    return NULL;
}

/* What the Task's reconciler finds in the mailbox. */
static struct mail *await_mail(void)
{
    struct mail *mail;

    while (!mailbox_peek(federated.shared.mailbox, federated.arena, uid, &mail))
        sched_yield();
    return mail;
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

START_TEST(an_update_is_answered_when_its_task_has_dealt_with_it)
{
    struct post post = { .path = update_path(arena_printf(federated.arena, "%s.2", uid)) };
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, post_in_thread, &post), 0);
    const struct mail *mail = await_mail();
    ck_assert_str_eq(mail->kind, MAIL_UPDATE);
    ck_assert_str_eq(mail->body, "[1,2]");
    const char *hash = strchr(mail->source, '#');
    ck_assert_ptr_nonnull(hash);
    ck_assert_str_eq(arena_strndup(federated.arena, mail->source, (size_t)(hash - mail->source)),
                     arena_printf(federated.arena, "%s.2", uid));

    coordinator_answer(coordinator, "99", RESULT_DUPLICATE); /* of somebody else */
    coordinator_answer(coordinator, hash + 1, VERDICTS[_i].verdict);
    pthread_join(thread, NULL);
    ck_assert_int_eq(post.status, VERDICTS[_i].status);
    ck_assert_uint_eq(workqueue_len(federated.shared.task_queue) > 0, true);
}
END_TEST

START_TEST(who_waits_when_the_process_ends_is_told_so)
{
    struct post post = { .path = update_path(arena_printf(federated.arena, "%s.2", uid)) };
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, post_in_thread, &post), 0);
    (void)await_mail();
    coordinator_stop(coordinator);
    pthread_join(thread, NULL);
    ck_assert_int_eq(post.status, 503);
}
END_TEST

START_TEST(what_is_not_for_a_running_participant_is_not_found)
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
    ck_assert_uint_eq(mailbox_len(federated.shared.mailbox), 0);
}
END_TEST

START_TEST(who_does_not_lead_serves_nothing)
{
    atomic_store(&is_leading, false);
    ck_assert_int_eq(status_of("POST", update_path(arena_printf(federated.arena, "%s.2", uid))),
                     503);
    ck_assert_int_eq(status_of("GET", "/j/x/models/1"), 503);
    ck_assert_uint_eq(mailbox_len(federated.shared.mailbox), 0);
}
END_TEST

START_TEST(a_full_mailbox_sends_the_device_to_mqtt)
{
    const struct mail mail = { .kind = "k", .source = "s", .body = "b", .body_len = 1 };

    while (mailbox_put(federated.shared.mailbox, uid, &mail, NULL))
        ;
    ck_assert_int_eq(status_of("POST", update_path(arena_printf(federated.arena, "%s.2", uid))),
                     503);
}
END_TEST

START_TEST(models_are_those_that_rounds_begin_and_end_with)
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
END_TEST

int main(void)
{
    Suite *suite = suite_create("coordinator");
    TCase *tcase = tcase_create("coordinator");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, an_update_is_answered_when_its_task_has_dealt_with_it, 0,
                        ARRAY_LEN(VERDICTS));
    tcase_add_test(tcase, who_waits_when_the_process_ends_is_told_so);
    tcase_add_test(tcase, what_is_not_for_a_running_participant_is_not_found);
    tcase_add_test(tcase, who_does_not_lead_serves_nothing);
    tcase_add_test(tcase, a_full_mailbox_sends_the_device_to_mqtt);
    tcase_add_test(tcase, models_are_those_that_rounds_begin_and_end_with);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
