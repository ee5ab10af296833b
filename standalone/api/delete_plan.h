/* What a deletion does to an object: pure. */
#pragma once

#include "common/json/json.h"

#define FINALIZER_ORPHAN "orphan"
#define FINALIZER_FOREGROUND "foregroundDeletion"

/* In metadata. */
bool delete_has_finalizer(const cJSON *object, const char *name);

/* DeleteOptions, of the body or the query. */
struct delete_options {
    const char *uid,
        *resource_version; /* preconditions; NULL: none, but "" is one that nothing meets */
    const char *propagation_policy; /* Orphan, Background, Foreground; "": not set */
    int orphan_dependents;          /* -1: not set; before there were policies */
    bool dry_run;
};

enum delete_action {
    DELETE_NOW,     /* nobody wants to have a say */
    DELETE_MARK,    /* write object: it has finalizers, or a deletionTimestamp now */
    DELETE_NOTHING, /* it is being deleted already, and nothing changes */
};

/*
 * live: the object as it is. *ret_object, owned by the arena: with DELETE_MARK what is to be written. As
 * k8s.io/apiserver/pkg/registry/generic/registry: the policy decides which of the two finalizers of the
 * garbage collector it has; without one those that it has stay.
 */
enum delete_action delete_plan(struct arena *arena, const cJSON *live,
                               const struct delete_options *options, int64_t now_us,
                               cJSON **ret_object);
