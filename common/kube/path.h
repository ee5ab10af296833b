/* Paths and queries of the Kubernetes API. */
#pragma once

#include "common/base/buf.h"
#include "common/kube/object.h"

/* "/apis/<group>/<version>/namespaces/<ns>/<plural>"; ns NULL or "": all namespaces. All functions
 * here: false when the buffer's limit is reached. */
bool kube_path_collection(struct buf *path, const struct kube_kind *kind,
                          const char *ns) MUST_CHECK;

/* The collection and "/<name>". */
bool kube_path_object(struct buf *path, const struct kube_kind *kind,
                      const struct kube_name *name) MUST_CHECK;

/* Adds "?key=value" or "&key=value", the value percent-encoded (RFC 3986). */
bool kube_path_query(struct buf *path, const char *key, const char *value) MUST_CHECK;
