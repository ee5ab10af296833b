/* Devices without a Proplet: which are named, how often that changes, and what hostile ids can cost. */
#include "controller/device/strangers.h"

#include "common/tests/suite.h"

#define BEGIN_MS INT64_C(5000000)
#define CHANNEL "demo/workers"

static struct arena *arena;
static struct strangers *strangers;

static void set_up(void)
{
    arena = arena_create();
    strangers = strangers_create();
}

static void tear_down(void)
{
    strangers_destroy(strangers);
    arena_destroy(arena);
}

TEST_GROUP("strangers", set_up, tear_down);

static struct stranger_news heard(const char *client_id, int64_t seconds)
{
    return strangers_heard(strangers, CHANNEL, client_id, BEGIN_MS + seconds * 1000);
}

static const char *on(const char *channel, int64_t seconds)
{
    const char *text = strangers_on(strangers, arena, channel, BEGIN_MS + seconds * 1000);

    return text ? text : "";
}

TEST(first_stranger_of_a_channel_is_named_there_at_once)
{
    ck_assert_str_eq(on(CHANNEL, 0), "");
    ck_assert(heard("device-9", 0).shown);
    ck_assert(!heard("device-9", 10).shown);
    ck_assert_str_eq(on(CHANNEL, 10), "'device-9'");
    ck_assert_str_eq(on("demo/others", 10), "");
}

TEST(names_change_once_a_minute_and_are_three_in_order)
{
    ck_assert(heard("d", 0).shown);
    for (const char *const *id = (const char *const[]){ "c", "b", "a", NULL }; *id; id++)
        ck_assert(!heard(*id, 10).shown);
    ck_assert_str_eq(on(CHANNEL, 59), "'d'");
    ck_assert(!heard("d", 59).shown);
    ck_assert(heard("d", 60).shown);
    ck_assert_str_eq(on(CHANNEL, 60), "'a', 'b', 'c'");
    ck_assert(!heard("d", 200).shown);
}

TEST(stranger_that_is_silent_or_has_a_proplet_is_not_named)
{
    (void)heard("a", 0);
    (void)heard("b", 70);
    ck_assert_str_eq(on(CHANNEL, 70), "'a', 'b'");
    strangers_forget(strangers, CHANNEL, "b");
    strangers_forget(strangers, CHANNEL, "unknown");
    ck_assert_str_eq(on(CHANNEL, 70), "'a'");
    ck_assert_uint_eq(strangers_count(strangers, BEGIN_MS + 70000), 1);
    ck_assert_uint_eq(strangers_count(strangers, BEGIN_MS + 600000), 0);
    ck_assert_str_eq(on(CHANNEL, 599), "'a'");
    ck_assert_str_eq(on(CHANNEL, 600), "");
    ck_assert(heard("a", 700).shown);
    ck_assert_str_eq(on(CHANNEL, 700), "'a'");
}

TEST(names_keep_printable_characters_and_sixty_four_of_them)
{
    char wide[200];

    memset(wide, 'x', sizeof(wide) - 1);
    wide[sizeof(wide) - 1] = '\0';
    ck_assert_str_eq(heard("a'b\n\xe2\x80\xae\x7f", 0).name, "a?b?????");
    ck_assert_uint_eq(strlen(heard(wide, 0).name), STRANGER_NAME_BYTES);
}

TEST(line_is_logged_once_an_hour_and_ten_times_a_minute_for_all)
{
    unsigned lines = 0;

    ck_assert(heard("a", 0).log);
    ck_assert(!heard("a", 3599).log);
    ck_assert(heard("a", 3600).log);
    for (unsigned i = 0; i < 1000; i++)
        lines += heard(arena_printf(arena, "%u", i), 4000).log;
    ck_assert_uint_eq(lines, STRANGER_LOGS_PER_MINUTE);
}

TEST(new_identity_takes_the_place_of_the_one_that_was_heard_longest_ago)
{
    (void)heard("first", 0);
    for (unsigned i = 1; i < 2 * STRANGERS_MAX; i++) /* each twice */
        (void)heard(arena_printf(arena, "flood-%u", i % (STRANGERS_MAX - 1)), 10);
    ck_assert_str_eq(on(CHANNEL, 10), "'first'");
    (void)heard("one more", 11);
    ck_assert(!strstr(on(CHANNEL, 11), "first"));
}

static const char *list_of(const char *channel, int64_t seconds)
{
    struct stranger_seen *seen;
    size_t len = strangers_list(strangers, arena, channel, BEGIN_MS + seconds * 1000, &seen);
    const char *text = "";

    for (size_t i = 0; i < len; i++)
        text = arena_printf(arena, "%s%s:%d:%d ", text, seen[i].client_id,
                            (int)((seen[i].first_ms - BEGIN_MS) / 1000),
                            (int)((seen[i].last_ms - BEGIN_MS) / 1000));
    return text;
}

TEST(channel_lists_its_devices_with_their_whole_ids_and_times)
{
    ck_assert(heard("a", 0).fresh);
    ck_assert(!heard("a", 10).fresh);
    (void)heard("it's", 20); /* a name that a command cannot take */
    (void)strangers_heard(strangers, "demo/workers2", "b", BEGIN_MS);
    (void)strangers_heard(strangers, "dem/workers", "c", BEGIN_MS);
    ck_assert_str_eq(list_of(CHANNEL, 20), "a:0:10 ");
    ck_assert_str_eq(list_of(CHANNEL, 610), "");
    ck_assert(heard("a", 700).fresh);
    ck_assert_str_eq(list_of(CHANNEL, 700), "a:700:700 ");
}

TEST(domain_lists_devices_whose_channel_is_their_id)
{
    static const char *const OTHERS[][2] = { { "demo/a", "b" },  { "demo/ab", "a" },
                                             { "demo/a", "ab" }, { "demos/a", "a" },
                                             { "dem/a", "a" },   { "demo/workers", "a" } };

    for (size_t i = 0; i < sizeof(OTHERS) / sizeof(*OTHERS); i++)
        (void)strangers_heard(strangers, OTHERS[i][0], OTHERS[i][1], BEGIN_MS);
    ck_assert_str_eq(list_of("demo" CHANNEL_EACH, 0), "");
    (void)strangers_heard(strangers, "demo/a", "a", BEGIN_MS);
    ck_assert_str_eq(list_of("demo" CHANNEL_EACH, 0), "a:0:0 ");
}
