#include "controller/federated/traininground_plan.h"

#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

#define NOW_US INT64_C(1795255200000000)
#define SECOND_US INT64_C(1000000)
#define MAX_MEMBERS 8

static struct arena *arena;
static struct round_member members[MAX_MEMBERS];
static struct round_observed observed;

static void set_up(void)
{
    json_init();
    arena = arena_create();
    observed =
        (struct round_observed){ .generation = 1, .now_us = NOW_US, .backlog_drained = true };
    memset(members, 0, sizeof(members));
}

static void tear_down(void)
{
    arena_destroy(arena);
}

TEST_GROUP("plan", set_up, tear_down);

/* n participants "a", "b", …, of which k are required; 60 s. */
static void round_of(size_t n, int64_t k)
{
    const char *list = "";
    const struct traininground_status status = observed.round.status;

    for (size_t i = 0; i < n; i++)
        list = arena_printf(arena, "%s%s\"%c\"", list, i ? "," : "", (char)('a' + i));
    const cJSON *object = parsed(
        arena,
        arena_printf(arena, "{\"spec\":{\"participants\":[%s],\"kOfN\":%d,\"timeoutSeconds\":60}}",
                     list, (int)k));
    memset(&observed.round, 0, sizeof(observed.round));
    ck_assert_int_eq(traininground_decode(arena, object, &observed.round, NULL), 0);
    observed.round.status = status;
    observed.members = members;
    for (size_t i = 0; i < n; i++)
        members[i].task = arena_printf(arena, "round-1-job-%c", (char)('a' + i));
}

/* A letter for each: - no Task yet, o its Task is open, c completed, f failed, O Offline without a
 * Task, M no Proplet and no Task, m the same with an open Task, x its Task is somebody else's, l no
 * Task, but a late update, u its update is unfit. */
static void see(const char *letters)
{
    ck_assert_uint_eq(strlen(letters), observed.round.spec.participants.len);
    for (size_t i = 0; letters[i]; i++) {
        char letter = letters[i];
        struct round_member *member = &members[i];
        const char *task = member->task;

        *member = (struct round_member){ .task = task, .reason = "" };
        if (letter == 'o' || letter == 'm')
            member->outcome = OUTCOME_OPEN;
        if (letter == 'c' || letter == 'u')
            member->outcome = OUTCOME_COMPLETED;
        if (letter == 'f') {
            member->outcome = OUTCOME_FAILED;
            member->reason = "DeviceError";
        }
        if (letter == 'O')
            member->device = DEVICE_OFFLINE;
        if (letter == 'U' || letter == 'V') { /* Unavailable for 10 s, or for two minutes */
            member->device = DEVICE_UNAVAILABLE;
            member->opens_us = observed.now_us + (letter == 'U' ? 10 : 120) * SECOND_US;
        }
        if (letter == 'M' || letter == 'm')
            member->device = DEVICE_MISSING;
        member->foreign = letter == 'x';
        member->late = letter == 'l' ? "round-0-job" : NULL;
        member->unfit = letter == 'u' ? "another shape" : NULL;
    }
}

static struct round_plan plan_now(void)
{
    return round_plan(arena, &observed);
}

/* As it would be after the write. */
static void store(const struct round_plan *plan)
{
    observed.round.status = plan->status;
}

static const char *condition_text(const struct round_plan *plan, const char *type, const char *key)
{
    return json_string(json_get(condition_get(plan->status.conditions, type), key), "");
}

/* "Running 1/2: b c; a=Received b=Training": phase, updates, Tasks to be made, participants. */
static const char *told(const struct round_plan *plan)
{
    const struct traininground_status *status = &plan->status;
    const struct round_participant *parts = status->participants.items;
    const char *text = arena_printf(arena, "%s %d/%d:", ROUND_PHASE_NAMES[status->phase],
                                    (int)status->updates_received, (int)status->updates_required);

    for (size_t i = 0; i < plan->create_len; i++)
        text = arena_printf(arena, "%s %c", text, (char)('a' + plan->create[i]));
    text = arena_printf(arena, "%s;", text);
    for (size_t i = 0; i < status->participants.len; i++)
        text = arena_printf(arena, "%s %s=%s%s", text, parts[i].proplet_id, parts[i].status,
                            parts[i].update_received ? "!" : "");
    return text;
}

