/* PropellerJobs in a line of text, for tables. */
#pragma once

#include "common/base/arena.h"

/* "a b<a c<a,b f!a": a; b waits for a; c for both; f waits for a and is for failures. Gives the
 * member "tasks" of a spec as JSON text. */
const char *job_text_tasks(struct arena *arena, const char *text);
