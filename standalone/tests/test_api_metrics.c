/* The metrics of requests, watches and the store. */
#include <check.h>

#include "common/base/str.h"
#include "common/runtime/metrics.h"
#include "standalone/process/store_metrics.h"
#include "standalone/tests/api_fixture.h"

/* Fails the test unless the page has this line. */
static void expect_line(const char *line)
{
    struct buf text = BUF_INIT(METRICS_MAX_TEXT);

    ck_assert(metrics_write(&text));
    ck_assert_msg(strstr(buf_string(&text), arena_printf(test_arena, "\n%s\n", line)),
                  "no '%s' in %s", line, buf_string(&text));
    buf_release(&text);
}

TEST_GROUP("all", api_setup, api_teardown);

TEST(requests_count_by_verb_resource_and_status)
{
    ask("POST", TASKS, task_text("one", "", ""), 201);
    ask("GET", TASKS "/one", NULL, 200);
    ask("GET", TASKS "/two", NULL, 404);
    ask("GET", TASKS, NULL, 200);
    ask("BREW", TASKS, NULL, 405);
    expect_line("apiserver_request_total{verb=\"POST\",resource=\"tasks\",code=\"201\"} 1");
    expect_line("apiserver_request_total{verb=\"GET\",resource=\"tasks\",code=\"200\"} 1");
    expect_line("apiserver_request_total{verb=\"GET\",resource=\"tasks\",code=\"404\"} 1");
    expect_line("apiserver_request_total{verb=\"LIST\",resource=\"tasks\",code=\"200\"} 1");
    expect_line("apiserver_request_duration_seconds_count{verb=\"GET\",resource=\"tasks\"} 2");
    expect_line("apiserver_request_total{verb=\"other\",resource=\"tasks\",code=\"405\"} 1");
}

TEST(a_watch_counts_as_long_as_it_is_open)
{
    struct api_watch *watch = watch_open(CONFIGMAPS "?watch=1");

    expect_line("apiserver_longrunning_requests{verb=\"WATCH\",resource=\"configmaps\"} 1");
    api_watch_close(watch);
    expect_line("apiserver_longrunning_requests{verb=\"WATCH\",resource=\"configmaps\"} 0");
}

TEST(the_store_reports_its_objects_and_its_health)
{
    struct store_metrics metrics = { kv_store.kv, test_resources, kv_fixture_file("") };

    ask("POST", TASKS, task_text("one", "", ""), 201);
    ask("POST", TASKS, task_text("two", "", ""), 201);
    store_metrics_report(&metrics);
    expect_line(
        "propeller_store_objects{resource=\"propeller.propeller.abstractmachines.fr/tasks\"} 2");
    expect_line("propeller_store_objects{resource=\"core/namespaces\"} 1");
    expect_line("propeller_store_readable 1");
}
