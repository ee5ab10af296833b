/* Validators of Proplet, PropellerJob, FederatedJob and TrainingRound, beyond webhook/tests/reviews. */
#include "common/base/str.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "common/tests/validate_fixture.h"

static const cJSON *with_spec(const char *kind, const char *spec_patch)
{
    return object_with(arena, kind, arena_printf(arena, "{\"spec\":%s}", spec_patch));
}

struct accepted {
    const char *kind;
    const char *patch;
};

static const struct accepted GOOD[] = {
    { "proplet", "{}" },
    { "proplet", "{\"type\":\"k8s\",\"k8s\":{\"image\":\"i\",\"replicas\":0,\"podTemplate\":{"
                 "\"spec\":{\"any\":[1]}}}}" },
    { "proplet", "{\"type\":\"k8s\",\"k8s\":{\"image\":\"i\",\"replicas\":100,"
                 "\"indexedClientIds\":true,\"logLevel\":\"debug\",\"pluginDir\":\"/p\"}}" },
    { "proplet", "{\"resources\":{\"cpu\":1,\"memory\":\"128Mi\",\"example.com/gpu\":\"1\"}}" },
    { "propellerjob", "{}" },
    { "propellerjob", "{\"taskRefs\":null,\"tasks\":[{\"name\":\"a\",\"imageUrl\":\"i\"},"
                      "{\"name\":\"b\",\"imageUrl\":\"i\",\"dependsOn\":[\"a\"]}]}" },
    /* the name of the job is no name of a task */
    { "propellerjob", "{\"tasks\":[{\"name\":\"x\",\"imageUrl\":\"i\"},{\"name\":\"b\","
                      "\"imageUrl\":\"i\",\"dependsOn\":[\"x\"]}]}" },
    { "federatedjob", "{}" },
    { "federatedjob", "{\"kOfN\":2,\"timeoutSeconds\":1,\"hyperparams\":{\"lr\":0.05},"
                      "\"aggregator\":{\"algorithm\":\"krum\",\"config\":{\"mu\":0.1}},"
                      "\"rounds\":{\"total\":1000000,\"strategy\":\"sequential\"}}" },
    { "federatedjob", "{\"modelRef\":\"\",\"lateUpdates\":\"StalenessWeighted\","
                      "\"historyLimit\":1,\"suspend\":true,\"aggregator\":{}}" },
    { "traininground", "{}" },
    { "traininground", "{\"kOfN\":1,\"hyperparams\":[1],\"timeoutSeconds\":600,"
                       "\"aggregator\":{\"algorithm\":\"\"}}" },
};

TEST_GROUP("validate", arena_set_up, arena_tear_down);

TEST_EACH(a_good_object_is_accepted_without_a_warning, GOOD)
{
    const cJSON *object = with_spec(GOOD[_i].kind, GOOD[_i].patch);

    ck_assert_str_eq(errors_of(arena, GOOD[_i].kind, object, NULL), "");
    ck_assert_str_eq(warnings_of(arena, GOOD[_i].kind, object, NULL), "");
}

#define KEY_ERROR                                                                                  \
    "spec.connectionConfig.clientKeySecretRef: Invalid value: exactly one of clientKey and "       \
    "clientKeySecretRef is needed"

