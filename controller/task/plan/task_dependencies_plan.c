#include "controller/task/plan/task_dependencies_plan.h"

bool task_awaits_dependencies(const struct task *task)
{
    const struct task_status *status = &task->status;

    return status->phase == TASK_PENDING && status->attempt == status->prior_attempts.value &&
           !task_awaits_schedule(task);
}

/* The last one with this outcome, or NULL. */
static const struct dependency *last_with(const struct dependencies *dependencies,
                                          enum task_outcome outcome)
{
    for (size_t i = dependencies->len; i > 0; i--) {
        if (dependencies->items[i - 1].outcome == outcome)
            return &dependencies->items[i - 1];
    }
    return NULL;
}

static const struct dependency *last_unfinished(const struct dependencies *dependencies)
{
    for (size_t i = dependencies->len; i > 0; i--) {
        if (!task_outcome_is_final(dependencies->items[i - 1].outcome))
            return &dependencies->items[i - 1];
    }
    return NULL;
}

enum dependencies_verdict dependencies_verdict(enum run_if run_if,
                                               const struct dependencies *dependencies)
{
    bool failed = last_with(dependencies, OUTCOME_FAILED) != NULL;
    bool skipped = last_with(dependencies, OUTCOME_SKIPPED) != NULL;

    if (!dependencies->len) /* runIf is about dependencies */
        return DEPENDENCIES_MET;
    if (run_if == RUN_IF_SUCCESS && (failed || skipped))
        return DEPENDENCIES_SKIP;
    if (last_unfinished(dependencies))
        return DEPENDENCIES_WAIT;
    return failed || run_if == RUN_IF_SUCCESS ? DEPENDENCIES_MET : DEPENDENCIES_SKIP;
}

static struct dependencies_decision wait_for(struct arena *arena,
                                             const struct dependencies *dependencies)
{
    const struct dependency *missing = last_with(dependencies, OUTCOME_MISSING);
    struct dependencies_decision decision = { .verdict = DEPENDENCIES_WAIT };

    if (missing) {
        decision.reason = REASON_DEPENDENCY_MISSING;
        decision.message = arena_printf(arena, "there is no Task '%s'", missing->name);
    } else if (dependencies->circle) {
        decision.reason = REASON_DEPENDENCY_CYCLE;
        decision.message =
            arena_printf(arena, "Tasks wait for each other in a circle: %s", dependencies->circle);
    } else {
        decision.reason = REASON_DEPENDENCIES;
        decision.message =
            arena_printf(arena, "Task '%s' has not finished", last_unfinished(dependencies)->name);
    }
    return decision;
}

static struct dependencies_decision skip(struct arena *arena, enum run_if run_if,
                                         const struct dependencies *dependencies)
{
    const struct dependency *failed = last_with(dependencies, OUTCOME_FAILED);
    const struct dependency *skipped = last_with(dependencies, OUTCOME_SKIPPED);
    struct dependencies_decision decision = { DEPENDENCIES_SKIP, REASON_SKIPPED, NULL };

    if (run_if == RUN_IF_FAILURE)
        decision.message = "runIf is failure, and no dependency failed";
    else
        decision.message =
            arena_printf(arena, "runIf is success, and Task '%s' %s",
                         failed ? failed->name : skipped->name, failed ? "failed" : "was skipped");
    return decision;
}

struct dependencies_decision dependencies_plan(struct arena *arena, enum run_if run_if,
                                               const struct dependencies *dependencies)
{
    switch (dependencies_verdict(run_if, dependencies)) {
    case DEPENDENCIES_WAIT:
        return wait_for(arena, dependencies);
    case DEPENDENCIES_SKIP:
        return skip(arena, run_if, dependencies);
    default:
        return (struct dependencies_decision){ .verdict = DEPENDENCIES_MET };
    }
}
