/* process_* of /proc/self, in the names that Prometheus client libraries use. */
#pragma once

#include "common/base/buf.h"

/* What /proc does not tell is left out. false: it did not fit. */
bool process_metrics_write(struct buf *ret) MUST_CHECK;
