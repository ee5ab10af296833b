/* Deliveries without a broker: their messages, the Tasks that they wake, and the effect of requests of devices. */
#include "controller/registry/delivery.h"

#include <semaphore.h>
#include <string.h>

#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/runtime/metrics.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/fake_clock.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "controller/device/payload.h"
#include "controller/registry/delivery_plan.h"

#define DIGEST "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER "sha256:f123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define REQUEST "{\"app_name\":\"" DIGEST "\"}"
/* Three parts. */
#define BYTES ((int64_t)2 * 512000 + 7)
#define PARTS 3
#define MAX_PUBLISHED 64

static struct {
    struct fake_clock clock;
    struct deliveries *deliveries;
    struct {
        const char *channel, *payload;
    } published[MAX_PUBLISHED];
    size_t published_count;
    enum error_code away, unreadable;
    unsigned woken;
    sem_t wakes;
    bool confirmed;
} world;

static int read_part(void *ctx UNUSED, const char *digest, int64_t offset, void *ret, size_t len,
                     struct error *err)
{
    if (world.unreadable)
        return error_set(err, world.unreadable, "no %s", digest);
    ck_assert_int_le(offset + (int64_t)len, BYTES);
    memset(ret, 'a' + (int)(offset / (int64_t)PAYLOAD_PART_BYTES), len);
    return 0;
}

static int publish(void *ctx UNUSED, const char *channel, const void *payload, size_t len,
                   struct error *err)
{
    fake_clock_advance(&world.clock, 1);
    if (world.away)
        return error_set(err, world.away, "away");
    ck_assert_uint_lt(world.published_count, MAX_PUBLISHED);
    world.published[world.published_count].channel = arena_strdup(arena, channel);
    world.published[world.published_count++].payload = arena_strndup(arena, payload, len);
    return 0;
}

static bool is_unconfirmed(void *ctx UNUSED, const char *key UNUSED, int64_t attempt UNUSED)
{
    return !world.confirmed;
}

static void wake(void *ctx UNUSED, const struct kube_name *task UNUSED, uint32_t delay_ms UNUSED)
{
    world.woken++;
    sem_post(&world.wakes);
}

static void set_up(void)
{
    const struct deliveries_host host = { .clock = &world.clock.clock,
                                          .bytes_per_s = 1 << 30,
                                          .read = read_part,
                                          .publish = publish,
                                          .is_unconfirmed = is_unconfirmed,
                                          .wake = wake };

    arena_set_up();
    memset(&world, 0, sizeof(world));
    fake_clock_init(&world.clock);
    sem_init(&world.wakes, 0, 0);
    world.deliveries = deliveries_create(&host);
}

static void tear_down(void)
{
    deliveries_destroy(world.deliveries);
    sem_destroy(&world.wakes);
    arena_tear_down();
}

/* Sends what there is to send now. */
static void run(void)
{
    for (int i = 0; i < MAX_PUBLISHED; i++) {
        int64_t ms = deliveries_step(world.deliveries);

        if (ms > 2)
            return;
        fake_clock_advance(&world.clock, ms ? ms : 1);
    }
}

static void wait_ms(int64_t ms)
{
    fake_clock_advance(&world.clock, ms);
}

static struct delivery_wish wish_of(const char *key, const char *client)
{
    struct delivery_wish wish = { .key = key,
                                  .attempt = 1,
                                  .channel = "d/c",
                                  .digest = DIGEST,
                                  .bytes = BYTES,
                                  .client_id = client };

    ck_assert(kube_name_set(&wish.task, "default", "one"));
    return wish;
}

static enum delivery_state want(const char *key, const char *client, bool claims)
{
    const struct delivery_wish wish = wish_of(key, client);
    int64_t after_ms;

    return deliveries_want(world.deliveries, &wish, claims, &after_ms);
}

/* Waits, is served, and starts. */
static void start(const char *key, const char *client)
{
    if (want(key, client, false) != DELIVERY_REACHED) {
        run();
        wait_ms(DELIVERY_SETTLE_MS);
    }
    ck_assert_int_eq(want(key, client, true), DELIVERY_REACHED);
}

static void request(const char *text)
{
    deliveries_request(world.deliveries, "d/c", text, strlen(text));
}

