#include "controller/task/plan/plan_parts.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/kube/kstatus.h"

#define MAX_MESSAGE 1024

const cJSON *plan_condition(const struct plan_subject *subject, const cJSON *conditions,
                            const char *type, enum condition_status status, enum reason reason,
                            const char *message)
{
    message = reason_message(reason, status == CONDITION_TRUE, message);

    const struct condition condition = {
        .type = type,
        .status = status,
        .reason = reason_text(reason),
        .message = arena_strndup(subject->arena, message,
                                 str_utf8_cut(message, strlen(message), MAX_MESSAGE)),
        .observed_generation = subject->generation,
    };
    cJSON *list = conditions ? json_copy(conditions) : cJSON_CreateArray();

    arena_own(subject->arena, list, json_free);
    condition_set(list, &condition, subject->now_us);
    return list;
}

const cJSON *plan_kstatus(const struct plan_subject *subject, const cJSON *conditions)
{
    bool failed = condition_is(conditions, "Failed", CONDITION_TRUE);
    enum kstatus kstatus = KSTATUS_IN_PROGRESS;

    if (failed)
        kstatus = KSTATUS_FAILED;
    else if (condition_is(conditions, "Complete", CONDITION_TRUE))
        kstatus = KSTATUS_CURRENT;
    return kstatus_conditions(subject->arena, conditions, kstatus,
                              failed ? "Failed" : "Progressing", subject->generation,
                              subject->now_us);
}

enum reason plan_condition_reason(const cJSON *conditions, const char *type)
{
    return reason_of(json_string(json_get(condition_get(conditions, type), "reason"), ""));
}

int64_t plan_condition_since_us(const cJSON *conditions, const char *type,
                                enum condition_status status, int64_t now_us)
{
    int64_t since_us = now_us;

    if (condition_is(conditions, type, status))
        rfc3339_parse(
            json_string(json_get(condition_get(conditions, type), "lastTransitionTime"), ""),
            &since_us);
    return since_us;
}

void plan_requeue_in_us(uint32_t *requeue_after_ms, int64_t left_us)
{
    int64_t ms = (left_us + 999) / 1000;

    if (ms < 1)
        ms = 1;
    if (ms > UINT32_MAX)
        ms = UINT32_MAX;
    if (!*requeue_after_ms || (uint32_t)ms < *requeue_after_ms)
        *requeue_after_ms = (uint32_t)ms;
}

int64_t plan_limit_us(int64_t seconds)
{
    return seconds > PLAN_MAX_LIMIT_US / 1000000 ? PLAN_MAX_LIMIT_US : seconds * 1000000;
}
