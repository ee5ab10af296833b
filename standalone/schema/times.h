/* metav1.Time and metav1.MicroTime, as Go reads and writes them. */
#pragma once

#include <stdbool.h>

#include "common/base/arena.h"
#include "common/base/error.h"

/*
 * *ret: what Go writes of a time that it has read, in UTC, with six digits of a fraction (micro) or none; "" of the
 * zero time, which it writes as null. In the arena.
 * ERROR_INVALID, in the words of time.Parse: it does not read it. In these words too, but here alone: in UTC it is of
 * no year of four digits, so that Go would write what Go does not read.
 */
int time_rewrite(struct arena *arena, const char *text, bool micro, const char **ret,
                 struct error *err) MUST_CHECK;
