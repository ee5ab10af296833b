/* What becomes of messages, with the real store, mailbox, fleet and queues. */
#include "controller/bridge/bridge_messages.h"

#include "common/base/str.h"
#include "common/tests/observe.h"
#include "controller/tests/hub.h"

static const char *const IDS[] = { "uid-one", "uid-one.2", "uid-one.2.17" };

TEST_GROUP("results", hub_set_up, hub_tear_down);

TEST_EACH(result_of_a_known_task_is_kept_and_wakes_it, IDS)
{
    const char *text = arena_printf(hub.arena, "{\"task_id\":\"%s\",\"results\":\"42\"}", IDS[_i]);
    struct mail *mail;

    hub_receive(HUB_TOPIC("proplet/results"), text);
    ck_assert_str_eq(hub_woken(hub.sink.task_queue), "one");
    ck_assert_uint_eq(mailbox_peek(hub.sink.mailbox, hub.arena, "uid-one", &mail), 1);
    ck_assert_str_eq(mail[0].body, text);
    ck_assert_str_eq(mail[0].source, HUB_CHANNEL);
    ck_assert(bridge_sink_settled(&hub.sink));
    ck_metric("propeller_mqtt_messages_total{kind=\"results\"} 1");
}

TEST(result_of_an_invocation_is_kept_like_another)
{
    struct mail *mail;

    hub_receive(HUB_TOPIC("proplet/invoke_results"),
                "{\"task_id\":\"uid-one.2\",\"invocation_id\":\"i\",\"results\":\"42\"}");
    ck_assert_str_eq(hub_woken(hub.sink.task_queue), "one");
    ck_assert_uint_eq(mailbox_peek(hub.sink.mailbox, hub.arena, "uid-one", &mail), 1);
    ck_assert_str_eq(mail[0].kind, MAIL_RESULT);
    ck_metric("propeller_mqtt_messages_total{kind=\"invoke_results\"} 1");

    hub_receive(HUB_TOPIC("proplet/invoke_results"), "{\"task_id\":7}");
    ck_metric("propeller_mqtt_malformed_total{kind=\"invoke_results\"} 1");
    ck_metric("propeller_results_rejected_total{reason=\"malformed\"} 1");
}

TEST(result_of_an_unknown_task_is_counted_and_does_not_wait)
{
    hub_receive(HUB_TOPIC("proplet/results"), "{\"task_id\":\"uid-two\",\"results\":\"42\"}");
    hub_expect_nothing();
    ck_metric("propeller_results_rejected_total{reason=\"unknown_task\"} 1");
}

static const char *const MALFORMED[] = {
    "",
    "42",
    "{}",
    "{\"task_id\":\"\"}",
    "{\"task_id\":\"uid-one\"",
    "{\"task_id\":\"uid-one\",\"error\":7}",
    "{\"task_id\":\"uid-one\",\"proplet_id\":7}",
};

static bool knows_all(void *ctx)
{
    return *(bool *)ctx;
}

/* One of several may not be listed at the start; the Task wakes when it comes into the cache. */
TEST(result_of_a_namespace_that_cannot_be_listed_yet_waits_for_its_task)
{
    const char *text = "{\"task_id\":\"uid-new.2\",\"results\":\"42\"}";
    bool all = false;
    struct mail *mail;

    hub.sink.knows_all = knows_all;
    hub.sink.knows_all_ctx = &all;
    hub_receive(HUB_TOPIC("proplet/results"), text);
    hub_receive(HUB_TOPIC("proplet/results"), "{\"task_id\":\"../+/#\",\"results\":\"42\"}");
    hub_put_task("new", "{\"phase\":\"running\"}");
    ck_assert_uint_eq(mailbox_peek(hub.sink.mailbox, hub.arena, "uid-new", &mail), 1);
    ck_assert_str_eq(mail->body, text);
    ck_metric("propeller_results_rejected_total{reason=\"unknown_task\"} 1");

    all = true;
    mailbox_ack(hub.sink.mailbox, "uid-new", UINT64_MAX);
    hub_receive(HUB_TOPIC("proplet/results"), "{\"task_id\":\"uid-other\",\"results\":\"42\"}");
    ck_assert_uint_eq(mailbox_len(hub.sink.mailbox), 0);
}

