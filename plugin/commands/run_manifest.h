/* The Task that `run` creates, from its flags. Pure but for reading the module's file. */
#pragma once

#include "plugin/cli/session.h"

struct run_flags {
    struct common_flags common;
    struct str_list names;    /* at most one */
    const char *wasm, *image; /* exactly one of them */
    const char *function;
    struct str_list inputs;
    const char *on;
    struct str_list labels, capabilities;
    const char *type;
    struct str_list env;
    int64_t retries; /* RUN_NO_RETRIES: not given */
    int64_t deadline_ms;
    bool broadcast;
    const char *schedule, *timezone;
    int64_t priority; /* RUN_NO_PRIORITY: not given */
    int64_t timeout_ms;
    bool detach, rm;
    const char *dry_run;
};
#define RUN_NO_RETRIES (-1)
#define RUN_NO_PRIORITY (-1)

/* A module in spec.file is base64 of at most 716,800 characters. */
#define RUN_MAX_MODULE 537600u

/* *ret is in the arena. A Task without a name has that of its module and five random characters, and calls the export of
 * the module's name unless another one is given. ERROR_INVALID names the flag. */
int run_manifest(struct arena *arena, const struct run_flags *flags, const char *ns, cJSON **ret,
                 struct error *err) MUST_CHECK;
