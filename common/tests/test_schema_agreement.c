/* crds/ and the codec tables say the same: names, types, values of enums, defaults, rules. */
#include "common/api/enrollment.h"
#include "common/api/federatedjob.h"
#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/api/propellerjob.h"
#include "common/api/proplet.h"
#include "common/api/task.h"
#include "common/api/traininground.h"
#include "common/api/vmafx.h"
#include "common/base/buf.h"
#include "common/base/str.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

static const struct crd {
    const char *file;
    const struct kube_kind *kind;
    const char *short_name;
    const struct json_struct *spec; /* NULL: nothing reads it by a table */
    const struct json_struct *status;
} CRDS[] = {
    { "crds/tasks.yaml", &KIND_TASK, "ptask", &TASK_SPEC, &TASK_STATUS },
    { "crds/proplets.yaml", &KIND_PROPLET, "pl", &PROPLET_SPEC, &PROPLET_STATUS },
    { "crds/propellerjobs.yaml", &KIND_PROPELLERJOB, "pjob", &PROPELLERJOB_SPEC,
      &PROPELLERJOB_STATUS },
    { "crds/federatedjobs.yaml", &KIND_FEDERATEDJOB, "fljob", &FEDERATEDJOB_SPEC,
      &FEDERATEDJOB_STATUS },
    { "crds/trainingrounds.yaml", &KIND_TRAININGROUND, "round", &TRAININGROUND_SPEC,
      &TRAININGROUND_STATUS },
    { "crds/enrollments.yaml", &KIND_ENROLLMENT, "enroll", &ENROLLMENT_SPEC, &ENROLLMENT_STATUS },
    { "crds/vmafx/vmafxjobs.yaml", &KIND_VMAFXJOB, "vmjob", NULL, &VMAFX_JOB_STATUS },
    { "crds/vmafx/vmafxnodes.yaml", &KIND_VMAFXNODE, "vmnode", NULL, &VMAFX_NODE_STATUS },
    { "crds/vmafx/vmafxmodeltrainings.yaml", &KIND_VMAFXMODELTRAINING, "vmtrain", NULL,
      &VMAFX_TRAINING_STATUS },
};

#define OWN_KINDS 6 /* the first ones; the others have no conditions and no category */

/* Seconds become microseconds in 64 bits, and that must not overflow. */
#define MAX_NUMBER INT32_MAX

static const cJSON *version_of(const struct crd *crd)
{
    const cJSON *versions = json_path(parsed_yaml_file(arena, crd->file), "spec", "versions", NULL);

    ck_assert_uint_eq(json_len(versions), 1);
    return versions->child;
}

static const cJSON *schema_of(const struct crd *crd, const char *part)
{
    const cJSON *root = json_path(version_of(crd), "schema", "openAPIV3Schema", NULL);
    const cJSON *schema = root;

    if (part)
        schema = json_path(root, "properties", part, NULL);
    ck_assert_ptr_nonnull(schema);
    return schema;
}

static bool is_text(const cJSON *item, const char *text)
{
    return str_equal(json_string(item, NULL), text);
}

static bool array_has(const cJSON *array, const char *text)
{
    json_for_each (item, array) {
        if (is_text(item, text))
            return true;
    }
    return false;
}

/* Where the comparison stands. */
struct place {
    const char *path;
    bool in_spec;
};

static void compare(struct place place, const struct json_struct *table, const cJSON *schema);

static void compare_enum(struct place place, const struct json_field *field, const cJSON *schema)
{
    const cJSON *values = json_get(schema, "enum");
    size_t count = 0;

    for (size_t i = 0; i == 0 || field->names[i]; i++) {
        if (!field->names[i])
            continue;
        ck_assert_msg(array_has(values, field->names[i]), "%s: the schema lacks '%s'", place.path,
                      field->names[i]);
        count++;
    }
    ck_assert_msg(json_len(values) == count, "%s: the schema has a value of its own", place.path);

    /* an absent status says nothing, so nothing is put there */
    const char *expected = place.in_spec ? field->names[0] : NULL;
    ck_assert_msg(is_text(json_get(schema, "default"), expected), "%s: another default",
                  place.path);
}

