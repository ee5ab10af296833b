/* Metrics in the Prometheus text format 0.0.4. */
#pragma once

#include "common/base/buf.h"

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

#define METRIC_LABELS 4
/* Label sets of one metric. A change of one more is not kept but counted in
 * …_metrics_dropped_total{metric}. */
#define METRIC_MAX_SERIES 200
#define METRIC_MAX_BUCKETS 48
/* Room for metrics_write: the caller's buffer. */
#define METRICS_MAX_TEXT (4u << 20)

/* A static variable of the file that counts; registers itself at the first use. Two metrics of one
 * name are a bug. */
struct metric {
    enum metric_type type;
    const char *name;
    const char *help;
    const char *labels[METRIC_LABELS];
    const double
        *buckets; /* METRIC_HISTOGRAM: upper bounds, ended by 0; NULL: controller-runtime's */
    struct metric_state *state;
};

/* Any thread. Then a value for each label, ended by NULL. Adding 0 shows the series from then on.
 */
void metric_add(struct metric *metric, double amount, ...) NULL_TERMINATED;
void metric_set(struct metric *metric, double value, ...) NULL_TERMINATED;
void metric_observe(struct metric *metric, double value, ...) NULL_TERMINATED;
double metric_value(struct metric *metric,
                    ...) NULL_TERMINATED; /* of a counter or gauge; for tests */

/* Everything, and process_* of /proc/self. false: it did not fit. */
bool metrics_write(struct buf *ret) MUST_CHECK;
