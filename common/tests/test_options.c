#include "common/runtime/options.h"

#include <stddef.h>
#include <unistd.h>

#include "common/base/buf.h"
#include "common/base/str.h"
#include "common/runtime/options_help.h"
#include "common/tests/observe.h"
#include "common/tests/suite.h"

struct settings {
    const char *name;
    const char *password;
    struct str_list channels;
    bool verbose;
    bool secure;
    int64_t workers;
    int64_t pin;
    double rate;
    int64_t lease_ms;
    const char *scheduler;
};

static const char *const SCHEDULERS[] = { "round-robin", "least-loaded", "priority", NULL };

#define OPTION(kind, flag, member)                                                                 \
    .name = (flag), .type = (kind), .offset = offsetof(struct settings, member)
static const struct option TABLE[] = {
    { OPTION(OPTION_STRING, "name", name), .fallback = "propeller", .environment = "OTHER_NAME",
      .help = "name of this installation" },
    { OPTION(OPTION_STRING, "mqtt-password", password), .secret = true, .fallback = "hunter2",
      .help = "password for the broker" },
    { OPTION(OPTION_STRINGS, "channel", channels), .fallback = "a,b", .value_name = "ID",
      .help = "channel to serve" },
    { OPTION(OPTION_BOOL, "verbose", verbose), .help = "say more" },
    { OPTION(OPTION_BOOL, "secure", secure), .fallback = "true", .help = "use TLS" },
    { OPTION(OPTION_INT, "workers", workers), .fallback = "4", .min = 1, .max = 64,
      .help = "reconciles at the same time" },
    { OPTION(OPTION_INT, "pin", pin), .secret = true, .help = "a number that nobody may see" },
    { OPTION(OPTION_DOUBLE, "rate", rate), .min = 0, .max = 100, .help = "requests per second" },
    { OPTION(OPTION_DURATION, "lease-duration", lease_ms), .fallback = "15s", .min = 1000,
      .max = 5400000,
      .help = "how long a holder that does not renew its lease is respected by the others, which "
              "is also how long nothing happens after a crash" },
    { OPTION(OPTION_CHOICE, "scheduler", scheduler), .fallback = "round-robin",
      .choices = SCHEDULERS, .help = "how a Proplet is chosen" },
};

static struct arena *arena;
static struct settings settings;
static struct error err;

static void set_up(void)
{
    arena = arena_create();
    settings = (struct settings){ 0 };
    err = (struct error){ 0 };
}

static void tear_down(void)
{
    arena_destroy(arena);
}

TEST_GROUP("values", set_up, tear_down);

#define MAX_ARGS 16

static const struct option_program PROGRAM = {
    .name = "program",
    .about = "Does something.",
    .examples = { "program --one", "program --two" },
    .manual = "program(1)",
};

static int parse_list(const char *const *args)
{
    char *argv[MAX_ARGS] = { arena_strdup(arena, "program") };
    int argc = 1;

    for (; *args; args++)
        argv[argc++] = arena_strdup(arena, *args);
    return options_parse(arena, &PROGRAM, TABLE, ARRAY_LEN(TABLE), argc, argv, &settings, &err);
}
#define PARSE(...) parse_list((const char *const[]){ __VA_ARGS__, NULL })

TEST(without_arguments_everything_has_its_fallback)
{
    ck_assert_int_eq(PARSE(NULL), 0);
    ck_assert_str_eq(settings.name, "propeller");
    ck_assert_uint_eq(settings.channels.len, 2);
    ck_assert_str_eq(settings.channels.items[1], "b");
    ck_assert(!settings.verbose);
    ck_assert(settings.secure);
    ck_assert_int_eq(settings.workers, 4);
    ck_assert_double_eq(settings.rate, 0);
    ck_assert_int_eq(settings.lease_ms, 15000);
    ck_assert_str_eq(settings.scheduler, "round-robin");
}

