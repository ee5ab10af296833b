/* Proplets that open and close: the reconcilers with devices, an API server, and time that passes. */
#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/str.h"
#include "common/tests/observe.h"
#include "common/tests/parsed.h"
#include "controller/task/task_placement.h"
#include "controller/tests/fake_bridge.h"
#include "controller/tests/opening_stage.h"

#define OVERRIDE_THEN(state, until, schedule)                                                      \
    ",\"availability\":{\"override\":{\"state\":\"" state "\",\"until\":\"2026-01-01T" until       \
    ":00Z\"}" schedule "}"
#define OVERRIDE(state, until) OVERRIDE_THEN(state, until, "")
#define SCHEDULE                                                                                   \
    "\"schedule\":{\"windows\":[{\"days\":[\"thu\"],\"from\":\"00:10\",\"until\":\"00:20\"}]}"
#define WINDOW ",\"availability\":{" SCHEDULE "}"
#define KILLED ",\"killSwitch\":true"
/* alpha closes while the Task is read for its start. */
static bool closes_meanwhile;

static void close_alpha(void)
{
    const struct availability closed = { .state = AVAILABILITY_DRAINING,
                                         .reason = REASON_OUTSIDE_WINDOW };
    const cJSON *uid = json_path(stage_get(&KIND_PROPLET, "alpha"), "metadata", "uid", NULL);

    (void)availabilities_set(stage.proplet.availabilities, json_string(uid, ""), &closed, 7);
}

static int roundtrip(void *ctx, struct arena *arena, const struct http_request *request,
                     struct http_response *ret, struct error *err)
{
    opening_note_event(arena, request);
    int r = outside_roundtrip(ctx, arena, request, ret, err);
    if (closes_meanwhile && str_equal(request->method, "GET") && strstr(request->path, "/tasks/"))
        close_alpha();
    return r;
}

static void set_up(void)
{
    closes_meanwhile = false;
    opening_reset();
    outside_reset();
    stage_set_up(roundtrip, outside_between);
    stage_run();
}

TEST_GROUP("proplet_availability", set_up, stage_tear_down);

static const char *time_of(const char *proplet, const char *member)
{
    return json_string(json_path(opening_status(proplet), "availability", member, NULL), "");
}

static void expect_waiting(const char *reason, const char *message)
{
    const cJSON *conditions = json_path(stage_get(&KIND_TASK, "one"), "status", "conditions", NULL);
    const cJSON *scheduled = condition_get(conditions, "Scheduled");

    ck_assert_str_eq(stage_task_string("phase"), "pending");
    ck_assert_str_eq(stage_task_string("reason"), reason);
    ck_assert_str_eq(json_string(json_get(scheduled, "message"), ""), message);
}

TEST(proplet_without_the_fields_says_nothing_of_it)
{
    opening_pass_minutes(3);
    ck_assert_str_eq(opening_state("alpha"), "");
    ck_assert_ptr_null(json_get(opening_status("alpha"), "availability"));
}

/* The counts are those of the version before the fields. */
TEST(fleet_without_the_fields_has_the_same_requests_and_memory)
{
    unsigned all = stage_requests(NULL, "/");
    unsigned proplets = stage_requests(NULL, "/proplets");
    unsigned tasks = stage_requests(NULL, "/tasks");

    stage_put_task(TASK(""));
    stage_run();
    outside_answer("\"results\":\"42\",\"error\":null");
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "completed");
    opening_pass_minutes(5);
    ck_assert_uint_eq(stage_requests(NULL, "/proplets") - proplets, 7);
    ck_assert_uint_eq(stage_requests(NULL, "/tasks") - tasks, 5);
    ck_assert_uint_eq(stage_requests(NULL, "/") - all, 12);
    ck_assert(availabilities_is_empty(stage.proplet.availabilities));
}

TEST(task_waits_until_an_override_ends)
{
    stage_put_proplet("alpha", PROPLET("device-1", OVERRIDE("Closed", "00:05")));
    stage_put_proplet("beta", PROPLET("device-2", KILLED));
    stage_run();
    ck_assert_str_eq(opening_state("alpha"), "Closed OverrideClosed False");
    ck_assert_str_eq(time_of("alpha", "nextTransition"), "2026-01-01T00:05:00Z");
    stage_put_task(TASK(""));
    stage_run();
    expect_waiting("NoCandidates", "none of 2 Proplets fits: 2 are closed");
    opening_pass_minutes(4);
    expect_waiting("NoCandidates", "none of 2 Proplets fits: 2 are closed");
    opening_pass_minutes(1);
    ck_assert_str_eq(stage_task_string("phase"), "running");
    ck_assert_str_eq(stage_task_string("assignedProplet"), "alpha");
    ck_assert_str_eq(opening_state("alpha"), "Open Always True");
}

