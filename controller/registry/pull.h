/* Carries out the plan of a pull: requests by HTTP, bytes into the folder. Blocks; one thread for each pull. */
#pragma once

#include "common/base/clock.h"
#include "common/net/http_client.h"
#include "controller/registry/cache.h"
#include "controller/registry/pull_plan.h"

struct pull_means {
    struct module_cache *cache;
    struct http_client_pool *pool;
    const char *ca_file; /* NULL: the system's */
    const struct clock *clock;
    void *ctx;
    bool (*is_canceled)(void *ctx); /* asked at least once a second */
};

/*
 * Runs a pull that was begun until it ends, which pull->outcome then says. Of a module that is there, the registry is asked only
 * whether it has it for these credentials; *ret_was_pulled says whether it was asked for the bytes. After PULL_DONE of a PULL_MODULE the module is in the folder, verified, and pinned
 * once. ERROR_CANCELED: is_canceled. ERROR_UNAVAILABLE: the folder has no room, or the disk refuses.
 */
int pull_carry_out(struct pull *pull, const struct pull_means *means, bool *ret_was_pulled,
                   struct error *err) MUST_CHECK;
