/*
 * This module decides when a waiting Task gets an Event that names the cause and the remedy.
 *
 * A Task that has waited for the same reason for WAIT_EVENT_AFTER_MS gets one Event, and another
 * one when the reason changes. A Task gets at most one in WAIT_EVENT_PAUSE_MS, and all Tasks
 * together get WAIT_EVENTS_PER_SECOND; Tasks beyond this rate get theirs later, the longest due
 * first.
 *
 * At most WAIT_EVENTS_TASKS Tasks are followed at a time. The counter
 * propeller_wait_events_omitted_total counts the Tasks that find no room: they get no Event, and
 * their condition Scheduled still has the text. A restart loses what is known here, so a new leader
 * may repeat an Event once.
 *
 * Waiting costs a Task no turn: one name in the queue stands for all of them, and its turn emits
 * what is due.
 *
 * Any thread; one leaf mutex. No function fails. Times are monotonic milliseconds.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/api/reasons.h"

#define WAIT_EVENT_AFTER_MS INT64_C(10000)
#define WAIT_EVENT_PAUSE_MS (INT64_C(5) * 60 * 1000)
#define WAIT_EVENTS_PER_SECOND 5
#define WAIT_EVENTS_TASKS 2048

struct wait_events;
struct wait_events *wait_events_create(void);
void wait_events_destroy(struct wait_events *events);

/* The Task waits for this reason now; REASON_NONE: it does not wait. Returns true if its Event is due
 * before the next wait_events_take that was announced: one is to be called soon. */
bool wait_events_note(struct wait_events *events, const char *uid, enum reason reason,
                      int64_t now_ms);
/* The Task is gone. */
void wait_events_forget(struct wait_events *events, const char *uid);

struct wait_event {
    char uid[64];
    enum reason reason;
};
/* Takes the Events that are due and returns how many. *ret_next_ms announces the next call, in
 * milliseconds; 0: none is needed. */
size_t wait_events_take(struct wait_events *events, int64_t now_ms,
                        struct wait_event ret[static WAIT_EVENTS_PER_SECOND],
                        uint32_t *ret_next_ms);
