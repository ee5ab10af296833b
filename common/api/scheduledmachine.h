/*
 * This module has the spec and the status of the kind ScheduledMachine of 5spot.finos.org, and its phases.
 *
 * Structs borrow from the tree that they were decoded from. Pure: any thread, and nothing fails but decoding.
 */
#pragma once

#include "common/api/availability.h"

#define SCHEDULEDMACHINE_GROUP "5spot.finos.org"

enum machine_phase {
    MACHINE_NEW, /* none was written yet, or one that is not known */
    MACHINE_PENDING,
    MACHINE_ACTIVE,
    MACHINE_SHUTTING_DOWN,
    MACHINE_INACTIVE,
    MACHINE_DISABLED,
    MACHINE_TERMINATED,
    MACHINE_EMERGENCY_REMOVE,
    MACHINE_ERROR,
    MACHINE_PHASES,
};
extern const char *const MACHINE_PHASE_NAMES[]; /* by phase; index 0 is NULL */
/* text may be NULL. */
enum machine_phase machine_phase_of(const char *text);

struct machine_taint {
    const char *key;
    const char *value; /* NULL means "" */
    const char *effect;
};
/* A table of key, value and effect, also for the annotation of a Node. */
extern const struct json_struct MACHINE_TAINT;

/* An object of another group that is made as the spec states it. */
struct machine_part {
    const char *api_version;
    const char *kind;
    const cJSON *spec;
};

struct machine_template {
    const cJSON *labels;
    const cJSON *annotations;
};

struct scheduledmachine_spec {
    struct availability_schedule *schedule; /* has no windows */
    const char *cluster_name;
    struct machine_part *bootstrap;
    struct machine_part *infrastructure;
    struct machine_template *machine_template; /* NULL: none */
    const char *graceful_shutdown_timeout;
    const char *node_drain_timeout;
    bool kill_switch;
    struct json_opt_int priority;
    struct json_objects node_taints; /* of struct machine_taint */
    struct str_list kill_if_commands;
};
extern const struct json_struct SCHEDULEDMACHINE_SPEC;

/* Of an object that was made, or of a Node, which has a uid in place of a namespace. */
struct machine_reference {
    const char *api_version, *kind, *name, *ns, *uid;
};

/* Times are texts of RFC 3339, since the published schema says no more of them. */
struct scheduledmachine_status {
    const char *phase;
    const char *message;
    bool in_schedule;
    const char *next_activation, *next_cleanup, *last_scheduled_time;
    struct machine_reference *machine, *bootstrap, *infrastructure, *node;
    const char *provider_id;
    struct json_objects applied_node_taints; /* of struct machine_taint */
    struct json_opt_int observed_generation;
    const cJSON *conditions;
};
extern const struct json_struct SCHEDULEDMACHINE_STATUS;

#define MACHINE_DEFAULT_TIMEOUT_MS INT64_C(300000)
#define MACHINE_MAX_TIMEOUT_MS INT64_C(86400000)
/* Returns a gracefulShutdownTimeout or nodeDrainTimeout: digits, and one of s, m and h, at most 24h. A text that is
 * absent or cannot be read counts as 5m. */
int64_t machine_timeout_ms(const char *text);
