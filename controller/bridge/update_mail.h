/* Whose update it is that came on a topic which names a round and a device. */
#pragma once

#include "common/runtime/store.h"

/* Over MQTT; by HTTP as much as the model store takes. */
#define UPDATE_MAX_MQTT ((size_t)512 << 10)

/*
 * tasks: with INDEX_OWNER. Returns the Task that runs in this round on the Proplet with this
 * identity, and the id of its present attempt. The answer is NULL, or the reason for which the
 * update is refused, as propeller_results_rejected_total counts it: unknown_task (no such round),
 * other_proplet (no Proplet of it has this identity, or two Proplets of it, on two channels),
 * not_running.
 */
const char *update_find_task(struct store *tasks, struct store *proplets, struct arena *arena,
                             const char *round_uid, const char *identity, const char **ret_uid,
                             const char **ret_id);
