#include "controller/tests/outside.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/str.h"
#include "common/tests/fake_api.h"
#include "common/tests/parsed.h"
#include "controller/bridge/bridge_fence.h"
#include "controller/bridge/bridge_messages.h"
#include "controller/bridge/quarantine.h"
#include "controller/tests/cluster_model.h"
#include "controller/tests/stage.h"
#include "controller/tests/staged.h"

#define ANSWER "\"results\":\"42\",\"error\":null"

struct outside outside;

const char *const FAULT_NAMES[FAULTS] = { "refused",      "lost reply",   "conflict",
                                          "server error", "crash before", "crash after" };

void outside_reset(void)
{
    memset(&outside, 0, sizeof(outside));
    cluster = (struct cluster){ 0 };
}

void outside_set_up(void)
{
    outside_reset();
    stage_set_up(outside_roundtrip, outside_between);
    stage_run();
}

static bool is_dying(void)
{
    return outside.fault == FAULT_CRASH_BEFORE || outside.fault == FAULT_CRASH_AFTER;
}

static void deliver(void);

static bool fails_now(void)
{
    if (++outside.steps == outside.answer_at) {
        outside_answer(ANSWER);
        deliver();
    }
    return outside.steps == outside.fail_at;
}

int outside_use(struct error *err)
{
    if (!stage.dead && !fails_now())
        return 0;
    stage.dead |= is_dying();
    return error_set(err, ERROR_UNAVAILABLE, "it fails");
}

int outside_roundtrip(void *ctx, struct arena *arena, const struct http_request *request,
                      struct http_response *ret, struct error *err)
{
    if (stage.dead)
        return error_set(err, ERROR_UNAVAILABLE, "dead");
    if (!fails_now())
        return fake_api_roundtrip(ctx, arena, request, ret, err);
    return staged_failure(outside.fault, &stage.dead, ctx, arena, request, ret, err);
}

void outside_send(const char *suffix, const char *payload)
{
    ck_assert_uint_lt(outside.message_count, OUTSIDE_MESSAGES);
    outside.messages[outside.message_count].suffix = suffix;
    outside.messages[outside.message_count++].payload = payload;
}

static void answer(const struct run *run, const char *results_and_error)
{
    outside_send("proplet/results",
                 arena_printf(stage.arena, "{\"task_id\":\"%s\",\"proplet_id\":\"%s\",%s}", run->id,
                              run->client, results_and_error));
}

static void finish(struct run *run, const char *results_and_error)
{
    run->running = false;
    answer(run, results_and_error);
}

static const char *answer_of(const struct run *run)
{
    return outside.answer_of ? outside.answer_of(run) : ANSWER;
}

void outside_answer(const char *results_and_error)
{
    for (size_t i = 0; i < outside.run_count; i++) {
        struct run *run = &outside.runs[i];
        if (run->running && !str_equal(run->client, outside.absent))
            finish(run, results_and_error);
    }
}

void outside_restart(void)
{
    for (size_t i = 0; i < outside.run_count; i++) {
        outside.runs[i].running = false;
        outside.runs[i].instances = 0;
    }
    outside_send("proplet/create", "{\"proplet_id\":\"device-1\"}");
    outside_send("proplet/create", "{\"proplet_id\":\"device-2\"}");
}

void outside_restart_one(const char *client)
{
    for (size_t i = 0; i < outside.run_count; i++) {
        if (str_equal(outside.runs[i].client, client))
            outside.runs[i].running = false;
    }
    outside_send("proplet/create", arena_printf(stage.arena, "{\"proplet_id\":\"%s\"}", client));
}

bool outside_answer_one(const char *id)
{
    for (size_t i = 0; i < outside.run_count; i++) {
        struct run *run = &outside.runs[i];
        if (run->running && str_equal(run->id, id)) {
            finish(run, answer_of(run));
            return true;
        }
    }
    return false;
}

static struct run *run_of(const char *client, const char *id)
{
    for (size_t i = 0; i < outside.run_count; i++) {
        struct run *run = &outside.runs[i];
        if (str_equal(run->id, id) && str_equal(run->client, client))
            return run;
    }
    ck_assert_uint_lt(outside.run_count, OUTSIDE_RUNS);
    struct run *run = &outside.runs[outside.run_count++];
    ck_assert(str_copy(run->id, sizeof(run->id), id));
    run->client = arena_strdup(stage.arena, client);
    return run;
}

static void start_run(struct run *run, bool daemon)
{
    if (run->running)
        return;

    run->executions++;
    run->running = !daemon;
    if (daemon) {
        run->instances++;
        answer(run, "\"results\":\"\",\"error\":null");
    } else if (outside.answers) {
        finish(run, answer_of(run));
    }
}

/* A daemon ends without a word, and only one instance of it. */
static void stop_run(struct run *run)
{
    if (run->instances)
        run->instances--;
    if (!run->running)
        return;

    run->stopped = true;
    finish(run, "\"results\":\"\",\"error\":\"Task was cancelled or panicked\"");
}

/* Ignores an id that runs, runs a finished one again, confirms nothing. */
static void device(const char *payload, bool start)
{
    const cJSON *message = parsed(stage.arena, payload);
    const char *client = json_string(json_get(message, "proplet_id"), "anybody");
    struct run *run;

    if (str_equal(client, outside.absent))
        return;

    run = run_of(client, json_string(json_get(message, "id"), ""));
    if (start)
        start_run(run, json_bool(json_get(message, "daemon"), false));
    else
        stop_run(run);
}

