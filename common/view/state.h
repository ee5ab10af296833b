/* The state of an object of ours, in the same words for all kinds. Pure: any thread, and nothing fails. */
#pragma once

#include "common/json/json.h"
#include "common/kube/object.h"

/* Strings borrow from the object, and are "" where there is none. */
struct state {
    const char *phase;
    const char *reason;  /* why it is in this phase, or why it waits */
    const char *message; /* the condition's text with it */
    int64_t since_us;    /* of that condition; 0: not known */
    bool is_final;       /* nothing happens to it any more unless a user or the clock asks */
    bool is_good;        /* final: it did what it should; Proplet, Enrollment: it is Ready */
};

/* object: a whole object of this kind, one of the six. */
struct state state_of(const struct kube_kind *kind, const cJSON *object);
