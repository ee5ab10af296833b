#include "common/base/str.h"
#include "common/tests/suite.h"
#include "controller/device/fleet.h"

#define KEY "dom-1/chan-1/device-1"
#define NOW_MS 1000000
#define NOW_US INT64_C(1795255200000000)

static struct arena *arena;
static struct fleet *fleet;

static void set_up(void)
{
    arena = arena_create();
    fleet = fleet_create();
}

static void tear_down(void)
{
    fleet_destroy(fleet);
    arena_destroy(arena);
}

TEST_GROUP("life", set_up, tear_down);

static struct fleet_device get(const char *key)
{
    struct fleet_device device;

    fleet_get(fleet, arena, key, &device);
    return device;
}

static bool heartbeat(int64_t after_ms)
{
    return fleet_heartbeat(fleet, KEY, NOW_MS + after_ms, NOW_US + after_ms * 1000);
}

TEST(unknown_device_is_neither_alive_nor_dead)
{
    struct fleet_device device = get(KEY);

    ck_assert(!device.alive && !device.will);
    ck_assert_int_eq(device.last_seen_ms, 0);
    ck_assert_uint_eq(device.history_len, 0);
    ck_assert_ptr_null(device.metadata);
}

TEST(first_heartbeat_is_news_and_the_next_are_not)
{
    ck_assert(heartbeat(0));
    ck_assert(!heartbeat(10000));
    ck_assert(!heartbeat(1000000));

    struct fleet_device device = get(KEY);
    ck_assert(device.alive);
    ck_assert_int_eq(device.alive_since_ms, NOW_MS);
    ck_assert_int_eq(device.last_seen_ms, NOW_MS + 1000000);
    ck_assert_int_eq(device.last_seen_us, NOW_US + 1000000 * INT64_C(1000));
}

TEST(heartbeat_after_silence_is_news)
{
    heartbeat(0);
    fleet_silent(fleet, KEY, NOW_MS);
    ck_assert(!get(KEY).alive);

    ck_assert(heartbeat(50000));
    ck_assert_int_eq(get(KEY).alive_since_ms, NOW_MS + 50000);
}

TEST(heartbeat_during_the_judgement_is_not_silence)
{
    heartbeat(0);
    heartbeat(10000);
    fleet_silent(fleet, KEY, NOW_MS);

    ck_assert(get(KEY).alive);
}

TEST(silence_of_an_unknown_device_is_nothing)
{
    fleet_silent(fleet, KEY, 0);
    fleet_remove(fleet, KEY, NOW_MS);
    ck_assert(!get(KEY).alive);
}

TEST(last_will_is_news_once)
{
    heartbeat(0);
    ck_assert(fleet_will(fleet, KEY));
    ck_assert(!fleet_will(fleet, KEY));
    ck_assert(get(KEY).will && !get(KEY).alive);
    ck_assert_int_eq(get(KEY).last_seen_ms, NOW_MS); /* it is no sign of life */

    ck_assert(heartbeat(1));
    ck_assert(get(KEY).alive && !get(KEY).will);
    ck_assert(fleet_will(fleet, KEY));
}

TEST(last_will_of_a_device_not_heard_before_is_news)
{
    ck_assert(fleet_will(fleet, KEY));
}

TEST(history_keeps_the_last_heartbeats_oldest_first)
{
    for (int64_t i = 0; i < FLEET_HISTORY + 5; i++)
        heartbeat(i);

    struct fleet_device device = get(KEY);
    ck_assert_uint_eq(device.history_len, FLEET_HISTORY);
    for (int64_t i = 0; i < FLEET_HISTORY; i++)
        ck_assert_int_eq(device.history_us[i], NOW_US + (i + 5) * 1000);
}

TEST(third_attempt_in_a_row_without_an_answer_is_news)
{
    ck_assert(!fleet_note_outcome(fleet, KEY, false)); /* not heard yet: nothing is kept */
    heartbeat(0);
    for (size_t i = 1; i <= FLEET_MAX_UNANSWERED + 2; i++) {
        ck_assert_int_eq(fleet_note_outcome(fleet, KEY, false), i == FLEET_MAX_UNANSWERED);
        ck_assert_uint_eq(get(KEY).unanswered, i < FLEET_MAX_UNANSWERED ? i : FLEET_MAX_UNANSWERED);
    }
    ck_assert(fleet_note_outcome(fleet, KEY, true));
    ck_assert_uint_eq(get(KEY).unanswered, 0);
    ck_assert(!fleet_note_outcome(fleet, KEY, true));
}

