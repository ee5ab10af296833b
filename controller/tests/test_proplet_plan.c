#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "common/tests/suite.h"
#include "controller/proplet/proplet_plan.h"

#define NOW_MS 1000000
#define NOW_US INT64_C(1795255200000000) /* 2026-11-21T10:00:00Z */
#define THRESHOLD_MS 30000

static struct arena *arena;
static struct proplet_observed observed;

/* A Proplet nobody has heard of, on a channel subscribed to a second ago. */
static struct connection_config connection = { .domain_id = "demo",
                                               .channel_id = "workers",
                                               .client_id = "device-1" };

static void set_up(void)
{
    json_init();
    arena = arena_create();
    observed = (struct proplet_observed){
        .name = "alpha",
        .generation = 1,
        .proplet.spec = { .type = PROPLET_EXTERNAL, .connection_config = &connection },
        .mqtt_configured = true,
        .channel.since_ms = NOW_MS - 1000,
        .threshold_ms = THRESHOLD_MS,
        .now_ms = NOW_MS,
        .now_us = NOW_US,
    };
}

static void tear_down(void)
{
    arena_destroy(arena);
}

TEST_GROUP("life", set_up, tear_down);

static void wait_ms(int64_t ms)
{
    observed.now_ms += ms;
    observed.now_us += ms * 1000;
}

static void heartbeat(void)
{
    struct fleet_device *device = &observed.device;

    device->alive = true;
    device->will = false;
    device->last_seen_ms = observed.now_ms;
    device->last_seen_us = observed.now_us;
    device->history_us[0] = observed.now_us;
    device->history_len = 1;
}

static struct proplet_plan plan(void)
{
    return proplet_plan(arena, &observed);
}

/* What the reconciler does: the status is written, a silent device counts as dead. */
static struct proplet_plan done(void)
{
    struct proplet_plan result = plan();

    observed.proplet.status = result.status;
    if (result.device == DEVICE_SILENT)
        observed.device.alive = false;
    return result;
}

static void run(void)
{
    heartbeat();
    done();
    ck_assert_int_eq(observed.proplet.status.phase, PROPLET_RUNNING);
}

/* Another process: nothing heard, not subscribed. */
static void restart(void)
{
    observed.device = (struct fleet_device){ 0 };
    observed.channel = (struct channel_state){ 0 };
}

static const char *condition(const struct proplet_plan *result, const char *type)
{
    const cJSON *found = condition_get(result->status.conditions, type);

    return arena_printf(arena, "%s %s: %s", json_string(json_get(found, "status"), "?"),
                        json_string(json_get(found, "reason"), "?"),
                        json_string(json_get(found, "message"), "?"));
}

static void expect_silence(const struct proplet_plan *result)
{
    ck_assert_int_eq(result->write, PROPLET_WRITE_NOTHING);
    ck_assert_ptr_null(result->event);
    ck_assert(json_equal(proplet_status_encode(arena, &result->status),
                         proplet_status_encode(arena, &observed.proplet.status)));
}

TEST(new_proplet_waits_for_its_first_heartbeat)
{
    struct proplet_plan result = done();

    ck_assert(result.write == PROPLET_WRITE_NOW);
    ck_assert_int_eq(result.status.phase, PROPLET_INITIALIZING);
    ck_assert(!result.status.alive);
    ck_assert_str_eq(condition(&result, "Ready"),
                     "False WaitingForHeartbeat: no heartbeat yet of client id 'device-1' on "
                     "channel 'demo/workers'");
    ck_assert_str_eq(condition(&result, "Connected"), "False NoHeartbeat: no heartbeats arrive");
    ck_assert_int_eq(result.status.observed_generation, 1);
    ck_assert_ptr_null(result.event);

    wait_ms(100 * THRESHOLD_MS);
    result = plan();
    expect_silence(&result);
}

