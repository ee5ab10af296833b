/* Reading a snapshot from the API server. Main thread only. */
#pragma once

#include "plugin/cli/session.h"
#include "plugin/why/snapshot.h"

/* Adds all objects of the kind in the namespace. */
int snapshot_read(struct session *session, struct snapshot *snapshot, const struct kube_kind *kind,
                  const char *ns, struct error *err) MUST_CHECK;