TEST(first_answer_is_news_and_the_next_are_not)
{
    heartbeat(0);
    ck_assert(!get(KEY).answered);
    ck_assert(fleet_note_outcome(fleet, KEY, true));
    ck_assert(get(KEY).answered);
    ck_assert(!fleet_note_outcome(fleet, KEY, true));
    ck_assert(!fleet_note_outcome(fleet, KEY, false));
    ck_assert(!fleet_note_outcome(fleet, KEY, true));
}

TEST(removed_device_is_forgotten)
{
    heartbeat(0);
    fleet_remove(fleet, KEY, NOW_MS);

    ck_assert(!get(KEY).alive);
    ck_assert_uint_eq(get(KEY).history_len, 0);
    ck_assert(heartbeat(1));
}

TEST(what_a_removed_device_said_of_itself_waits_for_its_next_proplet)
{
    heartbeat(0);
    fleet_metadata(fleet, KEY, "{}", true, NOW_MS);
    fleet_remove(fleet, KEY, NOW_MS);
    ck_assert(!get(KEY).alive);
    ck_assert_str_eq(get(KEY).metadata, "{}");

    heartbeat(1); /* another Proplet has it */
    fleet_metadata(fleet, "dom-1/chan-1/other", "{}", false, NOW_MS + 2 * FLEET_STRANGER_MS);
    ck_assert_str_eq(get(KEY).metadata, "{}");

    fleet_remove(fleet, KEY, NOW_MS);
    fleet_metadata(fleet, "dom-1/chan-1/other", "{}", false, NOW_MS + FLEET_STRANGER_MS);
    ck_assert_ptr_null(get(KEY).metadata);
}

TEST(devices_are_told_apart_by_channel_and_client)
{
    char key[FLEET_KEY_LEN];

    heartbeat(0);
    ck_assert(fleet_key("dom-1/chan-1", "device-1", key));
    ck_assert_str_eq(key, KEY);
    ck_assert(get(key).alive);
    ck_assert(!get("dom-1/chan-2/device-1").alive);
    ck_assert(!get("dom-1/chan-1/device-2").alive);
}

TEST(key_that_is_too_long_is_refused)
{
    char client[FLEET_KEY_LEN] = "";
    char key[FLEET_KEY_LEN];

    memset(client, 'c', FLEET_KEY_LEN - 5);
    ck_assert(fleet_key("d/c", client, key));
    client[FLEET_KEY_LEN - 5] = 'c';
    ck_assert(!fleet_key("d/c", client, key));
}

TEST_GROUP("metadata", set_up, tear_down);

TEST(metadata_is_news_when_it_differs)
{
    ck_assert(fleet_metadata(fleet, KEY, "{\"os\":\"linux\"}", true, NOW_MS));
    ck_assert(!fleet_metadata(fleet, KEY, "{\"os\":\"linux\"}", true, NOW_MS));
    ck_assert(fleet_metadata(fleet, KEY, "{\"os\":\"zephyr\"}", true, NOW_MS));
    ck_assert_str_eq(get(KEY).metadata, "{\"os\":\"zephyr\"}");
}

static const char *stranger(size_t i)
{
    return arena_printf(arena, "dom-1/chan-1/stranger-%zu", i);
}

TEST(metadata_of_a_stranger_waits_for_its_proplet)
{
    fleet_metadata(fleet, stranger(0), "{}", false, NOW_MS);
    fleet_metadata(fleet, stranger(1), "{}", false, NOW_MS + FLEET_STRANGER_MS - 1);
    ck_assert_ptr_nonnull(get(stranger(0)).metadata);

    fleet_metadata(fleet, stranger(2), "{}", false, NOW_MS + FLEET_STRANGER_MS);
    ck_assert_ptr_null(get(stranger(0)).metadata);
    ck_assert_ptr_nonnull(get(stranger(1)).metadata);
}

