/* One observation, one step: a row each. */
#include "certs/plan.h"
#include "certs/tests/memory_place.h"
#include "common/base/str.h"
#include "common/tests/suite.h"

#define NOW FAKE_CLOCK_WALL_US
#define SECOND INT64_C(1000000)
#define MINUTE (60 * SECOND)
#define DAY (86400 * SECOND)
#define OVERLAP (10 * MINUTE)

static struct arena *arena;
static struct cert_policy policy;
static struct cert_pair ca, old_ca, foreign_ca; /* made NOW, 20 days before, NOW */
static struct cert_pair leaf, old_leaf, foreign_leaf;
static const char *both; /* the new one first */

static struct cert_pair ca_of(int64_t at_us)
{
    struct cert_pair pair;

    ck_assert_int_eq(cert_make_ca(arena, at_us, policy.ca_lifetime_us, &pair, NULL), 0);
    return pair;
}

static struct cert_pair leaf_of(const struct cert_pair *of, int64_t at_us)
{
    struct cert_pair pair;

    ck_assert_int_eq(
        cert_make_leaf(arena, of, &policy.names, at_us, policy.leaf_lifetime_us, &pair, NULL), 0);
    return pair;
}

static void setup(void)
{
    arena = arena_create();
    policy = memory_policy(arena);
    ca = ca_of(NOW);
    old_ca = ca_of(NOW - 20 * DAY);
    foreign_ca = ca_of(NOW);
    leaf = leaf_of(&ca, NOW);
    old_leaf = leaf_of(&old_ca, NOW - DAY);
    foreign_leaf = leaf_of(&foreign_ca, NOW);
    both = arena_printf(arena, "%s%s", ca.cert, old_ca.cert);
}

static void teardown(void)
{
    arena_destroy(arena);
}

TEST_GROUP("cert_plan", setup, teardown);

struct row {
    const char *what;
    struct cert_pair ca;
    const char *trust;
    struct cert_pair leaf;
    const char *bundle;
    int64_t after_us;

    enum cert_step step;
    const char *why;
    const char *then_trusted;
    int64_t next_us; /* after NOW; 0: not looked at */
};

static void check_row(const struct row *row)
{
    const char *const bundles[] = { row->bundle, row->bundle };
    const struct cert_observed observed = { .now_us = NOW + row->after_us,
                                            .ca = row->ca,
                                            .trust = row->trust,
                                            .leaf = row->leaf,
                                            .bundles = bundles,
                                            .bundle_count = ARRAY_LEN(bundles) };
    struct cert_plan plan = cert_plan(arena, &policy, &observed);

    ck_assert_msg(plan.step == row->step, "%s: %s: %s", row->what, cert_step_name(plan.step),
                  plan.why ? plan.why : "");
    ck_assert_msg(str_equal(plan.why, row->why), "%s: %s", row->what, plan.why ? plan.why : "");
    ck_assert_msg(str_equal(plan.trust, row->then_trusted), "%s: trusts %s", row->what, plan.trust);
    if (row->next_us)
        ck_assert_msg(plan.next_us == NOW + row->next_us, "%s: next after %lld s", row->what,
                      (long long)((plan.next_us - NOW) / SECOND));
}

static void check_rows(const struct row *rows, size_t len)
{
    for (size_t i = 0; i < len; i++)
        check_row(&rows[i]);
}

static const struct cert_pair NONE = { 0 };