static int64_t counted(const char *result)
{
    struct buf text = BUF_INIT(METRICS_MAX_TEXT);
    const char *line;
    int64_t ret = -1;

    ck_assert(metrics_write(&text));
    line = strstr(buf_string(&text),
                  arena_printf(arena, "propeller_module_requests_total{result=\"%s\"} ", result));
    if (line) {
        line = strchr(line, ' ') + 1;
        ck_assert(str_to_int64(arena_strndup(arena, line, strcspn(line, "\n")), &ret));
    }
    buf_release(&text);
    return ret;
}

TEST_GROUP("delivery", set_up, tear_down);

TEST(every_part_has_its_place_and_its_bytes)
{
    char *bytes;
    size_t len;

    ck_assert_int_eq(want("u", "device-1", false), DELIVERY_WAITS);
    run();
    ck_assert_uint_eq(world.published_count, PARTS);
    for (size_t i = 0; i < PARTS; i++) {
        const cJSON *part = parsed(arena, world.published[i].payload);
        const char *data = json_string(json_get(part, "data"), "");

        ck_assert_str_eq(world.published[i].channel, "d/c");
        ck_assert_str_eq(json_string(json_get(part, "app_name"), ""), DIGEST);
        ck_assert_int_eq(json_int(json_get(part, "chunk_idx"), -1), (int64_t)i);
        ck_assert_int_eq(json_int(json_get(part, "total_chunks"), -1), PARTS);
        bytes = base64_decode(arena, data, strlen(data), &len);
        ck_assert_uint_eq(len, i + 1 < PARTS ? PAYLOAD_PART_BYTES : 7);
        ck_assert_int_eq(bytes[0], 'a' + (int)i);
        ck_assert_int_eq(bytes[len - 1], 'a' + (int)i);
    }
}

TEST(start_waits_for_the_last_part_and_a_moment_more)
{
    const struct delivery_wish wish = wish_of("u", "device-1");
    int64_t after_ms;

    ck_assert_int_eq(want("u", "device-1", true), DELIVERY_WAITS);
    for (int i = 0; i < PARTS; i++) {
        ck_assert_int_eq(want("u", "device-1", true), DELIVERY_WAITS);
        ck_assert_uint_eq(world.woken, 0);
        ck_assert_int_eq(deliveries_step(world.deliveries), 0);
        wait_ms(1);
    }
    ck_assert_uint_eq(world.woken, 1);
    ck_assert_int_eq(deliveries_want(world.deliveries, &wish, true, &after_ms), DELIVERY_WAITS);
    ck_assert_int_le(after_ms, DELIVERY_SETTLE_MS);
    wait_ms(after_ms);
    ck_assert_int_eq(want("u", "device-1", true), DELIVERY_REACHED);
}

TEST(hundred_devices_that_wait_have_one_pass)
{
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(
            want(arena_printf(arena, "u%d", i), arena_printf(arena, "device-%d", i), false),
            DELIVERY_WAITS);
    run();
    wait_ms(DELIVERY_SETTLE_MS);
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(
            want(arena_printf(arena, "u%d", i), arena_printf(arena, "device-%d", i), true),
            DELIVERY_REACHED);
    run();
    ck_assert_uint_eq(world.published_count, PARTS);
}

TEST(two_tasks_of_one_device_have_a_pass_each)
{
    ck_assert_int_eq(want("u1", "device-1", false), DELIVERY_WAITS);
    ck_assert_int_eq(want("u2", "device-1", false), DELIVERY_WAITS);
    run();
    wait_ms(DELIVERY_SETTLE_MS);
    ck_assert_int_eq(want("u1", "device-1", true), DELIVERY_REACHED);
    ck_assert_int_eq(want("u2", "device-1", true), DELIVERY_WAITS);
    wait_ms(1);
    run();
    wait_ms(DELIVERY_SETTLE_MS);
    ck_assert_int_eq(want("u2", "device-1", true), DELIVERY_REACHED);
    ck_assert_uint_eq(world.published_count, 2 * PARTS);
}

TEST(start_that_is_repeated_waits_for_another_pass)
{
    start("u", "device-1");
    wait_ms(1);
    ck_assert_int_eq(want("u", "device-1", true), DELIVERY_WAITS);
    run();
    wait_ms(DELIVERY_SETTLE_MS);
    ck_assert_int_eq(want("u", "device-1", true), DELIVERY_REACHED);
    ck_assert_uint_eq(world.published_count, 2 * PARTS);
}

