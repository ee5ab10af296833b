/* The updates that a TrainingRound counts, read and made into one model. */
#pragma once

#include "controller/federated/round_observe.h"

/*
 * Reads what the stored status names (updateReceived), in the order of spec.participants, aggregates
 * and stores the model in the job's scope. Sets what it finds in turn: observed.model_ref, or a
 * member's unfit, or observed.failure; the round is then planned anew. < 0: an error that may pass.
 */
int round_aggregate(const struct traininground_deps *deps, struct reconcile *rc,
                    struct round_turn *turn, struct error *err) MUST_CHECK;
