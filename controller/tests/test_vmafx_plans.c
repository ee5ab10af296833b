/* The tables of the three kinds of vmafx.dev: from every stored state, with every answer. */
#include <math.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "controller/vmafx/vmafx_job_plan.h"
#include "controller/vmafx/vmafx_node_plan.h"
#include "controller/vmafx/vmafx_training_plan.h"

#define NOW_US INT64_C(1700000000000000)
#define NOW_MS INT64_C(5000000)
#define UPDATED_S INT64_C(1600000000)
#define EARLIER_US INT64_C(1500000000000000)

TEST_GROUP("jobs", arena_set_up, arena_tear_down);

static struct vmafx_job_observed job_of(enum vmafx_job_phase phase, enum vmafx_seen seen)
{
    return (struct vmafx_job_observed){
        .status = { .phase = phase,
                    .controller_job_id = "j-1",
                    .assigned_node = phase == VMAFX_JOB_RUNNING ? "old" : NULL,
                    .started_at_us = phase == VMAFX_JOB_RUNNING ? EARLIER_US : 0 },
        .answer = { .seen = seen, .node = "", .error = "", .problem = "" },
        .now_us = NOW_US,
        .now_ms = NOW_MS,
    };
}

enum started { UNSET, NOW, KEPT };

static const struct {
    enum vmafx_job_phase stored;
    enum vmafx_seen seen;
    enum vmafx_job_phase becomes;
    enum started started;
    const char *node; /* NULL: none */
    bool is_asked_again;
    const struct event *event;
} JOB_ROWS[] = {
    { VMAFX_JOB_NEW, VMAFX_SEEN_NOTHING, VMAFX_JOB_PENDING, UNSET, NULL, false, NULL },
    { VMAFX_JOB_NEW, VMAFX_SEEN_PENDING, VMAFX_JOB_PENDING, UNSET, NULL, true, NULL },
    { VMAFX_JOB_NEW, VMAFX_SEEN_RUNNING, VMAFX_JOB_RUNNING, NOW, NULL, true,
      &VMAFX_JOB_EVENT_STARTED },
    { VMAFX_JOB_NEW, VMAFX_SEEN_COMPLETED, VMAFX_JOB_SUCCEEDED, UNSET, NULL, false,
      &VMAFX_JOB_EVENT_COMPLETED },
    { VMAFX_JOB_NEW, VMAFX_SEEN_FAILED, VMAFX_JOB_FAILED, UNSET, NULL, false,
      &VMAFX_JOB_EVENT_FAILED },
    { VMAFX_JOB_NEW, VMAFX_SEEN_UNAVAILABLE, VMAFX_JOB_PENDING, UNSET, NULL, true, NULL },
    { VMAFX_JOB_PENDING, VMAFX_SEEN_NOTHING, VMAFX_JOB_PENDING, UNSET, NULL, false, NULL },
    { VMAFX_JOB_PENDING, VMAFX_SEEN_PENDING, VMAFX_JOB_PENDING, UNSET, NULL, true, NULL },
    { VMAFX_JOB_PENDING, VMAFX_SEEN_RUNNING, VMAFX_JOB_RUNNING, NOW, NULL, true,
      &VMAFX_JOB_EVENT_STARTED },
    { VMAFX_JOB_PENDING, VMAFX_SEEN_COMPLETED, VMAFX_JOB_SUCCEEDED, UNSET, NULL, false,
      &VMAFX_JOB_EVENT_COMPLETED },
    { VMAFX_JOB_PENDING, VMAFX_SEEN_FAILED, VMAFX_JOB_FAILED, UNSET, NULL, false,
      &VMAFX_JOB_EVENT_FAILED },
    { VMAFX_JOB_PENDING, VMAFX_SEEN_CANCELLED, VMAFX_JOB_FAILED, UNSET, NULL, false,
      &VMAFX_JOB_EVENT_FAILED },
    { VMAFX_JOB_PENDING, VMAFX_SEEN_NOT_FOUND, VMAFX_JOB_PENDING, UNSET, NULL, true, NULL },
    { VMAFX_JOB_PENDING, VMAFX_SEEN_UNAVAILABLE, VMAFX_JOB_PENDING, UNSET, NULL, true, NULL },
    { VMAFX_JOB_RUNNING, VMAFX_SEEN_NOTHING, VMAFX_JOB_RUNNING, KEPT, "old", false, NULL },
    { VMAFX_JOB_RUNNING, VMAFX_SEEN_PENDING, VMAFX_JOB_PENDING, UNSET, NULL, true, NULL },
    { VMAFX_JOB_RUNNING, VMAFX_SEEN_RUNNING, VMAFX_JOB_RUNNING, KEPT, "old", true, NULL },
    { VMAFX_JOB_RUNNING, VMAFX_SEEN_COMPLETED, VMAFX_JOB_SUCCEEDED, KEPT, "old", false,
      &VMAFX_JOB_EVENT_COMPLETED },
    { VMAFX_JOB_RUNNING, VMAFX_SEEN_FAILED, VMAFX_JOB_FAILED, KEPT, "old", false,
      &VMAFX_JOB_EVENT_FAILED },
    { VMAFX_JOB_RUNNING, VMAFX_SEEN_CANCELLED, VMAFX_JOB_FAILED, KEPT, "old", false,
      &VMAFX_JOB_EVENT_FAILED },
    { VMAFX_JOB_RUNNING, VMAFX_SEEN_NOT_FOUND, VMAFX_JOB_RUNNING, KEPT, "old", true, NULL },
    { VMAFX_JOB_RUNNING, VMAFX_SEEN_UNAVAILABLE, VMAFX_JOB_RUNNING, KEPT, "old", true, NULL },
    { VMAFX_JOB_SUCCEEDED, VMAFX_SEEN_NOTHING, VMAFX_JOB_SUCCEEDED, UNSET, NULL, false, NULL },
    { VMAFX_JOB_SUCCEEDED, VMAFX_SEEN_RUNNING, VMAFX_JOB_SUCCEEDED, UNSET, NULL, false, NULL },
    { VMAFX_JOB_FAILED, VMAFX_SEEN_NOTHING, VMAFX_JOB_FAILED, UNSET, NULL, false, NULL },
    { VMAFX_JOB_FAILED, VMAFX_SEEN_COMPLETED, VMAFX_JOB_FAILED, UNSET, NULL, false, NULL },
};

