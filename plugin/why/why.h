/* Why an object is as it is, as a document. Pure: any thread, and nothing fails. */
#pragma once

#include "common/json/json.h"
#include "common/kube/object.h"

/* The objects that the answer is made of; arrays hold whole objects of the namespace, and are NULL where they do not matter. */
struct why_input {
    const struct kube_kind *kind;
    const cJSON *object;
    const cJSON *proplets; /* for a Task */
    const cJSON *tasks;    /* for a Task and for what consists of Tasks */
    const cJSON *rounds;   /* for a FederatedJob */
    int64_t now_us;
};

/*
 * Adds members to the document. phase, reason, message and since are of the object; meaning and remedy are of its reason
 * (common/api/reasons.h).
 *
 * A Task that waits has "proplets", a row {"object","proplet","fits","active","verdict"} each. It has "scheduler",
 * {"reason","message"}, if none fits, and "rank", {"position","waiting"}, if it waits for room. A Task with dependencies
 * has rows {"object","task","phase","reason","depth"}; depth is from 0, and the rows of each Task stand there once.
 *
 * A job or a round has "parts": rows {"object","phase","reason","message"} of the objects that it owns and that have not
 * succeeded.
 */
void why_explain(struct arena *arena, const struct why_input *input, cJSON *document);

/* Rows of all Proplets for a Task that is to be scheduled, and what the scheduler says; returns the Proplet that it
 * would choose, NULL: none. scheduler: a name of SCHEDULER_NAMES. */
const char *why_schedule(struct arena *arena, const cJSON *object, const cJSON *proplets,
                         const cJSON *tasks, const char *scheduler, cJSON *document);
