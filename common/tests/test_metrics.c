#include "common/runtime/metrics.h"

#include <math.h>
#include <pthread.h>

#include "common/tests/suite.h"

static struct metric plain = { .type = METRIC_COUNTER, .name = "t_plain", .help = "Plain." };
static struct metric labelled = { .type = METRIC_COUNTER,
                                  .name = "t_labelled",
                                  .help = "With labels.",
                                  .labels = { "kind", "result" } };
static struct metric gauge = { .type = METRIC_GAUGE, .name = "t_gauge", .help = "A gauge." };
static const double BOUNDS[] = { 0.5, 1, 2.5, 0 };
static struct metric histogram = { .type = METRIC_HISTOGRAM,
                                   .name = "t_histogram",
                                   .help = "A histogram.",
                                   .labels = { "kind" },
                                   .buckets = BOUNDS };

static struct buf text = BUF_INIT(METRICS_MAX_TEXT);

static void tear_down(void)
{
    buf_release(&text);
}

TEST_GROUP("text format", NULL, tear_down);

static void ck_has(const char *lines)
{
    buf_clear(&text);
    ck_assert(metrics_write(&text));
    ck_assert_msg(strstr(buf_string(&text), lines), "no '%s' in:\n%s", lines, buf_string(&text));
}

static void ck_has_not(const char *part)
{
    buf_clear(&text);
    ck_assert(metrics_write(&text));
    ck_assert_msg(!strstr(buf_string(&text), part), "'%s' in:\n%s", part, buf_string(&text));
}

TEST(a_metric_appears_at_its_first_use)
{
    ck_has_not("t_plain");
    metric_add(&plain, 0, NULL);
    ck_has("# HELP t_plain Plain.\n# TYPE t_plain counter\nt_plain 0\n");
}

TEST(counters_add_up_per_label_set)
{
    metric_add(&labelled, 1, "task", "success", NULL);
    metric_add(&labelled, 1.5, "task", "success", NULL);
    metric_add(&labelled, 1, "task", "error", NULL);
    ck_has("# TYPE t_labelled counter\n"
           "t_labelled{kind=\"task\",result=\"success\"} 2.5\n"
           "t_labelled{kind=\"task\",result=\"error\"} 1\n");
    ck_assert_double_eq(metric_value(&labelled, "task", "success", NULL), 2.5);
    ck_assert_double_eq(metric_value(&labelled, "task", "unknown", NULL), 0);
}

TEST(gauges_are_set_and_go_both_ways)
{
    metric_set(&gauge, 10, NULL);
    metric_add(&gauge, -12.25, NULL);
    ck_has("# TYPE t_gauge gauge\nt_gauge -2.25\n");
    ck_assert_double_eq(metric_value(&gauge, NULL), -2.25);
}

TEST(histogram_buckets_are_cumulative_and_include_their_bound)
{
    metric_observe(&histogram, 0.5, "a", NULL);
    metric_observe(&histogram, 0.75, "a", NULL);
    metric_observe(&histogram, 2, "a", NULL);
    metric_observe(&histogram, 100, "a", NULL);
    ck_has("# TYPE t_histogram histogram\n"
           "t_histogram_bucket{kind=\"a\",le=\"0.5\"} 1\n"
           "t_histogram_bucket{kind=\"a\",le=\"1\"} 2\n"
           "t_histogram_bucket{kind=\"a\",le=\"2.5\"} 3\n"
           "t_histogram_bucket{kind=\"a\",le=\"+Inf\"} 4\n"
           "t_histogram_sum{kind=\"a\"} 103.25\n"
           "t_histogram_count{kind=\"a\"} 4\n");
}

TEST(a_histogram_without_labels_and_buckets_has_the_defaults)
{
    static struct metric defaults = { .type = METRIC_HISTOGRAM,
                                      .name = "t_defaults",
                                      .help = "Defaults." };

    metric_observe(&defaults, 0.005, NULL);
    ck_has("\nt_defaults_bucket{le=\"0.005\"} 1\n");
    ck_has("\nt_defaults_bucket{le=\"60\"} 1\nt_defaults_bucket{le=\"+Inf\"} 1\n"
           "t_defaults_sum 0.005\nt_defaults_count 1\n");
}

TEST(label_values_are_escaped)
{
    metric_add(&labelled, 1, "a\"b\\c\nd", "", NULL);
    ck_has("\nt_labelled{kind=\"a\\\"b\\\\c\\nd\",result=\"\"} 1\n");
}

TEST(label_values_that_look_like_text_format_are_another_series)
{
    metric_add(&labelled, 1, "a\",result=\"b", "c", NULL);
    metric_add(&labelled, 1, "a", "b", NULL);
    ck_assert_double_eq(metric_value(&labelled, "a", "b", NULL), 1);
}

