/* Defaults, beyond webhook/tests/reviews. */
#include "common/api/default.h"

#include "common/base/str.h"
#include "common/json/jsonpatch.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

#define TASK_FINALIZER "propeller.propeller.abstractmachines.fr/task-finalizer"
#define ADD(path, value) "{\"op\":\"add\",\"path\":\"" path "\",\"value\":" value "}"

static default_fn *defaulter_of(const char *kind)
{
    static const struct {
        const char *kind;
        default_fn *apply;
    } KINDS[] = { { "task", task_default },
                  { "proplet", proplet_default },
                  { "propellerjob", propellerjob_default },
                  { "federatedjob", federatedjob_default } };
    size_t i = 0;

    while (!str_equal(KINDS[i].kind, kind))
        i++;
    return KINDS[i].apply;
}

/* The operations as JSON; "" when there is nothing to do. They fit the object and, applied, leave
 * nothing more to do. */
static const char *patch_of(const char *kind, const char *text, const char *old)
{
    const cJSON *object = parsed(arena, text);
    struct defaulting defaulting = { .arena = arena,
                                     .object = object,
                                     .old = old ? parsed(arena, old) : NULL,
                                     .patch = json_patch_create(arena, object) };

    defaulter_of(kind)(&defaulting);

    const cJSON *operations = json_patch_operations(defaulting.patch);
    cJSON *patched = NULL;
    struct error err;

    if (!operations)
        return "";
    ck_assert_msg(json_patch_apply(arena, object, operations, &patched, &err) == 0, "%s",
                  err.message);
    defaulting.object = patched;
    defaulting.patch = json_patch_create(arena, defaulting.object);
    defaulter_of(kind)(&defaulting);
    ck_assert_ptr_null(json_patch_operations(defaulting.patch));
    return json_text(arena, operations, NULL);
}

/* clang-format off */
static const struct {
    const char *kind;
    const char *object;
    const char *patch;
} NEW[] = {
    { "task",
      "{\"metadata\":{\"finalizers\":[]},\"spec\":{\"kind\":\"standard\","
      "\"preferredPropletType\":\"any\",\"priority\":1,\"dependsOn\":[\"a\"],\"schedule\":"
      "\"@daily\"}}",
      "[" ADD("/metadata/finalizers/-", "\"" TASK_FINALIZER "\"") ","
      ADD("/spec/runIf", "\"success\"") ","
      ADD("/spec/timezone", "\"UTC\"") "]" },
    { "task",
      "{\"metadata\":{\"finalizers\":[\"" TASK_FINALIZER "\"]},\"spec\":{\"kind\":\"standard\","
      "\"preferredPropletType\":\"any\",\"priority\":1,\"dependsOn\":[],\"schedule\":\"\","
      "\"runIf\":null}}",
      "" },
    { "task",
      "{\"metadata\":{\"finalizers\":[\"" TASK_FINALIZER "\"]},\"spec\":{\"kind\":\"standard\","
      "\"preferredPropletType\":\"any\",\"priority\":null}}",
      "[{\"op\":\"replace\",\"path\":\"/spec/priority\",\"value\":50}]" },
    { "task", "{\"metadata\":{\"deletionTimestamp\":\"t\"},\"spec\":{}}", "" },
    { "task", "{\"metadata\":{}}",
      "[" ADD("/metadata/finalizers", "[\"" TASK_FINALIZER "\"]") "]" },
    { "propellerjob",
      "{\"metadata\":{},\"spec\":{\"tasks\":[{\"name\":\"a\"},{\"name\":\"b\",\"dependsOn\":"
      "[\"a\"],\"kind\":\"federated\",\"preferredPropletType\":\"any\",\"priority\":0},7]}}",
      "[" ADD("/spec/executionMode", "\"configurable\"") ","
      ADD("/spec/failurePolicy", "\"FailFast\"") ","
      ADD("/spec/tasks/0/kind", "\"standard\"") ","
      ADD("/spec/tasks/0/preferredPropletType", "\"any\"") ","
      ADD("/spec/tasks/0/priority", "50") ","
      ADD("/spec/tasks/1/runIf", "\"success\"") "]" },
    { "propellerjob",
      "{\"metadata\":{},\"spec\":{\"executionMode\":\"parallel\",\"failurePolicy\":\"Continue\","
      "\"faultTolerance\":{}}}",
      "[" ADD("/spec/faultTolerance/retryLimit", "0") ","
      ADD("/spec/faultTolerance/retryPausePeriod", "\"90s\"") "]" },
    { "federatedjob", "{\"metadata\":{},\"spec\":{\"aggregator\":{}}}",
      "[" ADD("/spec/timeoutSeconds", "600") ","
      ADD("/spec/lateUpdates", "\"Drop\"") ","
      ADD("/spec/aggregator/algorithm", "\"fedavg\"") "]" },
    { "federatedjob",
      "{\"metadata\":{},\"spec\":{\"timeoutSeconds\":0,\"lateUpdates\":\"StalenessWeighted\"}}",
      "" },
};
/* clang-format on */

