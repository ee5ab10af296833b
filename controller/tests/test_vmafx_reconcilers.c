/* The reconcilers of vmafx.dev: what they ask, what they write, and what they leave alone. */
#include <sched.h>
#include <string.h>

#include "common/api/kinds.h"
#include "common/base/str.h"
#include "controller/tests/staged.h"
#include "controller/tests/vmafx_stage.h"

#define JOB &KIND_VMAFXJOB, "one"
#define NODE &KIND_VMAFXNODE, "gpu-1"
#define TRAINING &KIND_VMAFXMODELTRAINING, "quality"
#define FOLLOWED "{\"controllerJobID\":\"job-7\"}"
/* 2026-11-21T10:00:00Z, the wall clock of the tests, as its node writes it in a zone of its own. */
#define HEARTBEAT "2026-11-21T11:00:00.250+01:00"

enum peer_status { PENDING, RUNNING, COMPLETED, FAILED, CANCELLED };

static void expect(const struct kube_kind *kind, const char *name, const char *member,
                   const char *value)
{
    ck_assert_str_eq(vmafx_stage_member(kind, name, member), value);
}

static unsigned asked(void)
{
    return h2_server_requests(vmafx.peer.server);
}

/* --- jobs ------------------------------------------------------------------------------------- */

TEST_GROUP("jobs", vmafx_stage_set_up, vmafx_stage_tear_down);

TEST(job_without_an_id_is_pending_and_nobody_is_asked)
{
    vmafx_stage_put(JOB, NULL);
    vmafx_stage_expect_turn(JOB);
    expect(JOB, "phase", "Pending");
    ck_assert_uint_eq(vmafx.again_ms, 0);
    vmafx_stage_expect_turn(JOB);
    ck_assert_uint_eq(asked(), 0);
    ck_assert_uint_eq(vmafx_stage_patches(), 1);
}

TEST(job_is_followed_to_its_score)
{
    vmafx.peer.job = (struct vmafx_peer_job){ .status = RUNNING, .node = "gpu-1" };
    vmafx_stage_put(JOB, FOLLOWED);
    vmafx_stage_expect_turn(JOB);
    ck_assert_str_eq(vmafx.peer.asked, "job-7");
    expect(JOB, "phase", "Running");
    expect(JOB, "assignedNode", "gpu-1");
    expect(JOB, "startedAt", "2026-11-21T10:00:00Z");

    vmafx.peer.job = (struct vmafx_peer_job){ .status = COMPLETED, .score = -0.5 };
    vmafx_stage_wait_ms(vmafx.again_ms);
    vmafx_stage_expect_turn(JOB);
    expect(JOB, "phase", "Succeeded");
    expect(JOB, "score", "-0.5");
    expect(JOB, "controllerJobID", "job-7");
    ck_assert_str_eq(vmafx_stage_events(), "Started Completed ");
}

TEST(job_that_goes_back_to_the_queue_loses_its_node_and_start)
{
    vmafx.peer.job = (struct vmafx_peer_job){ .status = RUNNING, .node = "gpu-1" };
    vmafx_stage_put(JOB, FOLLOWED);
    vmafx_stage_expect_turn(JOB);
    vmafx.peer.job = (struct vmafx_peer_job){ .status = PENDING };
    vmafx_stage_wait_ms(vmafx.again_ms);
    vmafx_stage_expect_turn(JOB);
    ck_assert_str_eq(json_text(vmafx.arena, vmafx_stage_status(JOB), NULL),
                     "{\"controllerJobID\":\"job-7\",\"phase\":\"Pending\"}");
}

TEST(job_that_has_ended_is_not_asked_for_again)
{
    vmafx.peer.job = (struct vmafx_peer_job){ .status = CANCELLED };
    vmafx_stage_put(JOB, FOLLOWED);
    vmafx_stage_expect_turn(JOB);
    expect(JOB, "phase", "Failed");
    expect(JOB, "message", "cancelled by controller");
    vmafx_stage_expect_turn(JOB);
    ck_assert_uint_eq(vmafx.again_ms, 0);
    ck_assert_uint_eq(asked(), 1);
    ck_assert_uint_eq(vmafx_stage_patches(), 1);
    ck_assert_uint_eq(vmafx_notes_count(vmafx.job.notes), 0);
}

