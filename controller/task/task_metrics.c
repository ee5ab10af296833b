#include "controller/task/task_metrics.h"

#include "common/api/reasons.h"
#include "common/base/compiler.h"
#include "common/base/str.h"
#include "common/runtime/metrics.h"

/* From a tenth of a second, the shortest that a device takes, to a day. */
static const double SECONDS[] = { 0.1, 0.25, 0.5, 1,    2.5,   5,     10, 30,
                                  60,  300,  900, 3600, 14400, 86400, 0 };

static struct metric WAIT = {
    .type = METRIC_HISTOGRAM,
    .name = "propeller_task_wait_seconds",
    .help = "Time from the creation of a Task, or the time of its schedule or retry, to the choice "
            "of a Proplet.",
    .buckets = SECONDS,
};
static struct metric DISPATCH = {
    .type = METRIC_HISTOGRAM,
    .name = "propeller_task_dispatch_seconds",
    .help = "Time from the choice of a Proplet to the start on it.",
    .buckets = SECONDS,
};
static struct metric STARTS = {
    .type = METRIC_COUNTER,
    .name = "propeller_starts_total",
    .help = "Number of published starts.",
};
static struct metric REPEATED = {
    .type = METRIC_COUNTER,
    .name = "propeller_starts_repeated_total",
    .help = "Number of starts published again with the same id, as far as "
            "this process knows.",
};
static struct metric RUN = {
    .type = METRIC_HISTOGRAM,
    .name = "propeller_task_run_seconds",
    .help = "Time from the start of an attempt to its end, by outcome.",
    .labels = { "outcome" },
    .buckets = SECONDS,
};
static struct metric RUNS = {
    .type = METRIC_COUNTER,
    .name = "propeller_task_runs_total",
    .help = "Number of runs that ended, by outcome.",
    .labels = { "outcome" },
};
static struct metric ATTEMPTS = {
    .type = METRIC_COUNTER,
    .name = "propeller_task_attempts_total",
    .help = "Number of attempts that ended, by outcome and reason.",
    .labels = { "outcome", "reason" },
};

static struct metric CUT = {
    .type = METRIC_COUNTER,
    .name = "propeller_tasks_cut_total",
    .help = "Number of attempts that ended because their Proplet closed, by the reason of that.",
    .labels = { "reason" },
};

/* Those that stop Tasks. */
static const enum reason CLOSINGS[] = { REASON_KILL_SWITCH, REASON_RECLAIMED, REASON_DISABLED,
                                        REASON_OVERRIDE_CLOSED, REASON_OUTSIDE_WINDOW };

/* The phases in which an attempt ends. */
static const enum task_phase OUTCOMES[] = { TASK_COMPLETED, TASK_FAILED, TASK_INTERRUPTED };

static bool is_outcome(enum task_phase phase)
{
    for (size_t i = 0; i < ARRAY_LEN(OUTCOMES); i++) {
        if (OUTCOMES[i] == phase)
            return true;
    }
    return false;
}

void task_metrics_begin(void)
{
    metric_add(&WAIT, 0, NULL);
    metric_add(&DISPATCH, 0, NULL);
    metric_add(&STARTS, 0, NULL);
    metric_add(&REPEATED, 0, NULL);
    metric_add(&RUNS, 0, TASK_PHASE_NAMES[TASK_SKIPPED], NULL);
    for (size_t i = 0; i < ARRAY_LEN(CLOSINGS); i++)
        metric_add(&CUT, 0, reason_text(CLOSINGS[i]), NULL);
    for (size_t i = 0; i < ARRAY_LEN(OUTCOMES); i++) {
        metric_add(&RUN, 0, TASK_PHASE_NAMES[OUTCOMES[i]], NULL);
        metric_add(&RUNS, 0, TASK_PHASE_NAMES[OUTCOMES[i]], NULL);
    }
}

void task_metrics_start(bool is_repeated)
{
    metric_add(&STARTS, 1, NULL);
    if (is_repeated)
        metric_add(&REPEATED, 1, NULL);
}

void task_metrics_cut(const char *reason)
{
    metric_add(&CUT, 1, reason, NULL);
}

static double seconds(int64_t from_us, int64_t to_us)
{
    return to_us > from_us ? (double)(to_us - from_us) / 1e6 : 0;
}

static int64_t latest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void task_metrics_written(const struct task_status *before, const struct task_status *after,
                          int64_t created_us)
{
    const char *outcome = TASK_PHASE_NAMES[after->phase];
    bool has_ended = after->phase != before->phase;
    bool has_started =
        after->started_at_us && (after->attempt != before->attempt || !before->started_at_us);

    if (after->phase == TASK_SCHEDULED && after->attempt != before->attempt)
        metric_observe(
            &WAIT,
            seconds(latest(created_us, latest(before->last_run_us, before->next_retry_us)),
                    after->scheduled_at_us),
            NULL);
    if (has_started)
        metric_observe(&DISPATCH, seconds(after->scheduled_at_us, after->started_at_us), NULL);
    if (has_ended && is_outcome(after->phase)) {
        if (after->started_at_us)
            metric_observe(&RUN, seconds(after->started_at_us, after->finished_at_us), outcome,
                           NULL);
        metric_add(&ATTEMPTS, 1, outcome, str_is_empty(after->reason) ? "" : after->reason, NULL);
    }
    if (has_ended && task_is_final(after->phase) && !after->next_retry_us)
        metric_add(&RUNS, 1, outcome, NULL);
}
