/* Helpers that the plans of objects with conditions share. Pure. */
#pragma once

#include "common/api/reasons.h"
#include "common/kube/conditions.h"

/* A user may mean "never" by any number of seconds: no limit is longer than this. */
#define PLAN_MAX_LIMIT_US (INT64_C(100) * 366 * 24 * 60 * 60 * 1000000)

/* The interval at which a name with another owner is looked at again: the changes of that object
 * may be in no watch. */
#define PLAN_TAKEN_RETRY_US INT64_C(30000000)

/* The subject of a plan: the object whose conditions it writes. */
struct plan_subject {
    struct arena *arena;
    int64_t generation;
    int64_t now_us;
};

/* The same list with this condition; the message is cut at 1 KiB. conditions may be NULL. */
const cJSON *plan_condition(const struct plan_subject *subject, const cJSON *conditions,
                            const char *type, enum condition_status status, enum reason reason,
                            const char *message);

/* Returns the same list with what kstatus reads (common/kube/kstatus.h), for a kind with the conditions
 * Complete, Failed and Progressing. */
const cJSON *plan_kstatus(const struct plan_subject *subject, const cJSON *conditions);

/* Returns the reason of the stored condition; REASON_NONE if it is not there. */
enum reason plan_condition_reason(const cJSON *conditions, const char *type);

/* Since when the stored condition has this status; now_us if it has another one, or is not there. */
int64_t plan_condition_since_us(const cJSON *conditions, const char *type,
                                enum condition_status status, int64_t now_us);

/* Again in left_us at the latest, an earlier time stays; in 1 ms if it is over. */
void plan_requeue_in_us(uint32_t *requeue_after_ms, int64_t left_us);

int64_t plan_limit_us(int64_t seconds);
