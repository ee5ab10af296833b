/* What the bridge believes while its connections are away, and after that, against a real broker.
 */
#include "common/tests/observe.h"
#include "controller/bridge/bridge_messages.h"
#include "controller/tests/bridge_rig.h"

#define SENT "Sending PUBLISH to controller-results"
#define CREATE "m/d/c/c/control/proplet/create"
#define ALIVE "m/d/c/c/control/proplet/alive"
#define HEARTBEAT(id) "{\"proplet_id\":\"" id "\",\"status\":\"alive\"}"
#define CREATED "{\"proplet_id\":\"device-1\"}"

/* No result fits. */
static const struct mailbox_limits TINY = { 1, 1, 16 };

static struct channel_state state(void)
{
    return bridge_channel_state(rig.bridge, "d/c");
}

static void expect_active_task_woken(void)
{
    struct kube_name name;

    ck_assert_uint_eq(workqueue_len(rig.task_queue), 1);
    ck_assert(workqueue_get(rig.task_queue, &name));
    ck_assert_str_eq(name.name, RIG_TASK.name);
    workqueue_done(rig.task_queue, &name);
    ck_assert_uint_eq(workqueue_len(rig.task_queue), 0);
}

TEST_GROUP("outages", rig_set_up, rig_tear_down);

/* A device is silent to whoever does not hear it, and that is no fault of the device. */
TEST(channel_is_heard_only_while_connected_and_active_tasks_look_again)
{
    rig_begin(&RIG_ROOMY);
    poll_until(state().since_ms && state().results_since_ms);
    expect_active_task_woken();
    struct channel_state before = state();

    broker_kill(rig.broker);
    poll_until(!state().since_ms);
    poll_until(!state().results_since_ms);
    ck_assert_uint_eq(workqueue_len(rig.task_queue), 0);

    broker_start(rig.broker);
    poll_until(state().since_ms && state().results_since_ms);
    ck_assert_int_gt(state().since_ms, before.since_ms);
    ck_assert_int_gt(state().results_since_ms, before.results_since_ms);
    expect_active_task_woken();
    rig_end();
}

/* A marker of this connection has come back. */
static void wait_until_caught_up(void)
{
    poll_until(state().since_ms && state().results_since_ms);
    int64_t now_ms = clock_monotonic_ms(&CLOCK_SYSTEM);
    poll_until(bridge_catches_up(rig.bridge, now_ms, &RIG_TASK));
}

/* The oldest: what was written but not acknowledged in time comes again with the next. */
static void expect_mail(const char *kind)
{
    struct mail *mail;

    poll_until(mailbox_peek(rig.options.mailbox, rig.arena, "uid-one", &mail)); /* it is shown */
    ck_assert_str_eq(mail->kind, kind);
    mailbox_ack(rig.options.mailbox, "uid-one", mail->sequence);
}

TEST(result_that_does_not_fit_is_not_acknowledged_and_comes_again_to_the_next_process)
{
    rig_begin(&TINY);
    wait_until_caught_up();
    size_t sent = rig_logged(SENT);
    probe_publish(rig.device, RIG_RESULTS, RIG_RESULT);
    poll_until(rig_logged(SENT) > sent);
    rig_wait_asked(); /* time to read it, and to acknowledge it */
    ck_assert_uint_eq(mailbox_len(rig.options.mailbox), 0);
    rig_end();

    rig_begin(&RIG_ROOMY);
    expect_mail(MAIL_RESULT);
    rig_end();
}

static void put_proplet(const char *name, const char *client_id)
{
    rig_put(rig.options.proplets,
            arena_printf(rig.arena,
                         "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"%s\",\"uid\":\"uid-%s\","
                         "\"resourceVersion\":\"6\"},\"spec\":{\"connectionConfig\":{"
                         "\"domainId\":\"d\",\"channelId\":\"c\",\"clientId\":\"%s\"}}}",
                         name, name, client_id));
}

static bool is_alive(const char *identity)
{
    struct fleet_device device;

    fleet_get(rig.options.fleet, rig.arena, identity, &device);
    return device.alive;
}

TEST(retained_messages_restart_revive_and_end_nothing)
{
    put_proplet("p", "device-1");
    put_proplet("q", "device-2");
    probe_publish_retained(rig.broker, CREATE, CREATED);
    probe_publish_retained(rig.broker, RIG_RESULTS, RIG_RESULT);
    probe_publish_retained(rig.broker, ALIVE, HEARTBEAT("device-1"));

    rig_begin(&RIG_ROOMY);
    wait_until_caught_up();
    probe_publish(rig.device, ALIVE, HEARTBEAT("device-2"));
    poll_until(is_alive("d/c/device-2"));
    ck_assert(!is_alive("d/c/device-1"));
    ck_assert_uint_eq(mailbox_len(rig.options.mailbox), 0);
    ck_metric("propeller_mqtt_retained_total{kind=\"create\"} 1");
    ck_metric("propeller_mqtt_retained_total{kind=\"results\"} 1");
    ck_metric("propeller_mqtt_retained_total{kind=\"alive\"} 1");
    rig_end();
}

/* Takes what is in the queue; true: the Proplet p was there. */
static bool was_woken(void)
{
    struct kube_name name;
    bool found = false;

    while (workqueue_len(rig.proplet_queue)) {
        ck_assert(workqueue_get(rig.proplet_queue, &name));
        found |= !strcmp(name.name, "p");
        workqueue_done(rig.proplet_queue, &name);
    }
    return found;
}

TEST(refused_channel_is_heard_when_the_broker_grants_it_later)
{
    broker_kill(rig.broker);
    probe_wait_disconnected(rig.device);
    broker_refuse_subscriptions(rig.broker);
    broker_start(rig.broker);
    put_proplet("p", "device-1");
    rig_begin(&RIG_ROOMY);
    poll_until(was_woken());
    ck_assert(state().refused);
    ck_assert_int_eq(state().since_ms, 0);

    probe_wait_connected(rig.device);
    probe_publish(rig.device, BROKER_CONTROL, BROKER_ALLOW);
    poll_until(state().since_ms && state().results_since_ms && !state().refused);
    poll_until(was_woken());
    ck_metric("propeller_mqtt_connects_total{connection=\"events\"} 1");
    ck_metric("propeller_mqtt_connects_total{connection=\"control\"} 1");
    rig_end();
}

TEST(restart_that_was_stored_while_the_connection_was_away_may_be_old)
{
    put_proplet("p", "device-1");
    rig_begin(&RIG_ROOMY);
    wait_until_caught_up();
    probe_publish(rig.device, CREATE, CREATED);
    expect_mail(MAIL_RESTART);

    atomic_store(&rig.holds_lease, false);
    poll_until(rig_logged("Client controller-results closed its connection"));
    poll_until(metric_said("propeller_mqtt_connected{connection=\"events\"}") == 0);
    poll_until(metric_said("propeller_mqtt_connected{connection=\"control\"}") == 0);
    probe_publish(rig.device, CREATE, CREATED);
    atomic_store(&rig.holds_lease, true);
    expect_mail(MAIL_STORED_RESTART); /* nobody has asked for a marker since */
    poll_until(metric_said("propeller_mqtt_connected{connection=\"events\"}") == 1);
    poll_until(metric_said("propeller_mqtt_connected{connection=\"control\"}") == 1);
    rig_end();
}
