/* The validator of Tasks, beyond webhook/tests/reviews. */
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "common/tests/validate_fixture.h"

/* Merge patches of the spec of a new Task. */
static const char *const GOOD[] = {
    "{}",
    "{\"priority\":1e1}",
    "{\"inputs\":[1.5,9007199254740993,\"x\",-3,\"\"]}",
    "{\"encrypted\":true}",
    "{\"propletSelector\":{\"propletId\":\"p\",\"matchDeviceTypes\":[\"x\"]}}",
    "{\"propletSelector\":{\"matchCapabilities\":[\"y\"]}}",
    "{\"isRecurring\":true,\"schedule\":\"0 * * * *\",\"timezone\":\"UTC\"}",
    "{\"schedule\":\"@every 90s\"}",
    "{\"schedule\":\"\",\"timezone\":\"\"}",
    "{\"daemon\":true,\"restartPolicy\":\"Always\"}",
    "{\"restartPolicy\":\"OnFailure\"}",
    "{\"resourceRequirements\":{\"cpu\":\"500m\",\"memory\":\"1Gi\",\"custom\":{\"gpu\":1}}}",
    "{\"monitoringProfile\":{\"enabled\":true,\"interval\":\"1m0s\",\"historySize\":5}}",
    "{\"broadcast\":true,\"broadcastQuorum\":500}",
    "{\"unknown\":{\"is\":\"dropped by the API server\"}}",
};

static const struct {
    const char *patch;
    const char *errors;
} BAD[] = {
    { "{\"file\":\"\"}",
      "spec.file: Invalid value: must be a WebAssembly module, which begins with "
      "the bytes 00 61 73 6d" },
    { "{\"file\":\"AGFz bQEAAAA=\"}", "spec.file: Invalid value: must be base64 with padding" },
    { "{\"inputs\":[{\"a\":1},[1]]}",
      "[spec.inputs[0]: Invalid value: must be a string or a number, spec.inputs[1]: Invalid "
      "value: must be a string or a number]" },
    { "{\"isRecurring\":true,\"schedule\":\"\"}",
      "spec.schedule: Required value: isRecurring needs a schedule" },
    { "{\"schedule\":\"61 * * * *\"}", "spec.schedule: Invalid value: \"61 * * * *\": minute '61' "
                                       "must be between 0 and 59" },
    { "{\"schedule\":\"0 * * * *\",\"timezone\":\"Mars/Olympus\"}",
      "spec.timezone: Invalid value: \"Mars/Olympus\": must be a time zone of the IANA database, "
      "for example Europe/Paris" },
    { "{\"schedule\":\"0 * * * *\",\"timezone\":\"../../etc/passwd\"}",
      "spec.timezone: Invalid value: \"../../etc/passwd\": must be a time zone of the IANA "
      "database, "
      "for example Europe/Paris" },
};

static const cJSON *task_with(const char *spec_patch)
{
    return object_with(arena, "task", arena_printf(arena, "{\"spec\":%s}", spec_patch));
}

TEST_GROUP("task_validate", arena_set_up, arena_tear_down);

TEST_EACH(a_good_task_is_accepted, GOOD)
{
    ck_assert_str_eq(errors_of(arena, "task", task_with(GOOD[_i]), NULL), "");
}

TEST_EACH(a_bad_task_is_refused_field_by_field, BAD)
{
    ck_assert_str_eq(errors_of(arena, "task", task_with(BAD[_i].patch), NULL), BAD[_i].errors);
}

TEST(a_task_without_a_spec_is_refused)
{
    ck_assert_str_eq(errors_of(arena, "task", parsed(arena, "{}"), NULL), "spec: Required value");
    ck_assert_str_eq(errors_of(arena, "task", parsed(arena, "{\"spec\":null}"), NULL),
                     "spec: Required value");
    ck_assert_str_eq(
        errors_of(arena, "task", parsed(arena, "{\"spec\":7}"), NULL),
        "spec: Invalid value: \"integer\": spec in body must be of type object: \"integer\"");
}

