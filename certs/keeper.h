/* Does what the plan says, in whatever holds the pairs and the bundles: observe, one step, again. */
#pragma once

#include "certs/plan.h"
#include "common/base/clock.h"

/*
 * Where the pairs and the bundles are. Every write is refused (ERROR_CONFLICT) if what was observed
 * has changed since; load gets everything anew. Strings go into the arena.
 */
struct cert_place {
    void *self;
    /* now_us is set already. What is missing or unusable is for the plan to say, what cannot be
     * read is an error. */
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

/* More than any change has without waiting. */
#define CERT_MAX_STEPS 8
struct cert_result {
    struct cert_done done[CERT_MAX_STEPS];
    size_t done_count;
    struct cert_plan plan; /* the last one: what is there now; IDLE after success */
};

/*
 * < 0: a step failed, those of *ret are done; another call goes on where it ended. ERROR_INTERNAL:
 * the steps do not come to an end. Idempotent: with nothing to do nothing is written.
 */
int cert_keep(struct arena *arena, const struct cert_place *place, const struct cert_policy *policy,
              const struct clock *clock, struct cert_result *ret, struct error *err) MUST_CHECK;
/* Only looks: *ret is the next step. */
int cert_look(struct arena *arena, const struct cert_place *place, const struct cert_policy *policy,
              const struct clock *clock, struct cert_plan *ret, struct error *err) MUST_CHECK;
