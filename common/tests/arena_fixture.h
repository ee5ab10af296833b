/* An arena for each test, and JSON that can be built: for TEST_GROUP. */
#pragma once

#include "common/base/arena.h"

extern struct arena *arena;

void arena_set_up(void);
void arena_tear_down(void);
