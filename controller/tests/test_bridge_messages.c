/* What becomes of messages, with the real store, mailbox, fleet and queues. */
#include "controller/bridge_messages.h"

#include "common/base/str.h"
#include "common/tests/fake_clock.h"
#include "common/tests/observe.h"
#include "common/tests/parse_json.h"
#include "common/tests/suite.h"
#include "controller/indexes.h"

#define CHANNEL "dom-1/chan-1"
#define TOPIC(suffix) "m/dom-1/c/chan-1/control/" suffix
#define KEY CHANNEL "/device-1"

static struct arena *arena;
static struct fake_clock fake;
static struct bridge_sink sink;
static const char *marker;

static void on_marker(void *ctx UNUSED, const char *nonce, size_t len)
{
    marker = arena_strndup(arena, nonce, len);
}

static void put(struct store *store, const char *json)
{
    struct error err = { 0 };
    struct kube_object *object;
    int r = kube_object_create(parse_json(arena, json), &object, &err);

    ck_assert_msg(r == 0, "%s", err.message);
    ck_assert(store_put(store, object, NULL));
    kube_object_unref(object);
}

static void put_task(const char *name, const char *status)
{
    put(sink.tasks, arena_printf(arena,
                                 "{\"metadata\":{\"namespace\":\"default\",\"name\":\"%s\","
                                 "\"uid\":\"uid-%s\",\"resourceVersion\":\"5\"},\"status\":%s}",
                                 name, name, status));
}

static void put_proplet(const char *name, const char *client)
{
    put(sink.proplets,
        arena_printf(arena,
                     "{\"metadata\":{\"namespace\":\"default\",\"name\":\"%s\",\"uid\":\"uid-%s\","
                     "\"resourceVersion\":\"5\"},\"spec\":{\"connectionConfig\":{\"domainId\":"
                     "\"dom-1\",\"channelId\":\"chan-1\",\"clientId\":\"%s\"}}}",
                     name, name, client));
}

/* One running Task "one", one Proplet "alpha" of device-1; room for two results. */
static void set_up(void)
{
    const struct mailbox_limits limits = { .key_messages = 2,
                                           .total_messages = 2,
                                           .total_bytes = 1 << 20 };

    json_init();
    arena = arena_create();
    fake_clock_init(&fake);
    sink = (struct bridge_sink){
        .tasks = store_create(),
        .proplets = store_create(),
        .fleet = fleet_create(),
        .attempts = attempts_create(),
        .mailbox = mailbox_create(&limits),
        .clock = &fake.clock,
        .task_queue = workqueue_create("task", &fake.clock),
        .proplet_queue = workqueue_create("proplet", &fake.clock),
        .marker = on_marker,
    };
    marker = NULL;
    indexes_add_task(sink.tasks);
    indexes_add_proplet(sink.proplets);
    put_task("one", "{\"phase\":\"running\",\"assignedProplet\":\"alpha\",\"attempt\":2}");
    put_proplet("alpha", "device-1");
}

static void tear_down(void)
{
    workqueue_destroy(sink.task_queue);
    workqueue_destroy(sink.proplet_queue);
    mailbox_destroy(sink.mailbox);
    attempts_destroy(sink.attempts);
    fleet_destroy(sink.fleet);
    store_destroy(sink.tasks);
    store_destroy(sink.proplets);
    arena_destroy(arena);
}

static void receive(const char *topic, const char *payload)
{
    bridge_message(&sink, topic, payload, strlen(payload));
}

/* The names that were woken, in order, with blanks between them. */
static const char *woken(struct workqueue *queue)
{
    const char *names = "";
    struct kube_name name;

    while (workqueue_len(queue)) {
        ck_assert(workqueue_get(queue, &name));
        names = arena_printf(arena, "%s%s%s", names, *names ? " " : "", name.name);
        workqueue_done(queue, &name);
    }
    return names;
}

static void expect_nothing(void)
{
    ck_assert_str_eq(woken(sink.task_queue), "");
    ck_assert_str_eq(woken(sink.proplet_queue), "");
    ck_assert_uint_eq(mailbox_len(sink.mailbox), 0);
    ck_assert(bridge_sink_settled(&sink));
}

static struct fleet_device device(const char *key)
{
    struct fleet_device ret;

    fleet_get(sink.fleet, arena, key, &ret);
    return ret;
}