static const cJSON *items_of(const cJSON *schema)
{
    return is_text(json_get(schema, "type"), "array") ? json_get(schema, "items") : NULL;
}

static bool is_type(const cJSON *schema, const char *type, const char *format)
{
    return is_text(json_get(schema, "type"), type) &&
           (!format || is_text(json_get(schema, "format"), format));
}

static bool type_fits(const struct json_field *field, const cJSON *schema)
{
    switch (field->type) {
    case FIELD_STRING:
        return is_type(schema, "string", NULL) && !json_get(schema, "format");
    case FIELD_ENUM:
        return is_type(schema, "string", NULL) && json_get(schema, "enum");
    case FIELD_BOOL:
    case FIELD_OPT_BOOL:
        return is_type(schema, "boolean", NULL);
    case FIELD_COUNT:
    case FIELD_OPT_INT:
        return is_type(schema, "integer", NULL);
    case FIELD_TIME:
    case FIELD_MICROTIME:
        return is_type(schema, "string", "date-time");
    case FIELD_STRINGS:
        return is_type(items_of(schema), "string", NULL);
    case FIELD_MAP:
        return is_type(json_get(schema, "additionalProperties"), "string", NULL);
    case FIELD_OBJECT:
        return is_type(schema, "object", NULL) && json_get(schema, "properties");
    case FIELD_OBJECTS:
        return is_type(items_of(schema), "object", NULL);
    case FIELD_ARRAY:
        return items_of(schema) != NULL;
    case FIELD_ANY: /* an object, a quantity, a fraction, another writer's time, or any JSON */
        return !json_get(schema, "type") || is_type(schema, "object", NULL) ||
               is_type(schema, "number", NULL) || is_type(schema, "string", "date-time");
    }
    return false;
}

static void compare_field(struct place place, const struct json_field *field, const cJSON *schema)
{
    ck_assert_msg(schema != NULL, "%s: not in the schema", place.path);
    ck_assert_msg(type_fits(field, schema), "%s: another type", place.path);
    if (field->type == FIELD_ENUM)
        compare_enum(place, field, schema);
    if (field->type == FIELD_OBJECT)
        compare(place, field->members, schema);
    if (field->type == FIELD_OBJECTS)
        compare(place, field->members, items_of(schema));
}

static void compare(struct place place, const struct json_struct *table, const cJSON *schema)
{
    const cJSON *properties = json_get(schema, "properties");

    for (size_t i = 0; i < table->len; i++) {
        const char *name = table->fields[i].name;
        struct place member = { arena_printf(arena, "%s.%s", place.path, name), place.in_spec };

        compare_field(member, &table->fields[i], json_get(properties, name));
    }
    ck_assert_msg(json_len(properties) == table->len,
                  "%s: the schema has %zu fields, the table %zu", place.path, json_len(properties),
                  table->len);
}

TEST_GROUP("schema_agreement", arena_set_up, arena_tear_down);

TEST_EACH(schema_and_table_have_the_same_fields_types_and_values, CRDS)
{
    const struct crd *crd = &CRDS[_i];
    struct place spec = { arena_printf(arena, "%s.spec", crd->kind->kind), true };
    struct place status = { arena_printf(arena, "%s.status", crd->kind->kind), false };

    if (crd->spec)
        compare(spec, crd->spec, schema_of(crd, "spec"));
    compare(status, crd->status, schema_of(crd, "status"));
}

/* Calls visit for this schema and all schemas within it. */
typedef void visit_fn(const char *path, const cJSON *schema);

static void walk(const char *path, const cJSON *schema, visit_fn *visit)
{
    static const char *const SINGLE[] = { "items", "additionalProperties" };

    visit(path, schema);
    json_for_each (property, json_get(schema, "properties"))
        walk(arena_printf(arena, "%s.%s", path, property->string), property, visit);
    for (size_t i = 0; i < ARRAY_LEN(SINGLE); i++) {
        const cJSON *inner = json_get(schema, SINGLE[i]);

        if (inner)
            walk(arena_printf(arena, "%s[]", path), inner, visit);
    }
}

