/* The modules that play on a stage: their caches, which the stage feeds, and what a change wakes. */
#pragma once

#include "common/tests/fake_api.h"
#include "controller/module/module.h"
#include "controller/tests/outside.h"

/* A module that plays on the stage. */
struct staged {
    const void *what;        /* its kind; of a module without one itself */
    void *self;              /* of its module; NULL: only its queue is there */
    struct workqueue *queue; /* NULL: nothing reconciles it */
};

/* As MODULES state it, with the indexes of all of them. */
struct informer *staged_cache(struct watch_loop *loop, const struct kube_kind *kind);
/* An object of the kind changed: calls what the sources of these modules say. */
void staged_changed(const struct staged *staged, size_t len, const struct kube_kind *kind,
                    struct kube_object *old, struct kube_object *current);

/* The configuration of a client whose requests go to the fake API server. The caller destroys it before the arena. */
struct kube_config *staged_config(struct arena *arena);
/* As http_roundtrip_fn, on a fake API server, of a request that fails so; *dead: with the process. */
int staged_failure(enum fault fault, bool *dead, void *ctx, struct arena *arena,
                   const struct http_request *request, struct http_response *ret,
                   struct error *err);

/* "Reconciling NoCandidates", "Stalled DeviceError": what kstatus reads of the object; "" if it reads neither. Fails the
 * test if it has both. */
const char *staged_kstatus(struct arena *arena, const cJSON *object);
/* Fails the test unless this agrees with the phase of a written object of a kind that ends as Completed or Failed. */
void staged_expect_kstatus(const cJSON *object);

struct kube_name staged_name(const char *name); /* in the namespace "default" */
/* The object as it is, with another spec or status if one is given; generation moves with the spec. */
void staged_put(struct fake_api *api, const struct kube_kind *kind, const char *name,
                const cJSON *spec, const cJSON *status);