/* A member of the state that the debug page shows; "": it has none. */
static const char *shown_of_alpha(const char *member)
{
    const char *body;

    ck_assert_int_eq(
        proplet_debug_page(&stage.proplet, stage.arena, "namespace=default&name=alpha", &body),
        200);
    return json_string(json_path(parsed(stage.arena, body), "availability", member, NULL), "");
}

TEST(pinned_task_waits_for_the_window_of_its_proplet)
{
    stage_put_proplet("alpha", PROPLET("device-1", WINDOW));
    stage_run();
    ck_assert_str_eq(opening_state("alpha"), "Closed OutsideWindow False");
    ck_assert_str_eq(time_of("alpha", "nextTransition"), "2026-01-01T00:10:00Z");
    stage_put_task(TASK(ON("alpha")));
    stage_run();
    expect_waiting("PropletUnavailable", "Proplet 'alpha' is closed");
    const struct task_status status = { .reason = stage_task_string("reason") };
    ck_assert(task_waits_for_room(&status)); /* it has a rank, also for the next leader */
    opening_pass_minutes(9);
    expect_waiting("PropletUnavailable", "Proplet 'alpha' is closed");
    opening_pass_minutes(1);
    ck_assert_str_eq(stage_task_string("phase"), "running");
    ck_assert_str_eq(opening_state("alpha"), "Open InWindow True");
    ck_assert_str_eq(time_of("alpha", "nextTransition"), "2026-01-01T00:20:00Z");
    ck_assert_str_eq(time_of("alpha", "stopAt"), "");
    ck_assert_str_eq(shown_of_alpha("stopAt"), "");
}

TEST(task_waits_for_a_window_that_is_long_enough)
{
    stage_delete(&KIND_PROPLET, "beta");
    stage_put_proplet("alpha", PROPLET("device-1", OVERRIDE_THEN("Open", "00:05", "," SCHEDULE)));
    stage_run();
    ck_assert_str_eq(time_of("alpha", "nextTransition"), "2026-01-01T00:05:00Z");
    stage_put_task(TASK(",\"activeDeadlineSeconds\":480"));
    stage_run();
    expect_waiting("NoCandidates", "the only Proplet does not fit: it closes too early");
    opening_pass_minutes(6);
    expect_waiting("NoCandidates", "the only Proplet does not fit: it is closed");
    opening_pass_minutes(4); /* the window of ten minutes begins */
    ck_assert_str_eq(stage_task_string("phase"), "running");
}

/* In the turn of the Proplet, which comes after that of the Task. */
TEST(task_that_waits_is_woken_when_the_close_is_put_off)
{
    stage_delete(&KIND_PROPLET, "beta");
    stage_put_proplet("alpha", PROPLET("device-1", OVERRIDE_THEN("Open", "00:05", "," SCHEDULE)));
    stage_put_task(TASK(",\"activeDeadlineSeconds\":480"));
    stage_run();
    expect_waiting("NoCandidates", "the only Proplet does not fit: it closes too early");
    stage_put_proplet("alpha", PROPLET("device-1", OVERRIDE_THEN("Open", "00:15", "," SCHEDULE)));
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "running");
}

/* Without a heartbeat or a change that would wake it. */
TEST(its_own_timer_opens_it)
{
    stage_put_proplet("alpha", PROPLET("device-1", OVERRIDE("Closed", "00:01")));
    stage_put_task(TASK(ON("alpha")));
    stage_run();
    stage_wait_ms(58000);
    stage_turns(200); /* timers that come soon are waited for */
    ck_assert_str_eq(opening_state("alpha"), "Open Always True");
}

TEST(closing_drains_what_runs_and_takes_nothing_new)
{
    stage_put_proplet("alpha", PROPLET("device-1", OVERRIDE("Open", "00:05")));
    stage_put_task(TASK(ON("alpha")));
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "running");
    stage_put_proplet("alpha", PROPLET("device-1", OVERRIDE("Closed", "00:30")));
    stage_run();
    ck_assert_str_eq(opening_state("alpha"), "Draining OverrideClosed False");
    ck_assert_str_ne(time_of("alpha", "stopAt"), "");
    ck_assert_str_eq(stage_task_string("phase"), "running");

    stage_put(&KIND_TASK, "two", TASK(ON("alpha")));
    stage_run();
    ck_assert_str_eq(
        json_string(json_path(stage_get(&KIND_TASK, "two"), "status", "reason", NULL), ""),
        "PropletUnavailable");
    ck_assert_str_eq(shown_of_alpha("state"), "Draining");
    ck_assert_str_eq(shown_of_alpha("reason"), "OverrideClosed");
    ck_assert_str_eq(shown_of_alpha("nextTransition"), "2026-01-01T00:30:00.000000Z");
    stage_delete(&KIND_TASK, "one");
    opening_pass_minutes(2);
    ck_assert_str_eq(opening_state("alpha"), "Closed OverrideClosed False");
    ck_assert_str_eq(time_of("alpha", "stopAt"), "");
}

