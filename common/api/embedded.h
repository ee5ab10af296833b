/* The limits of a Task on a Proplet of dialect embedded, a microcontroller. Beyond them it
 * computes something else without an error (the Propeller MQTT contract, sections 5.1 and 12). */
#pragma once

#include "common/api/task.h"

#define EMBEDDED_MAX_INPUTS 16
#define EMBEDDED_MAX_INPUT                                                                         \
    UINT32_MAX               /* inputs are cut to 32 bits; a negative number is undefined */
#define EMBEDDED_MAX_URL 255 /* bytes; a longer one is cut */

/* NULL, or what the device does not take: "spec.inputs[2]: must be ...". The size of the message is not
 * looked at. In the arena. */
const char *embedded_problem(struct arena *arena, const struct task_spec *spec);
/* As the device is sent it: the number, or the one that a string holds. NULL: it is none. */
const cJSON *embedded_input(struct arena *arena, const cJSON *input);