/* Invented uids on one channel use up neither the memory nor what another channel may send. */
TEST(results_for_tasks_that_are_not_known_yet_are_limited_for_each_channel)
{
    const struct mailbox_limits limits = { 16, 4096, 1 << 20 };
    bool all = false;

    mailbox_destroy(hub.sink.mailbox);
    hub.sink.mailbox = mailbox_create(&limits);
    hub.sink.knows_all = knows_all;
    hub.sink.knows_all_ctx = &all;
    for (int i = 0; i < 300; i++)
        hub_receive("m/dom-1/c/chan-2/control/proplet/results",
                    arena_printf(hub.arena, "{\"task_id\":\"invented-%d\",\"results\":1}", i));
    ck_assert_uint_eq(mailbox_len(hub.sink.mailbox), 256);
    ck_metric("propeller_results_rejected_total{reason=\"unknown_task\"} 44");

    hub_receive(HUB_TOPIC("proplet/results"), "{\"task_id\":\"uid-late\",\"results\":1}");
    ck_assert_uint_eq(mailbox_len(hub.sink.mailbox), 257);
}

static const struct {
    const char *task_id;
    const char *channel;
    bool rejected;
} CHANNELS[] = {
    { "uid-one.2", "chan-2", true },    { "uid-one.2", "chan-1", false },
    { "uid-one.3", "chan-2", false }, /* the cache may be older than the attempt */
    { "uid-new", "chan-2", false },     { "uid-lost", "chan-2", false },
    { "uid-all.1.0", "chan-2", true },  { "uid-all.1.0", "chan-1", false },
    { "uid-all.1.1", "chan-2", false },
};

/* A flood of them could otherwise displace the Task's own result while nothing can be written. */
TEST_EACH(result_of_a_channel_that_is_certainly_another_takes_no_capacity, CHANNELS)
{
    const char *text =
        arena_printf(hub.arena, "{\"task_id\":\"%s\",\"results\":1}", CHANNELS[_i].task_id);
    const char *uid = message_id_uid(hub.arena, CHANNELS[_i].task_id);
    const char *control = arena_printf(hub.arena, "m/dom-1/c/%s/control", CHANNELS[_i].channel);
    const char *copy =
        arena_printf(hub.arena, "%s/controller/quarantine/result/%s/0", control, uid);

    hub_put_task("new", "{\"phase\":\"pending\"}");
    hub_put_task("lost", "{\"phase\":\"running\",\"assignedProplet\":\"gone\",\"attempt\":1}");
    hub_put_task("all", "{\"phase\":\"running\",\"attempt\":1,\"broadcastResults\":["
                        "{\"index\":0,\"proplet\":\"alpha\"}]}");
    hub_receive(arena_printf(hub.arena, "%s/proplet/results", control), text);
    ck_assert_uint_eq(mailbox_len(hub.sink.mailbox), !CHANNELS[_i].rejected);
    mailbox_ack(hub.sink.mailbox, uid, UINT64_MAX);

    hub_receive(copy, text);
    ck_assert_uint_eq(mailbox_len(hub.sink.mailbox), !CHANNELS[_i].rejected);
    char *released = mailbox_take_released(hub.sink.mailbox);
    ck_assert(CHANNELS[_i].rejected ? str_equal(released, copy) : !released);
    free(released);
    if (CHANNELS[_i].rejected)
        ck_metric("propeller_results_rejected_total{reason=\"other_channel\"} 2");
}

TEST(copy_that_is_no_result_is_removed)
{
    const char *copy = HUB_TOPIC("controller/quarantine/result/uid-one/0");

    hub_receive(copy, "{}");
    ck_assert_uint_eq(mailbox_len(hub.sink.mailbox), 0);
    char *released = mailbox_take_released(hub.sink.mailbox);
    ck_assert_pstr_eq(released, copy);
    free(released);
}

TEST_EACH(malformed_result_is_counted_and_does_not_wait, MALFORMED)
{
    hub_receive(HUB_TOPIC("proplet/results"), MALFORMED[_i]);
    hub_expect_nothing();
    ck_metric("propeller_results_rejected_total{reason=\"malformed\"} 1");
    ck_metric("propeller_mqtt_malformed_total{kind=\"results\"} 1");
}

TEST(result_that_does_not_fit_is_left_to_the_broker)
{
    const char *text = "{\"task_id\":\"uid-one\",\"results\":\"42\"}";

    hub_receive(HUB_TOPIC("proplet/results"), text);
    hub_receive(HUB_TOPIC("proplet/results"), text);
    ck_assert(bridge_sink_settled(&hub.sink));
    hub_receive(HUB_TOPIC("proplet/results"), text);
    ck_assert(!bridge_sink_settled(&hub.sink));

    mailbox_ack(hub.sink.mailbox, "uid-one", UINT64_MAX);
    ck_assert(!bridge_sink_settled(&hub.sink)); /* room alone does not bring it back */
    bridge_sink_reconnected(&hub.sink);
    ck_assert(bridge_sink_settled(&hub.sink));
    hub_receive(HUB_TOPIC("proplet/results"), text);
    ck_assert_uint_eq(mailbox_len(hub.sink.mailbox), 1);
}