static const char *const IDS[] = { "uid-one", "uid-one.2", "uid-one.2.17" };

START_TEST(result_of_a_known_task_is_kept_and_wakes_it)
{
    const char *text = arena_printf(arena, "{\"task_id\":\"%s\",\"results\":\"42\"}", IDS[_i]);
    struct mail *mail;

    receive(TOPIC("proplet/results"), text);
    ck_assert_str_eq(woken(sink.task_queue), "one");
    ck_assert_uint_eq(mailbox_peek(sink.mailbox, arena, "uid-one", &mail), 1);
    ck_assert_str_eq(mail[0].body, text);
    ck_assert_str_eq(mail[0].source, CHANNEL);
    ck_assert(bridge_sink_settled(&sink));
    ck_metric("propeller_mqtt_messages_total{kind=\"results\"} 1");
}
END_TEST

START_TEST(result_of_an_unknown_task_is_counted_and_does_not_wait)
{
    receive(TOPIC("proplet/results"), "{\"task_id\":\"uid-two\",\"results\":\"42\"}");
    expect_nothing();
    ck_metric("propeller_results_rejected_total{reason=\"unknown_task\"} 1");
}
END_TEST

static const char *const MALFORMED[] = {
    "",
    "42",
    "{}",
    "{\"task_id\":\"\"}",
    "{\"task_id\":\"uid-one\"",
    "{\"task_id\":\"uid-one\",\"error\":7}",
};

START_TEST(malformed_result_is_counted_and_does_not_wait)
{
    receive(TOPIC("proplet/results"), MALFORMED[_i]);
    expect_nothing();
    ck_metric("propeller_results_rejected_total{reason=\"malformed\"} 1");
    ck_metric("propeller_mqtt_malformed_total{kind=\"results\"} 1");
}
END_TEST

START_TEST(result_that_does_not_fit_is_left_to_the_broker)
{
    const char *text = "{\"task_id\":\"uid-one\",\"results\":\"42\"}";

    receive(TOPIC("proplet/results"), text);
    receive(TOPIC("proplet/results"), text);
    ck_assert(bridge_sink_settled(&sink));
    receive(TOPIC("proplet/results"), text);
    ck_assert(!bridge_sink_settled(&sink));

    mailbox_ack(sink.mailbox, "uid-one", UINT64_MAX);
    ck_assert(!bridge_sink_settled(&sink)); /* room alone does not bring it back */
    bridge_sink_reconnected(&sink);
    ck_assert(bridge_sink_settled(&sink));
    receive(TOPIC("proplet/results"), text);
    ck_assert_uint_eq(mailbox_len(sink.mailbox), 1);
}
END_TEST

START_TEST(first_heartbeat_wakes_the_proplet_and_the_next_do_not)
{
    receive(TOPIC("proplet/alive"), "{\"proplet_id\":\"device-1\",\"status\":\"alive\"}");
    ck_assert_str_eq(woken(sink.proplet_queue), "alpha");
    ck_assert(device(KEY).alive);
    ck_assert_int_eq(device(KEY).last_seen_us, FAKE_CLOCK_WALL_US);

    fake_clock_advance(&fake, 10000);
    receive(TOPIC("proplet/alive"), "{\"proplet_id\":\"device-1\",\"status\":\"alive\"}");
    expect_nothing();
    ck_assert_int_eq(device(KEY).last_seen_us, FAKE_CLOCK_WALL_US + 10000000);
}
END_TEST

START_TEST(every_claimant_of_an_identity_is_woken)
{
    put_proplet("beta", "device-1");
    put_proplet("gamma", "device-2");
    receive(TOPIC("proplet/alive"), "{\"proplet_id\":\"device-1\",\"status\":\"alive\"}");
    ck_assert_str_eq(woken(sink.proplet_queue), "alpha beta");
}
END_TEST

START_TEST(last_will_of_a_known_proplet_wakes_it_once)
{
    receive(TOPIC("proplet/alive"), "{\"proplet_id\":\"device-1\",\"status\":\"alive\"}");
    woken(sink.proplet_queue);
    receive(TOPIC("proplet/alive"), "{\"status\":\"offline\",\"proplet_id\":\"device-1\"}");
    ck_assert_str_eq(woken(sink.proplet_queue), "alpha");
    ck_assert(!device(KEY).alive && device(KEY).will);
    receive(TOPIC("proplet/alive"), "{\"status\":\"offline\",\"proplet_id\":\"device-1\"}");
    expect_nothing();
}
END_TEST

