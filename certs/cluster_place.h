/* Backend that keeps the key pairs in two Secrets and the authority in the webhook configurations. */
#pragma once

#include "certs/configurations.h"
#include "certs/keeper.h"

/* Both of type kubernetes.io/tls with tls.crt and tls.key; the first one has also ca.crt, all that
 * is trusted. Only the leader and propeller-certgen need to read it. */
#define CERT_SECRET_CA "propeller-webhook-ca"
#define CERT_SECRET_LEAF "propeller-webhook-cert"

struct cluster_place {
    struct configurations configurations;
    const cJSON *ca; /* Secrets of the last load, in its arena; NULL: not there */
    const cJSON *leaf;
};

/*
 * Returns a backend for cert_keep; self must outlive it. It does not touch Secrets that cert-manager
 * created, nor the configurations that configurations_load excludes. Writes carry the
 * resourceVersion of the loaded object. Messages contain the name of a Secret only.
 */
struct cert_place cluster_place(struct cluster_place *self);
