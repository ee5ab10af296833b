/* The rules of CEL in crds/ are not interpreted here: common/api refuses what each of them refuses. A rule
 * without an example fails. */
#include "common/base/buf.h"
#include "common/base/str.h"
#include "common/schema/nodes.h"
#include "common/tests/validate_fixture.h"
#include "standalone/tests/resources_fixture.h"

#define MAX_TEXT ((size_t)4 << 20)

#define JOB(members) "{\"spec\":{\"taskRefs\":null,\"tasks\":[{\"name\":\"a\"," members "}]}}"
#define TASK(members) "{\"spec\":{" members "}}"
#define WITHOUT_IMAGE "\"imageUrl\":null,"
#define MODULE "\"file\":\"AGFzbQEAAAA=\""
#define IMAGE "\"imageUrl\":\"i\""

/* Merge patches of the least valid object of the kind; old NULL: the object is new. */
static const struct example {
    const char *kind; /* of validate_fixture.h */
    const char *path; /* of the rule in the schema */
    const char *message;
    const char *patch; /* NULL: made by large_files */
    const char *old;
} EXAMPLES[] = {
    { "federatedjob", ".spec", "must not be more than the number of participants",
      "{\"spec\":{\"kOfN\":3}}", NULL },
    { "federatedjob", ".spec.checkpoint.interval", "must be at most 24h",
      "{\"spec\":{\"checkpoint\":{\"interval\":\"25h\"}}}", NULL },
    { "enrollment", ".spec", "exactly one of channelId and channelPerDevice is needed",
      "{\"spec\":{\"channelPerDevice\":true}}", NULL },
    { "enrollment", ".spec", "Automatic needs maxProplets, and clientIdPrefix or tags in match",
      "{\"spec\":{\"approval\":\"Automatic\",\"maxProplets\":1,\"match\":{\"tags\":[]}}}", NULL },
    { "enrollment", ".spec.domainId", "cannot change", "{\"spec\":{\"domainId\":\"e\"}}", "{}" },
    { "traininground", ".spec", "must not be more than the number of participants",
      "{\"spec\":{\"kOfN\":3}}", NULL },
    { "propellerjob", ".spec", "at least one of tasks and taskRefs is needed",
      "{\"spec\":{\"taskRefs\":null}}", NULL },
    { "propellerjob", ".spec", "the inline files have more than 1 MiB together", NULL, NULL },
    { "propellerjob", ".spec", "cannot change", "{\"spec\":{\"managedBy\":\"b\"}}",
      "{\"spec\":{\"managedBy\":\"a\"}}" },
    { "propellerjob", ".spec.faultTolerance.retryPausePeriod", "must be a duration from 0s to 24h",
      "{\"spec\":{\"faultTolerance\":{\"retryPausePeriod\":\"25h\"}}}", NULL },
    { "propellerjob", ".spec.tasks[]", "a task cannot depend on itself",
      JOB(IMAGE ",\"dependsOn\":[\"a\"]"), NULL },
    { "propellerjob", ".spec.tasks[]", "one of file and imageUrl is needed",
      JOB("\"mode\":\"infer\""), NULL },
    { "propellerjob", ".spec.tasks[]", "an encrypted workload needs imageUrl",
      JOB(MODULE ",\"encrypted\":true"), NULL },
    { "propellerjob", ".spec.tasks[]", "broadcast and propletSelector.propletId exclude each other",
      JOB(IMAGE ",\"broadcast\":true,\"propletSelector\":{\"propletId\":\"p\"}"), NULL },
    { "propellerjob", ".spec.tasks[]", "isRecurring needs a schedule",
      JOB(IMAGE ",\"isRecurring\":true"), NULL },
    { "propellerjob", ".spec.tasks[]", "Always is for daemons only",
      JOB(IMAGE ",\"restartPolicy\":\"Always\""), NULL },
    { "propellerjob", ".spec.tasks[]", "broadcast and checkpoint exclude each other",
      JOB(IMAGE ",\"broadcast\":true,\"checkpoint\":{}"), NULL },
    { "propellerjob", ".spec.tasks[]", "encrypted and checkpoint exclude each other",
      JOB(IMAGE ",\"encrypted\":true,\"checkpoint\":{}"), NULL },
    { "propellerjob", ".spec.tasks[].checkpoint.interval", "must be from 10s to 24h",
      JOB(IMAGE ",\"checkpoint\":{\"interval\":\"9s\"}"), NULL },
    { "propellerjob", ".spec.tasks[].file", "must be base64 with padding",
      JOB("\"file\":\"AGFzbQ\""), NULL },
    { "proplet", ".spec", "a Proplet of type k8s needs k8s", "{\"spec\":{\"type\":\"k8s\"}}",
      NULL },
    { "proplet", ".spec.type", "cannot change",
      "{\"spec\":{\"type\":\"k8s\",\"k8s\":{\"image\":\"i\"}}}", "{}" },
    { "proplet", ".spec.connectionConfig",
      "exactly one of clientKey and clientKeySecretRef is needed",
      "{\"spec\":{\"connectionConfig\":{\"clientKeySecretRef\":{\"name\":\"s\",\"key\":\"k\"}}}}",
      NULL },
    { "proplet", ".spec.connectionConfig.domainId",
      "cannot change, it is the identity of the device",
      "{\"spec\":{\"connectionConfig\":{\"domainId\":\"other\"}}}", "{}" },
    { "proplet", ".spec.connectionConfig.channelId",
      "cannot change, it is the identity of the device",
      "{\"spec\":{\"connectionConfig\":{\"channelId\":\"other\"}}}", "{}" },
    { "proplet", ".spec.connectionConfig.clientId",
      "cannot change, it is the identity of the device",
      "{\"spec\":{\"connectionConfig\":{\"clientId\":\"other\"}}}", "{}" },
    { "proplet", ".spec.connectionConfig.mqttTimeout", "must be greater than 0",
      "{\"spec\":{\"connectionConfig\":{\"mqttTimeout\":\"0s\"}}}", NULL },
    { "proplet", ".spec.external.heartbeatTimeout", "must be from 5s to 24h",
      "{\"spec\":{\"external\":{\"heartbeatTimeout\":\"4s\"}}}", NULL },
    { "proplet", ".spec.availability.schedule", "daysOfWeek and hoursOfDay, or windows",
      "{\"spec\":{\"availability\":{\"schedule\":{\"daysOfWeek\":[\"mon\"]}}}}", NULL },
    { "proplet", ".spec.availability.schedule", "excludes daysOfWeek and hoursOfDay",
      "{\"spec\":{\"availability\":{\"schedule\":{\"daysOfWeek\":[\"mon\"],\"windows\":[{"
      "\"days\":[\"mon\"],\"from\":\"01:00\",\"until\":\"02:00\"}]}}}}",
      NULL },
    { "proplet", ".spec.availability.schedule.windows[].from",
      "must be a time of day from 00:00 to 23:59",
      "{\"spec\":{\"availability\":{\"schedule\":{\"windows\":[{\"days\":[\"mon\"],"
      "\"from\":\"24:00\",\"until\":\"02:00\"}]}}}}",
      NULL },
    { "proplet", ".spec.availability.schedule.windows[].until",
      "must be a time of day, or a day and a time, for example mon 06:00",
      "{\"spec\":{\"availability\":{\"schedule\":{\"windows\":[{\"days\":[\"mon\"],"
      "\"from\":\"01:00\",\"until\":\"day 02:00\"}]}}}}",
      NULL },
    { "proplet", ".spec.availability.gracefulShutdownTimeout", "must be a duration from 0s to 24h",
      "{\"spec\":{\"availability\":{\"gracefulShutdownTimeout\":\"25h\"}}}", NULL },
    { "task/status", "", "this change of phase is not allowed",
      "{\"status\":{\"phase\":\"running\"}}", "{\"status\":{\"phase\":\"completed\"}}" },
    { "task/status", "", "a phase that was set cannot be removed", "{\"status\":{}}",
      "{\"status\":{\"phase\":\"running\"}}" },
    { "task", "",
      "only suspend, activeDeadlineSeconds, ttlSecondsAfterFinished and priority may change while "
      "the Task is scheduled or running",
      "{\"spec\":{\"imageUrl\":\"j\"},\"status\":{\"phase\":\"running\"}}",
      "{\"status\":{\"phase\":\"running\"}}" },
    { "task", "", "a Task cannot depend on itself", TASK("\"dependsOn\":[\"x\"]"), NULL },
    { "task", ".spec", "one of file and imageUrl is needed", TASK("\"imageUrl\":null"), NULL },
    { "task", ".spec", "an encrypted workload needs imageUrl",
      TASK(WITHOUT_IMAGE MODULE ",\"encrypted\":true"), NULL },
    { "task", ".spec", "broadcast and propletSelector.propletId exclude each other",
      TASK("\"broadcast\":true,\"propletSelector\":{\"propletId\":\"p\"}"), NULL },
    { "task", ".spec", "isRecurring needs a schedule", TASK("\"isRecurring\":true"), NULL },
    { "task", ".spec", "Always is for daemons only", TASK("\"restartPolicy\":\"Always\""), NULL },
    { "task", ".spec", "broadcast and checkpoint exclude each other",
      TASK("\"broadcast\":true,\"checkpoint\":{}"), NULL },
    { "task", ".spec", "encrypted and checkpoint exclude each other",
      TASK("\"encrypted\":true,\"checkpoint\":{}"), NULL },
    { "task", ".spec.checkpoint.interval", "must be from 10s to 24h",
      TASK("\"checkpoint\":{\"interval\":\"9s\"}"), NULL },
    { "task", ".spec.file", "must be base64 with padding", TASK("\"file\":\"AGFzbQ\""), NULL },
};

