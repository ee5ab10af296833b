#include "bench/fleet/swarm.h"

#include <string.h>

#include "common/base/str.h"
#include "common/tests/parsed.h"
#include "common/tests/power.h"
#include "common/tests/suite.h"

#define BEGIN_MS INT64_C(1700000000000)

static struct arena *arena;
static struct swarm_settings settings;
static struct swarm *swarm;
static struct {
    size_t alive, create, metrics, samples, results, important;
    const cJSON *result; /* the last one */
    uint32_t device;
} said;

static void hear(void *ctx UNUSED, const struct swarm_message *message)
{
    const cJSON *json = parsed(arena, message->payload);

    ck_assert_uint_eq(strlen(message->payload), message->len);
    ck_assert_uint_eq(swarm_device_of(swarm, json_string(json_get(json, "proplet_id"), NULL)),
                      message->device);
    said.alive += str_equal(message->suffix, "alive");
    said.create += str_equal(message->suffix, "create");
    said.metrics += str_equal(message->suffix, "metrics");
    said.samples += str_equal(message->suffix, "task_metrics");
    said.important += message->important;
    if (str_equal(message->suffix, "results")) {
        said.results++;
        said.result = json;
        said.device = message->device;
    }
}

static void note(void *ctx UNUSED, uint32_t device UNUSED, const char *event UNUSED,
                 const char *id UNUSED)
{
}

static void begin(void)
{
    swarm = swarm_create(&settings, BEGIN_MS, hear, note, NULL);
}

static void set_up(void)
{
    json_init();
    arena = arena_create();
    settings = (struct swarm_settings){ .devices = 10,
                                        .prefix = "device",
                                        .alive_ms = 1000,
                                        .result_ms = 500,
                                        .result_bytes = 2,
                                        .max_ids = 100000,
                                        .seed = 1 };
    memset(&said, 0, sizeof(said));
    swarm = NULL;
}

static void tear_down(void)
{
    swarm_destroy(swarm);
    arena_destroy(arena);
}

TEST_GROUP("swarm", set_up, tear_down);

static void pass(int64_t ms)
{
    swarm_advance(swarm, BEGIN_MS + ms, SIZE_MAX);
}

static int start_at(int64_t ms, const char *id, const char *proplet)
{
    const char *text =
        arena_printf(arena, "{\"id\":\"%s\",\"name\":\"main\",\"proplet_id\":\"%s\"}", id, proplet);
    struct error err = { 0 };

    return swarm_start(swarm, BEGIN_MS + ms, text, strlen(text), &err);
}

static void start(const char *id)
{
    ck_assert_int_eq(start_at(0, id, "device-3"), 0);
}

static void stop(const char *id)
{
    const char *text = arena_printf(arena, "{\"id\":\"%s\",\"proplet_id\":\"device-3\"}", id);

    swarm_stop(swarm, text, strlen(text));
}

TEST(every_device_says_once_an_interval_that_it_is_alive)
{
    begin();
    pass(0);
    ck_assert_uint_eq(said.alive, 1);
    pass(499);
    ck_assert_uint_eq(said.alive, 5);
    ck_assert_int_eq(swarm_next_ms(swarm), BEGIN_MS + 500);
    pass(999);
    ck_assert_uint_eq(said.alive, 10);
    ck_assert_uint_eq(said.create, 10);
    pass(3999);
    ck_assert_uint_eq(said.alive, 40);
    ck_assert_uint_eq(said.create, 10);
    ck_assert_uint_eq(said.metrics, 0);
    ck_assert_uint_eq(swarm_counts(swarm).heartbeats, 40);
}

TEST(many_devices_are_spread_evenly_over_the_interval)
{
    settings.devices = (int64_t)power_count(10000, 20000, 100000);
    settings.alive_ms = 10000;
    settings.metrics_ms = 20000;
    begin();
    for (int64_t second = 0; second < 20; second++) {
        said.alive = said.metrics = 0;
        pass(second * 1000 + 999);
        ck_assert_uint_eq(said.alive, (size_t)settings.devices / 10);
        ck_assert_uint_eq(said.metrics, (size_t)settings.devices / 20);
    }
}

TEST(start_is_answered_after_the_delay_by_the_device_that_it_is_for)
{
    begin();
    start("a");
    pass(499);
    ck_assert_uint_eq(said.results, 0);
    pass(500);
    ck_assert_uint_eq(said.results, 1);
    ck_assert_uint_eq(said.device, 3);
    ck_assert_uint_eq(said.important, 1);
    ck_assert_str_eq(json_string(json_get(said.result, "task_id"), ""), "a");
    ck_assert_str_eq(json_string(json_get(said.result, "results"), ""), "44");
    ck_assert(cJSON_IsNull(json_get(said.result, "error")));
    ck_assert_uint_eq(swarm_counts(swarm).ledger.answered, 1);
}

TEST(running_start_is_sampled_until_it_ends)
{
    settings.samples = true;
    settings.result_ms = 25000;
    begin();
    start("a");
    pass(99);
    ck_assert_uint_eq(said.samples, 0);
    pass(100);
    ck_assert_uint_eq(said.samples, 1);
    pass(24999);
    ck_assert_uint_eq(said.samples, 3);
    pass(60000);
    ck_assert_uint_eq(said.samples, 3);
    ck_assert_uint_eq(said.results, 1);
}

