/* Evaluates whether a Proplet is open, and keeps the result for the scheduler and Tasks. */
#pragma once

#include "controller/proplet/proplet.h"

/* Evaluates the Proplet at now_us. json and proplet are the object; the message is the arena's, or NULL. Reads the file
 * of a time zone, if the Proplet has a schedule. Nothing is changed. */
struct availability proplet_availability_look(const struct proplet_deps *deps, struct arena *arena,
                                              const struct kube_object *object, const cJSON *json,
                                              const struct proplet *proplet, int64_t now_us,
                                              const char **ret_message);
/* Keeps the result, and wakes the Tasks that an opening or a close concerns. Returns whether there was one. */
bool proplet_availability_keep(const struct proplet_deps *deps, const struct kube_object *object,
                               const struct availability *is, int64_t now_us);
/* Emits an Event with the number of Tasks that the close stopped, once the last of them is gone or the Proplet is open
 * again. */
void proplet_availability_tell(const struct proplet_deps *deps, struct reconcile *rc,
                               const struct kube_object *object, const struct availability *is);
/* This replica begins to lead: evaluates and keeps all Proplets that use one of the fields. */
void proplet_availability_fill(const struct proplet_deps *deps);
