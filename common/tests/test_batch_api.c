/* PropellerJob, FederatedJob and TrainingRound: their structs and defaults. */
#include "common/api/federatedjob.h"
#include "common/api/propellerjob.h"
#include "common/api/traininground.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

/* One object of each kind with every field. */
static const struct {
    const struct json_struct *table;
    const char *text;
} FULL[] = {
    { &PROPELLERJOB_SPEC,
      "{\"name\":\"n\",\"executionMode\":\"sequential\",\"tasks\":[{\"name\":\"a\","
      "\"kind\":\"standard\",\"file\":\"f\",\"preferredPropletType\":\"any\"}],"
      "\"taskRefs\":[\"b\"],\"suspend\":true,\"parallelism\":2,\"backoffLimit\":0,"
      "\"activeDeadlineSeconds\":5,\"ttlSecondsAfterFinished\":0,"
      "\"failurePolicy\":\"Continue\",\"faultTolerance\":{\"retryLimit\":0,"
      "\"retryPausePeriod\":\"1m\"},\"managedBy\":\"x\"}" },
    { &PROPELLERJOB_STATUS,
      "{\"phase\":\"Failed\",\"startTime\":\"2026-11-21T10:00:00Z\","
      "\"finishTime\":\"2026-11-21T10:00:01Z\",\"createdAt\":\"2026-11-21T10:00:02Z\","
      "\"updatedAt\":\"2026-11-21T10:00:03Z\",\"taskCount\":5,\"completedCount\":1,"
      "\"failedCount\":2,\"skippedCount\":3,\"interruptedCount\":4,\"resettingCount\":1,"
      "\"resetAt\":\"2026-11-21T10:00:04.000000Z\",\"quota\":{\"workload\":\"w\"},\"conditions\":[]"
      ","
      "\"observedGeneration\":6}" },
    { &FEDERATEDJOB_SPEC,
      "{\"experimentId\":\"e\",\"modelRef\":\"m\",\"taskWasmImage\":\"i\","
      "\"participants\":[{\"propletId\":\"a\"},{\"propletId\":\"b\"}],"
      "\"hyperparams\":{\"lr\":0.05},\"kOfN\":1,\"timeoutSeconds\":0,"
      "\"rounds\":{\"total\":3,\"strategy\":\"sequential\"},"
      "\"aggregator\":{\"algorithm\":\"krum\",\"config\":{\"f\":1}},\"suspend\":true,"
      "\"lateUpdates\":\"StalenessWeighted\",\"historyLimit\":1,\"backoffLimit\":2,"
      "\"checkpoint\":{\"interval\":\"1h\",\"keep\":4,\"uri\":\"s3://b/exports/n/p\","
      "\"participants\":true},\"imagePullSecrets\":[{\"name\":\"s\"}]}" },
    { &FEDERATEDJOB_STATUS,
      "{\"phase\":\"Running\",\"currentRound\":2,\"completedRounds\":1,"
      "\"aggregatedModelRef\":\"m\",\"participants\":[{\"propletId\":\"a\","
      "\"status\":\"s\",\"lastUpdate\":\"2026-11-21T10:00:00Z\"}],\"conditions\":[],"
      "\"observedGeneration\":1,\"roundAttempt\":2,\"roundFailures\":1,\"nextRetry\":"
      "\"2026-11-21T10:00:10Z\",\"observedRestart\":\"now\",\"lastCheckpoint\":{\"round\":2,"
      "\"time\":\"2026-11-21T10:00:00Z\",\"ref\":\"m\",\"uri\":\"s3://b/exports/n/p/"
      "round-2\"},\"checkpoints\":[{\"round\":2,"
      "\"ref\":\"m\"}]}" },
    { &TRAININGROUND_SPEC,
      "{\"roundId\":\"r\",\"federatedJobRef\":{\"name\":\"j\"},\"modelRef\":\"m\","
      "\"taskWasmImage\":\"i\",\"participants\":[\"a\",\"b\"],\"hyperparams\":[1],"
      "\"kOfN\":1,\"timeoutSeconds\":0,\"aggregator\":{\"algorithm\":\"median\"},"
      "\"checkpoint\":{\"interval\":\"60s\",\"keep\":1},"
      "\"imagePullSecrets\":[{\"name\":\"s\"}]}" },
    { &TRAININGROUND_STATUS,
      "{\"phase\":\"Aggregating\",\"startTime\":\"2026-11-21T10:00:00Z\","
      "\"endTime\":\"2026-11-21T10:00:01Z\",\"updatesReceived\":1,\"updatesRequired\":2,"
      "\"participants\":[{\"propletId\":\"a\",\"taskRef\":{\"name\":\"t\"},"
      "\"status\":\"s\",\"updateReceived\":true}],\"aggregatedModelRef\":\"m\","
      "\"conditions\":[],\"observedGeneration\":1}" },
};

TEST_GROUP("batch_api", arena_set_up, arena_tear_down);

TEST_EACH(a_value_with_every_field_comes_back_as_it_was, FULL)
{
    const struct json_struct *table = FULL[_i].table;
    const cJSON *json = parsed(arena, FULL[_i].text);
    void *value = arena_alloc(arena, 1, table->size);
    struct error err = { 0 };
    int r = json_decode(arena, table, json, value, &err);

    ck_assert_msg(r == 0, "%s", err.message);
    ck_assert_uint_eq(json_len(json), table->len);
    ck_assert_str_eq(json_text(arena, json_encode(arena, table, value), NULL), FULL[_i].text);
}

