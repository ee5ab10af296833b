#include "common/runtime/metrics.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>

#include "common/base/alloc.h"
#include "common/base/map.h"
#include "common/base/str.h"
#include "common/base/version.h"
#include "common/runtime/process_metrics.h"

/* A label value is cut there; names of Kubernetes objects fit. */
#define MAX_LABEL_VALUE 256
/* Every character escaped, and the names around them. */
#define MAX_LABEL_TEXT (METRIC_LABELS * (2 * MAX_LABEL_VALUE + 64))

/* controller_runtime_reconcile_time_seconds. */
static const double DEFAULT_BUCKETS[] = { 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3,
                                          0.35,  0.4,  0.45,  0.5,  0.6, 0.7,  0.8, 0.9,  1,
                                          1.25,  1.5,  1.75,  2,    2.5, 3,    3.5, 4,    4.5,
                                          5,     6,    7,     8,    9,   10,   15,  20,   25,
                                          30,    40,   50,    60,   0 };

struct series {
    struct series *next; /* in the order of their first use */
    char *labels;        /* `a="x",b="y"` as in the text format, "" without labels */
    double value;        /* of a histogram: the sum */
    uint64_t count;      /* of a histogram: observations */
    uint64_t buckets[];  /* of a histogram: how many in each bucket alone */
};

struct metric_state {
    struct metric *next; /* by name */
    struct map *by_labels;
    struct series *first, **end;
    const double *bounds;
    size_t bound_count;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct metric *registered;

static struct metric dropped_metric = {
    .type = METRIC_COUNTER,
    .name = PRODUCT_METRICS "metrics_dropped_total",
    .help = "Number of changes that were dropped because a metric has too many label sets.",
    .labels = { "metric" }
};

/* With the lock held. */
static struct metric_state *state_of(struct metric *metric)
{
    if (metric->state)
        return metric->state;

    struct metric_state *state = xcalloc(1, sizeof(*state));
    state->by_labels = map_create(NULL);
    state->end = &state->first;
    if (metric->type == METRIC_HISTOGRAM) {
        state->bounds = metric->buckets ? metric->buckets : DEFAULT_BUCKETS;
        while (state->bounds[state->bound_count] > 0)
            state->bound_count++;
        assert(state->bound_count <= METRIC_MAX_BUCKETS);
    }

    struct metric **place = &registered;
    while (*place && strcmp((*place)->name, metric->name) < 0)
        place = &(*place)->state->next;
    assert(!*place || strcmp((*place)->name, metric->name) != 0); /* two metrics of one name */
    state->next = *place;
    metric->state = state;
    *place = metric;
    return state;
}

struct label_text {
    size_t len;
    char data[MAX_LABEL_TEXT];
};

static void put(struct label_text *text, const char *bytes, size_t len)
{
    assert(len < sizeof(text->data) - text->len); /* MAX_LABEL_TEXT is computed wrongly */
    memcpy(text->data + text->len, bytes, len);
    text->len += len;
    text->data[text->len] = '\0';
}

static void put_label(struct label_text *text, const char *name, const char *value)
{
    size_t len = str_utf8_cut(value, strlen(value), MAX_LABEL_VALUE);

    if (text->len)
        put(text, ",", 1);
    put(text, name, strlen(name));
    put(text, "=\"", 2);
    for (size_t i = 0; i < len; i++) {
        if (value[i] == '\n')
            put(text, "\\n", 2);
        else if (value[i] == '"' || value[i] == '\\')
            put(text, (const char[]){ '\\', value[i] }, 2);
        else
            put(text, &value[i], 1);
    }
    put(text, "\"", 1);
}

static void read_labels(struct label_text *text, const struct metric *metric, va_list args)
{
    text->len = 0;
    text->data[0] = '\0';
    for (size_t i = 0; i < METRIC_LABELS && metric->labels[i]; i++) {
        const char *value = va_arg(args, const char *);

        assert(value); /* fewer values than labels */
        put_label(text, metric->labels[i], value);
    }
    assert(!va_arg(args, const char *)); /* more values than labels */
}

/* With the lock held. NULL: the metric is full. */
static struct series *series_of(struct metric *metric, const char *labels)
{
    struct metric_state *state = state_of(metric);
    struct series *series = map_get(state->by_labels, labels);

