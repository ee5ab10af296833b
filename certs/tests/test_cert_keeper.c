/* Certificates over many lives, in memory and in files, with every write failing once. */
#include <stdlib.h>

#include "certs/file_place.h"
#include "certs/tests/memory_place.h"
#include "common/base/str.h"
#include "common/tests/process.h"
#include "common/tests/suite.h"

#define SECOND INT64_C(1000000)
#define DAY (86400 * SECOND)
#define MAX_SERVED 256

static struct arena *arena;
static struct fake_clock clock;
static struct cert_policy policy;
static struct memory_place memory;
static struct cert_place place;

/* Certificates that some webhook may still serve. */
static struct {
    struct cert_pair leaf;
    int64_t replaced_us; /* INT64_MAX: not yet */
} served[MAX_SERVED];
static size_t served_count;

static void setup(void)
{
    arena = arena_create();
    fake_clock_init(&clock);
    policy = memory_policy(arena);
    memory = (struct memory_place){ .arena = arena, .bundle_count = 2 };
    place = memory_place(&memory);
    served_count = 0;
}

static void teardown(void)
{
    arena_destroy(arena);
}

TEST_GROUP("cert_keeper", setup, teardown);

static int64_t now_us(void)
{
    return clock_wall_us(&clock.clock);
}

static struct cert_result keep(void)
{
    struct cert_result result;
    struct error err = { 0 };
    int r = cert_keep(arena, &place, &policy, &clock.clock, &result, &err);

    ck_assert_msg(r == 0, "%s", err.message);
    return result;
}

/* Whatever may be served now is trusted now, and valid. */
static void check_served(void)
{
    for (size_t i = 0; i < served_count; i++) {
        if (served[i].replaced_us != INT64_MAX &&
            served[i].replaced_us + policy.overlap_us < now_us())
            continue;
        for (size_t j = 0; j < memory.bundle_count; j++)
            ck_assert_pstr_eq(
                cert_leaf_problem(&served[i].leaf, &policy.names, memory.bundles[j], now_us()),
                NULL);
    }
}

static void note_served(void)
{
    if (!memory.leaf.cert ||
        (served_count && str_equal(served[served_count - 1].leaf.cert, memory.leaf.cert)))
        return;
    ck_assert_uint_lt(served_count, MAX_SERVED);
    if (served_count)
        served[served_count - 1].replaced_us = now_us();
    served[served_count].leaf = memory.leaf;
    served[served_count++].replaced_us = INT64_MAX;
}

TEST(the_first_run_makes_everything_and_the_second_nothing)
{
    struct cert_result result = keep();

    ck_assert_uint_eq(result.done_count, 3);
    ck_assert_int_eq(result.done[0].step, CERT_MAKE_CA);
    ck_assert_int_eq(result.done[1].step, CERT_WRITE_BUNDLES);
    ck_assert_int_eq(result.done[2].step, CERT_MAKE_LEAF);
    ck_assert_int_eq(result.plan.step, CERT_IDLE);
    ck_assert_str_eq(memory.bundles[0], memory.ca.cert);

    unsigned writes = memory.writes;
    result = keep();
    ck_assert_uint_eq(result.done_count, 0);
    ck_assert_uint_eq(memory.writes, writes);
}

/* Woken only when the plan said so. */
TEST(over_three_authorities_everything_that_is_served_is_trusted)
{
    unsigned authorities = 0;

    policy.ca_lifetime_us = 9 * DAY;
    for (unsigned turns = 0; authorities < 3; turns++) {
        ck_assert_uint_lt(turns, 1000);
        struct cert_result result = keep();

        for (size_t i = 0; i < result.done_count; i++)
            authorities += result.done[i].step == CERT_MAKE_CA;
        note_served();
        check_served();
        ck_assert_int_gt(result.plan.next_us, now_us());
        fake_clock_advance(&clock, (result.plan.next_us - now_us()) / 1000 - 1000);
        check_served();
        ck_assert_uint_eq(keep().done_count, 0); /* not before its time */
        fake_clock_advance(&clock, 1000);
    }
    ck_assert_uint_gt(served_count, 5);
}