TEST_GROUP("devices", hub_set_up, hub_tear_down);

TEST(first_heartbeat_wakes_the_proplet_and_the_next_do_not)
{
    hub_receive(HUB_TOPIC("proplet/alive"), "{\"proplet_id\":\"device-1\",\"status\":\"alive\"}");
    ck_assert_str_eq(hub_woken(hub.sink.proplet_queue), "alpha");
    ck_assert(hub_device(HUB_KEY).alive);
    ck_assert_int_eq(hub_device(HUB_KEY).last_seen_us, FAKE_CLOCK_WALL_US);

    fake_clock_advance(&hub.clock, 10000);
    hub_receive(HUB_TOPIC("proplet/alive"), "{\"proplet_id\":\"device-1\",\"status\":\"alive\"}");
    hub_expect_nothing();
    ck_assert_int_eq(hub_device(HUB_KEY).last_seen_us, FAKE_CLOCK_WALL_US + 10000000);
}

TEST(every_claimant_of_an_identity_is_woken)
{
    hub_put_proplet("beta", "device-1");
    hub_put_proplet("gamma", "device-2");
    hub_receive(HUB_TOPIC("proplet/alive"), "{\"proplet_id\":\"device-1\",\"status\":\"alive\"}");
    ck_assert_str_eq(hub_woken(hub.sink.proplet_queue), "alpha beta");
}

TEST(last_will_of_a_known_proplet_wakes_it_once)
{
    hub_receive(HUB_TOPIC("proplet/alive"), "{\"proplet_id\":\"device-1\",\"status\":\"alive\"}");
    hub_woken(hub.sink.proplet_queue);
    hub_receive(HUB_TOPIC("proplet/alive"), "{\"status\":\"offline\",\"proplet_id\":\"device-1\"}");
    ck_assert_str_eq(hub_woken(hub.sink.proplet_queue), "alpha");
    ck_assert(!hub_device(HUB_KEY).alive && hub_device(HUB_KEY).will);
    hub_receive(HUB_TOPIC("proplet/alive"), "{\"status\":\"offline\",\"proplet_id\":\"device-1\"}");
    hub_expect_nothing();
}

/* Managers and proxies put their last wills on the devices' topic; anybody may pretend anything. */
static const struct {
    const char *topic;
    const char *payload;
    const char *key;
} FOREIGN[] = {
    { HUB_TOPIC("proplet/alive"), "{\"status\":\"offline\",\"proplet_id\":\"manager-1\"}",
      HUB_CHANNEL "/manager-1" },
    { HUB_TOPIC("proplet/alive"),
      "{\"status\":\"offline\",\"proplet_id\":\"manager-1\",\"channel_id\":\"chan-1\"}",
      HUB_CHANNEL "/manager-1" },
    { HUB_TOPIC("proplet/alive"), "{\"status\":\"alive\",\"proplet_id\":\"stranger\"}",
      HUB_CHANNEL "/stranger" },
    { HUB_TOPIC("proplet/alive"), "{\"status\":\"alive\",\"proplet_id\":\"alpha\"}",
      HUB_CHANNEL "/alpha" },
    { "m/dom-1/c/chan-2/control/proplet/alive",
      "{\"status\":\"offline\",\"proplet_id\":\"device-1\"}", "dom-1/chan-2/device-1" },
    { "m/dom-2/c/chan-1/control/proplet/alive",
      "{\"status\":\"alive\",\"proplet_id\":\"device-1\"}", "dom-2/chan-1/device-1" },
};

TEST_EACH(life_and_death_of_strangers_change_nothing, FOREIGN)
{
    hub_receive(FOREIGN[_i].topic, FOREIGN[_i].payload);
    hub_expect_nothing();
    ck_assert(!hub_device(FOREIGN[_i].key).alive && !hub_device(FOREIGN[_i].key).will);
    ck_assert(!hub_device(HUB_KEY).alive && !hub_device(HUB_KEY).will);
    ck_no_metric("propeller_mqtt_malformed_total{kind=\"alive\"} 1");
}

