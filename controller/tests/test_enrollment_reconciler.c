/* Enrollments on an API server in memory: what is written and created, and what single failures change. */
#include "controller/enrollment/enrollment.h"

#include <string.h>

#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/log.h"
#include "common/kube/conditions.h"
#include "common/tests/fake_clock.h"
#include "common/tests/observe.h"
#include "common/tests/parsed.h"
#include "controller/device/messages.h"
#include "controller/tests/fake_bridge.h"
#include "controller/tests/staged.h"

#define NAME "lab"
#define SPEC "\"domainId\":\"d\",\"channelPerDevice\":true,\"mqttAddress\":\"tcp://b\""
#define AUTOMATIC                                                                                  \
    SPEC ",\"approval\":\"Automatic\",\"maxProplets\":12,\"match\":{\"clientIdPrefix\":\"s\"}"

static const struct kube_kind *const KINDS[] = { &KIND_ENROLLMENT, &KIND_PROPLET };

static struct arena *arena;
static struct fake_api *api;
static struct fake_clock wall;
static struct kube_config *config;
static struct controller_settings settings;
static struct {
    struct watch_loop *loop;
    struct kube_client *client;
    struct enrollment_deps deps;
    struct workqueue *queue;
} process;
static bool dead, forbidden;
static unsigned steps, fail_at, creations;
static enum fault fault;
static uint32_t again_ms;

static struct informer *informer_of(const struct kube_kind *kind)
{
    return kind == &KIND_ENROLLMENT ? process.deps.enrollments : process.deps.proplets;
}

static const struct kube_kind *kind_of(const cJSON *object)
{
    bool is_own = str_equal(json_string(json_get(object, "kind"), ""), "Enrollment");

    return is_own ? &KIND_ENROLLMENT : &KIND_PROPLET;
}

static void on_kind(void *ctx, struct kube_object *old, struct kube_object *current)
{
    const struct staged staged = { &KIND_ENROLLMENT, &process.deps, process.queue };

    staged_changed(&staged, 1, ctx, old, current);
}

static void bring(const cJSON *object)
{
    cJSON *reply = json_copy(object);

    informer_observed(informer_of(kind_of(object)), reply);
    json_free(reply);
}

static void on_change(void *ctx UNUSED, const cJSON *old UNUSED, const cJSON *current)
{
    if (!dead && current)
        bring(current);
}

static int roundtrip(void *ctx, struct arena *scratch, const struct http_request *request,
                     struct http_response *ret, struct error *err)
{
    static const char REFUSAL[] = "{\"kind\":\"Status\",\"code\":403,\"reason\":\"Forbidden\","
                                  "\"message\":\"proplets is forbidden\"}";

    if (dead)
        return error_set(err, ERROR_UNAVAILABLE, "dead");
    if (str_equal(request->method, "POST")) {
        creations++;
        ck_assert_ptr_null(strstr(request->path, "secrets"));
    }
    if (forbidden && str_equal(request->method, "POST")) {
        *ret = (struct http_response){ .status = 403,
                                       .body = REFUSAL,
                                       .body_len = sizeof(REFUSAL) - 1 };
        return 0;
    }
    if (++steps == fail_at)
        return staged_failure(fault, &dead, ctx, scratch, request, ret, err);
    return fake_api_roundtrip(ctx, scratch, request, ret, err);
}

static struct informer *make_informer(const struct kube_kind *kind)
{
    struct informer *informer = staged_cache(process.loop, kind);

    informer_subscribe(informer, on_kind, (void *)(uintptr_t)kind);
    return informer;
}

static int on_item(void *ctx UNUSED, const cJSON *item, struct error *err UNUSED)
{
    bring(item);
    return 0;
}

