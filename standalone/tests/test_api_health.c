/* What /readyz says of a store that cannot be read. */
#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include "common/tests/suite.h"
#include "standalone/tests/api_fixture.h"

static void damage(void)
{
    sqlite3 *db = NULL;

    ck_assert_int_eq(sqlite3_open(api_store.options.path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "UPDATE history SET text = text || ' '", NULL, NULL, NULL),
                     SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

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
    damage();
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
    FILE *file = fopen(kv_fixture_file(&api_store, "-lock"), "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_gt(fprintf(file, "made\nrevision %020d %020d\n", 1000, 1000), 0);
    ck_assert_int_eq(fclose(file), 0);
    api_store.options.goes_on = true;
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