TEST(start_is_not_published_to_a_proplet_that_closed_while_the_task_was_read)
{
    closes_meanwhile = true;
    stage_put_task(TASK(ON("alpha")));
    stage_turns(20);
    ck_assert_uint_eq(outside.starts, 0);
}

/* ---- the stop ---- */

#define GRACE(time) ",\"gracefulShutdownTimeout\":\"" time "\""

/* The last Task that ran on alpha. */
static int64_t cut_after(void)
{
    return json_int(json_path(stage_get(&KIND_TASK, "one"), "status", "cutAfterSeconds", NULL), -1);
}

/* By its own timer, without a heartbeat or a change. */
TEST(running_task_is_stopped_at_the_stop_and_goes_elsewhere)
{
    stage_put_proplet("beta", PROPLET("device-2", KILLED));
    stage_put_proplet(
        "alpha", PROPLET("device-1", OVERRIDE_THEN("Open", "00:05", "," SCHEDULE GRACE("2m"))));
    stage_put_task(TASK(""));
    stage_run();
    opening_pass_minutes(5);
    ck_assert_str_eq(opening_state("alpha"), "Draining OutsideWindow False");
    ck_assert_str_eq(time_of("alpha", "stopAt"), "2026-01-01T00:07:00Z");
    int64_t left_ms = 420000 - (clock_wall_us(&stage.clock.clock) / 1000 - INT64_C(1767225600000));
    stage_wait_ms(left_ms - 500);
    stage_turns(1);
    ck_assert_str_eq(stage_task_string("phase"), "running");
    ck_assert(!opening_is_stopped());
    stage_turns(200); /* timers that come soon are waited for */
    ck_assert(opening_is_stopped());
    ck_assert_str_eq(stage_task_string("phase"), "pending");
    ck_assert_int_ge(cut_after(), 418);
    ck_assert_int_le(cut_after(), 421);
    opening_pass_minutes(1);
    ck_assert_str_eq(opening_state("alpha"), "Closed OutsideWindow False");

    stage_put_proplet("beta", PROPLET("device-2", ""));
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "running");
    ck_assert_str_eq(stage_task_string("assignedProplet"), "beta");
    ck_assert_int_eq(
        json_int(json_path(stage_get(&KIND_TASK, "one"), "status", "failures", NULL), 0), 0);
}

static void evaluate_alpha(void)
{
    const struct kube_name name = { .ns = "default", .name = "alpha" };

    stage.still = false;
    workqueue_add(stage.task.proplet_queue, &name);
    stage_run();
}

/* To this time of the first hour, without a turn. */
static void wait_until(int minute, int64_t more_ms)
{
    int64_t passed_ms = clock_wall_us(&stage.clock.clock) / 1000 - INT64_C(1767225600000);

    stage_wait_ms(60000 * minute + more_ms - passed_ms);
}

/* alpha is open, and no Proplet has another turn: those of a whole fleet take seconds. */
static void run_on_alpha(const char *availability, const char *task)
{
    stage_put_proplet("beta", PROPLET("device-2", KILLED));
    stage_put_proplet("alpha", arena_printf(stage.arena, PROPLET("device-1", "%s"), availability));
    stage_put_task(task);
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "running");
    stage.still = true;
}

static const struct {
    const char *availability, *task;
} FORESEEN[] = {
    { OVERRIDE_THEN("Open", "00:05", "," SCHEDULE GRACE("0s")), TASK("") },
    { OVERRIDE_THEN("Open", "00:04", "," SCHEDULE GRACE("1m")), TASK("") },
    { OVERRIDE_THEN("Open", "00:05", "," SCHEDULE GRACE("1h")), TASK(",\"daemon\":true") },
};

TEST_EACH(task_stops_at_its_second_although_its_proplet_is_evaluated_later, FORESEEN)
{
    run_on_alpha(FORESEEN[_i].availability, FORESEEN[_i].task);
    wait_until(4, 0);
    stage_turns(200);
    wait_until(5, -500);
    stage_turns(1);
    ck_assert(!opening_is_stopped());
    stage_turns(200);
    ck_assert_int_eq(opening_is_stopped(), _i != 1); /* the minute of grace is known by then */
    evaluate_alpha();
    ck_assert(opening_is_stopped());
    ck_assert_str_eq(stage_task_string("phase"), "pending");
    ck_assert_str_eq(opening_state("alpha"), "Closed OutsideWindow False");
}

