/*
 * This module counts metrics and writes them in the Prometheus text format 0.0.4.
 *
 * A metric is a static variable; labels are copied. Thread-safe; guarded by one lock for all
 * metrics. No function blocks, and only metrics_write fails. Values are in base units (seconds,
 * bytes).
 */
#pragma once

#include "common/base/buf.h"

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

#define METRIC_LABELS 4
/* Maximum number of label sets of a metric. A change of a further one is dropped and counted in
 * …_metrics_dropped_total{metric}. */
#define METRIC_MAX_SERIES 200
#define METRIC_MAX_BUCKETS 48
/* Maximum for the caller's buffer of metrics_write; bytes. */
#define METRICS_MAX_TEXT (4u << 20)

/* A metric is a static variable of the file that counts, and registers itself at its first use. Two
 * metrics with one name are a bug. */
struct metric {
    enum metric_type type;
    const char *name;
    const char *help;
    const char *labels[METRIC_LABELS];
    const double
        *buckets; /* METRIC_HISTOGRAM: upper bounds, ended by 0; NULL: controller-runtime's */
    struct metric_state *state;
};

/* A value for each label follows, and NULL ends them. Adding 0 makes the series visible, also that of a histogram. */
void metric_add(struct metric *metric, double amount, ...) NULL_TERMINATED;
void metric_set(struct metric *metric, double value, ...) NULL_TERMINATED;
void metric_observe(struct metric *metric, double value, ...) NULL_TERMINATED;
double metric_value(struct metric *metric,
                    ...) NULL_TERMINATED; /* of a counter or gauge; for tests */

/* Appends all metrics, with process_* from /proc/self. false: the buffer is full. */
bool metrics_write(struct buf *ret) MUST_CHECK;