TEST(device_that_heard_an_earlier_pass_starts_at_once)
{
    start("u1", "device-1");
    wait_ms(100000);
    ck_assert_int_eq(want("u2", "device-2", true), DELIVERY_REACHED);
    wait_ms(DELIVERY_KEPT_MS);
    ck_assert_int_eq(want("u3", "device-3", true), DELIVERY_WAITS); /* it has forgotten it */
}

TEST(device_that_just_became_running_has_parts_after_that_only)
{
    struct delivery_wish wish = wish_of("u", "device-2");
    int64_t after_ms;

    start("u1", "device-1");
    wish.fresh_ms = clock_monotonic_ms(&world.clock.clock);
    ck_assert_int_eq(deliveries_want(world.deliveries, &wish, true, &after_ms), DELIVERY_WAITS);
    run();
    ck_assert_uint_eq(world.published_count, PARTS);
    wait_ms(DELIVERY_SUBSCRIBED_MS + 1);
    run();
    ck_assert_uint_eq(world.published_count, 2 * PARTS);
}

/* Each time its Task waits no more, and then again. */
TEST(device_that_comes_up_again_and_again_causes_two_passes)
{
    struct delivery_wish wish = wish_of("u", "device-1");
    int64_t after_ms;

    ck_assert_int_eq(want("u", "device-1", true), DELIVERY_WAITS);
    for (int i = 0; i < 10; i++) {
        run();
        deliveries_drop(world.deliveries, "u", false);
        wait_ms(1000);
        wish.fresh_ms = clock_monotonic_ms(&world.clock.clock);
        (void)deliveries_want(world.deliveries, &wish, false, &after_ms);
        wait_ms(DELIVERY_SUBSCRIBED_MS + 1);
    }
    run();
    ck_assert_uint_eq(world.published_count, 3 * PARTS);
    wait_ms(DELIVERY_SETTLE_MS);
    ck_assert_int_eq(deliveries_want(world.deliveries, &wish, true, &after_ms), DELIVERY_REACHED);
    request(REQUEST); /* the two are used */
    ck_assert_int_eq(counted("limited"), 1);

    wish.attempt = 2;
    wish.fresh_ms = clock_monotonic_ms(&world.clock.clock);
    ck_assert_int_eq(deliveries_want(world.deliveries, &wish, true, &after_ms), DELIVERY_WAITS);
}

TEST(nothing_is_sent_while_the_broker_is_away_and_all_of_it_afterwards)
{
    ck_assert_int_eq(want("u", "device-1", false), DELIVERY_WAITS);
    world.away = ERROR_UNAVAILABLE;
    for (int i = 0; i < 400; i++)
        wait_ms(deliveries_step(world.deliveries));
    ck_assert_uint_eq(world.published_count, 0);
    world.away = ERROR_NONE;
    run();
    wait_ms(DELIVERY_SETTLE_MS);
    ck_assert_int_eq(want("u", "device-1", true), DELIVERY_REACHED);
    ck_assert_uint_eq(world.published_count, PARTS);
}

TEST(part_that_was_not_acknowledged_does_not_count)
{
    ck_assert_int_eq(want("u", "device-1", false), DELIVERY_WAITS);
    ck_assert_int_eq(deliveries_step(world.deliveries), 0);
    world.away = ERROR_TIMEOUT;
    ck_assert_int_gt(deliveries_step(world.deliveries), 0);
    ck_assert_int_eq(want("u", "device-1", true), DELIVERY_WAITS);
    world.away = ERROR_NONE;
    run();
    ck_assert_uint_eq(world.published_count, PARTS);
}

TEST(pass_that_is_too_slow_fails_its_attempt)
{
    ck_assert_int_eq(want("u", "device-1", false), DELIVERY_WAITS);
    ck_assert_int_eq(deliveries_step(world.deliveries), 0);
    wait_ms(DELIVERY_KEPT_MS + 1);
    ck_assert_int_eq(deliveries_step(world.deliveries), 0);
    ck_assert_uint_eq(world.woken, 1);
    (void)deliveries_step(world.deliveries);
    ck_assert_int_eq(want("u", "device-1", true), DELIVERY_TOO_SLOW);
    ck_assert_int_eq(want("u", "device-1", true), DELIVERY_WAITS); /* the next attempt */
}

