#include <poll.h>
#include <unistd.h>

#include "common/tests/elector_fixture.h"

static void ck_ended(const char *why)
{
    ck_assert_uint_eq(elector_step(bench.elector), ELECTOR_ENDED);
    ck_assert_int_eq(bench.ended, 1);
    ck_assert_str_eq(bench.why_ended, why);
    ck_assert(!elector_is_leader(bench.elector));
    ck_assert(!elector_may_act(bench.elector));
    ck_metric("leader_election_master_status{name=\"propeller-controller\"} 0");
}

TEST_GROUP("term", elector_set_up, elector_tear_down);

TEST(acting_ends_at_the_deadline_counted_from_the_start_of_the_renewal)
{
    elector_lead();
    bench.request_ms = 3000;
    (void)elector_step(bench.elector); /* began 3 s before it succeeded */
    bench.request_ms = 0;
    fake_clock_advance(&bench.clock, DEADLINE_MS - 3000 - 1);
    ck_assert(elector_may_act(bench.elector));
    fake_clock_advance(&bench.clock, 1);
    ck_assert(!elector_may_act(bench.elector));
    ck_assert(elector_is_leader(bench.elector));
    ck_assert_int_eq(bench.ended, 0);
}

TEST(after_the_deadline_a_lease_that_is_still_ours_is_resumed)
{
    elector_lead();
    bench.api_is_down = true;
    for (int i = 0; i < 25; i++) {
        (void)elector_step(bench.elector);
        fake_clock_advance(&bench.clock, RETRY_MS);
    }
    ck_assert(!elector_may_act(bench.elector));
    ck_metric("leader_election_master_status{name=\"propeller-controller\"} 0");
    bench.api_is_down = false;
    (void)elector_step(bench.elector);
    ck_assert(elector_may_act(bench.elector));
    ck_assert_int_eq(bench.started, 1);
    ck_assert_int_eq(bench.ended, 0);
    ck_metric("leader_election_master_status{name=\"propeller-controller\"} 1");
}

TEST(leading_ends_after_four_lease_durations_without_renewal)
{
    elector_lead();
    bench.api_is_down = true;
    fake_clock_advance(&bench.clock, 4 * LEASE_MS - 1);
    ck_assert_uint_ne(elector_step(bench.elector), ELECTOR_ENDED);
    ck_assert(elector_is_leader(bench.elector));
    fake_clock_advance(&bench.clock, 1);
    ck_ended("the lease could not be renewed");
}

TEST(leading_ends_when_another_holder_is_seen)
{
    elector_lead();
    lease_put("you", 1, ",\"leaseDurationSeconds\":15");
    ck_ended("another process holds the lease");
    ck_assert_str_eq(lease_holder(), "you");
}

TEST(leading_ends_even_if_the_other_holder_has_run_out)
{
    elector_lead();
    lease_put("you", 1, ",\"leaseDurationSeconds\":1");
    fake_clock_advance(&bench.clock, 4 * LEASE_MS - 1);
    ck_ended("another process holds the lease");
    ck_assert_str_eq(lease_holder(), "you");
}

TEST(leading_ends_when_another_has_held_and_released_the_lease)
{
    elector_lead();
    lease_put("", 1, ",\"leaseDurationSeconds\":1");
    ck_ended("the lease was released");
    ck_assert_str_eq(lease_holder(), "");
}

TEST(leading_ends_when_the_transitions_have_moved)
{
    elector_lead();
    lease_put("me", 2, ",\"leaseDurationSeconds\":15");
    ck_ended("another process held the lease");
}

TEST(a_lease_deleted_before_the_deadline_is_made_again)
{
    lease_put("", 7, "");
    elector_lead();
    fake_api_delete(bench.api, &KIND_LEASE, &ELECTOR_OPTIONS.lease);
    elector_lead();
    (void)elector_step(bench.elector);
    ck_assert_int_eq(bench.started, 1);
    ck_assert_int_eq(bench.ended, 0);
    ck_assert_int_eq(lease_transitions(), 8);
}

TEST(a_lease_deleted_and_missed_after_the_deadline_ends_leading)
{
    elector_lead();
    fake_api_delete(bench.api, &KIND_LEASE, &ELECTOR_OPTIONS.lease);
    fake_clock_advance(&bench.clock, DEADLINE_MS);
    ck_ended("the lease was deleted");
    ck_assert_ptr_null(lease_holder());
}

