/* Rounds while every request and every use of the model store fails once in every way, and the
 * process dies before and after each; with updates in statuses and in the model store. */
#include <string.h>

#include "common/api/kinds.h"
#include "common/base/map.h"
#include "common/base/str.h"
#include "common/tests/power.h"
#include "controller/tests/federated_stage.h"

#define SPEC FEDERATED_SPEC
#define ROUNDS 2
/* With N, each of the torments below takes one Nth of the steps, and N of them in a row take all. */
#define EVERY ((unsigned)power_count(6, 2, 1))

/* What a, b, c and d send in each round, in this order; NULL: the Task fails. */
struct updates {
    const char *of[ROUNDS][4];
};

/* k is three: a liar, a dead one and a straggler. */
static const struct updates WITH_A_LIAR = { {
    { "[0.1,0.2]", "[1]", "[0.3,0.7]", "[0.5,0.11]" },
    { "[0.2,0.4]", NULL, "[0.6,0.8]", "[1.1,1.3]" },
} };

/* k is two: what c and d send comes after the round. */
static const struct updates WITH_LATE_ONES = { {
    { "[0.1,0.2]", "[0.3,0.7]", NULL, "[0.5,0.11]" },
    { "[0.2,0.4]", "[0.6,0.8]", "[5,9]", "[1.1,1.3]" },
} };

#define LATE ",\"lateUpdates\":\"StalenessWeighted\""
#define LAST_OF_LIARS "Completed 3/3 a=Received! b=Failed c=Received! d=Received! e=Offline"
#define LAST_OF_LATE "Completed 3/2 a=Received! b=Received! c=Stopped d=Late! e=Offline"
static const struct variant {
    const char *name;
    const char *spec;
    const struct updates *updates;
    bool stored;      /* updates are in the model store */
    bool configmaps;  /* which are ConfigMaps */
    const char *last; /* round */
} VARIANTS[] = {
    { "in statuses", SPEC(2, 3, ",\"historyLimit\":9"), &WITH_A_LIAR, false, false, LAST_OF_LIARS },
    { "stored", SPEC(2, 3, ",\"historyLimit\":1"), &WITH_A_LIAR, true, false, LAST_OF_LIARS },
    { "in ConfigMaps", SPEC(2, 3, ",\"historyLimit\":1"), &WITH_A_LIAR, true, true, LAST_OF_LIARS },
    { "late", SPEC(2, 2, LATE), &WITH_LATE_ONES, false, false, LAST_OF_LATE },
    { "late, stored", SPEC(2, 2, ",\"historyLimit\":1" LATE), &WITH_LATE_ONES, true, false,
      LAST_OF_LATE },
    { "late, in ConfigMaps", SPEC(2, 2, ",\"historyLimit\":1" LATE), &WITH_LATE_ONES, true, true,
      LAST_OF_LATE },
};

/* The fault at each step, by where the updates are. Other combinations of the two add nothing but
 * time. */
static const struct torment {
    size_t variant;
    enum fault fault;
} TORMENTS[] = {
    { 0, FAULT_REFUSED },      { 0, FAULT_LOST_REPLY },   { 0, FAULT_CONFLICT },
    { 0, FAULT_SERVER_ERROR }, { 0, FAULT_CRASH_BEFORE }, { 0, FAULT_CRASH_AFTER },
    { 1, FAULT_LOST_REPLY },   { 1, FAULT_CRASH_BEFORE }, { 1, FAULT_CRASH_AFTER },
    { 5, FAULT_LOST_REPLY },   { 5, FAULT_CRASH_BEFORE }, { 5, FAULT_CRASH_AFTER },
}, DELETIONS[] = {
    { 0, FAULT_CRASH_BEFORE }, { 1, FAULT_CRASH_AFTER },
    { 5, FAULT_CRASH_BEFORE }, { 5, FAULT_CRASH_AFTER },
};

static const char *name_of_round(int round)
{
    return arena_printf(federated.arena, "round-%d-job", round);
}

