/* Copies of models for their users: where they go, what refuses them, and when a failed one is tried again. */
#include <signal.h>
#include <string.h>

#include "common/api/kinds.h"
#include "common/base/str.h"
#include "common/tests/fake_clock.h"
#include "common/tests/suite.h"
#include "controller/federated/model_export.h"
#include "controller/tests/s3_server.h"

#define URI "s3://" S3_TEST_BUCKET "/exports/ns/models/digits"

static struct arena *arena;
static struct s3_server *server;
static struct model_store *store;
static struct model_exports *exports;
static struct fake_clock clock;
static struct federatedjob job;
static struct federated_checkpoint_spec spec;
static struct model_checkpoint last;
static bool may_write;
static const struct model_scope JOB = { &KIND_FEDERATEDJOB,
                                        { "ns", "digits" },
                                        "11111111-0000-0000-0000-000000000000" };

static bool leads(void *ctx UNUSED)
{
    return may_write;
}

static void set_up(void)
{
    char reference[MODEL_REFERENCE_LEN];

    (void)signal(SIGPIPE, SIG_IGN);
    arena = arena_create();
    server = s3_server_start();
    fake_clock_init(&clock);
    may_write = true;
    const struct model_s3_options options = {
        .endpoint = arena_printf(arena, "http://127.0.0.1:%d", s3_server_port(server)),
        .region = S3_TEST_REGION,
        .bucket = S3_TEST_BUCKET,
        .access_key = S3_TEST_ACCESS_KEY,
        .secret_key = S3_TEST_SECRET_KEY,
        .may_write = leads,
    };
    ck_assert_int_eq(model_store_s3_create(&options, &store, NULL), 0);
    ck_assert_int_eq(model_store_put(store, &JOB, "[1,2]", 5, reference, NULL), 0);
    exports = model_exports_create(&clock.clock);
    spec = (struct federated_checkpoint_spec){ .uri = URI };
    last = (struct model_checkpoint){ .round = 7, .ref = arena_strdup(arena, reference) };
    job = (struct federatedjob){ .spec = { .checkpoint = &spec },
                                 .status = { .last_checkpoint = &last } };
}

static void tear_down(void)
{
    model_exports_destroy(exports);
    model_store_destroy(store);
    s3_server_stop(server);
    arena_destroy(arena);
}

TEST_GROUP("export", set_up, tear_down);

static struct observed_export export(void)
{
    return model_export(exports, store, arena, &JOB, &job);
}

static const char *stored(const char *key)
{
    const char *bytes;
    size_t len;

    return model_store_s3_read(store, arena, S3_TEST_BUCKET, key, &bytes, &len, NULL) < 0
               ? "-"
               : arena_strndup(arena, bytes, len);
}

TEST(the_model_is_copied_under_its_round_and_as_the_latest)
{
    struct observed_export done = export();

    ck_assert_int_eq(done.state, EXPORT_DONE);
    ck_assert_str_eq(done.uri, URI "/round-7");
    ck_assert_str_eq(stored("exports/ns/models/digits/round-7"), "[1,2]");
    ck_assert_str_eq(stored("exports/ns/models/digits/latest"), "[1,2]");
    ck_assert_uint_eq(s3_server_objects(server), 3);
}

TEST(the_namespace_need_not_be_spelled_out)
{
    spec.uri = "s3://" S3_TEST_BUCKET "/exports/{namespace}/models/digits";
    struct observed_export done = export();
    ck_assert_int_eq(done.state, EXPORT_DONE);
    ck_assert_str_eq(done.uri, URI "/round-7");
}

static const struct {
    const char *uri;
    enum reason reason;
} REFUSED[] = {
    { "s3://other/exports/ns/p", REASON_OTHER_BUCKET },
    { "s3://modelss/exports/ns/p", REASON_OTHER_BUCKET },
    { "s3://models/exports/other/p", REASON_EXPORT_NOT_CONFIGURED },
    { "s3://models/exports/ns", REASON_EXPORT_NOT_CONFIGURED },
    { "s3://models/exports/ns/", REASON_EXPORT_NOT_CONFIGURED },
    { "s3://models/exports/ns/../other/p", REASON_EXPORT_NOT_CONFIGURED },
    { "s3://models/exports/ns/./p", REASON_EXPORT_NOT_CONFIGURED },
    { "s3://models/exports/ns//p", REASON_EXPORT_NOT_CONFIGURED },
    { "s3://models/exports/ns/%2e%2e/p", REASON_EXPORT_NOT_CONFIGURED },
    { "s3://models/propeller/ns/p", REASON_EXPORT_NOT_CONFIGURED },
    { "https://models/exports/ns/p", REASON_EXPORT_NOT_CONFIGURED },
};

TEST_EACH(nothing_is_written_outside_of_the_exports_of_the_namespace, REFUSED)
{
    spec.uri = REFUSED[_i].uri;
    struct observed_export failed = export();
    ck_assert_int_eq(failed.state, EXPORT_FAILED);
    ck_assert_int_eq(failed.reason, REFUSED[_i].reason);
    ck_assert(!str_is_empty(failed.message));
    ck_assert_uint_eq(s3_server_objects(server), 1);
}

TEST(a_failed_copy_is_tried_again_after_growing_delays)
{
    s3_server_fail(server, 500, "InternalError");
    struct observed_export failed = export();
    ck_assert_int_eq(failed.reason, REASON_STORE_FAILED);
    ck_assert_uint_eq(failed.retry_ms, 10000);
    ck_assert_int_eq(export().state, EXPORT_WAITS);
    fake_clock_advance(&clock, 10000);
    ck_assert_uint_eq(export().retry_ms, 20000);
    s3_server_fail(server, 0, NULL);
    fake_clock_advance(&clock, 20000);
    ck_assert_int_eq(export().state, EXPORT_DONE);
    s3_server_fail(server, 500, "InternalError");
    ck_assert_uint_eq(export().retry_ms, 10000); /* of the next one */
}

TEST(one_who_does_not_lead_any_more_writes_nothing)
{
    may_write = false;
    ck_assert_int_eq(export().state, EXPORT_FAILED);
    ck_assert_uint_eq(s3_server_objects(server), 1);
}
