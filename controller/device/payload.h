/* This module makes the messages for devices: start and stop, in the two dialects of the
 * Propeller MQTT contract (sections 5, 7, 12). */
#pragma once

#include "common/api/proplet.h"
#include "common/api/task.h"
#include "common/json/json.h"

/* A longer message makes a microcontroller deaf for good, even if it is for another device. */
#define PAYLOAD_EMBEDDED_MAX 1023
/* Brokers of the Propeller stack cap a message at 1 MiB; the device caps it at 10 MiB. */
#define PAYLOAD_STANDARD_MAX (1u << 20)

struct start_request {
    const struct task_spec *task; /* complete, with file and env */
    const char *object_name;
    const char *message_id;
    const char *client_id; /* the device's identity, never the Proplet's name */
    enum proplet_dialect dialect;
    const char *module_reference; /* "<repository>@<manifest digest>" of its module; NULL: none */
    const cJSON *checkpoint; /* variables of its checkpoint, before those of the Task; NULL: none */
    const char *coordinator_url; /* the address to which training Tasks send updates; NULL: none */
};

#define ENV_MODULE_REFERENCE "MODULE_REFERENCE"
/* A device ends training without any result if it knows no coordinator; from one that refuses at
 * once it turns to MQTT. */
#define PAYLOAD_NO_COORDINATOR "http://127.0.0.1:9"
/* Message ids are part of the path: "<coordinator-url>/t/<id>", to which devices add "/update". */
#define PAYLOAD_COORDINATOR_PATH "/t/"

/* ERROR_TOO_LARGE names the number of bytes and the limit; ERROR_INVALID the field that the device does
 * not take. Optional fields are left out, never
 * null. */
int payload_start(struct arena *arena, const struct start_request *request, const char **ret,
                  size_t *ret_len, struct error *err) MUST_CHECK;

/* The size of all parts of a module but the last one. It belongs to the meaning of a name: a device refuses a part of
 * another number of parts while it has some of them. */
#define PAYLOAD_PART_BYTES ((size_t)512000)
struct module_part {
    const char *name; /* the image_url of starts that wait for it */
    size_t index, total;
    const void *bytes;
    size_t len;
};
const char *payload_part(struct arena *arena, const struct module_part *part, size_t *ret_len);

/* to: gets all ten fields, as the device drops a start whose profile lacks one. */
void payload_set_monitoring(cJSON *to, const struct monitoring_profile *profile);

const char *payload_stop(struct arena *arena, const char *message_id, const char *function_name,
                         const char *client_id);