TEST(values_stand_after_a_blank_or_an_equals_sign)
{
    ck_assert_int_eq(PARSE("--name", "x=y", "--workers=7", "--rate", "2.5",
                           "--lease-duration=1m30s", "--scheduler", "priority",
                           "--mqtt-password=--a=b"),
                     0);
    ck_assert_str_eq(settings.name, "x=y");
    ck_assert_int_eq(settings.workers, 7);
    ck_assert_double_eq(settings.rate, 2.5);
    ck_assert_int_eq(settings.lease_ms, 90000);
    ck_assert_str_eq(settings.scheduler, "priority");
    ck_assert_str_eq(settings.password, "--a=b");
}

TEST(a_bool_alone_is_true_and_needs_no_value)
{
    ck_assert_int_eq(PARSE("--verbose", "--secure=false", "--name", ""), 0);
    ck_assert(settings.verbose);
    ck_assert(!settings.secure);
    ck_assert_str_eq(settings.name, "");
}

TEST(the_last_of_a_repeated_flag_wins)
{
    ck_assert_int_eq(PARSE("--workers=1", "--workers=2"), 0);
    ck_assert_int_eq(settings.workers, 2);
}

TEST(a_list_grows_with_each_flag_and_each_comma)
{
    ck_assert_int_eq(PARSE("--channel=x,y", "--channel", "z"), 0);
    ck_assert_uint_eq(settings.channels.len, 3);
    ck_assert_str_eq(settings.channels.items[0], "x");
    ck_assert_str_eq(settings.channels.items[1], "y");
    ck_assert_str_eq(settings.channels.items[2], "z");
}

TEST(a_list_has_a_limit)
{
    char *argv[OPTION_MAX_STRINGS + 3] = { 0 };

    for (int i = 0; i < OPTION_MAX_STRINGS + 2; i++)
        argv[i] = arena_strdup(arena, "--channel=c");
    ck_assert_int_eq(options_parse(arena, &PROGRAM, TABLE, ARRAY_LEN(TABLE), OPTION_MAX_STRINGS + 1,
                                   argv, &settings, &err),
                     0);
    settings = (struct settings){ 0 };
    ck_assert_int_eq(options_parse(arena, &PROGRAM, TABLE, ARRAY_LEN(TABLE), OPTION_MAX_STRINGS + 2,
                                   argv, &settings, &err),
                     -ERROR_INVALID);
    ck_assert_str_eq(err.message, "--channel: more than 64 values");
}

TEST(the_environment_comes_between_fallback_and_command_line)
{
    ck_assert_int_eq(setenv("PROPELLER_LEASE_DURATION", "20s", 1), 0);
    ck_assert_int_eq(setenv("PROPELLER_WORKERS", "9", 1), 0);
    ck_assert_int_eq(setenv("PROPELLER_CHANNEL", "p,,q,r", 1), 0);
    ck_assert_int_eq(setenv("PROPELLER_VERBOSE", "true", 1), 0);
    ck_assert_int_eq(PARSE("--workers=10"), 0);
    ck_assert_int_eq(settings.lease_ms, 20000);
    ck_assert_int_eq(settings.workers, 10);
    ck_assert_uint_eq(settings.channels.len, 3);
    ck_assert_str_eq(settings.channels.items[2], "r");
    ck_assert(settings.verbose);
}

TEST(a_list_of_the_command_line_replaces_that_of_the_environment)
{
    ck_assert_int_eq(setenv("PROPELLER_CHANNEL", "p,q", 1), 0);
    ck_assert_int_eq(PARSE("--channel=x"), 0);
    ck_assert_uint_eq(settings.channels.len, 1);
}

TEST(the_other_variable_counts_if_the_own_is_not_set)
{
    ck_assert_int_eq(setenv("OTHER_NAME", "other", 1), 0);
    ck_assert_int_eq(PARSE(NULL), 0);
    ck_assert_str_eq(settings.name, "other");
    ck_assert_int_eq(setenv("PROPELLER_NAME", "own", 1), 0);
    ck_assert_int_eq(PARSE(NULL), 0);
    ck_assert_str_eq(settings.name, "own");
}

TEST(an_empty_variable_counts_as_not_set)
{
    ck_assert_int_eq(setenv("PROPELLER_WORKERS", "", 1), 0);
    ck_assert_int_eq(setenv("PROPELLER_NAME", "", 1), 0);
    ck_assert_int_eq(PARSE(NULL), 0);
    ck_assert_int_eq(settings.workers, 4);
    ck_assert_str_eq(settings.name, "propeller");
}