/* Managers and proxies put their last wills on the devices' topic; anybody may pretend anything. */
static const struct {
    const char *topic;
    const char *payload;
    const char *key;
} FOREIGN[] = {
    { TOPIC("proplet/alive"), "{\"status\":\"offline\",\"proplet_id\":\"manager-1\"}",
      CHANNEL "/manager-1" },
    { TOPIC("proplet/alive"),
      "{\"status\":\"offline\",\"proplet_id\":\"manager-1\",\"channel_id\":\"chan-1\"}",
      CHANNEL "/manager-1" },
    { TOPIC("proplet/alive"), "{\"status\":\"alive\",\"proplet_id\":\"stranger\"}",
      CHANNEL "/stranger" },
    { TOPIC("proplet/alive"), "{\"status\":\"alive\",\"proplet_id\":\"alpha\"}", CHANNEL "/alpha" },
    { "m/dom-1/c/chan-2/control/proplet/alive",
      "{\"status\":\"offline\",\"proplet_id\":\"device-1\"}", "dom-1/chan-2/device-1" },
    { "m/dom-2/c/chan-1/control/proplet/alive",
      "{\"status\":\"alive\",\"proplet_id\":\"device-1\"}", "dom-2/chan-1/device-1" },
};

START_TEST(life_and_death_of_strangers_change_nothing)
{
    receive(FOREIGN[_i].topic, FOREIGN[_i].payload);
    expect_nothing();
    ck_assert(!device(FOREIGN[_i].key).alive && !device(FOREIGN[_i].key).will);
    ck_assert(!device(KEY).alive && !device(KEY).will);
    ck_no_metric("propeller_mqtt_malformed_total{kind=\"alive\"} 1");
}
END_TEST

START_TEST(malformed_message_is_counted_by_its_kind)
{
    receive(TOPIC("proplet/alive"), "{\"proplet_id\":\"device-1\",\"status\":\"fine\"}");
    receive(TOPIC("proplet/create"), "{}");
    receive(TOPIC("proplet/task_metrics"), "[");
    receive(TOPIC("proplet/metrics"), "{\"proplet_id\":\"device-1\",\"cpu_metrics\":NaN}");
    expect_nothing();
    ck_metric("propeller_mqtt_malformed_total{kind=\"metrics\"} 1");
    ck_metric("propeller_mqtt_malformed_total{kind=\"alive\"} 1");
    ck_metric("propeller_mqtt_malformed_total{kind=\"create\"} 1");
    ck_metric("propeller_mqtt_malformed_total{kind=\"task_metrics\"} 1");
}
END_TEST

static void expect_mail(const char *uid, const char *kinds)
{
    struct mail *mail;
    size_t count = mailbox_peek(sink.mailbox, arena, uid, &mail);
    const char *text = "";

    for (size_t i = 0; i < count; i++)
        text = arena_printf(arena, "%s%s%s", text, i ? ", " : "", mail[i].kind);
    ck_assert_str_eq(text, kinds);
}

START_TEST(restart_is_told_to_the_tasks_of_the_device)
{
    put_proplet("beta", "device-2");
    put_task("two", "{\"phase\":\"scheduled\",\"assignedProplet\":\"alpha\"}");
    put_task("three", "{\"phase\":\"running\",\"assignedProplet\":\"beta\"}");
    put_task("four", "{\"phase\":\"completed\",\"assignedProplet\":\"alpha\"}");
    sink.caught_up = true;
    receive(TOPIC("proplet/create"), "{\"proplet_id\":\"device-1\"}");
    expect_mail("uid-one", MAIL_RESTART);
    expect_mail("uid-two", MAIL_RESTART);
    ck_assert_uint_eq(mailbox_len(sink.mailbox), 2);
    ck_assert_str_eq(woken(sink.task_queue), "one two");
    ck_assert(bridge_sink_settled(&sink));
}
END_TEST

START_TEST(restart_that_the_broker_held_is_marked)
{
    receive(TOPIC("proplet/create"), "{\"proplet_id\":\"device-1\"}");
    expect_mail("uid-one", MAIL_STORED_RESTART);
}
END_TEST

