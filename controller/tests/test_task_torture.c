/* Every request and every publish fails once in every way, and the process dies before and after
 * each: the end is the same, and no device runs anything twice. */
#include <stdlib.h>

#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "common/tests/fake_clock.h"
#include "common/tests/parse_json.h"
#include "controller/tests/stage.h"

enum fault { REFUSED, LOST_REPLY, CONFLICT, SERVER_ERROR, CRASH_BEFORE, CRASH_AFTER, FAULTS };
static const char *const FAULT_NAMES[FAULTS] = { "refused",      "lost reply",   "conflict",
                                                 "server error", "crash before", "crash after" };

/* A start that a device got. */
struct run {
    char id[64];
    const char *channel;
    bool running;
    int executions;
    bool stopped;
};

#define MAX_RUNS 16
#define MAX_MESSAGES 64

static struct {
    unsigned steps;   /* requests and publishes so far */
    unsigned fail_at; /* 0: never */
    enum fault fault;

    struct run runs[MAX_RUNS];
    size_t run_count;
    bool answers; /* the device has its result at once */
    bool deaf;    /* the device neither runs nor stops anything */
    bool refused; /* the broker was away when something was published */

    const char *messages[MAX_MESSAGES]; /* that the broker holds until they are acknowledged */
    size_t first, delivered, message_count;
} outside;

static bool is_dying(enum fault fault)
{
    return fault == CRASH_BEFORE || fault == CRASH_AFTER;
}

/* Whether this step is the one that fails. */
static bool fails_now(void)
{
    return ++outside.steps == outside.fail_at;
}

static int roundtrip(void *ctx, struct arena *arena, const struct http_request *request,
                     struct http_response *ret, struct error *err)
{
    static const enum fake_failure FAILURES[] = { FAKE_REFUSED, FAKE_LOST_REPLY, FAKE_CONFLICT,
                                                  FAKE_SERVER_ERROR };

    if (stage.dead)
        return error_set(err, ERROR_UNAVAILABLE, "dead");
    if (!fails_now())
        return fake_api_roundtrip(ctx, arena, request, ret, err);
    if (!is_dying(outside.fault)) {
        fake_api_fail(ctx, 1, FAILURES[outside.fault]);
        return fake_api_roundtrip(ctx, arena, request, ret, err);
    }
    stage.dead = true;
    if (outside.fault == CRASH_AFTER)
        (void)fake_api_roundtrip(ctx, arena, request, ret, err);
    return error_set(err, ERROR_UNAVAILABLE, "dead");
}

static void answer(struct run *run, const char *rest)
{
    ck_assert_uint_lt(outside.message_count, MAX_MESSAGES);
    run->running = false;
    outside.messages[outside.message_count++] = arena_printf(
        stage.arena, "{\"task_id\":\"%s\",\"proplet_id\":\"%s\",%s}", run->id, run->channel, rest);
}

static struct run *run_of(const char *channel, const char *id)
{
    for (size_t i = 0; i < outside.run_count; i++) {
        struct run *run = &outside.runs[i];
        if (str_equal(run->id, id) && str_equal(run->channel, channel))
            return run;
    }
    ck_assert_uint_lt(outside.run_count, MAX_RUNS);
    struct run *run = &outside.runs[outside.run_count++];
    ck_assert(str_copy(run->id, sizeof(run->id), id));
    run->channel = arena_strdup(stage.arena, channel);
    return run;
}

/* A device as it is: ignores an id that runs, runs a finished one again, confirms nothing. */
static void device(const char *client, bool start, const cJSON *message)
{
    struct run *run = run_of(client, json_string(json_get(message, "id"), ""));

    if (outside.deaf)
        return;
    if (start && !run->running) {
        run->running = true;
        run->executions++;
        if (outside.answers)
            answer(run, "\"results\":\"42\",\"error\":null");
    } else if (!start && run->running) {
        run->stopped = true;
        answer(run, "\"results\":\"\",\"error\":\"Task was cancelled or panicked\"");
    }
}