static void start_process(void)
{
    const struct kube_list_options all = { 0 };
    struct error err = { 0 };

    dead = false;
    process.loop = watch_loop_create(config);
    process.client = kube_client_create_with(roundtrip, api);
    process.queue = workqueue_create("enrollment", &wall.clock);
    process.deps = (struct enrollment_deps){ .settings = &settings,
                                             .timeline = timeline_create(&wall.clock),
                                             .fleet = fleet_create(),
                                             .bridge = (struct bridge *)&process,
                                             .budget = refresh_budget_create(),
                                             .notes = enrollment_notes_create() };
    process.deps.enrollments = make_informer(&KIND_ENROLLMENT);
    process.deps.proplets = make_informer(&KIND_PROPLET);

    struct kube_client *other = kube_client_create_with(fake_api_roundtrip, api);
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++)
        ck_assert_int_eq(kube_list(other, KINDS[i], &all, on_item, NULL, &err), 0);
    kube_client_destroy(other);
}

static void end_process(void)
{
    watch_loop_destroy(process.loop);
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++)
        informer_destroy(informer_of(KINDS[i]));
    kube_client_destroy(process.client);
    workqueue_destroy(process.queue);
    timeline_destroy(process.deps.timeline);
    fleet_destroy(process.deps.fleet);
    refresh_budget_destroy(process.deps.budget);
    enrollment_notes_destroy(process.deps.notes);
}

static void set_up(void)
{
    json_init();
    log_configure(LOG_ERROR, LOG_TEXT);
    arena = arena_create();
    api = fake_api_create();
    fake_clock_init(&wall);
    fake_api_set_clock(api, &wall.clock);
    config = staged_config(arena);
    settings = (struct controller_settings){ .refresh = { .qps = 10 } };
    forbidden = false;
    steps = fail_at = creations = 0;
    outside_reset();
    stage.since_ms = 1;
    start_process();
    fake_api_on_change(api, on_change, NULL);
}

static void tear_down(void)
{
    end_process();
    kube_config_destroy(config);
    fake_api_destroy(api);
    arena_destroy(arena);
}

TEST_GROUP("enrollments", set_up, tear_down);

static void enroll(const char *name, const char *spec)
{
    staged_put(api, &KIND_ENROLLMENT, name, parsed(arena, arena_printf(arena, "{%s}", spec)), NULL);
}

static void hear(const char *client_id)
{
    (void)strangers_heard(fleet_strangers(process.deps.fleet),
                          arena_printf(arena, "d/%s", client_id), client_id,
                          clock_monotonic_ms(&wall.clock));
}

static int turn(const char *name)
{
    CLEANUP(arena_destroyp) struct arena *scratch = arena_create();
    struct reconcile rc = {
        .name = staged_name(name), .arena = scratch, .client = process.client, .clock = &wall.clock
    };
    struct error err = { 0 };
    int r = enrollment_reconcile(&process.deps, &rc, &err);

    again_ms = rc.requeue_after_ms;
    return r;
}

/* Reconciles until one succeeds and wants no other one at once. */
static void settle(void)
{
    int tries = 0;

    do {
        if (dead) {
            end_process();
            start_process();
            hear("s-1");
        }
        ck_assert_int_lt(++tries, 20);
    } while (turn(NAME) < 0 || dead || (again_ms && again_ms <= 1));
}

static const cJSON *status(const char *name, const char *member)
{
    const struct kube_name key = staged_name(name);

    return json_path(fake_api_get(api, arena, &KIND_ENROLLMENT, &key), "status", member, NULL);
}

static const char *reason(const char *name)
{
    return json_string(json_get(condition_get(status(name, "conditions"), "Ready"), "reason"), "");
}

static const cJSON *proplet(const char *name)
{
    const struct kube_name key = staged_name(name);

    return fake_api_get(api, arena, &KIND_PROPLET, &key);
}

