/* Why an object is as it is, as a document. Pure: any thread, and nothing fails. */
#pragma once

#include "common/json/json.h"
#include "common/kube/object.h"
#include "plugin/why/snapshot.h"

struct why_input {
    const struct kube_kind *kind;
    const cJSON *object;
    const struct snapshot *snapshot; /* of its namespace, as far as it matters for the kind */
    int64_t now_us;
};

/*
 * Adds members to the document. phase, reason, message and since are of the object; meaning and remedy are of its reason
 * (common/api/reasons.h).
 *
 * A Task that waits has "proplets", a row {"object","proplet","fits","active","verdict"} each. It has "scheduler",
 * {"reason","message"}, if none fits, and "rank", {"position","waiting"}, if it waits for room. A Task with dependencies
 * has rows {"object","task","phase","reason","depth"}; depth is from 0, and the rows of each Task stand there once.
 * A Task with spec.checkpoint has "checkpoint", {"message","remedy","step","time","proplet"}: whether checkpoints are
 * taken, what to do if not, and the last one.
 *
 * A job or a round has "parts": rows {"object","phase","reason","message"} of the objects that it owns and that have not
 * succeeded.
 */
void why_explain(struct arena *arena, const struct why_input *input, cJSON *document);

/* Adds the members "proplets" and "scheduler" of a Task that is to be scheduled. Returns the Proplet that the scheduler
 * would choose, of a broadcast all that fit, with commas; NULL: none. scheduler: a name of SCHEDULER_NAMES. */
const char *why_schedule(struct arena *arena, const cJSON *object, const struct snapshot *snapshot,
                         const char *scheduler, int64_t now_us, cJSON *document);
