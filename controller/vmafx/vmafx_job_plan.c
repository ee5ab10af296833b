#include "controller/vmafx/vmafx_job_plan.h"

#include <math.h>

#include "common/base/str.h"

/* 9999-12-31T23:59:59Z, the last time that RFC 3339 can say. */
#define MAX_TIME_S INT64_C(253402300799)

bool vmafx_job_is_followed(const struct vmafx_job_status *status)
{
    return status->phase < VMAFX_JOB_SUCCEEDED && !str_is_empty(status->controller_job_id);
}

static void finish(const struct vmafx_job_observed *observed, struct vmafx_job_plan *plan,
                   enum vmafx_job_phase phase)
{
    int64_t updated_at_s = observed->answer.updated_at_s;
    bool is_time = updated_at_s > 0 && updated_at_s <= MAX_TIME_S;

    plan->status.phase = phase;
    plan->status.finished_at_us = is_time ? updated_at_s * 1000000 : observed->now_us;
    plan->event = phase == VMAFX_JOB_FAILED ? &VMAFX_JOB_EVENT_FAILED : &VMAFX_JOB_EVENT_COMPLETED;
}

static void fail(const struct vmafx_job_observed *observed, struct vmafx_job_plan *plan,
                 const char *message)
{
    finish(observed, plan, VMAFX_JOB_FAILED);
    plan->status.message = str_is_empty(message) ? NULL : message;
}

static void complete(struct arena *arena, const struct vmafx_job_observed *observed,
                     struct vmafx_job_plan *plan)
{
    if (!isfinite(observed->answer.score)) {
        fail(observed, plan, "the controller reports no number as score");
        return;
    }
    finish(observed, plan, VMAFX_JOB_SUCCEEDED);
    plan->status.score = arena_own(arena, cJSON_CreateNumber(observed->answer.score), json_free);
}

static void miss(struct arena *arena, const struct vmafx_job_observed *observed,
                 struct vmafx_job_plan *plan)
{
    int64_t since_ms = observed->series.unknown_since_ms;

    plan->series.unknown_since_ms = since_ms ? since_ms : observed->now_ms;
    if (since_ms && observed->now_ms - since_ms >= VMAFX_JOB_UNKNOWN_MS)
        fail(observed, plan,
             arena_printf(arena, "the controller does not know job '%s'",
                          observed->status.controller_job_id));
}

static void run(const struct vmafx_job_observed *observed, struct vmafx_job_plan *plan)
{
    if (plan->status.phase == VMAFX_JOB_RUNNING)
        return;
    plan->status.phase = VMAFX_JOB_RUNNING;
    plan->status.started_at_us = observed->now_us;
    plan->event = &VMAFX_JOB_EVENT_STARTED;
}

static void follow(struct arena *arena, const struct vmafx_job_observed *observed,
                   struct vmafx_job_plan *plan)
{
    switch (observed->answer.seen) {
    case VMAFX_SEEN_NOTHING:
    case VMAFX_SEEN_UNAVAILABLE:
        return;
    case VMAFX_SEEN_NOT_FOUND:
        miss(arena, observed, plan);
        return;
    case VMAFX_SEEN_PENDING: /* it went back to the queue, if it was running */
        plan->status.started_at_us = 0;
        plan->status.assigned_node = NULL;
        plan->status.phase = VMAFX_JOB_PENDING;
        break;
    case VMAFX_SEEN_RUNNING:
        run(observed, plan);
        break;
    case VMAFX_SEEN_COMPLETED:
        complete(arena, observed, plan);
        break;
    case VMAFX_SEEN_FAILED:
        fail(observed, plan, observed->answer.error);
        break;
    case VMAFX_SEEN_CANCELLED:
        fail(observed, plan, "cancelled by controller");
        break;
    }
    if (*observed->answer.node)
        plan->status.assigned_node = observed->answer.node;
}

static uint32_t next_wait(const struct vmafx_job_observed *observed, unsigned failures)
{
    int64_t wait_ms = VMAFX_JOB_POLL_MS;

    for (unsigned i = 1; i < failures && wait_ms < VMAFX_JOB_MAX_WAIT_MS; i++)
        wait_ms *= 2;
    if (wait_ms > VMAFX_JOB_MAX_WAIT_MS)
        wait_ms = VMAFX_JOB_MAX_WAIT_MS;
    return (uint32_t)(wait_ms + wait_ms * observed->jitter / 1000);
}

struct vmafx_job_plan vmafx_job_plan(struct arena *arena, const struct vmafx_job_observed *observed)
{
    unsigned failures = observed->series.failures;
    struct vmafx_job_plan plan = { .status = observed->status };

    if (plan.status.phase == VMAFX_JOB_NEW)
        plan.status.phase = VMAFX_JOB_PENDING;
    if (!vmafx_job_is_followed(&observed->status))
        return plan;
    if (observed->answer.seen == VMAFX_SEEN_NOTHING) {
        plan.series = observed->series;
        return plan;
    }

    if (observed->answer.seen == VMAFX_SEEN_UNAVAILABLE) {
        plan.series.failures = failures + 1;
        plan.peer_event = failures ? NULL : &VMAFX_JOB_EVENT_UNAVAILABLE;
    } else if (failures) {
        plan.peer_event = &VMAFX_JOB_EVENT_BACK;
    }
    follow(arena, observed, &plan);
    if (vmafx_job_is_followed(&plan.status))
        plan.wait_ms = next_wait(observed, plan.series.failures);
    return plan;
}
