/* The reconcilers with devices and a broker, one behaviour each. */
#include "common/api/kinds.h"
#include "common/base/str.h"
#include "common/tests/observe.h"
#include "common/tests/parsed.h"
#include "controller/tests/fake_bridge.h"

#define SPEC "\"name\":\"one\",\"file\":\"AGFzbQEAAAA=\""
#define PROPLET(client, external)                                                                  \
    "{\"type\":\"external\",\"external\":{" external                                               \
    "},\"connectionConfig\":{\"mqttAddress\":\"tcp://broker\",\"domainId\":\"d\","                 \
    "\"channelId\":\"c\",\"clientId\":\"" client "\"}}"
#define RESULT "\"results\":\"42\",\"error\":null"

/* What the API server will not take, if its body holds this text; then the status of its answer. */
static const char *refused_text;
static int refused_status;

/* The reasons of the Events of Tasks, in the order in which they are made, and the last one's note. */
static char task_events[256];
static char last_note[512];

static void note_event(const struct http_request *request)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    if (!str_equal(request->method, "POST") || !strstr(request->path, "/events"))
        return;
    const cJSON *event = parsed(arena, request->body);
    const char *kind = json_string(json_path(event, "regarding", "kind", NULL), "");
    if (!str_equal(kind, "Task"))
        return;
    (void)str_copy(
        task_events, sizeof(task_events),
        arena_printf(arena, "%s %s", task_events, json_string(json_get(event, "reason"), "")));
    (void)str_copy(last_note, sizeof(last_note), json_string(json_get(event, "note"), ""));
}

static int roundtrip(void *ctx, struct arena *arena, const struct http_request *request,
                     struct http_response *ret, struct error *err)
{
    note_event(request);
    if (!refused_text || !request->body || !strstr(request->body, refused_text))
        return outside_roundtrip(ctx, arena, request, ret, err);

    const char *body = arena_printf(
        arena, "{\"kind\":\"Status\",\"status\":\"Failure\",\"code\":%d}", refused_status);
    *ret =
        (struct http_response){ .status = refused_status, .body = body, .body_len = strlen(body) };
    return 0;
}

static void set_up(void)
{
    refused_text = NULL;
    task_events[0] = '\0';
    outside_reset();
    stage_set_up(roundtrip, outside_between);
    stage_run();
}

TEST_GROUP("tasks", set_up, stage_tear_down);

static const char *ready_reason(const char *proplet)
{
    const cJSON *object = stage_get(&KIND_PROPLET, proplet);
    const cJSON *ready = condition_get(json_path(object, "status", "conditions", NULL), "Ready");

    return json_string(json_get(ready, "reason"), "");
}

static void expect_task(const char *phase, const char *reason)
{
    ck_assert_str_eq(stage_task_string("phase"), phase);
    ck_assert_str_eq(stage_task_string("reason"), reason);
}

static unsigned writes_to(const char *resource)
{
    struct fake_request *requests;
    size_t len = fake_api_requests(stage.api, stage.arena, &requests);
    unsigned count = 0;

    for (size_t i = 0; i < len; i++)
        count += !str_equal(requests[i].method, "GET") && strstr(requests[i].path, resource);
    return count;
}

TEST(task_that_ends_soon_needs_two_status_writes_and_a_finalizer)
{
    outside.answers = true;
    stage_put_task("{" SPEC "}");
    stage_run();
    expect_task("completed", "");
    ck_assert_uint_eq(writes_to("/tasks/one/status"), 2);
    ck_assert_str_ne(stage_task_string("startedAt"), "");
    /* Two Proplets that are heard, and the first answer ever of one. */
    ck_assert_uint_le(writes_to("/status") - writes_to("/tasks/one/status"), 2 * 1 + 1);
    ck_assert_uint_eq(writes_to("/tasks/one") - writes_to("/tasks/one/status"), 1);
    ck_assert_int_eq(outside.published_qos, 1);
}

TEST(the_last_write_of_a_task_tells_its_start_as_well)
{
    outside.answers = true;
    stage_put_task("{" SPEC "}");
    stage_run();
    stage_write_events();
    ck_assert_str_eq(task_events, " Scheduled Started Completed");
}