/* Whatever fails, and whichever request: the next steps lead on, or begin to lead. */
TEST_TIMES(one_failed_request_delays_but_changes_nothing, FAKE_FAILURES)
{
    for (unsigned k = 1; k <= 6; k++) {
        elector_tear_down();
        elector_set_up();
        bench.started = 0;
        fake_api_fail(bench.api, k, (enum fake_failure)_i);
        for (int i = 0; i < 6; i++) {
            (void)elector_step(bench.elector);
            fake_clock_advance(&bench.clock, RETRY_MS);
        }
        ck_assert(elector_may_act(bench.elector));
        ck_assert_int_eq(bench.started, 1);
        ck_assert_int_eq(bench.ended, 0);
        ck_assert_int_eq(lease_transitions(), 0);
    }
}

TEST(a_change_by_somebody_who_is_no_candidate_delays_nothing)
{
    elector_lead();
    lease_put("me", 0, ",\"leaseDurationSeconds\":15,\"preferredHolder\":\"you\"");
    fake_clock_advance(&bench.clock, DEADLINE_MS - 1);
    ck_assert_uint_eq(elector_step(bench.elector), RETRY_MS);
    fake_clock_advance(&bench.clock, DEADLINE_MS - 1);
    ck_assert(elector_may_act(bench.elector));
    ck_assert_str_eq(json_string(json_get(lease_spec(), "preferredHolder"), ""), "you");
}

TEST(stop_releases_the_lease_and_acts_no_more)
{
    elector_lead();
    fake_clock_advance(&bench.clock, 1000);
    elector_stop(bench.elector, true);
    ck_assert_str_eq(lease_holder(), "");
    ck_assert_int_eq(json_int(json_get(lease_spec(), "leaseDurationSeconds"), 0), 1);
    ck_assert_int_eq(lease_transitions(), 0);
    ck_assert(!elector_may_act(bench.elector));
    ck_assert(!elector_is_leader(bench.elector));
    ck_assert_int_eq(bench.ended, 0);
    ck_metric("leader_election_master_status{name=\"propeller-controller\"} 0");
}

TEST(the_lease_is_released_although_it_was_changed_meanwhile)
{
    elector_lead();
    lease_put("me", 0, ",\"preferredHolder\":\"you\"");
    elector_stop(bench.elector, true);
    ck_assert_str_eq(lease_holder(), "");
}

TEST(stop_without_release_leaves_the_lease)
{
    elector_lead();
    elector_stop(bench.elector, false);
    ck_assert_str_eq(lease_holder(), "me");
    ck_assert(!elector_may_act(bench.elector));
}

TEST(what_is_not_ours_is_not_released)
{
    elector_lead();
    lease_put("you", 1, "");
    elector_stop(bench.elector, true);
    ck_assert_str_eq(lease_holder(), "you");
}

TEST(a_standby_that_stops_touches_nothing)
{
    lease_put("you", 1, "");
    (void)elector_step(bench.elector);
    size_t before = lease_requests();
    elector_stop(bench.elector, true);
    ck_assert_uint_eq(lease_requests(), before);
}

/* Stopping gives up acting before the Lease, of which the next holder may know at once. */
static bool acted_while_released;
static int watching_roundtrip(void *ctx, struct arena *reply_arena,
                              const struct http_request *request, struct http_response *ret,
                              struct error *err)
{
    if (request->body && strstr(request->body, "\"holderIdentity\":\"\""))
        acted_while_released = elector_may_act(bench.elector);
    return fake_api_roundtrip(ctx, reply_arena, request, ret, err);
}

TEST(acting_ends_before_the_release_is_sent)
{
    elector_destroy(bench.elector);
    kube_client_destroy(bench.client);
    bench.client = kube_client_create_with(watching_roundtrip, bench.api);
    bench.elector =
        elector_create(&ELECTOR_OPTIONS, bench.client, &bench.clock.clock, &ELECTOR_CALLBACKS);
    elector_lead();
    acted_while_released = true;
    elector_stop(bench.elector, true);
    ck_assert(!acted_while_released);
}