TEST(first_heartbeat_makes_it_running)
{
    done();
    heartbeat();
    struct proplet_plan result = plan();

    ck_assert(result.write == PROPLET_WRITE_NOW);
    ck_assert_int_eq(result.status.phase, PROPLET_RUNNING);
    ck_assert(result.status.alive);
    ck_assert_str_eq(condition(&result, "Ready"), "True Alive: heartbeats arrive");
    ck_assert_str_eq(condition(&result, "Connected"), "True Heartbeat: ");
    ck_assert_int_eq(result.status.last_seen_us, NOW_US);
    ck_assert_int_eq(result.event->type, EVENT_NORMAL);
    ck_assert_str_eq(result.event->reason, "Online");
    ck_assert_int_eq(result.deadline_ms, NOW_MS + THRESHOLD_MS);
}

TEST(heartbeats_are_refreshes_and_no_transitions)
{
    run();
    for (int i = 0; i < 20; i++) {
        wait_ms(10000);
        heartbeat();
        struct proplet_plan result = done();
        ck_assert(result.write != PROPLET_WRITE_NOW);
        ck_assert(result.write >= PROPLET_WRITE_VALUES);
        ck_assert_ptr_null(result.event);
        ck_assert_int_eq(result.deadline_ms, observed.now_ms + THRESHOLD_MS);
    }
}

TEST(nothing_is_written_when_nothing_was_heard)
{
    run();
    wait_ms(THRESHOLD_MS - 1);
    struct proplet_plan result = plan();

    expect_silence(&result);
}

TEST(silence_makes_it_offline_once)
{
    run();
    wait_ms(THRESHOLD_MS);
    struct proplet_plan result = done();

    ck_assert(result.device == DEVICE_SILENT);
    ck_assert(result.write == PROPLET_WRITE_NOW);
    ck_assert_int_eq(result.status.phase, PROPLET_OFFLINE);
    ck_assert(!result.status.alive);
    ck_assert_str_eq(condition(&result, "Ready"), "False HeartbeatsStopped: no heartbeat for 30 s");
    ck_assert_str_eq(condition(&result, "Connected"), "False NoHeartbeat: no heartbeats arrive");
    ck_assert_str_eq(result.event->reason, "Offline");
    ck_assert_int_eq(result.event->type, EVENT_WARNING);
    ck_assert_int_eq(result.deadline_ms, 0);

    wait_ms(THRESHOLD_MS);
    result = plan();
    expect_silence(&result);

    heartbeat();
    result = plan();
    ck_assert_int_eq(result.status.phase, PROPLET_RUNNING);
    ck_assert_str_eq(result.event->reason, "Online");
}

TEST(silence_counts_from_the_subscription)
{
    run();
    wait_ms(100 * THRESHOLD_MS);
    observed.channel.since_ms = observed.now_ms;
    struct proplet_plan result = plan();
    expect_silence(&result);
    ck_assert_int_eq(result.deadline_ms, observed.now_ms + THRESHOLD_MS);

    wait_ms(THRESHOLD_MS);
    result = plan();
    ck_assert_int_eq(result.status.phase, PROPLET_OFFLINE);
}

TEST(outage_of_the_broker_turns_nobody_offline)
{
    run();
    observed.channel.since_ms = 0;
    wait_ms(100 * THRESHOLD_MS);
    struct proplet_plan result = plan();

    expect_silence(&result);
    ck_assert(result.device != DEVICE_SILENT);
    ck_assert_int_eq(result.deadline_ms, 0);
}

TEST_TIMES(restart_of_the_controller_leaves_the_phase_as_it_was, 2)
{
    static const enum proplet_phase PHASES[] = { PROPLET_RUNNING, PROPLET_OFFLINE };

    run();
    if (PHASES[_i] == PROPLET_OFFLINE) {
        wait_ms(THRESHOLD_MS);
        done();
    }
    restart();
    wait_ms(100 * THRESHOLD_MS);
    struct proplet_plan result = plan();
    expect_silence(&result);
    ck_assert_int_eq(result.status.phase, PHASES[_i]);

    observed.channel.since_ms = observed.now_ms;
    result = plan();
    expect_silence(&result);
    ck_assert_int_eq(result.deadline_ms, observed.now_ms + THRESHOLD_MS);

    wait_ms(THRESHOLD_MS);
    result = plan();
    ck_assert_int_eq(result.status.phase, PROPLET_OFFLINE);
    ck_assert_int_eq(result.write == PROPLET_WRITE_NOW, PHASES[_i] == PROPLET_RUNNING);
}