TEST(stranger_is_listed_and_its_proplet_ends_that)
{
    enroll(NAME, SPEC);
    hear("s-1");
    (void)fleet_metadata(process.deps.fleet, "d/s-1/s-1", "{\"os\":\"linux\"}", false,
                         clock_monotonic_ms(&wall.clock));
    settle();
    ck_assert_str_eq(reason(NAME), "Listening");
    ck_assert_str_eq(
        json_string(json_path(json_first(status(NAME, "pending")), "metadata", "os", NULL), ""),
        "linux");
    ck_metric("propeller_enrollment_pending 1");
    unsigned before = steps;
    settle();
    ck_assert_uint_eq(steps, before);

    staged_put(api, &KIND_PROPLET, "p",
               parsed(arena, "{\"type\":\"external\",\"connectionConfig\":{\"domainId\":\"d\","
                             "\"channelId\":\"s-1\",\"clientId\":\"s-1\"}}"),
               NULL);
    ck_assert_uint_ge(workqueue_len(process.queue), 1);
    settle();
    ck_assert_uint_eq(json_len(status(NAME, "pending")), 0);
    ck_metric("propeller_enrollment_pending 0");
}

TEST(device_that_comes_and_goes_costs_few_writes_and_appears_at_last)
{
    static const char *const SAID[] = { "{\"tags\":[\"lab\"]}", "{\"tags\":[\"other\"]}" };
    unsigned before;

    enroll(NAME, SPEC ",\"match\":{\"tags\":[\"lab\"]}");
    settle();
    before = steps;
    for (int second = 0; second <= 1000; second++) {
        hear("s-1");
        (void)fleet_metadata(process.deps.fleet, "d/s-1/s-1", SAID[second % 2], false,
                             clock_monotonic_ms(&wall.clock));
        settle();
        fake_clock_advance(&wall, 1000);
    }
    ck_assert_uint_ge(steps - before, 60); /* a fleet that starts is listed at once */
    ck_assert_uint_le(steps - before, 60 + 1000 / 10 + 1);

    while (!json_len(status(NAME, "pending"))) {
        ck_assert_uint_gt(again_ms, 0);
        ck_assert_uint_le(again_ms, 10000);
        fake_clock_advance(&wall, again_ms);
        settle();
    }
}

TEST(later_enrollment_of_a_channel_waits_for_the_older_one)
{
    enroll(NAME, SPEC);
    fake_clock_advance(&wall, 5000);
    enroll("younger", SPEC);
    hear("s-1");
    settle();
    ck_assert_int_eq(turn("younger"), 0);
    ck_assert_str_eq(reason(NAME), "Listening");
    ck_assert_str_eq(reason("younger"), "Conflict");
    ck_assert_uint_eq(json_len(status("younger", "pending")), 0);
}

TEST(outage_of_the_broker_is_reported_after_ten_seconds)
{
    enroll(NAME, SPEC);
    settle();
    outside.away = true;
    ck_assert_int_eq(turn(NAME), 0);
    ck_assert_str_eq(reason(NAME), "Listening");
    ck_assert_uint_le(again_ms, 10001);
    fake_clock_advance(&wall, 10001);
    ck_assert_int_eq(turn(NAME), 0);
    ck_assert_str_eq(reason(NAME), "BrokerUnavailable");
    outside.away = false;
    ck_assert_int_eq(turn(NAME), 0);
    ck_assert_str_eq(reason(NAME), "Listening");
}

TEST(automatic_creates_proplets_without_any_key)
{
    enroll(NAME, AUTOMATIC ",\"template\":{\"namePrefix\":\"lab-\",\"labels\":{\"site\":\"x\"},"
                           "\"external\":{\"deviceType\":\"t\"}}");
    hear("s-1");
    settle();
    const cJSON *made = proplet("lab-s-1");
    const cJSON *connection = json_path(made, "spec", "connectionConfig", NULL);
    ck_assert_str_eq(json_text(arena, connection, NULL),
                     "{\"mqttAddress\":\"tcp://b\",\"domainId\":\"d\",\"channelId\":\"s-1\","
                     "\"clientId\":\"s-1\",\"clientKeySecretRef\":{\"name\":\"lab-s-1-key\","
                     "\"key\":\"clientKey\",\"optional\":true}}");
    ck_assert_str_eq(json_string(json_path(made, "metadata", "labels", LABEL_ENROLLMENT, NULL), ""),
                     NAME);
    ck_assert_int_eq(json_int(status(NAME, "enrolledCount"), 0), 1);
    ck_assert_uint_eq(json_len(status(NAME, "pending")), 0);
    ck_assert_uint_eq(creations, 1);
}

