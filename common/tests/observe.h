/* What the code under test printed, logged and counted. */
#pragma once

#include "common/base/arena.h"

/* From now on what goes to the file descriptor (1, 2) is kept; for a forked test, which ends with
 * it. One at a time. */
void capture_start(int fd);
/* All of it so far, in the arena. */
const char *capture_text(struct arena *arena);
/* What is printed goes where it went before. */
void capture_stop(void);

/* The line is, or is not, one of the metrics: `workqueue_depth{name="test"} 0`. */
void ck_metric(const char *line);
void ck_no_metric(const char *line);
/* The value of the metric of this name, and labels; -1: there is none. */
double metric_said(const char *name);
