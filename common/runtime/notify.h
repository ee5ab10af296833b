/*
 * This module reports the state of this process to the service manager that started it, by the
 * protocol of sd_notify(3).
 *
 * Without NOTIFY_SOCKET in the environment the functions do nothing. They are for the main thread.
 * A message that cannot be sent is lost, with a log line; no function fails.
 */
#pragma once

#include <stdint.h>

/* Bytes of a message; a longer status is cut. */
#define NOTIFY_MAX 512

/* Sends one message: state, "READY=1", and status, a text for people. Either may be NULL. Blocks for a second at
 * most. */
void notify_send(const char *state, const char *status);
/* Returns half of the time within which the service manager expects "WATCHDOG=1" from this process, in milliseconds;
 * 0: it does not. */
uint32_t notify_watchdog_ms(void);