/* "<start>aaaa…<end>" with so many a. */
static const char *patch_of_length(const char *start, size_t count, const char *end)
{
    char *filling = arena_alloc(arena, count + 1, 1);

    memset(filling, 'a', count);
    return arena_printf(arena, "%s%s%s", start, filling, end);
}

/* The API server prunes them before the webhook sees an object; other callers may not. */
TEST(null_counts_as_absent)
{
    ck_assert_str_eq(
        errors_of(arena, "task",
                  parsed(arena, "{\"spec\":{\"name\":\"t\",\"imageUrl\":\"i\",\"priority\":null}}"),
                  NULL),
        "");
    ck_assert_str_eq(errors_of(arena, "task",
                               parsed(arena, "{\"spec\":{\"name\":null,\"imageUrl\":\"i\"}}"),
                               NULL),
                     "spec.name: Required value");
}

/* Base64 of a module with so many characters, a multiple of 4. */
static const char *module_patch(size_t characters)
{
    char *text = arena_alloc(arena, characters + 1, 1);

    memset(text, 'A', characters);
    memcpy(text, "AGFzbQEA", 8);
    return arena_printf(arena, "{\"file\":\"%s\"}", text);
}

TEST(a_module_may_be_as_large_as_the_limit)
{
    const char *error = "spec.file: Too long: may not be more than 716800 bytes";

    ck_assert_str_eq(errors_of(arena, "task", task_with(module_patch(716800)), NULL), "");
    ck_assert_str_eq(errors_of(arena, "task", task_with(module_patch(716804)), NULL), error);
}

TEST(the_limit_of_modules_can_be_lowered)
{
    struct validation validation = { .arena = arena,
                                     .object = task_with(module_patch(1000)),
                                     .max_inline_wasm = 999,
                                     .errors = field_errors_create(arena) };

    task_validate(&validation);
    ck_assert_uint_eq(field_errors_count(validation.errors), 1);
    validation.max_inline_wasm = 1000;
    validation.errors = field_errors_create(arena);
    task_validate(&validation);
    ck_assert_uint_eq(field_errors_count(validation.errors), 0);
}

TEST(no_error_repeats_environment_or_module)
{
    static const char *const SECRETS[] = {
        "{\"env\":{\"A\":[\"planted\"]}}",
        "{\"env\":{\"A\":{\"planted\":\"planted\"}}}",
        "{\"file\":\"planted\"}",
        "{\"file\":[\"planted\"]}",
    };

    for (size_t i = 0; i < ARRAY_LEN(SECRETS); i++) {
        const char *errors = errors_of(arena, "task", task_with(SECRETS[i]), NULL);

        ck_assert_msg(*errors && !strstr(errors, "planted"), "%s: %s", SECRETS[i], errors);
    }

    const char *errors =
        errors_of(arena, "task",
                  task_with(patch_of_length("{\"env\":{\"A\":\"planted", 66000, "\"}}")), NULL);
    ck_assert_str_eq(errors, "spec.env.A: Too long: may not be more than 65536 bytes");
}

/* --- warnings --------------------------------------------------------------------------------- */

#define NO_RESOURCE                                                                                \
    "spec.resourceRequirements.custom: a name is no resource of a container, and its pod is "      \
    "refused: such as example.com/camera"

#define NO_METRICS                                                                                 \
    "spec.activeDeadlineSeconds: devices send no metrics of this Task, so that a lost start is "   \
    "not noticed: without a deadline the Task stays running although nothing runs"

#define NOT_LIMITED "spec.resourceRequirements: devices do not limit a Task: only a Job has them"

#define NOT_REPEATED                                                                               \
    "spec.restartPolicy: OnFailure alone repeats nothing: backoffLimit is the number of retries, " \
    "and it is 0"

#define ALWAYS_RESTARTED                                                                           \
    "spec.restartPolicy: in the cluster a daemon is a Deployment, which always restarts its pod"

#define MODULE_REFERENCE "\"imageUrl\":\"registry.example/a:1\""

