#include "controller/task/plan/task_schedule.h"

#include "common/api/timezone.h"
#include "common/base/str.h"
#include "controller/task/plan/task_schedule_plan.h"

static struct observed_schedule problem(enum reason reason, const char *message)
{
    return (struct observed_schedule){ .problem = reason, .message = message };
}

struct observed_schedule task_schedule_observe(struct arena *arena, const struct task_spec *spec,
                                               const char *directory)
{
    struct observed_schedule schedule = { 0 };
    const char *name = task_timezone(spec);
    struct error err = { 0 };

    if (str_is_empty(spec->schedule))
        return schedule;
    if (cron_parse(spec->schedule, &schedule.timetable.cron, &err) < 0)
        return problem(REASON_BAD_SCHEDULE, arena_printf(arena, "spec.schedule: %s", err.message));

    switch (timezone_read(directory, name, arena, &schedule.timetable.zone)) {
    case TIMEZONE_KNOWN:
        return schedule;
    case TIMEZONE_UNKNOWN:
        return problem(REASON_UNKNOWN_ZONE,
                       arena_printf(arena, "spec.timezone: there is no time zone '%s'", name));
    default:
        return problem(REASON_NO_ZONES,
                       arena_printf(arena,
                                    "spec.timezone: '%s' is unknown without the database of time "
                                    "zones, " TIMEZONE_DATABASE " (package tzdata)",
                                    name));
    }
}
