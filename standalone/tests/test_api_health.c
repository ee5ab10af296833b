/* What /readyz says of a store that cannot be read or lost writes, and what another policy does after a restart. */
#include <stdio.h>
#include <string.h>

#include "common/api/policy.h"
#include "common/tests/suite.h"
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