static void begin(const char *letters, int64_t k)
{
    round_of(strlen(letters), k);
    see(letters);
    struct round_plan plan = plan_now();
    store(&plan);
}

static const struct {
    const char *before; /* when it began */
    const char *letters;
    int64_t k;
    const char *told;
} PLANS[] = {
    { "---", "---", 2, "Running 0/2: a b c; a=Pending b=Pending c=Pending" },
    { "---", "ooo", 2, "Running 0/2:; a=Training b=Training c=Training" },
    { "---", "coo", 2, "Running 1/2:; a=Received b=Training c=Training" },
    { "---", "cco", 2, "Aggregating 2/2:; a=Received! b=Received! c=Training" },
    { "---", "ccc", 2, "Aggregating 3/2:; a=Received! b=Received! c=Received!" },
    { "---", "cfo", 2, "Running 1/2:; a=Received b=Failed c=Training" },
    { "---", "cff", 2, "Failed 1/2:; a=Received b=Failed c=Failed" },
    { "--O", "ooO", 2, "Running 0/2:; a=Training b=Training c=Offline" },
    { "--O", "oo-", 2, "Running 0/2: c; a=Training b=Training c=Pending" },
    { "---", "oom", 2, "Running 0/2:; a=Training b=Training c=Missing" },
    { "---", "omm", 2, "Running 0/2:; a=Training b=Missing c=Missing" },
    { "---", "ffm", 2, "Failed 0/2:; a=Failed b=Failed c=Missing" },
    { "---", "oU-", 2, "Running 0/2: c; a=Training b=Unavailable c=Pending" },
    { "---", "oUf", 2, "Running 0/2:; a=Training b=Unavailable c=Failed" },
    { "---", "oVf", 2, "Failed 0/2:; a=Stopped b=Unavailable c=Failed" },
    { "---", "cUV", 2, "Running 1/2:; a=Received b=Unavailable c=Unavailable" },
    { "---", "cVV", 2, "Failed 1/2:; a=Received b=Unavailable c=Unavailable" },
    { "---", "x--", 2, "Running 0/2: b c; a=Pending b=Pending c=Pending" },
    { "---", "cl-", 2, "Running 1/2: b c; a=Received b=Pending c=Pending" },
    { "----", "ccl-", 2, "Aggregating 3/2:; a=Received! b=Received! c=Late! d=Pending" },
};

TEST_EACH(the_tasks_and_the_proplets_decide_what_a_running_round_does, PLANS)
{
    begin(PLANS[_i].before, PLANS[_i].k);
    ck_assert_int_eq(observed.round.status.phase, ROUND_RUNNING);
    see(PLANS[_i].letters);
    struct round_plan plan = plan_now();
    ck_assert_str_eq(told(&plan), PLANS[_i].told);
}

static const struct {
    const char *letters;
    const char *told;
    const char *reason; /* of Progressing */
} PENDING[] = {
    { "-UV", "Pending 0/2:; a=Pending b=Unavailable c=Unavailable", "ParticipantsUnavailable" },
    { "VVV", "Pending 0/2:; a=Unavailable b=Unavailable c=Unavailable", "ParticipantsUnavailable" },
    { "--V", "Running 0/2:; a=Pending b=Pending c=Unavailable", "Training" },
    { "-OV", "Running 0/2:; a=Pending b=Offline c=Unavailable", "Training" },
    { "xMV", "Running 0/2:; a=Pending b=Missing c=Unavailable", "Training" },
};