/* Each write fails once, before or after it was done; the next run goes on. */
#define FAILING_WRITES 9
TEST_TIMES(a_run_that_was_broken_off_is_completed_by_the_next, FAILING_WRITES)
{
    struct error err = { 0 };
    struct cert_result result;

    policy.ca_lifetime_us = 6 * DAY;
    memory.fail = (unsigned)_i + 1;
    memory.fail_late = _i % 2 == 0; /* the first: an authority that is there, and was not told of */
    for (unsigned turns = 0; memory.writes < FAILING_WRITES + 2; turns++) {
        ck_assert_uint_lt(turns, 200);
        if (cert_keep(arena, &place, &policy, &clock.clock, &result, &err) < 0) {
            ck_assert_int_eq(err.code, ERROR_TIMEOUT);
            ck_assert_uint_eq(memory.writes, memory.fail);
            note_served();
            check_served();
            result = keep();
        }
        note_served();
        check_served();
        fake_clock_advance(&clock, (result.plan.next_us - now_us()) / 1000);
    }
}

TEST(what_is_deleted_or_emptied_is_put_back)
{
    keep();
    const char *cert = memory.leaf.cert;

    memory.bundles[1] = NULL;
    ck_assert_uint_eq(keep().done_count, 1);
    ck_assert_str_eq(memory.bundles[1], memory.ca.cert);
    ck_assert_str_eq(memory.leaf.cert, cert);

    memory.leaf = (struct cert_pair){ 0 };
    ck_assert_uint_eq(keep().done_count, 1);
    ck_assert_str_ne(memory.leaf.cert, cert);

    note_served();
    memory.ca = (struct cert_pair){ 0 };
    memory.trust = NULL;
    struct cert_result result = keep();
    ck_assert_uint_eq(result.done_count, 2); /* the certificate stays for now */
    note_served();
    check_served();
    fake_clock_advance(&clock, (result.plan.next_us - now_us()) / 1000);
    keep();
    note_served();
    check_served();
    ck_assert_uint_eq(served_count, 2);
}

TEST(certificates_of_seconds_are_replaced_before_they_end)
{
    policy.leaf_lifetime_us = 6 * SECOND;
    policy.ca_lifetime_us = 36 * SECOND;
    keep();
    note_served();
    policy.overlap_us = SECOND; /* of the two that a third of 6 s would allow */
    for (unsigned turn = 0; turn < 80; turn++) {
        fake_clock_advance(&clock, 500);
        keep();
        note_served();
        check_served();
    }
    ck_assert_uint_gt(served_count, 7);
}

TEST(in_files_it_is_the_same_and_idempotent)
{
    char *dir = temp_dir_create();
    struct file_place files = { .cert_dir = arena_printf(arena, "%s/certs", dir),
                                .ca_dir = arena_printf(arena, "%s/ca", dir) };

    place = (struct cert_place){ .self = &files,
                                 .load = file_place_load,
                                 .save_ca = file_place_save_ca,
                                 .save_leaf = file_place_save_leaf };
    ck_assert_uint_eq(keep().done_count, 2);
    ck_assert_uint_eq(keep().done_count, 0);

    /* its key is lost: the old one stays in ca.crt, behind the new one, until it is over */
    const char *const lose[] = { "rm", "ca/ca.key", NULL };
    process_run(dir, lose);
    struct cert_result result = keep();
    ck_assert_uint_eq(result.done_count, 1);
    ck_assert_int_eq(result.done[0].step, CERT_MAKE_CA);
    ck_assert_uint_eq(keep().done_count, 0);
    fake_clock_advance(&clock, (result.plan.next_us - now_us()) / 1000);
    result = keep();
    ck_assert_uint_eq(result.done_count, 1);
    ck_assert_int_eq(result.done[0].step, CERT_MAKE_LEAF);
    fake_clock_advance(&clock, (result.plan.next_us - now_us()) / 1000);
    result = keep();
    ck_assert_uint_eq(result.done_count, 1);
    ck_assert_int_eq(result.done[0].step, CERT_WRITE_TRUST);
    ck_assert_str_eq(result.plan.trust, cert_first(arena, result.plan.trust));
    temp_dir_destroy(dir);
}
