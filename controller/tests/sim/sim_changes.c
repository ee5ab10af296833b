#include "controller/tests/sim/sim_changes.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/json/json.h"
#include "controller/tests/sim/sim_fleet.h"
#include "controller/tests/sim/sim_judge.h"

#define SECOND_US INT64_C(1000000)
#define MAX_TASKS 4096
/* Timestamps have whole seconds. A clock of another host that is wrong by less than a fail-over takes
 * looks like a fail-over, and its difference counts. */
#define SLACK_US (30 * SECOND_US)
/* A heartbeat waits in a slow broker for up to a minute and a half, and counts for half a minute. */
#define SILENCE_US (150 * SECOND_US)
/* Each attempt has a cause outside. Two parts of the controller that disagree about a Proplet make some hundred in
 * a second. */
#define HASTE_US (10 * SECOND_US)
#define MAX_HASTE 16

/* The last state of a Task. */
static struct seen {
    char uid[64];
    char name[64];
    char phase[16];
    int64_t since_us; /* it has this phase; running: it was scheduled */
    int64_t end_us;   /* of a run; 0: none has ended */
    bool final;       /* completed, skipped, or failed for good */
    bool recurs;      /* it will not stay final */
    int64_t haste_us; /* attempts are counted from this time on, for HASTE_US */
    int64_t attempts;
} tasks[MAX_TASKS];
static size_t task_count;

static struct seen *task_seen(const cJSON *task)
{
    const char *uid = sim_text(task, "metadata", "uid");

    for (size_t i = 0; i < task_count; i++) {
        if (str_equal(tasks[i].uid, uid))
            return &tasks[i];
    }
    if (task_count == MAX_TASKS)
        sim_fail("more than %d Tasks", MAX_TASKS);
    struct seen *seen = &tasks[task_count++];
    (void)str_copy(seen->uid, sizeof(seen->uid), uid);
    (void)str_copy(seen->name, sizeof(seen->name), sim_text(task, "metadata", "name"));
    seen->since_us = sim_now_us();
    seen->recurs = json_bool(json_path(task, "spec", "isRecurring", NULL), false);
    return seen;
}

int64_t sim_changes_last_end_us(const char *uid)
{
    for (size_t i = 0; i < task_count; i++) {
        if (str_equal(tasks[i].uid, uid))
            return tasks[i].end_us;
    }
    return 0;
}

/* ---- times ---- */

static void judge_age(const cJSON *task, const struct seen *seen, const char *field,
                      const char *what)
{
    int64_t seconds = json_int(json_path(task, "spec", field, NULL), 0);
    int64_t age_us = sim_now_us() - seen->since_us;

    if (age_us + SLACK_US < seconds * SECOND_US)
        sim_fail("Task '%s' was %s after %.1f s, and %s is %lld", seen->name, what,
                 (double)age_us / 1e6, field, (long long)seconds);
}

static int64_t time_of(const cJSON *task, const char *field)
{
    int64_t us = 0;

    (void)rfc3339_parse(sim_text(task, "status", field), &us);
    return us;
}

static void judge_run(const cJSON *old, const cJSON *task)
{
    int64_t run = json_int(json_path(task, "status", "run", NULL), 0);
    int64_t before = json_int(json_path(old, "status", "run", NULL), 0);
    const char *name = sim_text(task, "metadata", "name");
    int64_t seconds = 0, step_us;

    if (run == before || !str_has_prefix(sim_text(task, "spec", "schedule"), "@every "))
        return;
    seconds = strtoll(sim_text(task, "spec", "schedule") + strlen("@every "), NULL, 10);
    step_us = time_of(task, "lastRun") - time_of(before ? old : task, "lastRun");
    if (before && step_us <= 0)
        sim_fail("run %lld of Task '%s' is for a time that had one", (long long)run, name);
    if (run != before + 1 || step_us % (seconds * SECOND_US))
        sim_fail("run %lld of Task '%s' comes %.0f s after run %lld, with '@every %llds'",
                 (long long)run, name, (double)step_us / 1e6, (long long)before,
                 (long long)seconds);
}

