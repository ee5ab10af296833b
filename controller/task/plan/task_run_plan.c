#include "controller/task/plan/task_run_plan.h"

#include "common/base/clock.h"
#include "common/base/str.h"
#include "controller/task/plan/task_transition.h"

void task_renew_counts(struct task_status *status)
{
    status->failures = 0;
    status->device_restarts = (struct json_opt_int){ 0 };
    status->unconfirmed_attempts = (struct json_opt_int){ 0 };
    status->lost_attempt_count = (struct json_opt_int){ 0 };
    status->cut_after_seconds = (struct json_opt_int){ 0 };
    status->module = NULL;
    status->prior_attempts = (struct json_opt_int){ true, status->attempt };
    status->run++;
}

void task_begin_run(struct arena *arena, const struct task_observed *observed,
                    struct task_plan *plan)
{
    struct task_status *status = &plan->status;

    task_reset(arena, observed, plan);
    task_clear_assigned(status);
    status->reason = NULL;
    task_renew_counts(status);
    if (!str_is_empty(observed->task.spec.schedule)) /* asked for by hand, it is for now */
        status->last_run_us = observed->now_us;
    plan->run_end = arena_new(arena, struct run_end);
}

static void set_time(cJSON *object, const char *key, int64_t us)
{
    char text[RFC3339_LEN];

    if (us)
        json_set_string(object, key, rfc3339_format(us, text));
}

static void set_text(cJSON *object, const char *key, const char *text)
{
    if (!str_is_empty(text))
        json_set_string(object, key, text);
}

struct task_status task_ended(const struct task_status *stored, const struct run_end *end,
                              int64_t now_us)
{
    struct task_status ended = *stored;

    if (end->reason) {
        ended.phase = end->phase;
        ended.reason = reason_text(end->reason);
        ended.error = end->message;
        ended.finished_at_us = now_us;
    }
    return ended;
}

const cJSON *task_history_add(struct arena *arena, const cJSON *history,
                              const struct task_status *ended, int64_t limit)
{
    cJSON *list = json_array(arena);
    int64_t surplus = (int64_t)json_len(history) + 1 - limit;

    if (limit <= 0)
        return NULL;
    json_for_each (earlier, history) {
        if (surplus-- <= 0)
            json_add(list, json_copy(earlier));
    }
    cJSON *entry = json_add_object(list);
    json_set_int(entry, "run", ended->run);
    json_set_int(entry, "attempt", ended->attempt);
    json_set_string(entry, "phase", TASK_PHASE_NAMES[ended->phase]);
    set_text(entry, "assignedProplet", ended->assigned_proplet);
    set_time(entry, "scheduledFor", ended->last_run_us);
    set_time(entry, "startedAt", ended->started_at_us);
    set_time(entry, "finishedAt", ended->finished_at_us);
    set_text(entry, "reason", ended->reason);
    set_text(entry, "error", ended->error);
    return list;
}

bool task_plan_rerun(struct arena *arena, const struct task_observed *observed,
                     struct task_plan *plan)
{
    enum task_phase phase = observed->task.status.phase;

    if (!observed->rerun || str_equal(observed->rerun, plan->status.observed_restart))
        return false;
    if (phase == TASK_SKIPPED) {
        plan->status.observed_restart = observed->rerun;
        return true;
    }
    if ((phase != TASK_COMPLETED && phase != TASK_FAILED) || observed->order > TASK_ORDER_SUSPEND)
        return false;
    task_begin_run(arena, observed, plan);
    task_note_rerun(observed, plan);
    plan->event = &TASK_EVENT_RESTARTED;
    return true;
}

void task_note_rerun(const struct task_observed *observed, struct task_plan *plan)
{
    if (observed->rerun)
        plan->status.observed_restart = observed->rerun;
}