TEST_EACH(job_becomes_what_the_controller_says, JOB_ROWS)
{
    struct vmafx_job_observed observed = job_of(JOB_ROWS[_i].stored, JOB_ROWS[_i].seen);
    const struct vmafx_job_plan plan = vmafx_job_plan(arena, &observed);
    const int64_t started[] = { [UNSET] = 0, [NOW] = NOW_US, [KEPT] = EARLIER_US };
    bool has_ended =
        JOB_ROWS[_i].stored < VMAFX_JOB_SUCCEEDED && plan.status.phase >= VMAFX_JOB_SUCCEEDED;

    ck_assert_int_eq(plan.status.phase, JOB_ROWS[_i].becomes);
    ck_assert_int_eq(plan.status.started_at_us, started[JOB_ROWS[_i].started]);
    ck_assert(str_equal(plan.status.assigned_node, JOB_ROWS[_i].node));
    ck_assert_uint_eq(plan.wait_ms > 0, JOB_ROWS[_i].is_asked_again);
    ck_assert_ptr_eq(plan.event, JOB_ROWS[_i].event);
    ck_assert_int_eq(plan.status.finished_at_us, has_ended ? NOW_US : 0);
    ck_assert_str_eq(plan.status.controller_job_id, "j-1");
}

TEST(node_of_the_answer_is_kept_in_every_phase)
{
    for (enum vmafx_seen seen = VMAFX_SEEN_PENDING; seen <= VMAFX_SEEN_CANCELLED; seen++) {
        struct vmafx_job_observed observed = job_of(VMAFX_JOB_RUNNING, seen);

        observed.answer.node = "new";
        ck_assert_str_eq(vmafx_job_plan(arena, &observed).status.assigned_node, "new");
    }
}