static size_t rules_seen;

/* Two tasks with modules of 600 KB each. */
static const char *large_files(void)
{
    CLEANUP(buf_releasep) struct buf text = BUF_INIT(MAX_TEXT);
    const size_t len = 600000;
    char *file = arena_alloc(test_arena, len + 1, 1);

    memset(file, 'A', len);
    memcpy(file, "AGFzb", strlen("AGFzb"));
    ck_assert(buf_printf(&text,
                         "{\"spec\":{\"taskRefs\":null,\"tasks\":[{\"name\":\"a\",\"file\":\"%s\"},"
                         "{\"name\":\"b\",\"file\":\"%s\"}]}}",
                         file, file));
    return arena_strdup(test_arena, buf_string(&text));
}

static const struct example *example_of(const char *kind, const char *path, const char *message)
{
    for (size_t i = 0; i < ARRAY_LEN(EXAMPLES); i++) {
        if (str_has_prefix(EXAMPLES[i].kind, kind) && str_equal(EXAMPLES[i].path, path) &&
            str_equal(EXAMPLES[i].message, message))
            return &EXAMPLES[i];
    }
    return NULL;
}

/* "traininground" */
static const char *singular_of(const struct resource *resource)
{
    return arena_strndup(test_arena, resource->kind.plural, strlen(resource->kind.plural) - 1);
}