static void heartbeat_of_stranger(void)
{
    fleet_heartbeat(fleet, stranger(0), NOW_MS, NOW_US);
}

static void will_of_stranger(void)
{
    fleet_will(fleet, stranger(0));
}

static void create_of_known(void)
{
    fleet_metadata(fleet, stranger(0), "{}", true, NOW_MS);
}

TEST_TIMES(stranger_that_got_its_proplet_stays, 3)
{
    static void (*const BECOMES_KNOWN[])(void) = { heartbeat_of_stranger, will_of_stranger,
                                                   create_of_known };

    fleet_metadata(fleet, stranger(0), "{}", false, NOW_MS);
    BECOMES_KNOWN[_i]();
    for (size_t i = 1; i < FLEET_MAX_STRANGERS + 10; i++)
        fleet_metadata(fleet, stranger(i), "{}", false, NOW_MS + FLEET_STRANGER_MS);
    ck_assert_ptr_nonnull(get(stranger(0)).metadata);
}

TEST(strangers_are_bounded_and_the_oldest_go_first)
{
    size_t kept = 0;

    heartbeat(0);
    fleet_metadata(fleet, KEY, "{}", true, NOW_MS);
    for (size_t i = 0; i < FLEET_MAX_STRANGERS + 100; i++)
        fleet_metadata(fleet, stranger(i), "{}", false, NOW_MS + (int64_t)i);
    for (size_t i = 0; i < FLEET_MAX_STRANGERS + 100; i++) {
        bool is_kept = get(stranger(i)).metadata != NULL;
        ck_assert_int_eq(is_kept, i >= 100);
        kept += is_kept;
    }
    ck_assert_uint_eq(kept, FLEET_MAX_STRANGERS);
    ck_assert_ptr_nonnull(get(KEY).metadata);
}

TEST_TIMES(stranger_that_is_none_any_more_leaves_its_room, 2)
{
    for (size_t i = 0; i < 2 * FLEET_MAX_STRANGERS; i++) {
        fleet_metadata(fleet, stranger(i), "{}", false, NOW_MS);
        if (_i)
            fleet_remove(fleet, stranger(i), NOW_MS); /* is one still, and counts once */
        else
            fleet_heartbeat(fleet, stranger(i), NOW_MS, NOW_US);
        fleet_heartbeat(fleet, KEY, NOW_MS, NOW_US); /* was none before */
    }
    for (size_t i = 0; i < FLEET_MAX_STRANGERS; i++)
        fleet_metadata(fleet, stranger(10000 + i), "{}", false, NOW_MS + 1);
    for (size_t i = 0; i < FLEET_MAX_STRANGERS; i++)
        ck_assert_ptr_nonnull(get(stranger(10000 + i)).metadata);
}

TEST(stranger_that_repeats_itself_is_one)
{
    for (size_t i = 0; i < 3 * FLEET_MAX_STRANGERS; i++)
        fleet_metadata(fleet, stranger(i % 2), "{}", false, NOW_MS + (int64_t)i);
    for (size_t i = 0; i < FLEET_MAX_STRANGERS - 2; i++)
        fleet_metadata(fleet, stranger(i + 2), "{}", false, NOW_MS + 100000);
    ck_assert_ptr_nonnull(get(stranger(0)).metadata);
    ck_assert_ptr_nonnull(get(stranger(1)).metadata);
}

TEST_GROUP("life", set_up, tear_down);

TEST(last_sample_of_a_device_stays_whatever_else_comes)
{
    const struct sample first = { 1000, -1, 4096 };
    const struct sample second = { 2000, 500, 8192 };

    heartbeat(0);
    ck_assert_int_eq(get(KEY).sample_us, 0);
    fleet_metrics(fleet, KEY, &first, NOW_US);
    fleet_metrics(fleet, KEY, &second, NOW_US + 1);
    heartbeat(10000);
    struct fleet_device device = get(KEY);
    ck_assert_int_eq(device.sample_us, NOW_US + 1);
    ck_assert_mem_eq(&device.sample, &second, sizeof(second));
}
