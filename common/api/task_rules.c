#include "common/api/validate_internal.h"

#define MAX_ARGUMENTS 1024
#define MAX_SELECTORS 64

static const struct field_rule ARGUMENT = { .type = RULE_STRING, .max = 4096 };
static const struct field_rule INPUT = { .type = RULE_SCALAR };
/* The environment often holds passwords. */
static const struct field_rule VARIABLE = { .type = RULE_STRING, .max = 65536, .hidden = true };
static const struct field_rule AMOUNT = { .type = RULE_AMOUNT, .max = MAX_NAME };

static const struct field_rule SELECTOR_FIELDS[] = {
    { .name = "propletId", .type = RULE_STRING, .max = MAX_NAME },
    { .name = "matchLabels", .type = RULE_MAP, .max = MAX_SELECTORS, .items = &SHORT_RULE },
    { .name = "matchDeviceTypes", .type = RULE_LIST, .max = MAX_SELECTORS, .items = &SHORT_RULE },
    { .name = "matchCapabilities", .type = RULE_LIST, .max = MAX_SELECTORS, .items = &SHORT_RULE },
};
static const struct field_rules SELECTOR_RULES = FIELD_RULES(SELECTOR_FIELDS);

static const struct field_rule RESOURCE_FIELDS[] = {
    { .name = "cpu", .type = RULE_QUANTITY, .max = 64 },
    { .name = "memory", .type = RULE_QUANTITY, .max = 64 },
    { .name = "custom", .type = RULE_MAP, .max = 64, .items = &AMOUNT },
};
static const struct field_rules RESOURCE_RULES = FIELD_RULES(RESOURCE_FIELDS);

static const struct field_rule MONITORING_FIELDS[] = {
    { .name = "enabled", .type = RULE_BOOL },
    { .name = "interval", .type = RULE_STRING, .max = 64, .check = rule_duration },
    { .name = "collectCpu", .type = RULE_BOOL },
    { .name = "collectMemory", .type = RULE_BOOL },
    { .name = "collectDiskIo", .type = RULE_BOOL },
    { .name = "collectThreads", .type = RULE_BOOL },
    { .name = "collectFileDescriptors", .type = RULE_BOOL },
    { .name = "exportToMqtt", .type = RULE_BOOL },
    { .name = "retainHistory", .type = RULE_BOOL },
    { .name = "historySize", .type = RULE_INT, .max = 1000000 },
};
static const struct field_rules MONITORING_RULES = FIELD_RULES(MONITORING_FIELDS);

static const struct field_rule FIELDS[] = {
    { .name = "name", .type = RULE_STRING, .required = true, .min = 1, .max = MAX_NAME },
    { .name = "functionName", .type = RULE_STRING, .max = 1024 },
    { .name = "kind", .type = RULE_ENUM, .names = TASK_KIND_NAMES },
    { .name = "imageUrl", .type = RULE_STRING, .max = MAX_REFERENCE },
    { .name = "file", .type = RULE_STRING, .max = VALIDATE_MAX_INLINE_WASM, .hidden = true },
    { .name = "cliArgs", .type = RULE_LIST, .max = MAX_ARGUMENTS, .items = &ARGUMENT },
    { .name = "inputs", .type = RULE_LIST, .max = MAX_ARGUMENTS, .items = &INPUT },
    { .name = "env", .type = RULE_MAP, .max = 128, .items = &VARIABLE },
    { .name = "propletSelector", .type = RULE_OBJECT, .members = &SELECTOR_RULES },
    { .name = "preferredPropletType", .type = RULE_ENUM, .names = PREFERRED_TYPE_NAMES },
    { .name = "resourceRequirements", .type = RULE_OBJECT, .members = &RESOURCE_RULES },
    { .name = "daemon", .type = RULE_BOOL },
    { .name = "restartPolicy", .type = RULE_ENUM, .names = RESTART_POLICY_NAMES },
    { .name = "broadcast", .type = RULE_BOOL },
    { .name = "mode", .type = RULE_ENUM, .names = TASK_MODE_NAMES },
    { .name = "metadata", .type = RULE_ANY },
    { .name = "encrypted", .type = RULE_BOOL },
    { .name = "kbsResourcePath", .type = RULE_STRING, .max = MAX_REFERENCE },
    { .name = "dependsOn", .type = RULE_LIST, .max = MAX_DEPENDENCIES, .items = &NAME_RULE },
    { .name = "runIf", .type = RULE_ENUM, .names = RUN_IF_NAMES },
    { .name = "workflowId", .type = RULE_STRING, .max = MAX_NAME },
    { .name = "jobId", .type = RULE_STRING, .max = MAX_NAME },
    { .name = "schedule", .type = RULE_STRING, .max = 256 },
    { .name = "timezone", .type = RULE_STRING, .max = 128 },
    { .name = "isRecurring", .type = RULE_BOOL },
    { .name = "priority", .type = RULE_INT, .max = 100 },
    { .name = "monitoringProfile", .type = RULE_OBJECT, .members = &MONITORING_RULES },
    { .name = "suspend", .type = RULE_BOOL },
    { .name = "backoffLimit", .type = RULE_INT, .max = 1000 },
    { .name = "activeDeadlineSeconds", .type = RULE_INT, .min = 1, .max = MAX_SECONDS },
    { .name = "ttlSecondsAfterFinished", .type = RULE_INT, .max = MAX_SECONDS },
    { .name = "propletLostPolicy", .type = RULE_ENUM, .names = LOST_POLICY_NAMES },
    { .name = "propletLostSeconds", .type = RULE_INT, .max = MAX_SECONDS },
    { .name = "concurrencyPolicy", .type = RULE_ENUM, .names = CONCURRENCY_POLICY_NAMES },
    { .name = "startingDeadlineSeconds", .type = RULE_INT, .max = MAX_SECONDS },
    { .name = "historyLimit", .type = RULE_INT, .max = 100 },
    { .name = "broadcastQuorum", .type = RULE_INT, .min = 1, .max = 500 },
};
const struct field_rules TASK_SPEC_RULES = FIELD_RULES(FIELDS);