TEST(automatic_obeys_its_rate_and_its_limit)
{
    enroll(NAME, AUTOMATIC);
    for (int i = 0; i < 30; i++)
        hear(arena_printf(arena, "s-%d", i));
    settle();
    ck_assert_uint_eq(creations, 10);
    fake_clock_advance(&wall, 59000);
    settle();
    ck_assert_uint_eq(creations, 10);
    fake_clock_advance(&wall, 2000);
    settle();
    ck_assert_uint_eq(creations, 12);
    fake_clock_advance(&wall, 120000);
    settle();
    ck_assert_uint_eq(creations, 12);
    ck_assert_int_eq(json_int(status(NAME, "pendingCount"), 0), 18);
}

/* Times of creation are those of the API server. */
TEST(automatic_obeys_its_rate_also_if_the_clock_of_the_api_server_is_behind)
{
    struct fake_clock behind;

    fake_clock_init(&behind);
    fake_api_set_clock(api, &behind.clock);
    fake_clock_advance(&wall, 120000);
    enroll(NAME, AUTOMATIC);
    for (int i = 0; i < 30; i++)
        hear(arena_printf(arena, "s-%d", i));
    settle();
    ck_assert_uint_eq(creations, 10);
    ck_assert_uint_gt(again_ms, 59000);
    fake_clock_advance(&wall, 60000);
    settle();
    ck_assert_uint_eq(creations, 12);
}

TEST(devices_are_listed_also_while_no_proplet_can_be_created)
{
    enroll(NAME, AUTOMATIC);
    settle();
    hear("s-1");
    for (int tries = 0; tries < 3; tries++) {
        fake_api_fail(api, 1, FAKE_SERVER_ERROR);
        ck_assert_int_lt(turn(NAME), 0);
    }
    ck_assert_int_eq(json_int(status(NAME, "pendingCount"), 0), 1);
}

TEST(missing_right_is_reported_and_tried_again_in_a_minute)
{
    enroll(NAME, AUTOMATIC);
    hear("s-1");
    hear("s-2");
    forbidden = true;
    settle();
    ck_assert_str_eq(reason(NAME), "NotAllowed");
    ck_assert_uint_eq(creations, 1);
    settle();
    ck_assert_uint_eq(creations, 1);
    ck_assert_uint_le(again_ms, 60000);
    forbidden = false;
    fake_clock_advance(&wall, 60000);
    settle();
    ck_assert_str_eq(reason(NAME), "Listening");
    ck_assert_uint_eq(creations, 3);
}

TEST(enrollment_that_is_deleted_leaves_no_devices_in_the_metric)
{
    enroll(NAME, SPEC);
    hear("s-1");
    settle();
    const struct kube_name key = staged_name(NAME);
    CLEANUP(kube_object_unrefp)
    struct kube_object *old =
        store_remove(informer_store(process.deps.enrollments), &key, "1000000");
    ck_assert_ptr_nonnull(old);
    ck_assert_int_eq(turn(NAME), 0);
    ck_metric("propeller_enrollment_pending 0");
}

TEST_TIMES(no_single_failure_changes_the_end, FAULTS)
{
    for (unsigned step = 1; step <= 3; step++) {
        if (step > 1) {
            tear_down();
            set_up();
        }
        fail_at = step;
        fault = (enum fault)_i;
        enroll(NAME, AUTOMATIC);
        hear("s-1");
        settle();
        fake_clock_advance(&wall, 61000);
        hear("s-1");
        settle();
        ck_assert_ptr_nonnull(proplet("s-1"));
        ck_assert_str_eq(reason(NAME), "Listening");
        ck_assert_int_eq(json_int(status(NAME, "enrolledCount"), 0), 1);
        ck_assert_uint_eq(json_len(status(NAME, "pending")), 0);
    }
}