START_TEST(restart_keeps_its_place_behind_the_results_before_it)
{
    sink.caught_up = true;
    receive(TOPIC("proplet/results"), "{\"task_id\":\"uid-one\",\"results\":\"42\"}");
    receive(TOPIC("proplet/create"), "{\"proplet_id\":\"device-1\"}");
    expect_mail("uid-one", MAIL_RESULT ", " MAIL_RESTART);
}
END_TEST

START_TEST(restart_that_does_not_fit_is_kept_by_the_broker)
{
    for (int i = 0; i < 3; i++) {
        ck_assert(bridge_sink_settled(&sink));
        receive(TOPIC("proplet/create"), "{\"proplet_id\":\"device-1\"}");
    }
    ck_assert(!bridge_sink_settled(&sink));
}
END_TEST

START_TEST(restart_makes_a_device_fresh_that_is_known)
{
    receive(TOPIC("proplet/alive"), "{\"proplet_id\":\"device-1\",\"status\":\"alive\"}");
    ck_assert_int_eq(device(KEY).fresh_since_ms, 0);
    fake_clock_advance(&fake, 1000);
    receive(TOPIC("proplet/create"), "{\"proplet_id\":\"device-1\"}");
    ck_assert_int_eq(device(KEY).fresh_since_ms, clock_monotonic_ms(&fake.clock));
}
END_TEST

static void run_nothing(void)
{
    mailbox_ack(sink.mailbox, "uid-one", UINT64_MAX);
    ck_assert_str_eq(woken(sink.task_queue), "one");
}

START_TEST(metadata_wakes_the_proplet_when_it_differs)
{
    const char *create = "{\"proplet_id\":\"device-1\",\"metadata\":{\"os\":\"linux\"}}";

    receive(TOPIC("proplet/create"), create);
    ck_assert_str_eq(woken(sink.proplet_queue), "alpha");
    ck_assert_str_eq(device(KEY).metadata, "{\"os\":\"linux\"}");
    ck_assert(!device(KEY).alive); /* it says nothing of now */
    receive(TOPIC("proplet/create"), create);
    run_nothing();
    expect_nothing();
}
END_TEST

START_TEST(metadata_of_a_device_without_a_proplet_is_kept_for_it)
{
    receive(TOPIC("proplet/create"),
            "{\"proplet_id\":\"device-2\",\"metadata\":{\"os\":\"linux\"}}");
    expect_nothing();
    ck_assert_str_eq(device(CHANNEL "/device-2").metadata, "{\"os\":\"linux\"}");
}
END_TEST

START_TEST(registration_without_metadata_leaves_it_as_it_is)
{
    receive(TOPIC("proplet/create"), "{\"proplet_id\":\"device-1\"}");
    run_nothing();
    expect_nothing();
    ck_assert_ptr_null(device(KEY).metadata);
}
END_TEST

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

START_TEST(sample_confirms_the_attempt_that_it_names)
{
    bool taken = !SAMPLES[_i].rejected;

    attempts_published(sink.attempts, "uid-one", 2, 100, 100);
    put_task("done", "{\"phase\":\"completed\",\"assignedProplet\":\"alpha\",\"attempt\":1}");
    put_task("lost", "{\"phase\":\"running\",\"assignedProplet\":\"beta\",\"attempt\":1}");
    receive(TOPIC("proplet/task_metrics"),
            arena_printf(arena,
                         "{\"task_id\":\"%s\",\"proplet_id\":\"%s\","
                         "\"metrics\":{\"cpu_percent\":0.5,\"memory_bytes\":2048}}",
                         SAMPLES[_i].id, SAMPLES[_i].sender));
    ck_assert_str_eq(woken(sink.task_queue), taken ? "one" : "");
    expect_nothing();

    struct attempt attempt = attempts_get(sink.attempts, "uid-one", 2, 200);
    ck_assert_int_eq(attempt.confirmed_ms, taken ? clock_monotonic_ms(&fake.clock) : 0);
    ck_assert_int_eq(attempt.sample_us, taken ? FAKE_CLOCK_WALL_US : 0);
    if (!taken)
        ck_metric(arena_printf(arena, "propeller_samples_rejected_total{reason=\"%s\"} 1",
                               SAMPLES[_i].rejected));
}
END_TEST