TEST(task_that_waits_for_ten_seconds_has_an_event_with_cause_and_remedy)
{
    stage_put_task("{" SPEC ",\"propletSelector\":{\"propletId\":\"gamma\"}}");
    stage_run();
    expect_task("pending", "NoProplet");
    stage_wait_ms(WAIT_EVENT_AFTER_MS);
    stage_run();
    stage_wait_ms(WAIT_EVENT_PAUSE_MS);
    stage_run();
    stage_write_events();
    ck_assert_str_eq(task_events, " NoProplet");
    ck_assert_str_eq(last_note, "the namespace has no Proplet, or not the one that the Task names. "
                                "Create a Proplet in this namespace, or correct the name that the "
                                "Task gives.");
}

TEST(event_of_a_failed_task_names_the_reason_and_the_remedy)
{
    stage_put_task("{" SPEC "}");
    stage_run();
    outside_answer("\"results\":null,\"error\":\"no such function\"");
    stage_run();
    expect_task("failed", "DeviceError");
    stage_write_events();
    ck_assert_str_eq(last_note, "DeviceError: the device answered with an error. Read "
                                "status.error, and the log of the device.");
}

static const char *ready_message(const char *proplet)
{
    const cJSON *object = stage_get(&KIND_PROPLET, proplet);
    const cJSON *ready = condition_get(json_path(object, "status", "conditions", NULL), "Ready");

    return json_string(json_get(ready, "message"), "");
}

static void hear_on_e(const char *client_id)
{
    const char *text =
        arena_printf(stage.arena, "{\"proplet_id\":\"%s\",\"status\":\"alive\"}", client_id);

    stage_receive_bytes(message_topic(stage.arena, "d/e", "proplet/alive"), text, strlen(text));
}

/* The user wrote device-3, and the device calls itself device-9. */
TEST(proplet_that_was_never_heard_names_the_strangers_of_its_channel)
{
    stage_put_proplet("gamma", "{\"type\":\"external\",\"connectionConfig\":{\"domainId\":\"d\","
                               "\"channelId\":\"e\",\"clientId\":\"device-3\"}}");
    stage_run();
    ck_assert_str_eq(ready_message("gamma"),
                     "no heartbeat yet of client id 'device-3' on channel 'd/e'");
    hear_on_e("device-9");
    stage_run();
    ck_assert_str_eq(
        ready_message("gamma"),
        "no heartbeat yet of client id 'device-3' on channel 'd/e'; other client ids on "
        "this channel: 'device-9'");
    unsigned writes = writes_to("/proplets/gamma/status");
    hear_on_e("device-9");
    hear_on_e("device-8");
    stage_run();
    ck_assert_uint_eq(writes_to("/proplets/gamma/status"), writes);

    stage_put_proplet("delta", "{\"type\":\"external\",\"connectionConfig\":{\"domainId\":\"d\","
                               "\"channelId\":\"e\",\"clientId\":\"device-9\"}}");
    hear_on_e("device-9");
    ck_assert_ptr_null(strangers_on(fleet_strangers(stage.task.fleet), stage.arena, "d/e",
                                    clock_monotonic_ms(&stage.clock.clock)));
}

static void let_be(void)
{
}

static void suspend(void)
{
    stage_put_task("{" SPEC ",\"suspend\":true}");
}

static void delete_it(void)
{
    stage_delete(&KIND_TASK, "one");
}

static void die(void)
{
    stage.dead = true;
}

static void lose_proplet(void)
{
    stage_delete(&KIND_PROPLET, "alpha");
}

static void answer(void)
{
    outside_answer(RESULT);
}

/* In the half second in which its start is out and not written. */
static const struct {
    void (*happens)(void);
    const char *phase;
    unsigned starts; /* in all */
    unsigned writes; /* of the status, in all */
} MEANWHILE[] = {
    { let_be, "running", 1, 2 },       { answer, "completed", 1, 2 },
    { suspend, "scheduled", 1, 2 },    { delete_it, "", 1, 1 },
    { die, "running", 2, 2 },          { outside_restart, "running", 2, 3 },
    { lose_proplet, "running", 2, 6 },
};

