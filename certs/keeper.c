#include "certs/keeper.h"

static int look(struct arena *arena, const struct cert_place *place,
                const struct cert_policy *policy, const struct clock *clock,
                struct cert_observed *ret_observed, struct cert_plan *ret, struct error *err)
{
    *ret_observed = (struct cert_observed){ .now_us = clock_wall_us(clock) };

    int r = place->load(place->self, arena, ret_observed, err);
    if (r < 0)
        return r;
    *ret = cert_plan(arena, policy, ret_observed);
    return 0;
}

int cert_look(struct arena *arena, const struct cert_place *place, const struct cert_policy *policy,
              const struct clock *clock, struct cert_plan *ret, struct error *err)
{
    struct cert_observed observed;

    return look(arena, place, policy, clock, &observed, ret, err);
}

static int make_ca(struct arena *arena, const struct cert_place *place,
                   const struct cert_policy *policy, const struct cert_observed *observed,
                   const char *trust, struct error *err)
{
    struct cert_pair ca;

    int r = cert_make_ca(arena, observed->now_us, policy->ca_lifetime_us, &ca, err);
    if (r < 0)
        return r;
    return place->save_ca(place->self, arena, &ca, arena_printf(arena, "%s%s", ca.cert, trust),
                          err);
}

static int make_leaf(struct arena *arena, const struct cert_place *place,
                     const struct cert_policy *policy, const struct cert_observed *observed,
                     struct error *err)
{
    struct cert_pair leaf;

    int r = cert_make_leaf(arena, &observed->ca, &policy->names, observed->now_us,
                           policy->leaf_lifetime_us, &leaf, err);
    if (r < 0)
        return r;
    return place->save_leaf(place->self, arena, &leaf, err);
}

static int take_step(struct arena *arena, const struct cert_place *place,
                     const struct cert_policy *policy, const struct cert_observed *observed,
                     const struct cert_plan *plan, struct error *err)
{
    switch (plan->step) {
    case CERT_IDLE:
        return 0;
    case CERT_MAKE_CA:
        return make_ca(arena, place, policy, observed, plan->trust, err);
    case CERT_WRITE_TRUST:
        return place->save_ca(place->self, arena, &observed->ca, plan->trust, err);
    case CERT_WRITE_BUNDLES:
        return place->save_bundles(place->self, arena, plan->trust, err);
    case CERT_MAKE_LEAF:
        return make_leaf(arena, place, policy, observed, err);
    }
    return 0;
}

int cert_keep(struct arena *arena, const struct cert_place *place, const struct cert_policy *policy,
              const struct clock *clock, struct cert_result *ret, struct error *err)
{
    *ret = (struct cert_result){ .done_count = 0 };
    for (;;) {
        struct cert_observed observed;

        int r = look(arena, place, policy, clock, &observed, &ret->plan, err);
        if (r < 0 || ret->plan.step == CERT_IDLE)
            return r;
        if (ret->done_count == CERT_MAX_STEPS)
            return error_set(err, ERROR_INTERNAL, "the certificates do not come to rest: %s",
                             ret->plan.why);

        r = take_step(arena, place, policy, &observed, &ret->plan, err);
        if (r < 0)
            return error_wrap(err, "%s", cert_step_name(ret->plan.step));
        ret->done[ret->done_count++] =
            (struct cert_done){ .step = ret->plan.step, .why = ret->plan.why };
    }
}
