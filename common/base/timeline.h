/* How long ago a timestamp was written, whatever steps the wall clock has made since. */
#pragma once

#include <stddef.h>

#include "common/base/clock.h"

/*
 * Deadlines, times to live and grace periods are counted from timestamps in objects. A wall clock
 * that is set must not end them, so this process compares it with the steady clock (boot_ms): a
 * stretch of time in which both went alike is an epoch. A timestamp belongs to the latest epoch that
 * can have written it, and its age is counted by the steady clock from there. An age is never too
 * high by a step; where two epochs showed the same time, it may be too low by the step.
 *
 * What is older than the first epoch counts from the beginning of that epoch: time that nobody
 * measured does not count.
 */

/* Steps that are remembered; beyond that the oldest epochs are forgotten, as if they were not seen. */
#define TIMELINE_MAX_EPOCHS 8
/* A smaller difference is no step: objects have whole seconds, and the two clocks are not read at
 * the same moment. */
#define TIMELINE_STEP_US INT64_C(2000000)

/* What both clocks showed at its beginning. */
struct timeline_epoch {
    int64_t wall_us;
    int64_t steady_us;
};

/* A copy to decide with. Zero: a wall clock that made no step and is trusted without limit. */
struct timeline_view {
    struct timeline_epoch epochs[TIMELINE_MAX_EPOCHS];
    size_t len;
    int64_t from_us; /* this process watches since then (steady) */
};

/* When the timestamp was written, by the steady clock; now_us: wall clock. What is older than the
 * first epoch keeps its distance to it. Of a zero view: since_us. */
int64_t timeline_steady_us(const struct timeline_view *view, int64_t now_us, int64_t since_us);
/* How much of the time since then counts. */
int64_t timeline_age_us(const struct timeline_view *view, int64_t now_us, int64_t since_us);

/* Begins its first epoch. Any thread; one leaf mutex. */
struct timeline;
struct timeline *timeline_create(const struct clock *clock);
void timeline_destroy(struct timeline *timeline);

/* The wall clock now, and what to count with; ret_view may be NULL. Notes a step. */
int64_t timeline_now_us(struct timeline *timeline, struct timeline_view *ret_view);
/* Begins again with one epoch, as if it had begun then (wall clock): another process has watched the
 * clock from then on, and handed over just now. Not before this process acts. */
void timeline_take_over(struct timeline *timeline, int64_t since_us);
/* Since when the wall clock has made no step: what to hand over. */
int64_t timeline_since_us(struct timeline *timeline);