static void expect_description(const char *path, const cJSON *schema)
{
    const char *text = json_string(json_get(schema, "description"), "");

    /* the API server allows none for metadata: it puts its own there */
    if (str_has_suffix(path, ".metadata") && strchr(path, '.') == strrchr(path, '.'))
        return;
    ck_assert_msg(strlen(text) > 4 && str_has_suffix(text, "."), "%s: no description", path);
}

TEST_EACH(every_field_has_a_description, CRDS)
{
    walk(CRDS[_i].kind->kind, schema_of(&CRDS[_i], NULL), expect_description);
}

#define TEXT(constant) EXPANDED(constant)
#define EXPANDED(text) #text

/* The defaults of the schemas that are no enums: as the code has them, printed as JSON. */
static const struct {
    const char *path;
    const char *text;
} DEFAULTS[] = {
    { "Task.spec.priority", TEXT(TASK_DEFAULT_PRIORITY) },
    { "PropellerJob.spec.tasks[].priority", TEXT(TASK_DEFAULT_PRIORITY) },
    { "PropellerJob.spec.faultTolerance.retryLimit", "0" },
    { "PropellerJob.spec.faultTolerance.retryPausePeriod", "\"" JOB_DEFAULT_RETRY_PAUSE "\"" },
    { "Proplet.spec.k8s.replicas", TEXT(PROPLET_DEFAULT_REPLICAS) },
    { "Proplet.spec.connectionConfig.mqttTimeout", "\"30s\"" },
    { "FederatedJob.spec.timeoutSeconds", TEXT(ROUND_DEFAULT_TIMEOUT_SECONDS) },
    { "FederatedJob.spec.aggregator.algorithm", "\"" AGGREGATOR_DEFAULT "\"" },
    { "TrainingRound.spec.timeoutSeconds", TEXT(ROUND_DEFAULT_TIMEOUT_SECONDS) },
    { "TrainingRound.spec.aggregator.algorithm", "\"" AGGREGATOR_DEFAULT "\"" },
    { "Enrollment.spec.limit", TEXT(ENROLLMENT_DEFAULT_LIMIT) },
    { "Enrollment.spec.forgetAfterSeconds", TEXT(ENROLLMENT_DEFAULT_FORGET_SECONDS) },
    /* Of the VMAFX programs; nothing here reads them. */
    { "VmafxJob.spec.priority", "0" },
    { "VmafxModelTraining.spec.checkpoint.interval", "\"10m\"" },
    { "VmafxModelTraining.spec.checkpoint.minSamples", "1000" },
};
static size_t defaults_seen;

static void expect_default(const char *path, const cJSON *schema)
{
    const cJSON *value = json_get(schema, "default");

    if (!value || json_get(schema, "enum"))
        return;
    for (size_t i = 0; i < ARRAY_LEN(DEFAULTS); i++) {
        if (!str_equal(DEFAULTS[i].path, path))
            continue;
        ck_assert_msg(str_equal(json_text(arena, value, NULL), DEFAULTS[i].text),
                      "%s: another default", path);
        defaults_seen++;
        return;
    }
    ck_abort_msg("%s: a default that the code does not know", path);
}

TEST(the_other_defaults_are_those_of_the_code)
{
    defaults_seen = 0;
    for (size_t i = 0; i < ARRAY_LEN(CRDS); i++)
        walk(CRDS[i].kind->kind, schema_of(&CRDS[i], NULL), expect_default);
    ck_assert_uint_eq(defaults_seen, ARRAY_LEN(DEFAULTS));

    int64_t ms = 0;
    ck_assert(str_to_duration_ms("30s", &ms));
    ck_assert_int_eq(ms, PROPLET_DEFAULT_MQTT_TIMEOUT_MS);
}

