/* Whether each Proplet is open, in memory: the scheduler and Tasks read it. */
#pragma once

#include "common/kube/object.h"
#include "controller/device/availability.h"

/*
 * One entry for each Proplet that uses one of the fields, by uid; a Proplet without an entry is always open. It is
 * filled when this replica begins to lead, before any object is reconciled, and then by the reconciler of Proplets.
 * Any thread; one leaf mutex. Entries go with availabilities_remove.
 */
struct availabilities;
struct availabilities *availabilities_create(void);
void availabilities_destroy(struct availabilities *availabilities);

/* Keeps the result of now_us. Returns true if it matters to a Task: the Proplet opened or closed, it closes at another time
 * than it was to, or what runs there ends at another time. */
bool availabilities_set(struct availabilities *availabilities, const char *uid,
                        const struct availability *is, int64_t now_us);
/* Returns a zero value if there is no entry. */
struct availability availabilities_get(struct availabilities *availabilities, const char *uid);
/* Whether there is no entry, and no count. */
bool availabilities_is_empty(struct availabilities *availabilities);
/* Counts Tasks that were stopped since the Proplet closed. The count is kept until it is taken, also if the Proplet uses
 * none of the fields any more. count may be negative. */
void availabilities_cut(struct availabilities *availabilities, const char *uid, int64_t count);
/* Returns the count, which is zero from then on. */
int64_t availabilities_take_cuts(struct availabilities *availabilities, const char *uid);
void availabilities_remove(struct availabilities *availabilities, const char *uid);

/* Runs on the thread of availabilities_report, with no lock. Must not block. */
typedef void availabilities_fn(void *ctx, const struct kube_name *proplet, bool open);
/* Sets the function that changes are reported to. Called once, before there are other threads. */
void availabilities_subscribe(struct availabilities *availabilities, availabilities_fn *function,
                              void *ctx);
/* Reports that the Proplet opened or closed, after availabilities_set. */
void availabilities_report(struct availabilities *availabilities, const struct kube_name *proplet,
                           bool open);
