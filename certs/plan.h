/* Decides the next step of the rotation of the webhook's certificates. Pure. */
#pragma once

#include "certs/inspect.h"

struct cert_policy {
    struct cert_names names;
    int64_t ca_lifetime_us;
    int64_t leaf_lifetime_us;
    /* Time for which the old and the new authority are trusted, because mounted Secrets follow after
     * a minute or more. At most a third of a certificate's and a sixth of an authority's lifetime. */
    int64_t overlap_us;
};

struct cert_observed {
    int64_t now_us;
    struct cert_pair ca;
    const char *trust; /* the authority's and older ones', as stored beside it; NULL: nothing */
    struct cert_pair leaf;
    const char *const *bundles; /* of each entry of the webhook configurations; NULL: empty */
    size_t bundle_count;
    const char *keep_out; /* why this program must not act; NULL: it may */
};

/*
 * The steps, in the order of a complete rotation. During each wait API servers and webhooks have the
 * overlap to learn the new state, so that no certificate is served before it is trusted.
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
    const char *why;     /* "the certificate has expired"; IDLE: NULL, or keep_out */
    const char *trust;   /* PEM */
    int64_t next_us;     /* IDLE: time of the next step */
    int64_t ca_end_us;   /* 0: none that is usable */
    int64_t leaf_end_us; /* likewise */
};

/* The step after this one is found by observing again. Strings live in the arena. */
struct cert_plan cert_plan(struct arena *arena, const struct cert_policy *policy,
                           const struct cert_observed *observed);
