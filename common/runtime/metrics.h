/* Metrics in the Prometheus text format 0.0.4. */
#pragma once

#include "common/base/buf.h"

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

#define METRIC_LABELS 4
/* A static variable of the file that counts; registers itself at the first use. At most 200 label
 * sets a metric. */
struct metric {
    enum metric_type type;
    const char *name;
    const char *help;
    const char *labels[METRIC_LABELS];
    const double
        *buckets; /* METRIC_HISTOGRAM: upper bounds, ended by 0; NULL: controller-runtime's */
    struct metric_state *state;
};

/* Any thread. Then the label values, ended by NULL. */
void metric_add(struct metric *metric, double amount, ...) NULL_TERMINATED;
void metric_set(struct metric *metric, double value, ...) NULL_TERMINATED;
void metric_observe(struct metric *metric, double value, ...) NULL_TERMINATED;
double metric_value(struct metric *metric,
                    ...) NULL_TERMINATED; /* of a counter or gauge; for tests */

/* Everything, and process_* of /proc/self. false: it did not fit. */
bool metrics_write(struct buf *ret) MUST_CHECK;
