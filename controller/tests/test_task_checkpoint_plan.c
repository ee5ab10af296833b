/* The checkpoints that count, their place in the status, and the environment of the next start. */
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "controller/task/plan/task_checkpoint_plan.h"
#include "controller/tests/task_world.h"

#define SHA "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER_SHA "f123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define REF "model://sha256:" SHA
#define OTHER_REF "model://sha256:" OTHER_SHA

static struct task_checkpoint_spec spec;
static struct observed_checkpoint sent;
static struct task_checkpoint last;
static struct stored_checkpoint stored[3];

static struct json_opt_int opt(int64_t value)
{
    return (struct json_opt_int){ true, value };
}

static void set_up(void)
{
    world_set_up();
    spec = (struct task_checkpoint_spec){ .interval = "60s" };
    world.spec->checkpoint = &spec;
    world.observed.has_coordinator = true;
    world_running();
    sent = (struct observed_checkpoint){
        .message_id = WORLD_UID, .step = 20, .sha256 = SHA, .bytes = 5, .ref = REF
    };
    world.observed.checkpoint = &sent;
}

/* The status names step 10, of this attempt, so many seconds ago. */
static void has_last(int64_t seconds)
{
    last = (struct task_checkpoint){ .step = opt(10),
                                     .attempt = world.status->attempt,
                                     .time_us = world.observed.now_us - seconds * 1000000,
                                     .proplet = WORLD_PROPLET,
                                     .sha256 = OTHER_SHA,
                                     .ref = OTHER_REF };
    world.status->last_checkpoint = &last;
}

TEST_GROUP("checkpoint_plan", set_up, world_tear_down);

/* last_s: age of the last one in seconds; -1: there is none; attempt: of the last one */
static const struct judged {
    int64_t step, last_s;
    int64_t attempt;
    const char *sha256;
    bool elsewhere;
    enum checkpoint_verdict verdict;
} JUDGED[] = {
    { 0, -1, 1, SHA, false, CHECKPOINT_STORED },
    { 0, -1, 1, SHA, true, CHECKPOINT_NOTED },
    { 11, 30, 1, SHA, false, CHECKPOINT_STORED },
    { 11, 29, 1, SHA, false, CHECKPOINT_EARLY },
    { 11, 0, 0, SHA, false, CHECKPOINT_STORED },     /* the first of this attempt */
    { 11, -3600, 1, SHA, false, CHECKPOINT_STORED }, /* a time in the future */
    { 10, 100, 1, OTHER_SHA, false, CHECKPOINT_REPEATED },
    { 10, 0, 1, OTHER_SHA, false, CHECKPOINT_REPEATED },
    { 10, 100, 1, SHA, false, CHECKPOINT_STALE },
    { 10, 100, 1, NULL, false, CHECKPOINT_STORED }, /* its bytes are not read yet */
    { 9, 100, 1, SHA, false, CHECKPOINT_STALE },
    { 9, 100, 0, OTHER_SHA, true, CHECKPOINT_STALE },
};

TEST_EACH(a_checkpoint_counts_if_its_step_is_above_the_last, JUDGED)
{
    const struct judged *row = &JUDGED[_i];

    if (row->last_s != -1) {
        has_last(row->last_s);
        last.attempt = row->attempt;
    }
    sent.step = row->step;
    sent.sha256 = row->sha256;
    sent.uri = row->elsewhere ? "s3://b/k" : NULL;
    ck_assert_int_eq(checkpoint_judge(world.arena, &world.observed, &sent), row->verdict);
}

TEST(the_shortest_pause_is_ten_seconds)
{
    spec.interval = "10s";
    has_last(9);
    ck_assert_int_eq(checkpoint_judge(world.arena, &world.observed, &sent), CHECKPOINT_EARLY);
    ck_assert_int_eq(checkpoint_wait_seconds(&world.observed), 1);
    has_last(10);
    ck_assert_int_eq(checkpoint_judge(world.arena, &world.observed, &sent), CHECKPOINT_STORED);
}

