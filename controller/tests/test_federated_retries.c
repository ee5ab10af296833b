/* Rounds that are made again, jobs that go on after the annotation, and models that are kept. */
#include <string.h>

#include "common/api/kinds.h"
#include "common/base/str.h"
#include "controller/tests/federated_stage.h"

#define SPEC FEDERATED_SPEC

TEST_GROUP("retries", federated_stage_set_up, federated_stage_tear_down);

static void expect(const char *told)
{
    federated_stage_run();
    ck_assert_str_eq(federated_stage_told(), told);
}

static void end(const char *round, const char *participants, const char *update)
{
    for (; *participants; participants++)
        federated_stage_end_task(arena_printf(federated.arena, "%s-%c", round, *participants),
                                 update, 1);
}

static const cJSON *job_status(const char *key)
{
    return json_path(federated_stage_get(&KIND_FEDERATEDJOB, "job"), "status", key, NULL);
}

TEST(a_failed_round_is_made_again_from_the_same_model)
{
    federated_stage_put(SPEC(2, 4, ",\"backoffLimit\":1"));
    federated_stage_run();
    end("round-1-job", "abcd", "[2]");
    expect("Running 2 1 [2]; True RoundRunning");
    end("round-2-job", "ab", "[100]");
    end("round-2-job", "cd", NULL); /* three of five are too few */
    expect("Running 2 1 [2]; True RoundRunning");
    ck_assert_int_eq(json_int(job_status("roundFailures"), 0), 1);
    ck_assert_int_eq(json_int(job_status("roundAttempt"), 0), 2);
    const cJSON *first = federated_stage_get(&KIND_TRAININGROUND, "round-2-job");
    const cJSON *again = federated_stage_get(&KIND_TRAININGROUND, "round-2-job-r2");
    ck_assert_str_eq(json_string(json_path(again, "spec", "modelRef", NULL), "-"),
                     json_string(json_path(first, "spec", "modelRef", NULL), "+"));

    end("round-2-job-r2", "abcd", "[4]"); /* what the first attempt got does not count */
    expect("Completed 2 2 [4]; False RoundsCompleted");
    ck_assert(!job_status("roundAttempt") && !job_status("roundFailures"));
}

TEST(one_failure_more_than_the_limit_fails_the_job_and_the_annotation_goes_on)
{
    federated_stage_put(SPEC(2, 4, ""));
    federated_stage_run();
    end("round-1-job", "abcd", "[2]");
    federated_stage_run();
    end("round-2-job", "ab", NULL);
    expect("Failed 2 1 [2]; False RoundFailed");

    federated_stage_annotate("now");
    expect("Running 2 1 [2]; True RoundRunning");
    ck_assert_str_eq(json_string(job_status("observedRestart"), ""), "now");
    end("round-2-job-r2", "abcd", "[4]");
    expect("Completed 2 2 [4]; False RoundsCompleted");
    ck_assert_ptr_null(federated_stage_get(&KIND_TRAININGROUND, "round-1-job-r2"));

    federated_stage_annotate("again"); /* it is complete */
    expect("Completed 2 2 [4]; False RoundsCompleted");
    ck_assert_str_eq(json_string(job_status("observedRestart"), ""), "again");
}

TEST(a_long_value_of_the_annotation_is_noted_by_its_digest)
{
    char value[301];

    memset(value, 'x', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    federated_stage_put(SPEC(1, 4, ""));
    federated_stage_run();
    end("round-1-job", "ab", NULL);
    federated_stage_run();
    federated_stage_annotate(value);
    expect("Running 1 0 -; True RoundRunning");
    ck_assert_uint_eq(strlen(json_string(job_status("observedRestart"), "")), 64);
}

TEST(late_updates_of_a_failed_attempt_do_not_count)
{
    federated_stage_put(SPEC(2, 4, ",\"backoffLimit\":1,\"lateUpdates\":\"StalenessWeighted\""));
    federated_stage_run();
    end("round-1-job", "ab", NULL);
    federated_stage_run();
    federated_stage_wait_ms(10000);
    federated_stage_run();
    end("round-1-job-r2", "abcd", "[2]");
    federated_stage_run();
    end("round-1-job", "cd", "[100]"); /* of devices that were not stopped in time */
    federated_stage_put_proplet("e", "Running");
    federated_stage_run();
    end("round-2-job", "abce", "[4]"); /* d has only its old one */
    expect("Completed 2 2 [4]; False RoundsCompleted");
}

TEST(models_of_checkpoints_outlive_the_history)
{
    federated_stage_put(SPEC(4, 4, ",\"historyLimit\":1,\"checkpoint\":{\"keep\":3}"));
    federated_stage_run();
    for (int i = 1; i <= 4; i++) {
        end(arena_printf(federated.arena, "round-%d-job", i), "abcd",
            arena_printf(federated.arena, "[%d]", i));
        federated_stage_run();
    }
    expect("Completed 4 4 [4]; False RoundsCompleted");
    ck_assert_ptr_null(federated_stage_get(&KIND_TRAININGROUND, "round-2-job"));
    int round = 4;
    json_for_each (checkpoint, job_status("checkpoints")) {
        ck_assert_int_eq(json_int(json_get(checkpoint, "round"), 0), round);
        ck_assert_str_eq(federated_stage_model(json_string(json_get(checkpoint, "ref"), "")),
                         arena_printf(federated.arena, "[%d]", round));
        round--;
    }
    ck_assert_int_eq(round, 1);
    ck_assert_uint_eq(federated_stage_models(), 3);
}

TEST(tasks_of_participants_have_the_pull_secrets_of_the_job)
{
    federated_stage_put(SPEC(1, 4, ",\"imagePullSecrets\":[{\"name\":\"s\"}]"));
    federated_stage_run();
    const cJSON *secrets = json_path(federated_stage_get(&KIND_TASK, "round-1-job-a"), "spec",
                                     "imagePullSecrets", NULL);
    ck_assert_uint_eq(json_len(secrets), 1);
    json_for_each (secret, secrets)
        ck_assert_str_eq(json_string(json_get(secret, "name"), ""), "s");
}

static const struct {
    const char *checkpoint, *interval;
} OF_PARTICIPANTS[] = {
    { "{\"participants\":true}", "600s" },
    { "{\"participants\":true,\"interval\":\"2m\"}", "120s" },
    { "{\"participants\":true,\"interval\":\"5s\"}", "600s" },
    { "{\"interval\":\"2m\"}", "-" },
};

TEST_EACH(tasks_of_participants_hand_over_checkpoints_if_they_are_to, OF_PARTICIPANTS)
{
    federated_stage_put(arena_printf(federated.arena, SPEC(1, 4, ",\"checkpoint\":%s"),
                                     OF_PARTICIPANTS[_i].checkpoint));
    federated_stage_run();
    const cJSON *checkpoint =
        json_path(federated_stage_get(&KIND_TASK, "round-1-job-a"), "spec", "checkpoint", NULL);
    ck_assert_str_eq(json_string(json_get(checkpoint, "interval"), "-"),
                     OF_PARTICIPANTS[_i].interval);
    ck_assert_int_eq(json_int(json_get(checkpoint, "keep"), 0), checkpoint ? 1 : 0);
}
