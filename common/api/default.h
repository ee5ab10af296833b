/* This module sets absent fields when an object is written, as operations of a JSON Patch. */
#pragma once

#include "common/json/jsonpatch.h"

struct defaulting {
    struct arena *arena;
    const cJSON *object;
    const cJSON *old; /* NULL: the object is new */
    struct json_patch *patch;
};

/*
 * Adds what is absent, and touches nothing that is there, an explicit 0 or "" included. New Tasks
 * and Proplets get their finalizers. Nothing is added to an object that is being deleted; nothing
 * under /spec if the spec is the old one, or the Task is scheduled or running and its spec must not
 * change.
 */
typedef void default_fn(const struct defaulting *defaulting);
default_fn task_default;
default_fn proplet_default;
default_fn propellerjob_default;
default_fn federatedjob_default;