TEST(job_without_an_id_is_not_followed)
{
    struct vmafx_job_observed observed = job_of(VMAFX_JOB_NEW, VMAFX_SEEN_NOTHING);

    observed.status.controller_job_id = "";
    const struct vmafx_job_plan plan = vmafx_job_plan(arena, &observed);
    ck_assert_int_eq(plan.status.phase, VMAFX_JOB_PENDING);
    ck_assert(!vmafx_job_is_followed(&plan.status));
    observed.status.controller_job_id = "j";
    ck_assert(vmafx_job_is_followed(&observed.status));
    observed.status.phase = VMAFX_JOB_FAILED;
    ck_assert(!vmafx_job_is_followed(&observed.status));
}

static const struct {
    double score;
    const char *text; /* NULL: the job failed */
} SCORES[] = { { 93.25, "93.25" }, { 0, "0" },         { -1.5, "-1.5" },
               { NAN, NULL },      { INFINITY, NULL }, { -INFINITY, NULL } };

TEST_EACH(score_is_any_finite_number, SCORES)
{
    struct vmafx_job_observed observed = job_of(VMAFX_JOB_RUNNING, VMAFX_SEEN_COMPLETED);

    observed.answer.score = SCORES[_i].score;
    const struct vmafx_job_plan plan = vmafx_job_plan(arena, &observed);
    if (SCORES[_i].text) {
        ck_assert_int_eq(plan.status.phase, VMAFX_JOB_SUCCEEDED);
        ck_assert_str_eq(json_text(arena, plan.status.score, NULL), SCORES[_i].text);
        ck_assert_ptr_null(plan.status.message);
        return;
    }
    ck_assert_int_eq(plan.status.phase, VMAFX_JOB_FAILED);
    ck_assert_ptr_null(plan.status.score);
    ck_assert_str_eq(plan.status.message, "the controller reports no number as score");
    ck_assert_ptr_eq(plan.event, &VMAFX_JOB_EVENT_FAILED);
}

TEST(failure_has_the_words_of_the_controller)
{
    struct vmafx_job_observed observed = job_of(VMAFX_JOB_RUNNING, VMAFX_SEEN_FAILED);

    observed.answer.error = "out of memory";
    ck_assert_str_eq(vmafx_job_plan(arena, &observed).status.message, "out of memory");
    observed.answer.seen = VMAFX_SEEN_CANCELLED;
    ck_assert_str_eq(vmafx_job_plan(arena, &observed).status.message, "cancelled by controller");
}

static const struct {
    int64_t updated_at_s;
    int64_t finished_at_us;
} ENDS[] = { { UPDATED_S, UPDATED_S * 1000000 },
             { 0, NOW_US },
             { -1, NOW_US },
             { INT64_MAX, NOW_US },
             { INT64_C(253402300800), NOW_US } };

TEST_EACH(end_is_the_time_of_the_controller_if_it_has_one, ENDS)
{
    struct vmafx_job_observed observed = job_of(VMAFX_JOB_RUNNING, VMAFX_SEEN_COMPLETED);

    observed.answer.updated_at_s = ENDS[_i].updated_at_s;
    ck_assert_int_eq(vmafx_job_plan(arena, &observed).status.finished_at_us,
                     ENDS[_i].finished_at_us);
}

TEST(job_that_is_not_found_for_two_minutes_has_failed)
{
    struct vmafx_job_observed observed = job_of(VMAFX_JOB_RUNNING, VMAFX_SEEN_NOT_FOUND);
    struct vmafx_job_plan plan = vmafx_job_plan(arena, &observed);

    ck_assert_int_eq(plan.series.unknown_since_ms, NOW_MS);
    observed.series = plan.series;
    observed.now_ms = NOW_MS + VMAFX_JOB_UNKNOWN_MS - 1;
    plan = vmafx_job_plan(arena, &observed);
    ck_assert_int_eq(plan.status.phase, VMAFX_JOB_RUNNING);
    ck_assert_int_eq(plan.series.unknown_since_ms, NOW_MS);

    observed.now_ms++;
    plan = vmafx_job_plan(arena, &observed);
    ck_assert_int_eq(plan.status.phase, VMAFX_JOB_FAILED);
    ck_assert_str_eq(plan.status.message, "the controller does not know job 'j-1'");

    observed.answer.seen = VMAFX_SEEN_UNAVAILABLE; /* ends the series */
    ck_assert_int_eq(vmafx_job_plan(arena, &observed).series.unknown_since_ms, 0);
    observed.answer.seen = VMAFX_SEEN_RUNNING;
    ck_assert_int_eq(vmafx_job_plan(arena, &observed).series.unknown_since_ms, 0);
}

