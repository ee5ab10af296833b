#include "controller/task/plan/task_observed.h"

const char *const RESULT_VERDICT_NAMES[RESULT_VERDICTS] = {
    [RESULT_ACCEPTED] = "accepted",
    [RESULT_OTHER_ATTEMPT] = "other_attempt",
    [RESULT_OTHER_CHANNEL] = "other_channel",
    [RESULT_OTHER_PROPLET] = "other_proplet",
    [RESULT_NOT_RUNNING] = "not_running",
    [RESULT_DUPLICATE] = "duplicate",
    [RESULT_INVALID_UPDATE] = "invalid_update",
};

const char *task_message_id(struct arena *arena, const struct task_observed *observed)
{
    return observed->target_id ? observed->target_id
                               : message_id(arena, observed->uid, observed->task.status.attempt);
}