TEST(last_will_makes_it_offline_at_once)
{
    run();
    observed.device.alive = false;
    observed.device.will = true;
    struct proplet_plan result = done();

    ck_assert_int_eq(result.status.phase, PROPLET_OFFLINE);
    ck_assert_str_eq(condition(&result, "Ready"),
                     "False LastWill: the broker published the device's last will");
    ck_assert_str_eq(result.event->reason, "Offline");
    wait_ms(THRESHOLD_MS);
    result = plan();
    expect_silence(&result);

    heartbeat();
    result = plan();
    ck_assert_int_eq(result.status.phase, PROPLET_RUNNING);
}

static void claim(void)
{
    observed.claimed_by = "default/beta";
}

static void share(void)
{
    observed.channel_taken_by = "other/chip";
}

static void refuse(void)
{
    observed.channel.refused = true;
}

static void configure_no_mqtt(void)
{
    observed.mqtt_configured = false;
}

static const struct {
    void (*set_up)(void);
    const char *ready;
    const char *new_event;
    const char *running_event;
} OBSTACLES[] = {
    { claim,
      "False DuplicateClientId: Proplet 'default/beta' has the same domainId, channelId and "
      "clientId",
      "DuplicateClientId", "DuplicateClientId" },
    { share,
      "False SharedChannel: Proplet 'other/chip' was on this channel first, and an embedded "
      "Proplet must be the only one of its channel",
      NULL, "Offline" },
    { refuse, "False SubscriptionRefused: the broker refused a subscription to this channel", NULL,
      "Offline" },
    { configure_no_mqtt,
      "False MQTTNotConfigured: the controller was started without --mqtt-address", NULL,
      "Offline" },
};

TEST_GROUP("obstacles and values", set_up, tear_down);

TEST_EACH(obstacle_is_said_whatever_the_device_says, OBSTACLES)
{
    OBSTACLES[_i].set_up();
    heartbeat();
    struct proplet_plan result = done();

    ck_assert(result.write == PROPLET_WRITE_NOW);
    ck_assert_int_eq(result.status.phase, PROPLET_INITIALIZING);
    ck_assert_str_eq(condition(&result, "Ready"), OBSTACLES[_i].ready);
    ck_assert_pstr_eq(result.event ? result.event->reason : NULL, OBSTACLES[_i].new_event);
    wait_ms(THRESHOLD_MS);
    result = plan();
    expect_silence(&result);
}

TEST_EACH(obstacle_that_is_gone_is_told_before_the_device_is_heard, OBSTACLES)
{
    struct proplet_observed before = observed;
    OBSTACLES[_i].set_up();
    (void)done();
    before.proplet.status = observed.proplet.status;
    observed = before;

    observed.channel.results_since_ms = 0; /* it may come back with the subscriptions */
    struct proplet_plan result = plan();
    expect_silence(&result);
    observed.channel.results_since_ms = observed.channel.since_ms;
    result = done();
    ck_assert_int_eq(result.status.phase, PROPLET_INITIALIZING);
    ck_assert_str_eq(condition(&result, "Ready"),
                     "False WaitingForHeartbeat: no heartbeat yet of client id 'device-1' on "
                     "channel 'demo/workers'");
    ck_assert_ptr_null(result.event);
    result = plan();
    expect_silence(&result);
}