static void of_another_attempt(void)
{
    sent.message_id = WORLD_UID ".2";
}

static void of_another_task(void)
{
    sent.message_id = "00000000-2a43-4a0e-9f8d-6f6f2a8b7c11";
}

static void without_the_field(void)
{
    world.spec->checkpoint = NULL;
}

static void when_completed(void)
{
    world.status->phase = TASK_COMPLETED;
}

static void when_pending(void)
{
    world.status->phase = TASK_PENDING;
}

static const struct {
    void (*change)(void);
    enum checkpoint_verdict verdict;
} REFUSED[] = {
    { of_another_attempt, CHECKPOINT_OTHER_ATTEMPT }, { of_another_task, CHECKPOINT_OTHER_ATTEMPT },
    { without_the_field, CHECKPOINT_NOT_RUNNING },    { when_completed, CHECKPOINT_NOT_RUNNING },
    { when_pending, CHECKPOINT_NOT_RUNNING },
};

TEST_EACH(what_no_attempt_of_now_sent_changes_nothing, REFUSED)
{
    has_last(100);
    REFUSED[_i].change();
    struct task_plan plan = task_plan(world.arena, &world.observed);
    ck_assert_int_eq(plan.checkpoint_verdict, REFUSED[_i].verdict);
    ck_assert_ptr_eq(plan.status.last_checkpoint, &last);
    ck_assert_ptr_null(plan.checkpoint_note);
}

TEST(the_status_names_the_checkpoint_and_keeps_as_many_as_it_may)
{
    has_last(100);
    for (size_t i = 0; i < 2; i++)
        stored[i] = (struct stored_checkpoint){ .step = opt(10 - (int64_t)i), .ref = OTHER_REF };
    world.status->checkpoints = (struct json_objects){ stored, 2 };
    sent.samples = opt(640);

    struct task_plan plan = world_plan();
    const struct task_checkpoint *next = plan.status.last_checkpoint;
    const struct stored_checkpoint *kept = plan.status.checkpoints.items;
    ck_assert_int_eq(next->step.value, 20);
    ck_assert_int_eq(next->attempt, 1);
    ck_assert_str_eq(next->proplet, WORLD_PROPLET);
    ck_assert_str_eq(next->ref, REF);
    ck_assert_int_eq(next->time_us, world.observed.now_us);
    ck_assert_uint_eq(plan.status.checkpoints.len, 2);
    ck_assert_str_eq(kept[0].ref, REF);
    ck_assert_int_eq(kept[1].step.value, 10);
    ck_assert_str_eq(plan.checkpoint_note, "step 20, 640 samples, 5 bytes, attempt 1");
}

TEST(a_repeated_one_changes_nothing_and_has_no_event)
{
    has_last(100);
    sent.step = 10;
    sent.sha256 = OTHER_SHA;
    struct task_plan plan = world_plan();
    ck_assert_int_eq(plan.checkpoint_verdict, CHECKPOINT_REPEATED);
    ck_assert_ptr_eq(plan.status.last_checkpoint, &last);
    ck_assert_ptr_null(plan.checkpoint_note);
}

TEST(a_checkpoint_that_is_held_elsewhere_leaves_what_is_stored)
{
    stored[0] = (struct stored_checkpoint){ .step = opt(10), .ref = OTHER_REF };
    world.status->checkpoints = (struct json_objects){ stored, 1 };
    sent.uri = "file:///var/c";
    sent.ref = NULL;

    struct task_plan plan = world_plan();
    ck_assert_str_eq(plan.status.last_checkpoint->uri, "file:///var/c");
    ck_assert_ptr_null(plan.status.last_checkpoint->ref);
    ck_assert_uint_eq(plan.status.checkpoints.len, 1);
    ck_assert_str_eq(plan.checkpoint_note, "step 20, attempt 1, held by the device");
}