TEST(job_is_polled_every_ten_seconds_whatever_changes_it)
{
    vmafx.peer.job = (struct vmafx_peer_job){ .status = RUNNING };
    vmafx_stage_put(JOB, FOLLOWED);
    vmafx_stage_expect_turn(JOB);
    ck_assert_uint_ge(vmafx.again_ms, 9000);
    ck_assert_uint_le(vmafx.again_ms, 11000);
    uint32_t wait_ms = vmafx.again_ms;

    vmafx_stage_expect_turn(JOB); /* by its own write */
    vmafx_stage_wait_ms(wait_ms - 1);
    vmafx_stage_expect_turn(JOB);
    ck_assert_uint_eq(asked(), 1);
    ck_assert_uint_eq(vmafx.again_ms, 1);
    vmafx_stage_wait_ms(1);
    vmafx_stage_expect_turn(JOB);
    ck_assert_uint_eq(asked(), 2);
    ck_assert_uint_eq(h2_server_connections(vmafx.peer.server), 1);
    ck_assert_uint_eq(vmafx_stage_patches(), 1);
}

TEST(job_is_asked_for_at_once_when_it_gets_another_id)
{
    vmafx.peer.grpc_status = GRPC_NOT_FOUND;
    vmafx_stage_put(JOB, FOLLOWED);
    vmafx_stage_expect_turn(JOB);
    vmafx_stage_wait_ms(VMAFX_JOB_UNKNOWN_MS);

    vmafx_stage_put(JOB, "{\"phase\":\"Pending\",\"controllerJobID\":\"job-8\"}");
    vmafx_stage_expect_turn(JOB);
    ck_assert_str_eq(vmafx.peer.asked, "job-8");
    expect(JOB, "phase", "Pending"); /* its own two minutes begin now */
    vmafx_stage_wait_ms(VMAFX_JOB_UNKNOWN_MS);
    vmafx_stage_expect_turn(JOB);
    expect(JOB, "message", "the controller does not know job 'job-8'");
}

TEST(absence_of_the_controller_is_told_once_and_so_is_its_return)
{
    static const uint32_t WAITS_MS[] = { 10000, 20000, 40000, 60000, 60000 };

    vmafx.peer.grpc_status = GRPC_UNAVAILABLE;
    vmafx_stage_put(JOB, FOLLOWED);
    for (size_t i = 0; i < ARRAY_LEN(WAITS_MS); i++) {
        vmafx_stage_expect_turn(JOB);
        ck_assert_uint_ge(vmafx.again_ms, WAITS_MS[i] / 10 * 9);
        ck_assert_uint_le(vmafx.again_ms, WAITS_MS[i] / 10 * 11);
        vmafx_stage_wait_ms(vmafx.again_ms);
    }
    expect(JOB, "phase", "Pending");
    ck_assert_uint_eq(vmafx_stage_patches(), 1);
    vmafx.peer.grpc_status = 0;
    vmafx_stage_expect_turn(JOB);
    ck_assert_str_eq(vmafx_stage_events(), "ControllerUnavailable ControllerBack ");
}

TEST(writes_of_others_in_between_are_kept)
{
    vmafx.peer.job = (struct vmafx_peer_job){ .status = RUNNING, .node = "gpu-1" };
    vmafx_stage_put(JOB, FOLLOWED);
    vmafx.is_late = true;
    vmafx_stage_put(JOB, "{\"controllerJobID\":\"job-8\",\"message\":\"of another program\"}");
    vmafx_stage_expect_turn(JOB);
    expect(JOB, "phase", "Running");
    expect(JOB, "controllerJobID", "job-8");
    expect(JOB, "message", "of another program");
}

