/* This module computes the age of a timestamp of an object, although the wall clock may make
 * steps. */
#pragma once

#include <stddef.h>

#include "common/base/clock.h"

/*
 * Deadlines, times to live and grace periods are counted from timestamps in objects. A step of the
 * wall clock must not end them. So this process compares the wall clock with the steady clock
 * (boot_ms). A period in which both advance equally is an epoch. A timestamp belongs to the latest
 * epoch that can have written it, and its age is counted by the steady clock from there.
 *
 *  1. A step never makes an age too high. If two epochs showed the same time, the age may be too
 *     low by the step.
 *  2. A timestamp before the first epoch counts from the beginning of that epoch, because this
 *     process did not measure the time before it.
 *
 * All values are in microseconds: wall_us and since_us of the wall clock since 1970, steady_us of
 * the steady clock. No function fails.
 */

/* Number of epochs that are kept. A further step drops the oldest one. */
#define TIMELINE_MAX_EPOCHS 8
/* A smaller difference is not a step: timestamps have whole seconds, and the two clocks are not
 * read at the same moment. */
#define TIMELINE_STEP_US INT64_C(2000000)

/* The times of both clocks at the beginning of the epoch. */
struct timeline_epoch {
    int64_t wall_us;
    int64_t steady_us;
};

/* A copy of the epochs, for decisions; a plain value. A zero view stands for a wall clock that
 * never makes a step. */
struct timeline_view {
    struct timeline_epoch epochs[TIMELINE_MAX_EPOCHS];
    size_t len;
    int64_t from_us; /* steady time since which this process compares the clocks */
};

/* Returns the steady time at which since_us was written. now_us is the present wall clock. A time
 * before the first epoch keeps its distance to it. A zero view returns since_us. Pure. */
int64_t timeline_steady_us(const struct timeline_view *view, int64_t now_us, int64_t since_us);
/* Returns how much of the time since since_us counts. Pure. */
int64_t timeline_age_us(const struct timeline_view *view, int64_t now_us, int64_t since_us);

/* The epochs of a process. Thread-safe; guarded by its own lock. The clock must outlive it. The
 * first epoch begins with timeline_create. */
struct timeline;
struct timeline *timeline_create(const struct clock *clock);
void timeline_destroy(struct timeline *timeline); /* NULL is fine */

/* Returns the wall clock, and the epochs in *ret_view, which may be NULL. A step since the last
 * call begins an epoch and is logged. */
int64_t timeline_now_us(struct timeline *timeline, struct timeline_view *ret_view);
/* Replaces all epochs by one that began at since_us (wall clock): another process has compared the
 * clocks since then, and has handed over now. Called before this process acts. */
void timeline_take_over(struct timeline *timeline, int64_t since_us);
/* Returns the wall time since which there was no step, which is handed to the next leader. */
int64_t timeline_since_us(struct timeline *timeline);
