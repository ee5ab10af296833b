/* This module observes a TrainingRound: it reads from the caches all that its plan is made from. */
#pragma once

#include "common/base/map.h"
#include "controller/federated/federated.h"
#include "controller/federated/traininground_plan.h"

/* A TrainingRound in hand: the values that are read once a turn. */
struct round_turn {
    const cJSON *json; /* its tree */
    const cJSON *job;  /* of the FederatedJob that it names; NULL: there is none */
    const char *uid;
    int64_t number; /* see training_round_number */
    bool keeps_late;
    struct model_scope scope;     /* of its updates */
    struct model_scope job_scope; /* of models; with job only */
    struct round_observed observed;
    struct round_member *members; /* of spec.participants: observed.members */
};

int round_observe(const struct traininground_deps *deps, struct reconcile *rc,
                  const struct kube_object *object, struct round_turn *ret,
                  struct error *err) MUST_CHECK;

/* Whether the round's FederatedJob is there with the uid that owns the round, or the round has no
 * owner and any job of that name does. */
bool round_has_job(const struct round_turn *turn);

/* The names of the Tasks whose updates some of these rounds counted or rejected, as keys. In the arena. */
const struct map *rounds_read(struct arena *arena, const struct object_list *rounds);

void model_scope_of(const struct kube_kind *kind, const cJSON *json, struct model_scope *ret);
