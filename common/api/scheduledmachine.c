#include "common/api/scheduledmachine.h"

#include <ctype.h>
#include <string.h>

#include "common/base/str.h"

const char *const MACHINE_PHASE_NAMES[] = {
    NULL,       "Pending",    "Active",          "ShuttingDown", "Inactive",
    "Disabled", "Terminated", "EmergencyRemove", "Error",        NULL,
};

enum machine_phase machine_phase_of(const char *text)
{
    for (int phase = MACHINE_NEW + 1; phase < MACHINE_PHASES; phase++) {
        if (str_equal(text, MACHINE_PHASE_NAMES[phase]))
            return (enum machine_phase)phase;
    }
    return MACHINE_NEW;
}

static const struct json_field TAINT_FIELDS[] = {
    JSON_FIELD(FIELD_STRING, struct machine_taint, key, "key"),
    JSON_FIELD(FIELD_STRING, struct machine_taint, value, "value"),
    JSON_FIELD(FIELD_STRING, struct machine_taint, effect, "effect"),
};
const struct json_struct MACHINE_TAINT = JSON_STRUCT(struct machine_taint, TAINT_FIELDS);

static const struct json_field SCHEDULE_FIELDS[] = {
    JSON_FIELD(FIELD_STRINGS, struct availability_schedule, days_of_week, "daysOfWeek"),
    JSON_FIELD(FIELD_OPT_BOOL, struct availability_schedule, enabled, "enabled"),
    JSON_FIELD(FIELD_STRINGS, struct availability_schedule, hours_of_day, "hoursOfDay"),
    JSON_FIELD(FIELD_STRING, struct availability_schedule, timezone, "timezone"),
};
static const struct json_struct SCHEDULE =
    JSON_STRUCT(struct availability_schedule, SCHEDULE_FIELDS);

static const struct json_field PART_FIELDS[] = {
    JSON_FIELD(FIELD_STRING, struct machine_part, api_version, "apiVersion"),
    JSON_FIELD(FIELD_STRING, struct machine_part, kind, "kind"),
    JSON_FIELD(FIELD_ANY, struct machine_part, spec, "spec"),
};
static const struct json_struct PART = JSON_STRUCT(struct machine_part, PART_FIELDS);

static const struct json_field TEMPLATE_FIELDS[] = {
    JSON_FIELD(FIELD_MAP, struct machine_template, annotations, "annotations"),
    JSON_FIELD(FIELD_MAP, struct machine_template, labels, "labels"),
};
static const struct json_struct TEMPLATE = JSON_STRUCT(struct machine_template, TEMPLATE_FIELDS);

#define SPEC struct scheduledmachine_spec
static const struct json_field SPEC_FIELDS[] = {
    JSON_FIELD_NESTED(FIELD_OBJECT, SPEC, bootstrap, "bootstrapSpec", &PART),
    JSON_FIELD(FIELD_STRING, SPEC, cluster_name, "clusterName"),
    JSON_FIELD(FIELD_STRING, SPEC, graceful_shutdown_timeout, "gracefulShutdownTimeout"),
    JSON_FIELD_NESTED(FIELD_OBJECT, SPEC, infrastructure, "infrastructureSpec", &PART),
    JSON_FIELD(FIELD_STRINGS, SPEC, kill_if_commands, "killIfCommands"),
    JSON_FIELD(FIELD_BOOL, SPEC, kill_switch, "killSwitch"),
    JSON_FIELD_NESTED(FIELD_OBJECT, SPEC, machine_template, "machineTemplate", &TEMPLATE),
    JSON_FIELD(FIELD_STRING, SPEC, node_drain_timeout, "nodeDrainTimeout"),
    JSON_FIELD_NESTED(FIELD_OBJECTS, SPEC, node_taints, "nodeTaints", &MACHINE_TAINT),
    JSON_FIELD(FIELD_OPT_INT, SPEC, priority, "priority"),
    JSON_FIELD_NESTED(FIELD_OBJECT, SPEC, schedule, "schedule", &SCHEDULE),
};
const struct json_struct SCHEDULEDMACHINE_SPEC = JSON_STRUCT(SPEC, SPEC_FIELDS);

