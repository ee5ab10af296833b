#include "common/tests/elector_fixture.h"

static const struct {
    const char *what;
    struct lease_view view;
    int64_t now_ms;
    enum lease_action action;
} DECISIONS[] = {
    { "no Lease", { .exists = false, .holder = "you" }, 0, LEASE_CREATE },
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
    { "another's with the longest duration",
      { .exists = true, .holder = "you", .observed_ms = 1000, .duration_ms = UINT32_MAX },
      INT64_C(1000) + UINT32_MAX - 1,
      LEASE_WAIT },
    { "a holder whose name begins like ours",
      { .exists = true, .holder = "me2", .duration_ms = 15000 },
      1,
      LEASE_WAIT },
};

TEST_GROUP("decision", NULL, NULL);

TEST_EACH(the_decision_follows_from_what_was_seen, DECISIONS)
{
    ck_assert_msg(lease_decide(&DECISIONS[_i].view, &ELECTOR_OPTIONS, DECISIONS[_i].now_ms) ==
                      DECISIONS[_i].action,
                  "%s", DECISIONS[_i].what);
}

TEST_GROUP("lease", elector_set_up, elector_tear_down);

TEST(a_missing_lease_is_created)
{
    ck_metric("leader_election_master_status{name=\"propeller-controller\"} 0");
    ck_assert(!elector_may_act(bench.elector));
    elector_lead();
    ck_assert_int_eq(bench.started, 1);
    ck_assert_str_eq(lease_holder(), "me");
    ck_assert_int_eq(json_int(json_get(lease_spec(), "leaseDurationSeconds"), 0), 15);
    ck_assert_str_eq(json_string(json_get(lease_spec(), "acquireTime"), ""),
                     "2026-11-21T10:00:00.000000Z");
    ck_assert_str_eq(json_string(json_get(lease_spec(), "renewTime"), ""),
                     "2026-11-21T10:00:00.000000Z");
    ck_assert_int_eq(lease_transitions(), 0);
    ck_metric("leader_election_master_status{name=\"propeller-controller\"} 1");
}

TEST(the_leader_renews_with_one_request_each)
{
    elector_lead();
    size_t before = lease_requests();
    for (int i = 1; i <= 3; i++) {
        fake_clock_advance(&bench.clock, RETRY_MS);
        ck_assert_uint_eq(elector_step(bench.elector), RETRY_MS);
    }
    ck_assert_uint_eq(lease_requests(), before + 3);
    ck_assert_int_eq(bench.started, 1);
    ck_assert_str_eq(json_string(json_get(lease_spec(), "acquireTime"), ""),
                     "2026-11-21T10:00:00.000000Z");
    ck_assert_str_eq(json_string(json_get(lease_spec(), "renewTime"), ""),
                     "2026-11-21T10:00:06.000000Z");
    ck_assert_int_eq(lease_transitions(), 0);
}

TEST(the_time_of_a_renewal_counts_towards_the_period)
{
    elector_lead();
    bench.request_ms = 300;
    ck_assert_uint_eq(elector_step(bench.elector), RETRY_MS - 300);
    bench.request_ms = RETRY_MS + 1;
    ck_assert_uint_eq(elector_step(bench.elector), 0);
}

TEST(standbys_look_within_a_period_and_not_in_step)
{
    uint32_t low = UINT32_MAX;
    uint32_t high = 0;

    lease_put("you", 3, ",\"leaseDurationSeconds\":100000");
    for (int i = 0; i < 200; i++) {
        uint32_t delay = elector_step(bench.elector);

        low = delay < low ? delay : low;
        high = delay > high ? delay : high;
    }
    ck_assert_uint_ge(low, RETRY_MS * 2 / 5);
    ck_assert_uint_le(high, RETRY_MS * 4 / 5);
    ck_assert_uint_gt(high - low, RETRY_MS / 5);
}

TEST(a_standby_looks_when_the_lease_ends_and_not_later)
{
    char holder[ELECTOR_HOLDER_LEN];

    elector_holder(bench.elector, holder);
    ck_assert_str_eq(holder, "");
    lease_put("you", 3, ",\"leaseDurationSeconds\":15");
    (void)elector_step(bench.elector);
    elector_holder(bench.elector, holder);
    ck_assert_str_eq(holder, "you");
    fake_clock_advance(&bench.clock, LEASE_MS - RETRY_MS / 5);
    ck_assert_uint_eq(elector_step(bench.elector), RETRY_MS / 5);
    fake_clock_advance(&bench.clock, RETRY_MS / 5);
    elector_lead();
}