static const char *name_of_task(int round, int member)
{
    return arena_printf(federated.arena, "round-%d-job-%c", round, (char)('a' + member));
}

/* Of a round that has ended: each Task counts in one round at most. */
static void note_counted(struct map *counted, int round)
{
    const cJSON *object = federated_stage_get(&KIND_TRAININGROUND, name_of_round(round));
    int64_t count = 0;

    json_for_each (part, json_path(object, "status", "participants", NULL)) {
        const char *task = json_string(json_path(part, "taskRef", "name", NULL), "");
        if (!json_bool(json_get(part, "updateReceived"), false))
            continue;
        count++;
        ck_assert_msg(!map_get(counted, task), "%s is counted twice", task);
        map_set(counted, task, (void *)(uintptr_t)task);
    }
    ck_assert_int_gt(count, 0);
    ck_assert_int_eq(json_int(json_path(object, "status", "updatesReceived", NULL), 0), count);
}

static void set_up(const struct variant *variant, unsigned fail_at, enum fault fault)
{
    federated_stage_set_up();
    if (variant->configmaps)
        federated_stage_use_configmaps();
    federated.fail_at = fail_at;
    federated.fault = fault;
    federated_stage_put(variant->spec);
}

static void end_task(const struct variant *variant, int round, int member)
{
    void (*end)(const char *, const char *, int) =
        variant->stored ? federated_stage_end_task_by_reference : federated_stage_end_task;

    end(name_of_task(round, member), variant->updates->of[round - 1][member], member + 1);
}

static const char *play(const struct variant *variant, unsigned fail_at, enum fault fault)
{
    struct map *counted = map_create(NULL);

    set_up(variant, fail_at, fault);
    for (int round = 1; round <= ROUNDS; round++) {
        federated_stage_run();
        for (int i = 0; i < 4; i++) {
            end_task(variant, round, i);
            federated_stage_run();
        }
        note_counted(counted, round);
    }
    map_destroy(counted);
    return arena_printf(federated.arena, "%s; %s; %zu models, %zu updates", federated_stage_told(),
                        federated_stage_round(name_of_round(ROUNDS)), federated_stage_models(),
                        federated_stage_updates());
}

TEST_EACH(no_single_failure_changes_the_bytes_of_the_model, TORMENTS)
{
    const struct variant *variant = &VARIANTS[TORMENTS[_i].variant];
    enum fault fault = TORMENTS[_i].fault;
    char clean[512];

    str_copy(clean, sizeof(clean), play(variant, 0, FAULT_REFUSED));
    ck_assert_msg(strstr(clean, "Completed 2 2 [") && strstr(clean, variant->last), "%s: %s",
                  variant->name, clean);
    unsigned steps = federated.steps;
    ck_assert_uint_eq(federated.errors, 0);
    federated_stage_tear_down();

    ck_assert_uint_gt(steps, 30);
    for (unsigned step = 1 + (unsigned)_i % EVERY; step <= steps; step += EVERY) {
        const char *told = play(variant, step, fault);
        ck_assert_msg(str_equal(told, clean), "%s, step %u of %u, %s: '%s', not '%s'",
                      variant->name, step, steps, FAULT_NAMES[fault], told, clean);
        federated_stage_tear_down();
    }
}

/* Where updates are does not matter. */
TEST_TIMES(models_are_the_same_wherever_updates_are_kept, 2)
{
    static const size_t FIRST[] = { 0, 3 };
    char first[512] = "";

    for (size_t i = FIRST[_i]; i < FIRST[_i] + 3; i++) {
        const struct variant *variant = &VARIANTS[i];
        (void)play(variant, 0, FAULT_REFUSED);
        if (!*first)
            str_copy(first, sizeof(first), federated_stage_told());
        ck_assert_str_eq(federated_stage_told(), first);
        federated_stage_tear_down();
    }
}

static void delete_job(void)
{
    federated_stage_delete(&KIND_FEDERATEDJOB, "job");
}

