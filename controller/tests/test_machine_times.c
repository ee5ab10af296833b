/* The schedule and the spec of a ScheduledMachine: texts, windows, durations, and the CRD beside the table. */
#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "controller/machine/machine_times.h"

TEST_GROUP("times", arena_set_up, arena_tear_down);

static struct scheduledmachine_spec decoded(const cJSON *spec)
{
    struct scheduledmachine_spec ret = { .kill_switch = false };
    struct error err = { 0 };
    int r = json_decode(arena, &SCHEDULEDMACHINE_SPEC, spec, &ret, &err);

    ck_assert_msg(r == 0, "%s", err.message);
    return ret;
}

static struct machine_times times_of(const char *schedule)
{
    const struct scheduledmachine_spec spec =
        decoded(parsed(arena, arena_printf(arena, "{\"schedule\":%s}", schedule)));

    return machine_times_read(arena, spec.schedule, NULL);
}

static int64_t at(const char *text)
{
    int64_t ret = 0;

    ck_assert(rfc3339_parse(text, &ret));
    return ret;
}

TEST(working_hours_open_and_close)
{
    const struct machine_times times =
        times_of("{\"daysOfWeek\":[\"mon-fri\"],\"hoursOfDay\":[\"9-17\"]}");

    ck_assert(!times.problem && times.enabled);
    struct machine_window window = machine_window_at(&times, at("2026-11-27T12:00:00Z"));
    ck_assert(window.inside);
    ck_assert_int_eq(window.next_us, at("2026-11-27T18:00:00Z"));
    ck_assert_int_eq(window.next_open_us, at("2026-11-30T09:00:00Z"));
    ck_assert_int_eq(window.closed_us, 0);

    window = machine_window_at(&times, at("2026-11-28T12:00:00Z"));
    ck_assert(!window.inside);
    ck_assert_int_eq(window.closed_us, at("2026-11-27T18:00:00Z"));
    ck_assert_int_eq(window.next_open_us, at("2026-11-30T09:00:00Z"));
    ck_assert_int_eq(window.look_us, window.next_us);
}

static const char *const NEVER[] = {
    "{}",
    "{\"daysOfWeek\":[],\"hoursOfDay\":[\"0-23\"]}",
    "{\"daysOfWeek\":[\"mon-sun\"],\"hoursOfDay\":[]}",
};

TEST_EACH(empty_list_is_never_open, NEVER)
{
    const struct machine_times times = times_of(NEVER[_i]);
    const struct machine_window window = machine_window_at(&times, at("2026-11-27T12:00:00Z"));

    ck_assert_ptr_null(times.problem);
    ck_assert(!window.inside && !window.next_us && !window.next_open_us && !window.closed_us);
    ck_assert_int_gt(window.look_us, at("2026-12-20T00:00:00Z"));
}

TEST(schedule_that_is_always_open_has_no_change)
{
    const struct machine_times times =
        times_of("{\"daysOfWeek\":[\"mon-sun\"],\"hoursOfDay\":[\"0-23\"]}");
    const struct machine_window window = machine_window_at(&times, at("2026-11-27T12:00:00Z"));

    ck_assert(window.inside && !window.next_us && !window.next_open_us);
}

static const struct {
    const char *schedule, *problem;
} BAD[] = {
    { "{\"daysOfWeek\":[\"monday\"],\"hoursOfDay\":[\"9\"]}",
      "spec.schedule.daysOfWeek[0]: 'monday': day 'monday' must be mon, tue, wed, thu, fri, sat or "
      "sun" },
    { "{\"daysOfWeek\":[\"mon\"],\"hoursOfDay\":[\"9-25\"]}",
      "spec.schedule.hoursOfDay[0]: '9-25': hour '25' must be between 0 and 23" },
    { "{\"daysOfWeek\":[\"mon\"],\"hoursOfDay\":[\"9\"],\"timezone\":\"Mars/Olympus\"}",
      "spec.schedule.timezone: there is no time zone 'Mars/Olympus'" },
};

TEST_EACH(problem_names_the_text_that_cannot_be_read, BAD)
{
    ck_assert_str_eq(times_of(BAD[_i].schedule).problem, BAD[_i].problem);
}

TEST(missing_database_is_a_problem)
{
    const struct scheduledmachine_spec spec =
        decoded(parsed(arena, "{\"schedule\":{\"timezone\":\"Europe/Paris\",\"enabled\":false}}"));
    const struct machine_times times = machine_times_read(arena, spec.schedule, "/nowhere");

    ck_assert(str_has_prefix(times.problem, "spec.schedule.timezone: 'Europe/Paris' is unknown"));
    ck_assert(!times.enabled);
}

static const struct {
    const char *text;
    int64_t ms;
} TIMEOUTS[] = {
    { NULL, 300000 },
    { "", 300000 },
    { "5m", 300000 },
    { "0s", 0 },
    { "10s", 10000 },
    { "24h", 86400000 },
    { "25h", 300000 },
    { "1440m", 86400000 },
    { "1441m", 300000 },
    { "m", 300000 },
    { "5", 300000 },
    { "5 m", 300000 },
    { "-5m", 300000 },
    { "5m0s", 300000 },
    { "99999999999999999999h", 300000 },
    { "86400s", 86400000 },
    { "1d", 300000 },
};

TEST_EACH(timeouts_are_digits_and_a_unit, TIMEOUTS)
{
    ck_assert_int_eq(machine_timeout_ms(TIMEOUTS[_i].text), TIMEOUTS[_i].ms);
}

TEST(phases_have_their_names)
{
    ck_assert_int_eq(machine_phase_of("EmergencyRemove"), MACHINE_EMERGENCY_REMOVE);
    ck_assert_int_eq(machine_phase_of("Unknown"), MACHINE_NEW);
    ck_assert_int_eq(machine_phase_of(NULL), MACHINE_NEW);
}

/* --- the manifest ------------------------------------------------------------------------------ */

static void compare(const struct json_struct *table, const cJSON *schema, const char *path)
{
    const cJSON *properties = json_get(schema, "properties");

    ck_assert_msg(json_len(properties) == table->len, "%s: %zu members", path,
                  json_len(properties));
    for (size_t i = 0; i < table->len; i++) {
        const struct json_field *field = &table->fields[i];
        const cJSON *member = json_get(properties, field->name);
        const cJSON *items = json_get(member, "items");

        ck_assert_msg(member != NULL, "%s.%s", path, field->name);
        ck_assert_msg(!str_is_empty(json_string(json_get(member, "description"), "")), "%s.%s",
                      path, field->name);
        if (field->members)
            compare(field->members, items ? items : member,
                    arena_printf(arena, "%s.%s", path, field->name));
    }
}

TEST(manifest_has_the_members_of_the_table)
{
    const cJSON *crd = parsed_yaml_file(arena, "crds/optional/scheduledmachine.yaml");
    const cJSON *version = json_first(json_path(crd, "spec", "versions", NULL));

    const cJSON *members = json_path(version, "schema", "openAPIV3Schema", "properties", NULL);

    compare(&SCHEDULEDMACHINE_SPEC, json_get(members, "spec"), "spec");
    compare(&SCHEDULEDMACHINE_STATUS, json_get(members, "status"), "status");
}
