/* Validators of Proplet, PropellerJob, FederatedJob and TrainingRound. */
#include "common/base/str.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "common/tests/validate_fixture.h"

static struct arena *arena;

static void setup(void)
{
    json_init();
    arena = arena_create();
}

static void teardown(void)
{
    arena_destroy(arena);
}

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
    { "proplet", "{\"connectionConfig\":{\"clientKey\":null,\"clientKeySecretRef\":{\"name\":\"s\","
                 "\"key\":\"k\",\"optional\":true}}}" },
    { "proplet", "{\"connectionConfig\":{\"clientKey\":\"\",\"clientKeySecretRef\":{\"name\":\"s\","
                 "\"key\":\"k\"}}}" },
    { "proplet", "{\"connectionConfig\":{\"domainId\":\"<your-domain-id>\",\"mqttAddress\":"
                 "\"tcp://<your-mqtt-broker>:1883\"}}" },
    { "proplet", "{\"connectionConfig\":{\"mqttQos\":2,\"mqttTimeout\":\"1m0s\"}}" },
    { "proplet", "{\"type\":\"k8s\",\"k8s\":{\"image\":\"i\",\"replicas\":0,\"podTemplate\":{"
                 "\"spec\":{\"any\":[1]}}}}" },
    { "proplet", "{\"type\":\"k8s\",\"k8s\":{\"image\":\"i\",\"replicas\":100,"
                 "\"indexedClientIds\":true,\"logLevel\":\"debug\",\"pluginDir\":\"/p\"}}" },
    { "proplet", "{\"resources\":{\"cpu\":1,\"memory\":\"128Mi\",\"example.com/gpu\":\"1\"}}" },
    { "proplet", "{\"external\":{\"deviceType\":\"t\",\"capabilities\":[\"a\",\"b\"],"
                 "\"dialect\":\"embedded\",\"maxTasks\":1}}" },
    { "proplet", "{\"unschedulable\":true}" },
    { "propellerjob", "{}" },
    { "propellerjob", "{\"taskRefs\":null,\"tasks\":[{\"name\":\"a\",\"imageUrl\":\"i\"},"
                      "{\"name\":\"b\",\"imageUrl\":\"i\",\"dependsOn\":[\"a\"]}]}" },
    { "propellerjob", "{\"executionMode\":\"sequential\",\"tasks\":[{\"name\":\"a\",\"imageUrl\":"
                      "\"i\"},{\"name\":\"b\",\"imageUrl\":\"i\",\"dependsOn\":[\"a\"]}]}" },
    /* a diamond: b and c wait for a, d for both */
    { "propellerjob", "{\"tasks\":[{\"name\":\"d\",\"imageUrl\":\"i\",\"dependsOn\":[\"b\",\"c\"]},"
                      "{\"name\":\"c\",\"imageUrl\":\"i\",\"dependsOn\":[\"a\"]},"
                      "{\"name\":\"b\",\"imageUrl\":\"i\",\"dependsOn\":[\"a\"]},"
                      "{\"name\":\"a\",\"imageUrl\":\"i\"}]}" },
    { "propellerjob", "{\"managedBy\":\"example.com/queue\"}" },
    { "propellerjob", "{\"parallelism\":1,\"backoffLimit\":0,\"activeDeadlineSeconds\":1,"
                      "\"ttlSecondsAfterFinished\":0,\"failurePolicy\":\"Continue\"}" },
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

START_TEST(a_good_object_is_accepted_without_a_warning)
{
    const cJSON *object = with_spec(GOOD[_i].kind, GOOD[_i].patch);

    ck_assert_str_eq(errors_of(arena, GOOD[_i].kind, object, NULL), "");
    ck_assert_str_eq(warnings_of(arena, GOOD[_i].kind, object, NULL), "");
}
END_TEST

#define KEY_ERROR                                                                                  \
    "spec.connectionConfig.clientKeySecretRef: Invalid value: exactly one of clientKey and "       \
    "clientKeySecretRef is needed"
#define TOPIC_ERROR "must not contain /, + or #"