/* The process dies at the step, and before the next one begins somebody deletes the job; the garbage
 * collector takes its time. */
static void play_deletion(const struct variant *variant, unsigned fail_at, enum fault fault)
{
    set_up(variant, fail_at, fault);
    federated.at_death = delete_job;
    for (int round = 1; round <= ROUNDS; round++) {
        federated_stage_run();
        for (int i = 0; i < 4; i++) {
            if (federated_stage_get(&KIND_TASK, name_of_task(round, i)))
                end_task(variant, round, i);
        }
        federated_stage_run();
    }
}

TEST_EACH(a_job_that_is_deleted_at_any_step_leaves_no_round_that_goes_on, DELETIONS)
{
    const struct variant *variant = &VARIANTS[DELETIONS[_i].variant];
    unsigned failed = 0;

    play_deletion(variant, 0, FAULT_REFUSED);
    ck_assert_ptr_nonnull(strstr(federated_stage_told(), "Completed 2 2 ["));
    unsigned steps = federated.steps;
    federated_stage_tear_down();

    for (unsigned step = 1 + (unsigned)_i % EVERY; step <= steps; step += EVERY) {
        play_deletion(variant, step, DELETIONS[_i].fault);
        ck_assert_ptr_null(federated_stage_get(&KIND_FEDERATEDJOB, "job"));
        for (int round = 1; round <= ROUNDS; round++) {
            const char *phase = json_string(
                json_path(federated_stage_get(&KIND_TRAININGROUND, name_of_round(round)), "status",
                          "phase", NULL),
                "Completed");
            ck_assert_msg(str_equal(phase, "Completed") || str_equal(phase, "Failed"),
                          "%s, step %u: round %d is %s", variant->name, step, round, phase);
            failed += str_equal(phase, "Failed");
        }
        federated_stage_tear_down();
    }
    ck_assert_uint_gt(failed, 0);
}

/* The first round fails twice: it is made again once, and once more after the annotation. */
static const char *play_retries(unsigned fail_at, enum fault fault)
{
    federated_stage_set_up();
    federated.fail_at = fail_at;
    federated.fault = fault;
    federated_stage_put(SPEC(1, 4, ",\"backoffLimit\":1,\"checkpoint\":{}"));
    federated_stage_run();
    federated_stage_end_task("round-1-job-a", NULL, 1);
    federated_stage_end_task("round-1-job-b", NULL, 1);
    federated_stage_run();
    federated_stage_wait_ms(20000);
    federated_stage_run();
    federated_stage_end_task("round-1-job-r2-c", NULL, 1);
    federated_stage_end_task("round-1-job-r2-d", NULL, 1);
    federated_stage_run();
    federated_stage_annotate("again");
    federated_stage_run();
    for (const char *name = "abcd"; *name; name++)
        federated_stage_end_task(arena_printf(federated.arena, "round-1-job-r3-%c", *name), "[1]",
                                 1);
    federated_stage_run();
    return arena_printf(
        federated.arena, "%s; %s; %s; %s; %zu models", federated_stage_told(),
        federated_stage_round("round-1-job"), federated_stage_round("round-1-job-r2"),
        federated_stage_get(&KIND_TRAININGROUND, "round-1-job-r4") ? "a fourth attempt" : "-",
        federated_stage_models());
}

TEST_TIMES(no_single_failure_makes_an_attempt_more_or_less, FAULTS)
{
    char clean[512];

    str_copy(clean, sizeof(clean), play_retries(0, FAULT_REFUSED));
    ck_assert_ptr_nonnull(strstr(clean, "Completed 1 1 [1]"));
    unsigned steps = federated.steps;
    federated_stage_tear_down();
    for (unsigned step = 1 + (unsigned)_i % EVERY; step <= steps; step += EVERY) {
        const char *told = play_retries(step, (enum fault)_i);
        ck_assert_msg(str_equal(told, clean), "step %u of %u, %s: '%s', not '%s'", step, steps,
                      FAULT_NAMES[_i], told, clean);
        federated_stage_tear_down();
    }
}