static const struct {
    const char *args[4];
    const char *message;
} REFUSED[] = {
    { { "--lease-duration", "5x" },
      "--lease-duration: '5x' is not a duration (examples: 30s, 1m30s)" },
    { { "--lease-duration=500ms" }, "--lease-duration: '500ms' is out of range (1s to 1h30m)" },
    { { "--lease-duration=" }, "--lease-duration: '' is not a duration (examples: 30s, 1m30s)" },
    { { "--workers=many" }, "--workers: 'many' is not an integer (1 to 64)" },
    { { "--workers=0" }, "--workers: '0' is out of range (1 to 64)" },
    { { "--workers", "-1" }, "--workers: '-1' is out of range (1 to 64)" },
    { { "--workers=65" }, "--workers: '65' is out of range (1 to 64)" },
    { { "--rate=fast" }, "--rate: 'fast' is not a number (0 to 100)" },
    { { "--rate=100.5" }, "--rate: '100.5' is out of range (0 to 100)" },
    { { "--verbose=maybe" }, "--verbose: 'maybe' is neither true nor false" },
    { { "--scheduler=random" },
      "--scheduler: 'random' is not one of round-robin, least-loaded, priority" },
    { { "--name" }, "--name: needs a value (--name=...)" },
    { { "--name", "--verbose" }, "--name: needs a value (--name=...)" },
    { { "--channel" }, "--channel: needs a value (--channel=ID)" },
    { { "--lease-durtion=3s" },
      "unknown flag '--lease-durtion' (did you mean '--lease-duration'?)" },
    { { "--lease_duration", "3s" },
      "unknown flag '--lease_duration' (did you mean '--lease-duration'?)" },
    { { "-workers=3" }, "unknown flag '-workers' (did you mean '--workers'?)" },
    { { "--something-else" }, "unknown flag '--something-else' (--help lists all)" },
    { { "--mqtt-pasword=hunter2" },
      "unknown flag '--mqtt-pasword' (did you mean '--mqtt-password'?)" },
    { { "-x" }, "unknown flag '-x' (--help lists all)" },
    { { "run" }, "unexpected argument 'run' (only flags are allowed)" },
    { { "--" }, "unexpected argument '--' (only flags are allowed)" },
    { { "-" }, "unexpected argument '-' (only flags are allowed)" },
    { { "" }, "unexpected argument '' (only flags are allowed)" },
    { { "--verbose", "false" },
      "unexpected argument 'false' (a value for '--verbose' is written --verbose=false)" },
    { { "--mqtt-password", "a", "hunter2" }, "unexpected argument after '--mqtt-password'" },
    { { "--pin=hunter2" }, "--pin: the value is not an integer" },
    { { "--workers=1\n2" }, "--workers: '1?2' is not an integer (1 to 64)" },
    { { "--workers=0123456789012345678901234567890123456789012345678901234567890123456789" },
      "--workers: '012345678901234567890123456789012345678901234567890123456789' is not an integer "
      "(1 to 64)" },
};

TEST_EACH(what_cannot_be_used_is_refused_in_one_line_that_says_what_is_allowed, REFUSED)
{
    ck_assert_int_eq(parse_list(REFUSED[_i].args), -ERROR_INVALID);
    ck_assert_str_eq(err.message, REFUSED[_i].message);
}

TEST(an_unusable_variable_is_named)
{
    ck_assert_int_eq(setenv("PROPELLER_WORKERS", "x", 1), 0);
    ck_assert_int_eq(PARSE(NULL), -ERROR_INVALID);
    ck_assert_str_eq(err.message, "PROPELLER_WORKERS: 'x' is not an integer (1 to 64)");
}

TEST(an_unusable_variable_does_not_matter_if_the_command_line_has_the_flag)
{
    ck_assert_int_eq(setenv("PROPELLER_WORKERS", "x", 1), 0);
    ck_assert_int_eq(PARSE("--workers=2"), 0);
}

/* What is printed by the call to standard output. */
static const char *printed(const char *arg, int *ret_result)
{
    capture_start(STDOUT_FILENO);
    *ret_result = PARSE(arg);
    const char *text = capture_text(arena);
    capture_stop();
    return text;
}