TEST(malformed_message_is_counted_by_its_kind)
{
    hub_receive(HUB_TOPIC("proplet/alive"), "{\"proplet_id\":\"device-1\",\"status\":\"fine\"}");
    hub_receive(HUB_TOPIC("proplet/create"), "{}");
    hub_receive(HUB_TOPIC("proplet/task_metrics"), "[");
    hub_receive(HUB_TOPIC("proplet/metrics"), "{\"proplet_id\":\"device-1\",\"cpu_metrics\":NaN}");
    hub_expect_nothing();
    ck_metric("propeller_mqtt_malformed_total{kind=\"metrics\"} 1");
    ck_metric("propeller_mqtt_malformed_total{kind=\"alive\"} 1");
    ck_metric("propeller_mqtt_malformed_total{kind=\"create\"} 1");
    ck_metric("propeller_mqtt_malformed_total{kind=\"task_metrics\"} 1");
}

static void run_nothing(void)
{
    mailbox_ack(hub.sink.mailbox, "uid-one", UINT64_MAX);
    ck_assert_str_eq(hub_woken(hub.sink.task_queue), "one");
}

TEST(metadata_wakes_the_proplet_when_it_differs)
{
    const char *create = "{\"proplet_id\":\"device-1\",\"metadata\":{\"os\":\"linux\"}}";

    hub_receive(HUB_TOPIC("proplet/create"), create);
    ck_assert_str_eq(hub_woken(hub.sink.proplet_queue), "alpha");
    ck_assert_str_eq(hub_device(HUB_KEY).metadata, "{\"os\":\"linux\"}");
    ck_assert(!hub_device(HUB_KEY).alive); /* it says nothing of now */
    hub_receive(HUB_TOPIC("proplet/create"), create);
    run_nothing();
    hub_expect_nothing();
}

TEST(metadata_of_a_device_without_a_proplet_is_kept_for_it)
{
    hub_receive(HUB_TOPIC("proplet/create"),
                "{\"proplet_id\":\"device-2\",\"metadata\":{\"os\":\"linux\"}}");
    hub_expect_nothing();
    ck_assert_str_eq(hub_device(HUB_CHANNEL "/device-2").metadata, "{\"os\":\"linux\"}");
}

TEST(registration_without_metadata_leaves_it_as_it_is)
{
    hub_receive(HUB_TOPIC("proplet/create"), "{\"proplet_id\":\"device-1\"}");
    run_nothing();
    hub_expect_nothing();
    ck_assert_ptr_null(hub_device(HUB_KEY).metadata);
}

static const struct {
    const char *id;
    const char *sender;
    const char *rejected; /* NULL: it is taken */
} SAMPLES[] = {
    { "uid-one.2", "device-1", NULL },
    { "uid-one", "device-1", "other_attempt" },
    { "uid-one.x", "device-1", "unknown_task" },
    { "uid-one.", "device-1", "unknown_task" },
    { "uid-two.2", "device-1", "unknown_task" },
    { "uid-one.02x", "device-1", "unknown_task" },
    { "uid-one.2", "device-2", "other_proplet" },
    { "uid-done", "device-1", "not_running" },
    { "uid-lost", "device-1", "other_proplet" },
};

TEST_GROUP("attempts", hub_set_up, hub_tear_down);

TEST_EACH(sample_confirms_the_attempt_that_it_names, SAMPLES)
{
    bool taken = !SAMPLES[_i].rejected;

    attempts_published(hub.sink.attempts, "uid-one", 2, 100, 100);
    hub_put_task("done", "{\"phase\":\"completed\",\"assignedProplet\":\"alpha\",\"attempt\":1}");
    hub_put_task("lost", "{\"phase\":\"running\",\"assignedProplet\":\"beta\",\"attempt\":1}");
    hub_receive(HUB_TOPIC("proplet/task_metrics"),
                arena_printf(hub.arena,
                             "{\"task_id\":\"%s\",\"proplet_id\":\"%s\","
                             "\"metrics\":{\"cpu_percent\":0.5,\"memory_bytes\":2048}}",
                             SAMPLES[_i].id, SAMPLES[_i].sender));
    ck_assert_str_eq(hub_woken(hub.sink.task_queue), taken ? "one" : "");
    hub_expect_nothing();

    struct attempt attempt = attempts_get(hub.sink.attempts, "uid-one", 2, 200);
    ck_assert_int_eq(attempt.confirmed_ms, taken ? clock_monotonic_ms(&hub.clock.clock) : 0);
    ck_assert_int_eq(attempt.sample_us, taken ? FAKE_CLOCK_WALL_US : 0);
    if (!taken)
        ck_metric(arena_printf(hub.arena, "propeller_samples_rejected_total{reason=\"%s\"} 1",
                               SAMPLES[_i].rejected));
}