TEST(task_of_an_edit_that_closes_earlier_stops_likewise)
{
    stage_put_proplet(
        "alpha", PROPLET("device-1", OVERRIDE_THEN("Open", "00:30", "," SCHEDULE GRACE("0s"))));
    stage_put_task(TASK(ON("alpha")));
    stage_run();
    run_on_alpha(OVERRIDE_THEN("Open", "00:05", "," SCHEDULE GRACE("0s")), TASK(ON("alpha")));
    wait_until(5, -500);
    stage_turns(200);
    ck_assert(opening_is_stopped());
}

/* By an edit of which the kept evaluation knows nothing, or by a window that was missed. */
TEST_TIMES(close_that_was_foreseen_stops_nothing_on_a_proplet_that_is_open, 2)
{
    run_on_alpha(OVERRIDE_THEN("Open", "00:05", "," SCHEDULE GRACE("0s")), TASK(""));
    if (!_i)
        stage_put_proplet(
            "alpha", PROPLET("device-1", OVERRIDE_THEN("Open", "00:30", "," SCHEDULE GRACE("0s"))));
    wait_until(_i ? 11 : 5, 0);
    stage_turns(200);
    ck_assert(!opening_is_stopped());
    evaluate_alpha();
    ck_assert(!opening_is_stopped());
    ck_assert_str_eq(stage_task_string("phase"), "running");
}

/* Its window of ten minutes was too short by a second, and is so each week. */
TEST(task_that_was_cut_waits_rather_than_be_cut_again)
{
    stage_delete(&KIND_PROPLET, "beta");
    stage_put_proplet("alpha", PROPLET("device-1", ",\"availability\":{" SCHEDULE GRACE("0s") "}"));
    stage_put_task(TASK(""));
    stage_run();
    opening_pass_minutes(21);
    ck_assert_int_ge(cut_after(), 598);
    expect_waiting("NoCandidates", "the only Proplet does not fit: it is closed");
    stage_put_proplet("alpha", PROPLET("device-1", OVERRIDE("Open", "00:29")));
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "running"); /* always open afterwards */
    stage_put_proplet("alpha", PROPLET("device-1", KILLED));
    stage_run();
    stage_put_proplet("alpha", PROPLET("device-1", OVERRIDE_THEN("Open", "00:29", "," SCHEDULE)));
    stage_run();
    expect_waiting("NoCandidates", "the only Proplet does not fit: it closes too early");
}

static void kill_process(void)
{
    stage.dead = true;
    stage_put_proplet("alpha", PROPLET("device-1", ""));
    outside.slow = false;
    stage_run();
}

/* The error of its device is the word on a stop of which only the status tells. */
TEST(attempt_that_got_its_stop_is_no_failure_for_the_next_leader)
{
    stage_delete(&KIND_PROPLET, "beta");
    stage_put_task(TASK(",\"backoffLimit\":3"));
    stage_run();
    outside.slow = true; /* neither the barrier nor the answer comes */
    stage_put_proplet("alpha", PROPLET("device-1", KILLED));
    stage_turns(200);
    ck_assert(opening_is_stopped());
    ck_assert_str_eq(stage_task_string("phase"), "running");
    ck_assert_str_eq(stage_task_string("reason"), "KillSwitch");
    kill_process();
    ck_assert_str_eq(stage_task_string("phase"), "running");
    ck_assert_str_eq(stage_task_string("reason"), "");
    const cJSON *status = json_get(stage_get(&KIND_TASK, "one"), "status");
    ck_assert_int_eq(json_int(json_get(status, "failures"), 0), 0);
    ck_assert_int_eq(json_int(json_get(status, "attempt"), 0), 2);
}

static const struct {
    const char *members; /* of alpha, "": it is reclaimed */
    const char *more;    /* of the Task */
    bool stops;
} AT_ONCE[] = {
    { KILLED, "", true },
    { "", "", true },
    { OVERRIDE("Closed", "00:30"), "", false },
    { OVERRIDE("Closed", "00:30"), ",\"daemon\":true", true },
    { ",\"availability\":{\"schedule\":{\"enabled\":false,\"daysOfWeek\":[\"mon\"],"
      "\"hoursOfDay\":[\"1\"]}}",
      ",\"daemon\":true", true },
    { ",\"availability\":{\"schedule\":{\"daysOfWeek\":[\"x\"],\"hoursOfDay\":[\"1\"]}}",
      ",\"daemon\":true", false },
};