TEST(outage_is_an_event_at_its_begin_and_its_end)
{
    static const uint32_t WAITS[] = { 10000, 20000, 40000, 60000, 60000 };
    struct vmafx_job_observed observed = job_of(VMAFX_JOB_RUNNING, VMAFX_SEEN_UNAVAILABLE);

    for (unsigned i = 0; i < ARRAY_LEN(WAITS); i++) {
        const struct vmafx_job_plan plan = vmafx_job_plan(arena, &observed);

        ck_assert_ptr_eq(plan.peer_event, i ? NULL : &VMAFX_JOB_EVENT_UNAVAILABLE);
        ck_assert_uint_eq(plan.wait_ms, WAITS[i]);
        observed.series = plan.series;
    }
    observed.answer.seen = VMAFX_SEEN_NOT_FOUND;
    const struct vmafx_job_plan plan = vmafx_job_plan(arena, &observed);
    ck_assert_ptr_eq(plan.peer_event, &VMAFX_JOB_EVENT_BACK);
    ck_assert_uint_eq(plan.series.failures, 0);
    observed.series = plan.series;
    ck_assert_ptr_null(vmafx_job_plan(arena, &observed).peer_event);
}

TEST(waits_differ_by_a_tenth)
{
    struct vmafx_job_observed observed = job_of(VMAFX_JOB_RUNNING, VMAFX_SEEN_RUNNING);

    observed.jitter = -100;
    ck_assert_uint_eq(vmafx_job_plan(arena, &observed).wait_ms, 9000);
    observed.jitter = 100;
    ck_assert_uint_eq(vmafx_job_plan(arena, &observed).wait_ms, 11000);
}

/* --- nodes ------------------------------------------------------------------------------------ */

TEST_GROUP("nodes", arena_set_up, arena_tear_down);

#define NONE (-1)

static const struct {
    int was; /* healthy; NONE: not written yet */
    enum vmafx_probe probe;
    const char *heartbeat; /* JSON; NULL: none. Now is 2023-11-14T22:13:20Z */
    int becomes;
    uint32_t wait_ms;
    const struct event *event;
} NODE_ROWS[] = {
    { NONE, VMAFX_PROBE_UNKNOWN, NULL, NONE, 0, NULL },
    { NONE, VMAFX_PROBE_UNKNOWN, "\"2023-11-14T22:13:20Z\"", NONE, 60001, NULL },
    { true, VMAFX_PROBE_UNKNOWN, "\"2020-01-01T00:00:00Z\"", true, 0, NULL },
    { NONE, VMAFX_PROBE_FINE, NULL, true, 0, &VMAFX_NODE_EVENT_HEALTHY },
    { NONE, VMAFX_PROBE_FINE, "null", true, 0, &VMAFX_NODE_EVENT_HEALTHY },
    { NONE, VMAFX_PROBE_FAILED, NULL, false, 0, &VMAFX_NODE_EVENT_NO_CONTROLLER },
    { true, VMAFX_PROBE_FINE, "\"2023-11-14T22:13:20Z\"", true, 60001, NULL },
    { true, VMAFX_PROBE_FINE, "\"2023-11-14T22:12:20Z\"", true, 1, NULL },
    { true, VMAFX_PROBE_FINE, "\"2023-11-14T22:12:19.999Z\"", false, 0, &VMAFX_NODE_EVENT_STALE },
    { true, VMAFX_PROBE_FINE, "\"2023-11-15T00:12:20+02:00\"", true, 1, NULL },
    { false, VMAFX_PROBE_FINE, "\"2023-11-14T22:12:19Z\"", false, 0, NULL },
    { false, VMAFX_PROBE_FINE, "\"2023-11-14T22:13:00Z\"", true, 40001, &VMAFX_NODE_EVENT_HEALTHY },
    { true, VMAFX_PROBE_FAILED, "\"2023-11-14T22:13:20Z\"", false, 60001,
      &VMAFX_NODE_EVENT_NO_CONTROLLER },
    { true, VMAFX_PROBE_FAILED, "\"2023-11-14T22:00:00Z\"", false, 0, &VMAFX_NODE_EVENT_STALE },
    /* A clock that is ahead is not late. */
    { true, VMAFX_PROBE_FINE, "\"2023-11-14T22:14:20Z\"", true, 120001, NULL },
    { true, VMAFX_PROBE_FINE, "\"9999-01-01T00:00:00Z\"", true, UINT32_MAX, NULL },
    /* A text that is no time is late. */
    { true, VMAFX_PROBE_FINE, "\"now\"", false, 0, &VMAFX_NODE_EVENT_STALE },
    { true, VMAFX_PROBE_FINE, "7", false, 0, &VMAFX_NODE_EVENT_STALE },
};

