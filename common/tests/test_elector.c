/* Leader election: the decision as a table, and one, two and a failing API server's electors. */
#include "common/runtime/elector.h"

#include <check.h>
#include <pthread.h>
#include <string.h>

#include "common/base/cond.h"
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "common/tests/fake_api.h"
#include "common/tests/fake_clock.h"
#include "common/tests/suite.h"

static const struct elector_options OPTIONS = {
    .identity = "me",
    .lease = { .ns = "ns", .name = "propeller-controller" },
    .lease_duration_ms = 15000,
    .renew_deadline_ms = 10000,
    .retry_period_ms = 2000,
};

static const struct {
    const char *what;
    struct lease_view view;
    int64_t now_ms;
    enum lease_action action;
} DECISIONS[] = {
    { "no Lease", { .exists = false }, 0, LEASE_CREATE },
    { "ours", { .exists = true, .holder = "me", .duration_ms = 15000 }, 1000, LEASE_RENEW },
    { "ours, run out",
      { .exists = true, .holder = "me", .duration_ms = 15000 },
      60000,
      LEASE_RENEW },
    { "released", { .exists = true, .duration_ms = 1000 }, 0, LEASE_TAKE },
    { "another's",
      { .exists = true, .holder = "you", .observed_ms = 1000, .duration_ms = 15000 },
      15999,
      LEASE_WAIT },
    { "another's, unchanged for its duration",
      { .exists = true, .holder = "you", .observed_ms = 1000, .duration_ms = 15000 },
      16000,
      LEASE_TAKE },
    { "another's with a longer duration than ours",
      { .exists = true, .holder = "you", .observed_ms = 1000, .duration_ms = 60000 },
      16000,
      LEASE_WAIT },
};

START_TEST(the_decision_follows_from_what_was_seen)
{
    ck_assert_msg(lease_decide(&DECISIONS[_i].view, &OPTIONS, DECISIONS[_i].now_ms) ==
                      DECISIONS[_i].action,
                  "%s", DECISIONS[_i].what);
}
END_TEST

/* One elector and what it told. */
struct candidate {
    struct kube_client *client;
    struct elector *elector;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int started;
    int ended;
    char why[128];
};

static struct fake_api *api;
static struct fake_clock boot;
static const struct elector_options FAST = {
    .identity = "me",
    .lease = { .ns = "ns", .name = "propeller-controller" },
    .lease_duration_ms = 15000,
    .renew_deadline_ms = 10000,
    .retry_period_ms = 5,
};

static void on_started(void *ctx)
{
    struct candidate *candidate = ctx;

    pthread_mutex_lock(&candidate->lock);
    candidate->started++;
    pthread_cond_signal(&candidate->changed);
    pthread_mutex_unlock(&candidate->lock);
}

static void on_ended(void *ctx, const char *why)
{
    struct candidate *candidate = ctx;

    pthread_mutex_lock(&candidate->lock);
    candidate->ended++;
    str_copy(candidate->why, sizeof(candidate->why), why);
    pthread_cond_signal(&candidate->changed);
    pthread_mutex_unlock(&candidate->lock);
}

static void enter(struct candidate *candidate, const char *identity)
{
    const struct elector_callbacks callbacks = { candidate, on_started, on_ended };
    struct elector_options options = FAST;
    struct error err = { 0 };

    *candidate = (struct candidate){ 0 };
    pthread_mutex_init(&candidate->lock, NULL);
    cond_init(&candidate->changed);
    options.identity = identity;
    candidate->client = kube_client_create_with(fake_api_roundtrip, api);
    candidate->elector = elector_create(&options, candidate->client, &boot.clock, &callbacks);
    ck_assert_int_eq(elector_start(candidate->elector, &err), 0);
}

static void leave(struct candidate *candidate, bool release)
{
    elector_stop(candidate->elector, release);
    elector_destroy(candidate->elector);
    kube_client_destroy(candidate->client);
    pthread_cond_destroy(&candidate->changed);
    pthread_mutex_destroy(&candidate->lock);
}

static void await(struct candidate *candidate, const int *counter)
{
    struct timespec deadline = cond_deadline(20000);

    pthread_mutex_lock(&candidate->lock);
    while (!*counter && cond_wait_until(&candidate->changed, &candidate->lock, &deadline))
        ;
    int value = *counter;
    pthread_mutex_unlock(&candidate->lock);
    ck_assert_int_eq(value, 1);
}

/* So many more requests have been made: the elector went round. */
static void await_requests(size_t more)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct fake_request *log;
    size_t target = fake_api_requests(api, arena, &log) + more;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t never;
    struct timespec deadline = cond_deadline(20000);

    cond_init(&never);
    pthread_mutex_lock(&lock);
    while (fake_api_requests(api, arena, &log) < target) {
        struct timespec step = cond_deadline(2);
        ck_assert_msg(step.tv_sec <= deadline.tv_sec, "no requests came");
        cond_wait_until(&never, &lock, &step);
    }
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&never);
}

static const char *holder(struct arena *arena)
{
    const cJSON *lease = fake_api_get(api, arena, &KIND_LEASE, &FAST.lease);

    return json_string(json_path(lease, "spec", "holderIdentity", NULL), "");
}