static const struct {
    const char *patch;
    const char *warnings;
} ODD[] = {
    { "{}", "" },
    { "{\"file\":\"AGFzbQEAAAA=\",\"preferredPropletType\":\"k8s\"}", "" },
    { "{\"file\":\"AGFzbQ0AAQA=\"}", "" },
    { "{\"file\":\"AGFzbQ==\"}",
      "spec.file: neither a WebAssembly module of version 1 nor a component" },
    { "{\"env\":{\"A\":\"\",\"a.b-C_9\":\"\"}}", "" },
    { "{\"env\":{\"odd name\":\"\",\"9\":\"\"}}",
      "spec.env: a name has other characters than letters, digits, _, . and -, or begins with a "
      "digit" },
    { "{\"env\":{\"\":\"\"}}",
      "spec.env: a name has other characters than letters, digits, _, . and -, or begins with a "
      "digit" },
    { "{\"dependsOn\":[\"a\",\"b\",\"a\"]}", "spec.dependsOn: an entry is there twice" },
    { "{\"concurrencyPolicy\":\"Replace\",\"startingDeadlineSeconds\":5}",
      "spec.concurrencyPolicy: without isRecurring it means nothing | "
      "spec.startingDeadlineSeconds: without isRecurring it means nothing" },
    { "{\"isRecurring\":true,\"schedule\":\"@daily\",\"concurrencyPolicy\":\"Replace\","
      "\"startingDeadlineSeconds\":10,\"historyLimit\":1}",
      "" },
    { "{\"kbsResourcePath\":\"k\"}", "spec.kbsResourcePath: without encrypted it means nothing" },
    { "{\"encrypted\":true,\"kbsResourcePath\":\"k\",\"preferredPropletType\":"
      "\"external\"," MODULE_REFERENCE "}",
      "" },
    { "{\"preferredPropletType\":\"external\"}",
      "spec.imageUrl: must name its registry, such as registry.example/acme/add:1" },
    { "{\"propletSelector\":{\"matchLabels\":{\"a.b/c_d\":\"E.f-9\",\"e\":\"\"}}}", "" },
    { "{\"propletSelector\":{\"matchLabels\":{\"a b\":\"\"}}}",
      "spec.propletSelector.matchLabels: no Proplet can carry such a label" },
    { "{\"propletSelector\":{\"matchLabels\":{\"A_/b\":\"\"}}}",
      "spec.propletSelector.matchLabels: no Proplet can carry such a label" },
    { "{\"propletSelector\":{\"matchLabels\":{\"a\":\"-b\"}}}",
      "spec.propletSelector.matchLabels: no Proplet can carry such a label" },
    { "{\"propletSelector\":{\"matchLabels\":{\"\":\"b\"}}}",
      "spec.propletSelector.matchLabels: no Proplet can carry such a label" },
    { "{\"preferredPropletType\":\"k8s\",\"propletSelector\":{\"matchDeviceTypes\":[\"t\"]}}",
      "spec.propletSelector.matchDeviceTypes: Proplets of type k8s have no device type: none will "
      "match" },
    { "{\"resourceRequirements\":{\"custom\":{\"example.com/camera\":\"2\","
      "\"ephemeral-storage\":\"1Gi\",\"hugepages-2Mi\":\"2Mi\"}}}",
      "" },
    { "{\"resourceRequirements\":{\"custom\":{\"camera\":\"1\"}}}", NO_RESOURCE },
    { "{\"resourceRequirements\":{\"custom\":{\"requests.a.b/c\":1}}}", NO_RESOURCE },
    { "{\"resourceRequirements\":{\"custom\":{\"a b/c\":1}}}", NO_RESOURCE },
    { "{\"resourceRequirements\":{\"custom\":{\"a.b/c\":\"500m\"}}}",
      "spec.resourceRequirements.custom: an amount of a resource with a domain is not whole, and "
      "its pod is refused" },
    { "{\"preferredPropletType\":\"external\",\"resourceRequirements\":{\"custom\":{\"camera\":1}}"
      "," MODULE_REFERENCE "}",
      NOT_LIMITED },
    { "{\"imageUrl\":\"https://files/"
      "a.wasm\",\"resourceRequirements\":{\"custom\":{\"camera\":1}}}",
      NOT_LIMITED },
    { "{\"daemon\":true}", NO_METRICS },
    { "{\"daemon\":true,\"activeDeadlineSeconds\":60}", "" },
    { "{\"daemon\":true,\"preferredPropletType\":\"k8s\"}", "" },
    { "{\"daemon\":true,\"preferredPropletType\":\"k8s\",\"imageUrl\":\"https://files/a.wasm\"}",
      NO_METRICS },
    { "{\"monitoringProfile\":{\"enabled\":false}}", NO_METRICS },
    { "{\"monitoringProfile\":{\"exportToMqtt\":false}}", NO_METRICS },
    { "{\"monitoringProfile\":{\"enabled\":true,\"exportToMqtt\":true}}", "" },
    { "{\"monitoringProfile\":{\"enabled\":false},\"activeDeadlineSeconds\":60}", "" },
    { "{\"propletSelector\":{\"matchDeviceTypes\":[\"pi\",\"embedded\"]}}", NO_METRICS },
    { "{\"propletSelector\":{\"matchCapabilities\":[\"embedded\"]}}", NO_METRICS },
    { "{\"propletSelector\":{\"matchLabels\":{\"dialect\":\"embedded\"}}}", NO_METRICS },
    { "{\"propletSelector\":{\"matchDeviceTypes\":[\"embedded\"]},\"activeDeadlineSeconds\":60}",
      "" },
    { "{\"propletSelector\":{\"matchDeviceTypes\":[\"pi\"]}}", "" },
    { "{\"restartPolicy\":\"OnFailure\",\"backoffLimit\":0}", NOT_REPEATED },
    { "{\"restartPolicy\":\"OnFailure\",\"backoffLimit\":2}", "" },
    { "{\"restartPolicy\":\"Never\"}", "" },
    { "{\"daemon\":true,\"activeDeadlineSeconds\":60,\"restartPolicy\":\"Never\"}",
      ALWAYS_RESTARTED },
    { "{\"daemon\":true,\"activeDeadlineSeconds\":60,\"restartPolicy\":\"Always\"}", "" },
    { "{\"daemon\":true,\"activeDeadlineSeconds\":60,\"restartPolicy\":\"Never\","
      "\"preferredPropletType\":\"external\"," MODULE_REFERENCE "}",
      "" },
    { "{\"daemon\":true,\"activeDeadlineSeconds\":60,\"restartPolicy\":\"OnFailure\"}",
      ALWAYS_RESTARTED " | " NOT_REPEATED },
    { "{\"monitoringProfile\":{\"interval\":\"0\"}}",
      "spec.monitoringProfile.interval: devices take whole seconds, at least one: it is rounded" },
};

TEST_EACH(what_runs_and_is_probably_wrong_is_accepted_with_a_warning, ODD)
{
    ck_assert_str_eq(errors_of(arena, "task", task_with(ODD[_i].patch), NULL), "");
    ck_assert_str_eq(warnings_of(arena, "task", task_with(ODD[_i].patch), NULL), ODD[_i].warnings);
}

TEST(a_module_above_180_kib_comes_with_a_warning)
{
    ck_assert_str_eq(warnings_of(arena, "task", task_with(module_patch(184320)), NULL), "");
    ck_assert_ptr_nonnull(
        strstr(warnings_of(arena, "task", task_with(module_patch(184324)), NULL), "--server-side"));
}

TEST(without_a_database_a_zone_is_accepted_with_a_warning)
{
    struct validation validation = {
        .arena = arena,
        .object = task_with("{\"schedule\":\"@daily\",\"timezone\":\"Europe/Paris\"}"),
        .zoneinfo = "/nonexistent",
        .errors = field_errors_create(arena),
    };

    task_validate(&validation);
    ck_assert_uint_eq(field_errors_count(validation.errors), 0);
    ck_assert_uint_eq(json_len(field_errors_warnings(validation.errors)), 1);
}
