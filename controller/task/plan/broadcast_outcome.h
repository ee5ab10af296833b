/* What its targets make of a broadcast. Pure, parts of broadcast_plan.h. */
#pragma once

#include "controller/task/plan/broadcast_plan.h"

struct broadcast_tally {
    int64_t completed;
    int64_t failed;
    int64_t open;
};
struct broadcast_tally broadcast_count(const struct task_status *status);

/* So many of total have to answer without error. */
int64_t broadcast_quorum(const struct task_spec *spec, size_t total);