TEST_EACH(what_happens_before_running_is_written_finds_the_start, MEANWHILE)
{
    stage_put_task("{" SPEC "}");
    for (int i = 0; i < 50 && !outside.starts; i++)
        stage_turns(1);
    ck_assert_uint_eq(outside.starts, 1);
    expect_task("scheduled", "");
    ck_assert_uint_eq(writes_to("/tasks/one/status"), 1);

    MEANWHILE[_i].happens();
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), MEANWHILE[_i].phase);
    ck_assert_uint_eq(outside.starts, MEANWHILE[_i].starts);
    ck_assert_uint_eq(writes_to("/tasks/one/status"), MEANWHILE[_i].writes);
}

/* Of 1,000 bytes: 500 levels; of more: zeros. */
static const struct {
    const char *results;
    size_t bytes; /* instead */
    const char *reason;
} NOT_STORED[] = {
    { "\"\\ud800\"", 0, "ResultRefused" },
    { NULL, 1000, "ResultRefused" },
    { NULL, 9800001, "ResultTooLarge" },
    { NULL, 13000001, "ResultTooLarge" },
};

static const char *results_of(size_t which)
{
    size_t bytes = NOT_STORED[which].bytes;
    char *text = arena_alloc(stage.arena, bytes + 1, 1);

    if (!bytes)
        return NOT_STORED[which].results;
    for (size_t i = 0; i < bytes; i++)
        text[i] = bytes == 1000 ? i < bytes / 2 ? '[' : ']' : i % 2 ? '0' : ',';
    text[0] = '[';
    text[bytes - 1] = ']';
    return text;
}

TEST_EACH(a_result_that_cannot_be_stored_fails_its_task_with_the_reason, NOT_STORED)
{
    static const char MESSAGE[] = "{\"task_id\":\"%s\",\"proplet_id\":\"%s\",\"results\":%s}";
    const char *results = results_of((size_t)_i), *id;

    stage_put_task("{" SPEC "}");
    stage_run();
    expect_task("running", "");
    id = outside.runs[0].id;
    stage_receive("proplet/results", arena_printf(stage.arena, MESSAGE, id, "device-2", results));
    stage_run();
    expect_task("running", ""); /* of another device */
    stage_receive("proplet/results", arena_printf(stage.arena, MESSAGE, id, "device-1", results));
    stage_run();
    expect_task("failed", NOT_STORED[_i].reason);
    ck_metric("propeller_results_rejected_total{reason=\"other_proplet\"} 1");
}

TEST(silent_start_is_repeated_and_then_given_up)
{
    outside.deaf = true;
    stage_put_task("{" SPEC ",\"propletLostPolicy\":\"Wait\"}");
    stage_run();
    for (unsigned starts = 1; starts <= 4; starts++) {
        ck_assert_uint_eq(outside.starts, starts);
        expect_task("running", "");
        stage_wait_ms(31000);
        stage_run();
    }
    ck_assert_uint_eq(outside.starts, 4);
    expect_task("failed", "StartNotConfirmed");
    ck_metric("propeller_starts_total 4");
    ck_metric("propeller_starts_repeated_total 3");
}

TEST(sign_of_life_keeps_a_start_from_being_repeated)
{
    stage_put_task("{" SPEC "}");
    stage_run();
    for (int i = 0; i < 10; i++) {
        stage_receive("proplet/task_metrics",
                      arena_printf(stage.arena, "{\"task_id\":\"%s\",\"proplet_id\":\"device-1\"}",
                                   outside.runs[0].id));
        stage_wait_ms(20000);
        stage_run();
    }
    ck_assert_uint_eq(outside.starts, 1);
}

TEST(result_queued_during_an_outage_comes_before_any_repeat)
{
    stage_put_task("{" SPEC "}");
    stage_run();
    outside.away = true;
    outside_answer(RESULT);
    stage_wait_ms(600000);
    stage_run();

    outside.away = false;
    outside.slow = true;
    stage_reconnect();
    stage_run();
    ck_assert_uint_eq(outside.starts, 1);

    outside.slow = false;
    stage_run();
    expect_task("completed", "");
    ck_assert_int_eq(outside.runs[0].executions, 1);
}

