#include "certs/plan.h"

#include "common/base/certificate.h"
#include "common/base/str.h"

/* What is known of one certificate. */
struct life {
    const char *problem; /* NULL: usable */
    int64_t from_us;
    int64_t end_us;
    int64_t made_us; /* not before it was really made */
    int64_t due_us;  /* two thirds are over */
};

/* All that the steps depend on. */
struct view {
    struct life ca;
    struct life leaf;
    bool leaf_is_ours;  /* signed by the present authority */
    int64_t settled_us; /* the present authority is known everywhere */
    int64_t dropped_us; /* the older ones serve no more */
};

const char *cert_step_name(enum cert_step step)
{
    static const char *const NAMES[] = {
        [CERT_IDLE] = "nothing",
        [CERT_MAKE_CA] = "new authority",
        [CERT_WRITE_TRUST] = "trusted authorities stored",
        [CERT_WRITE_BUNDLES] = "caBundle written",
        [CERT_MAKE_LEAF] = "new certificate",
    };

    return NAMES[step];
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static struct life life_of(const char *problem, const char *cert, int64_t wanted_us)
{
    struct life life = { .problem = problem };
    struct certificate_times times;

    if (problem || certificate_read_times(cert, &times, NULL) < 0)
        return life;

    int64_t whole_us = times.not_after_us - times.not_before_us;
    int64_t counted_us = least(whole_us, wanted_us + cert_skew_us(wanted_us));
    life.from_us = times.not_before_us;
    life.end_us = times.not_after_us;
    life.made_us = times.not_before_us + cert_skew_us(whole_us) + 1000000; /* whole seconds */
    life.due_us = times.not_before_us + counted_us / 3 * 2;
    return life;
}

static int64_t overlap_of(const struct cert_policy *policy)
{
    return least(policy->overlap_us,
                 least(policy->leaf_lifetime_us / 3, policy->ca_lifetime_us / 6));
}

/* The authority, and those that are still needed: all until there is a certificate of the present
 * one, then for the overlap. */
static struct cert_list trust_of(struct arena *arena, const struct cert_observed *observed,
                                 const struct view *view)
{
    struct cert_list list = { .len = 0 };

    cert_list_add(arena, &list, observed->ca.cert, observed->now_us);
    if (!view->leaf_is_ours || observed->now_us < view->dropped_us)
        cert_list_add(arena, &list, observed->trust, observed->now_us);
    return list;
}

/* Whatever is trusted now stays so: a new authority must not take anybody's trust away. */
static const char *trust_before(struct arena *arena, const struct cert_observed *observed)
{
    struct cert_list list = { .len = 0 };

    cert_list_add(arena, &list, observed->ca.cert, observed->now_us);
    cert_list_add(arena, &list, observed->trust, observed->now_us);
    for (size_t i = 0; i < observed->bundle_count; i++)
        cert_list_add(arena, &list, observed->bundles[i], observed->now_us);
    /* room for the new one */
    list.len = list.len < CERT_MAX_LIST ? list.len : CERT_MAX_LIST - 1;
    return cert_list_text(arena, &list);
}

static bool bundles_differ(const struct cert_observed *observed, const char *trust)
{
    for (size_t i = 0; i < observed->bundle_count; i++) {
        if (!str_equal(observed->bundles[i], trust))
            return true;
    }
    return false;
}

static const char *why_ca(struct arena *arena, const struct cert_observed *observed,
                          const struct view *view)
{
    if (view->ca.problem)
        return arena_printf(arena, "the authority %s", view->ca.problem);
    /* one change at a time */
    if (observed->now_us >= view->ca.due_us && view->leaf_is_ours)
        return "two thirds of the authority's life are over";
    return NULL;
}

static const char *why_leaf(struct arena *arena, const struct cert_observed *observed,
                            const struct view *view)
{
    if (view->leaf.problem)
        return arena_printf(arena, "the certificate %s", view->leaf.problem);
    if (!view->leaf_is_ours)
        return observed->now_us >= view->settled_us ? "there is a new authority" : NULL;
    return observed->now_us >= view->leaf.due_us ? "two thirds of the certificate's life are over"
                                                 : NULL;
}

static struct view look(struct arena *arena, const struct cert_policy *policy,
                        const struct cert_observed *observed)
{
    struct view view = { .ca = life_of(cert_ca_problem(&observed->ca, observed->now_us),
                                       observed->ca.cert, policy->ca_lifetime_us) };

    const struct cert_list all = trust_of(arena, observed, &view);
    int64_t overlap_us = overlap_of(policy);

    view.leaf_is_ours = cert_is_signed_by(observed->leaf.cert, observed->ca.cert);
    view.leaf = life_of(cert_leaf_problem(&observed->leaf, &policy->names,
                                          cert_list_text(arena, &all), observed->now_us),
                        observed->leaf.cert, policy->leaf_lifetime_us);

    /* A certificate that is nearly over does not wait, while those who follow late can do so. */
    int64_t quarter_us = (view.leaf.end_us - view.leaf.from_us) / 4;
    int64_t last_us = view.leaf.end_us - (quarter_us > overlap_us ? quarter_us : overlap_us);
    view.settled_us = least(view.ca.made_us + overlap_us, last_us);
    view.dropped_us = view.leaf.made_us + overlap_us;
    return view;
}

/* The next time at which a step becomes due by itself. */
static int64_t next_of(const struct view *view, const struct cert_list *trust)
{
    int64_t next_us = view->leaf_is_ours ? view->leaf.due_us : view->settled_us;

    if (view->leaf_is_ours)
        next_us = least(next_us, view->ca.due_us);
    if (view->leaf_is_ours && trust->len > 1)
        next_us = least(next_us, view->dropped_us);
    return least(next_us, least(view->leaf.end_us, view->ca.end_us));
}

struct cert_plan cert_plan(struct arena *arena, const struct cert_policy *policy,
                           const struct cert_observed *observed)
{
    if (observed->keep_out)
        return (struct cert_plan){ .why = observed->keep_out };

    struct view view = look(arena, policy, observed);
    struct cert_plan plan = { .ca_end_us = view.ca.end_us, .leaf_end_us = view.leaf.end_us };

    plan.why = why_ca(arena, observed, &view);
    if (plan.why) {
        plan.step = CERT_MAKE_CA;
        plan.trust = trust_before(arena, observed);
        return plan;
    }

    const struct cert_list trust = trust_of(arena, observed, &view);
    plan.trust = cert_list_text(arena, &trust);
    if (!str_equal(observed->trust, plan.trust)) {
        plan.step = CERT_WRITE_TRUST;
        plan.why = "the authorities to be trusted are others";
    } else if (bundles_differ(observed, plan.trust)) {
        plan.step = CERT_WRITE_BUNDLES;
        plan.why = "a caBundle is not what it should be";
    } else {
        plan.why = why_leaf(arena, observed, &view);
        plan.step = plan.why ? CERT_MAKE_LEAF : CERT_IDLE;
    }
    if (plan.step == CERT_IDLE)
        plan.next_us = next_of(&view, &trust);
    return plan;
}
