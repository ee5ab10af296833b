/* A work queue on a clock of the test, with names in one namespace. */
#pragma once

#include "common/runtime/workqueue.h"
#include "common/tests/fake_clock.h"

extern struct fake_clock fake;
extern struct workqueue *queue;

void queue_set_up(void);
void queue_tear_down(void);
/* The queue of the test goes on with the clock of the system. */
void queue_use_system_clock(void);

void add(const char *name, uint32_t delay_ms);
void done(const char *name);
void retry(const char *name, uint32_t min_delay_ms);
void forget(const char *name);
unsigned next_random(unsigned *state);
