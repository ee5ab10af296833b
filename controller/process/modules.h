/* The modules of a process: their caches, their controllers, and themselves. */
#pragma once

#include "common/base/arena.h"
#include "controller/module/module.h"
#include "controller/process/identities.h"

/* The caches of the MODULES that are turned on, and controllers whose queues nothing fills yet. */
struct modules *modules_create(const struct module_host *host, struct watch_loop *watches,
                               const struct identities *identities);
/* Adds the watch loops of extensions to host->manager and host->health. */
void modules_add_extensions(struct module_host *host);
/* Creates host->modules in the order of MODULES; then their sources are subscribed to. < 0: the start-up
 * input is unusable. */
int modules_open(struct module_host *host, struct error *err) MUST_CHECK;
/* After the watches have stopped. */
void modules_destroy(struct modules *modules);

/* Sets the gauges of caches whose counts have changed, and those of extensions. One thread at a time. */
void modules_report(struct modules *modules);

/* But for those of extensions. */
bool modules_all_caches(const struct modules *modules, bool (*is)(struct informer *informer));

/* This replica leads: informs the modules, and starts their controllers. */
int modules_start(struct modules *modules, struct error *err) MUST_CHECK;
void modules_stop(struct modules *modules); /* no new work */
void modules_join(struct modules *modules); /* all work under way is done */
/* After modules_join, as the leader: reconciles what the next leader must find up to date. */
void modules_hand_over(struct modules *modules);