TEST_EACH(round_that_lacks_participants_for_their_windows_alone_waits, PENDING)
{
    round_of(3, 2);
    see(PENDING[_i].letters);
    struct round_plan plan = plan_now();
    ck_assert_str_eq(told(&plan), PENDING[_i].told);
    ck_assert_str_eq(condition_text(&plan, "Progressing", "reason"), PENDING[_i].reason);
    store(&plan);
    see("---");
    plan = plan_now();
    ck_assert_int_eq(plan.status.phase, ROUND_RUNNING);
}

TEST(participants_that_are_away_are_waited_for_until_the_deadline)
{
    round_of(4, 3);
    see("-OM-");
    struct round_plan plan = plan_now();
    store(&plan);
    ck_assert_str_eq(told(&plan), "Running 0/3:; a=Pending b=Offline c=Missing d=Pending");

    observed.now_us += 59 * SECOND_US;
    plan = plan_now();
    ck_assert_str_eq(told(&plan), "Running 0/3: a d; a=Pending b=Offline c=Missing d=Pending");
    ck_assert_str_eq(condition_text(&plan, "Progressing", "reason"), "WaitingForParticipants");
    ck_assert_ptr_nonnull(
        strstr(condition_text(&plan, "Progressing", "message"), "b (Offline), c (Missing)"));
    store(&plan);

    see("o--o"); /* they are there in time */
    plan = plan_now();
    ck_assert_str_eq(told(&plan), "Running 0/3: b c; a=Training b=Pending c=Pending d=Training");
    ck_assert_str_eq(condition_text(&plan, "Progressing", "reason"), "Training");

    see("oOMo");
    observed.now_us += SECOND_US;
    plan = plan_now();
    ck_assert_str_eq(told(&plan), "Failed 0/3:; a=Stopped b=Offline c=Missing d=Stopped");
    ck_assert_str_eq(condition_text(&plan, "Failed", "reason"), reason_text(REASON_OUT_OF_REACH));
    ck_assert_ptr_nonnull(
        strstr(condition_text(&plan, "Failed", "message"), "b (Offline), c (Missing)"));
    ck_assert_str_eq(plan.event->reason, "Failed");
}

TEST(what_can_never_start_fails_before_any_task_is_made)
{
    round_of(2, 1);
    see("--");
    observed.problem = REASON_MODEL_TOO_LARGE;
    observed.problem_message = "the model has 99 bytes";
    struct round_plan plan = plan_now();

    ck_assert_int_eq(plan.status.phase, ROUND_FAILED);
    ck_assert_uint_eq(plan.create_len, 0);
    ck_assert_str_eq(condition_text(&plan, "Failed", "reason"), "ModelTooLarge");
}

TEST(a_round_over_its_time_fails_and_says_who_was_missing)
{
    begin("---", 2);
    see("cof");
    observed.now_us += 59 * SECOND_US;
    struct round_plan plan = plan_now();
    ck_assert_int_eq(plan.status.phase, ROUND_RUNNING);
    ck_assert_uint_eq(plan.requeue_after_ms, 1000);

    observed.now_us += SECOND_US;
    plan = plan_now();
    ck_assert_int_eq(plan.status.phase, ROUND_FAILED);
    ck_assert_str_eq(condition_text(&plan, "Failed", "reason"), reason_text(REASON_DEADLINE));
    ck_assert_str_eq(condition_text(&plan, "Failed", "message"),
                     "1 of 2 updates after 60 s; missing: b (Training), c (Failed: DeviceError)");
}

TEST(a_step_of_the_wall_clock_is_no_time_of_a_round)
{
    const int64_t step_us = 24 * 3600 * SECOND_US;

    begin("---", 2);
    see("ooo");
    observed.time = (struct timeline_view){
        .epochs = { { NOW_US, 0 }, { NOW_US + 10 * SECOND_US + step_us, 10 * SECOND_US } },
        .len = 2,
    };
    observed.now_us += step_us + 20 * SECOND_US;
    struct round_plan plan = plan_now();
    ck_assert_int_eq(plan.status.phase, ROUND_RUNNING);
    ck_assert_uint_eq(plan.requeue_after_ms, 40000);

    observed.now_us += 40 * SECOND_US;
    plan = plan_now();
    ck_assert_int_eq(plan.status.phase, ROUND_FAILED);
}