static void set_up(void)
{
    json_init();
    api = fake_api_create();
    fake_clock_init(&boot);
}

static void tear_down(void)
{
    fake_api_destroy(api);
}

START_TEST(the_only_one_leads_and_releases_at_the_end)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct candidate me;

    enter(&me, "me");
    await(&me, &me.started);
    ck_assert(elector_may_act(me.elector));
    ck_assert_str_eq(holder(arena), "me");
    leave(&me, true);
    ck_assert_str_eq(holder(arena), "");
}
END_TEST

START_TEST(the_second_waits_and_takes_over_a_released_lease)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct candidate first;
    struct candidate second;

    enter(&first, "first");
    await(&first, &first.started);
    enter(&second, "second");
    await_requests(6);
    ck_assert(!elector_is_leader(second.elector));
    ck_assert(!elector_may_act(second.elector));
    leave(&first, true);
    await(&second, &second.started);
    ck_assert_str_eq(holder(arena), "second");
    leave(&second, false);
    ck_assert_str_eq(holder(arena), "second"); /* not released: work may be going on */
}
END_TEST

START_TEST(a_lease_that_is_not_renewed_is_taken_after_its_duration)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct candidate first;
    struct candidate second;

    enter(&first, "first");
    await(&first, &first.started);
    leave(&first, false);
    enter(&second, "second");
    await_requests(4);
    ck_assert_int_eq(second.started, 0);
    fake_clock_advance(&boot, FAST.lease_duration_ms);
    await(&second, &second.started);
    leave(&second, true);
}
END_TEST

START_TEST(nobody_acts_after_the_renew_deadline)
{
    struct candidate me;

    enter(&me, "me");
    await(&me, &me.started);
    elector_stop(me.elector, false); /* no renewal any more */
    ck_assert(!elector_may_act(me.elector));
    elector_destroy(me.elector);

    struct elector_options rare = FAST;
    rare.retry_period_ms = 8000;
    const struct elector_callbacks callbacks = { &me, on_started, on_ended };
    struct error err = { 0 };
    me.started = 0;
    me.elector = elector_create(&rare, me.client, &boot.clock, &callbacks);
    ck_assert_int_eq(elector_start(me.elector, &err), 0);
    await(&me, &me.started);
    fake_clock_advance(&boot, FAST.renew_deadline_ms - 1);
    ck_assert(elector_may_act(me.elector));
    fake_clock_advance(&boot, 1);
    ck_assert(!elector_may_act(me.elector));
    ck_assert(elector_is_leader(me.elector));
    leave(&me, false);
}
END_TEST

START_TEST(who_sees_another_holder_ends)
{
    static const char TAKEN[] =
        "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\","
        "\"metadata\":{\"namespace\":\"ns\",\"name\":\"propeller-controller\"},"
        "\"spec\":{\"holderIdentity\":\"thief\",\"leaseDurationSeconds\":15}}";
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const cJSON *taken;
    struct error err = { 0 };
    struct candidate me;

    ck_assert_int_eq(json_parse(arena, TAKEN, strlen(TAKEN), &taken, &err), 0);
    enter(&me, "me");
    await(&me, &me.started);
    fake_api_put(api, &KIND_LEASE, taken);
    await(&me, &me.ended);
    ck_assert(!elector_may_act(me.elector));
    ck_assert_ptr_nonnull(strstr(me.why, "another"));
    ck_assert_str_eq(holder(arena), "thief");
    leave(&me, true);
    ck_assert_str_eq(holder(arena), "thief"); /* what is not ours is not released */
}
END_TEST

START_TEST(a_failed_renewal_is_tried_again_and_leading_goes_on)
{
    struct candidate me;

    enter(&me, "me");
    await(&me, &me.started);
    for (int failure = 0; failure < FAKE_FAILURES; failure++) {
        fake_api_fail(api, 1, (enum fake_failure)failure);
        await_requests(6);
    }
    ck_assert_int_eq(me.ended, 0);
    ck_assert(elector_may_act(me.elector));
    leave(&me, true);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("elector");
    TCase *decision = tcase_create("decision");
    TCase *electors = tcase_create("electors");

    tcase_add_loop_test(decision, the_decision_follows_from_what_was_seen, 0,
                        (int)ARRAY_LEN(DECISIONS));
    suite_add_tcase(suite, decision);
    tcase_set_timeout(electors, 60);
    tcase_add_checked_fixture(electors, set_up, tear_down);
    tcase_add_test(electors, the_only_one_leads_and_releases_at_the_end);
    tcase_add_test(electors, the_second_waits_and_takes_over_a_released_lease);
    tcase_add_test(electors, a_lease_that_is_not_renewed_is_taken_after_its_duration);
    tcase_add_test(electors, nobody_acts_after_the_renew_deadline);
    tcase_add_test(electors, who_sees_another_holder_ends);
    tcase_add_test(electors, a_failed_renewal_is_tried_again_and_leading_goes_on);
    suite_add_tcase(suite, electors);
    return suite_run(suite);
}
