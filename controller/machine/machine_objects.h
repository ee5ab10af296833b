/*
 * Builds the three objects of a ScheduledMachine, and says whose an object is: pure functions.
 *
 * All three have the name and the namespace of their ScheduledMachine. An object is ours only if an owner reference has
 * its uid, so one that was made again under its name adopts nothing.
 */
#pragma once

#include "common/api/scheduledmachine.h"

#define MACHINE_API_GROUP "cluster.x-k8s.io"
#define MACHINE_LABEL SCHEDULEDMACHINE_GROUP "/scheduled-machine"
#define MACHINE_LABEL_CLUSTER MACHINE_API_GROUP "/cluster-name"

enum machine_claim {
    MACHINE_CLAIM_OURS,
    MACHINE_CLAIM_GOING, /* ours, and being deleted: nothing takes its place before it is gone */
    MACHINE_CLAIM_TAKEN, /* of another owner: it is never changed or deleted */
};
/* uid: of the ScheduledMachine. */
enum machine_claim machine_claim_of(const cJSON *object, const char *uid);

/* Why the spec cannot be used: "spec.bootstrapSpec: ..."; NULL: it can. */
const char *machine_spec_problem(struct arena *arena, const struct scheduledmachine_spec *spec);

/* Returns the bootstrap or infrastructure object. owner: the ScheduledMachine. part has apiVersion, kind and spec. */
cJSON *machine_make_part(struct arena *arena, const cJSON *owner,
                         const struct scheduledmachine_spec *spec, const struct machine_part *part);

/* Returns the Machine in this version, "v1beta1" or "v1beta2". *ret_reserved has the keys of machineTemplate that were
 * omitted, as a text; NULL: none. */
cJSON *machine_make(struct arena *arena, const cJSON *owner,
                    const struct scheduledmachine_spec *spec, const char *version,
                    const char **ret_reserved);
