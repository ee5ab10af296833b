/* Enrollment: where devices without a Proplet are listed. Its structs, limits, and the Proplets that it makes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/json/codec.h"

#define ENROLLMENT_DEFAULT_LIMIT 100
#define ENROLLMENT_MAX_LIMIT 500
#define ENROLLMENT_DEFAULT_FORGET_SECONDS 86400
#define ENROLLMENT_MAX_REJECTED 1000

/* The key of the Secret that a Proplet of an Enrollment refers to. */
#define ENROLLMENT_SECRET_KEY "clientKey"

enum approval { APPROVAL_MANUAL, APPROVAL_AUTOMATIC };
extern const char *const APPROVAL_NAMES[];

struct enrollment_match {
    const char *client_id_prefix;
    struct str_list tags;
};

struct enrollment_template {
    const char *name_prefix;
    const cJSON *labels;
    const cJSON *external;
    const cJSON *resources;
    const cJSON *connection_config;
};

struct enrollment_spec {
    const char *domain_id;
    const char *channel_id; /* NULL: the channel of a device is its client id */
    bool channel_per_device;
    const char *mqtt_address;
    struct enrollment_match *match; /* NULL: all devices */
    struct json_opt_int limit;
    struct json_opt_int forget_after_seconds;
    enum approval approval;
    struct json_opt_int max_proplets;
    struct enrollment_template *proplets; /* NULL: no defaults */
    struct str_list rejected;             /* client ids */
};

/* A device that waits for approval. */
struct pending_device {
    const char *client_id;
    const char *channel_id;
    int64_t first_seen_us;
    int64_t last_seen_us;
    const cJSON *metadata; /* NULL: it has said nothing of itself */
};

struct enrollment_status {
    struct json_objects pending; /* of struct pending_device */
    int64_t pending_count;
    int64_t enrolled_count;
    bool overflow;
    const cJSON *conditions;
    int64_t observed_generation;
};

struct enrollment {
    struct enrollment_spec spec;
    struct enrollment_status status;
};

extern const struct json_struct ENROLLMENT_SPEC;
extern const struct json_struct ENROLLMENT_STATUS;

/* object: a whole Enrollment; spec and status may be absent. *ret borrows from it. */
int enrollment_decode(struct arena *arena, const cJSON *object, struct enrollment *ret,
                      struct error *err) MUST_CHECK;
/* The value of "status"; owned by the arena. */
cJSON *enrollment_status_encode(struct arena *arena, const struct enrollment_status *status);

/* Whether a device with this client id can have a Proplet that a person can read: printable ASCII without
 * blanks, quotes, the characters of MQTT filters, and those that grow when they are stored, at most 253 bytes. */
bool enrollment_is_client_id(const char *client_id);
/* Whether the Enrollment lists this client id on this channel, as far as its spec says. */
bool enrollment_takes(const struct enrollment_spec *spec, const char *client_id,
                      const char *channel_id);

/* The name of the Proplet of a device: namePrefix and the client id, in the arena. It may be unusable as a name. */
const char *enrollment_proplet_name(struct arena *arena, const struct enrollment_spec *spec,
                                    const char *client_id);
/* "<proplet>-key", in the arena. */
const char *enrollment_secret_name(struct arena *arena, const char *proplet);

struct enrollment_identity {
    const char *enrollment; /* name of the object; NULL: none */
    const char *name;       /* of the Proplet */
    const char *ns;
    const char *channel_id;
    const char *client_id;
};
/*
 * The manifest of the Proplet of a device, in the arena. It refers to the Secret "<name>-key". has_secret false: the
 * Secret need not exist.
 */
cJSON *enrollment_proplet(struct arena *arena, const struct enrollment_spec *spec,
                          const struct enrollment_identity *identity, bool has_secret);
