/* The controller's client and caches on the API of the same process: everything is told once, in order, whatever the
 * clock says. */
#include <check.h>
#include <pthread.h>
#include <string.h>

#include "common/base/cond.h"
#include "common/base/str.h"
#include "common/kube/client.h"
#include "common/kube/kinds.h"
#include "common/kube/watch.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "standalone/server/in_process.h"
#include "standalone/tests/api_fixture.h"

#define PATIENCE_MS 60000
/* More than a page of a list, and than one stream has in its turn. */
#define MANY 250

static const struct kube_kind CONFIGMAP = {
    .group = "", .version = "v1", .kind = "ConfigMap", .plural = "configmaps", .namespaced = true
};

static struct in_process self;
static struct kube_in_process in_process;
static struct kube_config *config;
static struct watch_loop *loop;
static struct watch_machine *machine;

/* Events that the sink has received; guarded by the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static unsigned sets, applied, deleted, held;
static bool is_held; /* the sink waits */
static char newest[32];

static void sink(void *ctx UNUSED, enum watch_event_type type, struct kube_object *object UNUSED,
                 const char *version)
{
    pthread_mutex_lock(&lock);
    sets += type == WATCH_INIT_DONE;
    applied += type == WATCH_APPLY || type == WATCH_INIT_APPLY;
    deleted += type == WATCH_DELETE;
    if (version) { /* nothing is told twice, and nothing goes back */
        ck_assert(!*newest || kube_version_compare(version, newest) >= 0);
        ck_assert(str_copy(newest, sizeof(newest), version));
    }
    held += is_held;
    pthread_cond_broadcast(&changed);
    while (is_held)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void await(const unsigned *count, unsigned at_least)
{
    const struct timespec deadline = cond_deadline(PATIENCE_MS);

    pthread_mutex_lock(&lock);
    while (*count < at_least)
        ck_assert_msg(cond_wait_until(&changed, &lock, &deadline), "%u of %u", *count, at_least);
    pthread_mutex_unlock(&lock);
}

static void hold(bool holds)
{
    pthread_mutex_lock(&lock);
    is_held = holds;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static int64_t (*set_wall_us)(void *ctx);

static void setup(void)
{
    const struct watch_options options = { .kind = &CONFIGMAP };

    api_wall_us = set_wall_us;
    api_setup();
    cond_init(&changed);
    self = (struct in_process){ .api = api,
                                .user = { .name = "controller", .role = ROLE_ADMIN },
                                .user_agent = "controller/1" };
    in_process = in_process_of(&self);
    config = kube_config_create_in_process(&in_process);
    loop = watch_loop_create(config);
    machine = watch_machine_create(&options, sink, NULL);
    watch_loop_add(loop, machine);
}

static void start(void)
{
    struct error err;

    ck_assert_int_eq(watch_loop_start(loop, &err), 0);
}

/* With streams that are open: api_destroy, in api_teardown, wants none to be left. */
static void teardown(void)
{
    watch_loop_stop(loop);
    watch_loop_destroy(loop);
    watch_machine_destroy(machine);
    kube_config_destroy(config);
    api_teardown();
}

static void make(int i)
{
    (void)ask("POST", CONFIGMAPS, arena_printf(test_arena, "{\"metadata\":{\"name\":\"c%d\"}}", i),
              201);
}

/* Many of these are more than a watch that is not read holds. */
static void make_large(int i)
{
    char data[16384] = "";

    memset(data, 'x', sizeof(data) - 1);
    (void)ask("POST", CONFIGMAPS,
              arena_printf(test_arena, "{\"metadata\":{\"name\":\"c%d\"},\"data\":{\"d\":\"%s\"}}",
                           i, data),
              201);
}

TEST_GROUP("all", setup, teardown);

TEST(all_pages_and_every_change_are_told_once)
{
    for (int i = 0; i < MANY; i++)
        make(i);
    start();
    await(&sets, 1);
    ck_assert_uint_eq(applied, MANY);
    for (int i = MANY; i < 2 * MANY; i++)
        make(i);
    for (int i = 0; i < MANY; i++)
        (void)ask("DELETE", arena_printf(test_arena, CONFIGMAPS "/c%d", i), "", 200);
    await(&deleted, MANY);
    ck_assert_uint_eq(applied, 2 * MANY);
    ck_assert_uint_eq(deleted, MANY);
    ck_assert_uint_eq(sets, 1);
}

/* --- what fell behind ------------------------------------------------------------------------- */

static void setup_forgetful(void)
{
    api_history = 20;
    setup();
}

TEST_GROUP("forgetful", setup_forgetful, teardown);

TEST(who_is_behind_the_history_lists_again)
{
    start();
    await(&sets, 1);
    hold(true);
    make(0);
    await(&held, 1);
    for (int i = 1; i < MANY; i++)
        make_large(i);
    kv_fixture_await_compacted(100);
    hold(false);
    await(&sets, 2);
    await(&applied, MANY);
}

/* --- requests, under clocks that are wrong ---------------------------------------------------- */

#define YEAR_US (INT64_C(365) * 24 * 60 * 60 * 1000000)

static int64_t a_year_behind(void *ctx UNUSED)
{
    return clock_wall_us(&CLOCK_SYSTEM) - YEAR_US;
}

static int64_t a_year_ahead(void *ctx UNUSED)
{
    return clock_wall_us(&CLOCK_SYSTEM) + YEAR_US;
}

static int64_t (*const CLOCKS[])(void *ctx) = { NULL, a_year_behind, a_year_ahead };

TEST_GROUP("clocks", NULL, teardown);

TEST_EACH(its_requests_work_whatever_the_clock_says, CLOCKS)
{
    struct kube_name name = { .ns = "default", .name = "c" };
    cJSON *made = NULL;
    struct kube_client *client;
    struct error err;
    const cJSON *object;

    set_wall_us = CLOCKS[_i];
    setup();
    client = kube_client_create(config, 0);
    object =
        parsed(test_arena, "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{"
                           "\"name\":\"c\",\"namespace\":\"default\"},\"data\":{\"a\":\"b\"}}");
    ck_assert_int_eq(kube_create(client, test_arena, &CONFIGMAP, object, NULL, &err), 0);
    ck_assert_int_eq(kube_create(client, test_arena, &CONFIGMAP, object, NULL, &err),
                     -ERROR_EXISTS);
    ck_assert_int_eq(kube_get(client, test_arena, &CONFIGMAP, &name, &made, &err), 0);
    (void)ask("GET", CONFIGMAPS "/c", "", 200);
    ck_assert_ptr_nonnull(strstr(api_answer.body, "\"manager\":\"controller\""));
    start();
    await(&sets, 1);
    ck_assert_uint_eq(applied, 1);
    kube_client_cancel(client);
    ck_assert_int_eq(kube_get(client, test_arena, &CONFIGMAP, &name, NULL, &err), -ERROR_CANCELED);
    kube_client_destroy(client);
}
