#include "controller/tests/sim/sim_judge.h"

#include <stdio.h>
#include <string.h>

#include "common/api/names.h"
#include "common/base/clock.h"
#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/json/json.h"
#include "common/kube/path.h"
#include "common/tests/fake_api.h"
#include "controller/tests/sim/sim_api.h"
#include "controller/tests/sim/sim_changes.h"
#include "controller/tests/sim/sim_fleet.h"

/* finishedAt has whole seconds. */
#define SECOND_US 1000000

static const cJSON *list(struct arena *arena, const char *api, const char *plural)
{
    const struct http_request request = {
        .method = "GET", .path = arena_printf(arena, "%s/namespaces/default/%s", api, plural)
    };
    struct http_response response;
    const cJSON *found;

    sim_atomic_begin();
    int r = fake_api_roundtrip(sim_api, arena, &request, &response, NULL);
    sim_atomic_end();
    if (r < 0 || json_parse(arena, response.body, response.body_len, &found, NULL) < 0)
        sim_fail("the list of %s cannot be read", plural);
    return json_get(found, "items");
}

static const cJSON *all_of(struct arena *arena, const char *plural)
{
    return list(arena, "/apis/" API_GROUP "/v1", plural);
}

const char *sim_text(const cJSON *object, const char *section, const char *key)
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

bool sim_is_final(const cJSON *task)
{
    const char *phase = sim_text(task, "status", "phase");

    return str_equal(phase, "completed") || str_equal(phase, "skipped") ||
           (str_equal(phase, "failed") && condition_is(task, "Failed", "True"));
}

static const cJSON *find(const cJSON *items, const char *name)
{
    json_for_each (item, items) {
        if (str_equal(sim_text(item, "metadata", "name"), name))
            return item;
    }
    return NULL;
}

/* For a Task that is not there, is suspended, or waits itself. */
static bool waits_for_task(const cJSON *tasks, const cJSON *task)
{
    bool waits = false;

    json_for_each (name, json_path(task, "spec", "dependsOn", NULL)) {
        const cJSON *other = find(tasks, json_string(name, ""));
        waits = waits || !other || !sim_is_final(other);
    }
    return waits && str_equal(sim_text(task, "status", "phase"), "pending");
}

static bool has_ended(const cJSON *tasks, const cJSON *task, int64_t calm_us)
{
    if (*sim_text(task, "metadata", "deletionTimestamp"))
        return false;
    if (json_bool(json_path(task, "spec", "suspend", NULL), false))
        return !str_equal(sim_text(task, "status", "phase"), "running");
    if (json_bool(json_path(task, "spec", "isRecurring", NULL), false))
        return !calm_us || sim_changes_last_end_us(sim_text(task, "metadata", "uid")) > calm_us;
    return sim_is_final(task) || waits_for_task(tasks, task);
}

static const cJSON *first_open(const cJSON *jobs)
{
    json_for_each (job, jobs) {
        const char *phase = sim_text(job, "status", "phase");

        if (!str_equal(phase, "Completed") && !str_equal(phase, "Failed"))
            return job;
    }
    return NULL;
}

bool sim_judge_all_ended(struct arena *arena, int64_t calm_us, const char **ret_first)
{
    const cJSON *tasks = all_of(arena, "tasks");
    const cJSON *first = first_open(all_of(arena, "propellerjobs"));

    if (!first)
        first = first_open(all_of(arena, "federatedjobs"));
    json_for_each (task, tasks) {
        if (!first && !has_ended(tasks, task, calm_us))
            first = task;
    }
    if (first)
        *ret_first = json_text(arena, first, NULL);
    return !first;
}