static const struct {
    const char *kind;
    const char *patch;
    const char *errors;
} BAD[] = {
    { "proplet", "{\"connectionConfig\":{\"clientKey\":\"\"}}", KEY_ERROR },
    { "proplet", "{\"connectionConfig\":{\"mqttTimeout\":\"0s\"}}",
      "spec.connectionConfig.mqttTimeout: Invalid value: \"0s\": must be greater than 0" },
    { "proplet", "{\"connectionConfig\":{\"mqttTimeout\":\"99999999999999h\"}}",
      "spec.connectionConfig.mqttTimeout: Invalid value: \"99999999999999h\": is too long a "
      "duration" },
    { "proplet", "{\"external\":{\"heartbeatTimeout\":\"4s\"}}",
      "spec.external.heartbeatTimeout: Invalid value: \"4s\": must be from 5s to 24h" },
    { "proplet", "{\"external\":{\"heartbeatTimeout\":\"1441m\"}}",
      "spec.external.heartbeatTimeout: Invalid value: \"1441m\": must be from 5s to 24h" },
    { "federatedjob", "{\"checkpoint\":{\"interval\":\"25h\"}}",
      "spec.checkpoint.interval: Invalid value: \"25h\": must be at most 24h" },
    { "federatedjob", "{\"checkpoint\":{\"uri\":\"s3://b/exports/other/p\"}}",
      "spec.checkpoint.uri: Invalid value: \"s3://b/exports/other/p\": must be "
      "s3://BUCKET/exports/NAMESPACE/PATH with the namespace of the job or {namespace}, no empty "
      "part, no "
      "'.' or '..', no '%' and at most 512 characters" },
    { "propellerjob", "{\"faultTolerance\":{\"retryPausePeriod\":\"222badTime\"}}",
      "spec.faultTolerance.retryPausePeriod: Invalid value: \"222badTime\": must be a duration "
      "from 0s to "
      "24h" },
    { "propellerjob", "{\"faultTolerance\":{\"retryPausePeriod\":\"-1h\"}}",
      "spec.faultTolerance.retryPausePeriod: Invalid value: \"-1h\": must be a duration from 0s to "
      "24h" },
    { "propellerjob", "{\"faultTolerance\":{\"retryPausePeriod\":\"1e9h\"}}",
      "spec.faultTolerance.retryPausePeriod: Invalid value: \"1e9h\": must be a duration from 0s "
      "to "
      "24h" },
    { "propellerjob", "{\"faultTolerance\":{\"retryPausePeriod\":\"24h1ms\"}}",
      "spec.faultTolerance.retryPausePeriod: Invalid value: \"24h1ms\": must be a duration from 0s "
      "to "
      "24h" },
    { "propellerjob", "{\"faultTolerance\":{\"retryLimit\":101}}",
      "spec.faultTolerance.retryLimit: Invalid value: 101: spec.faultTolerance.retryLimit in body "
      "should be less than or equal to 100" },
    { "propellerjob", "{\"faultTolerance\":{\"retryLimit\":-1}}",
      "spec.faultTolerance.retryLimit: Invalid value: -1: spec.faultTolerance.retryLimit in body "
      "should be greater than or equal to 0" },
    { "task", "{\"checkpoint\":{\"interval\":\"9s\"}}",
      "spec.checkpoint.interval: Invalid value: \"9s\": must be from 10s to 24h" },
    { "task", "{\"checkpoint\":{\"interval\":\"1441m\"}}",
      "spec.checkpoint.interval: Invalid value: \"1441m\": must be from 10s to 24h" },
    { "task", "{\"broadcast\":true,\"checkpoint\":{}}",
      "spec.broadcast: Invalid value: true: broadcast and checkpoint exclude each other" },
    { "task", "{\"encrypted\":true,\"checkpoint\":{}}",
      "spec.encrypted: Invalid value: true: encrypted and checkpoint exclude each other" },
    { "proplet", "{\"connectionConfig\":{\"clientId\":null,\"domainId\":null}}",
      "[spec.connectionConfig.domainId: Required value, spec.connectionConfig.clientId: Required "
      "value]" },
    /* what does not fit the schema is not looked at by the rules */
    { "propellerjob",
      "{\"tasks\":[{\"name\":\"a\",\"imageUrl\":\"i\"},{\"name\":\"a\",\"schedule\":\"* *\"}]}",
      "spec.tasks[1]: Duplicate value: {\"name\":\"a\"}" },
};