TEST(write_to_an_object_of_the_same_name_is_refused)
{
    const struct kube_name name = staged_name("one");

    vmafx.peer.job = (struct vmafx_peer_job){ .status = COMPLETED };
    vmafx_stage_put(JOB, FOLLOWED);
    vmafx.is_late = true;
    fake_api_delete(vmafx.api, &KIND_VMAFXJOB, &name);
    vmafx_stage_put(JOB, FOLLOWED);
    ck_assert_int_eq(vmafx_stage_turn(JOB), -ERROR_INVALID); /* the watch brings the new one */
    expect(JOB, "phase", "");
    ck_assert_str_eq(vmafx_stage_events(), "");
}

TEST(status_that_another_writer_begins_meanwhile_is_not_replaced)
{
    vmafx_stage_put(JOB, NULL);
    vmafx.is_late = true;
    vmafx_stage_put(JOB, FOLLOWED);
    ck_assert_int_eq(vmafx_stage_turn(JOB), -ERROR_CONFLICT);
    expect(JOB, "controllerJobID", "job-7");
}

TEST(answer_that_was_not_written_is_asked_for_again)
{
    vmafx.peer.job = (struct vmafx_peer_job){ .status = COMPLETED, .score = 97.5 };
    vmafx_stage_put(JOB, FOLLOWED);
    vmafx.fail_at = 1;
    vmafx.fault = FAULT_SERVER_ERROR;
    ck_assert_int_lt(vmafx_stage_turn(JOB), 0);
    vmafx_stage_expect_turn(JOB);
    ck_assert_uint_eq(asked(), 2);
    expect(JOB, "score", "97.5");
    ck_assert_str_eq(vmafx_stage_events(), "Completed ");
}

TEST(member_that_the_crd_of_the_cluster_lacks_is_not_written_again)
{
    vmafx.pruned = "assignedNode";
    vmafx.peer.job = (struct vmafx_peer_job){ .status = RUNNING, .node = "gpu-1" };
    vmafx_stage_put(JOB, FOLLOWED);
    for (int i = 0; i < 3; i++) {
        vmafx_stage_expect_turn(JOB);
        vmafx_stage_wait_ms(vmafx.again_ms);
    }
    expect(JOB, "phase", "Running");
    expect(JOB, "assignedNode", "");
    ck_assert_uint_eq(asked(), 3);
    ck_assert_uint_eq(vmafx_stage_patches(), 1);

    vmafx.peer.job.status = PENDING;
    vmafx_stage_expect_turn(JOB);
    expect(JOB, "phase", "Pending");
}

TEST(deleted_job_asks_nobody)
{
    const struct kube_name name = staged_name("one");

    vmafx_stage_put(JOB, "{\"phase\":\"Running\",\"controllerJobID\":\"job-7\"}");
    vmafx_stage_expect_turn(JOB);
    ck_assert_uint_eq(vmafx_notes_count(vmafx.job.notes), 1);
    fake_api_delete(vmafx.api, &KIND_VMAFXJOB, &name);
    vmafx_stage_wait_ms(VMAFX_JOB_MAX_WAIT_MS);
    vmafx_stage_expect_turn(JOB);
    ck_assert_uint_eq(asked(), 1);
    ck_assert_uint_eq(vmafx_notes_count(vmafx.job.notes), 0);
}

/* --- nodes ------------------------------------------------------------------------------------ */

TEST_GROUP("nodes", vmafx_stage_set_up, vmafx_stage_tear_down);

static struct workqueue *nodes(void)
{
    return vmafx.queues[1];
}

/* Takes the name that a probe or a job queued. */
static void expect_woken(const char *node)
{
    struct kube_name name;

    ck_assert(workqueue_get(nodes(), &name));
    workqueue_done(nodes(), &name);
    ck_assert_str_eq(name.name, node);
}

/* The object, and the first answer to a probe. */
static void put_node(const char *status)
{
    vmafx_stage_put(NODE, status);
    expect_woken("gpu-1");
    vmafx_stage_expect_turn(NODE);
    ck_assert_uint_eq(vmafx_stage_patches(), 0); /* not before the probe */
    expect_woken("gpu-1");
    vmafx_stage_expect_turn(NODE);
}