TEST(start_waits_for_the_broker)
{
    outside.away = true;
    stage_put_task("{" SPEC "}");
    stage_run();
    expect_task("scheduled", "");
    ck_assert_uint_eq(outside.starts, 0);

    outside.away = false;
    outside.refused = true;
    stage_run();
    expect_task("running", "");
    ck_assert_uint_eq(outside.starts, 1);
}

/* The cache may be behind: what is read for the start is the last word. */
TEST(task_that_is_deleted_before_its_start_is_not_started)
{
    stage_put_task("{" SPEC "}");
    while (!str_equal(stage_task_string("phase"), "scheduled"))
        stage_turns(1);
    fake_api_on_change(stage.api, NULL, NULL);
    stage_delete(&KIND_TASK, "one");
    for (int i = 0; i < 20 && !stage.errors; i++)
        stage_turns(1);
    ck_assert_uint_gt(stage.errors, 0);
    ck_assert_uint_eq(outside.starts, 0);
}

TEST(task_whose_attempt_is_another_by_now_is_not_started)
{
    stage_put_task("{" SPEC "}");
    while (!str_equal(stage_task_string("phase"), "scheduled"))
        stage_turns(1);
    fake_api_on_change(stage.api, NULL, NULL);
    cJSON *object = arena_own(stage.arena, json_copy(stage_get(&KIND_TASK, "one")), json_free);
    json_set_copy(object, "status",
                  parsed(stage.arena, "{\"phase\":\"scheduled\",\"assignedProplet\":\"alpha\","
                                      "\"attempt\":2}"));
    fake_api_put(stage.api, &KIND_TASK, object);
    for (int i = 0; i < 20 && !stage.errors; i++)
        stage_turns(1);
    ck_assert_uint_eq(outside.starts, 0);
    ck_assert_uint_gt(stage.errors, 0);
}

TEST(task_is_woken_by_a_proplet_that_fits)
{
    stage_put_task("{" SPEC ",\"propletSelector\":{\"matchDeviceTypes\":[\"pi\"]}}");
    stage_run();
    expect_task("pending", "NoCandidates");

    stage_put_proplet("beta", PROPLET("device-2", "\"deviceType\":\"pi\""));
    stage_run();
    expect_task("running", "");
    ck_assert_str_eq(stage_task_string("assignedProplet"), "beta");
}

TEST(microcontroller_gets_its_own_dialect_at_qos_0)
{
    stage_delete(&KIND_PROPLET, "beta");
    stage_put_proplet("alpha", PROPLET("device-1", "\"dialect\":\"embedded\""));
    stage_put_task("{" SPEC ",\"inputs\":[\"7\"]}");
    stage_run();
    expect_task("running", "");
    ck_assert_int_eq(outside.published_qos, 0);
    ck_assert_ptr_nonnull(strstr(outside.published, "\"inputs\":[7]"));
    ck_assert_ptr_null(strstr(outside.published, "proplet_id"));
}

TEST_TIMES(start_and_stop_have_the_qos_of_their_proplet, 3)
{
    static const char PROPLET_WITH_QOS[] =
        "{\"type\":\"external\",\"connectionConfig\":{\"mqttAddress\":"
        "\"tcp://broker\",\"domainId\":\"d\",\"channelId\":\"c\",\"clientId\":"
        "\"device-1\",\"mqttQos\":%d}}";

    stage_delete(&KIND_PROPLET, "beta");
    stage_put_proplet("alpha", arena_printf(stage.arena, PROPLET_WITH_QOS, _i));
    stage_put_task("{" SPEC "}");
    stage_run();
    expect_task("running", "");
    ck_assert_int_eq(outside.published_qos, _i);

    outside.published_qos = -1;
    stage_put_task("{" SPEC ",\"suspend\":true}");
    stage_run();
    ck_assert_ptr_nonnull(strstr(outside.published, "\"state\":\"Running\""));
    ck_assert_int_eq(outside.published_qos, _i);
}

