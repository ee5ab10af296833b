/* Certificate rotator: observes a backend, executes one step of the plan, and repeats. */
#pragma once

#include "certs/plan.h"
#include "common/base/clock.h"

/*
 * Backend for the key pairs and the CA bundles. A write fails with ERROR_CONFLICT if the observed
 * objects have changed since; load reads everything again. Strings live in the arena.
 */
struct cert_place {
    void *self;
    /* now_us is set by the caller. Missing or unusable objects are no error, because the plan
     * handles them; an unreadable one is. */
    int (*load)(void *self, struct arena *arena, struct cert_observed *ret, struct error *err);
    /* trust: as ca.crt beside it */
    int (*save_ca)(void *self, struct arena *arena, const struct cert_pair *ca, const char *trust,
                   struct error *err);
    int (*save_leaf)(void *self, struct arena *arena, const struct cert_pair *leaf,
                     struct error *err);
    int (*save_bundles)(void *self, struct arena *arena, const char *trust, struct error *err);
};

struct cert_done {
    enum cert_step step;
    const char *why; /* lives in the arena */
};

/* More steps than any change takes without a wait. */
#define CERT_MAX_STEPS 8
struct cert_result {
    struct cert_done done[CERT_MAX_STEPS];
    size_t done_count;
    struct cert_plan plan; /* the last plan, for the present state; IDLE after success */
};

/*
 * < 0: a step failed, and those in *ret are done; the next call continues after them. ERROR_INTERNAL:
 * the steps do not end. Idempotent: writes nothing if no step is due.
 */
int cert_keep(struct arena *arena, const struct cert_place *place, const struct cert_policy *policy,
              const struct clock *clock, struct cert_result *ret, struct error *err) MUST_CHECK;
/* Reads only; *ret is the next step. */
int cert_look(struct arena *arena, const struct cert_place *place, const struct cert_policy *policy,
              const struct clock *clock, struct cert_plan *ret, struct error *err) MUST_CHECK;