TEST_EACH(node_is_healthy_by_its_probe_and_its_heartbeat, NODE_ROWS)
{
    const char *heartbeat = NODE_ROWS[_i].heartbeat;
    const struct vmafx_node_observed observed = {
        .status = { .healthy = { NODE_ROWS[_i].was != NONE, NODE_ROWS[_i].was == true },
                    .last_heartbeat = heartbeat ? parsed(arena, heartbeat) : NULL,
                    .detected_device = "RTX" },
        .probe = NODE_ROWS[_i].probe,
        .running_jobs = 3,
        .now_us = NOW_US,
    };
    const struct vmafx_node_plan plan = vmafx_node_plan(&observed);

    ck_assert_int_eq(plan.status.healthy.set ? plan.status.healthy.value : NONE,
                     NODE_ROWS[_i].becomes);
    ck_assert_uint_eq(plan.wait_ms, NODE_ROWS[_i].wait_ms);
    ck_assert_ptr_eq(plan.event, NODE_ROWS[_i].event);
    ck_assert_ptr_eq(plan.status.last_heartbeat, observed.status.last_heartbeat);
    ck_assert_str_eq(plan.status.detected_device, "RTX");
    ck_assert_int_eq(plan.status.assigned_jobs.set, NODE_ROWS[_i].probe != VMAFX_PROBE_UNKNOWN);
}

TEST(number_of_jobs_stays_until_the_jobs_are_known)
{
    struct vmafx_node_observed observed = { .status = { .assigned_jobs = { true, 7 } },
                                            .probe = VMAFX_PROBE_FINE,
                                            .running_jobs = -1 };

    ck_assert_int_eq(vmafx_node_plan(&observed).status.assigned_jobs.value, 7);
    observed.running_jobs = 0;
    ck_assert_int_eq(vmafx_node_plan(&observed).status.assigned_jobs.value, 0);
}

/* --- trainings -------------------------------------------------------------------------------- */

TEST_GROUP("trainings", arena_set_up, arena_tear_down);

static struct vmafx_training_plan train(enum vmafx_training_phase phase, const char *reply)
{
    const struct vmafx_training_observed observed = {
        .status = { .phase = phase,
                    .current_samples = { true, 5 },
                    .model_version = "v1",
                    .last_checkpoint_us = NOW_US },
        .reply = reply ? parsed(arena, reply) : NULL,
    };

    return vmafx_training_plan(arena, &observed);
}

static const struct {
    const char *text;
    enum vmafx_training_phase phase;
} PHASES[] = {
    { "\"running\"", VMAFX_TRAINING_RUNNING }, { "\"paused\"", VMAFX_TRAINING_PAUSED },
    { "\"failed\"", VMAFX_TRAINING_FAILED },   { "\"Running\"", VMAFX_TRAINING_INITIALIZING },
    { "\"\"", VMAFX_TRAINING_INITIALIZING },   { "7", VMAFX_TRAINING_INITIALIZING },
    { "null", VMAFX_TRAINING_INITIALIZING },
};

TEST_EACH(phase_follows_the_trainer_and_none_is_final, PHASES)
{
    for (enum vmafx_training_phase was = VMAFX_TRAINING_NEW; was <= VMAFX_TRAINING_FAILED; was++)
        ck_assert_int_eq(
            train(was, arena_printf(arena, "{\"phase\":%s}", PHASES[_i].text)).status.phase,
            PHASES[_i].phase);
}

