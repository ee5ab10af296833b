/* Whether a Task may begin, decided from what became of those it depends on. Pure. */
#pragma once

#include "common/api/reasons.h"
#include "common/api/task.h"
#include "controller/task/plan/task_outcome.h"

/*
 * The truth table. Only final outcomes count: a failed attempt with retries left is not one, nor is
 * an interruption.
 *
 *   of spec.dependsOn                           runIf: success    runIf: failure
 *   ------------------------------------------  ----------------  ----------------
 *   all completed                               runs              skipped
 *   one or more failed, all final               skipped           runs
 *   none failed, one or more skipped, all final skipped           skipped
 *   one failed or skipped, others not final     skipped at once   waits
 *   one not final or missing, none of the above waits             waits
 *
 * So a skip is neither success nor failure: it goes on through runIf: success, and a branch for
 * failures runs only next to a failure of a Task that it names itself. The order in which the
 * dependencies end changes nothing.
 */
struct dependency {
    const char *name;
    enum task_outcome outcome;
};

struct dependencies {
    const struct dependency *items;
    size_t len;
    const char *circle; /* "a -> b -> a": the Task waits for itself; NULL: it does not */
};

enum dependencies_verdict { DEPENDENCIES_MET, DEPENDENCIES_WAIT, DEPENDENCIES_SKIP };

struct dependencies_decision {
    enum dependencies_verdict verdict;
    enum reason reason; /* of the wait or the skip */
    const char *message;
};

/* Reasons of Scheduled=False that only another Task's change can end. */

/* Once in a run: an attempt that was interrupted does not wait again for Tasks that may have been
 * deleted meanwhile. */
bool task_awaits_dependencies(const struct task *task);

enum dependencies_verdict dependencies_verdict(enum run_if run_if,
                                               const struct dependencies *dependencies);
/* The same with the words for it. The message changes rarely while dependencies end one by one: it
 * names the last of those that have not. */
struct dependencies_decision dependencies_plan(struct arena *arena, enum run_if run_if,
                                               const struct dependencies *dependencies);