TEST(start_that_no_device_could_take_fails_the_task)
{
    stage_delete(&KIND_PROPLET, "beta");
    stage_put_proplet("alpha", PROPLET("device-1", "\"dialect\":\"embedded\""));
    stage_put_task("{" SPEC
                   ",\"inputs\":[\"seven\"],\"propletSelector\":{\"propletId\":\"alpha\"}}");
    stage_run();
    expect_task("failed", "PayloadInvalid");
    ck_assert_uint_eq(outside.starts, 0);
    ck_assert_int_eq(stage_active(), 0);
}

TEST(task_that_a_microcontroller_would_misread_waits_for_another_device)
{
    stage_delete(&KIND_PROPLET, "beta");
    stage_put_proplet("alpha", PROPLET("device-1", "\"dialect\":\"embedded\""));
    stage_put_task("{" SPEC ",\"inputs\":[-7]}");
    stage_run();
    expect_task("pending", "NoCandidates");

    stage_put_proplet("alpha", PROPLET("device-1", "\"dialect\":\"standard\""));
    stage_run();
    expect_task("running", "");
    ck_assert_ptr_nonnull(strstr(outside.published, "\"inputs\":[\"-7\"]"));
}

TEST_TIMES(result_that_the_api_server_refuses_fails_the_task_and_goes, 3)
{
    static const int STATUSES[] = { 400, 413, 422 };

    refused_text = "poison";
    refused_status = STATUSES[_i];
    stage_put_task("{" SPEC "}");
    stage_run();
    outside_answer("\"results\":\"poison\",\"error\":null");
    stage_run();
    expect_task("failed", "ResultRefused");
    ck_assert_uint_eq(mailbox_len(stage.task.mailbox), 0);
}

/* Also by a starting API server, until it has read its rules. */
TEST(forbidden_result_is_kept_until_the_right_is_back)
{
    int64_t since_ms;

    stage_put_task("{" SPEC "}");
    stage_run();
    refused_text = "poison";
    refused_status = 403;
    outside_answer("\"results\":\"poison\",\"error\":null");
    for (int i = 0; i < 10; i++) {
        stage_turns(20);
        stage_wait_ms(60000);
    }
    expect_task("running", "");
    ck_assert_uint_eq(mailbox_len(stage.task.mailbox), 1);
    ck_assert_uint_eq(attempts_forbidden_count(stage.task.attempts, &since_ms), 1);

    refused_text = NULL;
    stage_run();
    expect_task("completed", "");
    ck_assert_str_eq(stage_task_string("results"), "poison");
    ck_assert_uint_eq(mailbox_len(stage.task.mailbox), 0);
    ck_assert_uint_eq(attempts_forbidden_count(stage.task.attempts, &since_ms), 0);

    ck_assert_uint_eq(outside.starts, 1);
}

/* Whatever of it is forbidden, and for ten minutes. */
TEST_TIMES(task_that_may_not_be_written_is_started_once_and_goes_on_later, 3)
{
    static const char *const WRITES[] = { "finalizers", "scheduled", "running" };

    refused_text = WRITES[_i];
    refused_status = 403;
    stage_put_task("{" SPEC "}");
    for (int i = 0; i < 10; i++) {
        stage_turns(20);
        stage_wait_ms(60000);
    }
    ck_assert_uint_le(outside.starts, 1);
    outside.answers = true;
    outside_answer("\"results\":\"42\",\"error\":null");
    stage_turns(20);
    refused_text = NULL;
    stage_run();
    expect_task("completed", "");
    ck_assert_uint_eq(outside.starts, 1);
}

TEST(task_that_may_not_be_patched_says_so_in_its_status)
{
    refused_text = "finalizers";
    refused_status = 403;
    stage_put_task("{" SPEC "}");
    stage_turns(20);
    const cJSON *conditions = json_path(stage_get(&KIND_TASK, "one"), "status", "conditions", NULL);
    ck_assert_str_eq(json_string(json_get(condition_get(conditions, "Scheduled"), "reason"), ""),
                     "Forbidden");
}

