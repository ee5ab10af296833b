/* The modules that play on a stage: their caches, which the stage feeds, and what a change wakes. */
#pragma once

#include "controller/module/module.h"

/* A kind that is reconciled on the stage. */
struct staged {
    const struct kube_kind *kind;
    void *self;              /* of its module; NULL: only its queue is there */
    struct workqueue *queue; /* NULL: nothing reconciles it */
};

/* As MODULES state it, with the indexes of all of them. */
struct informer *staged_cache(struct watch_loop *loop, const struct kube_kind *kind);
/* An object of the kind changed: calls what the sources of these modules say. */
void staged_changed(const struct staged *staged, size_t len, const struct kube_kind *kind,
                    struct kube_object *old, struct kube_object *current);
