/* Time zones by their IANA names, in the system's own database. */
#pragma once

#include <stdbool.h>

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
