/* Time zones by their IANA names, in the system's own database. */
#pragma once

#include "common/api/zone.h"

enum timezone_answer {
    TIMEZONE_KNOWN,
    TIMEZONE_UNKNOWN,     /* no such zone, or not even a name of one */
    TIMEZONE_CANNOT_TELL, /* this machine has no database; the name may be right */
};

#define TIMEZONE_MAX_NAME 128
#define TIMEZONE_DATABASE "/usr/share/zoneinfo"

/*
 * A name is no path: only letters, digits, + - _ and /, no part that is empty or begins with a dot.
 * "Local" is unknown: it means another zone on each machine. directory: NULL for
 * TIMEZONE_DATABASE. UTC is known everywhere.
 */
enum timezone_answer timezone_look_up(const char *directory, const char *name);
/* The same, and what it says; TIMEZONE_UNKNOWN also for a file that cannot be read as a zone.
 * Reads a file of a few KiB; *ret lives as long as the arena; NULL is UTC. */
enum timezone_answer timezone_read(const char *directory, const char *name, struct arena *arena,
                                   const struct zone **ret);
