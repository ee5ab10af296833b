/*
 * This module holds the kind Proplet, a device or a group of pods that runs Tasks: its structs, its
 * phases and the meaning of absent fields.
 *
 * Structs are plain values, which point into the tree and the arena that they were decoded with.
 * All functions are pure, so any thread may call them. Units are in the names: _us is the wall
 * clock in microseconds since 1970, _ms is a duration in milliseconds.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/api/availability.h"
#include "common/api/resources.h"
#include "common/json/codec.h"

/* The names are those of the API, by the value of the enum. Index 0 is NULL where 0 means that the
 * field is absent (PROPLET_TYPE_UNSET). */
enum proplet_type { PROPLET_TYPE_UNSET, PROPLET_K8S, PROPLET_EXTERNAL };
enum proplet_log_level { PROPLET_LOG_INFO, PROPLET_LOG_DEBUG, PROPLET_LOG_WARN, PROPLET_LOG_ERROR };
enum proplet_dialect { DIALECT_STANDARD, DIALECT_EMBEDDED };

extern const char *const PROPLET_TYPE_NAMES[];
extern const char *const PROPLET_LOG_LEVEL_NAMES[];
extern const char *const PROPLET_DIALECT_NAMES[];

struct proplet_k8s {
    const char *image;
    enum proplet_log_level log_level;
    struct json_opt_int replicas;
    const char *plugin_dir;
    bool indexed_client_ids;
    const cJSON *pod_template;
};

struct proplet_external {
    const char *device_type;
    struct str_list capabilities;
    enum proplet_dialect dialect;
    struct json_opt_int max_tasks; /* unset: no limit */
    const char *heartbeat_timeout; /* Go duration; NULL: that of the controller */
};

struct secret_key_ref {
    const char *name;
    const char *key;
    bool optional;
};

struct connection_config {
    const char *mqtt_address;
    const char *domain_id;
    const char *channel_id;
    const char *client_id;  /* the identity of the device: proplet_id in its messages */
    const char *client_key; /* secret: never in messages or logs */
    struct secret_key_ref *client_key_secret_ref;
    struct json_opt_int mqtt_qos;
    const char *mqtt_timeout; /* Go duration */
};

struct proplet_spec {
    enum proplet_type type;
    struct proplet_k8s *k8s;                     /* NULL: none */
    struct proplet_external *external;           /* NULL: none */
    const cJSON *resources;                      /* object of quantities */
    struct connection_config *connection_config; /* never NULL after proplet_decode */
    bool unschedulable;
    bool kill_switch;                       /* closed, and its Tasks are stopped at once */
    struct availability_spec *availability; /* NULL: always open */
};

/*
 *   Initializing ──first heartbeat, or all replicas ready──> Running <──> Offline
 */
enum proplet_phase { PROPLET_INITIALIZING, PROPLET_RUNNING, PROPLET_OFFLINE, PROPLET_PHASES };
extern const char *const PROPLET_PHASE_NAMES[];

/* One device of a Proplet of type k8s; whether it is connected is known from the broker. */
struct proplet_device {
    const char *client_id;
    bool connected;           /* written even if false */
    int64_t offline_since_us; /* 0: it is connected */
};

struct proplet_k8s_status {
    int64_t ready_replicas;
    int64_t available_replicas;
    struct json_objects devices; /* of struct proplet_device, in the order of the pods */
};

struct proplet_status {
    enum proplet_phase phase;
    bool alive; /* written even if false */
    int64_t last_seen_us;
    int64_t offline_since_us;      /* 0: it is not Offline */
    struct str_list alive_history; /* RFC 3339, at most PROPLET_ALIVE_HISTORY, oldest first */
    int64_t task_count;
    int64_t active_task_count;
    struct resource_amounts *available_resources; /* NULL: none */
    struct proplet_k8s_status *k8s_status;        /* NULL: none */
    const cJSON *metadata;
    const cJSON *latest_metrics;
    const cJSON *conditions;
    const struct availability_status *availability; /* NULL: it uses none of the fields */
    int64_t observed_generation;
};
#define PROPLET_ALIVE_HISTORY 10

struct proplet {
    struct proplet_spec spec;
    struct proplet_status status;
};

extern const struct json_struct PROPLET_SPEC;
extern const struct json_struct PROPLET_STATUS;

/* Decodes a whole Proplet, whose spec and status may be absent. *ret borrows from object and from
 * the arena. The only error is ERROR_INVALID, which names the field. */
int proplet_decode(struct arena *arena, const cJSON *object, struct proplet *ret,
                   struct error *err) MUST_CHECK;
/* Whether the owner of the machine wants it back: the annotation reclaim-requested is "true". */
bool proplet_is_reclaimed(const cJSON *object);
/* Returns the value of "status" as a new tree, owned by the arena. */
cJSON *proplet_status_encode(struct arena *arena, const struct proplet_status *status);

/* Limits of spec.external.heartbeatTimeout, and the time between two heartbeats of a device. */
#define PROPLET_MIN_HEARTBEAT_TIMEOUT_MS INT64_C(5000)
#define PROPLET_MAX_HEARTBEAT_TIMEOUT_MS INT64_C(86400000)
#define PROPLET_HEARTBEAT_MS INT64_C(10000)

/* Values of absent fields. */
#define PROPLET_DEFAULT_REPLICAS 1
#define PROPLET_DEFAULT_MQTT_QOS 1
#define PROPLET_DEFAULT_MQTT_TIMEOUT "30s"
#define PROPLET_DEFAULT_MQTT_TIMEOUT_MS 30000

#define PROPLET_MAX_REPLICAS 100

/* Returns the time after which the silence of its device makes it Offline; unset: of the controller's flag. */
int64_t proplet_heartbeat_timeout_ms(const struct proplet_spec *spec, int64_t unset_ms);
int64_t proplet_replicas(const struct proplet_spec *spec);
/* Whether each of its pods is a device with a client id of its own: "<clientId>-0", "<clientId>-1",
 * … (a StatefulSet). */
bool proplet_is_indexed(const struct proplet_spec *spec);
/* A Proplet has one device, or one for each pod. The client id is in the arena or borrowed from
 * spec; index is below the count. */
size_t proplet_device_count(const struct proplet_spec *spec);
const char *proplet_device_id(struct arena *arena, const struct proplet_spec *spec, size_t index);
bool proplet_has_device(const struct proplet_spec *spec, const char *client_id);
/* Returns the entry of the device in status, borrowed, or NULL if there is none. */
const struct proplet_device *proplet_device_find(const struct proplet_status *status,
                                                 const char *client_id);
int proplet_mqtt_qos(const struct proplet_spec *spec);
int64_t proplet_mqtt_timeout_ms(const struct proplet_spec *spec); /* above 0 */
enum proplet_dialect proplet_dialect(const struct proplet_spec *spec);