static bool is_active(const cJSON *task)
{
    const char *phase = sim_text(task, "status", "phase");

    return str_equal(phase, "scheduled") || str_equal(phase, "running");
}

/* An attempt is lost once, in the write that takes it away, and the limit is final. */
static void judge_losses(const cJSON *old, const cJSON *task)
{
    int64_t limit = json_int(json_path(task, "spec", "lostAttemptsLimit", NULL), INT64_MAX);
    int64_t before = json_int(json_path(old, "status", "lostAttemptCount", NULL), 0);
    int64_t count = json_int(json_path(task, "status", "lostAttemptCount", NULL), 0);
    int64_t run = json_int(json_path(task, "status", "run", NULL), 0);
    bool is_same_run = run == json_int(json_path(old, "status", "run", NULL), 0);
    int64_t attempt = json_int(json_path(task, "status", "attempt", NULL), 0);
    bool is_over =
        !is_active(task) || attempt != json_int(json_path(old, "status", "attempt", NULL), 0);
    bool is_loss = is_same_run && count == before + 1 && is_active(old) && is_over;
    bool is_kept = is_same_run ? count == before : !count;

    if (!(is_loss || is_kept) || count > limit || count > attempt)
        sim_fail("Task '%s' has lost %lld attempts of %lld, after %lld of its run %lld",
                 sim_text(task, "metadata", "name"), (long long)count, (long long)attempt,
                 (long long)before, (long long)run);
    if (str_equal(sim_text(task, "status", "reason"), "LostAttemptsExceeded") && count != limit)
        sim_fail("Task '%s' failed after %lld lost attempts, and its limit is %lld",
                 sim_text(task, "metadata", "name"), (long long)count, (long long)limit);
}

static void judge_haste(const cJSON *old, const cJSON *task, struct seen *seen)
{
    if (json_int(json_path(old, "status", "attempt", NULL), 0) ==
        json_int(json_path(task, "status", "attempt", NULL), 0))
        return;
    if (sim_now_us() - seen->haste_us > HASTE_US) {
        seen->haste_us = sim_now_us();
        seen->attempts = 0;
    }
    if (++seen->attempts > MAX_HASTE)
        sim_fail("Task '%s' began %d attempts within %.1f s", seen->name, MAX_HASTE + 1,
                 (double)(sim_now_us() - seen->haste_us) / 1e6);
}

/* ---- dependencies ---- */

/* One that was deleted keeps its outcome: it may have been looked at before. */
static const struct seen *dependency(const cJSON *name)
{
    const struct seen *found = NULL;

    for (size_t i = 0; i < task_count; i++) {
        if (str_equal(tasks[i].name, json_string(name, "")))
            found = &tasks[i];
    }
    return found;
}

struct outcomes {
    size_t open, completed, failed, skipped, recurring;
};

static struct outcomes outcomes_of(const cJSON *task)
{
    struct outcomes outcomes = { 0 };

    json_for_each (name, json_path(task, "spec", "dependsOn", NULL)) {
        const struct seen *seen = dependency(name);

        if (seen && seen->recurs)
            outcomes.recurring++;
        else if (!seen || !seen->final)
            outcomes.open++;
        else if (str_equal(seen->phase, "completed"))
            outcomes.completed++;
        else if (str_equal(seen->phase, "failed"))
            outcomes.failed++;
        else
            outcomes.skipped++;
    }
    return outcomes;
}

static bool lets_begin(const struct outcomes *of, bool on_failure)
{
    return !of->open && (on_failure ? of->failed > 0 : !of->failed && !of->skipped);
}

static bool lets_skip(const struct outcomes *of, bool on_failure)
{
    return on_failure ? !of->open && !of->failed : of->failed || of->skipped;
}

/* Dependencies are looked at once in a run: about the first attempt alone. A job that fails skips its
 * own Tasks. */
