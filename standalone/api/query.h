/* The parameters of a request: ListOptions, CreateOptions, PatchOptions, DeleteOptions … as a query. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/base/arena.h"
#include "common/base/error.h"

/* Strings are decoded, in the arena, "" where there is none. */
struct query {
    bool watch;
    bool allow_bookmarks;
    bool send_initial_events, send_initial_events_set;
    const char *label_selector, *field_selector;
    const char *resource_version, *resource_version_match;
    int64_t limit;
    const char *continue_token;
    int64_t timeout_s; /* 0: not set */
    bool dry_run;
    const char *dry_run_value; /* NULL: not set */
    const char *field_manager;
    const char *field_validation;
    bool force, force_set;
    const char *propagation_policy;
    int orphan_dependents; /* -1: not set */
    const char
        *grace_period; /* NULL: not set. Nothing has one: read only to refuse what is no number */
    const char *include_object;
    const char *uid;     /* a precondition of a deletion without a body, as resource_version is */
    const char *timeout; /* nothing takes so long: read only to refuse what is no duration */
};

/* Unknown parameters are ignored, as there. ERROR_INVALID: one that is known cannot be read; the
 * message is for a BadRequest, *ret has those before it. */
int query_parse(struct arena *arena, const char *text, struct query *ret,
                struct error *err) MUST_CHECK;
/* Of every request but a watch, on whatever path: no request takes so long that it mattered; ERROR_INVALID: it is
 * no duration. */
int query_check_timeout(const struct query *query, struct error *err) MUST_CHECK;

/* As strconv.ParseInt has it: NULL, and *ret is the number; else its words of what is wrong with it. */
const char *query_number(const char *text, int64_t *ret);
/* Its words of what str_to_int64 does not take: "invalid syntax", or "value out of range". */
const char *query_number_fault(const char *text);