void sim_last_id(const cJSON *task, char ret[static SIM_ID_LEN])
{
    const char *uid = sim_text(task, "metadata", "uid");
    int64_t attempt = json_int(json_path(task, "status", "attempt", NULL), 1);

    if (attempt <= 1)
        (void)str_copy(ret, SIM_ID_LEN, uid);
    else
        snprintf(ret, SIM_ID_LEN, "%s.%lld", uid, (long long)attempt);
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

static bool has_run(const char *id)
{
    const struct sim_run *runs;
    size_t count = sim_fleet_runs(&runs);

    for (size_t i = 0; i < count; i++) {
        if (str_equal(runs[i].id, id))
            return true;
    }
    return false;
}

/* Attempts whose starts all got lost on their way: no device can report their failure. */
static int64_t attempts_without_run(struct arena *arena, const cJSON *task)
{
    const char *uid = sim_text(task, "metadata", "uid");
    int64_t attempts = json_int(json_path(task, "status", "attempt", NULL), 0), without = 0;

    for (int64_t i = 1; i <= attempts; i++)
        without += !has_run(i == 1 ? uid : arena_printf(arena, "%s.%lld", uid, (long long)i));
    return without;
}

/* Each failed attempt counts once, and there are as many of them as the limit says. */
static void judge_failures(struct arena *arena, const cJSON *task)
{
    const char *uid = sim_text(task, "metadata", "uid");
    int64_t failures = json_int(json_path(task, "status", "failures", NULL), 0), failed = 0;
    int64_t limit = json_int(json_path(task, "spec", "backoffLimit", NULL), 0);
    const struct sim_run *runs;
    size_t count = sim_fleet_runs(&runs);

    for (size_t i = 0; i < count; i++)
        failed += str_has_prefix(runs[i].id, uid) && runs[i].fails && runs[i].results;
    if (str_equal(sim_text(task, "status", "reason"), "DeviceError") &&
        (failures != limit + 1 || failed + attempts_without_run(arena, task) < failures) &&
        !*sim_text(task, "spec", "jobId"))
        sim_fail("devices reported %lld failures: %s", (long long)failed,
                 json_text(arena, task, NULL));
}

static bool is_broadcast(const cJSON *task)
{
    return json_bool(json_path(task, "spec", "broadcast", NULL), false);
}

/* Whether it ended, or was stopped, before this result came, or begins again and again. */
static bool ended_before(const cJSON *task, const struct sim_run *run)
{
    const char *reason = sim_text(task, "status", "reason");
    int64_t finished_us = 0;

    if (str_equal(reason, "DeadlineExceeded") || str_equal(reason, "StoppedByJob") ||
        json_bool(json_path(task, "spec", "isRecurring", NULL), false) ||
        json_bool(json_path(task, "spec", "suspend", NULL), false))
        return true;
    (void)rfc3339_parse(sim_text(task, "status", "finishedAt"), &finished_us);
    return str_equal(sim_text(task, "status", "phase"), "failed") && finished_us &&
           run->result_us + SECOND_US > finished_us + (sim_now_us() - clock_wall_us(&CLOCK_SYSTEM));
}

static void judge_result(struct arena *arena, const cJSON *task)
{
    const char *name = sim_text(task, "metadata", "name");
    const char *phase = sim_text(task, "status", "phase");
    char id[SIM_ID_LEN], answer[2 * SIM_ID_LEN];

    sim_last_id(task, id);
    const struct sim_run *run = run_with_result(id);
    if (str_equal(phase, "completed") && !run)
        sim_fail("Task '%s' is completed, and no device sent a result: %s", name,
                 json_text(arena, task, NULL));
    if (!run || run->forgotten || ended_before(task, run))
        return;
    (void)sim_fleet_answer(run, answer);
    const char *said = sim_text(task, "status", run->fails ? "error" : "results");
    bool is_update = run->trains && !run->fails; /* judged with its round */
    if (!str_equal(phase, run->fails ? "failed" : "completed") ||
        (!is_update && !strstr(said, answer)))
        sim_fail("the broker stored '%s', and Task '%s' lost it: %s", answer, name,
                 json_text(arena, task, NULL));
}

/* A device answered each target that is completed, and so many of them complete the Task. */
static void judge_broadcast(struct arena *arena, const cJSON *task)
{
    const char *name = sim_text(task, "metadata", "name");
    int64_t completed = 0, quorum = 0;

    json_for_each (target, json_path(task, "status", "broadcastResults", NULL)) {
        const char *proplet = json_string(json_get(target, "proplet"), "");
        const char *results = json_string(json_get(target, "results"), "");

        quorum++;
        if (!str_equal(json_string(json_get(target, "phase"), ""), "completed"))
            continue;
        completed++;
        if (!strstr(results, sim_text(task, "metadata", "uid")) || !strstr(results, proplet))
            sim_fail("the target '%s' of Task '%s' has the result '%s'", proplet, name, results);
    }
    quorum = json_int(json_path(task, "spec", "broadcastQuorum", NULL), quorum);
    if (str_equal(sim_text(task, "status", "phase"), "completed") && completed < quorum)
        sim_fail("Task '%s' is completed by %lld of %lld targets: %s", name, (long long)completed,
                 (long long)quorum, json_text(arena, task, NULL));
}

void sim_judge_results(struct arena *arena)
{
    json_for_each (task, all_of(arena, "tasks")) {
        if (is_broadcast(task))
            judge_broadcast(arena, task);
        else
            judge_result(arena, task);
        if (!is_broadcast(task) &&
            !json_bool(json_path(task, "spec", "isRecurring", NULL), false) && sim_is_final(task))
            judge_failures(arena, task);
    }
}

/* How many Tasks that belong to this object have this phase. */
static size_t children(const cJSON *tasks, const cJSON *owner, const char *phase)
{
    size_t count = 0;

    json_for_each (task, tasks) {
        const cJSON *reference = json_first(json_path(task, "metadata", "ownerReferences", NULL));
        if (str_equal(json_string(json_get(reference, "uid"), ""),
                      sim_text(owner, "metadata", "uid")) &&
            str_equal(sim_text(task, "status", "phase"), phase))
            count++;
    }
    return count;
}

void sim_judge_jobs(struct arena *arena)
{
    const cJSON *tasks = all_of(arena, "tasks");

    json_for_each (job, all_of(arena, "propellerjobs")) {
        size_t failed = children(tasks, job, "failed");
        size_t completed = children(tasks, job, "completed");
        bool is_completed = str_equal(sim_text(job, "status", "phase"), "Completed");

        if (is_completed != (failed == 0) ||
            json_int(json_path(job, "status", "completedCount", NULL), 0) != (int64_t)completed ||
            json_int(json_path(job, "status", "failedCount", NULL), 0) != (int64_t)failed)
            sim_fail("of the Tasks of PropellerJob '%s' %zu completed, %zu failed: %s",
                     sim_text(job, "metadata", "name"), completed, failed,
                     json_text(arena, job, NULL));
    }
}

/* ---- federated rounds ---- */

/* The only number of a model, which a ConfigMap holds. */
static double model_of(struct arena *arena, const cJSON *round)
{
    static const char PREFIX[] = "model://sha256:";
    const char *reference = sim_text(round, "status", "aggregatedModelRef");
    const cJSON *model = NULL;

    json_for_each (item, list(arena, "/api/v1", "configmaps")) {
        const char *digest = json_string(
            json_path(item, "metadata", "annotations", API_GROUP "/model-digest", NULL), "");
        const char *chunk = sim_text(item, "binaryData", "chunk");
        size_t len = 0;
        const char *bytes = base64_decode(arena, chunk, strlen(chunk), &len);

        if (str_has_prefix(reference, PREFIX) && str_equal(digest, reference + strlen(PREFIX)) &&
            bytes && json_parse(arena, bytes, len, &model, NULL) < 0)
            model = NULL;
    }
    if (json_len(model) != 1)
        sim_fail("TrainingRound '%s' has no model '%s'", sim_text(round, "metadata", "name"),
                 reference);
    return json_double(json_first(model), -1);
}

/* Each update counts once, and the model is their mean. Late ones weigh less: not checked. */
static void judge_round(struct arena *arena, const cJSON *tasks, const cJSON *round)
{
    const char *name = sim_text(round, "metadata", "name");
    int64_t counted = 0;
    double sum = 0;
    bool late = false;

    json_for_each (part, json_path(round, "status", "participants", NULL)) {
        char id[SIM_ID_LEN];

        late = late || str_equal(json_string(json_get(part, "status"), ""), "Late");
        if (!json_bool(json_get(part, "updateReceived"), false))
            continue;
        const cJSON *task = find(tasks, json_string(json_path(part, "taskRef", "name", NULL), ""));
        sim_last_id(task, id);
        const struct sim_run *run = run_with_result(id);
        if (!run || run->fails ||
            !str_equal(run->device->client_id, json_string(json_get(part, "propletId"), "")))
            sim_fail("TrainingRound '%s' counts an update that no device sent: %s", name,
                     json_text(arena, part, NULL));
        counted++;
        sum += sim_fleet_update(run);
    }
    if (counted < json_int(json_path(round, "status", "updatesRequired", NULL), 0) ||
        counted != json_int(json_path(round, "status", "updatesReceived", NULL), 0))
        sim_fail("TrainingRound '%s' counts %lld updates: %s", name, (long long)counted,
                 json_text(arena, json_get(round, "status"), NULL));
    double difference = model_of(arena, round) * (double)counted - sum;
    if (!late && (difference > 1e-3 || difference < -1e-3))
        sim_fail("the model of TrainingRound '%s' is %f, and the mean of its updates %f", name,
                 model_of(arena, round), sum / (double)counted);
}

void sim_judge_rounds(struct arena *arena)
{
    const cJSON *tasks = all_of(arena, "tasks"), *rounds = all_of(arena, "trainingrounds");

    json_for_each (round, rounds) {
        if (str_equal(sim_text(round, "status", "phase"), "Completed"))
            judge_round(arena, tasks, round);
    }
    json_for_each (job, all_of(arena, "federatedjobs")) {
        int64_t completed = 0;

        json_for_each (round, rounds) {
            const cJSON *reference =
                json_first(json_path(round, "metadata", "ownerReferences", NULL));
            completed += str_equal(json_string(json_get(reference, "uid"), ""),
                                   sim_text(job, "metadata", "uid")) &&
                         str_equal(sim_text(round, "status", "phase"), "Completed");
        }
        if (json_int(json_path(job, "status", "completedRounds", NULL), 0) != completed)
            sim_fail("FederatedJob '%s' has %lld completed rounds: %s",
                     sim_text(job, "metadata", "name"), (long long)completed,
                     json_text(arena, job, NULL));
    }
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
