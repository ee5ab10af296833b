/* spec.availability of a Proplet: what is refused, what is warned of, and what absent fields mean. */
#include "common/api/availability.h"

#include "common/base/compiler.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/suite.h"
#include "common/tests/validate_fixture.h"

#define GRID(days, hours) "{\"schedule\":{\"daysOfWeek\":[" days "],\"hoursOfDay\":[" hours "]}}"
#define IN_ZONE(zone)                                                                              \
    "{\"schedule\":{\"timezone\":\"" zone                                                          \
    "\",\"daysOfWeek\":[\"mon-fri\"],\"hoursOfDay\":[\"9-17\"]}}"
#define WINDOW(from, until)                                                                        \
    "{\"schedule\":{\"windows\":[{\"days\":[\"mon-fri\"],\"from\":\"" from "\",\"until\":\"" until \
    "\"}]}}"
#define AT "spec.availability."
#define FORM AT "schedule: Required value: daysOfWeek and hoursOfDay, or windows"
#define A_TIME ": must be a time of day from 00:00 to 23:59"
#define A_DAY_AND_TIME ": must be a time of day, or a day and a time, for example mon 06:00"
#define A_GRACE ": must be a duration from 0s to 24h"

static const cJSON *proplet_with(const char *availability)
{
    return object_with(arena, "proplet",
                       arena_printf(arena, "{\"spec\":{\"availability\":%s}}", availability));
}

TEST_GROUP("availability", arena_set_up, arena_tear_down);

static const char *const GOOD[] = {
    "{}",
    GRID("\"mon-fri\"", "\"9-17\""),
    GRID("\"mon\",\"wed, fri-sat\"", "\"0-6\",\"8 - 11,13\""),
    /* no range goes over midnight on a day of its own */
    GRID("\"mon-sun\"", "\"22-6\""),
    GRID("\"fri-thu\"", "\"0-22\""),
    IN_ZONE("Europe/Paris"),
    WINDOW("21:30", "06:00"),
    WINDOW("00:00", "sat 23:59"),
    "{\"schedule\":{\"enabled\":false,\"daysOfWeek\":[\"mon\"],\"hoursOfDay\":[\"1\"]}}",
    "{\"override\":{\"state\":\"Closed\",\"until\":\"2026-11-27T13:00:01+01:00\"}}",
    "{\"gracefulShutdownTimeout\":\"0s\"}",
    "{\"gracefulShutdownTimeout\":\"0\"}",
    "{\"gracefulShutdownTimeout\":\"23h59m60s\"}",
};

TEST_EACH(a_usual_availability_is_accepted_without_a_warning, GOOD)
{
    ck_assert_str_eq(errors_of(arena, "proplet", proplet_with(GOOD[_i]), NULL), "");
    ck_assert_str_eq(warnings_of(arena, "proplet", proplet_with(GOOD[_i]), NULL), "");
}

static const struct {
    const char *availability;
    const char *errors;
} BAD[] = {
    { GRID("\"monday\"", "\"9\""),
      AT "schedule.daysOfWeek[0]: Invalid value: \"monday\": day 'monday' must be mon, tue, wed, "
         "thu, fri, sat or sun" },
    { GRID("\"mon\",\"mon-tue-wed\"", "\"9\""),
      AT "schedule.daysOfWeek[1]: Invalid value: \"mon-tue-wed\": a range has two ends" },
    { GRID("\"mon,\"", "\"9\""),
      AT "schedule.daysOfWeek[0]: Invalid value: \"mon,\": an item is empty" },
    { GRID("\"-fri\"", "\"9\""),
      AT "schedule.daysOfWeek[0]: Invalid value: \"-fri\": a range has two ends" },
    { GRID("\"mon\"", "\"9-25\""),
      AT "schedule.hoursOfDay[0]: Invalid value: \"9-25\": hour '25' must be between 0 and 23" },
    { GRID("\"mon\"", "\"+9\""),
      AT "schedule.hoursOfDay[0]: Invalid value: \"+9\": hour '+9' must be one or two digits" },
    { GRID("\"mon\"", "\"1\",\"009\""),
      AT "schedule.hoursOfDay[1]: Invalid value: \"009\": hour '009' must be one or two digits" },
    /* each text that is wrong, at once */
    { GRID("\"x\"", "\"24\""),
      "[" AT "schedule.daysOfWeek[0]: Invalid value: \"x\": day 'x' must be mon, tue, wed, thu, "
      "fri, sat or sun, " AT
      "schedule.hoursOfDay[0]: Invalid value: \"24\": hour '24' must be between 0 and 23]" },
    { "{\"schedule\":{}}", FORM },
    { "{\"schedule\":{\"enabled\":false}}", FORM },
    { "{\"schedule\":{\"daysOfWeek\":[\"mon\"]}}", FORM },
    { "{\"schedule\":{\"hoursOfDay\":[\"1\"]}}", FORM },
    { GRID("", "\"1\""), FORM },
    { GRID("\"mon\"", ""), FORM },
    { "{\"schedule\":{\"windows\":[]}}", FORM },
    { "{\"schedule\":{\"daysOfWeek\":[\"mon\"],\"windows\":[{\"days\":[\"mon\"],"
      "\"from\":\"01:00\",\"until\":\"02:00\"}]}}",
      AT "schedule.windows: Forbidden: excludes daysOfWeek and hoursOfDay" },
    { WINDOW("24:00", "06:00"), AT "schedule.windows[0].from: Invalid value: \"24:00\"" A_TIME },
    { WINDOW("9:00", "06:00"), AT "schedule.windows[0].from: Invalid value: \"9:00\"" A_TIME },
    { WINDOW("09:00", "monday 06:00"),
      AT "schedule.windows[0].until: Invalid value: \"monday 06:00\"" A_DAY_AND_TIME },
    { WINDOW("09:00", "mon"),
      AT "schedule.windows[0].until: Invalid value: \"mon\"" A_DAY_AND_TIME },
    { "{\"schedule\":{\"windows\":[{\"days\":[\"mon\",\"x\"],\"from\":\"01:00\","
      "\"until\":\"02:00\"}]}}",
      AT "schedule.windows[0].days[1]: Invalid value: \"x\": day 'x' must be mon, tue, wed, thu, "
         "fri, sat or sun" },
    { "{\"schedule\":{\"windows\":[{\"days\":[\"mon\"],\"from\":\"01:00\"}]}}",
      AT "schedule.windows[0].until: Required value" },
    { IN_ZONE("Mars/Olympus"),
      AT "schedule.timezone: Invalid value: \"Mars/Olympus\": must be a time zone of the IANA "
         "database, for example Europe/Paris" },
    { "{\"gracefulShutdownTimeout\":\"25h\"}",
      AT "gracefulShutdownTimeout: Invalid value: \"25h\"" A_GRACE },
    { "{\"gracefulShutdownTimeout\":\"-1s\"}",
      AT "gracefulShutdownTimeout: Invalid value: \"-1s\"" A_GRACE },
    { "{\"gracefulShutdownTimeout\":\"5 minutes\"}",
      AT "gracefulShutdownTimeout: Invalid value: \"5 minutes\"" A_GRACE },
    { "{\"override\":{\"state\":\"Open\"}}", AT "override.until: Required value" },
    { "{\"override\":{\"until\":\"2026-11-27T13:00:00Z\"}}", AT "override.state: Required value" },
};

