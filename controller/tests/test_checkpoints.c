/* Checkpoints from the request of a module to the status and back: answers, what is stored, what is removed,
 * and a store that does not work. */
#include <string.h>

#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/digest.h"
#include "common/base/str.h"
#include "controller/tests/fake_bridge.h"
#include "controller/tests/stage.h"
#include "controller/tests/stage_checkpoints.h"

#define SPEC                                                                                       \
    "{\"name\":\"one\",\"file\":\"AGFzbQEAAAA=\",\"checkpoint\":{\"interval\":\"20s\",\"keep\":2}" \
    "}"

static const char *uid, *id;

/* Events with this reason that reached the API server. */
static struct {
    unsigned written, unreadable;
} events;

static bool refuses_status;

static int roundtrip(void *ctx, struct arena *arena, const struct http_request *request,
                     struct http_response *ret, struct error *err)
{
    if (str_equal(request->method, "POST") && strstr(request->path, "/events")) {
        events.written += strstr(request->body, "\"CheckpointWritten\"") != NULL;
        events.unreadable += strstr(request->body, "\"CheckpointUnreadable\"") != NULL;
    }
    if (refuses_status && str_equal(request->method, "PATCH") &&
        strstr(request->body, "lastCheckpoint"))
        return error_set(err, ERROR_UNAVAILABLE, "the API server is away");
    return outside_roundtrip(ctx, arena, request, ret, err);
}

static void find_ids(void)
{
    const cJSON *task = stage_get(&KIND_TASK, "one");
    int64_t attempt = json_int(json_path(task, "status", "attempt", NULL), 1);

    uid = json_string(json_path(task, "metadata", "uid", NULL), "");
    id = attempt > 1 ? arena_printf(stage.arena, "%s.%d", uid, (int)attempt) : uid;
}

static void set_up(void)
{
    memset(&events, 0, sizeof(events));
    refuses_status = false;
    outside_reset();
    stage_checkpoints_use();
    stage_set_up(roundtrip, outside_between);
    stage_run();
    stage_put_task(SPEC);
    stage_run();
    find_ids();
}

TEST_GROUP("checkpoints", set_up, stage_tear_down);

static int put(int step, const char *body)
{
    return stage_checkpoint_ask("PUT", id, arena_printf(stage.arena, "step=%d", step), body, NULL);
}

static const cJSON *status_of(const char *key)
{
    return json_path(stage_get(&KIND_TASK, "one"), "status", key, NULL);
}

static int64_t last_step(void)
{
    return json_int(json_get(status_of("lastCheckpoint"), "step"), -1);
}

static const char *told(const char *name)
{
    const cJSON *start = NULL;

    ck_assert_int_eq(
        json_parse(stage.arena, outside.published, strlen(outside.published), &start, NULL), 0);
    return json_string(json_path(start, "env", name, NULL), "-");
}

TEST(a_checkpoint_that_was_answered_is_in_the_status_and_can_be_fetched)
{
    struct http_server_reply reply;

    ck_assert_int_eq(stage_checkpoint_ask("PUT", id, "step=10&samples=7", "state", &reply), 200);
    ck_assert_str_eq(reply.body, "{\"step\":10}");
    ck_assert_int_eq(last_step(), 10);
    ck_assert_int_eq(json_int(json_get(status_of("lastCheckpoint"), "samples"), 0), 7);
    ck_assert_uint_eq(stage_checkpoints_stored(), 1);

    ck_assert_int_eq(stage_checkpoint_ask("GET", id, "", "", &reply), 200);
    ck_assert_uint_eq(reply.body_len, strlen("state"));
    ck_assert_str_eq(reply.body, "state");
    ck_assert_str_eq(reply.headers[0].name, "Checkpoint-Step");
    ck_assert_str_eq(reply.headers[0].value, "10");
    ck_assert(str_has_prefix(reply.headers[1].value, "\"sha256:"));
}

TEST(what_is_not_in_the_status_is_not_answered_with_200)
{
    refuses_status = true;
    ck_assert_int_eq(put(10, "state"), 503);
    refuses_status = false;
    stage_wait_ms(300000);
    stage_run();
    ck_assert_int_eq(last_step(), 10); /* it was whole: it counts */
    ck_assert_int_eq(put(10, "state"), 200);
}

