#include "common/kube/kstatus.h"

#include "common/base/arena.h"
#include "common/base/str.h"

/* By enum kstatus. An object that is current has none. */
static const struct {
    const char *type;
    const char *reason;
} SHOWN[] = {
    [KSTATUS_IN_PROGRESS] = { "Reconciling", "InProgress" },
    [KSTATUS_CURRENT] = { NULL, NULL },
    [KSTATUS_FAILED] = { "Stalled", "Failed" },
};

static void show(cJSON *list, enum kstatus kstatus, const char *cause, int64_t generation,
                 int64_t now_us)
{
    const cJSON *source = condition_get(list, cause);
    const char *reason = json_string(json_get(source, "reason"), "");
    const struct condition condition = {
        .type = SHOWN[kstatus].type,
        .status = CONDITION_TRUE,
        .reason = str_is_empty(reason) ? SHOWN[kstatus].reason : reason,
        .message = json_string(json_get(source, "message"), ""),
        .observed_generation = generation,
    };

    condition_set(list, &condition, now_us);
}

const cJSON *kstatus_conditions(struct arena *arena, const cJSON *conditions, enum kstatus kstatus,
                                const char *cause, int64_t generation, int64_t now_us)
{
    cJSON *list = conditions ? json_copy(conditions) : cJSON_CreateArray();

    arena_own(arena, list, json_free);
    if (kstatus != KSTATUS_IN_PROGRESS)
        condition_remove(list, SHOWN[KSTATUS_IN_PROGRESS].type);
    if (kstatus != KSTATUS_FAILED)
        condition_remove(list, SHOWN[KSTATUS_FAILED].type);
    if (SHOWN[kstatus].type)
        show(list, kstatus, cause, generation, now_us);
    return list;
}