TEST(sample_of_a_pod_confirms_what_it_was_given)
{
    attempts_published(hub.sink.attempts, "uid-two", 1, 100, 100);
    attempts_published(hub.sink.attempts, "uid-three", 1, 100, 100);
    hub_put_pool("pool", "pool");
    hub_put_task("two", "{\"phase\":\"running\",\"assignedProplet\":\"pool\",\"attempt\":1,"
                        "\"assignedClientId\":\"pool-1\"}");
    hub_put_task("three", "{\"phase\":\"running\",\"assignedProplet\":\"pool\",\"attempt\":1,"
                          "\"assignedClientId\":\"pool-0\"}");
    for (size_t i = 0; i < 2; i++)
        hub_receive(HUB_TOPIC("proplet/task_metrics"),
                    arena_printf(hub.arena,
                                 "{\"task_id\":\"uid-%s\",\"proplet_id\":\"pool-1\","
                                 "\"metrics\":{\"cpu_percent\":0.5,\"memory_bytes\":2048}}",
                                 i ? "three" : "two"));
    ck_assert_int_gt(attempts_get(hub.sink.attempts, "uid-two", 1, 200).confirmed_ms, 0);
    ck_assert_int_eq(attempts_get(hub.sink.attempts, "uid-three", 1, 200).confirmed_ms, 0);
    ck_metric("propeller_samples_rejected_total{reason=\"other_proplet\"} 1");
}

static const struct {
    const char *metrics;
    const char *reason;
} HOSTILE[] = {
    { "{\"cpu_percent\":\"1\"}", "not_a_number" },
    { "{\"cpu_percent\":1,\"memory_bytes\":-1}", "negative" },
    { "\"none\"", "empty" },
};

TEST_EACH(numbers_that_cannot_be_meant_are_counted_and_still_a_sign_of_life, HOSTILE)
{
    attempts_published(hub.sink.attempts, "uid-one", 2, 100, 100);
    hub_receive(
        HUB_TOPIC("proplet/task_metrics"),
        arena_printf(hub.arena,
                     "{\"task_id\":\"uid-one.2\",\"proplet_id\":\"device-1\",\"metrics\":%s}",
                     HOSTILE[_i].metrics));
    hub_expect_nothing();

    struct attempt attempt = attempts_get(hub.sink.attempts, "uid-one", 2, 200);
    ck_assert_int_ne(attempt.confirmed_ms, 0);
    ck_assert_int_eq(attempt.sample_us, 0);
    ck_metric(arena_printf(hub.arena, "propeller_samples_rejected_total{reason=\"%s\"} 1",
                           HOSTILE[_i].reason));
}

#define TASK_SAMPLE(bytes)                                                                         \
    "{\"task_id\":\"uid-one.2\",\"proplet_id\":\"device-1\",\"metrics\":{\"cpu_percent\":0.5,"     \
    "\"memory_percent\":0.0,\"memory_bytes\":" bytes "}}"

TEST(task_is_woken_by_the_first_sample_that_waits_to_be_written)
{
    attempts_published(hub.sink.attempts, "uid-one", 2, 100, 100);
    hub_receive(HUB_TOPIC("proplet/task_metrics"), TASK_SAMPLE("1024"));
    ck_assert_str_eq(hub_woken(hub.sink.task_queue), "one");
    fake_clock_advance(&hub.clock, 10000);
    hub_receive(HUB_TOPIC("proplet/task_metrics"), TASK_SAMPLE("2048"));
    hub_expect_nothing();

    struct attempt attempt = attempts_get(hub.sink.attempts, "uid-one", 2, 200);
    ck_assert_int_eq(attempt.sample_us, FAKE_CLOCK_WALL_US + 10000000);
    ck_assert_int_eq(attempt.sample.memory_bytes, 2);
    ck_assert_int_eq(attempt.sample.memory_milli_percent, -1);
    attempts_sample_written(hub.sink.attempts, "uid-one", attempt.sample_us);
    hub_receive(HUB_TOPIC("proplet/task_metrics"), TASK_SAMPLE("4096"));
    ck_assert_str_eq(hub_woken(hub.sink.task_queue), "one");
}