TEST(trainer_that_is_not_reached_changes_nothing)
{
    ck_assert_int_eq(train(VMAFX_TRAINING_NEW, NULL).status.phase, VMAFX_TRAINING_INITIALIZING);

    const struct vmafx_training_plan plan = train(VMAFX_TRAINING_PAUSED, NULL);
    ck_assert_int_eq(plan.status.phase, VMAFX_TRAINING_PAUSED);
    ck_assert_int_eq(plan.status.current_samples.value, 5);
    ck_assert_str_eq(plan.status.model_version, "v1");
    ck_assert_ptr_null(plan.checkpoint);
}

static const struct {
    const char *text;
    int64_t samples;
} SAMPLES[] = {
    { "0", 0 },
    { "7", 7 },
    { "7.0", 7 },
    { "2147483647", INT32_MAX },
    { "1e10", INT32_MAX },
    { "-1", 5 },
    { "1.5", 5 },
    { "\"7\"", 5 },
    { "true", 5 },
    { "null", 5 },
    { "[]", 5 },
};

TEST_EACH(samples_are_a_number_that_fits, SAMPLES)
{
    ck_assert_int_eq(train(VMAFX_TRAINING_RUNNING,
                           arena_printf(arena, "{\"current_samples\":%s}", SAMPLES[_i].text))
                         .status.current_samples.value,
                     SAMPLES[_i].samples);
}

static const struct {
    const char *time; /* 2023-11-14T22:13:20Z is stored */
    int64_t ahead_s;  /* 0: nothing changes */
} TIMES[] = {
    { "\"2023-11-14T22:13:20Z\"", 0 },
    { "\"2023-11-14T22:13:20.999Z\"", 0 }, /* the same second */
    { "\"2023-11-15T00:13:20+02:00\"", 0 },
    { "\"2023-11-14T22:13:19Z\"", 0 },
    { "\"2023-11-14T22:13:21.5Z\"", 1 },
    { "\"2023-11-15T00:13:22+02:00\"", 2 },
    { "\"\"", 0 },
    { "\"soon\"", 0 },
    { "1700000900", 0 },
    { "null", 0 },
};

TEST_EACH(checkpoint_is_written_when_its_instant_is_later, TIMES)
{
    const struct vmafx_training_plan plan = train(
        VMAFX_TRAINING_RUNNING, arena_printf(arena,
                                             "{\"last_checkpoint_time\":%s,\"current_samples\":9,"
                                             "\"model_version\":\"v2\"}",
                                             TIMES[_i].time));

    ck_assert_int_eq(plan.status.last_checkpoint_us, NOW_US + TIMES[_i].ahead_s * 1000000);
    if (TIMES[_i].ahead_s)
        ck_assert_str_eq(plan.checkpoint, "Model checkpoint written: version=v2 samples=9");
    else
        ck_assert_ptr_null(plan.checkpoint);
    ck_assert_str_eq(plan.status.model_version, "v2");
}

TEST(version_is_short_and_not_empty)
{
    const char *longest = arena_printf(arena, "%0*d", VMAFX_MAX_VERSION, 1);

    ck_assert_str_eq(train(VMAFX_TRAINING_RUNNING, "{\"model_version\":\"\"}").status.model_version,
                     "v1");
    ck_assert_str_eq(train(VMAFX_TRAINING_RUNNING, "{\"model_version\":7}").status.model_version,
                     "v1");
    ck_assert_str_eq(
        train(VMAFX_TRAINING_RUNNING, arena_printf(arena, "{\"model_version\":\"%s\"}", longest))
            .status.model_version,
        longest);
    ck_assert_str_eq(
        train(VMAFX_TRAINING_RUNNING, arena_printf(arena, "{\"model_version\":\"%s0\"}", longest))
            .status.model_version,
        "v1");

    /* The note of an Event has room for 1 KiB. */
    const struct vmafx_training_plan plan = train(
        VMAFX_TRAINING_RUNNING,
        arena_printf(arena,
                     "{\"model_version\":\"%s\",\"last_checkpoint_time\":\"2030-01-01T00:00:00Z\"}",
                     longest));
    ck_assert_uint_lt(strlen(plan.checkpoint), 1024);
}
