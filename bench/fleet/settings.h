/* The flags of the fleet simulator. */
#pragma once

#include "bench/fleet/links.h"
#include "bench/fleet/swarm.h"
#include "common/base/arena.h"

struct fleet_settings {
    struct swarm_settings swarm;
    struct links_settings links;
    const char *broker; /* HOST:PORT */
    const char *password_file;
    const char *journal; /* NULL: none */
    const char *summary;
    const char *log_level, *log_format;
    int64_t qos;
};

/* As options_parse; ret must be zeroed, what it holds is the arena's or argv's. Reads the password
 * file. */
int fleet_settings_parse(struct arena *arena, int argc, char *const *argv,
                         struct fleet_settings *ret, struct error *err) MUST_CHECK;
