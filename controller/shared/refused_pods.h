/* This module finds why an object has no pods. Some controllers of Kubernetes (Job, StatefulSet) say only in events that
 * the API server does not take their pods. */
#pragma once

#include "common/runtime/controller.h"

/* ret: the latest of these events about the object with this uid, in the arena of the turn;
 * NULL: there is none. One list of events, of the namespace of the turn. */
int refused_pods_read(struct reconcile *rc, const char *uid, const char **ret,
                      struct error *err) MUST_CHECK;