TEST(what_is_missing_or_broken_is_made_authority_first)
{
    struct cert_pair mixed = { ca.cert, old_ca.key };
    struct cert_pair cut = { arena_strndup(arena, ca.cert, 100), ca.key };
    struct cert_pair cut_leaf = { leaf.cert, arena_strndup(arena, leaf.key, 100) };
    const struct row rows[] = {
        { "fresh", NONE, NULL, NONE, NULL, 0, CERT_MAKE_CA, "the authority is missing", "", 0 },
        { "nobody was told yet", ca, ca.cert, NONE, NULL, 0, CERT_WRITE_BUNDLES,
          "a caBundle is not what it should be", ca.cert, 0 },
        { "told", ca, ca.cert, NONE, ca.cert, 0, CERT_MAKE_LEAF, "the certificate is missing",
          ca.cert, 0 },
        { "complete", ca, ca.cert, leaf, ca.cert, 0, CERT_IDLE, NULL, ca.cert, 0 },
        { "authority without its key",
          { ca.cert, NULL },
          ca.cert,
          leaf,
          ca.cert,
          0,
          CERT_MAKE_CA,
          "the authority lacks one of its halves",
          ca.cert,
          0 },
        { "authority with another key", mixed, ca.cert, leaf, ca.cert, 0, CERT_MAKE_CA,
          "the authority has the key of another one", ca.cert, 0 },
        { "authority cut off", cut, NULL, leaf, ca.cert, 0, CERT_MAKE_CA,
          "the authority cannot be read", ca.cert, 0 },
        { "a leaf for an authority", leaf, ca.cert, leaf, ca.cert, 0, CERT_MAKE_CA,
          "the authority may not sign certificates", ca.cert, 0 },
        { "key of the leaf cut off", ca, ca.cert, cut_leaf, ca.cert, 0, CERT_MAKE_LEAF,
          "the certificate has a key that cannot be read", ca.cert, 0 },
        { "leaf deleted", ca, ca.cert, NONE, ca.cert, 0, CERT_MAKE_LEAF,
          "the certificate is missing", ca.cert, 0 },
        { "leaf of somebody else", ca, ca.cert, foreign_leaf, ca.cert, 0, CERT_MAKE_LEAF,
          "the certificate is of another authority", ca.cert, 0 },
        { "no list beside the authority", ca, NULL, leaf, ca.cert, 0, CERT_WRITE_TRUST,
          "the authorities to be trusted are others", ca.cert, 0 },
        { "broken list beside it", ca, "junk", leaf, ca.cert, 0, CERT_WRITE_TRUST,
          "the authorities to be trusted are others", ca.cert, 0 },
    };

    check_rows(rows, ARRAY_LEN(rows));
}

TEST(a_bundle_that_is_not_ours_is_put_back)
{
    const char *commented = arena_printf(arena, "# mine\n%s", ca.cert);
    const char *const bundles[] = { NULL, "", "junk", foreign_ca.cert, commented };

    for (size_t i = 0; i < ARRAY_LEN(bundles); i++) {
        const struct row row = { "bundle",
                                 ca,
                                 ca.cert,
                                 leaf,
                                 bundles[i],
                                 0,
                                 CERT_WRITE_BUNDLES,
                                 "a caBundle is not what it should be",
                                 ca.cert,
                                 0 };
        check_row(&row);
    }
}

TEST(certificates_are_made_anew_after_two_thirds_and_when_their_names_change)
{
    /* 3 days and the 5 minutes before them */
    int64_t two_thirds_us = (3 * DAY + 5 * MINUTE) / 3 * 2 - 5 * MINUTE;
    const struct row rows[] = {
        { "young", ca, ca.cert, leaf, ca.cert, DAY, CERT_IDLE, NULL, ca.cert, two_thirds_us },
        { "just before", ca, ca.cert, leaf, ca.cert, two_thirds_us - SECOND, CERT_IDLE, NULL,
          ca.cert, two_thirds_us },
        { "due", ca, ca.cert, leaf, ca.cert, two_thirds_us, CERT_MAKE_LEAF,
          "two thirds of the certificate's life are over", ca.cert, 0 },
        { "too late", ca, ca.cert, leaf, ca.cert, 3 * DAY, CERT_MAKE_LEAF,
          "the certificate has expired", ca.cert, 0 },
        { "authority over", ca, ca.cert, leaf, ca.cert, 30 * DAY, CERT_MAKE_CA,
          "the authority has expired", "", 0 },
    };
    const struct row renamed = { "renamed",      ca,
                                 ca.cert,        leaf,
                                 ca.cert,        0,
                                 CERT_MAKE_LEAF, "the certificate is for other names",
                                 ca.cert,        0 };
    const struct row shorter = { "shorter",      ca,
                                 ca.cert,        leaf,
                                 ca.cert,        DAY,
                                 CERT_MAKE_LEAF, "two thirds of the certificate's life are over",
                                 ca.cert,        0 };

    check_rows(rows, ARRAY_LEN(rows));
    policy.names = cert_names_of(arena, "hook", "other", NULL, 0);
    check_row(&renamed);
    policy = memory_policy(arena);
    policy.leaf_lifetime_us = DAY;
    check_row(&shorter);
}

