/* This module decides whether a Proplet is open, as far as time, its owner and its user say. Pure, but for the file of
 * the time zone. */
#pragma once

#include "common/api/proplet.h"
#include "common/api/reasons.h"
#include "common/api/timezone.h"

/* The schedule as it was read. */
struct availability_times {
    enum reason problem; /* why it cannot be read; REASON_NONE: it can, or there is none */
    const char *message; /* of the problem; it never changes by itself */
    struct windows windows;
    const struct zone *zone;
};

/* Reads the texts and the file of the time zone. schedule NULL: there is none. directory: see timezone_read. */
struct availability_times availability_read(struct arena *arena,
                                            const struct availability_schedule *schedule,
                                            const char *directory);

/* A plain value without pointers, which a table keeps for each Proplet: small. A zero value is a Proplet that uses none of
 * the fields. */
struct availability {
    enum availability_state
        state : 4; /* AVAILABILITY_UNSET: it uses none of the fields, and is open */
    enum reason reason : 12;
    struct json_opt_bool in_window; /* set only while the windows decide */
    uint32_t generation;            /* of the spec that this is of, the low half */
    int64_t since_us;               /* of the close, or of the opening */
    int64_t since_ms;               /* the same, on the clock of now_ms */
    /* The time at which its Tasks are to end: of an open one by its close at next_us; 0: none is known. */
    int64_t stop_us;
    int64_t next_us; /* the time at which it opens or closes by time alone; 0: it does not */
    int64_t look_us; /* the time at which to evaluate again; 0: time changes nothing */
    int64_t at_us;   /* the time of the evaluation; 0: an earlier leader's */
};

struct availability_observed {
    const struct proplet_spec *spec;
    bool reclaimed; /* the annotation reclaim-requested is "true" */
    const struct availability_times *times;
    /* The result before this one, or what an earlier leader wrote; a zero value: none. */
    struct availability before;
    int64_t generation;
    bool busy; /* a Task is scheduled or running on it */
    int64_t now_us;
    int64_t now_ms; /* clock_boot_ms */
};

/* Whether the Proplet uses one of the fields. */
bool availability_is_used(const struct proplet_spec *spec, bool reclaimed);
/* Returns what an earlier leader wrote, as far as availability_at reads it. status may be NULL. */
struct availability availability_of_status(const struct availability_status *status,
                                           int64_t generation);

/*
 * The first row that applies decides:
 *
 *   row                                   open            since
 *   1 killSwitch                          no              when it was seen; stops at once
 *   2 reclaimed                           no              when it was seen; stops at once
 *   3 schedule.enabled is false           no              when it was seen
 *   4 override, before its end            as it says      when it was seen
 *   5 the schedule cannot be read         no, stops none  when it was seen
 *   6 schedule                            as its windows  the change of the windows, or the end of an override,
 *                                                         whichever is later; after an edit when it was seen
 *   7 nothing of these                    yes             likewise
 *
 * "When it was seen" is the time of the first result with this reason: `before` has it from then on, so the status
 * that holds it must be written. Of a close by an edit and one by time the later one counts. Nothing else than the
 * arguments decides, so a new leader that reads the status comes to the same result.
 *
 * A step of the wall clock neither shortens nor prolongs the time since a close that this process has seen: since_us and
 * since_ms stay, also across an edit. For a new leader that time counts by the wall clock, and is not negative.
 */
struct availability availability_at(const struct availability_observed *observed);

/* Returns what the status says: while a Task runs, since_us and stop_us move with the wall clock, so that the next leader
 * stops it at the same time. */
struct availability availability_reported(const struct availability *availability, int64_t now_us,
                                          int64_t now_ms);

/* For this long after its time, a close that an evaluation foresaw counts without another evaluation. It is less than the
 * time for which a schedule is closed, so a process that was paused does not close a Proplet that is open again. */
#define AVAILABILITY_FORESEEN_US INT64_C(5000000)
/* The availability from the close on that is foreseen, be it past or to come. A Task stops by it at its time, and not when
 * the Proplet is evaluated: a whole fleet may close at one second. Returns *availability if it is closed already, and one
 * without a stop if no close is foreseen, or the evaluation is not of this generation of the spec. */
struct availability availability_foreseen(const struct availability *availability,
                                          int64_t generation, int64_t now_us, int64_t now_ms);

/* Whether the result before this one is still that of availability_at: the object is the same, and no change by time is
 * due. *ret then has it, with the present `busy`. Needs no times, so no file is read at each turn. */
bool availability_still_holds(const struct availability_observed *observed,
                              struct availability *ret);

/* Whether new Tasks may start. */
bool availability_is_open(const struct availability *availability);
/* The same at now_us: a Proplet takes none from the second on at which it closes by time, although it is evaluated
 * later. */
bool availability_is_open_at(const struct availability *availability, int64_t now_us);
/* Whether a Proplet of type k8s has no pods: it is closed, and no Task runs on it or may run on. */
bool availability_takes_pods(const struct availability *availability);
/* Whether a person, and not time or the end of a Task, made `after` of `before`, as far as both say. */
bool availability_is_decided(enum reason before, enum reason after);
