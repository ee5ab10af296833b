/* A data directory of its own, as init is asked for it. What is printed meanwhile, kubeconfigs, goes nowhere. */
#pragma once

#include "common/base/arena.h"
#include "standalone/process/settings.h"

extern struct arena *init_arena;
/* Of init and add-user; a view by default, and nothing is made yet. May be changed. */
extern struct standalone_settings init_settings;

void init_fixture_begin(void);
void init_fixture_end(void); /* what was printed and not flushed is not shown either */
void init_fixture_run(void); /* init, without errors */

/* Of the data directory. */
const char *init_path_of(const char *name);