TEST(a_checkpoint_beside_the_result_counts_in_the_same_write)
{
    world_result(WORLD_CHANNEL, "{\"task_id\":\"" WORLD_UID "\",\"error\":\"trap\"}");
    struct task_plan plan = world_plan();
    ck_assert_int_eq(plan.status.phase, TASK_FAILED);
    ck_assert_int_eq(plan.status.last_checkpoint->step.value, 20);
}

TEST(a_result_that_cannot_be_stored_takes_no_checkpoint_with_it)
{
    world_result(WORLD_CHANNEL, "{\"task_id\":\"" WORLD_UID "\",\"results\":1}");
    struct task_plan plan = world_plan();
    plan = world_conclude(&plan, SETBACK_UNSTORABLE, REASON_NONE, NULL);
    ck_assert_int_eq(plan.status.phase, TASK_FAILED);
    ck_assert_int_eq(plan.status.last_checkpoint->step.value, 20);
    ck_assert_int_eq(plan.checkpoint_verdict, CHECKPOINT_STORED);
}

static const struct {
    enum task_phase ended;
    bool stays;
} RUNS[] = { { TASK_COMPLETED, false }, { TASK_FAILED, true } };

TEST_EACH(the_run_after_a_completed_one_begins_at_the_beginning, RUNS)
{
    has_last(100);
    stored[0] = (struct stored_checkpoint){ .step = opt(10), .ref = OTHER_REF };
    world.status->checkpoints = (struct json_objects){ stored, 1 };
    world.status->phase = RUNS[_i].ended;
    world.status->finished_at_us = world.observed.now_us;
    world.observed.checkpoint = NULL;
    world.observed.rerun = "again";

    struct task_plan plan = world_plan();
    ck_assert_int_eq(plan.status.run, world.status->run + 1);
    ck_assert_int_eq(plan.status.last_checkpoint != NULL, RUNS[_i].stays);
    ck_assert_uint_eq(plan.status.checkpoints.len, RUNS[_i].stays);
}

static void without_coordinator(void)
{
    world.observed.has_coordinator = false;
}

static void on_a_microcontroller(void)
{
    world.observed.proplet.dialect = DIALECT_EMBEDDED;
}

static void with_a_broken_store(void)
{
    world.observed.checkpoint_failure = "quota exceeded";
}

static void as_it_is(void)
{
}

static const struct {
    void (*change)(void);
    const char *condition;
} CONDITIONS[] = {
    { as_it_is, "True Ready: checkpoints are taken" },
    { without_coordinator, "False NoCoordinator: the controller has no --coordinator-url" },
    { on_a_microcontroller, "False Unsupported: the device is a microcontroller" },
    { with_a_broken_store, "False StoreFailed: quota exceeded" },
};

TEST_EACH(the_condition_is_written_with_what_leaves_scheduled, CONDITIONS)
{
    world.status->phase = TASK_SCHEDULED;
    world.observed.checkpoint = NULL;
    CONDITIONS[_i].change();
    world_result(WORLD_CHANNEL, "{\"task_id\":\"" WORLD_UID "\",\"results\":1}");
    struct task_plan plan = world_plan();
    ck_assert_int_eq(plan.status.phase, TASK_COMPLETED);
    ck_assert_str_eq(world_condition(&plan, "Checkpointing"), CONDITIONS[_i].condition);
}

TEST(a_failing_store_is_told_once_and_taken_back)
{
    world.observed.checkpoint = NULL;
    with_a_broken_store();
    struct task_plan plan = world_plan();
    ck_assert_str_eq(world_condition(&plan, "Checkpointing"), "False StoreFailed: quota exceeded");
    world_do(&plan);
    plan = world_plan();
    world_expect_rest(&plan);

    world.observed.checkpoint_failure = NULL;
    world.observed.checkpoint = &sent;
    plan = world_plan();
    ck_assert_str_eq(world_condition(&plan, "Checkpointing"), "True Ready: checkpoints are taken");
}

