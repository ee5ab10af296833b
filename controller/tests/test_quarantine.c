/* A result that is not written, whatever the reason: whom it holds up, and that it is not lost. */
#include "controller/bridge/quarantine.h"

#include "common/base/str.h"
#include "common/tests/observe.h"
#include "controller/bridge/bridge_messages.h"
#include "controller/tests/bridge_rig.h"

/* The controller published with the retain flag. */
#define RETAINED "Received PUBLISH from controller (d0, q1, r1"

#define RIG_CREATE "m/d/c/c/control/proplet/create"

/* More than the broker's window of 20. */
#define STUCK 30

static const char *uid_of(int number)
{
    return arena_printf(rig.arena, "uid-%d", number);
}

static void set_up(void)
{
    rig_set_up();
    for (int i = 0; i <= STUCK; i++)
        rig_put(rig.options.tasks,
                arena_printf(rig.arena,
                             "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"task-%d\",\"uid\":"
                             "\"uid-%d\",\"resourceVersion\":\"%d\"},\"status\":{\"phase\":"
                             "\"running\",\"assignedProplet\":\"p\"}}",
                             i, i, i + 10));
}

TEST_GROUP("quarantine", set_up, rig_tear_down);

static void publish_result(int number)
{
    probe_publish(
        rig.device, RIG_RESULTS,
        arena_printf(rig.arena, "{\"task_id\":\"uid-%d\",\"results\":\"%d\"}", number, number));
}

static size_t waits_for(const char *uid)
{
    struct mail *mail;

    return mailbox_peek(rig.options.mailbox, rig.arena, uid, &mail);
}

/* Subscribed: what is published from now on is kept. */
static void begin(const struct mailbox_limits *limits)
{
    rig_begin(limits);
    poll_until(bridge_channel_state(rig.bridge, "d/c").results_since_ms);
}

static const struct mailbox_limits LARGE = { 16, 1000, 1 << 20 };
/* Half of it for results that are held, the rest for what the broker's window lets through. */
static const struct mailbox_limits SMALL = { 16, 42, 1 << 20 };

/* The results of all but the last Task are not written; it comes behind them, each time. */
static void hold_up(const struct mailbox_limits *limits)
{
    begin(limits);
    for (int i = 0; i < STUCK; i++)
        publish_result(i);
    publish_result(STUCK);
    poll_until(waits_for(uid_of(STUCK)) == 1);
    mailbox_ack(rig.options.mailbox, uid_of(STUCK), UINT64_MAX);
    poll_until(mailbox_wait_empty(rig.options.mailbox, 0));
}

TEST(results_that_are_not_written_hold_up_no_other_and_come_to_the_next_process)
{
    hold_up(&LARGE);
    rig_end();

    rig_begin(&LARGE);
    poll_until(bridge_catches_up(rig.bridge, 0, &RIG_TASK));
    ck_assert_uint_eq(mailbox_held(rig.options.mailbox), STUCK); /* before the marker */
    for (int i = 0; i < STUCK; i++) {
        struct mail *mail;
        ck_assert_uint_eq(mailbox_peek(rig.options.mailbox, rig.arena, uid_of(i), &mail), 1);
        ck_assert_str_eq(mail->kind, MAIL_RESULT);
        ck_assert_str_eq(mail->source, "d/c");
        ck_assert_str_eq(
            mail->body,
            arena_printf(rig.arena, "{\"task_id\":\"uid-%d\",\"results\":\"%d\"}", i, i));
        mailbox_ack(rig.options.mailbox, uid_of(i), UINT64_MAX);
    }
    ck_assert_uint_eq(waits_for(uid_of(STUCK)), 0);
    poll_until(rig_logged(RETAINED) == 2 * STUCK); /* each was removed */
    rig_end();

    rig_begin(&LARGE);
    poll_until(bridge_catches_up(rig.bridge, 0, &RIG_TASK));
    ck_assert_uint_eq(mailbox_len(rig.options.mailbox), 0);
    rig_end();
}

/* It fails its Task, and says that the device has ended. */
TEST(result_of_which_nothing_can_be_stored_comes_to_the_next_process)
{
    struct mail *mail;

    begin(&LARGE);
    probe_publish(rig.device, RIG_RESULTS, "{\"task_id\":\"uid-0\",\"results\":\"\\ud800\"}");
    poll_until(mailbox_held(rig.options.mailbox) == 1);
    rig_end();

    rig_begin(&LARGE);
    poll_until(bridge_catches_up(rig.bridge, 0, &RIG_TASK));
    ck_assert_uint_eq(mailbox_peek(rig.options.mailbox, rig.arena, "uid-0", &mail), 1);
    ck_assert_str_eq(mail->kind, MAIL_UNREADABLE);
    ck_assert_str_eq(mail->source, "d/c");
    rig_end();
}

TEST(results_that_memory_does_not_hold_are_brought_back_from_the_broker)
{
    size_t written = 0;

    hold_up(&SMALL);
    ck_assert_uint_eq(mailbox_held(rig.options.mailbox), 21);
    for (int polls = 0; written < STUCK; polls++) {
        ck_assert_int_lt(polls, MAX_POLLS);
        for (int i = 0; i < STUCK; i++) {
            if (waits_for(uid_of(i))) {
                mailbox_ack(rig.options.mailbox, uid_of(i), UINT64_MAX);
                written++;
            }
        }
        (void)poll(NULL, 0, POLL_MS);
    }
    rig_end();
}

