/*
 * The load of a device in the last ten minutes: the last sample of each half minute, in whole percent, in 48 bytes. It
 * is a plain value of the thread that has it.
 */
#pragma once

#include "controller/device/samples.h"

#define TREND_LEN 20
#define TREND_STEP_S 30
#define TREND_MAX_PERCENT 250 /* a larger share counts as this one */

struct trend {
    int64_t step; /* the number of the last half minute since the epoch; 0: there is no sample */
    /* A half minute is at its number modulo TREND_LEN, as percent + 1; 0: none came, or it lacks the number. */
    uint8_t cpu[TREND_LEN], memory[TREND_LEN];
};

/* When the clock goes back, the half minute that was the last one gets the sample. A clock that changes by ten minutes
 * or more forgets the samples before it. */
void trend_add(struct trend *trend, const struct sample *sample, int64_t now_us);

/*
 * Sets `load` of holder: {"step": TREND_STEP_S, "cpu": [TREND_LEN numbers], "memory": the same}. The oldest half minute
 * is first, and the last one is that of now_us. null stands for none. Sets nothing if no sample came in these ten
 * minutes.
 */
void trend_show(const struct trend *trend, int64_t now_us, cJSON *holder);