/* --- the environment of a start --- */

static const char *variable(const char *name)
{
    const cJSON *env = task_checkpoint_environment(world.arena, &world.observed, "http://c:1");

    return json_string(json_get(env, name), "-");
}

TEST(a_first_start_knows_where_to_send_and_nothing_to_go_on_from)
{
    ck_assert_str_eq(variable("CHECKPOINT_URL"), "http://c:1/t/" WORLD_UID "/checkpoint");
    ck_assert_str_eq(variable("CHECKPOINT_INTERVAL"), "60");
    ck_assert_str_eq(variable("CHECKPOINT_STEP"), "-");
    ck_assert_str_eq(variable("CHECKPOINT_SHA256"), "-");
    ck_assert_str_eq(variable("CHECKPOINT_URI"), "-");
}

TEST(without_field_or_coordinator_a_start_has_no_variables)
{
    ck_assert_ptr_null(task_checkpoint_environment(world.arena, &world.observed, ""));
    world.spec->checkpoint = NULL;
    ck_assert_ptr_null(task_checkpoint_environment(world.arena, &world.observed, "http://c:1"));
}

/* uri: of the last one; holder: who wrote it; older: step 5 is stored here */
static const struct {
    const char *uri, *holder;
    bool older;
    const char *step, *told_uri;
} TOLD[] = {
    { NULL, "other", false, "10", "-" },
    { "s3://b/k", "other", false, "10", "s3://b/k" },
    { "file:///k", WORLD_PROPLET, true, "10", "file:///k" },
    { "file:///k", "other", true, "5", "-" },
    { "file:///k", "other", false, "-", "-" },
};

TEST_EACH(the_next_attempt_is_told_the_last_one_that_it_can_read, TOLD)
{
    has_last(100);
    last.uri = TOLD[_i].uri;
    last.proplet = TOLD[_i].holder;
    stored[0] = (struct stored_checkpoint){ .step = opt(5), .ref = REF };
    world.status->checkpoints = (struct json_objects){ stored, TOLD[_i].older };
    ck_assert_str_eq(variable("CHECKPOINT_STEP"), TOLD[_i].step);
    ck_assert_str_eq(variable("CHECKPOINT_URI"), TOLD[_i].told_uri);
    ck_assert_str_eq(variable("CHECKPOINT_SHA256"), str_equal(TOLD[_i].step, "10")  ? OTHER_SHA
                                                    : str_equal(TOLD[_i].step, "5") ? SHA
                                                                                    : "-");
}

TEST(a_status_that_was_changed_by_hand_is_not_gone_on_from)
{
    has_last(100);
    last.sha256 = NULL;
    ck_assert_str_eq(variable("CHECKPOINT_STEP"), "-");
    last.sha256 = SHA;
    last.uri = "file:///k";
    last.proplet = "other";
    stored[0] = (struct stored_checkpoint){ .step = opt(5) };
    world.status->checkpoints = (struct json_objects){ stored, 1 };
    ck_assert_str_eq(variable("CHECKPOINT_STEP"), "-");
}

/* --- the choice --- */

TEST(the_device_that_has_the_file_is_chosen_if_it_fits)
{
    has_last(100);
    world.observed.checkpoint = NULL;
    world.status->phase = TASK_PENDING;
    world.status->assigned_proplet = NULL;
    world.observed.candidates.len = WORLD_CANDIDATES;
    last.proplet = world.candidates[2].name;
    last.uri = "file:///k";
    struct task_plan plan = world_plan();
    ck_assert_str_eq(plan.status.assigned_proplet, world.candidates[2].name);

    last.uri = "s3://b/k";
    plan = world_plan();
    ck_assert_str_eq(plan.status.assigned_proplet, WORLD_PROPLET);

    last.uri = "file:///k";
    world.candidates[2].ready = false;
    plan = world_plan();
    ck_assert_str_eq(plan.status.assigned_proplet, WORLD_PROPLET);
}