TEST_EACH(kill_switch_and_owner_stop_at_once_and_a_daemon_at_the_close, AT_ONCE)
{
    stage_put_task(arena_printf(stage.arena, TASK(ON("alpha") "%s"), AT_ONCE[_i].more));
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "running");
    if (*AT_ONCE[_i].members)
        stage_put_proplet(
            "alpha", arena_printf(stage.arena, PROPLET("device-1", "%s"), AT_ONCE[_i].members));
    else
        stage_annotate(&KIND_PROPLET, "alpha", ANNOTATION_RECLAIM, "true");
    stage_run();
    ck_assert_int_eq(opening_is_stopped(), AT_ONCE[_i].stops);
    ck_assert_str_eq(stage_task_string("phase"), AT_ONCE[_i].stops ? "pending" : "running");
    ck_assert_int_eq(cut_after(), -1);
    if (AT_ONCE[_i].stops) /* without a heartbeat or another event */
        ck_assert(str_has_prefix(opening_state("alpha"), "Closed"));
}

TEST(opening_in_the_grace_stops_nobody)
{
    stage_put_proplet("alpha", PROPLET("device-1", OVERRIDE("Closed", "00:03")));
    stage_put_task(TASK(ON("alpha")));
    stage_run();
    opening_pass_minutes(4);
    ck_assert_str_eq(stage_task_string("phase"), "running");
    stage_put_proplet("alpha", PROPLET("device-1", OVERRIDE("Closed", "00:08")));
    stage_run();
    ck_assert_str_eq(opening_state("alpha"), "Draining OverrideClosed False");
    opening_pass_minutes(4);
    ck_assert_str_eq(opening_state("alpha"), "Open Always True");
    opening_pass_minutes(10);
    ck_assert_str_eq(stage_task_string("phase"), "running");
    ck_assert(!opening_is_stopped());
}

/* The stop is out, and the broker is slow with the barrier behind it. */
TEST_TIMES(proplet_that_is_released_while_its_task_is_stopped_starts_it_anew, 2)
{
    const char *open = _i ? OVERRIDE("Open", "03:00") : "";

    stage_put_task(TASK(ON("alpha")));
    stage_run();
    outside.lose_markers = 1000;
    stage_put_proplet("alpha", PROPLET("device-1", KILLED));
    while (!opening_is_stopped())
        stage_turns(1);
    ck_assert_str_eq(stage_task_string("phase"), "running");
    stage_put_proplet("alpha", arena_printf(stage.arena, PROPLET("device-1", "%s"), open));
    stage_turns(2);
    outside.lose_markers = 0;
    opening_pass_minutes(2);
    ck_assert_str_eq(stage_task_string("phase"), "running");
    ck_assert(!opening_is_stopped());
    ck_metric("propeller_tasks_cut_total{reason=\"KillSwitch\"} 1");
}

/* An edit while it drains: the close is when the first was seen. */
TEST(another_grace_moves_the_stop)
{
    stage_put_task(TASK(ON("alpha")));
    stage_run();
    stage_put_proplet("alpha", PROPLET("device-1", OVERRIDE_THEN("Closed", "02:00", GRACE("1h"))));
    opening_pass_minutes(5);
    ck_assert_str_eq(stage_task_string("phase"), "running");
    stage_put_proplet("alpha", PROPLET("device-1", OVERRIDE_THEN("Closed", "02:00", GRACE("1m"))));
    stage_run();
    ck_assert(opening_is_stopped());
    ck_assert_str_eq(stage_task_string("phase"), "pending");
}

/* It computes the same stop, from the status or the schedule. */
TEST_TIMES(next_leader_stops_at_the_same_time, 2)
{
    stage_put_proplet(
        "alpha", _i ? PROPLET("device-1", OVERRIDE_THEN("Open", "00:01", "," SCHEDULE GRACE("4m")))
                    : PROPLET("device-1", ""));
    stage_put_task(TASK(ON("alpha")));
    stage_run();
    if (!_i)
        stage_put_proplet("alpha",
                          PROPLET("device-1", OVERRIDE_THEN("Closed", "01:00", GRACE("5m"))));
    opening_pass_minutes(3);
    stage.dead = true;
    opening_pass_minutes(1);
    ck_assert_str_eq(stage_task_string("phase"), "running");
    ck_assert(!opening_is_stopped());
    opening_pass_minutes(2);
    ck_assert(opening_is_stopped());
    ck_assert_str_eq(stage_task_string("phase"), "pending");
}

/* It closed at 00:05, and was open from 00:10 to 00:20: the leader comes before the end of that window, or after it. */
TEST_TIMES(leader_that_was_away_over_a_window_looks_at_the_last_change, 2)
{
    stage_put_proplet("beta", PROPLET("device-2", KILLED));
    stage_put_proplet(
        "alpha", PROPLET("device-1", OVERRIDE_THEN("Open", "00:05", "," SCHEDULE GRACE("1m"))));
    stage_put_task(TASK(""));
    stage_run();
    opening_pass_minutes(4);
    wait_until(_i ? 22 : 12, 0);
    stage.dead = true;
    stage_run();
    ck_assert_str_eq(opening_state("alpha"),
                     _i ? "Closed OutsideWindow False" : "Open InWindow True");
    ck_assert_str_eq(time_of("alpha", "since"),
                     _i ? "2026-01-01T00:20:00Z" : "2026-01-01T00:10:00Z");
    ck_assert_int_eq(opening_is_stopped(), _i);
    ck_assert_str_eq(stage_task_string("phase"), _i ? "pending" : "running");
}

