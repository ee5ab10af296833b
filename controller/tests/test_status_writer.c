/* The status writer against an API server in memory, on which others write too. */
#include "controller/shared/status_writer.h"

#include "common/api/kinds.h"
#include "common/tests/fake_api.h"
#include "common/tests/loop_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

#define TASK(spec, status)                                                                         \
    "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"one\"},\"spec\":" spec ",\"status\":" status "}"
#define PENDING "{\"phase\":\"pending\",\"run\":1}"

static struct fake_api *api;
static struct informer *informer;
static struct reconcile rc;

static void put(const char *text)
{
    fake_api_put(api, &KIND_TASK, parsed(rc.arena, text));
}

static void set_up(void)
{
    const struct watch_options options = { .kind = &KIND_TASK };

    loop_set_up();
    api = fake_api_create();
    informer = informer_create(loop, &options);
    rc = (struct reconcile){ .arena = arena_create(),
                             .client = kube_client_create_with(fake_api_roundtrip, api) };
    ck_assert(kube_name_set(&rc.name, "ns", "one"));
    put(TASK("{}", PENDING));
}

static void tear_down(void)
{
    informer_destroy(informer);
    kube_client_destroy(rc.client);
    fake_api_destroy(api);
    arena_destroy(rc.arena);
    loop_tear_down();
}

TEST_GROUP("status_writer", set_up, tear_down);

static const cJSON *stored(void)
{
    const cJSON *object = fake_api_get(api, rc.arena, &KIND_TASK, &rc.name);

    ck_assert_ptr_nonnull(object);
    return object;
}

static size_t requests(void)
{
    struct fake_request *log;

    return fake_api_requests(api, rc.arena, &log);
}

static int write_over(const cJSON *base, const char *status, bool *ret_written)
{
    struct error err = { 0 };

    return status_write(&rc, informer, &KIND_TASK, base, parsed(rc.arena, status), ret_written,
                        &err);
}

static void expect_status(const char *status)
{
    ck_assert_str_eq(json_text(rc.arena, json_get(stored(), "status"), NULL), status);
}

TEST(only_members_that_differ_are_changed_and_the_reply_is_in_the_store)
{
    bool written = false;
    struct kube_object *cached;

    ck_assert_int_eq(write_over(stored(), "{\"phase\":\"scheduled\",\"attempt\":1}", &written), 0);
    ck_assert(written);
    expect_status("{\"phase\":\"scheduled\",\"attempt\":1}");
    cached = store_get(informer_store(informer), &rc.name);
    ck_assert_ptr_nonnull(cached);
    ck_assert_str_eq(cached->resource_version,
                     json_string(json_path(stored(), "metadata", "resourceVersion", NULL), "none"));
    kube_object_unref(cached);
}

TEST(status_as_it_is_stored_needs_no_request)
{
    bool written = true;

    ck_assert_int_eq(write_over(stored(), "{\"run\":1,\"phase\":\"pending\"}", &written), 0);
    ck_assert(!written);
    ck_assert_uint_eq(requests(), 0);
}

/* Members that nobody else touched: only the version can tell that the decision is out of date. */
TEST(write_of_somebody_else_between_read_and_write_is_a_conflict)
{
    const cJSON *base = stored();
    bool written = true;

    put(TASK("{}", "{\"phase\":\"pending\",\"run\":1,\"failures\":7}"));
    const char *before = json_text(rc.arena, stored(), NULL);

    ck_assert_int_eq(write_over(base, "{\"phase\":\"scheduled\",\"run\":1}", &written),
                     -ERROR_CONFLICT);
    ck_assert(!written);
    ck_assert_str_eq(json_text(rc.arena, stored(), NULL), before);
    ck_assert_ptr_null(store_get(informer_store(informer), &rc.name));
}

TEST(write_to_the_spec_between_read_and_write_is_a_conflict_too)
{
    const cJSON *base = stored();
    bool written = true;

    put(TASK("{\"suspend\":true}", PENDING));
    ck_assert_int_eq(write_over(base, "{\"phase\":\"scheduled\"}", &written), -ERROR_CONFLICT);
    ck_assert(!written);
    expect_status(PENDING);
}

/* The name alone would do for a Task that was deleted and made again. */
TEST(object_of_another_uid_is_left_alone)
{
    const char *version = json_string(json_path(stored(), "metadata", "resourceVersion", NULL), "");
    const cJSON *base =
        parsed(rc.arena,
               arena_printf(rc.arena,
                            "{\"metadata\":{\"uid\":\"the-one-before\",\"resourceVersion\":\"%s\"},"
                            "\"status\":" PENDING "}",
                            version));
    bool written = true;

    ck_assert_int_lt(write_over(base, "{\"phase\":\"scheduled\"}", &written), 0);
    ck_assert(!written);
    expect_status(PENDING);
}

TEST(null_in_a_result_is_stored_as_null)
{
    bool written = false;

    ck_assert_int_eq(
        write_over(stored(), "{\"phase\":\"completed\",\"results\":{\"a\":null}}", &written), 0);
    ck_assert(written);
    expect_status("{\"phase\":\"completed\",\"results\":{\"a\":null}}");
}
