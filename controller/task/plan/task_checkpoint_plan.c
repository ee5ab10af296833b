#include "controller/task/plan/task_checkpoint_plan.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/str.h"
#include "controller/task/plan/plan_parts.h"
#include "controller/task/plan/task_transition.h"

/* Two checkpoints of one attempt have at least this time between them, in seconds. */
#define MIN_PAUSE 10

const char *const CHECKPOINT_VERDICT_NAMES[CHECKPOINT_VERDICTS] = {
    "stored",    "noted",   "repeated",      "stale",       "early",
    "too_large", "invalid", "other_attempt", "not_running", "store_failed",
};

static bool takes_checkpoints(const struct task *task)
{
    return task->spec.checkpoint && !task->spec.broadcast &&
           (task->status.phase == TASK_SCHEDULED || task->status.phase == TASK_RUNNING) &&
           !str_is_empty(task->status.assigned_proplet);
}

int64_t checkpoint_wait_seconds(const struct task_observed *task)
{
    const struct task_checkpoint *last = task->task.status.last_checkpoint;
    int64_t pause = task_checkpoint_seconds(task->task.spec.checkpoint) / 2;

    /* the first one of an attempt may come at any time, and a time in the future says nothing */
    if (!last || last->attempt != task->task.status.attempt || last->time_us > task->now_us)
        return 0;
    return (pause > MIN_PAUSE ? pause : MIN_PAUSE) -
           timeline_age_us(&task->time, task->now_us, last->time_us) / 1000000;
}

enum checkpoint_verdict checkpoint_judge(struct arena *arena, const struct task_observed *task,
                                         const struct observed_checkpoint *checkpoint)
{
    const struct task_checkpoint *last = task->task.status.last_checkpoint;
    enum checkpoint_verdict fine = checkpoint->uri ? CHECKPOINT_NOTED : CHECKPOINT_STORED;

    if (!takes_checkpoints(&task->task))
        return CHECKPOINT_NOT_RUNNING;
    if (!str_equal(checkpoint->message_id, task_message_id(arena, task)))
        return CHECKPOINT_OTHER_ATTEMPT;
    if (!last)
        return fine;
    if (checkpoint->step == last->step.value) {
        if (!checkpoint->sha256)
            return fine;
        return str_equal(checkpoint->sha256, last->sha256) ? CHECKPOINT_REPEATED : CHECKPOINT_STALE;
    }
    if (checkpoint->step < last->step.value)
        return CHECKPOINT_STALE;
    return checkpoint_wait_seconds(task) > 0 ? CHECKPOINT_EARLY : fine;
}

static void keep_stored(struct arena *arena, const struct task_observed *observed,
                        const struct observed_checkpoint *checkpoint, struct task_status *status)
{
    const struct json_objects *old = &observed->task.status.checkpoints;
    int64_t keep = task_checkpoint_keep(observed->task.spec.checkpoint);
    struct stored_checkpoint *items = arena_array(arena, struct stored_checkpoint, old->len + 1);
    size_t len = 0;

    items[len++] = (struct stored_checkpoint){ .step = { true, checkpoint->step },
                                               .ref = checkpoint->ref,
                                               .bytes = { true, (int64_t)checkpoint->bytes } };
    for (size_t i = 0; i < old->len && (int64_t)len < keep; i++)
        items[len++] = ((const struct stored_checkpoint *)old->items)[i];
    status->checkpoints = (struct json_objects){ items, len };
}

static const char *describe(struct arena *arena, const struct task_checkpoint *checkpoint)
{
    const char *samples = "";

    if (checkpoint->samples.set)
        samples = arena_printf(arena, ", %" PRId64 " samples", checkpoint->samples.value);
    if (checkpoint->uri)
        return arena_printf(arena, "step %" PRId64 "%s, attempt %" PRId64 ", held by the device",
                            checkpoint->step.value, samples, checkpoint->attempt);
    return arena_printf(arena, "step %" PRId64 "%s, %" PRId64 " bytes, attempt %" PRId64,
                        checkpoint->step.value, samples, checkpoint->bytes.value,
                        checkpoint->attempt);
}

static void take(struct arena *arena, const struct task_observed *observed, struct task_plan *plan)
{
    const struct observed_checkpoint *checkpoint = observed->checkpoint;
    struct task_checkpoint *last = arena_new(arena, struct task_checkpoint);

    *last = (struct task_checkpoint){ .step = { true, checkpoint->step },
                                      .samples = checkpoint->samples,
                                      .time_us = observed->now_us,
                                      .attempt = observed->task.status.attempt,
                                      .proplet = observed->task.status.assigned_proplet,
                                      .sha256 = checkpoint->sha256,
                                      .uri = checkpoint->uri };
    if (!checkpoint->uri) {
        last->bytes = (struct json_opt_int){ true, (int64_t)checkpoint->bytes };
        last->ref = checkpoint->ref;
        keep_stored(arena, observed, checkpoint, &plan->status);
    }
    plan->status.last_checkpoint = last;
    plan->checkpoint_note = describe(arena, last);
}

