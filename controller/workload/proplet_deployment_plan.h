/* This module plans the pods of a Proplet of type k8s: the object that makes them as it is to
 * be, the changes to the present one, and the status. Pure. */
#pragma once

#include "common/api/proplet.h"
#include "common/json/jsonpatch.h"
#include "controller/workload/workload.h"

/*
 * A Deployment, or a StatefulSet if spec.k8s.indexedClientIds gives each pod an identity of its own
 * ("<clientId>-<n>"). Strategy Recreate: two pods with one identity would disconnect each other at
 * the broker.
 *
 * The wanted fields are compared: fields that the API server fills in, and labels and annotations
 * that others add, are no difference. A hash of the pod template (an annotation of it) finds fields
 * that were wanted before and are not any more. Only the difference is written, by a JSON patch
 * that is bound to the version that was read. The template is replaced as a whole: one that another
 * operator made may hold containers and variables of other names, which an apply would leave beside
 * ours, and variables with a value, which may not get a valueFrom.
 */
#define PROPLET_CONTAINER "proplet"
/* In the Secret with the key of spec.connectionConfig.clientKey. */
#define CLIENT_KEY_ITEM "clientKey"
/* The device has nothing to finish, and as the first process of its container it ignores SIGTERM. */
#define PROPLET_GRACE_S 5

/* Why a Proplet has no pods, whatever its spec says. */
enum deployment_hold {
    DEPLOYMENT_FREE,      /* it has those of its spec */
    DEPLOYMENT_DUPLICATE, /* its identity belongs to an older Proplet */
    DEPLOYMENT_CLOSED,    /* status.availability: it is closed */
};

struct deployment_observed {
    const cJSON *proplet; /* the whole object */
    const struct proplet_spec *spec;
    enum deployment_hold hold;
    bool pod_template_allowed; /* --allow-pod-template */
    int64_t liveliness_s;      /* seconds between two heartbeats */
    const char *kbs_uri;       /* key broker service, where podTemplate names none */
    bool settled;              /* the spec as it is now was acted on before */
    const cJSON *live;         /* the object of that kind and name; NULL: there is none */
    const char *key_version;   /* of the Secret with the key; NULL: clientKeySecretRef has it */
};

enum deployment_action {
    DEPLOYMENT_KEEP,
    DEPLOYMENT_CREATE,
    DEPLOYMENT_PATCH,
    DEPLOYMENT_WAIT,             /* it is being deleted, and another one follows */
    DEPLOYMENT_TAKEN,            /* it has another owner, and is left alone */
    DEPLOYMENT_TEMPLATE_REFUSED, /* spec.k8s.podTemplate without --allow-pod-template */
};

struct deployment_plan {
    enum deployment_action action;
    const cJSON *object;            /* CREATE */
    const struct json_patch *patch; /* PATCH */
    bool put_back; /* PATCH: not the Proplet changed, but the object was changed by hand */
};

/* PATCH and CREATE act on what spec says now; nothing is remembered, so doing it again is harmless. */
struct deployment_plan deployment_plan(struct arena *arena,
                                       const struct deployment_observed *observed);

const struct kube_kind *deployment_kind(const struct proplet_spec *spec);
/* "<proplet>-proplet", "<proplet>-client-key". */
const char *deployment_name(struct arena *arena, const char *proplet);
const char *client_key_secret_name(struct arena *arena, const char *proplet);
/* The key stands in the spec: it goes into a Secret of the Proplet's own. */
bool deployment_has_inline_key(const struct proplet_spec *spec);
/* Of the Secret that the live pods were made with; NULL: none. */
const char *deployment_key_version(const cJSON *live);

/* The parts of status.k8sStatus and of the condition Ready. */
struct proplet_pods {
    bool ready; /* all replicas are, and there is at least one */
    int64_t ready_replicas;
    int64_t available_replicas;
    enum reason reason;
    const char *word; /* REASON_OTHER: the cluster's word */
    const char *message;
    bool trouble; /* nothing will come of it by itself: an event is due */
    bool podless; /* pods are missing, and only an event of the API server says why */
    /* When this turn wrote the pods: the members of podTemplate that the API server omitted, "":
     * none. */
    const char *left_out;
};
/*
 * live NULL: not made yet. pods: those of the Proplet, in any order; of those in trouble the status
 * has the first in name order.
 */
struct proplet_pods deployment_status(struct arena *arena, const struct proplet_spec *spec,
                                      enum deployment_hold hold, const cJSON *live,
                                      const cJSON *const *pods, size_t len);