struct command {
    struct str_list objects;
    struct str_list inputs;
    const char *ns;
    const char *token;
    bool all;
};

static const struct option_program COMMAND = {
    .name = "program do",
    .about = "Does it.",
    .arguments = "KIND/NAME",
    .arguments_offset = offsetof(struct command, objects),
    .only_flags = true,
};
static const struct option COMMAND_TABLE[] = {
    { .name = "namespace",
      .type = OPTION_STRING,
      .letter = 'n',
      .offset = offsetof(struct command, ns),
      .value_name = "NAME",
      .help = "namespace" },
    { .name = "all",
      .type = OPTION_BOOL,
      .letter = 'A',
      .offset = offsetof(struct command, all),
      .help = "all namespaces" },
    { .name = "input",
      .type = OPTION_STRINGS,
      .whole = true,
      .offset = offsetof(struct command, inputs),
      .help = "an argument of the function" },
    { .name = "token",
      .type = OPTION_STRING,
      .secret = true,
      .offset = offsetof(struct command, token),
      .help = "bearer token" },
};

static struct command command;

static int parse_command(const char *const *args)
{
    char *argv[MAX_ARGS] = { arena_strdup(arena, "do") };
    int argc = 1;

    command = (struct command){ .ns = NULL };
    for (; *args; args++)
        argv[argc++] = arena_strdup(arena, *args);
    return options_parse(arena, &COMMAND, COMMAND_TABLE, ARRAY_LEN(COMMAND_TABLE), argc, argv,
                         &command, &err);
}
#define COMMAND(...) parse_command((const char *const[]){ __VA_ARGS__, NULL })

TEST_GROUP("commands", set_up, tear_down);

TEST(arguments_stand_between_flags_and_after_two_dashes)
{
    ck_assert_int_eq(COMMAND("--token", "x", "task/a", "-A", "task/b", "--", "--help"), 0);
    ck_assert(command.all);
    ck_assert_uint_eq(command.objects.len, 3);
    ck_assert_str_eq(command.objects.items[1], "task/b");
    ck_assert_str_eq(command.objects.items[2], "--help");
}

TEST(a_letter_has_its_value_in_three_ways)
{
    static const struct {
        const char *args[3];
    } WAYS[] = { { { "-n", "lab" } }, { { "-nlab" } }, { { "-n=lab" } } };

    for (size_t i = 0; i < ARRAY_LEN(WAYS); i++) {
        ck_assert_int_eq(parse_command(WAYS[i].args), 0);
        ck_assert_str_eq(command.ns, "lab");
    }
    ck_assert_int_eq(COMMAND("-A=false"), 0);
    ck_assert(!command.all);
}

TEST(letters_that_are_unknown_or_bundled_are_refused)
{
    ck_assert_int_eq(COMMAND("-x"), -ERROR_INVALID);
    ck_assert_str_eq(err.message, "unknown flag '-x' (--help lists all)");
    ck_assert_int_eq(COMMAND("-Ax"), -ERROR_INVALID);
    ck_assert_int_eq(COMMAND("-n"), -ERROR_INVALID);
    ck_assert_str_eq(err.message, "--namespace: needs a value (--namespace=NAME)");
}

TEST(a_whole_value_keeps_its_commas_and_no_variable_counts)
{
    ck_assert_int_eq(setenv("PROPELLER_NAMESPACE", "other", 1), 0);
    ck_assert_int_eq(COMMAND("--input", "1,2", "--input=-3"), 0);
    ck_assert_int_eq(unsetenv("PROPELLER_NAMESPACE"), 0);
    ck_assert_uint_eq(command.inputs.len, 2);
    ck_assert_str_eq(command.inputs.items[0], "1,2");
    ck_assert_str_eq(command.inputs.items[1], "-3");
    ck_assert_ptr_null(command.ns);
}