/* From the old authority, whose time has come, to the new one alone. */
TEST(an_authority_is_replaced_without_a_moment_of_mistrust)
{
    struct cert_pair aged_leaf = leaf_of(&old_ca, NOW - DAY);
    struct cert_pair new_leaf = leaf_of(&ca, NOW + OVERLAP + SECOND);
    int64_t leaf_made_us = OVERLAP + SECOND;
    const struct row rows[] = {
        { "due", old_ca, old_ca.cert, aged_leaf, old_ca.cert, 0, CERT_MAKE_CA,
          "two thirds of the authority's life are over", old_ca.cert, 0 },
        { "made", ca, both, aged_leaf, old_ca.cert, 0, CERT_WRITE_BUNDLES,
          "a caBundle is not what it should be", both, 0 },
        { "told", ca, both, aged_leaf, both, 0, CERT_IDLE, NULL, both, OVERLAP + SECOND },
        { "known", ca, both, aged_leaf, both, OVERLAP + SECOND, CERT_MAKE_LEAF,
          "there is a new authority", both, 0 },
        { "signed", ca, both, new_leaf, both, leaf_made_us, CERT_IDLE, NULL, both,
          leaf_made_us + OVERLAP + SECOND },
        { "old one still served", ca, both, new_leaf, both, leaf_made_us + OVERLAP, CERT_IDLE, NULL,
          both, 0 },
        { "old one over", ca, both, new_leaf, both, leaf_made_us + OVERLAP + SECOND,
          CERT_WRITE_TRUST, "the authorities to be trusted are others", ca.cert, 0 },
        { "last write", ca, ca.cert, new_leaf, both, leaf_made_us + OVERLAP + SECOND,
          CERT_WRITE_BUNDLES, "a caBundle is not what it should be", ca.cert, 0 },
    };

    check_rows(rows, ARRAY_LEN(rows));
}

TEST(a_lost_authority_stays_trusted_until_its_certificate_is_served_no_more)
{
    const char *bundle = arena_printf(arena, "%s%s", old_ca.cert, foreign_ca.cert);
    const struct row rows[] = {
        { "Secret gone", NONE, NULL, old_leaf, old_ca.cert, 0, CERT_MAKE_CA,
          "the authority is missing", old_ca.cert, 0 },
        { "whatever was trusted goes on", NONE, NULL, old_leaf, bundle, 0, CERT_MAKE_CA,
          "the authority is missing", bundle, 0 },
        { "its certificate is served meanwhile", ca, both, old_leaf, both, MINUTE, CERT_IDLE, NULL,
          both, OVERLAP + SECOND },
        { "both Secrets gone: what pods hold is still trusted", ca, both, NONE, both, 0,
          CERT_MAKE_LEAF, "the certificate is missing", both, 0 },
        { "nobody knows the old one: no reason to wait", ca, ca.cert, old_leaf, ca.cert, 0,
          CERT_MAKE_LEAF, "the certificate is of another authority", ca.cert, 0 },
    };

    check_rows(rows, ARRAY_LEN(rows));
}

TEST(a_certificate_that_is_nearly_over_does_not_wait_for_a_new_authority_to_be_known)
{
    int64_t last_us = 2 * DAY - (3 * DAY + 5 * MINUTE) / 4; /* of old_leaf, made a day before */
    struct cert_pair late_ca = ca_of(NOW + last_us - MINUTE);
    const char *trust = arena_printf(arena, "%s%s", late_ca.cert, old_ca.cert);
    const struct row rows[] = {
        { "not yet", late_ca, trust, old_leaf, trust, last_us - SECOND, CERT_IDLE, NULL, trust,
          last_us },
        { "now", late_ca, trust, old_leaf, trust, last_us, CERT_MAKE_LEAF,
          "there is a new authority", trust, 0 },
    };

    check_rows(rows, ARRAY_LEN(rows));
}

TEST(where_somebody_else_looks_after_them_nothing_is_done)
{
    const struct cert_observed observed = { .now_us = NOW, .keep_out = "cert-manager does it" };
    struct cert_plan plan = cert_plan(arena, &policy, &observed);

    ck_assert_int_eq(plan.step, CERT_IDLE);
    ck_assert_str_eq(plan.why, "cert-manager does it");
    ck_assert_int_eq(plan.next_us, 0);
}
