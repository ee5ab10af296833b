/* Requests while the disk cannot be read: who asks is told so, what is refused is not there, and nothing has to be
 * done when the disk is well again. */
#include <check.h>
#include <string.h>

#include "common/base/str.h"
#include "common/tests/suite.h"
#include "standalone/tests/api_fixture.h"
#include "standalone/tests/fault_vfs.h"

/* In all more than a list reads at once, and more than any connection has in memory. */
#define LARGE ((size_t)300 << 10)
#define MANY 10

static char large[LARGE + 1];

static void send_object(const char *method, const char *path, const char *name, int status)
{
    (void)ask(method, path,
              arena_printf(test_arena, "{\"metadata\":{\"name\":\"%s\"},\"data\":{\"of\":\"%s\"}}",
                           name, large),
              status);
}

static void setup(void)
{
    fault_vfs_install();
    memset(large, 'x', LARGE);
    api_vfs = "fault";
    api_setup();
    for (int i = 0; i < MANY; i++)
        send_object("POST", CONFIGMAPS, arena_printf(test_arena, "c%02d", i), 201);
}

static void teardown(void)
{
    fault_vfs_fail_after(-1);
    api_teardown();
}

TEST_GROUP("all", setup, teardown);

static const char *answer_text(const char *member)
{
    return json_get_string(parsed(test_arena, api_answer.body), member);
}

static void expect_refusal(int status, const char *reason)
{
    ck_assert_msg(api_answer.status == status, "%d: %s", api_answer.status, api_answer.body);
    ck_assert_str_eq(answer_text("kind"), "Status");
    ck_assert_str_eq(answer_text("reason"), reason);
    ck_assert_msg(strstr(answer_text("message"), "disk I/O error") != NULL, "%s", api_answer.body);
}

/* The next number of reads after which they fail: each at first. */
static int after(int reads)
{
    return reads + 1 + reads / 8;
}

/* --- questions ---------------------------------------------------------------------------------- */

static const struct {
    const char *path;
    int reads; /* at least */
} QUESTIONS[] = {
    { CONFIGMAPS "/c03", 70 },
    { CONFIGMAPS, 700 },
    { CONFIGMAPS "?limit=7", 500 },
    { CONFIGMAPS "?watch=true", 70 },
};

TEST_EACH(a_question_that_cannot_be_answered_is_told_so, QUESTIONS)
{
    const char *path = QUESTIONS[_i].path;
    int reads = 0;

    for (;; reads = after(reads)) {
        kv_fixture_forget_pages();
        fault_vfs_fail_after(reads);
        api_try("GET", path, "json", NULL);
        fault_vfs_fail_after(-1);
        if (api_answer.status == 200)
            break;
        expect_refusal(500, "InternalError");
    }
    api_watch_close(api_answer.watch);
    ck_assert_int_ge(reads, QUESTIONS[_i].reads);
    ck_assert_uint_eq(json_len(json_get(ask("GET", CONFIGMAPS, NULL, 200), "items")), MANY);
}

/* --- writes ------------------------------------------------------------------------------------- */

static const struct {
    const char *method, *path, *type, *body;
    int status;
} WRITES[] = {
    { "POST", CONFIGMAPS, "json", "{\"metadata\":{\"name\":\"new\"}}", 201 },
    { "PUT", CONFIGMAPS "/c00", "json", "{\"metadata\":{\"name\":\"c00\"}}", 200 },
    { "PATCH", CONFIGMAPS "/c00", "merge-patch+json", "{\"data\":null}", 200 },
    { "PATCH", CONFIGMAPS "/c00", "json-patch+json", "[{\"op\":\"remove\",\"path\":\"/data\"}]",
      200 },
    { "PATCH", CONFIGMAPS "/new?fieldManager=me", "apply-patch+yaml",
      "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"new\"}}", 201 },
    { "DELETE", CONFIGMAPS "/c00", "json", "", 200 },
};

TEST_EACH(a_write_that_cannot_be_decided_is_not_made, WRITES)
{
    uint64_t revision;
    int reads = 0;

    for (;; reads = after(reads)) {
        kv_fixture_forget_pages();
        revision = kv_revision(kv_store.kv);
        fault_vfs_fail_after(reads);
        api_try(WRITES[_i].method, WRITES[_i].path, WRITES[_i].type, WRITES[_i].body);
        fault_vfs_fail_after(-1);
        if (api_answer.status == WRITES[_i].status)
            break;
        expect_refusal(503, "ServiceUnavailable");
        ck_assert_uint_eq(kv_revision(kv_store.kv), revision);
    }
    ck_assert_int_gt(reads, 2);
    ck_assert_uint_eq(kv_revision(kv_store.kv), revision + 1);
}