TEST(proplet_tells_once_how_many_tasks_it_stopped)
{
    for (int i = 0; i < 3; i++)
        stage_put(&KIND_TASK, arena_printf(stage.arena, "many-%d", i), TASK(ON("beta")));
    stage_run();
    stage_put_proplet("beta", PROPLET("device-2", KILLED));
    stage_run();
    stage_write_events();
    ck_assert_str_eq(opening.events, " Online KillSwitch TasksCut");
    ck_assert_str_eq(opening.note, "3 Tasks were stopped because it closed");
}

TEST(stops_are_told_although_the_fields_are_taken_away_meanwhile)
{
    stage_put(&KIND_TASK, "many-0", TASK(ON("beta")));
    stage_run();
    stage_put_proplet("beta", PROPLET("device-2", KILLED));
    for (int i = 0; i < 100 && !opening_is_stopped(); i++)
        stage_turns(1);
    ck_assert(opening_is_stopped());
    stage_put_proplet("beta", PROPLET("device-2", ""));
    stage_run();
    opening_pass_minutes(1);
    stage_write_events();
    ck_assert_ptr_nonnull(strstr(opening.events, "TasksCut"));
    ck_assert_str_eq(opening.note, "1 Task was stopped because it closed");
    ck_assert(availabilities_is_empty(stage.proplet.availabilities));
}

static unsigned stops;

/* The first stop precedes the barrier, the second one is published in the reconcile that ends the attempt. */
static void replace_at_second_stop(const char *suffix)
{
    if (str_equal(suffix, "manager/stop") && ++stops == 2)
        stage_replace_proplet("alpha", PROPLET("device-1", ""));
}

TEST(stop_of_a_proplet_that_went_meanwhile_leaves_no_entry)
{
    stage_put_task(TASK(ON("alpha") ",\"propletLostPolicy\":\"Wait\""));
    stage_run();
    outside.absent = stage.silent = "device-1";
    opening_pass_minutes(2);
    stops = 0;
    outside.at_publish = replace_at_second_stop;
    stage_put_proplet("alpha", PROPLET("device-1", KILLED));
    stage_run();
    ck_assert_uint_ge(stops, 2);
    ck_assert(availabilities_is_empty(stage.proplet.availabilities));
}

static bool brake_holds(void)
{
    return fleet_brake_state(stage.proplet.brake, clock_boot_ms(&stage.clock.clock) * 1000,
                             clock_monotonic_ms(&stage.clock.clock))
        .plan.holds;
}

/* As laptops that go home at the end of their window. */
TEST_TIMES(fleet_that_goes_away_while_it_is_closed_suppresses_no_eviction, 2)
{
    stage_put_fleet(12);
    stage_run();
    for (int i = 1; i <= 12 && _i; i++) {
        const char *name = arena_printf(stage.arena, "fleet-%d", i);
        const cJSON *spec = json_get(stage_get(&KIND_PROPLET, name), "spec");
        cJSON *closed = arena_own(stage.arena, json_copy(spec), json_free);
        json_set_bool(closed, "killSwitch", true);
        stage_put_proplet(name, json_text(stage.arena, closed, NULL));
    }
    stage_run();
    stage_lose_fleet(12);
    stage_run();
    ck_assert_int_eq(brake_holds(), !_i);
}

TEST(annotation_closes_until_people_take_it_away)
{
    static const char *const VALUES[] = { "true", "no" };

    for (size_t i = 0; i < ARRAY_LEN(VALUES); i++) {
        stage_annotate(&KIND_PROPLET, "alpha", ANNOTATION_RECLAIM, VALUES[i]);
        stage_run();
        ck_assert_str_eq(opening_state("alpha"), i ? "" : "Closed Reclaimed False");
        opening_pass_minutes(1);
        ck_assert_str_eq(opening_state("alpha"), i ? "" : "Closed Reclaimed False");
    }
}

TEST(fields_that_are_taken_away_leave_nothing)
{
    stage_put_proplet("alpha", PROPLET("device-1", KILLED));
    stage_run();
    ck_assert_str_eq(opening_state("alpha"), "Closed KillSwitch False");
    stage_put_proplet("alpha", PROPLET("device-1", ""));
    stage_run();
    ck_assert_str_eq(opening_state("alpha"), "");
    stage_put_task(TASK(ON("alpha")));
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "running");
}

