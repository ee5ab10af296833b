/* Devices that say that their owner wants the machine back: the message becomes an annotation of the Proplet. */
#pragma once

#include "controller/proplet/proplet.h"

/*
 * The annotation is the latch: the Proplet is closed as long as it says "true", and only people take it away. Messages wait
 * in the mailbox under the uid of the Proplet (MAIL_RECLAIM), and are acknowledged when the annotation is written, or is
 * there. A write that fails keeps them, and stops nothing else.
 *
 * Worker thread, in the reconcile of the Proplet. Returns 1 if the object was changed, so that the reconcile ends: the
 * reply wakes the Proplet again. < 0: the process ends.
 */
int proplet_reclaim_take(const struct proplet_deps *deps, struct reconcile *rc,
                         const struct kube_object *object, const cJSON *json,
                         struct error *err) MUST_CHECK;
