/*
 * This module holds spec.availability: when a machine that is only sometimes ours takes Tasks.
 *
 * Structs are plain values, which point into the tree and the arena that they were decoded with. All functions are pure,
 * so any thread may call them. Absent fields mean: always open.
 */
#pragma once

#include "common/api/windows.h"
#include "common/json/codec.h"

/* The names are those of the API, by the value of the enum; index 0 is NULL, since 0 means that the field is absent. */
enum availability_override_state { OVERRIDE_UNSET, OVERRIDE_OPEN, OVERRIDE_CLOSED };
enum availability_state {
    AVAILABILITY_UNSET,
    AVAILABILITY_OPEN,
    AVAILABILITY_DRAINING, /* closed, and a Task is scheduled or running */
    AVAILABILITY_CLOSED,   /* closed, and none is */
    AVAILABILITY_UNKNOWN,  /* the schedule cannot be read: nothing starts, and nothing is stopped */
    AVAILABILITY_STATES,
};
extern const char *const AVAILABILITY_OVERRIDE_NAMES[];
extern const char *const AVAILABILITY_STATE_NAMES[];

struct availability_window {
    struct str_list days;
    const char *from;
    const char *until;
};

/* Either days_of_week and hours_of_day, or windows. The texts are those of windows.h. */
struct availability_schedule {
    const char *timezone;         /* IANA name; NULL: UTC */
    struct json_opt_bool enabled; /* unset: true */
    struct str_list days_of_week;
    struct str_list hours_of_day;
    struct json_objects windows; /* of struct availability_window */
};

/* Decides in place of the windows until then. */
struct availability_override {
    enum availability_override_state state;
    int64_t until_us;
};

struct availability_spec {
    struct availability_schedule *schedule; /* NULL: always open */
    struct availability_override *override; /* NULL: none */
    const char *graceful_shutdown_timeout;  /* Go duration */
};

struct availability_status {
    enum availability_state state;
    const char *reason;
    struct json_opt_bool in_window; /* set only while the windows decide */
    int64_t since_us;
    int64_t stop_at_us;         /* 0: it is not Draining */
    int64_t next_transition_us; /* 0: time alone does not open or close it */
};

extern const struct json_struct AVAILABILITY_SPEC;
extern const struct json_struct AVAILABILITY_STATUS;

#define AVAILABILITY_DEFAULT_GRACE_MS INT64_C(300000)
#define AVAILABILITY_MAX_GRACE_MS INT64_C(86400000)

/* Reads a gracefulShutdownTimeout. false: it is no duration from 0s to 24h. */
bool availability_parse_grace(const char *text, int64_t *ret_ms);
/* Returns the time between close and stop; spec may be NULL. A text that cannot be read counts as absent. */
int64_t availability_grace_ms(const struct availability_spec *spec);
const char *availability_timezone(const struct availability_schedule *schedule);

enum availability_form {
    SCHEDULE_OF_HOURS,   /* daysOfWeek and hoursOfDay */
    SCHEDULE_OF_WINDOWS, /* windows */
    SCHEDULE_OF_BOTH,
    SCHEDULE_INCOMPLETE,
};
enum availability_form availability_form(const struct availability_schedule *schedule);

/* A text of a schedule that cannot be read. path is within the schedule: "windows[0].from". */
typedef void availability_problem_fn(void *ctx, const char *path, const char *text,
                                     const char *message);
/* Reads the days, hours and windows. Calls problem for each text that cannot be read; false: one could not. The strings
 * that problem gets live as long as the arena. */
bool availability_windows(struct arena *arena, const struct availability_schedule *schedule,
                          struct windows *ret, availability_problem_fn *problem, void *ctx);
/* As availability_windows. Returns the first problem as a message that begins with path, the place of the schedule in its
 * object; NULL: there is none. The message is the arena's. */
const char *availability_windows_problem(struct arena *arena,
                                         const struct availability_schedule *schedule,
                                         const char *path, struct windows *ret);
/* Where no change of windows is known, they are looked at again before their horizon is reached. */
#define AVAILABILITY_LOOK_AGAIN_US (INT64_C(30) * 86400 * 1000000)