TEST_EACH(obstacle_of_a_running_proplet_makes_it_offline_until_it_is_gone, OBSTACLES)
{
    run();
    struct proplet_observed before = observed;
    OBSTACLES[_i].set_up();
    struct proplet_plan result = done();

    ck_assert_int_eq(result.status.phase, PROPLET_OFFLINE);
    ck_assert_str_eq(condition(&result, "Ready"), OBSTACLES[_i].ready);
    ck_assert_str_eq(result.event->reason, OBSTACLES[_i].running_event);
    ck_assert_int_eq(result.event->type, EVENT_WARNING);
    result = plan();
    expect_silence(&result);

    before.proplet.status = observed.proplet.status;
    observed = before;
    result = plan();
    ck_assert_int_eq(result.status.phase, PROPLET_RUNNING);
    ck_assert_str_eq(result.event->reason, "Online");
}

TEST(changed_spec_is_acknowledged_at_once)
{
    run();
    observed.generation = 2;
    struct proplet_plan result = done();

    ck_assert(result.write == PROPLET_WRITE_NOW);
    ck_assert_int_eq(result.status.observed_generation, 2);
    ck_assert_ptr_null(result.event);
    result = plan();
    expect_silence(&result);
}

TEST(changed_spec_is_acknowledged_before_anything_is_heard)
{
    run();
    restart();
    observed.generation = 2;
    struct proplet_plan result = done();

    ck_assert(result.write == PROPLET_WRITE_NOW);
    ck_assert_int_eq(result.status.observed_generation, 2);
    ck_assert_int_eq(result.status.phase, PROPLET_RUNNING);
}

TEST(another_reason_is_written_at_once)
{
    done();
    share();
    struct proplet_plan result = done();

    ck_assert(result.write == PROPLET_WRITE_NOW);
    ck_assert_int_eq(result.status.phase, PROPLET_INITIALIZING);
}

TEST_TIMES(counts_and_metadata_are_refreshes, 3)
{
    run();
    if (_i == 0)
        observed.tasks.total = 3;
    else if (_i == 1)
        observed.tasks.active = 2;
    else
        observed.device.metadata = "{\"os\":\"linux\",\"totalMemoryBytes\":25276510208}";
    struct proplet_plan result = done();

    ck_assert(result.write >= PROPLET_WRITE_VALUES);
    ck_assert(result.write != PROPLET_WRITE_NOW);
    ck_assert_int_eq(result.write == PROPLET_WRITE_NEWS, _i == 2);
    ck_assert_int_eq(result.status.task_count, observed.tasks.total);
    ck_assert_int_eq(result.status.active_task_count, observed.tasks.active);
    if (observed.device.metadata)
        ck_assert_str_eq(json_text(arena, result.status.metadata, NULL), observed.device.metadata);
    result = plan();
    expect_silence(&result);
}

TEST(history_is_written_as_times_oldest_first)
{
    heartbeat();
    observed.device.history_us[0] = NOW_US - 10000000;
    observed.device.history_us[1] = NOW_US;
    observed.device.history_len = 2;
    struct proplet_plan result = plan();

    ck_assert_uint_eq(result.status.alive_history.len, 2);
    ck_assert_str_eq(result.status.alive_history.items[0], "2026-11-21T09:59:50Z");
    ck_assert_str_eq(result.status.alive_history.items[1], "2026-11-21T10:00:00Z");
}

TEST(what_an_earlier_leader_saw_stays_until_something_is_heard)
{
    run();
    observed.device.metadata = "{\"os\":\"linux\"}";
    done();
    restart();
    struct proplet_plan result = plan();

    ck_assert_int_eq(result.status.last_seen_us, NOW_US);
    ck_assert_uint_eq(result.status.alive_history.len, 1);
    ck_assert_str_eq(json_text(arena, result.status.metadata, NULL), "{\"os\":\"linux\"}");
}

/* A message that names a time or a count would make every pass differ, and every write wake the
 * next pass. */
TEST_TIMES(messages_are_the_same_at_every_time, 5)
{
    static void (*const STATES[])(void) = { heartbeat, claim, share, refuse, configure_no_mqtt };
    const struct proplet_status untouched = { 0 };

    STATES[_i]();
    struct proplet_plan early = plan();
    observed.proplet.status = untouched;
    wait_ms(12345678);
    if (_i == 0)
        heartbeat();
    observed.tasks = (struct placement_count){ 7, 5 };
    struct proplet_plan late = plan();

    ck_assert_str_eq(condition(&early, "Ready"), condition(&late, "Ready"));
    ck_assert_str_eq(condition(&early, "Connected"), condition(&late, "Connected"));
    ck_assert_ptr_eq(early.event, late.event);
}

