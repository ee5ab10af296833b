/* The decisions of an uninstall: the action for each object, and when it ends. Pure. */
#pragma once

#include <stdint.h>

#include "common/json/json.h"

enum uninstall_action {
    UNINSTALL_WAIT,    /* for the controller, or for a finalizer of others */
    UNINSTALL_DELETE,  /* also of an object that was created meanwhile */
    UNINSTALL_RELEASE, /* remove the finalizers of this operator */
};
/* release: the controller had its time. */
enum uninstall_action uninstall_action(const cJSON *object, bool release);

/* Whether a finalizer is of this operator. */
bool uninstall_is_ours(const char *finalizer);
/* The finalizers of others, "a, b", in the arena; "": there are none. Names that do not fit are cut. */
const char *uninstall_foreign(struct arena *arena, const cJSON *object);
/* Whether an object was made for an object of this operator, which the garbage collector follows. */
bool uninstall_is_child(const cJSON *object);

struct uninstall_times {
    int64_t release_ms; /* since the begin: the controller had its time */
    int64_t end_ms;
};
/* Of a time limit: the controller has three quarters of it. */
struct uninstall_times uninstall_times(int64_t timeout_ms);

/* One look at everything. */
struct uninstall_look {
    size_t objects; /* that are left */
    size_t
        released; /* the objects that lost their finalizers in this look, and are gone at the next one */
    size_t children; /* of objects that are gone; 0 while objects are left */
    bool failed;     /* a request failed, so that the counts may be too small */
};
enum uninstall_next {
    UNINSTALL_DONE,
    UNINSTALL_AGAIN,
    UNINSTALL_TO_COLLECTOR, /* children are left, and the garbage collector goes on */
    UNINSTALL_FAILED,
};
/* elapsed_ms: since the begin, when the look began. The look after the end is the last one, unless it released objects.
 * No look follows after twice the time. */
enum uninstall_next uninstall_next(const struct uninstall_look *look,
                                   const struct uninstall_times *times, int64_t elapsed_ms);