static void expect_refused(const struct resource *resource, const struct example *example)
{
    const cJSON *object =
        object_with(test_arena, example->kind, example->patch ? example->patch : large_files());
    const cJSON *old = example->old ? object_with(test_arena, example->kind, example->old) : NULL;
    struct field_errors *errors = field_errors_create(test_arena);

    ck_assert_msg(
        !*errors_of(test_arena, example->kind, object_with(test_arena, example->kind, NULL), NULL),
        "%s: the least object is refused", example->kind);
    schema_validate(resource->schema, object, old, errors);
    ck_assert_msg(field_errors_count(errors) == 0, "%s: not the rule alone refuses its example",
                  example->message);
    ck_assert_msg(*errors_of(test_arena, example->kind, object, old),
                  "%s %s: common/api lacks the rule '%s'", example->kind, example->path,
                  example->message);
}

static void walk(const struct resource *resource, const char *path, const cJSON *schema)
{
    json_for_each (rule, json_get(schema, "x-kubernetes-validations")) {
        const char *message = json_get_string(rule, "message");
        const struct example *example = example_of(singular_of(resource), path, message);

        ck_assert_msg(example != NULL, "%s %s: no example for the rule '%s'", singular_of(resource),
                      path, message);
        expect_refused(resource, example);
        rules_seen++;
    }
    json_for_each (member, json_get(schema, "properties"))
        walk(resource, arena_printf(test_arena, "%s.%s", path, member->string), member);
    if (cJSON_IsObject(json_get(schema, "items")))
        walk(resource, arena_printf(test_arena, "%s[]", path), json_get(schema, "items"));
    if (cJSON_IsObject(json_get(schema, "additionalProperties")))
        walk(resource, arena_printf(test_arena, "%s{}", path),
             json_get(schema, "additionalProperties"));
}

TEST_GROUP("rules", resources_setup, resources_teardown);

TEST(every_rule_of_cel_is_a_rule_of_common_api)
{
    rules_seen = 0;
    for (size_t i = 0; i < resources_len(test_resources); i++) {
        const struct resource *resource = resources_at(test_resources, i);

        if (resource->custom)
            walk(resource, "", resource->schema->document);
    }
    ck_assert_uint_eq(rules_seen, ARRAY_LEN(EXAMPLES));
}