TEST_EACH(a_bad_object_is_refused_field_by_field, BAD)
{
    ck_assert_str_eq(errors_of(arena, BAD[_i].kind, with_spec(BAD[_i].kind, BAD[_i].patch), NULL),
                     BAD[_i].errors);
}

static const struct {
    const char *kind;
    const char *patch;
    const char *warnings;
} ODD[] = {
    { "proplet", "{\"external\":{\"capabilities\":[\"a\",\"b\",\"a\"]}}",
      "spec.external.capabilities: an entry is there twice" },
    { "propellerjob", "{\"tasks\":[{\"name\":\"a\",\"imageUrl\":\"i\",\"runIf\":\"success\"}]}",
      "spec.tasks[0].runIf: without dependsOn it means nothing" },
    { "federatedjob",
      "{\"aggregator\":{\"config\":{\"trim\":0.5,\"byzantine\":-1,\"maxSamples\":\"9\",\"mu\":-1}}"
      "}",
      "spec.aggregator.config.maxSamples: must be an integer between 1 and 1000000000000, is not "
      "used | spec.aggregator.config.trim: must be a number of at least 0 and below 0.5, is not "
      "used "
      "| spec.aggregator.config.byzantine: must be an integer between 0 and 498, is not used | "
      "spec.aggregator.config.mu: must be a number of at least 0, is not used" },
    { "federatedjob", "{\"aggregator\":{\"algorithm\":\"krum\",\"config\":[1]}}",
      "spec.aggregator.config: must be an object, is not used" },
    { "federatedjob",
      "{\"aggregator\":{\"config\":{\"trim\":0,\"byzantine\":0,\"maxSamples\":1,\"mu\":0.01}}}",
      "" },
    { "federatedjob", "{\"participants\":[{\"propletId\":\"Device_1\"}]}",
      "spec.participants: no Proplet can have this name; is it a clientId?" },
    { "traininground", "{\"timeoutSeconds\":0,\"aggregator\":{\"algorithm\":\"best\"}}",
      "spec.timeoutSeconds: 0 is for ever: a round waits until enough participants answer | "
      "spec.aggregator.algorithm: not known, fedavg is used" },
    { "traininground", "{\"participants\":[\"a b\"]}",
      "spec.participants: no Proplet can have this name; is it a clientId?" },
};

TEST_EACH(what_runs_and_is_probably_wrong_is_accepted_with_a_warning, ODD)
{
    const cJSON *object = with_spec(ODD[_i].kind, ODD[_i].patch);

    ck_assert_str_eq(errors_of(arena, ODD[_i].kind, object, NULL), "");
    ck_assert_str_eq(warnings_of(arena, ODD[_i].kind, object, NULL), ODD[_i].warnings);
}

/* Whatever is wrong with a Proplet, its key is not in the answer. */
static const char *const KEYS[] = {
    "{\"clientKey\":\"planted\",\"clientKeySecretRef\":{\"name\":\"s\",\"key\":\"k\"}}",
    "{\"clientKey\":[\"planted\"]}",
    "{\"clientKey\":{\"planted\":\"planted\"}}",
    "{\"clientKey\":\"planted\",\"mqttQos\":7}",
    "{\"clientKey\":\"planted\",\"clientId\":\"a/b\",\"domainId\":null}",
};

TEST_EACH(no_error_repeats_the_client_key, KEYS)
{
    const cJSON *object =
        with_spec("proplet", arena_printf(arena, "{\"connectionConfig\":%s}", KEYS[_i]));
    const char *errors = errors_of(arena, "proplet", object, NULL);

    ck_assert_str_ne(errors, "");
    ck_assert_msg(!strstr(errors, "planted"), "%s", errors);
}

TEST(a_long_client_key_is_refused_unseen)
{
    char *key = arena_alloc(arena, 4098, 1);

    memset(key, 'k', 4097);
    ck_assert_str_eq(
        errors_of(
            arena, "proplet",
            with_spec("proplet",
                      arena_printf(arena, "{\"connectionConfig\":{\"clientKey\":\"%s\"}}", key)),
            NULL),
        "spec.connectionConfig.clientKey: Too long: may not be more than 4096 bytes");
}

