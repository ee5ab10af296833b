/* The Proplets of a namespace as the scheduler sees them, read once a change and not once a choice. */
#pragma once

#include "common/base/arena.h"
#include "common/runtime/store.h"
#include "controller/device/availabilities.h"
#include "controller/scheduler/placements.h"
#include "controller/scheduler/scheduler.h"

/*
 * Made of the store when it is asked for and something changed since. Of a Proplet only what
 * schedule_filter and the scores look at is there; one that is going or cannot be read is not. A
 * Proplet that is as it was before is not read again.
 *
 * Any thread; one leaf mutex.
 */
struct candidates;
struct candidate_sources {
    struct store *proplets;
    struct placements *placements;
    struct availabilities *availabilities; /* say who is closed; NULL: the statuses do */
};
/* sources is copied; its members are borrowed. */
struct candidates *candidates_create(const struct candidate_sources *sources);
void candidates_destroy(struct candidates *candidates);
/* A Proplet of the namespace changed, and the store knows. */
void candidates_changed(struct candidates *candidates, const char *ns);
/* A Proplet of the namespace opened or closed, and availabilities knows. Cheaper, since no Proplet is read again. */
void candidates_opened(struct candidates *candidates, const char *ns);

/* Never changes; counted, the reference is the arena's. In name order; active is 0. */
struct candidate_set {
    const struct candidate *items;
    size_t len;
    uint64_t
        version; /* of the namespace; another one only if something changed, opened or closed */
};
const struct candidate_set *candidates_get(struct candidates *candidates, struct arena *arena,
                                           const char *ns);
/* As it is at now_us: with the counts of now, and kept more on it, and open or closed; its devices in the arena. */
struct candidate candidate_count(struct candidates *candidates, struct arena *arena,
                                 const struct candidate *candidate, const char *ns, int64_t kept,
                                 int64_t now_us);
/* NULL: not there. */
const struct candidate *candidate_find(const struct candidate_set *set, const char *name);
/* For a metric: so many Proplets were compared with what a Task wants, or the other way around. */
void candidates_compared(size_t count);