TEST(nothing_is_sent_for_those_that_wait_no_more)
{
    ck_assert_int_eq(want("u", "device-1", false), DELIVERY_WAITS);
    ck_assert_int_eq(want("u/3", "device-2", false), DELIVERY_WAITS);
    ck_assert_int_eq(want("u4", "device-3", false), DELIVERY_WAITS);
    deliveries_drop(world.deliveries, "u4", true);
    deliveries_drop(world.deliveries, "u", false);
    run();
    ck_assert_uint_eq(world.published_count, 0);
}

TEST(module_that_is_gone_is_asked_for_again)
{
    ck_assert_int_eq(want("u", "device-1", false), DELIVERY_WAITS);
    world.unreadable = ERROR_NOT_FOUND;
    (void)deliveries_step(world.deliveries);
    ck_assert_uint_eq(world.woken, 1);
    world.unreadable = ERROR_NONE;
    run();
    ck_assert_uint_eq(world.published_count, 0);
    ck_assert_int_eq(want("u", "device-1", false), DELIVERY_WAITS);
    run();
    ck_assert_uint_eq(world.published_count, PARTS);
}

TEST(rate_holds_for_a_channel_and_not_for_others)
{
    const struct deliveries_host host = { .clock = &world.clock.clock,
                                          .bytes_per_s = 512000,
                                          .read = read_part,
                                          .publish = publish,
                                          .is_unconfirmed = is_unconfirmed,
                                          .wake = wake };
    struct delivery_wish wish = wish_of("u2", "device-9");
    int64_t after_ms;

    deliveries_destroy(world.deliveries);
    world.deliveries = deliveries_create(&host);
    wish.channel = "d/other";
    ck_assert_int_eq(want("u", "device-1", false), DELIVERY_WAITS);
    wish.digest = DIGEST;
    ck_assert_int_eq(deliveries_want(world.deliveries, &wish, false, &after_ms), DELIVERY_WAITS);
    run();
    ck_assert_uint_eq(world.published_count, 2);
    ck_assert_str_ne(world.published[0].channel, world.published[1].channel);
    wait_ms(990);
    run();
    ck_assert_uint_le(world.published_count, 3);
    wait_ms(20);
    run();
    ck_assert_uint_eq(world.published_count, 4);
}

/* In turns, all of them would end late, and none within the time that devices keep its beginning. */
TEST(module_is_sent_to_its_end_before_the_next_one_of_its_channel)
{
    struct delivery_wish wish = wish_of("u2", "device-1");
    int64_t after_ms;

    wish.digest = OTHER;
    ck_assert_int_eq(want("u", "device-1", false), DELIVERY_WAITS);
    ck_assert_int_eq(deliveries_want(world.deliveries, &wish, false, &after_ms), DELIVERY_WAITS);
    run();
    ck_assert_uint_eq(world.published_count, 2 * PARTS);
    for (size_t i = 0; i < PARTS; i++)
        ck_assert_ptr_nonnull(strstr(world.published[i].payload, DIGEST));

    world.unreadable = ERROR_UNAVAILABLE; /* of the first one: it does not hold up the other */
    wait_ms(DELIVERY_KEPT_MS);
    (void)deliveries_step(world.deliveries);
    world.unreadable = ERROR_NONE;
    (void)deliveries_step(world.deliveries);
    ck_assert_ptr_nonnull(strstr(world.published[2 * PARTS].payload, OTHER));
}

/* --- requests --- */

TEST(request_of_a_device_that_lacks_parts_is_served_after_seven_seconds)
{
    start("u", "device-1");
    wait_ms(5);
    request(REQUEST);
    wait_ms(DELIVERY_REQUEST_MS - 20);
    run();
    ck_assert_uint_eq(world.published_count, PARTS);
    wait_ms(20);
    run();
    ck_assert_uint_eq(world.published_count, 2 * PARTS);
    ck_assert_int_eq(counted("served"), 1);
    run();
    ck_assert_uint_eq(world.published_count, 2 * PARTS);
}

