/* Patches of what was read, against an API server in memory. */
#include "common/kube/guarded_patch.h"
#include "common/kube/kinds.h"
#include "common/tests/fake_api.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

static const struct kube_name NAME = { .ns = "n", .name = "s" };

static struct arena *arena;
static struct fake_api *api;
static struct kube_client *client;

static void put(const char *data)
{
    fake_api_put(api, &KIND_SECRET,
                 parsed(arena, arena_printf(arena,
                                            "{\"apiVersion\":\"v1\",\"kind\":\"Secret\","
                                            "\"metadata\":{\"name\":\"s\",\"namespace\":\"n\"},"
                                            "\"data\":%s}",
                                            data)));
}

static void setup(void)
{
    json_init();
    arena = arena_create();
    api = fake_api_create();
    client = kube_client_create_with(fake_api_roundtrip, api);
    put("{\"a\":\"MQ==\"}");
}

static void teardown(void)
{
    kube_client_destroy(client);
    fake_api_destroy(api);
    arena_destroy(arena);
}

TEST_GROUP("guarded_patch", setup, teardown);

static const cJSON *now(void)
{
    return fake_api_get(api, arena, &KIND_SECRET, &NAME);
}

static const char *value(const char *key)
{
    return json_string(json_path(now(), "data", key, NULL), NULL);
}

/* "a" becomes Mg==, if the object is still the one that was read. */
static int change(const cJSON *read, struct error *err)
{
    struct json_patch *patch = guarded_patch_create(arena, read, "data");

    json_patch_set(patch, "/data/a", cJSON_CreateString("Mg=="));
    return guarded_patch_send(client, &KIND_SECRET, &NAME, patch, err);
}

TEST(what_is_as_it_was_read_is_changed)
{
    struct error err = { 0 };

    ck_assert_msg(change(now(), &err) == 0, "%s", err.message);
    ck_assert_pstr_eq(value("a"), "Mg==");
}

TEST(what_somebody_changed_since_is_a_conflict_even_where_the_patch_would_fit)
{
    static const char *const CHANGES[] = { "{\"a\":\"MQ==\",\"b\":\"eA==\"}", "{\"a\":\"eA==\"}" };
    struct error err = { 0 };

    for (size_t i = 0; i < ARRAY_LEN(CHANGES); i++) {
        const cJSON *read = now();

        put(CHANGES[i]);
        const cJSON *theirs = now();
        ck_assert_int_eq(change(read, &err), -ERROR_CONFLICT);
        ck_assert(json_equal(now(), theirs));
    }
}

TEST(what_was_made_anew_is_not_changed)
{
    const cJSON *read = now();
    struct error err = { 0 };

    fake_api_delete(api, &KIND_SECRET, &NAME);
    put("{\"a\":\"MQ==\"}");
    ck_assert_int_lt(change(read, &err), 0);
    ck_assert_pstr_eq(value("a"), "MQ==");
}

TEST(what_is_gone_is_a_conflict_that_names_it)
{
    const cJSON *read = now();
    struct error err = { 0 };

    fake_api_delete(api, &KIND_SECRET, &NAME);
    ck_assert_int_eq(change(read, &err), -ERROR_CONFLICT);
    ck_assert_str_eq(err.message, "Secret 'n/s' is gone");
}
