/*
 * The closed list of the controller's Events. A plan points to the Event of its transition; NULL: the
 * transition has none. The reasons are in the status and its conditions.
 */
#pragma once

#include "common/runtime/events.h"

extern const struct event TASK_EVENT_SCHEDULED;
extern const struct event TASK_EVENT_STARTED;
extern const struct event TASK_EVENT_COMPLETED;
extern const struct event TASK_EVENT_FAILED;
extern const struct event TASK_EVENT_INTERRUPTED;
extern const struct event TASK_EVENT_SKIPPED;
extern const struct event TASK_EVENT_RUN_SKIPPED; /* of a Task with a schedule, which goes on */
extern const struct event TASK_EVENT_RETRYING;
extern const struct event TASK_EVENT_RESTARTED;

extern const struct event PROPLET_EVENT_ONLINE;
extern const struct event PROPLET_EVENT_OFFLINE;
extern const struct event PROPLET_EVENT_DUPLICATE;

extern const struct event JOB_EVENT_STARTED;
extern const struct event JOB_EVENT_COMPLETED;
extern const struct event JOB_EVENT_FAILED;

extern const struct event FEDERATED_EVENT_STARTED;
extern const struct event FEDERATED_EVENT_AGGREGATED;
extern const struct event FEDERATED_EVENT_COMPLETED;
extern const struct event FEDERATED_EVENT_FAILED;

extern const struct event ROUND_EVENT_STARTED;
extern const struct event ROUND_EVENT_AGGREGATED;
extern const struct event ROUND_EVENT_COMPLETED;
extern const struct event ROUND_EVENT_FAILED;
