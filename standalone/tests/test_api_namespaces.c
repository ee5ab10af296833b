/* Objects that are created while their namespace goes: none is left behind in one that is gone. */
#include <check.h>
#include <pthread.h>
#include <string.h>

#include "common/base/str.h"
#include "standalone/tests/api_fixture.h"

#define NS "/api/v1/namespaces/passing"

static const char NAMESPACE[] = "{\"metadata\":{\"name\":\"passing\"}}";
static const char OBJECT[] =
    "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"late\"}}";

/* --- between the look at the namespace and the write, the API asks what time it is ------------- */

static void (*meanwhile)(void);
static pthread_t asking;
static int64_t (*fake_wall_us)(void *ctx);

static int64_t wall_us(void *ctx)
{
    /* the store's thread asks, too */
    if (pthread_equal(pthread_self(), asking) && meanwhile) {
        void (*now)(void) = meanwhile;

        meanwhile = NULL;
        now();
    }
    return fake_wall_us(ctx);
}

static void setup(void)
{
    struct fake_clock clock;

    fake_clock_init(&clock);
    fake_wall_us = clock.clock.wall_us;
    asking = pthread_self();
    api_wall_us = wall_us;
    api_setup();
    (void)ask("POST", "/api/v1/namespaces", NAMESPACE, 201);
}

static void teardown(void)
{
    api_teardown();
    meanwhile = NULL;
}

TEST_GROUP("all", setup, teardown);

static void delete_it(void)
{
    (void)ask("DELETE", NS, NULL, 200);
}

static void delete_it_and_wait(void)
{
    delete_it();
    await_gone(NS);
}

static void replace_it(void)
{
    delete_it_and_wait();
    (void)ask("POST", "/api/v1/namespaces", NAMESPACE, 201);
}

static void label_it(void)
{
    (void)ask_patch(NS, "merge-patch+json", "{\"metadata\":{\"labels\":{\"k\":\"v\"}}}", 200);
}

static size_t left_behind(void)
{
    return kv_fixture_count(kv_store.kv, "/registry/core/configmaps/passing/");
}

TEST(a_create_that_was_let_in_before_its_namespace_went_is_refused)
{
    api_collect();
    meanwhile = delete_it_and_wait;
    ck_assert_str_eq(refusal("POST", NS "/configmaps", OBJECT, 404),
                     "NotFound: namespaces \"passing\" not found");
    ck_assert_uint_eq(left_behind(), 0);
}

TEST(a_namespace_that_is_going_takes_nothing_new)
{
    meanwhile = delete_it;
    ck_assert(str_has_prefix(refusal("POST", NS "/configmaps", OBJECT, 403), "Forbidden: "));
    ck_assert_uint_eq(left_behind(), 0);
}

TEST(a_namespace_that_only_changed_is_in_nobodys_way)
{
    api_collect();
    meanwhile = label_it;
    (void)ask("POST", NS "/configmaps", OBJECT, 201);
    (void)ask("DELETE", NS "/configmaps/late", NULL, 200);
    meanwhile = replace_it;
    (void)ask("POST", NS "/configmaps", OBJECT, 201);
    ck_assert_uint_eq(left_behind(), 1);
}
