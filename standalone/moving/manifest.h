/* This module moves objects to another server: it decides which ones go along, and which of
 * their members belong to the user. Pure. */
#pragma once

#include "common/kube/object.h"

/* The decision about an object; all but the first two stay behind. */
enum manifest_verdict {
    MANIFEST_OPEN,     /* it goes along, and begins again there */
    MANIFEST_FINISHED, /* a Task, job or round that has ended: without its status it would run again */
    MANIFEST_CHILD,    /* a controller owns it and makes it again */
    MANIFEST_DELETED,    /* it is being deleted */
    MANIFEST_OF_CLUSTER, /* every cluster has its own, or it is a record: a Lease, an Event,
                          * kube-root-ca.crt, tokens of ServiceAccounts, the namespaces kube-system,
                          * kube-public and kube-node-lease with what is in them */
    MANIFEST_VERDICTS
};
extern const char *const MANIFEST_WORDS[]; /* "made by controllers", for counts */

/* Objects of one export or import. */
struct manifest_counts {
    size_t made;               /* written, or created */
    size_t unchanged, refused; /* of an import */
    size_t left_out[MANIFEST_VERDICTS];
    size_t without_owners; /* made, and without an owner from now on */
};

enum manifest_verdict manifest_judge(const struct kube_kind *kind, const cJSON *object);

/*
 * Returns the object as a user would have written it, owned by the arena: apiVersion, kind, metadata and the members
 * that users set, without those that a server or a controller sets (uid, versions, times, managedFields, owner
 * references, the controllers' finalizers, kubectl's copy of the last apply). with_status: the status of one that is
 * MANIFEST_FINISHED stays, without the generations that it was made for.
 */
cJSON *manifest_of(struct arena *arena, const struct kube_kind *kind, const cJSON *object,
                   bool with_status);

/* It names owners that are no controllers; they are not known elsewhere, so it goes without. */
bool manifest_loses_owners(const cJSON *object);

/* The path of the first value that differs, "spec.priority", in the arena; NULL: none does. */
const char *manifest_difference(struct arena *arena, const cJSON *one, const cJSON *other);
