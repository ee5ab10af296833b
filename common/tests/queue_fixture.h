/* A work queue on a clock of the test, with names in one namespace. */
#pragma once

#include "common/runtime/workqueue.h"
#include "common/tests/fake_clock.h"

extern struct fake_clock queue_clock;
extern struct workqueue *queue;

void queue_set_up(void);
void queue_tear_down(void);
/* The queue of the test goes on with the clock of the system. */
void queue_use_system_clock(void);

void queue_add(const char *name, uint32_t delay_ms);
void queue_done(const char *name);
void queue_retry(const char *name, uint32_t min_delay_ms);
void queue_forget(const char *name);
unsigned next_random(unsigned *state);
