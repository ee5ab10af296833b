/* Every request of the reconcilers of vmafx.dev fails once in every way, and the process dies before and after each:
 * the statuses are the same at the end, members of other writers stay, and no Event comes too often. */
#include <sched.h>
#include <string.h>

#include "common/api/kinds.h"
#include "common/base/str.h"
#include "controller/tests/staged.h"
#include "controller/tests/vmafx_stage.h"

#define TRIES 20
#define HEARTBEAT "2026-11-21T11:00:00.250+01:00"

struct act {
    const struct kube_kind *kind;
    const char *name;
    void (*before)(void);
};

static void schedule(void)
{
    vmafx.peer.job = (struct vmafx_peer_job){ .status = 1, .node = "gpu-1" };
    vmafx_stage_put(&KIND_VMAFXJOB, "one", "{\"controllerJobID\":\"job-7\"}");
}

static void complete(void)
{
    vmafx.peer.job = (struct vmafx_peer_job){ .status = 2, .score = 97.5 };
}

/* The answer to the probe is there before the turn. */
static void beat(void)
{
    vmafx_stage_put(&KIND_VMAFXNODE, "gpu-1", "{\"lastHeartbeat\":\"" HEARTBEAT "\"}");
    tiny_server_answer(vmafx.http, "/default/quality/status", 200,
                       "{\"phase\":\"running\",\"current_samples\":7,\"model_version\":\"v1\","
                       "\"last_checkpoint_time\":\"2026-11-21T09:00:00Z\"}");
    vmafx_stage_put(&KIND_VMAFXMODELTRAINING, "quality", NULL);
}

static const struct act ACTS[] = {
    { &KIND_VMAFXJOB, "one", schedule },
    { &KIND_VMAFXNODE, "gpu-1", beat },
    { &KIND_VMAFXMODELTRAINING, "quality", NULL },
    { &KIND_VMAFXJOB, "one", complete },
    { &KIND_VMAFXNODE, "gpu-1", NULL },
};

/* Turns until one succeeds. */
static void turn(const struct act *act)
{
    bool done = false;

    for (int i = 0; i < TRIES && !done; i++) {
        if (vmafx.dead)
            vmafx_stage_restart();
        while (act->kind == &KIND_VMAFXNODE &&
               vmafx_prober_state(vmafx.node.prober, "default") == VMAFX_PROBE_UNKNOWN)
            (void)sched_yield();
        done = vmafx_stage_turn(act->kind, act->name) == 0 && !vmafx.dead;
    }
    ck_assert_msg(done, "%s", act->name);
    if (act->kind == &KIND_VMAFXJOB) /* until its next poll */
        vmafx_stage_wait_ms(VMAFX_JOB_POLL_MS / 10 * 12);
}

static unsigned count(const char *events, const char *reason)
{
    unsigned found = 0;

    for (const char *at = events; (at = strstr(at, reason)); at++)
        found++;
    return found;
}

static void play(unsigned fail_at, enum fault fault)
{
    vmafx_stage_set_up();
    vmafx.fail_at = fail_at;
    vmafx.fault = fault;
    for (size_t i = 0; i < ARRAY_LEN(ACTS); i++) {
        if (ACTS[i].before)
            ACTS[i].before();
        turn(&ACTS[i]);
    }
    const char *said =
        arena_printf(vmafx.arena, "%s %s %s; %s %s %s; %s %s",
                     vmafx_stage_member(&KIND_VMAFXJOB, "one", "phase"),
                     vmafx_stage_member(&KIND_VMAFXJOB, "one", "score"),
                     vmafx_stage_member(&KIND_VMAFXJOB, "one", "controllerJobID"),
                     vmafx_stage_member(&KIND_VMAFXNODE, "gpu-1", "healthy"),
                     vmafx_stage_member(&KIND_VMAFXNODE, "gpu-1", "assignedJobs"),
                     vmafx_stage_member(&KIND_VMAFXNODE, "gpu-1", "lastHeartbeat"),
                     vmafx_stage_member(&KIND_VMAFXMODELTRAINING, "quality", "phase"),
                     vmafx_stage_member(&KIND_VMAFXMODELTRAINING, "quality", "currentSamples"));
    const char *events = vmafx_stage_events();

    ck_assert_msg(str_equal(said, "Succeeded 97.5 job-7; true 0 " HEARTBEAT "; Running 7"),
                  "step %u %s: '%s'", fail_at, FAULT_NAMES[fault], said);
    ck_assert_msg(count(events, "Completed") <= 1 && count(events, "Started") <= 1 &&
                      count(events, "CheckpointWritten") <= 1 && count(events, "NodeHealthy") <= 1,
                  "step %u %s: '%s'", fail_at, FAULT_NAMES[fault], events);
    vmafx_stage_tear_down();
}

#define STEPS 6 /* more than there are requests */

TEST(without_a_failure_each_change_is_one_request)
{
    play(0, FAULT_REFUSED);
    ck_assert_uint_eq(vmafx.steps, STEPS - 1);
}

TEST_TIMES(no_single_failure_changes_the_end, FAULTS)
{
    for (unsigned step = 1; step < STEPS; step++)
        play(step, (enum fault)_i);
}
