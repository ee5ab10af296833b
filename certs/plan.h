/* What is to be done about the webhook's certificates: pure, one step at a time. */
#pragma once

#include "certs/inspect.h"

struct cert_policy {
    struct cert_names names;
    int64_t ca_lifetime_us;
    int64_t leaf_lifetime_us;
    /* Old and new authority are trusted together for so long: mounted Secrets follow after a minute
     * or more. At most a third of a certificate's and a sixth of an authority's lifetime. */
    int64_t overlap_us;
};

struct cert_observed {
    int64_t now_us;
    struct cert_pair ca;
    const char *trust; /* the authority's and older ones', as stored beside it; NULL: nothing */
    struct cert_pair leaf;
    const char *const *bundles; /* of each entry of the webhook configurations; NULL: empty */
    size_t bundle_count;
    const char *keep_out; /* why nothing is to be done here at all; NULL: go on */
};

/*
 * The steps, in the order in which a complete change takes them. Between those that wait, API
 * servers and webhooks have the overlap to learn what is new; nobody is asked to trust what he was
 * not told before.
 *
 *   MAKE_CA (lost, or two thirds of its life are over; the old one stays trusted)
 *     -> WRITE_BUNDLES (old and new) -> wait, unless there is nothing to serve meanwhile
 *     -> MAKE_LEAF (of the new one)  -> wait
 *     -> WRITE_TRUST, WRITE_BUNDLES  (the new one alone)
 *
 * A leaf is also made, of the present authority and without waiting, when it is unusable or two
 * thirds of its life are over. Lifetimes that were made shorter count at once.
 */
enum cert_step {
    CERT_IDLE,
    CERT_MAKE_CA,       /* store it, with trust behind it */
    CERT_WRITE_TRUST,   /* store trust beside the authority */
    CERT_WRITE_BUNDLES, /* put trust into every entry */
    CERT_MAKE_LEAF,
};
const char *cert_step_name(enum cert_step step); /* for messages */

struct cert_plan {
    enum cert_step step;
    const char *why;     /* "the certificate has expired"; IDLE: NULL, or why we keep out */
    const char *trust;   /* PEM */
    int64_t next_us;     /* IDLE: when the time alone gives something to do */
    int64_t ca_end_us;   /* 0: none that is usable */
    int64_t leaf_end_us; /* likewise */
};

/* The step after this one is found by observing again. Strings live in the arena. */
struct cert_plan cert_plan(struct arena *arena, const struct cert_policy *policy,
                           const struct cert_observed *observed);