TEST(what_others_keep_in_the_lease_stays)
{
    static const char KEPT[] =
        "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"propeller-controller\","
        "\"labels\":{\"team\":\"a\"}},\"spec\":{\"strategy\":\"OldestEmulationVersion\"}}";

    fake_api_put(bench.api, &KIND_LEASE, parsed(bench.arena, KEPT));
    elector_lead();
    (void)elector_step(bench.elector);
    const cJSON *lease = fake_api_get(bench.api, bench.arena, &KIND_LEASE, &ELECTOR_OPTIONS.lease);
    ck_assert_str_eq(json_string(json_path(lease, "metadata", "labels", "team", NULL), ""), "a");
    ck_assert_str_eq(json_string(json_get(lease_spec(), "strategy"), ""), "OldestEmulationVersion");
    ck_assert_str_eq(lease_holder(), "me");
}

TEST(a_lease_that_changes_is_not_taken_however_old_its_times_are)
{
    for (int i = 0; i < 10; i++) {
        lease_put("you", 3,
                  arena_printf(bench.arena,
                               ",\"leaseDurationSeconds\":15,"
                               "\"renewTime\":\"2001-01-01T00:00:0%d.000000Z\"",
                               i));
        (void)elector_step(bench.elector);
        fake_clock_advance(&bench.clock, LEASE_MS - 1);
        (void)elector_step(bench.elector);
        ck_assert_str_eq(lease_holder(), "you");
        ck_assert_int_eq(bench.started, 0);
        ck_assert(!elector_may_act(bench.elector));
    }
}

TEST(a_lease_that_stays_as_it_is_is_taken_after_its_duration)
{
    lease_put("you", 3,
              ",\"leaseDurationSeconds\":20,\"renewTime\":\"2099-01-01T00:00:00.000000Z\"");
    (void)elector_step(bench.elector);
    fake_clock_advance(&bench.clock, 19999);
    (void)elector_step(bench.elector);
    ck_assert_str_eq(lease_holder(), "you");
    fake_clock_advance(&bench.clock, 1);
    elector_lead();
    ck_assert_str_eq(lease_holder(), "me");
    ck_assert_int_eq(lease_transitions(), 4);
    ck_assert_str_eq(json_string(json_get(lease_spec(), "acquireTime"), ""),
                     "2026-11-21T10:00:20.000000Z");
}

/* It may have been renewed at any time until the reply. */
TEST(the_duration_counts_from_the_reply_and_not_from_the_request)
{
    lease_put("you", 3, ",\"leaseDurationSeconds\":15");
    bench.request_ms = 4000;
    (void)elector_step(bench.elector);
    bench.request_ms = 0;
    fake_clock_advance(&bench.clock, LEASE_MS - 1);
    (void)elector_step(bench.elector);
    ck_assert_str_eq(lease_holder(), "you");
    fake_clock_advance(&bench.clock, 1);
    elector_lead();
}

static const struct {
    const char *more;
    int64_t taken_after_ms; /* 0: not within a day */
} DURATIONS[] = {
    { "", LEASE_MS },
    { ",\"leaseDurationSeconds\":0", LEASE_MS },
    { ",\"leaseDurationSeconds\":-5", LEASE_MS },
    { ",\"leaseDurationSeconds\":\"5\"", LEASE_MS },
    { ",\"leaseDurationSeconds\":2147483647", 0 },
    { ",\"leaseDurationSeconds\":4294968", 0 },
};

TEST_EACH(a_strange_duration_is_never_a_reason_to_take_it_early, DURATIONS)
{
    int64_t wait_ms = DURATIONS[_i].taken_after_ms;

    lease_put("you", 3, DURATIONS[_i].more);
    (void)elector_step(bench.elector);
    fake_clock_advance(&bench.clock, wait_ms ? wait_ms - 1 : INT64_C(24) * 3600 * 1000);
    (void)elector_step(bench.elector);
    ck_assert_str_eq(lease_holder(), "you");
}

TEST(a_released_lease_is_taken_at_once)
{
    lease_put("", 7, ",\"leaseDurationSeconds\":1");
    elector_lead();
    ck_assert_str_eq(lease_holder(), "me");
    ck_assert_int_eq(lease_transitions(), 8);
}

