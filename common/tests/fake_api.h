/* An API server in memory behind http_roundtrip_fn: any kind, by its path. For tests. */
#pragma once

#include "common/base/clock.h"
#include "common/kube/client.h"

/*
 * Does as the real one: uid, generation (moves with anything but metadata and status), one counter
 * of resourceVersions, 409 for a stale version in a body, patch or precondition and for another uid
 * in a body or precondition (in a patch: 422), the status subresource apart, finalizers and
 * deletionTimestamp, no version for a write that changes nothing, pages, label selectors (equality
 * and existence), PartialObjectMetadataList. An apply is a merge patch that may create. It knows no
 * schema, no namespaces, no watch and no garbage collection.
 *
 * Any number of threads.
 */
struct fake_api;
struct fake_api *fake_api_create(void);
void fake_api_destroy(struct fake_api *api);
http_roundtrip_fn fake_api_roundtrip; /* ctx: struct fake_api * */

/* Objects are dated by this clock from now on; without one, all by the same time. */
void fake_api_set_clock(struct fake_api *api, const struct clock *clock);

/*
 * Every change, in order. old NULL: created; current NULL: deleted, and old carries the version of
 * the deletion. Borrowed. On the thread of the writer, with the lock of the fake: must not call it.
 */
typedef void fake_change_fn(void *ctx, const cJSON *old, const cJSON *current);
void fake_api_on_change(struct fake_api *api, fake_change_fn *function, void *ctx);

/* A change by another client: no request is counted. put replaces the whole object, status and all;
 * another spec gets another generation. */
void fake_api_put(struct fake_api *api, const struct kube_kind *kind, const cJSON *object);
void fake_api_delete(struct fake_api *api, const struct kube_kind *kind,
                     const struct kube_name *name);
/* A copy in the arena; NULL: not there. */
const cJSON *fake_api_get(struct fake_api *api, struct arena *arena, const struct kube_kind *kind,
                          const struct kube_name *name);

enum fake_failure {
    FAKE_REFUSED,      /* no connection: not executed */
    FAKE_LOST_REPLY,   /* executed, then a time-out */
    FAKE_CONFLICT,     /* 409, not executed; reads and creates know no conflict: as SERVER_ERROR */
    FAKE_SERVER_ERROR, /* 500, not executed */
    FAKE_FAILURES,     /* how many there are */
};
/* The k-th request from now on, counted from 1, fails; 0: none. */
void fake_api_fail(struct fake_api *api, unsigned k, enum fake_failure failure);

/* The log of requests, up to FAKE_MAX_LOG. */
#define FAKE_MAX_LOG 65536
struct fake_request {
    const char *method;
    const char *path; /* with query */
};
size_t fake_api_requests(struct fake_api *api, struct arena *arena, struct fake_request **ret);
