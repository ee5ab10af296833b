/* What the garbage collector does about an object: pure. KEP "garbage collection", as
 * kube-controller-manager's. */
#pragma once

#include "common/base/timeline.h"
#include "standalone/schema/resource.h"

/* Owners that are looked at; the rest counts as there. */
#define COLLECTOR_MAX_OWNERS 32

enum owner_state {
    OWNER_SOLID,   /* it is there, or nobody can tell */
    OWNER_MISSING, /* not there, or another one of that name */
    OWNER_WAITING, /* it is deleted in the foreground, and this reference keeps it */
};

enum collector_action {
    COLLECT_NOTHING,
    COLLECT_DELETE,            /* all owners are gone */
    COLLECT_DELETE_FOREGROUND, /* one waits for it */
    COLLECT_DROP_REFERENCES,   /* of those that are gone or wait; the others keep it */
};

/* states: of metadata.ownerReferences, in their order. */
enum collector_action collector_plan(const enum owner_state *states, size_t len);

/* Whose key an owner reference of an object in ns ("": in none) would have in the store. NULL: nobody can tell
 * whether it is there: its kind is not served, or is in namespaces and the object is not. */
const char *collector_owner_key(struct arena *arena, const struct resources *resources,
                                const char *ns, const cJSON *reference);
/* owner: the object of that key, NULL: none. */
enum owner_state collector_owner_state(const cJSON *reference, const cJSON *owner);

bool collector_is_deleting(const cJSON *object);

/* An Event is deleted when it was last written this long ago (--event-ttl of kube-apiserver). A restart
 * of the process begins the time again, as one of etcd does with its leases. */
#define EVENT_LIFETIME_US (INT64_C(60) * 60 * 1000000)
bool collector_event_is_over(const cJSON *event, const struct timeline_view *time, int64_t now_us);