TEST(a_holder_with_a_very_long_name_is_somebody_else)
{
    char name[300];

    memset(name, 'm', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    lease_put(name, 3, "");
    (void)elector_step(bench.elector);
    ck_assert_int_eq(bench.started, 0);
    ck_assert_str_eq(lease_holder(), name);
}

static const struct {
    struct elector_options options;
    const char *message;
} UNUSABLE[] = {
    { { "", { "ns", "n" }, 15000, 10000, 2000 }, "identity '' must have 1 to 127 characters" },
    { { "me", { "", "n" }, 15000, 10000, 2000 }, "the lease needs a namespace and a name" },
    { { "me", { "ns", "" }, 15000, 10000, 2000 }, "the lease needs a namespace and a name" },
    { { "me", { "ns", "n" }, 10000, 10000, 2000 },
      "the renew deadline must be below the lease duration" },
    { { "me", { "ns", "n" }, 15000, 2400, 2000 },
      "the renew deadline must be above 1.2 retry periods of the lease" },
};

TEST_EACH(options_that_do_not_fit_together_are_refused, UNUSABLE)
{
    struct elector *unusable =
        elector_create(&UNUSABLE[_i].options, bench.client, &bench.clock.clock, &ELECTOR_CALLBACKS);
    struct error err;

    ck_assert_int_eq(elector_start(unusable, &err), -ERROR_INVALID);
    ck_assert_str_eq(err.message, UNUSABLE[_i].message);
    elector_destroy(unusable);
}

/* ---- the timeline ---- */

#define ANNOTATION "example.com/since"
#define SECOND INT64_C(1000000)

static struct timeline *timeline;

static void timeline_set_up(void)
{
    elector_set_up();
    timeline = timeline_create(&bench.clock.clock);
    elector_set_timeline(bench.elector, timeline, ANNOTATION);
}

static void timeline_tear_down(void)
{
    elector_tear_down();
    timeline_destroy(timeline);
}

/* Released then, after its holders had watched since then. */
static void put_watched(int64_t since_us, int64_t renewed_us)
{
    char since[RFC3339_LEN];
    char renewed[RFC3339_LEN];
    const char *text = arena_printf(
        bench.arena,
        "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"propeller-controller\","
        "\"annotations\":{\"a\":\"b\",\"" ANNOTATION "\":\"%s\"}},"
        "\"spec\":{\"holderIdentity\":\"\",\"leaseTransitions\":1,\"renewTime\":\"%s\"}}",
        rfc3339_format_micro(since_us, since), rfc3339_format_micro(renewed_us, renewed));

    fake_api_put(bench.api, &KIND_LEASE, parsed(bench.arena, text));
}

static void expect_watched(int64_t since_us)
{
    const cJSON *lease = fake_api_get(bench.api, bench.arena, &KIND_LEASE, &ELECTOR_OPTIONS.lease);
    const char *told =
        json_string(json_path(lease, "metadata", "annotations", ANNOTATION, NULL), "");
    char since[RFC3339_LEN];

    ck_assert_str_eq(told, rfc3339_format_micro(since_us, since));
    ck_assert_int_eq(timeline_since_us(timeline), since_us);
}

static const struct {
    int64_t since_us, renewed_us; /* before now */
    bool goes_on;
} HANDED_OVER[] = {
    { 3600 * SECOND, 0, true },
    { 3600 * SECOND, ELECTOR_MAX_GAP_US, true },
    { 3600 * SECOND, ELECTOR_MAX_GAP_US + SECOND, false }, /* nobody watched, or a step ahead */
    { -3600 * SECOND, -7200 * SECOND, false },             /* a step back */
    { -3600 * SECOND, 0, false },                          /* nonsense */
};

TEST_GROUP("timeline", timeline_set_up, timeline_tear_down);

TEST_EACH(a_new_leader_goes_on_counting_where_the_last_one_ended, HANDED_OVER)
{
    int64_t now_us = clock_wall_us(&bench.clock.clock);

    put_watched(now_us - HANDED_OVER[_i].since_us, now_us - HANDED_OVER[_i].renewed_us);
    elector_lead();
    expect_watched(HANDED_OVER[_i].goes_on ? now_us - HANDED_OVER[_i].since_us : now_us);
    ck_assert_str_eq(json_string(json_path(fake_api_get(bench.api, bench.arena, &KIND_LEASE,
                                                        &ELECTOR_OPTIONS.lease),
                                           "metadata", "annotations", "a", NULL),
                                 ""),
                     "b");
}

TEST_TIMES(a_lease_without_a_word_on_the_clock_begins_now, 2)
{
    if (_i)
        lease_put("", 1, "");
    fake_clock_advance(&bench.clock, 5000);
    elector_lead();
    expect_watched(clock_wall_us(&bench.clock.clock));
}

TEST_TIMES(a_step_of_the_clock_is_handed_over_with_the_next_renewal, 2)
{
    int64_t before_us = clock_wall_us(&bench.clock.clock);
    elector_lead();
    fake_clock_advance(&bench.clock, RETRY_MS);
    (void)elector_step(bench.elector);
    expect_watched(before_us);
    fake_clock_advance(&bench.clock, RETRY_MS);
    fake_clock_step(&bench.clock, _i ? -86400000 : 86400000);
    int64_t stepped_us = clock_wall_us(&bench.clock.clock);
    (void)elector_step(bench.elector);
    expect_watched(stepped_us);
    ck_assert(elector_may_act(bench.elector));
}
