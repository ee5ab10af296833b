/* Deleting one object, by a client or by the garbage collector. */
#pragma once

#include "standalone/api/call.h"

#define FINALIZER_ORPHAN "orphan"
#define FINALIZER_FOREGROUND "foregroundDeletion"
#define POLICY_ORPHAN "Orphan"
#define POLICY_FOREGROUND "Foreground"
#define POLICY_BACKGROUND "Background"

/* The finalizers of the object, in the arena. The policy decides whether those of the garbage collector are among them;
 * without one (NULL) those that it has stay. Nothing depends on an Event. */
cJSON *delete_finalizers(struct arena *arena, const cJSON *live, const char *policy);

struct delete_options {
    /* Preconditions; NULL: none, but "" is one that no object meets. */
    const char *uid, *resource_version;
    const char
        *policy; /* one of the three; NULL: not set, and the finalizers of the object decide */
    bool dry_run;
};

/*
 * 0: the object is gone; 1: its finalizers are waited for. *ret_object is as it was or is; NULL when there is none. ns ""
 * for cluster-scoped kinds. ERROR_NOT_FOUND; ERROR_GONE: it has another uid or version than a precondition;
 * ERROR_FORBIDDEN: a namespace that is always there.
 */
int delete_object(struct api *api, struct arena *arena, const struct resource *resource,
                  const char *ns, const char *name, const struct delete_options *options,
                  cJSON **ret_object, struct error *err) MUST_CHECK;
