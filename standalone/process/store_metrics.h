/* This module reports the size and the health of the store as gauges. */
#pragma once

#include "standalone/schema/resource.h"
#include "standalone/store/kv.h"

struct store_metrics {
    struct kv *kv; /* borrowed, as all members */
    const struct resources *resources;
    const char *path; /* of the file of the store; its log is beside it */
};

/* Sets the gauges. self: struct store_metrics. It counts the objects of each resource in the store, which takes some
 * milliseconds for 100,000 objects, so it is for a tick and not for each request. One thread at a time. */
void store_metrics_report(void *self);