static void probe_again(void)
{
    struct workqueue *queue = vmafx_prober_queue(vmafx.node.prober);

    while (!workqueue_len(queue)) /* the probe before has not ended */
        (void)sched_yield();
    vmafx_stage_wait_ms(VMAFX_PROBE_MS);
    workqueue_poke(queue);
}

TEST(node_is_healthy_when_its_controller_answers)
{
    put_node(NULL);
    expect(NODE, "healthy", "true");
    expect(NODE, "assignedJobs", "0");
    vmafx_stage_expect_turn(NODE);
    ck_assert_uint_eq(vmafx_stage_patches(), 1);
    ck_assert_str_eq(vmafx_stage_events(), "NodeHealthy ");
}

TEST(members_that_the_node_writes_stay_byte_for_byte)
{
    put_node("{\"lastHeartbeat\":\"" HEARTBEAT "\",\"detectedDevice\":\"a card\"}");
    expect(NODE, "healthy", "true");
    expect(NODE, "lastHeartbeat", HEARTBEAT);
    expect(NODE, "detectedDevice", "a card");
}

TEST(newer_heartbeat_is_not_undone)
{
    vmafx_stage_put(NODE, "{\"lastHeartbeat\":\"" HEARTBEAT "\"}");
    expect_woken("gpu-1");
    vmafx_stage_expect_turn(NODE);
    expect_woken("gpu-1"); /* by the probe */
    vmafx.is_late = true;
    vmafx_stage_put(NODE, "{\"lastHeartbeat\":\"2026-11-21T10:00:09Z\"}");
    vmafx_stage_expect_turn(NODE);
    expect(NODE, "healthy", "true");
    expect(NODE, "lastHeartbeat", "2026-11-21T10:00:09Z");
}

TEST(late_heartbeat_makes_a_node_unhealthy_within_a_second_whatever_the_probe_says)
{
    put_node("{\"lastHeartbeat\":\"" HEARTBEAT "\"}");
    vmafx_stage_expect_turn(NODE);
    ck_assert_uint_gt(vmafx.again_ms, 60000);
    ck_assert_uint_le(vmafx.again_ms, 61000);
    vmafx_stage_wait_ms(vmafx.again_ms);
    vmafx_stage_expect_turn(NODE);
    expect(NODE, "healthy", "false");
    expect(NODE, "lastHeartbeat", HEARTBEAT);
    ck_assert_str_eq(vmafx_stage_events(), "NodeHealthy NodeUnhealthy ");
    ck_assert_str_eq(vmafx_stage_last_note(), "no heartbeat for 60 s");
    ck_assert_uint_eq(vmafx.again_ms, 0);
}

TEST(node_follows_the_probes_of_its_controller)
{
    put_node(NULL);
    (void)vmafx_stage_events();
    expect_woken("gpu-1"); /* by its own write */

    tiny_server_answer(vmafx.http, "/healthz", 500, "");
    probe_again();
    expect_woken("gpu-1");
    vmafx_stage_expect_turn(NODE);
    expect(NODE, "healthy", "false");
    ck_assert_str_eq(vmafx_stage_events(), "NodeUnhealthy ");
    ck_assert_str_eq(vmafx_stage_last_note(), "the controller's /healthz failed");
    expect_woken("gpu-1");

    tiny_server_answer(vmafx.http, "/healthz", 200, "");
    probe_again();
    expect_woken("gpu-1");
    vmafx_stage_expect_turn(NODE);
    expect(NODE, "healthy", "true");
}

TEST(nodes_of_one_address_are_probed_together_and_rest)
{
    put_node(NULL);
    expect_woken("gpu-1"); /* by its own write */
    vmafx_stage_put(&KIND_VMAFXNODE, "gpu-2", NULL);
    expect_woken("gpu-2");
    vmafx_stage_expect_turn(&KIND_VMAFXNODE, "gpu-2");
    expect(&KIND_VMAFXNODE, "gpu-2", "healthy", "true"); /* by the answer that is there */
    expect_woken("gpu-2");

    probe_again();
    tiny_server_wait(vmafx.http, "/default/healthz", 2);
    probe_again();
    tiny_server_wait(vmafx.http, "/default/healthz", 3);
    ck_assert_uint_eq(workqueue_len(nodes()), 0); /* the answer is the same */
}