static const struct {
    const char *kind;
    const char *patch;
    const char *errors;
} BAD[] = {
    { "proplet", "{\"type\":null}", "spec.type: Required value" },
    { "proplet", "{\"type\":\"edge\"}",
      "spec.type: Unsupported value: \"edge\": supported values: \"k8s\", \"external\"" },
    { "proplet", "{\"type\":\"k8s\"}",
      "spec.k8s: Required value: a Proplet of type k8s needs k8s" },
    { "proplet", "{\"k8s\":{}}", "spec.k8s.image: Required value" },
    { "proplet", "{\"k8s\":{\"image\":\"\"}}",
      "spec.k8s.image: Invalid value: \"\": must not be empty" },
    { "proplet", "{\"k8s\":{\"image\":\"i\",\"replicas\":101}}",
      "spec.k8s.replicas: Invalid value: 101: must be between 0 and 100" },
    { "proplet", "{\"k8s\":{\"image\":\"i\",\"logLevel\":\"loud\"}}",
      "spec.k8s.logLevel: Unsupported value: \"loud\": supported values: \"info\", \"debug\", "
      "\"warn\", \"error\"" },
    { "proplet", "{\"k8s\":{\"image\":\"i\",\"podTemplate\":[]}}",
      "spec.k8s.podTemplate: Invalid value: \"array\": must be an object" },
    { "proplet", "{\"connectionConfig\":null}", "spec.connectionConfig: Required value" },
    { "proplet", "{\"connectionConfig\":{\"clientId\":null,\"domainId\":null}}",
      "[spec.connectionConfig.domainId: Required value, spec.connectionConfig.clientId: Required "
      "value]" },
    { "proplet", "{\"connectionConfig\":{\"clientId\":\"\"}}",
      "spec.connectionConfig.clientId: Invalid value: \"\": must not be empty" },
    { "proplet", "{\"connectionConfig\":{\"clientId\":\"a/b\"}}",
      "spec.connectionConfig.clientId: Invalid value: \"a/b\": " TOPIC_ERROR },
    { "proplet", "{\"connectionConfig\":{\"channelId\":\"a+\"}}",
      "spec.connectionConfig.channelId: Invalid value: \"a+\": " TOPIC_ERROR },
    { "proplet", "{\"connectionConfig\":{\"domainId\":\"#\"}}",
      "spec.connectionConfig.domainId: Invalid value: \"#\": " TOPIC_ERROR },
    { "proplet", "{\"connectionConfig\":{\"mqttAddress\":\"http://b\"}}",
      "spec.connectionConfig.mqttAddress: Invalid value: \"http://b\": must begin with tcp://, "
      "mqtt://, ssl://, tls:// or mqtts://" },
    { "proplet", "{\"connectionConfig\":{\"mqttQos\":3}}",
      "spec.connectionConfig.mqttQos: Invalid value: 3: must be between 0 and 2" },
    { "proplet", "{\"connectionConfig\":{\"mqttTimeout\":\"0s\"}}",
      "spec.connectionConfig.mqttTimeout: Invalid value: \"0s\": must be greater than 0" },
    { "proplet", "{\"connectionConfig\":{\"mqttTimeout\":\"-1s\"}}",
      "spec.connectionConfig.mqttTimeout: Invalid value: \"-1s\": must be a duration, for example "
      "1m30s" },
    { "proplet", "{\"connectionConfig\":{\"clientKey\":null}}", KEY_ERROR },
    { "proplet", "{\"connectionConfig\":{\"clientKey\":\"\"}}", KEY_ERROR },
    { "proplet", "{\"connectionConfig\":{\"clientKeySecretRef\":{\"name\":\"s\",\"key\":\"k\"}}}",
      KEY_ERROR },
    { "proplet",
      "{\"connectionConfig\":{\"clientKey\":null,\"clientKeySecretRef\":{\"name\":"
      "\"\"}}}",
      "[spec.connectionConfig.clientKeySecretRef.name: Invalid value: \"\": must not be empty, "
      "spec.connectionConfig.clientKeySecretRef.key: Required value]" },
    { "proplet", "{\"connectionConfig\":{\"clientKey\":[\"planted\"]}}",
      "spec.connectionConfig.clientKey: Invalid value: \"array\": must be a string" },
    { "proplet", "{\"external\":{\"dialect\":\"zephyr\"}}",
      "spec.external.dialect: Unsupported value: \"zephyr\": supported values: \"standard\", "
      "\"embedded\"" },
    { "proplet", "{\"external\":{\"maxTasks\":0}}",
      "spec.external.maxTasks: Invalid value: 0: must be between 1 and 2147483647" },
    { "proplet", "{\"resources\":{\"cpu\":\"-1\",\"memory\":\"lots\"}}",
      "[spec.resources.cpu: Invalid value: \"-1\": must be a quantity without a sign, "
      "spec.resources.memory: Invalid value: \"lots\": must be a quantity, for example 500m or "
      "1Gi]" },
    { "propellerjob", "{\"taskRefs\":null}",
      "spec.tasks: Required value: at least one of tasks and taskRefs is needed" },
    { "propellerjob", "{\"taskRefs\":[],\"tasks\":[]}",
      "spec.tasks: Required value: at least one of tasks and taskRefs is needed" },
    { "propellerjob",
      "{\"tasks\":[{\"name\":\"a\",\"imageUrl\":\"i\"},{\"name\":\"a\","
      "\"imageUrl\":\"j\"}]}",
      "spec.tasks[1]: Duplicate value: \"a\"" },
    { "propellerjob", "{\"tasks\":[{\"name\":\"a\",\"imageUrl\":\"i\",\"dependsOn\":[\"a\"]}]}",
      "spec.tasks[0].dependsOn[0]: Invalid value: \"a\": a task cannot depend on itself" },
    { "propellerjob", "{\"tasks\":[{\"name\":\"a\",\"imageUrl\":\"i\",\"dependsOn\":[\"z\"]}]}",
      "spec.tasks[0].dependsOn[0]: Invalid value: \"z\": must be the name of a task of this job" },
    { "propellerjob",
      "{\"tasks\":[{\"name\":\"a\",\"imageUrl\":\"i\",\"dependsOn\":[\"b\"]},"
      "{\"name\":\"b\",\"imageUrl\":\"i\",\"dependsOn\":[\"a\"]}]}",
      "spec.tasks: Invalid value: tasks wait for each other in a circle: a -> b -> a" },
    { "propellerjob",
      "{\"executionMode\":\"parallel\",\"tasks\":["
      "{\"name\":\"e\",\"imageUrl\":\"i\",\"dependsOn\":[\"c\"]},"
      "{\"name\":\"a\",\"imageUrl\":\"i\",\"dependsOn\":[\"b\"]},"
      "{\"name\":\"b\",\"imageUrl\":\"i\",\"dependsOn\":[\"c\"]},"
      "{\"name\":\"c\",\"imageUrl\":\"i\",\"dependsOn\":[\"f\",\"a\"]},"
      "{\"name\":\"f\",\"imageUrl\":\"i\"}]}",
      "spec.tasks: Invalid value: tasks wait for each other in a circle: c -> a -> b -> c" },
    { "propellerjob",
      "{\"executionMode\":\"sequential\",\"tasks\":[{\"name\":\"a\",\"imageUrl\":"
      "\"i\",\"dependsOn\":[\"b\"]},{\"name\":\"b\",\"imageUrl\":\"i\"}]}",
      "spec.tasks[0].dependsOn[0]: Invalid value: \"b\": a task of a sequential job cannot depend "
      "on a later one" },
    { "propellerjob", "{\"tasks\":[{\"name\":\"a\"}]}",
      "spec.tasks[0].imageUrl: Required value: one of file and imageUrl is needed" },
    { "propellerjob",
      "{\"tasks\":[{\"name\":\"a\",\"imageUrl\":\"i\"},{\"imageUrl\":\"i\","
      "\"priority\":200,\"schedule\":\"* *\"}]}",
      "[spec.tasks[1].name: Required value, spec.tasks[1].priority: Invalid value: 200: must be "
      "between 0 and 100, spec.tasks[1].schedule: Invalid value: \"* *\": must have five fields: "
      "minute, hour, day, month, day of the week]" },
    { "propellerjob", "{\"tasks\":[null]}",
      "spec.tasks[0]: Invalid value: \"null\": must be an object" },
    { "propellerjob", "{\"tasks\":{}}", "spec.tasks: Invalid value: \"object\": must be an array" },
    { "propellerjob", "{\"executionMode\":\"random\"}",
      "spec.executionMode: Unsupported value: \"random\": supported values: \"configurable\", "
      "\"parallel\", \"sequential\"" },
    { "propellerjob", "{\"failurePolicy\":\"Stop\"}",
      "spec.failurePolicy: Unsupported value: \"Stop\": supported values: \"FailFast\", "
      "\"Continue\"" },
    { "propellerjob", "{\"parallelism\":0}",
      "spec.parallelism: Invalid value: 0: must be between 1 and 2147483647" },
    { "federatedjob", "{\"taskWasmImage\":null,\"experimentId\":\"\"}",
      "[spec.experimentId: Invalid value: \"\": must not be empty, spec.taskWasmImage: Required "
      "value]" },
    { "federatedjob", "{\"participants\":[]}",
      "spec.participants: Invalid value: must not be empty" },
    { "federatedjob", "{\"participants\":null}", "spec.participants: Required value" },
    { "federatedjob", "{\"participants\":[{\"propletId\":\"a\"},{\"propletId\":\"a\"}]}",
      "spec.participants[1]: Duplicate value: \"a\"" },
    { "federatedjob", "{\"participants\":[{}]}", "spec.participants[0].propletId: Required value" },
    { "federatedjob", "{\"participants\":[\"a\"]}",
      "spec.participants[0]: Invalid value: \"string\": must be an object" },
    { "federatedjob", "{\"kOfN\":3}",
      "spec.kOfN: Invalid value: 3: must not be more than the number of participants" },
    { "federatedjob", "{\"kOfN\":0}", "spec.kOfN: Invalid value: 0: must be between 1 and 1000" },
    { "federatedjob", "{\"rounds\":{\"total\":0}}",
      "spec.rounds.total: Invalid value: 0: must be between 1 and 1000000" },
    { "federatedjob", "{\"rounds\":{\"total\":null}}", "spec.rounds.total: Required value" },
    { "federatedjob", "{\"timeoutSeconds\":-1}",
      "spec.timeoutSeconds: Invalid value: -1: must be between 0 and 2147483647" },
    { "federatedjob", "{\"lateUpdates\":\"Keep\"}",
      "spec.lateUpdates: Unsupported value: \"Keep\": supported values: \"Drop\", "
      "\"StalenessWeighted\"" },
    { "federatedjob", "{\"aggregator\":\"fedavg\"}",
      "spec.aggregator: Invalid value: \"string\": must be an object" },
    { "traininground", "{\"participants\":[\"a\",\"a\"]}",
      "spec.participants[1]: Duplicate value: \"a\"" },
    { "traininground", "{\"kOfN\":3}",
      "spec.kOfN: Invalid value: 3: must not be more than the number of participants" },
    { "traininground", "{\"federatedJobRef\":{\"name\":null}}",
      "spec.federatedJobRef.name: Required value" },
    { "traininground", "{\"roundId\":null}", "spec.roundId: Required value" },
};

