/*
 * A child is another program that a command runs beside itself: found in $PATH, started without a shell, and with
 * default signals. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "common/base/buf.h"
#include "common/base/error.h"

#define CHILD_MAX_LINE                                                                             \
    4096 /* bytes of a line of its output; the rest of a longer one is a line again */

struct child {
    pid_t pid;  /* 0: it does not run, or its end was taken */
    int output; /* reading end of its standard output and standard error; -1: they are not read */
    struct buf line;
};
#define CHILD_NONE                                                                                 \
    {                                                                                              \
        .output = -1, .line = BUF_INIT(CHILD_MAX_LINE)                                             \
    }

/* Starts argv[0], whose output is read with child_read. ERROR_NOT_FOUND: $PATH has no such program. */
int child_start(const char *const *argv, struct child *ret, struct error *err) MUST_CHECK;
/* Starts argv[0] in a session of its own, without input and output, so that it may outlive this process. */
int child_start_apart(const char *const *argv, struct child *ret, struct error *err) MUST_CHECK;

/* Reads once, and blocks if there is nothing yet. take gets each line without its end. Returns false at the end. */
bool child_read(struct child *child, void (*take)(void *ctx, const char *line), void *ctx);
/* Returns whether it has ended; *ret_status is then that of waitpid. */
bool child_has_ended(struct child *child, int *ret_status);
/* Ends it with SIGTERM, and two seconds later with SIGKILL. A child that does not run is left alone. */
void child_end(struct child *child);
/* Frees what belongs to it and lets it run. */
void child_release(struct child *child);
