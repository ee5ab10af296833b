#include "plugin/why/why.h"

#include "common/api/kinds.h"
#include "common/api/reasons.h"
#include "common/api/task.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "common/view/state.h"

/* A start goes out within this time of the choice, where the broker is there. */
#define START_US (INT64_C(10) * 1000000)
#define MAX_DEPTH 20
#define MAX_ROWS 500

static const char *name_of(const cJSON *object)
{
    return json_string(json_path(object, "metadata", "name", NULL), "");
}

static const char *namespace_of(const cJSON *object)
{
    return json_string(json_path(object, "metadata", "namespace", NULL), "");
}

static const char *verdict_of(struct arena *arena, const struct task_spec *spec,
                              const struct candidate *candidate)
{
    enum schedule_filter filter = schedule_filter(spec, candidate);

    if (filter == FILTER_PASSED)
        return "fits";
    if (filter == FILTER_NOT_READY && candidate->absence)
        return candidate->absence;
    return schedule_filter_text(arena, spec, filter, 1);
}

static void add_rows(struct arena *arena, const struct task_spec *spec,
                     const struct schedule_context *context, cJSON *rows)
{
    for (size_t i = 0; i < context->len; i++) {
        const struct candidate *candidate = &context->candidates[i];
        cJSON *row = json_add_object(rows);

        json_set_string(row, "object", arena_printf(arena, "proplet/%s", candidate->name));
        json_set_string(row, "proplet", candidate->name);
        json_set_bool(row, "fits", schedule_filter(spec, candidate) == FILTER_PASSED);
        json_set_int(row, "active", candidate->active);
        json_set_string(row, "verdict", verdict_of(arena, spec, candidate));
    }
}

/* A broadcast runs on each of them. */
static const char *all_that_fit(struct arena *arena, const cJSON *rows)
{
    const char *names = "";

    json_for_each (row, rows) {
        if (json_bool(json_get(row, "fits"), false))
            names = arena_printf(arena, "%s%s%s", names, *names ? "," : "",
                                 json_string(json_get(row, "proplet"), ""));
    }
    return *names ? names : NULL;
}

const char *why_schedule(struct arena *arena, const cJSON *object, const struct snapshot *snapshot,
                         const char *scheduler, int64_t now_us, cJSON *document)
{
    struct schedule_context context =
        snapshot_context(snapshot, arena, namespace_of(object), now_us);
    struct schedule_refusal refusal = { REASON_NONE, "" };
    struct task task = { 0 };

    if (task_decode(arena, object, &task, NULL) < 0)
        return NULL;
    cJSON *rows = json_set_array(document, "proplets");
    add_rows(arena, &task.spec, &context, rows);
    const char *targets = task.spec.broadcast ? all_that_fit(arena, rows) : NULL;
    if (targets)
        return targets;
    const struct candidate *chosen =
        scheduler_pick(scheduler_by_name(scheduler), arena, &task.spec, &context, &refusal);
    if (chosen)
        return chosen->name;

    cJSON *told = json_set_object(document, "scheduler");
    json_set_string(told, "reason", reason_text(refusal.reason));
    json_set_string(told, "message", refusal.message);
    return NULL;
}

static bool is_listed(const cJSON *rows, const char *task)
{
    json_for_each (row, rows) {
        if (str_equal(json_string(json_get(row, "task"), ""), task))
            return true;
    }
    return false;
}

/* Depth first, so that a row stands under the Task that needs it. */
static void add_dependencies(struct arena *arena, const struct snapshot *snapshot,
                             const cJSON *object, int64_t depth, cJSON *rows)
{
    json_for_each (item, json_path(object, "spec", "dependsOn", NULL)) {
        const char *name = json_string(item, "");
        const cJSON *needed = snapshot_task(snapshot, arena, namespace_of(object), name);
        bool is_known = is_listed(rows, name);

        if (json_len(rows) >= MAX_ROWS)
            return;
        struct state state = state_of(&KIND_TASK, needed);
        cJSON *row = json_add_object(rows);
        json_set_string(row, "object", arena_printf(arena, "task/%s", name));
        json_set_string(row, "task", name);
        json_set_string(row, "phase", needed ? *state.phase ? state.phase : "pending" : "missing");
        json_set_string(row, "reason", is_known ? "see above" : state.reason);
        json_set_int(row, "depth", depth);
        if (needed && !is_known && depth < MAX_DEPTH)
            add_dependencies(arena, snapshot, needed, depth + 1, rows);
    }
}