TEST(long_label_values_are_cut_at_a_character)
{
    char value[1001];
    char wanted[300];

    memset(value, 'x', 1000);
    memcpy(value + 255, "\xc3\xa9", 2); /* would be cut in its middle */
    value[1000] = '\0';
    metric_add(&labelled, 1, value, "r", NULL);
    (void)snprintf(wanted, sizeof(wanted), "{kind=\"%.255s\",result=\"r\"} 1\n", value);
    ck_has(wanted);

    memset(value, '"', 1000);
    metric_add(&labelled, 1, value, value, NULL);
    ck_assert_double_eq(metric_value(&labelled, value, value, NULL), 1);
}

TEST(label_sets_above_the_limit_are_counted_and_not_kept)
{
    static struct metric flood = {
        .type = METRIC_COUNTER, .name = "t_flood", .help = "Too many.", .labels = { "n" }
    };
    char n[16];

    for (int i = 0; i < METRIC_MAX_SERIES + 7; i++) {
        (void)snprintf(n, sizeof(n), "%d", i);
        metric_add(&flood, 1, n, NULL);
    }
    metric_add(&flood, 1, "0", NULL); /* an old one goes on counting */
    ck_has("t_flood{n=\"199\"} 1\n");
    ck_has("t_flood{n=\"0\"} 2\n");
    ck_has_not("t_flood{n=\"200\"}");
    ck_has("propeller_metrics_dropped_total{metric=\"t_flood\"} 7\n");
}

TEST(metrics_are_sorted_by_name)
{
    metric_add(&plain, 1, NULL);
    metric_set(&gauge, 1, NULL);
    metric_add(&labelled, 1, "a", "b", NULL);
    ck_has("t_plain 1\n");
    const char *first = strstr(buf_string(&text), "# HELP t_gauge");
    const char *second = strstr(buf_string(&text), "# HELP t_labelled");
    const char *third = strstr(buf_string(&text), "# HELP t_plain");
    ck_assert_ptr_nonnull(first);
    ck_assert(first < second);
    ck_assert(second < third);
}

static const struct {
    double value;
    const char *text;
} NUMBERS[] = {
    { 0.1, "0.1" },
    { 1e15, "1e+15" },
    { 123456789, "123456789" },
    { INFINITY, "+Inf" },
    { -INFINITY, "-Inf" },
    { NAN, "NaN" },
    { 1e21, "1e+21" },
    { 0.30000000000000004, "0.30000000000000004" },
};

TEST_EACH(numbers_are_written_shortest_without_loss, NUMBERS)
{
    char line[80];

    metric_set(&gauge, NUMBERS[_i].value, NULL);
    (void)snprintf(line, sizeof(line), "\nt_gauge %s\n", NUMBERS[_i].text);
    ck_has(line);
}

/* The number after the name at the start of a line; -1: not there. */
static double sample(const char *name)
{
    char line[80];
    const char *found;

    buf_clear(&text);
    ck_assert(metrics_write(&text));
    (void)snprintf(line, sizeof(line), "\n%s ", name);
    found = strstr(buf_string(&text), line);
    return found ? strtod(found + strlen(line), NULL) : -1;
}

TEST(the_process_tells_of_itself)
{
    struct timespec now;

    ck_assert_int_eq(clock_gettime(CLOCK_REALTIME, &now), 0);
    ck_assert_double_ge(sample("process_cpu_seconds_total"), 0);
    ck_assert_double_gt(sample("process_resident_memory_bytes"), 500000);
    ck_assert_double_gt(sample("process_virtual_memory_bytes"),
                        sample("process_resident_memory_bytes"));
    ck_assert_double_ge(sample("process_max_fds"), sample("process_open_fds"));
    ck_assert_double_le(sample("process_start_time_seconds"), (double)now.tv_sec + 1);
    ck_assert_double_gt(sample("process_start_time_seconds"), (double)now.tv_sec - 3600);

    double before = sample("process_open_fds");
    FILE *file = fopen("/dev/null", "re");
    ck_assert_ptr_nonnull(file);
    ck_assert_double_eq(sample("process_open_fds"), before + 1);
    ck_assert_int_eq(fclose(file), 0);
}

TEST(what_does_not_fit_is_told)
{
    struct buf small = BUF_INIT(40);

    metric_add(&plain, 1, NULL);
    ck_assert(!metrics_write(&small));
    buf_release(&small);
}

#define THREAD_ADDS 2000

static void *count_in_thread(void *ctx)
{
    for (int i = 0; i < THREAD_ADDS; i++) {
        metric_add(&plain, 1, NULL);
        metric_add(&labelled, 1, "thread", i % 2 ? "odd" : "even", NULL);
        metric_observe(&histogram, i, "thread", NULL);
    }
    return ctx;
}

TEST(threads_lose_no_counts)
{
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, count_in_thread, NULL), 0);
    ck_assert_double_ge(sample("process_open_fds"), 0); /* meanwhile it is written */
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert_double_eq(metric_value(&plain, NULL), 4 * THREAD_ADDS);
    ck_assert_double_eq(metric_value(&labelled, "thread", "odd", NULL), 2 * THREAD_ADDS);
    ck_has("t_histogram_count{kind=\"thread\"} 8000\n");
}
