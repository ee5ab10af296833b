/*
 * This module sets the conditions Reconciling and Stalled, from which kstatus, and Flux by it, tell
 * whether an object is still in progress, has reached its end, or has failed.
 *
 * Source: sigs.k8s.io/cli-utils/pkg/kstatus, "abnormal-true" conditions: each of the two is there
 * only while it is True.
 *
 * Pure: any thread, and nothing fails.
 */
#pragma once

#include "common/kube/conditions.h"

struct arena;

/* The state of an object as kstatus names it, if it has no other sign. */
enum kstatus { KSTATUS_IN_PROGRESS, KSTATUS_CURRENT, KSTATUS_FAILED };

/*
 * Returns a copy of the list, owned by the arena, that has Reconciling while the object is in
 * progress, Stalled if it failed, and none of the two otherwise. `conditions` may be NULL.
 *
 * The condition takes its reason and message from the one of type `cause` of the list. Without it
 * the reason is InProgress or Failed. now_us is the wall clock.
 */
const cJSON *kstatus_conditions(struct arena *arena, const cJSON *conditions, enum kstatus kstatus,
                                const char *cause, int64_t generation, int64_t now_us);