TEST_EACH(a_wrong_availability_is_refused_field_by_field, BAD)
{
    ck_assert_str_eq(errors_of(arena, "proplet", proplet_with(BAD[_i].availability), NULL),
                     BAD[_i].errors);
}

#define NIGHTS                                                                                     \
    AT "schedule.hoursOfDay: the part of a range after midnight counts for the day on which it "   \
       "is; windows keep a night together"
#define SHORT AT "gracefulShutdownTimeout: a window is shorter than that"

static const struct {
    const char *availability;
    const char *warnings;
} ODD[] = {
    { GRID("\"mon-fri\"", "\"22-6\""), NIGHTS },
    { GRID("\"mon-fri\"", "\"8\",\"12,20 - 5\""), NIGHTS },
    { "{\"override\":{\"state\":\"Open\",\"until\":\"2026-11-27T12:00:00Z\"}}",
      AT "override.until: it is past, so that the override means nothing" },
    { GRID("\"mon-sun\"", "\"0-23\""), AT "schedule: it is always open in the next 35 days" },
    { WINDOW("10:00", "10:04"), SHORT },
    { WINDOW("10:00", "10:05"), "" },
    { "{\"gracefulShutdownTimeout\":\"61m\",\"schedule\":{\"daysOfWeek\":[\"sun\"],"
      "\"hoursOfDay\":[\"3\"]}}",
      SHORT },
    /* windows that touch are one, and what is left of the present one is no window */
    { "{\"gracefulShutdownTimeout\":\"8h\",\"schedule\":{\"windows\":[{\"days\":[\"fri\"],"
      "\"from\":\"05:00\",\"until\":\"12:01\"},{\"days\":[\"fri\"],\"from\":\"12:01\","
      "\"until\":\"13:00\"}]}}",
      "" },
};

TEST_EACH(a_valid_availability_that_is_probably_not_meant_is_warned_of, ODD)
{
    ck_assert_str_eq(errors_of(arena, "proplet", proplet_with(ODD[_i].availability), NULL), "");
    ck_assert_str_eq(warnings_of(arena, "proplet", proplet_with(ODD[_i].availability), NULL),
                     ODD[_i].warnings);
}

TEST(an_availability_may_always_be_edited)
{
    const cJSON *old = proplet_with(GRID("\"mon\"", "\"9\""));

    ck_assert_str_eq(errors_of(arena, "proplet", proplet_with(WINDOW("09:00", "10:00")), old), "");
    ck_assert_str_eq(errors_of(arena, "proplet", proplet_with("null"), old), "");
}

static const struct {
    const char *text; /* as in a Proplet that no webhook has seen */
    int64_t ms;
} GRACES[] = { { NULL, 300000 },  { "0s", 0 },        { "90s", 90000 }, { "24h", 86400000 },
               { "25h", 300000 }, { "soon", 300000 }, { "", 300000 } };

TEST_EACH(a_grace_that_cannot_be_read_is_five_minutes, GRACES)
{
    const struct availability_spec spec = { .graceful_shutdown_timeout = GRACES[_i].text };

    ck_assert_int_eq(availability_grace_ms(&spec), GRACES[_i].ms);
    ck_assert_int_eq(availability_grace_ms(NULL), 300000);
}