/* The condition is written with what else is written; only a failure of the store is a change of its own. */
static void tell(struct arena *arena, const struct task_observed *observed, struct task_plan *plan)
{
    const cJSON *conditions = observed->task.status.conditions;
    bool starts = observed->task.status.phase == TASK_SCHEDULED &&
                  plan->status.phase != TASK_SCHEDULED && plan->status.phase != TASK_PENDING;
    bool failed = observed->checkpoint_failure != NULL;
    bool recovers = plan->checkpoint_note &&
                    plan_condition_reason(conditions, "Checkpointing") == REASON_STORE_FAILED;

    if (!starts && !failed && !recovers)
        return;
    if (!observed->has_coordinator)
        task_condition(arena, observed, plan, "Checkpointing", CONDITION_FALSE,
                       REASON_NO_COORDINATOR, "the controller has no --coordinator-url");
    else if (observed->proplet.dialect == DIALECT_EMBEDDED)
        task_condition(arena, observed, plan, "Checkpointing", CONDITION_FALSE,
                       REASON_CHECKPOINTS_UNSUPPORTED, "the device is a microcontroller");
    else if (failed)
        task_condition(arena, observed, plan, "Checkpointing", CONDITION_FALSE, REASON_STORE_FAILED,
                       observed->checkpoint_failure);
    else
        task_condition(arena, observed, plan, "Checkpointing", CONDITION_TRUE,
                       REASON_CHECKPOINTS_READY, "checkpoints are taken");
}

static bool begins_anew(const struct task_observed *observed, const struct task_plan *plan)
{
    return plan->status.run != observed->task.status.run &&
           observed->task.status.phase == TASK_COMPLETED;
}

void task_plan_checkpoint(struct arena *arena, const struct task_observed *observed,
                          struct task_plan *plan)
{
    if (begins_anew(observed, plan)) {
        plan->status.last_checkpoint = NULL;
        plan->status.checkpoints = (struct json_objects){ 0 };
    }
    if (observed->checkpoint) {
        plan->checkpoint_verdict = checkpoint_judge(arena, observed, observed->checkpoint);
        if (plan->checkpoint_verdict <= CHECKPOINT_NOTED)
            take(arena, observed, plan);
    }
    if (observed->task.spec.checkpoint && !observed->task.spec.broadcast)
        tell(arena, observed, plan);
}

const char *task_checkpoint_holder(const struct task_observed *observed)
{
    const struct task_checkpoint *last = observed->task.status.last_checkpoint;

    return observed->task.spec.checkpoint && last && last->uri && str_has_prefix(last->uri, "file:")
               ? last->proplet
               : NULL;
}

static void set_step(struct arena *arena, cJSON *env, int64_t step, const char *sha256)
{
    json_set_string(env, "CHECKPOINT_STEP", arena_printf(arena, "%" PRId64, step));
    json_set_string(env, "CHECKPOINT_SHA256", sha256);
}

static void set_stored(struct arena *arena, cJSON *env, const struct json_objects *checkpoints)
{
    const struct stored_checkpoint *newest = checkpoints->items;
    const char *digest = checkpoints->len && newest->ref ? strrchr(newest->ref, ':') : NULL;

    if (digest)
        set_step(arena, env, newest->step.value, digest + 1);
}

const cJSON *task_checkpoint_environment(struct arena *arena, const struct task_observed *observed,
                                         const char *url)
{
    const struct task *task = &observed->task;
    const struct task_checkpoint *last = task->status.last_checkpoint;
    const char *holder = task_checkpoint_holder(observed);

    if (!task->spec.checkpoint || str_is_empty(url))
        return NULL;

    cJSON *env = json_object(arena);
    json_set_string(
        env, "CHECKPOINT_URL",
        arena_printf(arena, "%s/t/%s/checkpoint", url, task_message_id(arena, observed)));
    json_set_string(
        env, "CHECKPOINT_INTERVAL",
        arena_printf(arena, "%" PRId64, task_checkpoint_seconds(task->spec.checkpoint)));
    if (!last || str_is_empty(last->sha256)) /* changed by hand */
        return env;
    if (holder && !str_equal(holder, task->status.assigned_proplet)) {
        set_stored(arena, env, &task->status.checkpoints);
        return env;
    }
    set_step(arena, env, last->step.value, last->sha256);
    if (last->uri)
        json_set_string(env, "CHECKPOINT_URI", last->uri);
    return env;
}
