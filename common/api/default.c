#include "common/api/default.h"

#include "common/api/federatedjob.h"
#include "common/api/names.h"
#include "common/api/propellerjob.h"
#include "common/api/proplet.h"
#include "common/base/str.h"

/* An object of the document and where it is. */
struct place {
    const struct defaulting *defaulting;
    const char *pointer;
    const cJSON *json;
};

static bool is_absent(const struct place *place, const char *name)
{
    const cJSON *value = json_get(place->json, name);

    return cJSON_IsObject(place->json) && (!value || cJSON_IsNull(value));
}

static const char *pointer_to(const struct place *place, const char *name)
{
    return arena_printf(place->defaulting->arena, "%s/%s", place->pointer, name);
}

static void default_string(const struct place *place, const char *name, const char *value)
{
    if (is_absent(place, name))
        json_patch_default(place->defaulting->patch, pointer_to(place, name),
                           cJSON_CreateString(value));
}

static void default_int(const struct place *place, const char *name, int value)
{
    if (is_absent(place, name))
        json_patch_default(place->defaulting->patch, pointer_to(place, name),
                           cJSON_CreateNumber(value));
}

static struct place inner(const struct place *place, const char *name)
{
    return (struct place){ place->defaulting, pointer_to(place, name),
                           json_get(place->json, name) };
}

static struct place spec_of(const struct defaulting *defaulting)
{
    return (struct place){ defaulting, "/spec", json_get(defaulting->object, "spec") };
}

static bool is_deletion(const struct defaulting *defaulting)
{
    const cJSON *time = json_path(defaulting->object, "metadata", "deletionTimestamp", NULL);

    return !str_is_empty(json_string(time, NULL));
}

/* Otherwise a rule that came later would stand in the way of a new label. */
static bool is_spec_open(const struct defaulting *defaulting)
{
    const cJSON *spec = json_get(defaulting->object, "spec");

    return !is_deletion(defaulting) &&
           !(defaulting->old && json_equal(spec, json_get(defaulting->old, "spec")));
}

/* Only at creation: who takes it away later means it, and the controller has its own view. */
static void add_finalizer(const struct defaulting *defaulting, const char *finalizer)
{
    const cJSON *list = json_path(defaulting->object, "metadata", "finalizers", NULL);

    if (defaulting->old || is_deletion(defaulting))
        return;
    json_for_each (item, list) {
        if (str_equal(json_string(item, NULL), finalizer))
            return;
    }
    if (cJSON_IsArray(list)) {
        json_patch_set(defaulting->patch, "/metadata/finalizers/-", cJSON_CreateString(finalizer));
        return;
    }

    cJSON *finalizers = cJSON_CreateArray();
    json_add_string(finalizers, finalizer);
    json_patch_default(defaulting->patch, "/metadata/finalizers", finalizers);
}

static void default_workload(const struct place *spec)
{
    default_string(spec, "kind", TASK_KIND_NAMES[0]);
    default_string(spec, "preferredPropletType", PREFERRED_TYPE_NAMES[0]);
    default_int(spec, "priority", TASK_DEFAULT_PRIORITY);
    if (json_len(json_get(spec->json, "dependsOn")))
        default_string(spec, "runIf", RUN_IF_NAMES[RUN_IF_SUCCESS]);
    if (!str_is_empty(json_string(json_get(spec->json, "schedule"), NULL)))
        default_string(spec, "timezone", TASK_DEFAULT_TIMEZONE);
}

void task_default(const struct defaulting *defaulting)
{
    const struct place spec = spec_of(defaulting);
    const char *phase = json_string(json_path(defaulting->old, "status", "phase", NULL), "");

    add_finalizer(defaulting, FINALIZER_TASK);
    if (is_spec_open(defaulting) && !str_equal(phase, TASK_PHASE_NAMES[TASK_SCHEDULED]) &&
        !str_equal(phase, TASK_PHASE_NAMES[TASK_RUNNING]))
        default_workload(&spec);
}

void proplet_default(const struct defaulting *defaulting)
{
    const struct place spec = spec_of(defaulting);
    const struct place k8s = inner(&spec, "k8s");
    const struct place external = inner(&spec, "external");
    const struct place connection = inner(&spec, "connectionConfig");

    add_finalizer(defaulting, FINALIZER_PROPLET);
    if (!is_spec_open(defaulting))
        return;
    default_string(&k8s, "logLevel", PROPLET_LOG_LEVEL_NAMES[0]);
    default_int(&k8s, "replicas", PROPLET_DEFAULT_REPLICAS);
    default_string(&external, "dialect", PROPLET_DIALECT_NAMES[0]);
    default_string(&connection, "mqttTimeout", PROPLET_DEFAULT_MQTT_TIMEOUT);
}

void propellerjob_default(const struct defaulting *defaulting)
{
    const struct place spec = spec_of(defaulting);
    const struct place faults = inner(&spec, "faultTolerance");
    const cJSON *tasks = json_get(spec.json, "tasks");
    size_t index = 0;

    if (!is_spec_open(defaulting))
        return;
    default_string(&spec, "executionMode", EXECUTION_MODE_NAMES[0]);
    default_string(&spec, "failurePolicy", FAILURE_POLICY_NAMES[0]);
    default_int(&faults, "retryLimit", 0);
    default_string(&faults, "retryPausePeriod", JOB_DEFAULT_RETRY_PAUSE);
    if (!cJSON_IsArray(tasks) || json_len(tasks) > JOB_MAX_TASKS)
        return;
    json_for_each (item, tasks) {
        const struct place task = { defaulting,
                                    arena_printf(defaulting->arena, "/spec/tasks/%zu", index++),
                                    item };
        default_workload(&task);
    }
}

void federatedjob_default(const struct defaulting *defaulting)
{
    const struct place spec = spec_of(defaulting);
    const struct place aggregator = inner(&spec, "aggregator");

    if (!is_spec_open(defaulting))
        return;
    default_int(&spec, "timeoutSeconds", ROUND_DEFAULT_TIMEOUT_SECONDS);
    default_string(&spec, "lateUpdates", LATE_UPDATES_NAMES[0]);
    default_string(&aggregator, "algorithm", AGGREGATOR_DEFAULT);
}