int bridge_publish(struct bridge *bridge UNUSED, const char *channel UNUSED, const char *suffix,
                   const void *payload, size_t len UNUSED, int qos UNUSED, struct error *err)
{
    const cJSON *message = parse_json(stage.arena, payload);
    bool fails = fails_now();
    bool delivered = !fails || outside.fault == LOST_REPLY || outside.fault == CRASH_AFTER;

    if (stage.dead)
        return error_set(err, ERROR_UNAVAILABLE, "dead");
    if (delivered)
        device(json_string(json_get(message, "proplet_id"), ""), str_equal(suffix, "manager/start"),
               message);
    stage.dead = fails && is_dying(outside.fault);
    outside.refused = !delivered;
    if (!fails)
        return 0;
    return error_set(err, delivered ? ERROR_TIMEOUT : ERROR_UNAVAILABLE, "failed");
}

struct channel_state bridge_channel_state(struct bridge *bridge UNUSED, const char *channel UNUSED)
{
    return (struct channel_state){ .since_ms = stage.since_ms, .results_since_ms = stage.since_ms };
}

bool bridge_backlog_drained(struct bridge *bridge UNUSED)
{
    return stage.drained;
}

void bridge_channel_add(struct bridge *bridge UNUSED, const char *channel UNUSED)
{
}

void bridge_channel_remove(struct bridge *bridge UNUSED, const char *channel UNUSED)
{
}

/* The broker: delivers in order, again after a crash what was not acknowledged, and the controller
 * acknowledges when its mailbox is empty. */
static void broker(void)
{
    static bool was_dead;

    if (stage.dead) {
        was_dead = true;
        return;
    }
    if (outside.refused)
        stage_reconnect();
    outside.refused = false;
    if (was_dead)
        outside.delivered = outside.first;
    was_dead = false;
    while (outside.delivered < outside.message_count)
        stage_receive("proplet/results", outside.messages[outside.delivered++]);
    if (mailbox_len(stage.shared.mailbox) == 0) {
        outside.first = outside.delivered;
        if (!stage.drained) {
            stage.drained = true;
            stage_reconnect();
        }
    }
}

static void put_proplet(const char *name, const char *client)
{
    fake_api_put(
        stage.api, &KIND_PROPLET,
        parse_json(stage.arena,
                   arena_printf(stage.arena,
                                "{\"metadata\":{\"namespace\":\"default\",\"name\":\"%s\"},"
                                "\"spec\":{\"type\":\"external\",\"connectionConfig\":{"
                                "\"mqttAddress\":\"tcp://b\",\"domainId\":\"d\","
                                "\"channelId\":\"c\",\"clientId\":\"%s\"}}}",
                                name, client)));
}

static void put_spec(const char *spec)
{
    const char *object = arena_printf(
        stage.arena, "{\"metadata\":{\"namespace\":\"default\",\"name\":\"one\"},\"spec\":%s}",
        spec);

    stage_change_task(parse_json(stage.arena, object));
}

#define SPEC "\"name\":\"one\",\"file\":\"AGFzbQEAAAA=\",\"inputs\":[10,32]"

static void create(void)
{
    put_spec("{" SPEC "}");
}

static void create_to_be_deleted_when_finished(void)
{
    put_spec("{" SPEC ",\"ttlSecondsAfterFinished\":60}");
}

static void suspend(void)
{
    put_spec("{" SPEC ",\"suspend\":true}");
}

static void delete (void)
{
    const struct kube_name name = { "default", "one" };

    fake_api_delete(stage.api, &KIND_TASK, &name);
}

static void let_answer(void)
{
    outside.answers = true;
    for (size_t i = 0; i < outside.run_count; i++) {
        if (outside.runs[i].running)
            answer(&outside.runs[i], "\"results\":\"42\",\"error\":null");
    }
}

static void let_fail(void)
{
    answer(&outside.runs[0], "\"results\":\"\",\"error\":\"trap\"");
}

static void go_deaf(void)
{
    outside.deaf = true;
}

static void wait_a_minute(void)
{
    stage_wait_ms(61000);
}