static void expect_bounds(const char *path, const cJSON *schema)
{
    if (!is_type(schema, "integer", NULL))
        return;
    ck_assert_msg(json_int(json_get(schema, "minimum"), -1) >= 0, "%s: no minimum", path);
    ck_assert_msg(json_int(json_get(schema, "maximum"), INT64_MAX) <= MAX_NUMBER, "%s: no maximum",
                  path);
}

TEST_EACH(every_number_of_a_spec_is_bounded, CRDS)
{
    walk(CRDS[_i].kind->kind, schema_of(&CRDS[_i], "spec"), expect_bounds);
}

TEST_EACH(a_crd_is_named_as_the_kind_is, CRDS)
{
    const struct kube_kind *kind = CRDS[_i].kind;
    const cJSON *crd = parsed_yaml_file(arena, CRDS[_i].file);
    const cJSON *names = json_path(crd, "spec", "names", NULL);
    const char *name = arena_printf(arena, "%s.%s", kind->plural, kind->group);

    ck_assert_str_eq(json_string(json_path(crd, "metadata", "name", NULL), ""), name);
    ck_assert_str_eq(json_string(json_path(crd, "spec", "group", NULL), ""), kind->group);
    ck_assert_str_eq(json_string(json_path(crd, "spec", "scope", NULL), ""), "Namespaced");
    ck_assert_str_eq(json_string(json_get(names, "kind"), ""), kind->kind);
    ck_assert_str_eq(json_string(json_get(names, "plural"), ""), kind->plural);
    ck_assert_str_eq(json_string(json_get(version_of(&CRDS[_i]), "name"), ""), kind->version);
    ck_assert(array_has(json_get(names, "shortNames"), CRDS[_i].short_name));
    ck_assert(array_has(json_get(names, "categories"), "propeller") == (_i < OWN_KINDS));
    ck_assert_ptr_nonnull(json_path(version_of(&CRDS[_i]), "subresources", "status", NULL));
}

TEST(the_tasks_of_a_job_are_specs_of_tasks)
{
    const cJSON *task = schema_of(&CRDS[0], "spec");
    const cJSON *job = schema_of(&CRDS[2], "spec");
    const cJSON *item = json_path(job, "properties", "tasks", "items", NULL);

    ck_assert(json_equal(json_get(task, "properties"), json_get(item, "properties")));
    ck_assert(json_equal(json_get(task, "required"), json_get(item, "required")));

    /* the job has one rule more: what its dependsOn means is its own */
    const cJSON *rules = json_get(item, "x-kubernetes-validations");
    size_t found = 0;
    json_for_each (expected, json_get(task, "x-kubernetes-validations")) {
        json_for_each (rule, rules)
            found += json_equal(rule, expected);
    }
    ck_assert_uint_eq(found, json_len(json_get(task, "x-kubernetes-validations")));
    ck_assert_uint_eq(found + 1, json_len(rules));
}

/* The one rule at the root of a Task that holds this text. */
static const char *task_rule(const char *needle)
{
    const char *found = NULL;

    json_for_each (rule, json_get(schema_of(&CRDS[0], NULL), "x-kubernetes-validations")) {
        const char *text = json_string(json_get(rule, "rule"), "");

        if (!strstr(text, needle))
            continue;
        ck_assert_ptr_null(found);
        found = text;
    }
    ck_assert_ptr_nonnull(found);
    return found;
}

TEST(the_rule_about_phases_is_the_transition_table)
{
    const char *rule = task_rule("'skipped': ['skipped']");

    for (enum task_phase from = TASK_PENDING; from < TASK_PHASES; from++) {
        struct buf row = BUF_INIT(512);

        ck_assert(buf_printf(&row, "'%s': ['%s'", TASK_PHASE_NAMES[from], TASK_PHASE_NAMES[from]));
        for (enum task_phase to = TASK_PENDING; to < TASK_PHASES; to++) {
            if (to != from && task_may_become(from, to))
                ck_assert(buf_printf(&row, ", '%s'", TASK_PHASE_NAMES[to]));
        }
        ck_assert(buf_printf(&row, "]"));
        ck_assert_msg(strstr(rule, buf_string(&row)) != NULL, "not in the rule: %s",
                      buf_string(&row));
        buf_release(&row);
    }
}

