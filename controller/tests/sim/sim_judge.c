#include "controller/tests/sim/sim_judge.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/json/json.h"
#include "common/kube/kinds.h"
#include "common/kube/path.h"
#include "common/tests/fake_api.h"
#include "controller/tests/sim/sim_api.h"
#include "controller/tests/sim/sim_fleet.h"

/* finishedAt has whole seconds. */
#define SECOND_US 1000000

static const cJSON *all_of(struct arena *arena, const char *plural)
{
    const struct http_request request = {
        .method = "GET",
        .path = arena_printf(arena, "/apis/" PROPELLER_GROUP "/v1/namespaces/default/%s", plural)
    };
    struct http_response response;
    const cJSON *list;

    sim_atomic_begin();
    int r = fake_api_roundtrip(sim_api, arena, &request, &response, NULL);
    sim_atomic_end();
    if (r < 0 || json_parse(arena, response.body, response.body_len, &list, NULL) < 0)
        sim_fail("the list of %s cannot be read", plural);
    return json_get(list, "items");
}

static const char *text(const cJSON *object, const char *section, const char *key)
{
    return json_string(json_path(object, section, key, NULL), "");
}

static bool condition_is(const cJSON *task, const char *type, const char *status)
{
    json_for_each (condition, json_path(task, "status", "conditions", NULL)) {
        if (str_equal(json_string(json_get(condition, "type"), ""), type))
            return str_equal(json_string(json_get(condition, "status"), ""), status);
    }
    return false;
}

static bool has_ended(const cJSON *task)
{
    const char *phase = text(task, "status", "phase");

    if (*text(task, "metadata", "deletionTimestamp"))
        return false;
    if (json_bool(json_path(task, "spec", "suspend", NULL), false))
        return !str_equal(phase, "running");
    return str_equal(phase, "completed") || str_equal(phase, "skipped") ||
           (str_equal(phase, "failed") && condition_is(task, "Failed", "True"));
}

/* ---- G13 ---- */

#define MAX_TIMED 4096
/* Timestamps have whole seconds. A clock of another host that is wrong by less than a fail-over takes
 * looks like a fail-over, and its difference counts. */
#define SLACK_US (30 * SECOND_US)

static struct timed {
    char uid[64];
    char phase[16];
    int64_t since_us; /* it has this phase */
} timed[MAX_TIMED];
static size_t timed_count;

static struct timed *timed_of(const cJSON *task)
{
    const char *uid = text(task, "metadata", "uid");

    for (size_t i = 0; i < timed_count; i++) {
        if (str_equal(timed[i].uid, uid))
            return &timed[i];
    }
    if (timed_count == MAX_TIMED)
        sim_fail("more than %d Tasks", MAX_TIMED);
    struct timed *entry = &timed[timed_count++];
    (void)str_copy(entry->uid, sizeof(entry->uid), uid);
    entry->since_us = sim_now_us();
    return entry;
}

static void judge_age(const cJSON *task, const struct timed *entry, const char *field,
                      const char *what)
{
    int64_t seconds = json_int(json_path(task, "spec", field, NULL), 0);
    int64_t age_us = sim_now_us() - entry->since_us;

    if (age_us + SLACK_US < seconds * SECOND_US)
        sim_fail("Task '%s' was %s after %.1f s, and %s is %lld", text(task, "metadata", "name"),
                 what, (double)age_us / 1e6, field, (long long)seconds);
}

