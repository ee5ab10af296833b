/*
 * This module says which members of Tasks and Proplets the caches keep, and under which values the
 * caches find them.
 *
 * All functions are pure, so any thread may call them; trees are borrowed. Keys are arrays of the
 * caller. Nothing fails but by false: the object has no such value, or it is too long.
 */
#pragma once

#include "common/api/proplet.h"
#include "common/kube/watch.h"
#include "common/runtime/store.h"
#include "controller/device/fleet.h"
#include "controller/device/messages.h"

/*
 * Tasks
 *   INDEX_ACTIVE    ""                  scheduled with a Proplet or targets, or running
 *   INDEX_ASSIGNED  "<ns>/<proplet>"    the same by Proplet, a broadcast by those it waits for
 *   INDEX_OWED      "<ns>/<proplet>"    those that the Proplet still has to stop when it is back
 *   INDEX_WAITING   "<ns>"              pending, or scheduled without a Proplet, unless only other
 *                                       Tasks, the time or its user can help
 *   INDEX_DEPENDENTS "<ns>/<task>"      pending ones by each Task that they depend on
 *   INDEX_OWNER     "<uid>"             by the object that controls them
 *   INDEX_MEMBER    "<uid>/<proplet>"   by the object that controls them and the Proplet that they are on
 * Proplets
 *   INDEX_CLIENT    "<clientId>"        on any channel
 *   INDEX_IDENTITY  fleet_key           each device
 *   INDEX_CHANNEL   channel_key
 *   INDEX_EMBEDDED  channel_key         of dialect embedded only
 *   INDEX_UNHEARD   channel_key         those that wait for a first heartbeat
 * Enrollments
 *   INDEX_LISTEN    channel_key         of every channel of a domain: "<domain>/+"
 */
#define INDEX_ACTIVE "active"
#define INDEX_ASSIGNED "assigned"
#define INDEX_OWED "owed"
#define INDEX_WAITING "waiting"
#define INDEX_DEPENDENTS "dependents"
#define INDEX_OWNER "owner"
#define INDEX_MEMBER "member"
#define INDEX_CLIENT "client"
#define INDEX_IDENTITY "identity"
#define INDEX_CHANNEL "channel"
#define INDEX_EMBEDDED "embedded"
#define INDEX_UNHEARD "unheard"
#define INDEX_LISTEN "listen"

#define MEMBER_KEY_LEN 320
bool member_key(const char *owner_uid, const char *proplet, char ret[static MEMBER_KEY_LEN]);

void indexes_add_task(struct store *store);
void indexes_add_proplet(struct store *store);
void indexes_add_enrollment(struct store *store);

/* Removes module, environment, arguments, metadata for the device, results (also of targets),
 * history, annotations, and all labels but the podSet. A reconciler that needs them reads them from the API server. */
watch_project_fn project_task;
extern const char *const UNREAD_OF_TASK[]; /* paths for which no tree is built */
/* Removes all annotations but the one that asks for another run, whose value is cut to a digest. */
void project_restart(cJSON *object);
/* Removes the client key, and all annotations but a reclaim-requested that is "true". */
watch_project_fn project_proplet;
extern const char *const UNREAD_OF_PROPLET[];

/* Calls function for each Proplet that the broadcast of a Task still waits for. client_id is its
 * device; NULL: it has one. */
typedef void target_fn(void *ctx, const char *proplet, const char *client_id);
void targets_open(const cJSON *task, target_fn *function, void *ctx);

/* Writes the channel of a Proplet to ret. false: it has no usable connectionConfig. */
bool proplet_channel_of(const cJSON *json, char ret[static CHANNEL_KEY_LEN]);
/* Writes the channel on which an Enrollment listens to ret; see INDEX_LISTEN. */
bool enrollment_channel_of(const cJSON *json, char ret[static CHANNEL_KEY_LEN]);
/* Writes the fleet_key of a device of a Proplet to ret. client_id NULL: the Proplet has one
 * device. */
bool proplet_identity_of(const cJSON *json, const char *client_id, char ret[static FLEET_KEY_LEN]);
/* Calls function for each device of a Proplet. */
typedef void identity_fn(void *ctx, const char *client_id, const char *identity);
void proplet_identities(const cJSON *json, identity_fn *function, void *ctx);
enum proplet_dialect proplet_dialect_of(const cJSON *json);