/* Or else one such Task would hold up the results of all others. */
TEST(task_whose_every_status_is_refused_keeps_no_mail)
{
    stage_put_task("{" SPEC "}");
    stage_run();
    refused_text = "phase";
    refused_status = 422;
    outside_answer("\"results\":\"42\",\"error\":null");
    stage_turns(20);
    expect_task("running", "");
    ck_assert_uint_eq(mailbox_len(stage.task.mailbox), 0);
}

TEST(refusal_of_another_write_is_not_blamed_on_a_late_result)
{
    outside.answers = true;
    stage_put_task("{" SPEC "}");
    stage_run();
    expect_task("completed", "");

    refused_text = "observedGeneration";
    refused_status = 403;
    stage_put_task("{" SPEC ",\"ttlSecondsAfterFinished\":3600}");
    stage_receive("proplet/results",
                  arena_printf(stage.arena, "{\"task_id\":\"%s\"}", outside.runs[0].id));
    stage_turns(20);
    expect_task("completed", "");

    refused_text = NULL;
    stage_wait_ms(10000);
    stage_run();
    expect_task("completed", "");
    ck_assert_uint_eq(mailbox_len(stage.task.mailbox), 0);
}

/* The cache holds neither history nor results, so the API server is asked. */
TEST(task_that_starts_over_keeps_its_history_and_nothing_of_the_run)
{
    stage_put_task("{" SPEC ",\"suspend\":true}");
    stage_run();
    cJSON *object = arena_own(stage.arena, json_copy(stage_get(&KIND_TASK, "one")), json_free);
    json_set_copy(object, "status",
                  parsed(stage.arena,
                         "{\"phase\":\"interrupted\",\"assignedProplet\":\"alpha\",\"attempt\":4,"
                         "\"results\":\"old\",\"error\":\"old\",\"history\":[{\"attempt\":1}]}"));
    fake_api_put(stage.api, &KIND_TASK, object);
    stage_put_task("{" SPEC ",\"suspend\":false}");
    stage_run();
    expect_task("running", "");

    const cJSON *status = json_get(stage_get(&KIND_TASK, "one"), "status");
    ck_assert_int_eq(json_int(json_get(status, "attempt"), 0), 5);
    ck_assert_str_eq(json_text(stage.arena, json_get(status, "history"), NULL),
                     "[{\"attempt\":1}]");
    ck_assert_ptr_null(json_get(status, "results"));
    ck_assert_ptr_null(json_get(status, "error"));
}

TEST(round_robin_goes_on_after_a_task_that_is_gone)
{
    static const char *const TURNS[] = { "alpha", "beta", "alpha" };

    outside.answers = true;
    for (size_t i = 0; i < ARRAY_LEN(TURNS); i++) {
        stage_put_task("{" SPEC "}");
        stage_run();
        ck_assert_str_eq(stage_task_string("assignedProplet"), TURNS[i]);
        stage_delete(&KIND_TASK, "one");
        stage_run();
        stage_wait_ms(1000);
    }
}

TEST(late_result_is_counted_and_changes_nothing)
{
    outside.answers = true;
    stage_put_task("{" SPEC "}");
    stage_run();
    stage_receive(
        "proplet/results",
        arena_printf(stage.arena, "{\"task_id\":\"%s\",\"results\":\"43\"}", outside.runs[0].id));
    stage_run();
    ck_assert_str_eq(stage_task_string("results"), "42");
    ck_assert_uint_eq(mailbox_len(stage.task.mailbox), 0);
    ck_metric("propeller_results_rejected_total{reason=\"not_running\"} 1");
}

static const char *uid_of(const cJSON *object)
{
    return json_string(json_path(object, "metadata", "uid", NULL), "");
}

TEST(proplet_that_is_made_anew_under_its_name_is_another_one)
{
    stage_put_task("{" SPEC "}");
    stage_run();
    expect_task("running", "");

    stage_replace_proplet(stage_task_string("assignedProplet"), PROPLET("device-9", ""));
    stage_run();
    expect_task("running", "");
    ck_assert_str_eq(stage_task_string("assignedPropletUid"),
                     uid_of(stage_get(&KIND_PROPLET, stage_task_string("assignedProplet"))));
    ck_assert_uint_eq(outside.starts, 2);
    ck_assert_str_ne(outside.runs[0].id, outside.runs[1].id);
    for (int i = 0; i < 10; i++) { /* nor is the first start repeated there */
        stage_wait_ms(31000);
        stage_run();
    }
    ck_assert_ptr_null(strstr(outside.published, "device-9"));
}