#define REFERENCE struct machine_reference
#define REFERENCE_FIELDS                                                                           \
    JSON_FIELD(FIELD_STRING, REFERENCE, api_version, "apiVersion"),                                \
        JSON_FIELD(FIELD_STRING, REFERENCE, kind, "kind"),                                         \
        JSON_FIELD(FIELD_STRING, REFERENCE, name, "name")
static const struct json_field OBJECT_FIELDS[] = {
    REFERENCE_FIELDS,
    JSON_FIELD(FIELD_STRING, REFERENCE, ns, "namespace"),
};
static const struct json_struct OBJECT = JSON_STRUCT(REFERENCE, OBJECT_FIELDS);
static const struct json_field NODE_FIELDS[] = {
    REFERENCE_FIELDS,
    JSON_FIELD(FIELD_STRING, REFERENCE, uid, "uid"),
};
static const struct json_struct NODE = JSON_STRUCT(REFERENCE, NODE_FIELDS);

#define STATUS struct scheduledmachine_status
static const struct json_field STATUS_FIELDS[] = {
    JSON_FIELD_NESTED(FIELD_OBJECTS, STATUS, applied_node_taints, "appliedNodeTaints",
                      &MACHINE_TAINT),
    JSON_FIELD_NESTED(FIELD_OBJECT, STATUS, bootstrap, "bootstrapRef", &OBJECT),
    JSON_FIELD(FIELD_ARRAY, STATUS, conditions, "conditions"),
    JSON_FIELD(FIELD_BOOL, STATUS, in_schedule, "inSchedule"),
    JSON_FIELD_NESTED(FIELD_OBJECT, STATUS, infrastructure, "infrastructureRef", &OBJECT),
    JSON_FIELD(FIELD_STRING, STATUS, last_scheduled_time, "lastScheduledTime"),
    JSON_FIELD_NESTED(FIELD_OBJECT, STATUS, machine, "machineRef", &OBJECT),
    JSON_FIELD(FIELD_STRING, STATUS, message, "message"),
    JSON_FIELD(FIELD_STRING, STATUS, next_activation, "nextActivation"),
    JSON_FIELD(FIELD_STRING, STATUS, next_cleanup, "nextCleanup"),
    JSON_FIELD_NESTED(FIELD_OBJECT, STATUS, node, "nodeRef", &NODE),
    JSON_FIELD(FIELD_OPT_INT, STATUS, observed_generation, "observedGeneration"),
    JSON_FIELD(FIELD_STRING, STATUS, phase, "phase"),
    JSON_FIELD(FIELD_STRING, STATUS, provider_id, "providerID"),
};
const struct json_struct SCHEDULEDMACHINE_STATUS = JSON_STRUCT(STATUS, STATUS_FIELDS);

/* 0: the unit is not known. */
static int64_t unit_ms(char unit)
{
    static const struct {
        char name;
        int64_t ms;
    } UNITS[] = { { 's', 1000 }, { 'm', 60000 }, { 'h', 3600000 } };

    for (size_t i = 0; i < ARRAY_LEN(UNITS); i++) {
        if (UNITS[i].name == unit)
            return UNITS[i].ms;
    }
    return 0;
}

int64_t machine_timeout_ms(const char *text)
{
    int64_t count = 0;
    const char *at = text ? text : "";

    for (; isdigit((unsigned char)*at) && count <= MACHINE_MAX_TIMEOUT_MS; at++)
        count = count * 10 + *at - '0';

    int64_t unit = unit_ms(*at);
    if (at == text || !unit || at[1] || count > MACHINE_MAX_TIMEOUT_MS / unit)
        return MACHINE_DEFAULT_TIMEOUT_MS;
    return count * unit;
}