/* Whether the text holds this name of a field, not as the beginning of a longer one. */
static bool names_field(const char *text, const char *name)
{
    size_t len = strlen(name);

    for (const char *at = strstr(text, name); at; at = strstr(at + 1, name)) {
        if (!(at[len] >= 'a' && at[len] <= 'z') && !(at[len] >= 'A' && at[len] <= 'Z'))
            return true;
    }
    return false;
}

TEST(the_rule_about_a_fixed_spec_knows_every_field)
{
    const char *rule = task_rule("self.spec == oldSelf.spec");

    for (size_t i = 0; i < TASK_SPEC.len; i++) {
        const char *name = TASK_SPEC.fields[i].name;

        if (str_equal(name, "name") || str_equal(name, "inputs") || str_equal(name, "metadata"))
            continue; /* not optional; no type that the rule could name */
        ck_assert_msg(names_field(rule, arena_printf(arena, "self.spec.?%s", name)), "%s", name);
        ck_assert_msg(names_field(rule, arena_printf(arena, "oldSelf.spec.?%s", name)), "%s", name);
    }
}

TEST_TIMES(conditions_have_one_schema_and_one_key, OWN_KINDS)
{
    const cJSON *tasks = json_path(schema_of(&CRDS[0], "status"), "properties", "conditions", NULL);
    const cJSON *list = json_path(schema_of(&CRDS[_i], "status"), "properties", "conditions", NULL);
    const cJSON *keys = json_get(list, "x-kubernetes-list-map-keys");
    const cJSON *required = json_path(list, "items", "required", NULL);

    ck_assert(json_equal(json_get(list, "items"), json_get(tasks, "items")));
    ck_assert(is_text(json_get(list, "x-kubernetes-list-type"), "map"));
    ck_assert(json_len(keys) == 1 && array_has(keys, "type"));
    ck_assert(json_len(required) == 2 && array_has(required, "type") &&
              array_has(required, "status"));
}

TEST(module_begins_as_webassembly_does)
{
    static const char PATTERN[] = "^AGFzb[A-Za-z0-9+/]+={0,2}$"; /* base64 of "\\0asm" */
    const cJSON *job = json_path(schema_of(&CRDS[2], "spec"), "properties", "tasks", "items", NULL);
    const cJSON *const SPECS[] = { schema_of(&CRDS[0], "spec"), job };

    for (size_t i = 0; i < ARRAY_LEN(SPECS); i++)
        ck_assert_str_eq(
            json_string(json_path(SPECS[i], "properties", "file", "pattern", NULL), ""), PATTERN);
}

TEST_EACH(samples_fit_the_tables, CRDS)
{
    static const char *const SAMPLES[] = {
        "config/samples/task-addition.yaml",
        "config/samples/proplet-external.yaml",
        "config/samples/propellerjob.yaml",
        "config/samples/federatedjob.yaml",
        "config/samples/traininground.yaml",
        "config/samples/enrollment.yaml",
        "config/samples/vmafx/vmafxjob.yaml",
        "config/samples/vmafx/vmafxnode.yaml",
        "config/samples/vmafx/vmafxmodeltraining.yaml",
    };
    const struct kube_kind *kind = CRDS[_i].kind;
    const struct json_struct *table = CRDS[_i].spec;
    const cJSON *sample = parsed_yaml_file(arena, SAMPLES[_i]);
    void *spec = table ? arena_alloc(arena, 1, table->size) : NULL;
    struct error err = { 0 };

    ck_assert_str_eq(json_string(json_get(sample, "kind"), ""), kind->kind);
    ck_assert_str_eq(json_string(json_get(sample, "apiVersion"), ""),
                     arena_printf(arena, "%s/%s", kind->group, kind->version));
    if (!table)
        return;
    int r = json_decode(arena, table, json_get(sample, "spec"), spec, &err);
    ck_assert_msg(r == 0, "%s", err.message);
}