TEST(address_without_nodes_is_not_probed)
{
    const struct kube_name name = staged_name("gpu-1");

    put_node(NULL);
    expect_woken("gpu-1");
    fake_api_delete(vmafx.api, &KIND_VMAFXNODE, &name);
    expect_woken("gpu-1");
    vmafx_stage_expect_turn(NODE);
    ck_assert_uint_eq(vmafx_notes_count(vmafx.node.notes), 0);
    probe_again();
    while (vmafx_prober_state(vmafx.node.prober, "default") != VMAFX_PROBE_UNKNOWN)
        (void)sched_yield(); /* it ends when the answer is forgotten */
}

TEST(node_counts_the_jobs_that_run_on_it)
{
    put_node(NULL);
    expect_woken("gpu-1");
    vmafx_stage_put(JOB, "{\"phase\":\"Running\",\"assignedNode\":\"gpu-1\"}");
    expect_woken("gpu-1");
    vmafx_stage_expect_turn(NODE);
    expect(NODE, "assignedJobs", "1");
    expect_woken("gpu-1");

    vmafx_stage_put(JOB, "{\"phase\":\"Running\",\"assignedNode\":\"gpu-2\"}");
    expect_woken("gpu-1");
    expect_woken("gpu-2");
    vmafx_stage_expect_turn(NODE);
    expect(NODE, "assignedJobs", "0");
}

/* --- trainings -------------------------------------------------------------------------------- */

TEST_GROUP("trainings", vmafx_stage_set_up, vmafx_stage_tear_down);

#define CHECKPOINT "\"last_checkpoint_time\":\"2026-11-21T09:30:00Z\""

static void trainer_says(int status, const char *body)
{
    tiny_server_answer(vmafx.http, "/default/quality/status", status, body);
}

TEST(training_has_what_its_trainer_says)
{
    trainer_says(
        200,
        "{\"phase\":\"running\",\"current_samples\":42,\"model_version\":\"v3\"," CHECKPOINT "}");
    vmafx_stage_put(TRAINING, NULL);
    vmafx_stage_expect_turn(TRAINING);
    expect(TRAINING, "phase", "Running");
    expect(TRAINING, "currentSamples", "42");
    expect(TRAINING, "modelVersion", "v3");
    expect(TRAINING, "lastCheckpoint", "2026-11-21T09:30:00Z");
    ck_assert_str_eq(vmafx_stage_events(), "CheckpointWritten ");
    ck_assert_str_eq(vmafx_stage_last_note(), "Model checkpoint written: version=v3 samples=42");
    ck_assert_uint_ge(vmafx.again_ms, 54000);
    ck_assert_uint_le(vmafx.again_ms, 66000);
}

TEST(checkpoint_of_the_same_instant_is_told_once)
{
    trainer_says(200, "{\"phase\":\"running\"," CHECKPOINT "}");
    vmafx_stage_put(TRAINING, NULL);
    vmafx_stage_expect_turn(TRAINING);
    trainer_says(
        200, "{\"phase\":\"running\",\"last_checkpoint_time\":\"2026-11-21T10:30:00.9+01:00\"}");
    vmafx_stage_wait_ms(vmafx.again_ms);
    vmafx_stage_expect_turn(TRAINING);
    tiny_server_wait(vmafx.http, "/default/quality/status", 2);
    ck_assert_uint_eq(vmafx_stage_patches(), 1);
    ck_assert_str_eq(vmafx_stage_events(), "CheckpointWritten ");
}

