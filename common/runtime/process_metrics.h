/* process_* of /proc/self, in the names that Prometheus client libraries use. */
#pragma once

#include "common/base/buf.h"

/* Values that /proc does not have are omitted. false: they did not fit. */
bool process_metrics_write(struct buf *ret) MUST_CHECK;
