#include "controller/task/plan/task_retry_plan.h"

#include <inttypes.h>

#include "common/base/str.h"
#include "controller/task/plan/task_order.h"
#include "controller/task/plan/task_recovery_plan.h"
#include "controller/task/plan/task_schedule_plan.h"
#include "controller/task/plan/task_transition.h"

int64_t retry_delay_s(int64_t failures)
{
    int64_t delay_s = RETRY_FIRST_DELAY_S;

    for (int64_t i = 1; i < failures && delay_s < RETRY_MAX_DELAY_S; i++)
        delay_s *= 2;
    return delay_s < RETRY_MAX_DELAY_S ? delay_s : RETRY_MAX_DELAY_S;
}

/* What another attempt cannot mend, or must not. */
static bool is_last_word(const struct task_spec *spec, enum reason reason)
{
    switch (reason) {
    case REASON_PAYLOAD_TOO_LARGE:
    case REASON_PAYLOAD_INVALID:
    case REASON_RESULT_TOO_LARGE:
    case REASON_TOO_MANY_TARGETS:
    case REASON_RESULT_REFUSED:
    case REASON_DEADLINE:
    case REASON_STOPPED_BY_OWNER:
    case REASON_RESTARTED:
    case REASON_RESTARTS:
    case REASON_LOST:
    case REASON_LOST_TOO_OFTEN:
    case REASON_CUT:
    case REASON_PROPLET_DELETED:
    case REASON_START_DEADLINE:
    case REASON_REGISTRY_NOT_ALLOWED:
    case REASON_MODULE_TOO_LARGE:
    case REASON_MODULE_INVALID:
    case REASON_MODULE_UNSIGNED:
        return true;
    case REASON_NOT_CONFIRMED: /* it may have run, and the policy may be not to repeat that */
        return task_lost_policy(spec) == LOST_FAIL;
    default:
        return false;
    }
}

static bool is_endless(const struct task_spec *spec)
{
    return spec->daemon && spec->restart_policy == RESTART_ALWAYS;
}

bool retry_is_allowed(const struct task_spec *spec, enum reason reason, int64_t failures)
{
    return (is_endless(spec) || failures <= task_backoff_limit(spec)) &&
           !is_last_word(spec, reason);
}

bool task_is_backing_off(const struct task_observed *observed)
{
    const struct task_status *status = &observed->task.status;

    return status->phase == TASK_FAILED &&
           condition_is(status->conditions, "Failed", CONDITION_FALSE);
}

/* No times: the same text in each turn. */
static void say_waiting(struct arena *arena, const struct task_observed *observed,
                        struct task_plan *plan)
{
    const struct task_spec *spec = &observed->task.spec;
    const char *of =
        is_endless(spec) ? "" : arena_printf(arena, " of %" PRId64, task_backoff_limit(spec));

    task_wait(arena, observed, plan, REASON_BACKING_OFF,
              arena_printf(arena, "retry %" PRId64 "%s waits for status.nextRetry",
                           plan->status.failures, of));
}

void task_back_off(struct arena *arena, const struct task_observed *observed,
                   struct task_plan *plan)
{
    struct task_status *status = &plan->status;
    const char *message = arena_printf(arena, "attempt %" PRId64 " failed: %s: %s", status->attempt,
                                       status->reason, status->error);
    int64_t at_us = observed->now_us + retry_delay_s(status->failures) * 1000000;

    status->next_retry_us = (at_us + 999999) / 1000000 * 1000000; /* written in whole seconds */
    task_condition(arena, observed, plan, "Failed", CONDITION_FALSE, REASON_BACKING_OFF, message);
    say_waiting(arena, observed, plan);
    plan->event = &TASK_EVENT_RETRYING;
}

void task_plan_retry(struct arena *arena, const struct task_observed *observed,
                     struct task_plan *plan)
{
    const struct task_status *status = &observed->task.status;
    int64_t wait_us = status->next_retry_us - status->finished_at_us;
    int64_t left_ms = task_wait_left_ms(observed, status->finished_at_us, wait_us);

    if (!retry_is_allowed(&observed->task.spec, REASON_BACKING_OFF, status->failures)) {
        task_end_retries(arena, observed, plan, REASON_LIMIT,
                         arena_printf(arena,
                                      "failed %" PRId64 " times, and spec.backoffLimit is %" PRId64,
                                      status->failures, task_backoff_limit(&observed->task.spec)));
    } else if (observed->task.spec.suspend) {
        task_wait(arena, observed, plan, REASON_SUSPENDED, "spec.suspend is true");
    } else if (left_ms > 0) {
        say_waiting(arena, observed, plan);
        task_requeue_at(observed, plan, observed->now_ms + left_ms);
    } else {
        task_reset(arena, observed, plan);
    }
}

void task_end_retries(struct arena *arena, const struct task_observed *observed,
                      struct task_plan *plan, enum reason reason, const char *message)
{
    plan->status.finished_at_us = observed->now_us;
    plan->status.next_retry_us = 0;
    task_wait(arena, observed, plan, reason, message);
    task_condition(arena, observed, plan, "Completed", CONDITION_FALSE, reason, message);
    task_condition(arena, observed, plan, "Failed", CONDITION_TRUE, reason, message);
    plan->event = &TASK_EVENT_FAILED;
}