TEST(repeated_start_is_ignored_while_it_runs_and_runs_again_afterwards)
{
    begin();
    start("a");
    start("a");
    pass(10000);
    ck_assert_uint_eq(said.results, 1);
    ck_assert_int_eq(start_at(10000, "a", "device-3"), 0);
    pass(20000);
    ck_assert_uint_eq(said.results, 2);
    ck_assert_uint_eq(swarm_counts(swarm).ledger.repeated, 1);
    ck_assert_uint_eq(swarm_counts(swarm).ledger.answered, 1);
}

TEST(stop_answers_at_once_with_an_error_and_nothing_follows)
{
    begin();
    start("a");
    stop("a");
    ck_assert_uint_eq(said.results, 1);
    ck_assert_str_eq(json_string(json_get(said.result, "error"), ""),
                     "Task was cancelled or panicked");
    stop("a");
    stop("never started");
    pass(10000);
    ck_assert_uint_eq(said.results, 1);
    ck_assert_uint_eq(swarm_counts(swarm).ledger.stopped, 1);
}

static const char *const NOBODY[] = { "device-0",  "device-11", "device-03", "device-",
                                      "device-3x", "other-3",   "device-+3", "" };

TEST_EACH(start_for_somebody_else_is_counted_and_not_answered, NOBODY)
{
    begin();
    ck_assert_int_eq(start_at(0, "a", NOBODY[_i]), 0);
    pass(10000);
    ck_assert_uint_eq(said.results, 0);
    ck_assert_uint_eq(swarm_counts(swarm).unknown, 1);
}

static const char *const UNREADABLE[] = {
    "",
    "{",
    "[]",
    "{\"proplet_id\":\"device-3\"}",
    "{\"id\":\"\",\"proplet_id\":\"x\"}",
    "{\"id\":1}",
    "{\"id\":\"a\\\"b\",\"proplet_id\":\"device-3\"}",
};

TEST_EACH(start_that_cannot_be_read_is_counted, UNREADABLE)
{
    struct error err = { 0 };

    begin();
    ck_assert_int_eq(swarm_start(swarm, BEGIN_MS, UNREADABLE[_i], strlen(UNREADABLE[_i]), &err), 0);
    ck_assert_uint_eq(swarm_counts(swarm).malformed, 1);
}

TEST(more_ids_than_allowed_are_an_error_that_names_the_flag)
{
    const char *text = "{\"id\":\"b\",\"proplet_id\":\"device-3\"}";
    struct error err = { 0 };

    settings.max_ids = 1;
    begin();
    start("a");
    ck_assert_int_eq(swarm_start(swarm, BEGIN_MS, text, strlen(text), &err), -ERROR_TOO_LARGE);
    ck_assert_str_eq(err.message, "more than 1 ids: see --max-ids");
}

/* Of 10,000 starts within what chance allows: four standard deviations are 2 %. */
static void start_many(void)
{
    for (int i = 0; i < 10000; i++)
        start(arena_printf(arena, "id-%d", i));
    pass(1000);
}

TEST(faults_meet_the_part_of_the_ids_that_was_asked_for)
{
    settings.lost_percent = 30;
    settings.duplicate_percent = 20;
    begin();
    start_many();
    struct ledger_counts counts = swarm_counts(swarm).ledger;
    ck_assert_uint_ge(counts.lost, 2800);
    ck_assert_uint_le(counts.lost, 3200);
    ck_assert_uint_eq(counts.answered, 10000 - counts.lost);
    ck_assert_uint_ge(counts.answers - counts.answered, counts.answered / 5 - 200);
    ck_assert_uint_le(counts.answers - counts.answered, counts.answered / 5 + 200);
}

TEST(late_results_come_later_and_the_same_ones_again_with_the_same_seed)
{
    uint64_t punctual;

    settings.late_percent = 40;
    settings.late_ms = 5000;
    begin();
    start_many();
    punctual = said.results;
    ck_assert_uint_ge(punctual, 5800);
    ck_assert_uint_le(punctual, 6200);
    pass(5500);
    ck_assert_uint_eq(said.results, 10000);

    swarm_destroy(swarm);
    said.results = 0;
    begin();
    start_many();
    ck_assert_uint_eq(said.results, punctual);
}

TEST(mute_devices_say_nothing_any_more)
{
    settings.mute_devices = 4;
    settings.mute_after_ms = 2000;
    begin();
    pass(1999);
    ck_assert_uint_eq(said.alive, 20);
    ck_assert_int_eq(start_at(1800, "runs", "device-3"), 0);
    pass(2999);
    ck_assert_uint_eq(said.alive, 26);
    ck_assert_int_eq(start_at(3000, "a", "device-4"), 0);
    ck_assert_int_eq(start_at(3000, "b", "device-5"), 0);
    pass(10000);
    ck_assert_uint_eq(said.results, 1);
    ck_assert_uint_eq(said.device, 5);
}

TEST(no_more_messages_at_once_than_asked_for)
{
    begin();
    swarm_advance(swarm, BEGIN_MS + 10000, 7);
    ck_assert_uint_eq(said.alive, 7);
    pass(10000);
    ck_assert_uint_eq(said.alive, 101);
}
