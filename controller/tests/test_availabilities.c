/* The table of Proplets that may close. */
#include "controller/device/availabilities.h"

#include <stdio.h>

#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/tests/random.h"
#include "common/tests/suite.h"

static struct availabilities *availabilities;

static void set_up(void)
{
    availabilities = availabilities_create();
}

static void tear_down(void)
{
    availabilities_destroy(availabilities);
}

static bool set(const char *uid, enum availability_state state)
{
    const struct availability is = { .state = state, .since_us = 7 };

    return availabilities_set(availabilities, uid, &is, 7);
}

static bool is_open(const char *uid, int64_t now_us)
{
    const struct availability is = availabilities_get(availabilities, uid);

    return availability_is_open_at(&is, now_us);
}

TEST_GROUP("availabilities", set_up, tear_down);

TEST(proplet_without_an_entry_is_open)
{
    ck_assert(is_open("a", 7));
    ck_assert_int_eq(availabilities_get(availabilities, "a").state, AVAILABILITY_UNSET);
    ck_assert(set("a", AVAILABILITY_CLOSED));
    ck_assert(!is_open("a", 7));
    ck_assert(is_open("b", 7));
    ck_assert_int_eq(availabilities_get(availabilities, "a").since_us, 7);
    availabilities_remove(availabilities, "a");
    availabilities_remove(availabilities, "a");
    ck_assert(is_open("a", 7));
}

TEST(only_opening_and_closing_are_changes)
{
    ck_assert(!set("a", AVAILABILITY_OPEN));
    ck_assert(set("a", AVAILABILITY_DRAINING));
    ck_assert(!set("a", AVAILABILITY_CLOSED));
    ck_assert(!set("a", AVAILABILITY_UNKNOWN));
    ck_assert(set("a", AVAILABILITY_OPEN));
    ck_assert(!set("a", AVAILABILITY_UNSET));
    ck_assert(set("a", AVAILABILITY_UNKNOWN));
    ck_assert(set("a", AVAILABILITY_UNSET)); /* none of the fields is used any more */
    ck_assert_int_eq(availabilities_get(availabilities, "a").since_us, 0);
}

/* It is not open again before its reconciler says so. */
TEST(proplet_closes_at_its_second_and_opens_by_its_reconciler)
{
    struct availability is = { .state = AVAILABILITY_OPEN, .next_us = 1000 };

    (void)availabilities_set(availabilities, "a", &is, 7);
    ck_assert(is_open("a", 999));
    ck_assert(!is_open("a", 1000));
    is.state = AVAILABILITY_CLOSED;
    (void)availabilities_set(availabilities, "a", &is, 7);
    ck_assert(!is_open("a", 1001));
}

/* A Task waits for it, or for a longer time. */
TEST(another_close_to_come_is_a_change)
{
    struct availability is = { .state = AVAILABILITY_OPEN, .next_us = 1000, .stop_us = 1500 };

    ck_assert(availabilities_set(availabilities, "a", &is, 7));
    ck_assert(!availabilities_set(availabilities, "a", &is, 8));
    is.next_us = 2000; /* the override was made longer */
    ck_assert(availabilities_set(availabilities, "a", &is, 999));
    is.next_us = 1500; /* and shorter */
    ck_assert(availabilities_set(availabilities, "a", &is, 999));
    is.stop_us = 2500; /* and the grace */
    ck_assert(availabilities_set(availabilities, "a", &is, 999));
    is.next_us = is.stop_us = 3000;
    ck_assert(availabilities_set(availabilities, "a", &is, 2000));
    is.state = AVAILABILITY_CLOSED; /* although it was closed by its time before */
    ck_assert(availabilities_set(availabilities, "a", &is, 3000));
}

/* Its Tasks wait for that time. */
TEST(another_stop_of_a_closed_proplet_is_a_change)
{
    struct availability is = { .state = AVAILABILITY_DRAINING, .since_us = 1000, .stop_us = 2000 };

    ck_assert(availabilities_set(availabilities, "a", &is, 1000));
    is.state = AVAILABILITY_CLOSED;
    ck_assert(!availabilities_set(availabilities, "a", &is, 1001));
    is.stop_us = 1500; /* the grace was made shorter */
    ck_assert(availabilities_set(availabilities, "a", &is, 1002));
    is.since_us = is.stop_us = 1003; /* the kill switch */
    ck_assert(availabilities_set(availabilities, "a", &is, 1003));
    ck_assert(!availabilities_set(availabilities, "a", &is, 1004));
}

#define FLEET 300
#define CHANGES 20000

/* As an API server makes it; every tenth is of another form. */
static const char *uid_of(size_t i, char ret[static UUID_LEN])
{
    (void)snprintf(ret, UUID_LEN, i % 10 ? "%08zx-7892-41e9-9b2e-f96ed555%04zx" : "proplet-%zu-%zu",
                   i * 2654435761U % 0xffffffffU, i);
    return ret;
}

TEST(each_proplet_of_a_fleet_has_its_own_entry)
{
    int64_t model[FLEET] = { 0 }; /* since_us; 0: no entry */
    char uid[UUID_LEN];
    uint64_t seed = 7;

    for (int64_t change = 1; change <= CHANGES; change++) {
        size_t i = random_below(&seed, FLEET);
        const struct availability is = { .state = AVAILABILITY_CLOSED, .since_us = change };

        model[i] = random_below(&seed, 3) ? change : 0;
        if (model[i])
            (void)availabilities_set(availabilities, uid_of(i, uid), &is, 7);
        else
            availabilities_remove(availabilities, uid_of(i, uid));
        i = random_below(&seed, FLEET);
        ck_assert_int_eq(availabilities_get(availabilities, uid_of(i, uid)).since_us, model[i]);
    }
    for (size_t i = 0; i < FLEET; i++) {
        ck_assert_int_eq(availabilities_get(availabilities, uid_of(i, uid)).since_us, model[i]);
        availabilities_remove(availabilities, uid_of(i, uid));
    }
    ck_assert(availabilities_is_empty(availabilities));
}

/* Uids that differ in one digit, and a text that is longer than a uid. */
TEST(uids_are_compared_as_a_whole)
{
    static const char *const UIDS[] = {
        "3011d586-7892-41e9-9b2e-f96ed555aab1", "3011d586-7892-41e9-9b2e-f96ed555aab2",
        "4011d586-7892-41e9-9b2e-f96ed555aab1", "3011d586-7892-41e9-9b2e-f96ed555aab1-1",
        "3011d586-7892-41e9-9b2e-f96ed555aab",  "3011d586-7892-41e9-9b2e-f96ed555aabx",
        "3011d5867892-41e9-9b2e--f96ed555aab1", ""
    };

    for (size_t i = 0; i < ARRAY_LEN(UIDS); i++) {
        ck_assert(set(UIDS[i], AVAILABILITY_CLOSED));
        for (size_t k = i + 1; k < ARRAY_LEN(UIDS); k++)
            ck_assert(is_open(UIDS[k], 7));
    }
}

static void note(void *ctx, const struct kube_name *proplet, bool open)
{
    *(int *)ctx += open && str_equal(proplet->name, "alpha") ? 1 : 100;
}

TEST(changes_are_reported_to_the_subscriber)
{
    struct kube_name alpha;
    int told = 0;

    ck_assert(kube_name_set(&alpha, "default", "alpha"));
    availabilities_report(availabilities, &alpha, true);
    availabilities_subscribe(availabilities, note, &told);
    availabilities_report(availabilities, &alpha, true);
    availabilities_report(availabilities, &alpha, false);
    ck_assert_int_eq(told, 101);
}