TEST(nothing_is_kept_of_a_proplet_that_is_gone)
{
    stage_put_proplet("alpha", PROPLET("device-1", KILLED));
    stage_run();
    const char *uid =
        json_string(json_path(stage_get(&KIND_PROPLET, "alpha"), "metadata", "uid", NULL), "");
    struct availabilities *kept = stage.proplet.availabilities;

    ck_assert_int_eq(availabilities_get(kept, uid).state, AVAILABILITY_CLOSED);
    stage_delete(&KIND_PROPLET, "alpha");
    stage_run();
    ck_assert_int_eq(availabilities_get(kept, uid).state, AVAILABILITY_UNSET);
}

TEST(schedule_that_cannot_be_read_starts_nothing_and_says_which_text)
{
    stage_put_proplet("alpha",
                      PROPLET("device-1", ",\"availability\":{\"schedule\":{\"daysOfWeek\":["
                                          "\"monday\"],\"hoursOfDay\":[\"9\"]}}"));
    stage_put_task(TASK(ON("alpha")));
    stage_run();
    ck_assert_str_eq(opening_state("alpha"), "Unknown InvalidSchedule Unknown");
    ck_assert_str_eq(
        json_string(
            json_get(condition_get(json_get(opening_status("alpha"), "conditions"), "Available"),
                     "message"),
            ""),
        "spec.availability.schedule.daysOfWeek[0]: 'monday': day 'monday' must be mon, tue, wed, "
        "thu, fri, sat or sun");
    expect_waiting("PropletUnavailable", "Proplet 'alpha' is closed");
}

/* The table of the next process is filled before any Task has a turn, and a close by a person is the one that was
 * written. */
TEST(next_leader_starts_nothing_and_keeps_the_close)
{
    stage_put_proplet("alpha", PROPLET("device-1", KILLED));
    stage_put_proplet("beta", PROPLET("device-2", WINDOW));
    stage_run();
    const char *since = time_of("alpha", "since");
    stage_put_task(TASK(""));
    stage_run();
    expect_waiting("NoCandidates", "none of 2 Proplets fits: 2 are closed");

    stage_wait_ms(90000);
    stage.still = true; /* Tasks have their turns first, and only they */
    stage.dead = true;
    stage_run();
    expect_waiting("NoCandidates", "none of 2 Proplets fits: 2 are closed");
    stage.still = false;
    stage.dead = true;
    stage_run();
    expect_waiting("NoCandidates", "none of 2 Proplets fits: 2 are closed");
    ck_assert_str_eq(time_of("alpha", "since"), since);
}

TEST(close_is_the_time_at_which_it_was_seen_although_its_write_fails)
{
    stage_wait_ms(5000);
    outside.fault = FAULT_SERVER_ERROR;
    outside.fail_at = outside.steps + 1;
    stage_put_proplet("alpha", PROPLET("device-1", KILLED));
    stage_turns(1);
    ck_assert_str_eq(opening_state("alpha"), "");
    stage_wait_ms(7000);
    stage_run();
    ck_assert_str_eq(opening_state("alpha"), "Closed KillSwitch False");
    ck_assert_str_eq(time_of("alpha", "since"), "2026-01-01T00:00:05Z");
}

#define FLEET 150

static unsigned count_open(void)
{
    unsigned open = 0;

    for (int i = 0; i < FLEET; i++)
        open +=
            str_equal(opening_state(arena_printf(stage.arena, "late-%d", i)), "Open Always True");
    return open;
}

static bool takes_tasks(const char *proplet)
{
    const char *uid = kube_uid(stage_get(&KIND_PROPLET, proplet));
    const struct availability is = availabilities_get(stage.proplet.availabilities, uid);

    return availability_is_open(&is);
}

/* All open before one is written, then 5 at once and 48 a second. They do not delay what a person does. */
TEST(fleet_that_opens_at_one_second_is_written_at_a_bounded_rate)
{
    int64_t began_ms = clock_monotonic_ms(&stage.clock.clock);

    for (int i = 0; i < FLEET; i++)
        stage_put_proplet(
            arena_printf(stage.arena, "late-%d", i),
            arena_printf(stage.arena, PROPLET("late-%d", OVERRIDE("Closed", "00:05")), i));
    stage_run();
    stage_wait_ms(300000 + began_ms - clock_monotonic_ms(&stage.clock.clock));
    int64_t opened_ms = clock_monotonic_ms(&stage.clock.clock);

    for (int i = 0; i < 10000 && clock_monotonic_ms(&stage.clock.clock) == opened_ms; i++)
        stage_turns(1);
    ck_assert_uint_eq(count_open(), 0);
    ck_assert(takes_tasks("late-0") && takes_tasks("late-149"));
    stage_turns(8);
    ck_assert(count_open() >= 1 && count_open() <= 6);
    stage_put_proplet("alpha", PROPLET("device-1", KILLED));
    stage_turns(2);
    ck_assert_str_eq(opening_state("alpha"), "Closed KillSwitch False");
    for (int i = 0; i < 1000 && count_open() < FLEET; i++)
        stage_turns(10);
    ck_assert_uint_eq(count_open(), FLEET);
    ck_assert_int_ge(clock_monotonic_ms(&stage.clock.clock) - opened_ms, 2900);
    ck_assert_int_le(clock_monotonic_ms(&stage.clock.clock) - opened_ms, 3300);
}