TEST_GROUP("default", arena_set_up, arena_tear_down);

TEST_EACH(a_new_object_gets_what_it_lacks_and_nothing_else, NEW)
{
    ck_assert_str_eq(patch_of(NEW[_i].kind, NEW[_i].object, NULL), NEW[_i].patch);
}

TEST(the_phase_that_a_request_claims_does_not_count)
{
    ck_assert_str_eq(
        patch_of("task",
                 "{\"metadata\":{},\"spec\":{\"suspend\":true},\"status\":{\"phase\":\"failed\"}}",
                 "{\"metadata\":{},\"spec\":{\"name\":\"t\"},\"status\":{\"phase\":\"running\"}}"),
        "");
}

TEST(a_spec_that_did_not_change_gets_nothing)
{
    static const char *const KINDS[] = { "task", "proplet", "propellerjob", "federatedjob" };
    const char *old = "{\"metadata\":{},\"spec\":{\"k8s\":{},\"aggregator\":{}}}";
    const char *labelled =
        "{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{\"aggregator\":{},\"k8s\":{}}}";

    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++)
        ck_assert_str_eq(patch_of(KINDS[i], labelled, old), "");
}

TEST(a_list_of_too_many_tasks_is_left_alone)
{
    const char *tasks = "{}";

    for (int i = 0; i < 1000; i++)
        tasks = arena_printf(arena, "%s,{}", tasks);

    const char *patch =
        patch_of("propellerjob",
                 arena_printf(arena, "{\"metadata\":{},\"spec\":{\"tasks\":[%s]}}", tasks), NULL);

    ck_assert_ptr_nonnull(strstr(patch, "/spec/executionMode"));
    ck_assert_ptr_null(strstr(patch, "/spec/tasks"));
}

/* --- agreement with the schemas -----------------------------------------------------------------
 */

static const struct {
    const char *kind;
    const char *file;
    const char *object; /* with everything that holds a default */
} SCHEMAS[] = {
    { "task", "crds/tasks.yaml", "{\"metadata\":{},\"spec\":{}}" },
    { "proplet", "crds/proplets.yaml",
      "{\"metadata\":{},\"spec\":{\"k8s\":{},\"external\":{},\"connectionConfig\":{}}}" },
    { "propellerjob", "crds/propellerjobs.yaml",
      "{\"metadata\":{},\"spec\":{\"faultTolerance\":{},\"tasks\":[{}]}}" },
    { "federatedjob", "crds/federatedjobs.yaml", "{\"metadata\":{},\"spec\":{\"aggregator\":{}}}" },
};

/* Every default below the schema is an operation of the patch. */
static size_t expect_defaults(const cJSON *schema, const char *pointer, const char *patch)
{
    size_t found = 0;
    const cJSON *value = json_get(schema, "default");

    if (value) {
        const char *operation = arena_printf(arena, "{\"op\":\"add\",\"path\":\"%s\",\"value\":%s}",
                                             pointer, json_text(arena, value, NULL));

        ck_assert_msg(strstr(patch, operation) != NULL, "%s is not in %s", operation, patch);
        found++;
    }
    json_for_each (property, json_get(schema, "properties"))
        found += expect_defaults(property, arena_printf(arena, "%s/%s", pointer, property->string),
                                 patch);
    if (json_get(schema, "items"))
        found +=
            expect_defaults(json_get(schema, "items"), arena_printf(arena, "%s/0", pointer), patch);
    return found;
}

TEST_EACH(the_defaults_of_the_schema_are_those_of_the_code, SCHEMAS)
{
    const char *patch = patch_of(SCHEMAS[_i].kind, SCHEMAS[_i].object, NULL);
    const cJSON *versions =
        json_path(parsed_yaml_file(arena, SCHEMAS[_i].file), "spec", "versions", NULL);
    const cJSON *spec =
        json_path(json_first(versions), "schema", "openAPIV3Schema", "properties", "spec", NULL);
    size_t finalizers = strstr(patch, "/metadata/finalizers") ? 1 : 0;

    ck_assert_uint_eq(expect_defaults(spec, "/spec", patch) + finalizers,
                      json_len(parsed(arena, patch)));
}