TEST(request_of_a_device_that_started_causes_nothing)
{
    start("u", "device-1");
    wait_ms(5);
    request(REQUEST);
    world.confirmed = true;
    wait_ms(DELIVERY_REQUEST_MS);
    run();
    ck_assert_uint_eq(world.published_count, PARTS);
    ck_assert_int_eq(counted("confirmed"), 1);
}

TEST(attempt_gets_two_more_passes_at_most)
{
    start("u", "device-1");
    for (int i = 0; i < 5; i++) {
        wait_ms(5);
        for (int j = 0; j < 10000; j++)
            request(REQUEST);
        wait_ms(DELIVERY_REQUEST_MS);
        run();
    }
    ck_assert_uint_eq(world.published_count, 3 * PARTS);
    ck_assert_int_eq(counted("served"), 20000);
    ck_assert_int_eq(counted("limited"), 30000);
}

static const struct {
    const char *text;
    const char *result;
} IDLE[] = {
    { "{\"app_name\":\"" OTHER "\"}", "unknown" },
    { "{\"app_name\":\"registry.example/acme/add:1\"}", "unknown" },
    { "{\"app_name\":\"../../x\\u0000\"}", "malformed" },
    { "{\"app_name\":\"\"}", "malformed" },
    { "{\"app_name\":7}", "malformed" },
    { "{}", "malformed" },
    { "[", "malformed" },
    { "", "malformed" },
};

TEST_EACH(other_requests_cause_nothing, IDLE)
{
    start("u", "device-1");
    request(IDLE[_i].text);
    wait_ms(DELIVERY_REQUEST_MS + 5);
    run();
    ck_assert_uint_eq(world.published_count, PARTS);
    ck_assert_int_eq(counted(IDLE[_i].result), 1);
}

TEST(request_before_a_start_causes_nothing)
{
    ck_assert_int_eq(want("u", "device-1", false), DELIVERY_WAITS);
    request(REQUEST);
    ck_assert_int_eq(counted("unknown"), 1);
}

TEST(request_for_an_attempt_that_ended_causes_nothing)
{
    start("u", "device-1");
    wait_ms(5);
    request(REQUEST);
    deliveries_drop(world.deliveries, "u", true);
    wait_ms(DELIVERY_REQUEST_MS);
    run();
    ck_assert_uint_eq(world.published_count, PARTS);
}

TEST(memory_of_deliveries_is_limited)
{
    struct delivery_wish wish = wish_of("u", "device-1");
    int64_t after_ms;

    for (int i = 0; i < DELIVERY_MAX; i++) {
        wish.channel = arena_printf(arena, "d/%d", i);
        wish.key = arena_printf(arena, "u%d", i);
        ck_assert_int_eq(deliveries_want(world.deliveries, &wish, false, &after_ms),
                         DELIVERY_WAITS);
    }
    wish.channel = "d/more";
    ck_assert_int_eq(deliveries_want(world.deliveries, &wish, false, &after_ms), DELIVERY_NO_ROOM);
    deliveries_drop(world.deliveries, "u7", true);
    ck_assert_int_eq(deliveries_want(world.deliveries, &wish, false, &after_ms), DELIVERY_WAITS);
    for (int i = 0; i + 1 < DELIVERY_MAX_WAITING; i++) {
        wish.key = arena_printf(arena, "m%d", i);
        ck_assert_int_eq(deliveries_want(world.deliveries, &wish, false, &after_ms),
                         DELIVERY_WAITS);
    }
    wish.key = "last";
    ck_assert_int_eq(deliveries_want(world.deliveries, &wish, false, &after_ms), DELIVERY_NO_ROOM);
}

/* The thread is woken by a wish, and wakes its Task when the last part is out. */
TEST(thread_sends_what_is_wanted_and_ends)
{
    struct error err = { 0 };

    ck_assert_int_eq(deliveries_start(world.deliveries, &err), 0);
    ck_assert_int_eq(want("u", "device-1", false), DELIVERY_WAITS);
    request(REQUEST);
    while (sem_wait(&world.wakes) < 0)
        continue;
    deliveries_stop(world.deliveries);
    ck_assert_uint_eq(world.published_count, PARTS);
    deliveries_stop(world.deliveries);
}
