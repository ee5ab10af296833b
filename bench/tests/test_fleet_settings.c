#include "bench/fleet/settings.h"
#include "common/tests/suite.h"

#define NEEDED "--broker", "localhost:1883", "--domain", "d", "--channel", "c"
#define MAX_ARGUMENTS 12

static struct arena *arena;
static struct fleet_settings settings;
static struct error err;

static void set_up(void)
{
    arena = arena_create();
    settings = (struct fleet_settings){ 0 };
    err = (struct error){ 0 };
}

static void tear_down(void)
{
    arena_destroy(arena);
}

TEST_GROUP("settings", set_up, tear_down);

static int parse(const char *const *arguments)
{
    char *argv[MAX_ARGUMENTS + 1] = { arena_strdup(arena, "fleet") };
    int argc = 1;

    for (; argc < MAX_ARGUMENTS && arguments[argc - 1]; argc++)
        argv[argc] = arena_strdup(arena, arguments[argc - 1]);
    return fleet_settings_parse(arena, argc, argv, &settings, &err);
}

TEST(broker_domain_and_channel_are_enough)
{
    static const char *const ARGUMENTS[MAX_ARGUMENTS] = { NEEDED };

    ck_assert_int_eq(parse(ARGUMENTS), 0);
    ck_assert_str_eq(settings.links.host, "localhost");
    ck_assert_int_eq(settings.links.port, 1883);
    ck_assert_int_eq(settings.links.count, 4);
    ck_assert_int_eq(settings.swarm.devices, 100);
    ck_assert_int_eq(settings.swarm.alive_ms, 10000);
    ck_assert_str_eq(settings.links.prefix, "device");
}

TEST(last_wills_need_a_connection_a_device)
{
    static const char *const ARGUMENTS[MAX_ARGUMENTS] = { NEEDED, "--last-wills", "--devices",
                                                          "500" };

    ck_assert_int_eq(parse(ARGUMENTS), 0);
    ck_assert_int_eq(settings.links.count, 500);
}

static const struct {
    const char *arguments[MAX_ARGUMENTS];
    const char *message;
} WRONG[] = {
    { { "--domain", "d", "--channel", "c" }, "--broker is missing" },
    { { "--broker", "b:1", "--channel", "c" }, "--domain is missing" },
    { { "--broker", "b:1", "--domain", "d" }, "--channel is missing" },
    { { "--broker", "b", "--domain", "d", "--channel", "c" }, "--broker: 'b' is not HOST:PORT" },
    { { "--broker", "b:99999", "--domain", "d", "--channel", "c" },
      "--broker: 'b:99999' is not HOST:PORT" },
    { { NEEDED, "--prefix", "a/b" }, "--prefix: 'a/b' must not be empty or hold \" \\ / + #" },
    { { NEEDED, "--password-file", "/does/not/exist" },
      "--password-file: '/does/not/exist': No such file or directory" },
    { { NEEDED, "--password-file", "/dev/null" }, "--password-file: '/dev/null' is empty" },
};

TEST_EACH(unusable_flag_is_named, WRONG)
{
    ck_assert_int_eq(parse(WRONG[_i].arguments), -ERROR_INVALID);
    ck_assert_str_eq(err.message, WRONG[_i].message);
}