TEST_GROUP("proplets", set_up, stage_tear_down);

TEST(second_claimant_of_an_identity_gets_no_tasks)
{
    stage_put_proplet("beta", PROPLET("device-1", ""));
    stage_run();
    ck_assert_str_eq(ready_reason("alpha"), "Alive");
    ck_assert_str_eq(ready_reason("beta"), "DuplicateClientId");

    stage_delete(&KIND_PROPLET, "alpha");
    stage_run();
    ck_assert_ptr_null(stage_get(&KIND_PROPLET, "alpha"));
    ck_assert_str_eq(ready_reason("beta"), "Alive");
}

/* Made again under its name, which the API server may tell in one step. */
TEST(claimant_is_woken_when_the_one_before_it_is_replaced)
{
    const struct kube_name name = { .ns = "default", .name = "alpha" };
    struct store *store = informer_store(stage.task.proplets);
    struct workqueue *queue = workqueue_create("proplet", &stage.clock.clock);
    CLEANUP(kube_object_unrefp) struct kube_object *old = store_get(store, &name);

    stage_put_proplet("beta", PROPLET("device-1", ""));
    stage_delete(&KIND_PROPLET, "alpha");
    stage_run();
    stage_put_proplet("alpha", PROPLET("device-1", ""));
    stage_run();
    ck_assert_str_eq(ready_reason("alpha"), "DuplicateClientId");
    CLEANUP(kube_object_unrefp) struct kube_object *current = store_get(store, &name);
    proplet_map_proplet(&stage.proplet, old, current, queue);
    ck_assert_uint_eq(workqueue_len(queue), 2);
    workqueue_destroy(queue);
}

TEST(nothing_is_sent_on_a_channel_that_a_microcontroller_has)
{
    stage_put_proplet("alpha", PROPLET("device-1", "\"dialect\":\"embedded\""));
    stage_put_task("{" SPEC ",\"propletSelector\":{\"propletId\":\"beta\"}}");
    stage_run();
    ck_assert_str_eq(ready_reason("alpha"), "Alive");
    ck_assert_str_eq(ready_reason("beta"), "SharedChannel");
    expect_task("pending", "PropletOffline");
    ck_assert_uint_eq(outside.starts, 0);

    stage_delete(&KIND_PROPLET, "alpha");
    stage_run();
    ck_assert_str_eq(ready_reason("beta"), "Alive");
    expect_task("running", "");
}

TEST(microcontroller_that_comes_later_takes_the_channel_from_nobody)
{
    stage_put_proplet("chip", PROPLET("chip-1", "\"dialect\":\"embedded\""));
    stage_put_proplet("last", PROPLET("last-1", ""));
    stage_run();
    ck_assert_str_eq(ready_reason("alpha"), "Alive");
    ck_assert_str_eq(ready_reason("beta"), "Alive");
    ck_assert_str_eq(ready_reason("last"), "WaitingForHeartbeat");
    ck_assert_str_eq(ready_reason("chip"), "SharedChannel");

    stage_delete(&KIND_PROPLET, "alpha");
    stage_run();
    ck_assert_str_eq(ready_reason("beta"), "Alive");
    ck_assert_str_eq(ready_reason("chip"), "SharedChannel");

    stage_delete(&KIND_PROPLET, "beta"); /* the chip is the first of those that are left */
    stage_run();
    ck_assert_str_eq(ready_reason("chip"), "WaitingForHeartbeat");
    ck_assert_str_eq(ready_reason("last"), "SharedChannel");

    stage_put_proplet("chip", PROPLET("chip-1", ""));
    stage_run();
    ck_assert_str_eq(ready_reason("last"), "WaitingForHeartbeat");
}