TEST(arguments_have_a_limit)
{
    char *argv[OPTION_MAX_STRINGS + 2] = { arena_strdup(arena, "do") };

    command = (struct command){ .ns = NULL };
    for (size_t i = 0; i <= OPTION_MAX_STRINGS; i++)
        argv[i + 1] = arena_strdup(arena, "x");
    ck_assert_int_eq(options_parse(arena, &COMMAND, COMMAND_TABLE, ARRAY_LEN(COMMAND_TABLE),
                                   ARRAY_LEN(argv), argv, &command, &err),
                     -ERROR_INVALID);
    ck_assert_str_eq(err.message, "KIND/NAME: more than 64 values");
}

TEST(help_of_a_command_has_letters_and_arguments)
{
    struct buf text = BUF_INIT(OPTIONS_HELP_MAX);

    ck_assert(options_help(&text, &COMMAND, COMMAND_TABLE, ARRAY_LEN(COMMAND_TABLE)));
    ck_assert_str_eq(buf_string(&text),
                     "Does it.\n\n"
                     "Usage: program do KIND/NAME [--flag=value | --flag value]...\n\n"
                     "  -n, --namespace NAME  namespace\n"
                     "  -A, --all             all namespaces\n"
                     "  --input TEXT          an argument of the function; may be repeated\n"
                     "  --token TEXT          bearer token\n"
                     "  --help                print this text (also -h)\n"
                     "  --version             print the version\n");
    buf_release(&text);
}

TEST_GROUP("help", set_up, tear_down);

TEST(version_prints_program_and_version)
{
    int r;
    const char *text = printed("--version", &r);

    ck_assert_int_eq(r, 1);
    ck_assert_msg(str_has_prefix(text, "program "), "%s", text);
    ck_assert_uint_gt(strlen(text), strlen("program \n"));
    ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1); /* one line */
}

static const char HELP[] =
    "Does something.\n"
    "\n"
    "Usage: program [--flag=value | --flag value]...\n"
    "\n"
    "  --name TEXT                name of this installation; also from $OTHER_NAME (default "
    "propeller)\n"
    "  --mqtt-password TEXT       password for the broker\n"
    "  --channel ID               channel to serve; may be repeated (default a,b)\n"
    "  --verbose                  say more\n"
    "  --secure                   use TLS (default true)\n"
    "  --workers NUMBER           reconciles at the same time (default 4)\n"
    "  --pin NUMBER               a number that nobody may see\n"
    "  --rate NUMBER              requests per second\n"
    "  --lease-duration DURATION  how long a holder that does not renew its lease is respected by "
    "the\n"
    "                             others, which is also how long nothing happens after a crash\n"
    "                             (default 15s)\n"
    "  --scheduler CHOICE         how a Proplet is chosen; one of round-robin, least-loaded, "
    "priority\n"
    "                             (default round-robin)\n"
    "  --help                     print this text (also -h)\n"
    "  --version                  print the version\n"
    "  --completion SHELL         print a script that completes flags; one of bash, zsh, fish\n"
    "\n"
    "Each flag may also be set as PROPELLER_<NAME> in the environment, in capitals and with "
    "underscores;\n"
    "the command line wins. Durations are written like 30s, 1m30s, 500ms.\n"
    "\n"
    "Examples:\n"
    "  program --one\n"
    "  program --two\n"
    "\n"
    "Manual page: program(1)\n";

TEST(help_is_aligned_and_names_defaults_but_no_secrets)
{
    static const char *const ARGS[] = { "--help", "-h" };

    for (size_t i = 0; i < ARRAY_LEN(ARGS); i++) {
        int r;
        const char *text = printed(ARGS[i], &r);

        ck_assert_int_eq(r, 1);
        ck_assert_str_eq(text, HELP);
    }
}

TEST(help_of_a_very_long_flag_starts_on_the_next_line)
{
    static const struct option LONG[] = {
        { .name = "a-flag-with-a-name-that-is-longer-than-the-column", .help = "is possible" },
        { .name = "short", .help = "too" },
    };
    struct buf text = BUF_INIT(OPTIONS_HELP_MAX);

    ck_assert(options_help(&text, &PROGRAM, LONG, ARRAY_LEN(LONG)));
    ck_assert_ptr_nonnull(strstr(buf_string(&text),
                                 "\n  --a-flag-with-a-name-that-is-longer-than-the-column TEXT\n"
                                 "                is possible\n"
                                 "  --short TEXT  too\n"));
    buf_release(&text);
}