static const struct {
    const char *metrics;
    const char *reason;
} HOSTILE[] = {
    { "{\"cpu_percent\":\"1\"}", "not_a_number" },
    { "{\"cpu_percent\":1,\"memory_bytes\":-1}", "negative" },
    { "\"none\"", "empty" },
};

START_TEST(numbers_that_cannot_be_meant_are_counted_and_still_a_sign_of_life)
{
    attempts_published(sink.attempts, "uid-one", 2, 100, 100);
    receive(TOPIC("proplet/task_metrics"),
            arena_printf(arena,
                         "{\"task_id\":\"uid-one.2\",\"proplet_id\":\"device-1\",\"metrics\":%s}",
                         HOSTILE[_i].metrics));
    expect_nothing();

    struct attempt attempt = attempts_get(sink.attempts, "uid-one", 2, 200);
    ck_assert_int_ne(attempt.confirmed_ms, 0);
    ck_assert_int_eq(attempt.sample_us, 0);
    ck_metric(arena_printf(arena, "propeller_samples_rejected_total{reason=\"%s\"} 1",
                           HOSTILE[_i].reason));
}
END_TEST

#define TASK_SAMPLE(bytes)                                                                         \
    "{\"task_id\":\"uid-one.2\",\"proplet_id\":\"device-1\",\"metrics\":{\"cpu_percent\":0.5,"     \
    "\"memory_percent\":0.0,\"memory_bytes\":" bytes "}}"

START_TEST(task_is_woken_by_the_first_sample_that_waits_to_be_written)
{
    attempts_published(sink.attempts, "uid-one", 2, 100, 100);
    receive(TOPIC("proplet/task_metrics"), TASK_SAMPLE("1024"));
    ck_assert_str_eq(woken(sink.task_queue), "one");
    fake_clock_advance(&fake, 10000);
    receive(TOPIC("proplet/task_metrics"), TASK_SAMPLE("2048"));
    expect_nothing();

    struct attempt attempt = attempts_get(sink.attempts, "uid-one", 2, 200);
    ck_assert_int_eq(attempt.sample_us, FAKE_CLOCK_WALL_US + 10000000);
    ck_assert_int_eq(attempt.sample.memory_bytes, 2);
    ck_assert_int_eq(attempt.sample.memory_milli_percent, -1);
    attempts_sample_written(sink.attempts, "uid-one", attempt.sample_us);
    receive(TOPIC("proplet/task_metrics"), TASK_SAMPLE("4096"));
    ck_assert_str_eq(woken(sink.task_queue), "one");
}
END_TEST

static const struct {
    const char *text;
    const char *reason; /* NULL: it is taken */
} METRICS[] = {
    { "{\"proplet_id\":\"device-1\",\"cpu_metrics\":{\"percent\":1}}", NULL },
    { "{\"proplet_id\":\"device-2\",\"cpu_metrics\":{\"percent\":1}}", "unknown_proplet" },
    { "{\"proplet_id\":\"device-1\",\"cpu_metrics\":{\"percent\":-1}}", "negative" },
    { "{\"proplet_id\":\"device-1\"}", "empty" },
};

START_TEST(metrics_of_a_proplet_wake_nobody)
{
    receive(TOPIC("proplet/metrics"), METRICS[_i].text);
    expect_nothing();
    ck_assert_int_eq(device(KEY).sample_us, METRICS[_i].reason ? 0 : FAKE_CLOCK_WALL_US);
    ck_assert_int_eq(device(CHANNEL "/device-2").sample_us, 0);
    ck_assert(!device(KEY).alive); /* only heartbeats are life */
    if (METRICS[_i].reason)
        ck_metric(arena_printf(arena, "propeller_samples_rejected_total{reason=\"%s\"} 1",
                               METRICS[_i].reason));
}
END_TEST

START_TEST(sample_without_attempt_is_of_the_first)
{
    put_task("two", "{\"phase\":\"running\",\"assignedProplet\":\"alpha\",\"attempt\":1}");
    attempts_published(sink.attempts, "uid-two", 1, 100, 100);
    receive(TOPIC("proplet/task_metrics"), "{\"task_id\":\"uid-two\",\"proplet_id\":\"device-1\"}");
    ck_assert_int_ne(attempts_get(sink.attempts, "uid-two", 1, 200).confirmed_ms, 0);
}
END_TEST