TEST(silent_device_is_offline_and_its_last_will_at_once)
{
    const char *will = "{\"proplet_id\":\"device-2\",\"status\":\"offline\"}";

    stage_receive("proplet/alive", will);
    stage_turns(20);
    ck_assert_str_eq(ready_reason("beta"), "LastWill");
    ck_assert_str_eq(ready_reason("alpha"), "Alive");

    stage_wait_ms(31000);
    stage_turns(20);
    ck_assert_str_eq(ready_reason("alpha"), "HeartbeatsStopped");

    stage_run();
    ck_assert_str_eq(ready_reason("alpha"), "Alive");
    ck_assert_str_eq(ready_reason("beta"), "Alive");
}

/* The flag says 30 s. Each has its own time, whatever the others of the channel have. */
TEST(a_proplet_may_say_how_long_its_silence_may_last)
{
    stage_put_proplet("alpha", PROPLET("device-1", "\"heartbeatTimeout\":\"20s\""));
    stage_put_proplet("beta", PROPLET("device-2", "\"heartbeatTimeout\":\"1m\""));
    stage_run();
    stage_wait_ms(9000);
    stage_turns(20);
    ck_assert_str_eq(ready_reason("alpha"), "Alive");
    stage_wait_ms(12000);
    stage_turns(20);
    ck_assert_str_eq(ready_reason("alpha"), "HeartbeatsStopped");
    ck_assert_str_eq(ready_reason("beta"), "Alive");
    stage_wait_ms(28000);
    stage_turns(20);
    ck_assert_str_eq(ready_reason("beta"), "Alive");
    stage_wait_ms(12000);
    stage_turns(20);
    ck_assert_str_eq(ready_reason("beta"), "HeartbeatsStopped");
}

/* Offline for longer than the Task allows, but the new leader has not listened for a whole timeout. */
TEST(a_new_leader_waits_for_the_timeout_of_the_proplet)
{
    stage_put_proplet("beta", PROPLET("device-2", "\"heartbeatTimeout\":\"1m\""));
    stage_put_task("{" SPEC ",\"propletLostPolicy\":\"Reschedule\",\"propletLostSeconds\":40,"
                   "\"propletSelector\":{\"propletId\":\"beta\"}}");
    stage_run();
    expect_task("running", "");
    stage.silent = "device-2";
    stage_wait_ms(61000);
    stage_run();
    ck_assert_str_eq(ready_reason("beta"), "HeartbeatsStopped");
    stage.dead = true;
    stage_run();
    stage_wait_ms(45000);
    stage_run();
    expect_task("running", "");
    stage_wait_ms(16000);
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "pending");
    ck_assert_int_eq(
        json_int(json_path(stage_get(&KIND_TASK, "one"), "status", "lostAttemptCount", NULL), 0),
        1);
}

TEST(steady_state_writes_the_refresh_budget_and_nothing_else)
{
    int64_t start_ms = clock_monotonic_ms(&stage.clock.clock);
    unsigned before = writes_to("/");
    unsigned status_before = writes_to("/status");

    for (int i = 0; i < 360; i++) {
        stage_wait_ms(10000);
        stage_run();
    }
    int64_t minutes = (clock_monotonic_ms(&stage.clock.clock) - start_ms) / 60000;
    unsigned writes = writes_to("/") - before;
    ck_assert_int_ge(minutes, 60);
    ck_assert_int_le(writes, 2 * minutes);
    ck_assert_int_ge(writes, minutes);
    ck_assert_uint_eq(writes, writes_to("/status") - status_before);
}

TEST(task_that_cannot_be_read_is_deleted_all_the_same)
{
    stage_put_task("{\"name\":\"one\",\"file\":\"AGFzbQEAAAA=\"}");
    stage_run();
    cJSON *task = json_copy(stage_get(&KIND_TASK, "one"));
    json_set_string((cJSON *)json_get(task, "status"), "attempt", "first");
    fake_api_put(stage.api, &KIND_TASK, task);
    json_free(task);
    stage_delete(&KIND_TASK, "one");
    stage_run();
    ck_assert_ptr_null(stage_get(&KIND_TASK, "one"));
}