#define MAX_ACTS 5
static const struct {
    const char *name;
    void (*acts[MAX_ACTS])(void); /* the controller comes to rest after each */
    const char *end;
} SCENARIOS[] = {
    { "result at once", { let_answer, create }, "completed 42 attempt 1 True True True; uid x1" },
    { "result later", { create, let_answer }, "completed 42 attempt 1 True True True; uid x1" },
    { "error", { create, let_fail }, "failed trap attempt 1 True True False; uid x1" },
    { "suspend and resume",
      { create, suspend, let_answer, create },
      "completed 42 attempt 2 True True True; uid x1 stopped; uid.2 x1" },
    { "created suspended",
      { suspend, let_answer, create },
      "completed 42 attempt 1 True True True; uid x1" },
    { "deleted while running", { create, delete }, "gone; uid x1 stopped" },
    { "deleted when finished", { let_answer, create, delete }, "gone; uid x1" },
    { "deleted while the device is deaf",
      { create, go_deaf, delete, wait_a_minute },
      "gone; uid x1" },
    { "deleted by its time to live",
      { let_answer, create_to_be_deleted_when_finished, wait_a_minute },
      "gone; uid x1" },
};

static const char *condition_status(const cJSON *conditions, const char *type)
{
    return json_string(json_get(condition_get(conditions, type), "status"), "-");
}

/* What is left in the cluster, and what was done to devices. */
static const char *ending(void)
{
    const struct kube_name name = { "default", "one" };
    const cJSON *task = fake_api_get(stage.api, stage.arena, &KIND_TASK, &name);
    const cJSON *status = json_get(task, "status");
    const cJSON *conditions = json_get(status, "conditions");
    const char *text = "gone";

    if (task)
        text = arena_printf(
            stage.arena, "%s %s attempt %d %s %s %s", json_string(json_get(status, "phase"), "-"),
            json_string(json_get(status, "results"), json_string(json_get(status, "error"), "-")),
            (int)json_int(json_get(status, "attempt"), 0),
            condition_status(conditions, "Scheduled"), condition_status(conditions, "Started"),
            condition_status(conditions, "Completed"));
    for (size_t i = 0; i < outside.run_count; i++) {
        const struct run *run = &outside.runs[i];
        const char *dot = strchr(run->id, '.');
        text = arena_printf(stage.arena, "%s; uid%s x%d%s", text, dot ? dot : "", run->executions,
                            run->stopped ? " stopped" : "");
    }
    return text;
}

static void play(size_t scenario, unsigned fail_at, enum fault fault)
{
    memset(&outside, 0, sizeof(outside));
    stage_set_up(roundtrip, broker);
    put_proplet("alpha", "device-1");
    put_proplet("beta", "device-2");
    stage_run();
    outside.steps = 0;
    outside.fail_at = fail_at;
    outside.fault = fault;
    for (size_t i = 0; i < MAX_ACTS && SCENARIOS[scenario].acts[i]; i++) {
        SCENARIOS[scenario].acts[i]();
        stage_run();
    }
    const char *text = ending();
    ck_assert_msg(str_equal(text, SCENARIOS[scenario].end), "%s, step %u %s: '%s', not '%s'",
                  SCENARIOS[scenario].name, fail_at, FAULT_NAMES[fault], text,
                  SCENARIOS[scenario].end);
    ck_assert_uint_eq(mailbox_len(stage.shared.mailbox), 0);
    stage_tear_down();
}

START_TEST(no_single_failure_changes_the_end_or_runs_anything_twice)
{
    play((size_t)_i, 0, REFUSED);
    unsigned steps = outside.steps;

    ck_assert_uint_gt(steps, 0);
    for (unsigned step = 1; step <= steps; step++) {
        for (enum fault fault = 0; fault < FAULTS; fault++)
            play((size_t)_i, step, fault);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("task: torture");
    TCase *tcase = tcase_create("torture");

    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, no_single_failure_changes_the_end_or_runs_anything_twice, 0,
                        ARRAY_LEN(SCENARIOS));
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
