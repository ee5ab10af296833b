/* The gate of modules on the stage, with deliveries that send parts between the turns. Defines it: for one file of a
 * program, with fake_modules.h. */
#pragma once

#include "common/api/kinds.h"
#include "controller/registry/gate.h"
#include "controller/tests/fake_bridge.h"
#include "controller/tests/fake_modules.h"
#include "controller/tests/outside.h"
#include "controller/tests/stage.h"

/* Deliveries are waited for so long: for a device that just became Running. */
#define GATE_WAIT_MS 1200

static struct stage_gate {
    struct deliveries *deliveries;
    struct gate *gate;
    bool needs_signatures;
    unsigned parts;  /* that the broker acknowledged */
    bool is_cut_off; /* the broker takes no parts */
} stage_gate;

static int gate_read(void *ctx UNUSED, const char *digest, int64_t offset, void *ret, size_t len,
                     struct error *err)
{
    return wasm_modules_read(NULL, digest, offset, ret, len, err);
}

static int gate_publish(void *ctx UNUSED, const char *channel, const void *payload UNUSED,
                        size_t len UNUSED, struct error *err)
{
    int r;

    ck_assert_str_eq(channel, "d/c");
    if (outside.away || stage_gate.is_cut_off)
        return error_set(err, ERROR_UNAVAILABLE, "away");
    r = outside_use(err);
    stage_gate.parts += r == 0;
    return r;
}

static bool gate_is_unconfirmed(void *ctx UNUSED, const char *key, int64_t attempt)
{
    return attempts_is_unconfirmed(stage.task.attempts, key, attempt);
}

/* The queue of a stage takes no delays: asked too early, the Task comes again. */
static void gate_wake(void *ctx UNUSED, const struct kube_name *task, uint32_t delay_ms UNUSED)
{
    workqueue_add(stage.task.task_queue, task);
}

static void gate_begins(void)
{
    const struct deliveries_host host = {
        .clock = &stage.clock.clock,
        .bytes_per_s = 16 << 20,
        .read = gate_read,
        .publish = gate_publish,
        .is_unconfirmed = gate_is_unconfirmed,
        .wake = gate_wake,
    };

    stage_gate.deliveries = deliveries_create(&host);
    const struct gate_options options = {
        .deliveries = stage_gate.deliveries,
        .proplets = informer_store(stage.task.proplets),
        .pull_timeout_ms = 300000,
        .needs_signatures = stage_gate.needs_signatures,
    };
    stage_gate.gate = gate_create(&options);
    task_owners_add(&stage.task.owners, &GATE_OWNER, stage_gate.gate);
}

static void gate_ends(void)
{
    gate_destroy(stage_gate.gate);
    deliveries_destroy(stage_gate.deliveries);
}

/* A part a turn; the time goes on with it. */
static UNUSED bool gate_between(void)
{
    bool more = outside_between();

    if (stage.dead)
        return more;
    int64_t wait_ms = deliveries_step(stage_gate.deliveries);
    if (wait_ms > GATE_WAIT_MS || stage.dead || outside.away || stage_gate.is_cut_off)
        return more;
    fake_clock_advance(&stage.clock, wait_ms ? wait_ms : 1);
    return true;
}

/* between: calls gate_between. */
static UNUSED void gate_set_up(bool (*between)(void))
{
    stage_each_process(gate_begins, gate_ends);
    stage_set_up(outside_roundtrip, between);
    stage_run();
}

/* A member of the last start; NULL: it has none. */
static UNUSED const cJSON *gate_start_member(const char *key)
{
    const cJSON *start = NULL;

    if (!outside.published ||
        json_parse(stage.arena, outside.published, strlen(outside.published), &start, NULL) < 0)
        return NULL;
    return json_get(start, key);
}

/* A member of status.module; "" if it is not there. */
static UNUSED const char *gate_status(const char *key)
{
    const cJSON *task = stage_get(&KIND_TASK, "one");

    return json_string(json_path(task, "status", "module", key, NULL), "");
}