static const struct {
    const char *text;
    const char *reason; /* NULL: it is taken */
} METRICS[] = {
    { "{\"proplet_id\":\"device-1\",\"cpu_metrics\":{\"percent\":1}}", NULL },
    { "{\"proplet_id\":\"device-2\",\"cpu_metrics\":{\"percent\":1}}", "unknown_proplet" },
    { "{\"proplet_id\":\"device-1\",\"cpu_metrics\":{\"percent\":-1}}", "negative" },
    { "{\"proplet_id\":\"device-1\"}", "empty" },
};

TEST_EACH(metrics_of_a_proplet_wake_nobody, METRICS)
{
    hub_receive(HUB_TOPIC("proplet/metrics"), METRICS[_i].text);
    hub_expect_nothing();
    ck_assert_int_eq(hub_device(HUB_KEY).sample_us, METRICS[_i].reason ? 0 : FAKE_CLOCK_WALL_US);
    ck_assert_int_eq(hub_device(HUB_CHANNEL "/device-2").sample_us, 0);
    ck_assert(!hub_device(HUB_KEY).alive); /* only heartbeats are life */
    if (METRICS[_i].reason)
        ck_metric(arena_printf(hub.arena, "propeller_samples_rejected_total{reason=\"%s\"} 1",
                               METRICS[_i].reason));
}

TEST(sample_without_attempt_is_of_the_first)
{
    hub_put_task("two", "{\"phase\":\"running\",\"assignedProplet\":\"alpha\",\"attempt\":1}");
    attempts_published(hub.sink.attempts, "uid-two", 1, 100, 100);
    hub_receive(HUB_TOPIC("proplet/task_metrics"),
                "{\"task_id\":\"uid-two\",\"proplet_id\":\"device-1\"}");
    ck_assert_int_ne(attempts_get(hub.sink.attempts, "uid-two", 1, 200).confirmed_ms, 0);
}

TEST(marker_is_handed_over_with_its_length)
{
    bridge_message(&hub.sink, HUB_TOPIC("controller/marker"), "nonce and more", 5);
    ck_assert_str_eq(hub.marker, "nonce");
    hub_expect_nothing();
}

TEST(marker_behind_what_did_not_fit_tells_nothing)
{
    const char *text = "{\"task_id\":\"uid-one\",\"results\":\"42\"}";

    for (int i = 0; i < 3; i++)
        hub_receive(HUB_TOPIC("proplet/results"), text);
    hub_receive(HUB_TOPIC("controller/marker"), "nonce");
    ck_assert_ptr_null(hub.marker);

    bridge_sink_reconnected(&hub.sink);
    hub_receive(HUB_TOPIC("controller/marker"), "nonce");
    ck_assert_str_eq(hub.marker, "nonce");
}

TEST(what_is_not_read_is_counted_only)
{
    hub_receive(HUB_TOPIC("manager/invoke"), "{\"task_id\":\"uid-one\"}");
    hub_receive(HUB_TOPIC("manager/start"), "{\"task_id\":\"uid-one\"}");
    hub_receive("", "{}");
    hub_expect_nothing();
    ck_metric("propeller_mqtt_messages_total{kind=\"unknown\"} 3");
}

TEST(copy_of_an_update_counts_on_the_channel_of_its_task_only)
{
    hub_receive("m/dom-1/c/chan-2/control/controller/quarantine/update/uid-one.2/0", "[1]");
    hub_expect_nothing();
    ck_metric("propeller_results_rejected_total{reason=\"other_channel\"} 1");

    hub_receive(HUB_TOPIC("controller/quarantine/update/uid-one.2/0"), "[1]");
    ck_assert_uint_eq(mailbox_held(hub.sink.mailbox), 1);
}

TEST(active_tasks_are_woken_together)
{
    hub_put_task("three", "{\"phase\":\"pending\"}");
    hub_put_task("four", "{\"phase\":\"scheduled\",\"assignedProplet\":\"alpha\"}");
    hub_put_task("five", "{\"phase\":\"scheduled\"}");
    hub_put_task("six", "{\"phase\":\"completed\",\"assignedProplet\":\"alpha\"}");
    hub_put_task("seven", "{}");
    bridge_wake_active(&hub.sink);
    ck_assert_str_eq(hub_woken(hub.sink.task_queue), "four one");
}

TEST_GROUP("results", hub_set_up, hub_tear_down);