/* Its Task cannot be written, and its device sends one result only. */
TEST(results_beyond_the_limit_of_a_task_are_refused_and_delay_no_other)
{
    begin(&LARGE);
    for (size_t i = 0; i < 4 * LARGE.key_messages; i++)
        probe_publish(rig.device, RIG_RESULTS,
                      arena_printf(rig.arena, "{\"task_id\":\"uid-0\",\"results\":\"%zu\"}", i));
    publish_result(STUCK);
    poll_until(waits_for(uid_of(STUCK)) == 1);

    size_t kept = mailbox_len_of_source(rig.options.mailbox, "d/c", uid_of(STUCK));
    ck_assert_uint_ge(kept, LARGE.key_messages);
    ck_assert_uint_lt(kept, 2 * LARGE.key_messages); /* a recall is not exact */
    rig_end();
}

/* Two minutes, for a busy machine. */
#define MAX_LOOKS 120000

/* Its device sent the result, and was restarted while there was no controller. */
TEST(create_is_not_shown_before_the_result_that_the_next_process_gets_as_a_copy)
{
    struct mail *mail = NULL;
    size_t count = 0;

    rig_put(rig.options.proplets,
            "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"p\",\"uid\":\"uid-p\","
            "\"resourceVersion\":\"1\"},\"spec\":{\"type\":\"external\",\"connectionConfig\":{"
            "\"domainId\":\"d\",\"channelId\":\"c\",\"clientId\":\"device-1\"}}}");
    begin(&LARGE);
    publish_result(0);
    poll_until(mailbox_held(rig.options.mailbox) == 1);
    rig_end();
    probe_publish(rig.device, RIG_CREATE, "{\"proplet_id\":\"device-1\"}");

    rig_begin(&LARGE);
    for (int looks = 0; looks < MAX_LOOKS && count < 2; looks++) {
        count = mailbox_peek(rig.options.mailbox, rig.arena, "uid-0", &mail);
        ck_assert(count != 1 || str_equal(mail[0].kind, MAIL_RESULT)); /* not the create alone */
        (void)poll(NULL, 0, 1);
    }
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_gt(rig_logged(QUARANTINE_END), 0); /* it was not for lack of patience */
    rig_end();
}

TEST(copy_for_a_task_that_is_gone_is_removed)
{
    const struct kube_name gone = { .ns = "ns", .name = "task-0" };

    begin(&LARGE);
    publish_result(0);
    poll_until(mailbox_held(rig.options.mailbox) == 1);
    rig_end();

    kube_object_unref(store_remove(rig.options.tasks, &gone, "1000"));
    rig_begin(&LARGE);
    poll_until(bridge_catches_up(rig.bridge, 0, &RIG_TASK));
    ck_assert_uint_eq(mailbox_len(rig.options.mailbox), 0);
    rig_end();
}

static atomic_bool hears;
static atomic_int asked, recalls;

static bool hears_copies(void *ctx UNUSED)
{
    atomic_fetch_add(&asked, 1);
    return atomic_load(&hears);
}

static atomic_int refused;

static bool refuse_remove(void *ctx, const char *topic)
{
    (void)ctx;
    (void)topic;
    atomic_fetch_add(&refused, 1);
    return false;
}

TEST_GROUP("alone", NULL, NULL);

/* real time: the pause between two tries is what is tested. */
TEST(copy_that_cannot_be_removed_is_tried_again_after_a_pause)
{
    struct mailbox *mailbox = mailbox_create(&LARGE);
    const struct quarantine_options options = { .mailbox = mailbox,
                                                .clock = &CLOCK_SYSTEM,
                                                .hears_copies = hears_copies,
                                                .remove = refuse_remove };
    struct quarantine *quarantine = quarantine_create(&options);
    int64_t begin_ms = clock_monotonic_ms(&CLOCK_SYSTEM);
    struct error err;

    mailbox_release(mailbox, "copy");
    ck_assert_int_eq(quarantine_start(quarantine, &err), 0);
    poll_until(atomic_load(&refused) > 1);
    ck_assert_int_ge(clock_monotonic_ms(&CLOCK_SYSTEM) - begin_ms, 990);
    quarantine_stop(quarantine);
    quarantine_destroy(quarantine);
    mailbox_destroy(mailbox);
}

static void count_recall(void *ctx UNUSED)
{
    atomic_fetch_add(&recalls, 1);
}

/* Else what the broker has not sent yet would count as gone from it. */
TEST(copies_are_not_recalled_while_the_last_recall_is_not_granted)
{
    const struct mailbox_limits one = { 1, 1, 1 << 10 };
    const struct mail copy = { .kind = MAIL_RESULT, .source = "d/c", .body = "" };
    struct mailbox *mailbox = mailbox_create(&one);
    const struct quarantine_options options = { .mailbox = mailbox,
                                                .clock = &CLOCK_SYSTEM,
                                                .hears_copies = hears_copies,
                                                .recall = count_recall };
    struct quarantine *quarantine = quarantine_create(&options);
    struct error err;

    mailbox_put_copy(mailbox, "uid", &copy, "copy");
    ck_assert_int_eq(quarantine_start(quarantine, &err), 0);
    for (int i = 0; i < 3; i++) {
        int before = atomic_load(&asked);

        mailbox_wake(mailbox);
        poll_until(atomic_load(&asked) > before);
    }
    ck_assert_int_eq(atomic_load(&recalls), 0);
    atomic_store(&hears, true);
    mailbox_wake(mailbox);
    poll_until(atomic_load(&recalls));
    quarantine_stop(quarantine);
    quarantine_destroy(quarantine);
    mailbox_destroy(mailbox);
}
