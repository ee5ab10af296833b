/* The modules of a process: their caches, their controllers, and themselves. */
#pragma once

#include "common/base/arena.h"
#include "controller/module/module.h"
#include "controller/process/identities.h"

struct modules;
/* Everything of MODULES but the modules themselves: caches, and queues that nothing fills. namespaces: of
 * the caches; none: all. */
struct modules *modules_create(const struct module_host *host, struct watch_loop *watches,
                               const struct identities *identities);
/* In the order of MODULES; then their sources are subscribed to. < 0: the start-up input is unusable. */
int modules_open(struct modules *modules, struct module_host *host, struct error *err) MUST_CHECK;
/* After the watches have stopped. */
void modules_destroy(struct modules *modules);

bool modules_all_caches(const struct modules *modules, bool (*is)(struct informer *informer));

/* For the manager; self: struct modules. */
int modules_start(void *self, struct error *err);
void modules_stop(void *self);
void modules_join(void *self);
