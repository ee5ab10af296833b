/* Gauges of messages that are not written yet, and the end of those whose Task is gone. */
#pragma once

#include "controller/shared/reconcilers.h"

/* From time to time, while the caches are complete. */
void mail_tend(struct shared *shared);
