/* The answer of /readyz of a store that cannot be read or lost writes, another policy after a restart, and metrics. */
#include <stdio.h>
#include <string.h>

#include "common/api/policy.h"
#include "common/base/buf.h"
#include "common/runtime/metrics.h"
#include "common/tests/suite.h"
#include "standalone/process/store_metrics.h"
#include "standalone/tests/api_fixture.h"

static void ck_answer(const char *path, int status, const char *text)
{
    api_send("GET", path, NULL, "", status);
    ck_assert_uint_eq(api_answer.body_len, strlen(text));
    ck_assert_mem_eq(api_answer.body, text, strlen(text));
}

TEST_GROUP("health", api_setup, api_teardown);

TEST(a_store_that_cannot_be_read_is_not_ready)
{
    static const char FAILED[] = "[+]ping ok\n[-]store failed: reason withheld\n"
                                 "readyz check failed\n";

    ck_answer("/readyz", 200, "ok");
    kv_fixture_execute("UPDATE history SET text = text || ' '");
    api_try("GET", "/api/v1/namespaces/default", NULL, "");
    ck_assert_int_eq(api_answer.status, 500);
    ck_answer("/readyz", 500, FAILED);
    ck_answer("/readyz?verbose", 500, FAILED);
    ck_answer("/livez", 200, "ok");
    ck_answer("/healthz", 200, "ok");
}

/* A version is noted as acknowledged that is not in the store. */
static void lose_writes(void)
{
    FILE *file = fopen(kv_fixture_file("-lock"), "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_gt(fprintf(file, "made\nrevision %020d %020d\n", 1000, 1000), 0);
    ck_assert_int_eq(fclose(file), 0);
    kv_store.options.goes_on = true;
}

TEST(a_store_that_lost_writes_is_ready_and_says_so)
{
    ck_answer("/readyz?verbose", 200, "ok");
    api_restart(lose_writes);
    ck_answer("/readyz", 200, "ok");
    ck_answer("/readyz?verbose", 200,
              "[+]ping ok\n[+]store ok: it had lost writes, the log has details\n"
              "readyz check passed\n");
    (void)ask("GET", "/api/v1/namespaces/default", "", 200);
    api_restart(NULL);
    ck_answer("/readyz?verbose", 200, "ok");
}

static const char *schemes[] = { "https" };
static const struct admission_policy POLICY = { .image_schemes = { schemes, 1 } };

TEST(a_server_with_a_policy_keeps_what_it_has_and_refuses_what_comes)
{
    (void)ask("POST", TASKS, task_text("old", "", ",\"imageUrl\":\"r.example/m\""), 201);
    api_policy = &POLICY;
    api_restart(NULL);
    (void)ask_patch(TASKS "/old", "merge-patch+json", "{\"spec\":{\"priority\":7}}", 200);
    (void)ask_patch(TASKS "/old", "merge-patch+json", "{\"spec\":{\"imageUrl\":\"r.example/n\"}}",
                    422);
    ck_assert_ptr_nonnull(
        strstr(refusal("POST", TASKS, task_text("new", "", ",\"imageUrl\":\"r.example/m\""), 422),
               "spec.imageUrl: Forbidden: must not be oci: allowed are https"));
}

/* --- metrics ---------------------------------------------------------------------------------- */

/* Fails the test unless the page has this line. */
static void expect_line(const char *line)
{
    struct buf text = BUF_INIT(METRICS_MAX_TEXT);

    ck_assert(metrics_write(&text));
    ck_assert_msg(strstr(buf_string(&text), arena_printf(test_arena, "\n%s\n", line)),
                  "no '%s' in %s", line, buf_string(&text));
    buf_release(&text);
}

TEST_GROUP("metrics", api_setup, api_teardown);

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