TEST(whose_updates_count_is_written_before_they_are_read_and_stays)
{
    begin("---", 2);
    see("cco");
    struct round_plan plan = plan_now();
    ck_assert(plan.action != ROUND_AGGREGATE);
    store(&plan);

    see("ccc"); /* the third one comes while the two are read */
    plan = plan_now();
    ck_assert(plan.action == ROUND_AGGREGATE);
    ck_assert_str_eq(told(&plan), "Aggregating 2/2:; a=Received! b=Received! c=Received");
    observed.model_ref = "model://sha256:0";
    plan = plan_now();
    ck_assert_int_eq(plan.status.phase, ROUND_COMPLETED);
    ck_assert_str_eq(plan.status.aggregated_model_ref, "model://sha256:0");
    ck_assert_str_eq(told(&plan), "Completed 2/2:; a=Received! b=Received! c=Stopped");
}

TEST(a_bad_update_among_the_first_k_does_not_spoil_the_round)
{
    begin("---", 2);
    see("cco");
    struct round_plan plan = plan_now();
    store(&plan);

    see("uco");
    plan = plan_now();
    ck_assert_int_eq(plan.status.phase, ROUND_RUNNING); /* the third may still come */
    store(&plan);
    see("cco");
    plan = plan_now();
    ck_assert_str_eq(told(&plan), "Running 1/2:; a=Rejected b=Received c=Training");
    see("ccc");
    plan = plan_now();
    ck_assert_str_eq(told(&plan), "Aggregating 2/2:; a=Rejected b=Received! c=Received!");
    see("ccf");
    plan = plan_now();
    ck_assert_int_eq(plan.status.phase, ROUND_FAILED);
    ck_assert_ptr_nonnull(strstr(condition_text(&plan, "Failed", "message"),
                                 "a (Rejected), c (Failed: DeviceError)"));
}

TEST(a_suspended_round_makes_no_tasks_and_its_time_begins_anew)
{
    begin("--", 1);
    observed.suspended = true;
    observed.now_us += 3600 * SECOND_US;
    struct round_plan plan = plan_now();
    ck_assert_int_eq(plan.status.phase, ROUND_RUNNING);
    ck_assert_uint_eq(plan.create_len, 0);
    ck_assert_int_eq(plan.status.start_time_us, 0);
    store(&plan);

    observed.suspended = false;
    plan = plan_now();
    ck_assert_uint_eq(plan.create_len, 2);
    ck_assert_int_eq(plan.status.start_time_us, observed.now_us);
}

/* Whatever happens, a round ends, and the second look at the same state changes nothing. */
TEST(every_round_ends_and_nothing_is_written_twice)
{
    static const char LETTERS[] = "-ocfOMmxlu";
    size_t count = sizeof(LETTERS) - 1;

    for (size_t code = 0; code < count * count * count; code++) {
        char letters[4] = { LETTERS[code % count], LETTERS[code / count % count],
                            LETTERS[code / count / count], '\0' };
        observed.round.status = (struct traininground_status){ 0 };
        observed.now_us = NOW_US;
        round_of(3, 1 + (int64_t)code % 3);
        observed.model_ref = "model://sha256:0";
        for (int turn = 0; turn < 12; turn++) {
            see(letters);
            struct round_plan plan = plan_now();
            store(&plan);
            plan = plan_now();
            if (turn == 11) {
                ck_assert(plan.status.phase == ROUND_COMPLETED ||
                          plan.status.phase == ROUND_FAILED);
                ck_assert_ptr_null(plan.event);
            }
            observed.now_us += 30 * SECOND_US;
        }
    }
}