static unsigned count_assigned(int tasks)
{
    unsigned assigned = 0;

    for (int i = 0; i < tasks; i++)
        assigned += json_path(stage_get(&KIND_TASK, arena_printf(stage.arena, "many-%02d", i)),
                              "status", "assignedProplet", NULL) != NULL;
    return assigned;
}

/* With a thousand Tasks it would wait for a thousand writes. */
TEST(first_start_waits_for_no_choice_of_another_task)
{
    enum { TASKS = 20 };

    stage_put_proplet("alpha", PROPLET("device-1", OVERRIDE("Closed", "00:05")));
    stage_put_proplet("beta", PROPLET("device-2", KILLED));
    for (int i = 0; i < TASKS; i++)
        stage_put(&KIND_TASK, arena_printf(stage.arena, "many-%02d", i), TASK(""));
    stage_run();
    ck_assert_uint_eq(outside.starts, 0);
    stage_wait_ms(290000);
    stage_run();
    stage_wait_ms(300000 - (clock_wall_us(&stage.clock.clock) / 1000 - INT64_C(1767225600000)));
    for (int i = 0; i < 1000 && !outside.starts; i++)
        stage_turns(1);
    ck_assert_uint_eq(outside.starts, 1);
    ck_assert_uint_le(count_assigned(TASKS), 2);
    stage_run();
    ck_assert_uint_eq(outside.starts, TASKS);
}

/* More than are woken at each change. The opening calls as many as have room. */
TEST(opening_calls_the_first_of_many_that_wait)
{
    stage_put_proplet(
        "alpha", PROPLET("device-1", ",\"external\":{\"maxTasks\":1}" OVERRIDE("Closed", "00:05")));
    stage_put_proplet("beta", PROPLET("device-2", KILLED));
    for (int i = 0; i < 70; i++)
        stage_put(&KIND_TASK, arena_printf(stage.arena, "many-%02d", i), TASK(""));
    stage_put_task(TASK(",\"priority\":100"));
    stage_run();
    stage_wait_ms(290000);
    stage_put_proplet("beta", PROPLET("device-2", KILLED ",\"unschedulable\":true"));
    stage_run(); /* now they were woken, and are not again for 30 s */
    int64_t left_ms = 300000 - (clock_wall_us(&stage.clock.clock) / 1000 - INT64_C(1767225600000));
    ck_assert_int_gt(left_ms, 0);
    stage_wait_ms(left_ms);
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "running");
}

static const struct {
    const char *before, *after;
    const char *events;
} EVENTS[] = {
    { "", KILLED, " KillSwitch" },
    { KILLED, "", " KillSwitch Released" },
    { KILLED, OVERRIDE("Closed", "00:05"), " KillSwitch Released" },
    { OVERRIDE("Closed", "00:05"), OVERRIDE("Open", "00:05"), "" },
    { WINDOW, WINDOW, "" },
    { "", ",\"availability\":{\"schedule\":{\"daysOfWeek\":[\"x\"],\"hoursOfDay\":[\"9\"]}}",
      " InvalidSchedule" },
    { "",
      ",\"availability\":{\"schedule\":{\"timezone\":\"Mars/Olympus\",\"daysOfWeek\":[\"mon\"],"
      "\"hoursOfDay\":[\"9\"]}}",
      " UnknownTimeZone" },
};

TEST_EACH(what_people_do_has_an_event_and_what_time_does_has_none, EVENTS)
{
    stage_put_proplet("beta",
                      arena_printf(stage.arena, PROPLET("device-2", "%s"), EVENTS[_i].before));
    stage_run();
    stage_put_proplet("beta",
                      arena_printf(stage.arena, PROPLET("device-2", "%s"), EVENTS[_i].after));
    stage_run();
    opening_pass_minutes(12);
    stage_write_events();
    ck_assert_str_eq(opening.events, arena_printf(stage.arena, " Online%s", EVENTS[_i].events));
}

TEST(reclaim_has_an_event)
{
    stage_annotate(&KIND_PROPLET, "beta", ANNOTATION_RECLAIM, "true");
    stage_run();
    stage_annotate(&KIND_PROPLET, "beta", ANNOTATION_RECLAIM, "");
    stage_run();
    stage_write_events();
    ck_assert_str_eq(opening.events, " Online Reclaimed Released");
}
