/* This module removes models, updates and rounds of a FederatedJob that are not needed any more. */
#pragma once

#include "controller/federated/federated.h"

/*
 * Updates of a round that the job has counted go at once, but for those that a later round may still
 * count (StalenessWeighted): they go when they were counted, or when none of the round's Tasks runs any
 * more and nothing names them. Models go with their rounds, unless they are checkpoints, and rounds with the history.
 *
 * The caller sees to it that no round of the job is being aggregated, as a model that is stored meanwhile
 * would be taken for garbage: none is there but those of the list, and they ended.
 */
struct cleaning {
    struct model_scope scope;               /* of the job */
    const struct object_list *rounds;       /* that it controls */
    const char *model_ref;                  /* of the job; NULL: none */
    const struct json_objects *checkpoints; /* of struct model_checkpoint, whose models stay */
    int64_t keep_from;                      /* rounds before this number are deleted */
    bool keeps_late;                        /* updates that were not counted may be */
};

/* A repeated call changes nothing; the rest of a failed one is removed by the next one. */
int federated_clean(const struct federatedjob_deps *deps, struct reconcile *rc,
                    const struct cleaning *cleaning, struct error *err) MUST_CHECK;