TEST(what_waits_for_its_write_is_not_removed)
{
    refuses_status = true;
    ck_assert_int_eq(put(10, "state"), 503);
    stage_checkpoints_lead(); /* all Tasks are cleaned */
    stage_turns(100);
    refuses_status = false;
    stage_wait_ms(300000);
    stage_run();
    ck_assert_ptr_nonnull(
        stage_checkpoint_bytes(uid, json_string(json_get(status_of("lastCheckpoint"), "ref"), "")));
}

TEST(a_repeated_one_is_fine_and_nothing_else_that_is_not_above)
{
    ck_assert_int_eq(put(10, "state"), 200);
    ck_assert_int_eq(put(10, "state"), 200);
    ck_assert_int_eq(put(10, "other"), 409);
    ck_assert_int_eq(put(9, "state"), 409);
    ck_assert_int_eq(put(11, "state"), 429);
    stage_wait_ms(11000);
    ck_assert_int_eq(put(11, "next"), 200);
    ck_assert_int_eq(last_step(), 11);
}

TEST(a_module_that_comes_too_soon_is_told_when_to_come)
{
    struct http_server_reply reply;

    ck_assert_int_eq(put(10, "state"), 200);
    stage_wait_ms(4000);
    ck_assert_int_eq(stage_checkpoint_ask("PUT", id, "step=11", "next", &reply), 429);
    ck_assert_str_eq(reply.headers[0].name, "Retry-After");
    ck_assert_str_eq(reply.headers[0].value, "6");
}

TEST(as_many_as_keep_says_stay_stored)
{
    for (int step = 1; step <= 5; step++) {
        ck_assert_int_eq(put(step, arena_printf(stage.arena, "state %d", step)), 200);
        stage_wait_ms(11000);
        stage_run();
    }
    ck_assert_uint_eq(json_len(status_of("checkpoints")), 2);
    ck_assert_uint_eq(stage_checkpoints_stored(), 2);
    json_for_each (stored, status_of("checkpoints"))
        ck_assert_ptr_nonnull(
            stage_checkpoint_bytes(uid, json_string(json_get(stored, "ref"), "")));
}

static const struct {
    const char *method, *query, *body;
    int status;
} ANSWERS[] = {
    { "PUT", "", "x", 400 },
    { "PUT", "step=1", "", 400 },
    { "PUT", "step=1e3", "x", 400 },
    { "PUT",
      "step=1&uri=s3://b/k&sha256="
      "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
      "x", 400 },
    { "PUT",
      "step=1&sha256="
      "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
      "x", 422 },
    { "POST", "step=1", "x", 200 },
    { "PUT",
      "step=1&uri=s3://b/k&sha256="
      "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
      "", 200 },
    { "GET", "", "", 404 },
    { "DELETE", "", "", 405 },
};

TEST_EACH(each_request_has_its_answer, ANSWERS)
{
    ck_assert_int_eq(
        stage_checkpoint_ask(ANSWERS[_i].method, id, ANSWERS[_i].query, ANSWERS[_i].body, NULL),
        ANSWERS[_i].status);
    ck_assert_uint_eq(stage_checkpoints_stored(), str_equal(ANSWERS[_i].method, "POST"));
}

TEST(an_unknown_id_and_another_attempt_are_not_found)
{
    const char *own = id;

    id = "00000000-0000-0000-0000-000000000000";
    ck_assert_int_eq(put(1, "x"), 404);
    id = arena_printf(stage.arena, "%s.2", own);
    ck_assert_int_eq(put(1, "x"), 404);
    ck_assert_int_eq(stage_checkpoint_ask("GET", id, "", "", NULL), 404);
    id = "..%2f";
    ck_assert_int_eq(put(1, "x"), 404);
}