static void ck_in_touch_for(int64_t ms)
{
    ck_assert(elector_in_touch(bench.elector));
    fake_clock_advance(&bench.clock, ms - 1);
    ck_assert(elector_in_touch(bench.elector));
    fake_clock_advance(&bench.clock, 1);
    ck_assert(!elector_in_touch(bench.elector));
}

TEST(a_standby_is_in_touch_for_a_renew_deadline_after_it_saw_the_lease)
{
    ck_assert(!elector_in_touch(bench.elector));
    bench.api_is_down = true;
    (void)elector_step(bench.elector);
    ck_assert(!elector_in_touch(bench.elector));
    bench.api_is_down = false;
    lease_put("you", 3, ",\"leaseDurationSeconds\":100");
    (void)elector_step(bench.elector);
    ck_in_touch_for(DEADLINE_MS);
    bench.api_is_down = true;
    (void)elector_step(bench.elector);
    ck_assert(!elector_in_touch(bench.elector));
    bench.api_is_down = false;
    (void)elector_step(bench.elector);
    ck_in_touch_for(DEADLINE_MS);
    ck_assert_int_eq(bench.started, 0);
}

TEST(what_happens_to_the_lease_is_told_once)
{
    capture_start(STDERR_FILENO);
    lease_put("you", 3, ",\"leaseDurationSeconds\":15");
    for (int i = 0; i < 3; i++)
        (void)elector_step(bench.elector);
    fake_clock_advance(&bench.clock, LEASE_MS);
    elector_lead();
    bench.api_is_down = true;
    for (int i = 0; i < 8; i++) {
        (void)elector_step(bench.elector);
        fake_clock_advance(&bench.clock, RETRY_MS);
    }
    bench.api_is_down = false;
    (void)elector_step(bench.elector);
    const char *text = capture_text(bench.arena);
    capture_stop();

    static const char *const WANTED[] = {
        "\"info\",\"msg\":\"another process leads, waiting\",\"holder\":\"you\"",
        "\"warn\",\"msg\":\"lease not read or written, trying again\"",
        "\"error\",\"msg\":\"lease not renewed in time, nothing is written until it is\"",
        "\"info\",\"msg\":\"lease renewed, going on\"",
    };
    for (size_t i = 0; i < ARRAY_LEN(WANTED); i++) {
        size_t len = strcspn(text, "\n");

        ck_assert_msg(strstr(arena_strndup(bench.arena, text, len), WANTED[i]), "no %s in %s",
                      WANTED[i], text);
        text += len + 1;
    }
    ck_assert_str_eq(text, "");
}

/* Two with threads and the clock of the system. */
static const struct elector_options FAST = {
    .identity = "first",
    .lease = { .ns = "ns", .name = "propeller-controller" },
    .lease_duration_ms = 60000,
    .renew_deadline_ms = 30000,
    .retry_period_ms = 10,
};

static void wait_for_requests(size_t more)
{
    size_t target = lease_requests() + more;

    while (lease_requests() < target)
        (void)poll(NULL, 0, 1);
}

TEST_GROUP("threads", elector_set_up, elector_tear_down);

TEST(of_two_one_leads_and_the_other_follows_when_it_stops)
{
    struct elector_options options = FAST;
    struct error err;
    struct elector *first =
        elector_create(&options, bench.client, &CLOCK_SYSTEM, &ELECTOR_CALLBACKS);
    options.identity = "second";
    struct elector *second =
        elector_create(&options, bench.client, &CLOCK_SYSTEM, &ELECTOR_CALLBACKS);

    ck_assert_int_eq(elector_start(first, &err), 0);
    ck_assert_int_eq(elector_start(second, &err), 0);
    while (atomic_load(&bench.started) < 1)
        (void)poll(NULL, 0, 1);
    wait_for_requests(20);
    ck_assert_int_eq(atomic_load(&bench.started), 1);
    ck_assert(elector_is_leader(first) != elector_is_leader(second));

    struct elector *leader = elector_is_leader(first) ? first : second;
    struct elector *standby = leader == first ? second : first;
    ck_assert(!elector_may_act(standby));
    elector_stop(leader, true);
    while (!elector_may_act(standby))
        (void)poll(NULL, 0, 1);
    elector_stop(standby, true);
    ck_assert_int_eq(atomic_load(&bench.ended), 0);
    ck_assert_int_eq(lease_transitions(), 1);
    elector_destroy(first);
    elector_destroy(second);
}