TEST(nothing_rejected_is_no_series)
{
    bridge_count_rejected("other_attempt", 0);
    ck_no_metric("propeller_results_rejected_total{reason=\"other_attempt\"} 0");
    bridge_count_rejected("other_attempt", 2);
    ck_metric("propeller_results_rejected_total{reason=\"other_attempt\"} 2");
}

#define RECLAIM(id) "{\"proplet_id\":\"" id "\",\"reason\":\"a meeting\"}"

TEST(reclaim_waits_under_its_proplet_once)
{
    struct mail *mail;

    for (int i = 0; i < 1000; i++)
        hub_receive(HUB_TOPIC("proplet/reclaim"), RECLAIM("device-1"));
    ck_assert_str_eq(hub_woken(hub.sink.proplet_queue), "alpha");
    ck_assert_uint_eq(mailbox_peek(hub.sink.mailbox, hub.arena, "uid-alpha", &mail), 1);
    ck_assert_str_eq(mail[0].kind, MAIL_RECLAIM);
    ck_assert_str_eq(mail[0].body, "a meeting");
    ck_assert_str_eq(mail[0].source, HUB_CHANNEL);
    ck_assert(!mailbox_wait_empty(hub.sink.mailbox, 0)); /* the broker keeps it */
}

static const struct {
    const char *text;
    const char *reason;
} REJECTED_RECLAIMS[] = {
    { RECLAIM("device-2"), "unknown_proplet" },
    { RECLAIM("pool-0"), "not_external" },
    { "{\"proplet_id\":7}", "malformed" },
    { "{", "malformed" },
};

TEST_EACH(reclaim_that_cannot_count_is_counted_and_does_not_wait, REJECTED_RECLAIMS)
{
    hub_put_pool("pool", "pool");
    hub_receive(HUB_TOPIC("proplet/reclaim"), REJECTED_RECLAIMS[_i].text);
    hub_expect_nothing();
    ck_metric(arena_printf(hub.arena, "propeller_reclaims_rejected_total{reason=\"%s\"} 1",
                           REJECTED_RECLAIMS[_i].reason));
}

TEST(reclaim_that_is_too_large_or_retained_is_counted)
{
    static const size_t SIZES[] = { 1025, 10 << 20 };

    for (size_t i = 0; i < ARRAY_LEN(SIZES); i++) {
        char *text = arena_alloc(hub.arena, 1, SIZES[i] + 1);

        memset(text, ' ', SIZES[i]);
        hub_receive(HUB_TOPIC("proplet/reclaim"), text);
    }
    ck_metric("propeller_reclaims_rejected_total{reason=\"too_large\"} 2");
    bridge_count_retained(HUB_TOPIC("proplet/reclaim"));
    ck_metric("propeller_reclaims_rejected_total{reason=\"retained\"} 1");
    ck_metric("propeller_mqtt_retained_total{kind=\"reclaim\"} 1");
    hub_expect_nothing();
}

/* Of another process, or of this one before its write came through; see quarantine.h. */
TEST_TIMES(copy_of_a_reclaim_counts_on_its_own_channel_alone, 2)
{
    static const char *const TOPICS[] = {
        "m/dom-1/c/chan-1/control/controller/quarantine/reclaim/uid-alpha/abc",
        "m/dom-1/c/other/control/controller/quarantine/reclaim/uid-alpha/abc"
    };
    struct mail *mail;

    hub_receive(TOPICS[_i], "a meeting");
    ck_assert_uint_eq(mailbox_peek(hub.sink.mailbox, hub.arena, "uid-alpha", &mail), _i ? 0 : 1);
    ck_assert_str_eq(hub_woken(hub.sink.proplet_queue), _i ? "" : "alpha");
    ck_assert(mailbox_wait_empty(hub.sink.mailbox, 0));
}

/* --- Enrollments: devices without a Proplet ----------------------------------------------------- */

#define TOPIC_OF(channel, suffix) "m/dom-1/c/" channel "/control/" suffix
#define ALIVE_OF(client) "{\"status\":\"alive\",\"proplet_id\":\"" client "\"}"
#define CREATE_OF(client) "{\"proplet_id\":\"" client "\",\"metadata\":{\"os\":\"linux\"}}"

static void listen_up(void)
{
    hub_set_up();
    hub_listen("every", "\"channelPerDevice\":true");
    hub_listen("shared", "\"channelId\":\"chan-1\"");
    hub_listen("other", "\"channelId\":\"chan-2\"");
    atomic_store(&hub.sink.wildcards, 1);
}

static void receive_control(const char *topic, const char *payload)
{
    bridge_control_message(&hub.sink, topic, payload, strlen(payload));
}

