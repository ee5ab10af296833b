#include "controller/task/plan/task_outcome.h"

#include "common/api/task.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"

enum task_outcome task_outcome(const cJSON *task)
{
    static const enum task_outcome OUTCOMES[TASK_PHASES] = {
        [TASK_PENDING] = OUTCOME_OPEN,    [TASK_SCHEDULED] = OUTCOME_OPEN,
        [TASK_RUNNING] = OUTCOME_OPEN,    [TASK_COMPLETED] = OUTCOME_COMPLETED,
        [TASK_FAILED] = OUTCOME_FAILED,   [TASK_INTERRUPTED] = OUTCOME_INTERRUPTED,
        [TASK_SKIPPED] = OUTCOME_SKIPPED,
    };
    const cJSON *status = json_get(task, "status");
    const char *phase = json_string(json_get(status, "phase"), "");

    if (!task)
        return OUTCOME_MISSING;
    if (str_equal(phase, TASK_PHASE_NAMES[TASK_FAILED]) &&
        condition_is(json_get(status, "conditions"), "Failed", CONDITION_FALSE))
        return OUTCOME_OPEN;
    for (size_t i = 0; i < TASK_PHASES; i++) {
        if (str_equal(phase, TASK_PHASE_NAMES[i]))
            return OUTCOMES[i];
    }
    return OUTCOME_OPEN;
}

bool task_outcome_is_final(enum task_outcome outcome)
{
    return outcome >= OUTCOME_COMPLETED;
}