TEST(the_next_attempt_goes_on_there)
{
    char hex[SHA256_HEX_LEN];
    const char *first = id;

    ck_assert_int_eq(put(10, "state"), 200);
    outside.absent = stage.silent = "device-1";
    stage_receive("proplet/alive", "{\"proplet_id\":\"device-1\",\"status\":\"offline\"}");
    stage_run();
    stage_wait_ms(121000);
    stage_run();
    find_ids();
    ck_assert_str_ne(id, first);
    ck_assert_str_eq(told("CHECKPOINT_STEP"), "10");
    ck_assert_str_eq(told("CHECKPOINT_SHA256"), sha256_hex("state", 5, hex));
    ck_assert_str_eq(told("CHECKPOINT_URL"),
                     arena_printf(stage.arena, "http://coordinator/t/%s/checkpoint", id));
    ck_assert_str_eq(told("CHECKPOINT_INTERVAL"), "20");

    const char *second = id;
    id = first; /* the lost device works on, and is not heard */
    ck_assert_int_eq(put(30, "forged"), 404);
    id = second;
    ck_assert_int_eq(put(20, "next"), 200);
    ck_assert_int_eq(last_step(), 20);
}

TEST(a_run_after_a_completed_one_begins_at_the_beginning)
{
    ck_assert_int_eq(put(10, "state"), 200);
    outside_answer("\"results\":1,\"error\":null");
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "completed");
    ck_assert_int_eq(last_step(), 10);
    ck_assert_uint_eq(stage_checkpoints_stored(), 1);

    stage_annotate(&KIND_TASK, "one", API_GROUP "/restart", "again");
    stage_run();
    ck_assert_int_eq(last_step(), -1);
    ck_assert_str_eq(told("CHECKPOINT_STEP"), "-");
    ck_assert_uint_eq(stage_checkpoints_stored(), 0);
}

TEST(a_store_that_does_not_work_delays_no_result)
{
    stage_checkpoints_break(ERROR_FORBIDDEN);
    ck_assert_int_eq(put(10, "state"), 503);
    ck_assert_int_eq(last_step(), -1);
    ck_assert_str_eq(
        json_string(json_get(condition_get(status_of("conditions"), "Checkpointing"), "reason"),
                    "-"),
        "StoreFailed");
    outside_answer("\"results\":1,\"error\":null");
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "completed");
}

TEST(a_store_that_works_again_takes_the_condition_back)
{
    stage_checkpoints_break(ERROR_UNAVAILABLE);
    ck_assert_int_eq(put(10, "state"), 503);
    stage_checkpoints_break(0);
    ck_assert_int_eq(put(10, "state"), 200);
    ck_assert_str_eq(
        json_string(json_get(condition_get(status_of("conditions"), "Checkpointing"), "status"),
                    "-"),
        "True");
}

TEST(an_older_one_is_sent_for_one_that_cannot_be_read)
{
    struct http_server_reply reply;

    ck_assert_int_eq(put(10, "state"), 200);
    stage_wait_ms(11000);
    ck_assert_int_eq(put(20, "next"), 200);
    stage_checkpoints_lose_all_but(
        uid, json_string(json_get(cJSON_GetArrayItem(status_of("checkpoints"), 1), "ref"), ""));
    ck_assert_int_eq(stage_checkpoint_ask("GET", id, "", "", &reply), 200);
    ck_assert_str_eq(reply.body, "state");
    ck_assert_str_eq(reply.headers[0].value, "10");
    ck_assert_int_eq(last_step(), 20);
    stage_run();
    ck_assert_int_eq(stage_checkpoint_ask("GET", id, "", "", &reply), 200);
    stage_run();
    stage_write_events();
    ck_assert_uint_eq(events.unreadable, 1);
}

TEST(each_step_that_advances_has_one_event)
{
    ck_assert_int_eq(put(10, "state"), 200);
    ck_assert_int_eq(put(10, "state"), 200);
    stage_wait_ms(11000);
    ck_assert_int_eq(put(20, "next"), 200);
    ck_assert_int_eq(put(15, "late"), 409);
    stage_write_events();
    ck_assert_uint_eq(events.written, 2);
}

TEST(nothing_is_left_of_a_deleted_task)
{
    ck_assert_int_eq(put(10, "state"), 200);
    stage_delete(&KIND_TASK, "one");
    outside_answer("\"results\":\"\",\"error\":\"Task was cancelled\"");
    stage_run();
    ck_assert_ptr_null(stage_get(&KIND_TASK, "one"));
    ck_assert_uint_eq(stage_checkpoints_stored(), 0);
}