TEST(trainer_is_not_polled_before_its_time)
{
    trainer_says(200, "{\"phase\":\"running\"}");
    vmafx_stage_put(TRAINING, NULL);
    vmafx_stage_expect_turn(TRAINING);
    uint32_t wait_ms = vmafx.again_ms;

    trainer_says(200, "{\"phase\":\"paused\"}");
    vmafx_stage_wait_ms(wait_ms - 1);
    vmafx_stage_expect_turn(TRAINING);
    expect(TRAINING, "phase", "Running");
    ck_assert_uint_eq(vmafx.again_ms, 1);
    vmafx_stage_wait_ms(1);
    vmafx_stage_expect_turn(TRAINING);
    expect(TRAINING, "phase", "Paused");
}

static const struct {
    int status;
    const char *body;
} UNUSABLE[] = {
    { 404, "{\"phase\":\"failed\"}" },
    { 500, "{\"phase\":\"failed\"}" },
    { 200, "{\"phase\":\"failed\"" },
    { 200, "[\"failed\"]" },
    { 200, "" },
    { 200, NULL }, /* larger than a reply may be */
};

TEST_EACH(unusable_answer_changes_nothing, UNUSABLE)
{
    const char *body = UNUSABLE[_i].body;

    if (!body)
        body = arena_printf(vmafx.arena, "{\"phase\":\"failed\",\"x\":\"%*s\"}",
                            VMAFX_MAX_TRAINER_REPLY, "");
    trainer_says(UNUSABLE[_i].status, body);
    vmafx_stage_put(TRAINING, NULL);
    vmafx_stage_expect_turn(TRAINING);
    expect(TRAINING, "phase", "Initializing");
    ck_assert_uint_gt(vmafx.again_ms, 0);

    trainer_says(200, "{\"phase\":\"running\"}");
    vmafx_stage_wait_ms(vmafx.again_ms);
    vmafx_stage_expect_turn(TRAINING);
    trainer_says(UNUSABLE[_i].status, body);
    vmafx_stage_wait_ms(vmafx.again_ms);
    vmafx_stage_expect_turn(TRAINING);
    expect(TRAINING, "phase", "Running");
    ck_assert_uint_eq(vmafx_stage_patches(), 2);
}

TEST(training_whose_name_is_no_host_is_not_polled)
{
    tiny_server_answer(vmafx.http, "/status", 200, "{\"phase\":\"running\"}");
    vmafx_stage_put(&KIND_VMAFXMODELTRAINING, "quality.two", NULL);
    vmafx_stage_expect_turn(&KIND_VMAFXMODELTRAINING, "quality.two");
    vmafx_stage_expect_turn(&KIND_VMAFXMODELTRAINING, "quality.two");
    expect(&KIND_VMAFXMODELTRAINING, "quality.two", "phase", "Initializing");
    ck_assert_uint_eq(vmafx.again_ms, 0);
    ck_assert_str_eq(vmafx_stage_events(), "InvalidName ");
}

TEST(training_that_was_not_written_is_polled_again)
{
    trainer_says(200, "{\"phase\":\"running\"," CHECKPOINT "}");
    vmafx_stage_put(TRAINING, NULL);
    vmafx.fail_at = 1;
    vmafx.fault = FAULT_REFUSED;
    ck_assert_int_lt(vmafx_stage_turn(TRAINING), 0);
    ck_assert_str_eq(vmafx_stage_events(), "");
    vmafx_stage_expect_turn(TRAINING);
    expect(TRAINING, "phase", "Running");
    ck_assert_str_eq(vmafx_stage_events(), "CheckpointWritten ");
}

/* --- addresses -------------------------------------------------------------------------------- */

TEST_GROUP("addresses", vmafx_stage_set_up, vmafx_stage_tear_down);

TEST(addresses_have_the_names_of_the_object)
{
    ck_assert_str_eq(vmafx_address(vmafx.arena, "{namespace}-{name}.{namespace}", "lab", "one"),
                     "lab-one.lab");
    ck_assert_str_eq(vmafx_address(vmafx.arena, "{name}.{namespace}", "lab", NULL), "{name}.lab");
    ck_assert_str_eq(vmafx_address(vmafx.arena, "host:9090", "lab", NULL), "host:9090");
}