TEST_GROUP("availability", set_up, tear_down);

static void available(enum availability_state state, enum reason reason)
{
    observed.availability =
        (struct availability){ .state = state, .reason = reason, .since_us = observed.now_us };
}

TEST(proplet_without_the_fields_costs_no_write)
{
    run();
    struct proplet_plan result = plan();

    expect_silence(&result);
    ck_assert_ptr_null(result.status.availability);
    ck_assert_str_eq(condition(&result, "Available"), "? ?: ?");
}

static const struct {
    enum availability_state before_state, state;
    enum reason before, reason;
    enum proplet_write write;
} WRITES[] = {
    { AVAILABILITY_UNSET, AVAILABILITY_OPEN, REASON_NONE, REASON_IN_WINDOW, PROPLET_WRITE_NOW },
    { AVAILABILITY_OPEN, AVAILABILITY_CLOSED, REASON_IN_WINDOW, REASON_OUTSIDE_WINDOW,
      PROPLET_WRITE_OPENING },
    { AVAILABILITY_CLOSED, AVAILABILITY_OPEN, REASON_OVERRIDE_CLOSED, REASON_ALWAYS,
      PROPLET_WRITE_OPENING },
    { AVAILABILITY_DRAINING, AVAILABILITY_CLOSED, REASON_RECLAIMED, REASON_RECLAIMED,
      PROPLET_WRITE_OPENING },
    { AVAILABILITY_OPEN, AVAILABILITY_CLOSED, REASON_IN_WINDOW, REASON_RECLAIMED,
      PROPLET_WRITE_NOW },
    { AVAILABILITY_CLOSED, AVAILABILITY_OPEN, REASON_RECLAIMED, REASON_IN_WINDOW,
      PROPLET_WRITE_NOW },
    { AVAILABILITY_CLOSED, AVAILABILITY_UNSET, REASON_RECLAIMED, REASON_NONE, PROPLET_WRITE_NOW },
    { AVAILABILITY_OPEN, AVAILABILITY_OPEN, REASON_IN_WINDOW, REASON_IN_WINDOW,
      PROPLET_WRITE_NOTHING },
};

TEST_EACH(what_people_change_is_written_at_once_and_what_time_changes_is_not, WRITES)
{
    run();
    available(WRITES[_i].before_state, WRITES[_i].before);
    done();
    available(WRITES[_i].state, WRITES[_i].reason);
    struct proplet_plan result = done();

    ck_assert_int_eq(result.write, WRITES[_i].write);
    ck_assert_int_eq(result.status.availability != NULL, WRITES[_i].state != AVAILABILITY_UNSET);
    result = plan();
    expect_silence(&result);
}

/* The generation is in the same status. */
TEST(edit_that_closes_is_written_at_once)
{
    run();
    available(AVAILABILITY_OPEN, REASON_IN_WINDOW);
    done();
    observed.generation++;
    available(AVAILABILITY_CLOSED, REASON_OUTSIDE_WINDOW);
    ck_assert_int_eq(plan().write, PROPLET_WRITE_NOW);
}

TEST(next_turn_is_that_of_silence_or_of_the_availability)
{
    heartbeat();
    ck_assert_int_eq(plan().deadline_ms, NOW_MS + THRESHOLD_MS);
    observed.availability.look_us = NOW_US + 1000001;
    ck_assert_int_eq(plan().deadline_ms, NOW_MS + 1001); /* never before it */
    observed.availability.look_us = NOW_US + INT64_C(30000001);
    ck_assert_int_eq(plan().deadline_ms, NOW_MS + THRESHOLD_MS);
    restart();
    ck_assert_int_eq(plan().deadline_ms, NOW_MS + 30001);
}