TEST(whole_objects_are_decoded_and_their_status_encoded)
{
    struct propellerjob job;
    struct federatedjob federated;
    struct traininground round;
    const cJSON *object = parsed(arena, "{\"status\":{\"phase\":\"Completed\"}}");

    ck_assert_int_eq(propellerjob_decode(arena, object, &job, NULL), 0);
    ck_assert_int_eq(job.status.phase, JOB_COMPLETED);
    ck_assert_int_eq(federatedjob_decode(arena, object, &federated, NULL), 0);
    ck_assert_int_eq(federated.status.phase, FEDERATED_COMPLETED);
    ck_assert_int_eq(traininground_decode(arena, object, &round, NULL), 0);
    ck_assert_int_eq(round.status.phase, ROUND_COMPLETED);

    const cJSON *status[] = { propellerjob_status_encode(arena, &job.status),
                              federatedjob_status_encode(arena, &federated.status),
                              traininground_status_encode(arena, &round.status) };
    for (size_t i = 0; i < ARRAY_LEN(status); i++)
        ck_assert_str_eq(json_string(json_get(status[i], "phase"), ""), "Completed");
}

TEST(a_status_that_does_not_fit_is_refused)
{
    struct propellerjob job;
    struct federatedjob federated;
    struct traininground round;
    const cJSON *object = parsed(arena, "{\"status\":{\"phase\":1}}");

    ck_assert_int_eq(propellerjob_decode(arena, object, &job, NULL), -ERROR_INVALID);
    ck_assert_int_eq(federatedjob_decode(arena, object, &federated, NULL), -ERROR_INVALID);
    ck_assert_int_eq(traininground_decode(arena, object, &round, NULL), -ERROR_INVALID);
}

TEST(absent_fields_mean_their_defaults)
{
    struct propellerjob job;
    struct federatedjob federated;
    struct traininground round;
    const cJSON *object =
        parsed(arena, "{\"spec\":{\"name\":\"n\",\"tasks\":[{\"name\":\"a\"},{\"name\":\"b\"}]}}");

    ck_assert_int_eq(propellerjob_decode(arena, object, &job, NULL), 0);
    ck_assert_int_eq(job.spec.execution_mode, MODE_CONFIGURABLE);
    ck_assert_int_eq(job.spec.failure_policy, FAILURE_FAIL_FAST);
    ck_assert_str_eq(propellerjob_task(&job.spec, 1)->name, "b");

    object = parsed(arena, "{\"spec\":{\"participants\":[{\"propletId\":\"a\"},"
                           "{\"propletId\":\"b\"}]}}");
    ck_assert_int_eq(federatedjob_decode(arena, object, &federated, NULL), 0);
    ck_assert_int_eq(federatedjob_rounds(&federated.spec), 1);
    ck_assert_int_eq(federatedjob_timeout_seconds(&federated.spec), 600);
    ck_assert_int_eq(federatedjob_history_limit(&federated.spec), 3);
    ck_assert_int_eq(federated.spec.late_updates, LATE_DROP);
    ck_assert_str_eq(aggregator_algorithm(federated.spec.aggregator), "fedavg");
    ck_assert_str_eq(federatedjob_participant(&federated.spec, 1)->proplet_id, "b");

    object = parsed(arena, "{\"spec\":{\"participants\":[\"a\",\"b\",\"c\"]}}");
    ck_assert_int_eq(traininground_decode(arena, object, &round, NULL), 0);
    ck_assert_int_eq(traininground_k_of_n(&round.spec), 3);
    ck_assert_int_eq(traininground_timeout_seconds(&round.spec), 600);
}

TEST(what_is_written_wins_over_the_defaults_also_zero)
{
    struct federatedjob_spec federated = { .k_of_n = { true, 1 },
                                           .timeout_seconds = { true, 0 },
                                           .history_limit = { true, 7 },
                                           .rounds =
                                               &(struct federated_rounds){ .total = { true, 9 } } };
    struct traininground_spec round = { .k_of_n = { true, 1 }, .timeout_seconds = { true, 0 } };

    ck_assert_int_eq(federatedjob_timeout_seconds(&federated), 0);
    ck_assert_int_eq(federatedjob_history_limit(&federated), 7);
    ck_assert_int_eq(federatedjob_rounds(&federated), 9);
    ck_assert_int_eq(traininground_k_of_n(&round), 1);
    ck_assert_int_eq(traininground_timeout_seconds(&round), 0);
}

static const struct {
    const char *algorithm;
    const char *used;
} ALGORITHMS[] = { { "concat", "concat" },
                   { "trimmed-mean", "trimmed-mean" },
                   { "FedAvg", "fedavg" },
                   { "", "fedavg" },
                   { NULL, "fedavg" } };

TEST_EACH(an_unknown_algorithm_counts_as_fedavg, ALGORITHMS)
{
    struct aggregator aggregator = { .algorithm = ALGORITHMS[_i].algorithm };

    ck_assert_str_eq(aggregator_algorithm(&aggregator), ALGORITHMS[_i].used);
}

TEST(a_job_is_ours_unless_it_names_another_controller)
{
    struct propellerjob_spec spec = { 0 };

    ck_assert(propellerjob_is_ours(&spec));
    spec.managed_by = "";
    ck_assert(propellerjob_is_ours(&spec));
    spec.managed_by = "propeller.propeller.abstractmachines.fr/controller";
    ck_assert(propellerjob_is_ours(&spec));
    spec.managed_by = "example.com/queue";
    ck_assert(!propellerjob_is_ours(&spec));
}