    if (series || map_len(state->by_labels) >= METRIC_MAX_SERIES)
        return series;
    series = xcalloc(1, sizeof(*series) + state->bound_count * sizeof(series->buckets[0]));
    series->labels = xstrdup(labels);
    map_set(state->by_labels, labels, series);
    *state->end = series;
    state->end = &series->next;
    return series;
}

static void observe(const struct metric_state *state, struct series *series, double value)
{
    series->value += value;
    series->count++;
    for (size_t i = 0; i < state->bound_count; i++) {
        if (value <= state->bounds[i]) {
            series->buckets[i]++;
            break;
        }
    }
}

enum change { CHANGE_ADD, CHANGE_SET, CHANGE_OBSERVE };

static void change(struct metric *metric, enum change what, double amount, va_list args)
{
    struct label_text text;

    read_labels(&text, metric, args);
    pthread_mutex_lock(&lock);
    struct series *series = series_of(metric, text.data);

    if (!series) {
        text.len = 0;
        put_label(&text, "metric", metric->name);
        series = series_of(&dropped_metric, text.data);
        if (series) /* more than 200 metrics overflow: then this number is too low */
            series->value++;
    } else if (what == CHANGE_OBSERVE) {
        observe(metric->state, series, amount);
    } else {
        series->value = what == CHANGE_SET ? amount : series->value + amount;
    }
    pthread_mutex_unlock(&lock);
}

void metric_add(struct metric *metric, double amount, ...)
{
    assert(metric->type == METRIC_GAUGE || amount == 0 ||
           (metric->type == METRIC_COUNTER && amount > 0));

    va_list args;
    va_start(args, amount);
    change(metric, CHANGE_ADD, amount, args);
    va_end(args);
}

void metric_set(struct metric *metric, double value, ...)
{
    assert(metric->type == METRIC_GAUGE);

    va_list args;
    va_start(args, value);
    change(metric, CHANGE_SET, value, args);
    va_end(args);
}

void metric_observe(struct metric *metric, double value, ...)
{
    assert(metric->type == METRIC_HISTOGRAM);

    va_list args;
    va_start(args, value);
    change(metric, CHANGE_OBSERVE, value, args);
    va_end(args);
}

double metric_value(struct metric *metric, ...)
{
    struct label_text text;
    va_list args;

    va_start(args, metric);
    read_labels(&text, metric, args);
    va_end(args);

    pthread_mutex_lock(&lock);
    const struct series *series =
        metric->state ? map_get(metric->state->by_labels, text.data) : NULL;
    double value = series ? series->value : 0;
    pthread_mutex_unlock(&lock);
    return value;
}

#define NUMBER_LEN 32

/* The shortest text that reads as the same number. */
static const char *number(double value, char ret[static NUMBER_LEN])
{
    if (isnan(value))
        return "NaN";
    if (isinf(value))
        return value > 0 ? "+Inf" : "-Inf";
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(ret, NUMBER_LEN, "%.*g", digits, value);
        if (strtod(ret, NULL) == value)
            break;
    }
    return ret;
}

static bool write_histogram(struct buf *ret, const struct metric *metric,
                            const struct series *series)
{
    const struct metric_state *state = metric->state;
    const char *comma = series->labels[0] ? "," : "";
    const char *open = series->labels[0] ? "{" : "";
    const char *close = series->labels[0] ? "}" : "";
    char text[NUMBER_LEN];
    uint64_t total = 0;

    for (size_t i = 0; i < state->bound_count; i++) {
        total += series->buckets[i];
        if (!buf_printf(ret, "%s_bucket{%s%sle=\"%s\"} %llu\n", metric->name, series->labels, comma,
                        number(state->bounds[i], text), (unsigned long long)total))
            return false;
    }
    return buf_printf(ret, "%s_bucket{%s%sle=\"+Inf\"} %llu\n", metric->name, series->labels, comma,
                      (unsigned long long)series->count) &&
           buf_printf(ret, "%s_sum%s%s%s %s\n", metric->name, open, series->labels, close,
                      number(series->value, text)) &&
           buf_printf(ret, "%s_count%s%s%s %llu\n", metric->name, open, series->labels, close,
                      (unsigned long long)series->count);
}

static bool write_series(struct buf *ret, const struct metric *metric, const struct series *series)
{
    char text[NUMBER_LEN];

    if (metric->type == METRIC_HISTOGRAM)
        return write_histogram(ret, metric, series);
    if (!series->labels[0])
        return buf_printf(ret, "%s %s\n", metric->name, number(series->value, text));
    return buf_printf(ret, "%s{%s} %s\n", metric->name, series->labels,
                      number(series->value, text));
}

static bool write_metric(struct buf *ret, const struct metric *metric)
{
    static const char *const TYPES[] = {
        [METRIC_COUNTER] = "counter", [METRIC_GAUGE] = "gauge", [METRIC_HISTOGRAM] = "histogram"
    };

    /* Help texts are constants without line ends and backslashes. */
    if (!buf_printf(ret, "# HELP %s %s\n# TYPE %s %s\n", metric->name, metric->help, metric->name,
                    TYPES[metric->type]))
        return false;
    for (const struct series *series = metric->state->first; series; series = series->next) {
        if (!write_series(ret, metric, series))
            return false;
    }
    return true;
}

bool metrics_write(struct buf *ret)
{
    bool fits = true;

    pthread_mutex_lock(&lock);
    for (const struct metric *metric = registered; metric && fits; metric = metric->state->next)
        fits = write_metric(ret, metric);
    pthread_mutex_unlock(&lock);
    return fits && process_metrics_write(ret);
}