START_TEST(a_bad_object_is_refused_field_by_field)
{
    ck_assert_str_eq(errors_of(arena, BAD[_i].kind, with_spec(BAD[_i].kind, BAD[_i].patch), NULL),
                     BAD[_i].errors);
}
END_TEST

static const struct {
    const char *kind;
    const char *patch;
    const char *warnings;
} ODD[] = {
    { "proplet", "{\"k8s\":{\"image\":\"i\"}}",
      "spec.k8s: a Proplet of type external does not use it" },
    { "proplet", "{\"type\":\"k8s\",\"k8s\":{\"image\":\"i\"},\"external\":{}}",
      "spec.external: a Proplet of type k8s does not use it" },
    { "proplet", "{\"type\":\"k8s\",\"k8s\":{\"image\":\"i\",\"replicas\":2}}",
      "spec.k8s.replicas: the pods share one MQTT client id and throw each other off the broker, "
      "unless indexedClientIds is true; only Jobs will run there" },
    { "proplet", "{\"external\":{\"capabilities\":[\"a\",\"b\",\"a\"]}}",
      "spec.external.capabilities: an entry is there twice" },
    { "proplet", "{\"connectionConfig\":{\"mqttQos\":0}}",
      "spec.connectionConfig.mqttQos: 0: results sent while nobody listens are lost" },
    { "propellerjob", "{\"taskRefs\":[\"a\",\"a\"]}", "spec.taskRefs: an entry is there twice" },
    { "propellerjob", "{\"executionMode\":\"sequential\",\"parallelism\":2}",
      "spec.parallelism: a sequential job runs one task at a time" },
    { "propellerjob",
      "{\"tasks\":[{\"name\":\"a\",\"imageUrl\":\"i\",\"isRecurring\":true,"
      "\"schedule\":\"@daily\"}]}",
      "spec.tasks[0].isRecurring: the job counts its first run; the task goes on to recur" },
    { "propellerjob", "{\"tasks\":[{\"name\":\"a\",\"imageUrl\":\"i\",\"runIf\":\"success\"}]}",
      "spec.tasks[0].runIf: without dependsOn it means nothing" },
    { "federatedjob", "{\"timeoutSeconds\":0}",
      "spec.timeoutSeconds: 0 is for ever: a round waits until enough participants answer" },
    { "federatedjob", "{\"rounds\":{\"strategy\":\"random\"}}",
      "spec.rounds.strategy: not known, sequential is used" },
    { "federatedjob", "{\"aggregator\":{\"algorithm\":\"best\"}}",
      "spec.aggregator.algorithm: not known, fedavg is used" },
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

START_TEST(what_runs_and_is_probably_wrong_is_accepted_with_a_warning)
{
    const cJSON *object = with_spec(ODD[_i].kind, ODD[_i].patch);

    ck_assert_str_eq(errors_of(arena, ODD[_i].kind, object, NULL), "");
    ck_assert_str_eq(warnings_of(arena, ODD[_i].kind, object, NULL), ODD[_i].warnings);
}
END_TEST

/* Whatever is wrong with a Proplet, its key is not in the answer. */
static const char *const KEYS[] = {
    "{\"clientKey\":\"planted\",\"clientKeySecretRef\":{\"name\":\"s\",\"key\":\"k\"}}",
    "{\"clientKey\":[\"planted\"]}",
    "{\"clientKey\":{\"planted\":\"planted\"}}",
    "{\"clientKey\":\"planted\",\"mqttQos\":7}",
    "{\"clientKey\":\"planted\",\"clientId\":\"a/b\",\"domainId\":null}",
};

START_TEST(no_error_repeats_the_client_key)
{
    const cJSON *object =
        with_spec("proplet", arena_printf(arena, "{\"connectionConfig\":%s}", KEYS[_i]));
    const char *errors = errors_of(arena, "proplet", object, NULL);

    ck_assert_str_ne(errors, "");
    ck_assert_msg(!strstr(errors, "planted"), "%s", errors);
}
END_TEST

START_TEST(a_long_client_key_is_refused_unseen)
{
    char *key = arena_alloc(arena, 4098, 1);

    memset(key, 'k', 4097);
    ck_assert_str_eq(
        errors_of(
            arena, "proplet",
            with_spec("proplet",
                      arena_printf(arena, "{\"connectionConfig\":{\"clientKey\":\"%s\"}}", key)),
            NULL),
        "spec.connectionConfig.clientKey: Too long: may not be more than 4096 characters");
}
END_TEST

START_TEST(the_type_of_a_proplet_cannot_change)
{
    const cJSON *external = with_spec("proplet", "{\"k8s\":{\"image\":\"i\"}}");
    const cJSON *k8s = with_spec("proplet", "{\"type\":\"k8s\",\"k8s\":{\"image\":\"i\"}}");

    ck_assert_str_eq(errors_of(arena, "proplet", k8s, external), "spec.type: Forbidden: cannot "
                                                                 "change");
    ck_assert_str_eq(errors_of(arena, "proplet", external, k8s), "spec.type: Forbidden: cannot "
                                                                 "change");
    ck_assert_str_eq(
        errors_of(arena, "proplet", with_spec("proplet", "{\"unschedulable\":true}"), external),
        "");
}
END_TEST

START_TEST(the_identity_of_a_device_cannot_change)
{
    static const char *const FIELDS[] = { "domainId", "channelId", "clientId" };
    const cJSON *old = object_with(arena, "proplet", NULL);

    for (size_t i = 0; i < ARRAY_LEN(FIELDS); i++) {
        const cJSON *object = with_spec(
            "proplet", arena_printf(arena, "{\"connectionConfig\":{\"%s\":\"new\"}}", FIELDS[i]));

        ck_assert_str_eq(errors_of(arena, "proplet", object, old),
                         arena_printf(arena,
                                      "spec.connectionConfig.%s: Forbidden: cannot change, it is "
                                      "the identity of the device",
                                      FIELDS[i]));
    }
    ck_assert_str_eq(
        errors_of(arena, "proplet",
                  with_spec("proplet", "{\"connectionConfig\":{\"clientKey\":\"other\","
                                       "\"mqttAddress\":\"mqtts://b\"}}"),
                  old),
        "");
}
END_TEST

START_TEST(the_manager_of_a_job_cannot_change)
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
END_TEST

/* A job of tasks t0, t1, …, each as the format says with its number. */
static const cJSON *job_of(int count, const char *rest)
{
    const char *tasks = "";

    for (int i = 0; i < count; i++)
        tasks = arena_printf(arena, "%s%s{\"name\":\"t%d\"%s}", tasks, i ? "," : "", i, rest);
    return with_spec("propellerjob",
                     arena_printf(arena, "{\"taskRefs\":null,\"tasks\":[%s]}", tasks));
}

START_TEST(a_job_may_have_as_many_tasks_as_the_limit)
{
    ck_assert_str_eq(errors_of(arena, "propellerjob", job_of(1000, ",\"imageUrl\":\"i\""), NULL),
                     "");
    ck_assert_str_eq(errors_of(arena, "propellerjob", job_of(1001, ",\"imageUrl\":\"i\""), NULL),
                     "spec.tasks: Too many: must have at most 1000 items");
}
END_TEST

START_TEST(the_files_of_a_job_may_be_as_large_together_as_the_limit)
{
    char *module = arena_alloc(arena, 524289, 1);

    memset(module, 'A', 524288);
    memcpy(module, "AGFzbQEA", 8);

    const char *file = arena_printf(arena, ",\"file\":\"%s\"", module);

    ck_assert_str_eq(errors_of(arena, "propellerjob", job_of(2, file), NULL), "");
    ck_assert_str_eq(errors_of(arena, "propellerjob", job_of(3, file), NULL),
                     "spec.tasks: Invalid value: the inline files have more than 1 MiB together");
}
END_TEST

START_TEST(deletion_is_never_refused)
{
    static const char *const KINDS[] = { "proplet", "propellerjob", "federatedjob",
                                         "traininground" };
    const char *patch = "{\"spec\":{\"type\":\"k8s\",\"taskRefs\":7,\"kOfN\":99},"
                        "\"metadata\":{\"deletionTimestamp\":\"2026-11-21T10:00:00Z\"}}";

    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
        const cJSON *old = object_with(arena, KINDS[i], NULL);
        const cJSON *object = object_with(arena, KINDS[i], patch);

        ck_assert_str_eq(errors_of(arena, KINDS[i], object, old), "");
        ck_assert_str_eq(errors_of(arena, KINDS[i], object, NULL), "");
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("validate");
    TCase *tc = tcase_create("validate");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, a_good_object_is_accepted_without_a_warning, 0, (int)ARRAY_LEN(GOOD));
    tcase_add_loop_test(tc, a_bad_object_is_refused_field_by_field, 0, (int)ARRAY_LEN(BAD));
    tcase_add_loop_test(tc, what_runs_and_is_probably_wrong_is_accepted_with_a_warning, 0,
                        (int)ARRAY_LEN(ODD));
    tcase_add_loop_test(tc, no_error_repeats_the_client_key, 0, (int)ARRAY_LEN(KEYS));
    tcase_add_test(tc, a_long_client_key_is_refused_unseen);
    tcase_add_test(tc, the_type_of_a_proplet_cannot_change);
    tcase_add_test(tc, the_identity_of_a_device_cannot_change);
    tcase_add_test(tc, the_manager_of_a_job_cannot_change);
    tcase_add_test(tc, a_job_may_have_as_many_tasks_as_the_limit);
    tcase_add_test(tc, the_files_of_a_job_may_be_as_large_together_as_the_limit);
    tcase_add_test(tc, deletion_is_never_refused);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