/* Those that are woken when a second is over. */
static const char *listeners(void)
{
    fake_clock_advance(&hub.clock, 1000);
    return hub_woken(hub.sink.enrollment_queue);
}

TEST_GROUP("enrollments", listen_up, hub_tear_down);

TEST(first_heartbeat_of_a_stranger_wakes_those_that_list_it)
{
    receive_control(TOPIC_OF("new", "proplet/alive"), ALIVE_OF("new"));
    ck_assert_str_eq(listeners(), "every");
    receive_control(HUB_TOPIC("proplet/alive"), ALIVE_OF("new"));
    ck_assert_str_eq(listeners(), "shared every");
    receive_control(HUB_TOPIC("proplet/alive"), ALIVE_OF("new"));
    ck_assert_uint_eq(workqueue_len(hub.sink.enrollment_queue), 0);
    receive_control(HUB_TOPIC("proplet/create"), CREATE_OF("new"));
    ck_assert_uint_eq(workqueue_len(hub.sink.enrollment_queue), 0); /* of no channel of its own */
    hub_receive(HUB_TOPIC("proplet/create"), CREATE_OF("new"));
    ck_assert_str_eq(listeners(), "shared every");
    hub_expect_nothing();
}

TEST(forged_messages_on_channels_of_others_leave_nothing)
{
    struct stranger_seen *seen;

    receive_control(TOPIC_OF("victim", "proplet/alive"), ALIVE_OF("forged"));
    receive_control(TOPIC_OF("victim", "proplet/create"), CREATE_OF("forged"));
    ck_assert_uint_eq(workqueue_len(hub.sink.enrollment_queue), 0);
    ck_assert_uint_eq(
        strangers_count(fleet_strangers(hub.sink.fleet), clock_monotonic_ms(&hub.clock.clock)), 0);
    ck_assert_uint_eq(strangers_list(fleet_strangers(hub.sink.fleet), hub.arena, "dom-1/+",
                                     clock_monotonic_ms(&hub.clock.clock), &seen),
                      0);
    ck_assert_ptr_null(hub_device("dom-1/victim/forged").metadata);
}

TEST(create_on_the_control_connection_ends_no_attempt_and_is_kept_for_strangers)
{
    receive_control(HUB_TOPIC("proplet/create"), CREATE_OF("device-1"));
    hub_expect_nothing();
    ck_assert_ptr_null(hub_device(HUB_KEY).metadata);
    receive_control(TOPIC_OF("new", "proplet/create"), CREATE_OF("new"));
    ck_assert_str_eq(hub_device("dom-1/new/new").metadata, "{\"os\":\"linux\"}");
    ck_assert_str_eq(listeners(), "every");
}

TEST(heartbeat_that_an_overlapping_subscription_repeats_counts_once)
{
    for (int twice = 0; twice < 2; twice++)
        receive_control(HUB_TOPIC("proplet/alive"), ALIVE_OF("device-1"));
    ck_assert_uint_eq(hub_device(HUB_KEY).history_len, 1);
    ck_metric("propeller_mqtt_messages_total{kind=\"alive\"} 1");
    fake_clock_advance(&hub.clock, 10000);
    receive_control(HUB_TOPIC("proplet/alive"), ALIVE_OF("device-1"));
    ck_assert_uint_eq(hub_device(HUB_KEY).history_len, 2);
}

TEST(heartbeat_behind_a_last_will_is_no_repetition)
{
    receive_control(HUB_TOPIC("proplet/alive"), ALIVE_OF("device-1"));
    receive_control(HUB_TOPIC("proplet/alive"),
                    "{\"status\":\"offline\",\"proplet_id\":\"device-1\"}");
    ck_assert(!hub_device(HUB_KEY).alive);
    receive_control(HUB_TOPIC("proplet/alive"), ALIVE_OF("device-1"));
    ck_assert(hub_device(HUB_KEY).alive);
    ck_assert(!hub_device(HUB_KEY).will);
}

TEST(last_will_of_a_manager_is_no_device)
{
    receive_control(TOPIC_OF("manager-1", "proplet/alive"),
                    "{\"status\":\"offline\",\"proplet_id\":\"manager-1\"}");
    ck_assert_uint_eq(workqueue_len(hub.sink.enrollment_queue), 0);
    ck_assert_uint_eq(
        strangers_count(fleet_strangers(hub.sink.fleet), clock_monotonic_ms(&hub.clock.clock)), 0);
}