START_TEST(marker_is_handed_over_with_its_length)
{
    bridge_message(&sink, TOPIC("controller/marker"), "nonce and more", 5);
    ck_assert_str_eq(marker, "nonce");
    expect_nothing();
}
END_TEST

START_TEST(what_is_not_read_is_counted_only)
{
    receive(TOPIC("proplet/invoke_results"), "{\"task_id\":\"uid-one\"}");
    receive(TOPIC("manager/start"), "{\"task_id\":\"uid-one\"}");
    receive("", "{}");
    expect_nothing();
    ck_metric("propeller_mqtt_messages_total{kind=\"unknown\"} 3");
}
END_TEST

START_TEST(active_tasks_are_woken_together)
{
    put_task("three", "{\"phase\":\"pending\"}");
    put_task("four", "{\"phase\":\"scheduled\",\"assignedProplet\":\"alpha\"}");
    put_task("five", "{\"phase\":\"scheduled\"}");
    put_task("six", "{\"phase\":\"completed\",\"assignedProplet\":\"alpha\"}");
    put_task("seven", "{}");
    bridge_wake_active(&sink);
    ck_assert_str_eq(woken(sink.task_queue), "four one");
}
END_TEST

START_TEST(nothing_rejected_is_no_series)
{
    bridge_count_rejected("other_attempt", 0);
    ck_no_metric("propeller_results_rejected_total{reason=\"other_attempt\"} 0");
    bridge_count_rejected("other_attempt", 2);
    ck_metric("propeller_results_rejected_total{reason=\"other_attempt\"} 2");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bridge messages");
    TCase *tcase = tcase_create("results");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, result_of_a_known_task_is_kept_and_wakes_it, 0, ARRAY_LEN(IDS));
    tcase_add_test(tcase, result_of_an_unknown_task_is_counted_and_does_not_wait);
    tcase_add_loop_test(tcase, malformed_result_is_counted_and_does_not_wait, 0,
                        ARRAY_LEN(MALFORMED));
    tcase_add_test(tcase, result_that_does_not_fit_is_left_to_the_broker);
    tcase_add_test(tcase, nothing_rejected_is_no_series);
    suite_add_tcase(suite, tcase);

    tcase = tcase_create("devices");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, first_heartbeat_wakes_the_proplet_and_the_next_do_not);
    tcase_add_test(tcase, every_claimant_of_an_identity_is_woken);
    tcase_add_test(tcase, last_will_of_a_known_proplet_wakes_it_once);
    tcase_add_loop_test(tcase, life_and_death_of_strangers_change_nothing, 0, ARRAY_LEN(FOREIGN));
    tcase_add_test(tcase, malformed_message_is_counted_by_its_kind);
    tcase_add_test(tcase, restart_is_told_to_the_tasks_of_the_device);
    tcase_add_test(tcase, restart_that_the_broker_held_is_marked);
    tcase_add_test(tcase, restart_keeps_its_place_behind_the_results_before_it);
    tcase_add_test(tcase, restart_that_does_not_fit_is_kept_by_the_broker);
    tcase_add_test(tcase, restart_makes_a_device_fresh_that_is_known);
    tcase_add_test(tcase, metadata_wakes_the_proplet_when_it_differs);
    tcase_add_test(tcase, metadata_of_a_device_without_a_proplet_is_kept_for_it);
    tcase_add_test(tcase, registration_without_metadata_leaves_it_as_it_is);
    suite_add_tcase(suite, tcase);

    tcase = tcase_create("attempts");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, sample_confirms_the_attempt_that_it_names, 0, ARRAY_LEN(SAMPLES));
    tcase_add_test(tcase, sample_without_attempt_is_of_the_first);
    tcase_add_loop_test(tcase, numbers_that_cannot_be_meant_are_counted_and_still_a_sign_of_life, 0,
                        ARRAY_LEN(HOSTILE));
    tcase_add_test(tcase, task_is_woken_by_the_first_sample_that_waits_to_be_written);
    tcase_add_loop_test(tcase, metrics_of_a_proplet_wake_nobody, 0, ARRAY_LEN(METRICS));
    tcase_add_test(tcase, marker_is_handed_over_with_its_length);
    tcase_add_test(tcase, what_is_not_read_is_counted_only);
    tcase_add_test(tcase, active_tasks_are_woken_together);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