/* The API server says of a string the first thing that is wrong. */
TEST(a_string_that_is_too_long_is_not_compared_with_its_pattern)
{
    char id[256] = { 0 };

    memset(id, '/', sizeof(id) - 1);
    ck_assert_str_eq(
        errors_of(
            arena, "proplet",
            with_spec("proplet",
                      arena_printf(arena, "{\"connectionConfig\":{\"clientId\":\"%s\"}}", id)),
            NULL),
        "spec.connectionConfig.clientId: Too long: may not be more than 253 bytes");
}

TEST(the_manager_of_a_job_cannot_change)
{
    static const char *const VALUES[] = { "null", "\"\"", "\"a\"", "\"b\"" };

    for (size_t i = 0; i < ARRAY_LEN(VALUES); i++) {
        for (size_t j = 0; j < ARRAY_LEN(VALUES); j++) {
            const cJSON *old =
                with_spec("propellerjob", arena_printf(arena, "{\"managedBy\":%s}", VALUES[i]));
            const cJSON *object =
                with_spec("propellerjob",
                          arena_printf(arena, "{\"suspend\":true,\"managedBy\":%s}", VALUES[j]));

            ck_assert_str_eq(errors_of(arena, "propellerjob", object, old),
                             i == j ? "" : "spec.managedBy: Forbidden: cannot change");
        }
    }
}

/* A job of tasks t0, t1, …, each as the format says with its number. */
static const cJSON *job_of(int count, const char *rest)
{
    const char *tasks = "";

    for (int i = 0; i < count; i++)
        tasks = arena_printf(arena, "%s%s{\"name\":\"t%d\"%s}", tasks, i ? "," : "", i, rest);
    return with_spec("propellerjob",
                     arena_printf(arena, "{\"taskRefs\":null,\"tasks\":[%s]}", tasks));
}

TEST(a_job_may_have_as_many_tasks_as_the_limit)
{
    ck_assert_str_eq(errors_of(arena, "propellerjob", job_of(1000, ",\"imageUrl\":\"i\""), NULL),
                     "");
    ck_assert_str_eq(errors_of(arena, "propellerjob", job_of(1001, ",\"imageUrl\":\"i\""), NULL),
                     "spec.tasks: Too many: 1001: must have at most 1000 items");
}

TEST(the_files_of_a_job_may_be_as_large_together_as_the_limit)
{
    char *module = arena_alloc(arena, 524289, 1);

    memset(module, 'A', 524288);
    memcpy(module, "AGFzbQEA", 8);

    const char *file = arena_printf(arena, ",\"file\":\"%s\"", module);

    ck_assert_str_eq(errors_of(arena, "propellerjob", job_of(2, file), NULL), "");
    ck_assert_str_eq(errors_of(arena, "propellerjob", job_of(3, file), NULL),
                     "spec.tasks: Invalid value: the inline files have more than 1 MiB together");
}

TEST(deletion_is_never_refused)
{
    static const char *const KINDS[] = { "proplet", "propellerjob", "federatedjob", "traininground",
                                         "enrollment" };
    const char *patch = "{\"spec\":{\"type\":\"k8s\",\"taskRefs\":7,\"kOfN\":99},"
                        "\"metadata\":{\"deletionTimestamp\":\"2026-11-21T10:00:00Z\"}}";

    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
        const cJSON *old = object_with(arena, KINDS[i], NULL);
        const cJSON *object = object_with(arena, KINDS[i], patch);

        ck_assert_str_eq(errors_of(arena, KINDS[i], object, old), "");
        ck_assert_str_eq(errors_of(arena, KINDS[i], object, NULL), "");
    }
}
