/* Orders that the owner of a Task adds to its spec, and how the Task obeys. Pure. */
#pragma once

#include "common/api/task.h"

enum task_order {
    TASK_ORDER_NONE,
    TASK_ORDER_SUSPEND,             /* as if the Task had suspend: true */
    TASK_ORDER_FAIL_FAST,           /* stop, unless the Task is for failures (runIf) */
    TASK_ORDER_FAIL_FAST_SUSPENDED, /* the same; a Task for failures is suspended */
    TASK_ORDER_STOP,                /* stop in every case */
};

/* As if its own spec.suspend were true. */
bool task_order_suspends(enum task_order order);

/* The order is for this Task to end, and not for suspension alone. */
bool task_order_stops(const struct task_spec *spec, enum task_order order);

struct task_observed;
struct task_plan;
/* A Task that has not begun is skipped, one that may have is stopped and fails, one that backs off
 * has failed: all for good, so that whatever waits for it goes on. false: there is no such order for it. */
bool task_obey_order(struct arena *arena, const struct task_observed *observed,
                     struct task_plan *plan);
