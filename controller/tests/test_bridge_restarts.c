/* What becomes of a create: mail for the Tasks of its device. */
#include <inttypes.h>

#include "controller/tests/hub.h"

static void expect_mail(const char *uid, const char *kinds)
{
    struct mail *mail;
    size_t count = mailbox_peek(hub.sink.mailbox, hub.arena, uid, &mail);
    const char *text = "";

    for (size_t i = 0; i < count; i++)
        text = arena_printf(hub.arena, "%s%s%s", text, i ? ", " : "", mail[i].kind);
    ck_assert_str_eq(text, kinds);
}

TEST_GROUP("create", hub_set_up, hub_tear_down);

TEST(restart_is_told_to_the_tasks_of_the_device)
{
    hub_put_proplet("beta", "device-2");
    hub_put_task("two", "{\"phase\":\"scheduled\",\"assignedProplet\":\"alpha\"}");
    hub_put_task("three", "{\"phase\":\"running\",\"assignedProplet\":\"beta\"}");
    hub_put_task("four", "{\"phase\":\"completed\",\"assignedProplet\":\"alpha\"}");
    hub.sink.caught_up = true;
    hub_receive(HUB_TOPIC("proplet/create"), "{\"proplet_id\":\"device-1\"}");
    expect_mail("uid-one", MAIL_RESTART);
    expect_mail("uid-two", MAIL_RESTART);
    ck_assert_uint_eq(mailbox_len(hub.sink.mailbox), 2);
    ck_assert_str_eq(hub_woken(hub.sink.task_queue), "one two");
    ck_assert(bridge_sink_settled(&hub.sink));
}

TEST(restart_of_a_pod_is_told_to_its_own_tasks_alone)
{
    hub_put_pool("pool", "pool");
    hub_put_task("two", "{\"phase\":\"running\",\"assignedProplet\":\"pool\","
                        "\"assignedClientId\":\"pool-0\"}");
    hub_put_task("three", "{\"phase\":\"running\",\"assignedProplet\":\"pool\","
                          "\"assignedClientId\":\"pool-1\"}");
    hub.sink.caught_up = true;
    hub_receive(HUB_TOPIC("proplet/create"), "{\"proplet_id\":\"pool-1\"}");
    expect_mail("uid-two", "");
    expect_mail("uid-three", MAIL_RESTART);
}

TEST(restart_that_the_broker_held_is_marked)
{
    hub_receive(HUB_TOPIC("proplet/create"), "{\"proplet_id\":\"device-1\"}");
    expect_mail("uid-one", MAIL_STORED_RESTART);
}

TEST(restart_keeps_its_place_behind_the_results_before_it)
{
    hub.sink.caught_up = true;
    hub_receive(HUB_TOPIC("proplet/results"), "{\"task_id\":\"uid-one\",\"results\":\"42\"}");
    hub_receive(HUB_TOPIC("proplet/create"), "{\"proplet_id\":\"device-1\"}");
    expect_mail("uid-one", MAIL_RESULT ", " MAIL_RESTART);
}

/* Otherwise a device that restarts again and again would delay the messages of all others. */
TEST(only_the_last_restart_is_kept_and_also_while_the_inbox_is_full)
{
    struct mail *mail;

    hub.sink.caught_up = true;
    for (int i = 0; i < 2; i++)
        hub_receive(HUB_TOPIC("proplet/results"), "{\"task_id\":\"uid-one\",\"results\":\"42\"}");
    for (int i = 0; i < 10; i++) {
        fake_clock_advance(&hub.clock, 1000);
        hub_receive(HUB_TOPIC("proplet/create"), "{\"proplet_id\":\"device-1\"}");
    }
    expect_mail("uid-one", MAIL_RESULT ", " MAIL_RESULT ", " MAIL_RESTART);
    ck_assert_uint_eq(mailbox_peek(hub.sink.mailbox, hub.arena, "uid-one", &mail), 3);
    ck_assert_str_eq(mail[2].body,
                     arena_printf(hub.arena, "%" PRId64, clock_monotonic_ms(&hub.clock.clock)));
    ck_assert(bridge_sink_settled(&hub.sink));
}

TEST(restart_makes_a_device_fresh_that_is_known)
{
    hub_receive(HUB_TOPIC("proplet/alive"), "{\"proplet_id\":\"device-1\",\"status\":\"alive\"}");
    ck_assert_int_eq(hub_device(HUB_KEY).fresh_since_ms, 0);
    fake_clock_advance(&hub.clock, 1000);
    hub_receive(HUB_TOPIC("proplet/create"), "{\"proplet_id\":\"device-1\"}");
    ck_assert_int_eq(hub_device(HUB_KEY).fresh_since_ms, clock_monotonic_ms(&hub.clock.clock));
}