/* The status does not say that the broker is away, since each Task would need a write for that. */
static void explain_start(struct arena *arena, const struct why_input *input, cJSON *document)
{
    const cJSON *status = json_get(input->object, "status");
    int64_t scheduled_us = input->now_us;

    rfc3339_parse(json_string(json_get(status, "scheduledAt"), ""), &scheduled_us);
    if (json_get(status, "startedAt") || input->now_us - scheduled_us < START_US)
        return;
    json_set_string(document, "message",
                    arena_printf(arena, "%s, but the start has not gone out for %lld s",
                                 json_string(json_get(document, "message"), ""),
                                 (long long)((input->now_us - scheduled_us) / 1000000)));
    json_set_string(document, "remedy",
                    "Look whether the controller has a connection to the broker: its log, mqtt in "
                    "/readyz, or kubectl propeller check.");
}

/* Before an attempt has run with it, the condition is not there yet. */
static void explain_checkpoint(const struct why_input *input, cJSON *document)
{
    const cJSON *status = json_get(input->object, "status");
    const cJSON *condition = condition_get(json_get(status, "conditions"), "Checkpointing");
    const cJSON *last = json_get(status, "lastCheckpoint");
    const char *reason = json_string(json_get(condition, "reason"), "");
    cJSON *told = json_set_object(document, "checkpoint");

    json_set_string(told, "message",
                    json_string(json_get(condition, "message"), "no attempt has run with it yet"));
    if (str_equal(json_string(json_get(condition, "status"), ""), "False"))
        json_set_string(told, "remedy", REASON_TABLE[reason_of(reason)].remedy);
    json_set_copy(told, "step", json_get(last, "step"));
    json_set_copy(told, "time", json_get(last, "time"));
    json_set_copy(told, "proplet", json_get(last, "proplet"));
}

static void explain_task(struct arena *arena, const struct why_input *input, cJSON *document)
{
    const cJSON *status = json_get(input->object, "status");
    const char *phase = json_string(json_get(status, "phase"), "pending");
    struct snapshot_rank rank = snapshot_rank(input->snapshot, input->object, input->now_us);

    if (json_len(json_path(input->object, "spec", "dependsOn", NULL)))
        add_dependencies(arena, input->snapshot, input->object, 0,
                         json_set_array(document, "dependencies"));
    if (json_path(input->object, "spec", "checkpoint", NULL))
        explain_checkpoint(input, document);
    if (str_equal(phase, "pending"))
        (void)why_schedule(arena, input->object, input->snapshot, SCHEDULER_LEAST_LOADED.name,
                           input->now_us, document);
    if (str_equal(phase, "scheduled"))
        explain_start(arena, input, document);
    if (rank.waiting) {
        cJSON *told = json_set_object(document, "rank");

        json_set_int(told, "position", (int64_t)rank.position);
        json_set_int(told, "waiting", (int64_t)rank.waiting);
    }
}

/* The objects of this kind that the object owns and that have not succeeded. */
static void add_parts(struct arena *arena, const struct why_input *input,
                      const struct kube_kind *kind, const char *prefix, cJSON *rows)
{
    struct object_list list =
        store_list(snapshot_store(input->snapshot, kind), arena, namespace_of(input->object));

    for (size_t i = 0; i < list.len && json_len(rows) < MAX_ROWS; i++) {
        CLEANUP(arena_destroyp) struct arena *scratch = arena_create();
        const cJSON *object = kube_object_json(scratch, list.items[i]);
        struct state state = state_of(kind, object);

        if (!str_equal(kube_controller_uid(object), kube_uid(input->object)) || state.is_good)
            continue;
        cJSON *row = json_add_object(rows);
        json_set_string(row, "object", arena_printf(scratch, "%s/%s", prefix, name_of(object)));
        json_set_string(row, "phase", state.phase);
        json_set_string(row, "reason", state.reason);
        json_set_string(row, "message", state.message);
    }
}

static void set_state(const struct state *state, cJSON *document)
{
    const struct reason_row *row = &REASON_TABLE[reason_of(state->reason)];
    char since[RFC3339_LEN];

    json_set_string(document, "phase", state->phase);
    json_set_string(document, "reason", state->reason);
    json_set_string(document, "message", state->message);
    if (state->since_us)
        json_set_string(document, "since", rfc3339_format(state->since_us, since));
    if (row->text) {
        json_set_string(document, "meaning", row->meaning);
        json_set_string(document, "remedy", row->remedy);
    }
}

void why_explain(struct arena *arena, const struct why_input *input, cJSON *document)
{
    struct state state = state_of(input->kind, input->object);

    set_state(&state, document);
    if (input->kind == &KIND_TASK)
        explain_task(arena, input, document);
    if (input->kind == &KIND_PROPLET || input->kind == &KIND_TASK)
        return;

    cJSON *parts = json_set_array(document, "parts");
    add_parts(arena, input, &KIND_TASK, "task", parts);
    add_parts(arena, input, &KIND_TRAININGROUND, "traininground", parts);
}