static void judge_dependencies(const cJSON *task, const struct seen *seen, const char *phase)
{
    bool on_failure = str_equal(sim_text(task, "spec", "runIf"), "failure");
    bool is_first = json_int(json_path(task, "status", "attempt", NULL), 1) <= 1;
    struct outcomes of = outcomes_of(task);

    if (!json_len(json_path(task, "spec", "dependsOn", NULL)) || of.recurring ||
        !str_equal(seen->phase, "pending"))
        return;
    if (str_equal(phase, "scheduled") && is_first && !lets_begin(&of, on_failure))
        sim_fail("Task '%s' begins, and of what it depends on %zu are not final, %zu failed",
                 seen->name, of.open, of.failed);
    if (str_equal(phase, "skipped") && !*sim_text(task, "spec", "jobId") &&
        !lets_skip(&of, on_failure))
        sim_fail("Task '%s' is skipped, and of what it depends on %zu failed, %zu were skipped",
                 seen->name, of.failed, of.skipped);
}

/* ---- devices ---- */

static void judge_restart(const cJSON *old, const cJSON *task)
{
    const struct sim_run *runs;
    size_t count = sim_fleet_runs(&runs);
    char id[SIM_ID_LEN];

    if (!str_equal(sim_text(task, "status", "reason"), "DeviceRestarted") ||
        !str_equal(sim_text(task, "status", "phase"), "interrupted"))
        return;
    sim_last_id(old, id);
    for (size_t i = 0; i < count; i++) {
        if (str_equal(runs[i].id, id) && runs[i].running && runs[i].boot == runs[i].device->boot)
            sim_fail("attempt '%s' ends as if '%s' had been restarted, which computes it", id,
                     runs[i].device->client_id);
    }
}

static void judge_proplet(const cJSON *old, const cJSON *proplet)
{
    const struct sim_device *device = sim_fleet_device(sim_text(proplet, "metadata", "name"));

    if (device && str_equal(sim_text(proplet, "status", "phase"), "Running") &&
        !str_equal(sim_text(old, "status", "phase"), "Running") &&
        sim_now_us() - device->spoke_us > SILENCE_US)
        sim_fail("Proplet '%s' becomes Running, and its device spoke %.1f s before",
                 device->client_id, (double)(sim_now_us() - device->spoke_us) / 1e6);
}

/* ---- all of it ---- */

static void judge_phase(const cJSON *old, const cJSON *task, struct seen *seen)
{
    const char *phase = sim_text(task, "status", "phase");

    judge_dependencies(task, seen, phase);
    judge_restart(old, task);
    if (str_equal(sim_text(task, "status", "reason"), "DeadlineExceeded") &&
        str_equal(phase, "failed"))
        judge_age(task, seen, "activeDeadlineSeconds", "failed");
    /* The deadline counts from the start. A process that is paused behind it writes the phase running long after. */
    if (!str_equal(phase, "running") || !str_equal(seen->phase, "scheduled"))
        seen->since_us = sim_now_us();
    (void)str_copy(seen->phase, sizeof(seen->phase), phase);
    if (str_equal(phase, "completed") || str_equal(phase, "failed"))
        seen->end_us = sim_now_us();
}

void sim_change(void *ctx UNUSED, const cJSON *old, const cJSON *current)
{
    const cJSON *object = current ? current : old;
    const char *kind = json_string(json_get(object, "kind"), "");

    if (str_equal(kind, "Proplet") && current)
        judge_proplet(old, current);
    if (!str_equal(kind, "Task"))
        return;
    struct seen *seen = task_seen(object);
    bool was_deleted = !old || *sim_text(old, "metadata", "deletionTimestamp");
    bool is_deleted = !current || *sim_text(current, "metadata", "deletionTimestamp");
    if (is_deleted && !was_deleted && sim_replica()) /* by a controller, not by a user */
        judge_age(object, seen, "ttlSecondsAfterFinished", "deleted");
    if (!current)
        return;
    judge_run(old, current);
    judge_losses(old, current);
    judge_haste(old, current, seen);
    if (!str_equal(seen->phase, sim_text(current, "status", "phase")))
        judge_phase(old, current, seen);
    seen->final = sim_is_final(current);
}