void sim_judge_change(void *ctx UNUSED, const cJSON *old, const cJSON *current)
{
    const cJSON *task = current ? current : old;

    if (!str_equal(json_string(json_get(task, "kind"), ""), "Task"))
        return;
    struct timed *entry = timed_of(task);
    const char *phase = text(task, "status", "phase");
    bool was_deleted = !old || *text(old, "metadata", "deletionTimestamp");
    bool is_deleted = !current || *text(current, "metadata", "deletionTimestamp");
    if (is_deleted && !was_deleted && sim_replica()) /* by a controller, not by a user */
        judge_age(task, entry, "ttlSecondsAfterFinished", "deleted");
    if (!current || str_equal(entry->phase, phase))
        return;
    if (str_equal(text(task, "status", "reason"), "DeadlineExceeded") && str_equal(phase, "failed"))
        judge_age(task, entry, "activeDeadlineSeconds", "failed");
    (void)str_copy(entry->phase, sizeof(entry->phase), phase);
    entry->since_us = sim_now_us();
}

bool sim_judge_all_ended(struct arena *arena, const char **ret_first)
{
    json_for_each (task, all_of(arena, "tasks")) {
        if (!has_ended(task)) {
            *ret_first = json_text(arena, task, NULL);
            return false;
        }
    }
    json_for_each (job, all_of(arena, "propellerjobs")) {
        const char *phase = text(job, "status", "phase");

        if (!str_equal(phase, "Completed") && !str_equal(phase, "Failed")) {
            *ret_first = json_text(arena, job, NULL);
            return false;
        }
    }
    return true;
}

/* The id of the Task's last attempt: its uid, or "<uid>.<attempt>". */
static const char *last_id(struct arena *arena, const cJSON *task)
{
    const char *uid = text(task, "metadata", "uid");
    int64_t attempt = json_int(json_path(task, "status", "attempt", NULL), 1);

    return attempt <= 1 ? uid : arena_printf(arena, "%s.%lld", uid, (long long)attempt);
}

static const struct sim_run *run_with_result(const char *id)
{
    const struct sim_run *runs;
    size_t count = sim_fleet_runs(&runs);

    for (size_t i = 0; i < count; i++) {
        if (str_equal(runs[i].id, id) && runs[i].results)
            return &runs[i];
    }
    return NULL;
}

static void judge_result(struct arena *arena, const cJSON *task)
{
    const char *name = text(task, "metadata", "name"), *phase = text(task, "status", "phase");
    const struct sim_run *run = run_with_result(last_id(arena, task));
    char answer[2 * SIM_ID_LEN];
    int64_t finished_us = 0;

    if (str_equal(phase, "completed") && !run)
        sim_fail("Task '%s' is completed, and no device sent a result: %s", name,
                 json_text(arena, task, NULL));
    const char *reason = text(task, "status", "reason");
    if (str_equal(reason, "DeadlineExceeded") || str_equal(reason, "StoppedByJob"))
        return;
    if (!run || json_bool(json_path(task, "spec", "suspend", NULL), false))
        return; /* a suspension ends an attempt, whatever comes of it */
    (void)rfc3339_parse(text(task, "status", "finishedAt"), &finished_us);
    if (str_equal(phase, "failed") && finished_us &&
        run->result_us + SECOND_US > finished_us + (sim_now_us() - clock_wall_us(&CLOCK_SYSTEM)))
        return; /* it came after the end */
    (void)sim_fleet_answer(run, answer);
    const char *said = text(task, "status", run->fails ? "error" : "results");
    if (!str_equal(phase, run->fails ? "failed" : "completed") || !strstr(said, answer))
        sim_fail("the broker stored '%s', and Task '%s' lost it: %s", answer, name,
                 json_text(arena, task, NULL));
}

void sim_judge_results(struct arena *arena)
{
    json_for_each (task, all_of(arena, "tasks"))
        judge_result(arena, task);
}

void sim_judge_starts(void)
{
    const struct sim_run *runs;
    size_t count = sim_fleet_runs(&runs);

    for (size_t i = 0; i < count; i++) {
        for (size_t j = i + 1; j < count; j++) {
            if (str_equal(runs[i].id, runs[j].id))
                sim_fail("attempt '%s' was started on '%s' and on '%s'", runs[i].id,
                         runs[i].device->client_id, runs[j].device->client_id);
        }
    }
}