int outside_publish(const char *suffix, const char *payload, int qos, struct error *err)
{
    bool start = str_equal(suffix, "manager/start");

    if (stage.dead)
        return error_set(err, ERROR_UNAVAILABLE, "dead");
    if (outside.at_publish)
        outside.at_publish(suffix);

    bool fails = fails_now() || outside.away;
    bool delivered = !fails || (!outside.away && (outside.fault == FAULT_LOST_REPLY ||
                                                  outside.fault == FAULT_CRASH_AFTER));
    outside.refused = !delivered;
    if (delivered) {
        outside.published = arena_strdup(stage.arena, payload);
        outside.published_qos = qos;
        outside.starts += start;
        if (!outside.deaf)
            device(payload, start);
    }
    stage.dead = fails && !outside.away && is_dying();
    if (!fails)
        return 0;
    return error_set(err, delivered ? ERROR_TIMEOUT : ERROR_UNAVAILABLE, "failed");
}

/* One was lost, so long ago that it is noticed. */
static bool is_noticed(void)
{
    return clock_monotonic_ms(&stage.clock.clock) - outside.marker_lost_ms >= FENCE_TIMEOUT_MS;
}

bool outside_marker_is_overdue(void)
{
    return outside.marker_overdue || (outside.marker_lost_ms > 0 && is_noticed());
}

void outside_request_marker(int64_t since_ms)
{
    if (stage.fence_ms > since_ms || !is_noticed())
        return;
    outside.marker_sent = true;
    outside.marker_overdue = outside.marker_lost_ms > 0;
}

static void hold(const struct outside_copy *copy)
{
    const struct mail mail = { .kind = copy->kind,
                               .source = copy->source,
                               .body = copy->body,
                               .body_len = strlen(copy->body) };

    if (copy->name)
        mailbox_put_copy(stage.task.mailbox, copy->uid, &mail, copy->name);
}

static void hold_all(void)
{
    for (size_t i = 0; i < outside.copy_count; i++)
        hold(&outside.copies[i]);
}

static void remove_copies(void)
{
    for (char *name; (name = mailbox_take_released(stage.task.mailbox)); free(name)) {
        for (size_t i = 0; i < outside.copy_count; i++) {
            if (str_equal(outside.copies[i].name, name))
                outside.copies[i].name = NULL;
        }
    }
}

/* As quarantine.c, whose thread these tests do not run. */
static void quarantine(void)
{
    int64_t now_ms = clock_monotonic_ms(&stage.clock.clock);
    enum result_refusal refusal;
    const char *uid;
    struct mail mail;

    remove_copies();
    while (mailbox_overdue(stage.task.mailbox, stage.arena, now_ms - QUARANTINE_AFTER_MS, now_ms,
                           now_ms + 1, &uid, &mail)) {
        if (!mail_is_result(mail.kind, &refusal)) {
            mailbox_hold(stage.task.mailbox, uid, mail.sequence);
            continue;
        }
        ck_assert_uint_lt(outside.copy_count, OUTSIDE_MESSAGES);
        struct outside_copy *copy = &outside.copies[outside.copy_count++];
        *copy = (struct outside_copy){
            .name = arena_printf(stage.arena, "copy-%zu", outside.copy_count),
            .uid = uid,
            .kind = mail.kind,
            .source = mail.source,
            .body = mail.body,
        };
        hold(copy);
    }
    if (mailbox_recall(stage.task.mailbox, now_ms))
        hold_all();
}

/* A process has so many turns before the first message of the backlog comes. */
#define TURNS_BEFORE_BACKLOG 10

/* By the other connection, while the first messages of the backlog are dealt with. */
#define DELIVERIES_BEFORE_COPIES 3

static void bring_copies(void)
{
    if (!outside.copies_due || --outside.copies_due)
        return;
    hold_all();
    mailbox_expect_copies(stage.task.mailbox, false);
    stage_wake_active();
}

static void deliver(void)
{
    quarantine();
    bring_copies();
    for (; outside.delivered < outside.message_count &&
           (!outside.one_by_one || mailbox_wait_empty(stage.task.mailbox, 0));
         outside.delivered++)
        stage_receive(outside.messages[outside.delivered].suffix,
                      outside.messages[outside.delivered].payload);
    if (!mailbox_wait_empty(stage.task.mailbox, 0))
        return;

    outside.acknowledged = outside.delivered;
    if (outside.marker_sent) {
        outside.marker_sent = false;
        outside.marker_lost_ms = 0;
        if (outside.lose_markers) {
            outside.lose_markers--;
            outside.marker_lost_ms = clock_monotonic_ms(&stage.clock.clock);
        } else {
            outside.marker_overdue = false;
            stage_marker();
        }
    }
}

/* Delivers in order, again to the next process, and takes a message for acknowledged when
 * nothing waits in the mailbox. */
bool outside_between(void)
{
    if (stage.dead) {
        void (*meanwhile)(void) = outside.meanwhile;
        outside.died = true;
        outside.meanwhile = NULL;
        if (meanwhile)
            meanwhile();
        return true;
    }
    if (cluster.on && cluster_step())
        return true;
    if (outside.away || outside.slow)
        return false;
    if (outside.died) {
        mailbox_expect_copies(stage.task.mailbox, true);
        outside.copies_due = DELIVERIES_BEFORE_COPIES;
        outside.delivered = outside.acknowledged;
        outside.turns = 0;
        outside.marker_lost_ms = 0;
        outside.marker_sent = false;
    }
    outside.died = false;
    if (outside.refused)
        stage_reconnect();
    outside.refused = false;
    if (outside.turns++ < TURNS_BEFORE_BACKLOG && !stage.fence_ms)
        return true;
    deliver();
    return outside.copies_due > 0;
}
